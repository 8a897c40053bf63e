/* ledger/rules.h: what the ledger is told besides events and samples.
 *
 * The rules of one run: why a domain has no channel, how the joules of queries that were in flight
 * together are shared, what the machine draws when idle, whether the model's devices are another
 * machine's.  Written as the data of the run_start event, read back by `ledger RUN`, so that both
 * open the same ledger. */
#ifndef IPW_LEDGER_RULES_H
#define IPW_LEDGER_RULES_H

#include <math.h>

#include "base/clock.h"
#include "json/json.h"
#include "ledger/ledger.h"

enum { IPW_RULE_DEVICES = 64 };

struct ipw_ledger_rules {
    char reasons[IPW_DOMAIN_COUNT][48];  /* why it has no channel; "": it has one */
    double baseline_w[IPW_DOMAIN_COUNT]; /* NAN: not measured */
    /* Of each of a domain's devices, in the ledger's order, where there are several. */
    double device_baseline_w[IPW_DOMAIN_COUNT][IPW_RULE_DEVICES];
    size_t n_device_baselines[IPW_DOMAIN_COUNT];
    enum ipw_share share;
    bool lm_remote;          /* this machine's accelerators are not the model's */
    struct ipw_anchor clock; /* that dates the segment; all 0: the manifest's */
};

#define IPW_LEDGER_RULES_NONE ((struct ipw_ledger_rules){.baseline_w = {NAN, NAN, NAN, NAN}})

/* The sharing rule by its name. */
int ipw_share_parse(enum ipw_share *out, const char *name, struct ipw_err *err);
/* A ledger by these rules; the rules must outlive it.  With lm_remote the local accelerators are
 * taken out of `channels`' sums, and without a remote one their domain's reason is "remote".  So are
 * the other local channels of a domain that a remote channel is summed for. */
struct ipw_ledger *ipw_ledger_rules_open(struct ipw_ledger_rules *rules,
                                         struct ipw_channel *channels, size_t n_channels);
/* Tells the ledger what `rules` say of the idle machine. */
void ipw_ledger_rules_baseline(const struct ipw_ledger_rules *rules, struct ipw_ledger *ledger);
/* The reasons of the domains that no channel of the set is summed for. */
void ipw_ledger_rules_take(struct ipw_ledger_rules *out, const struct ipw_ledger *ledger,
                           const struct ipw_source_set *set);
/* Appends a JSON object. */
void ipw_ledger_rules_write(struct ipw_buf *out, const struct ipw_ledger_rules *rules);
/* `data` may be NULL (an older run); what is missing is at its default. */
void ipw_ledger_rules_read(struct ipw_ledger_rules *out, const struct ipw_json *data);

#endif
