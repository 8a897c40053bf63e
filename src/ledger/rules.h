/* ledger/rules.h: the rules of one run, which the ledger needs beside events and samples.
 *
 * They say why a domain has no channel, how concurrent queries share energy, the idle power, and
 * whether the model runs on another machine.  Written as the data of the run_start event and read
 * back by `ledger RUN`, so that both open the same ledger. */
#ifndef IPW_LEDGER_RULES_H
#define IPW_LEDGER_RULES_H

#include <math.h>

#include "base/clock.h"
#include "json/json.h"
#include "ledger/ledger.h"

enum { IPW_RULE_DEVICES = 64 };

struct ipw_ledger_rules {
    char reasons[IPW_DOMAIN_COUNT][48];  /* why the domain has no channel; "": it has one */
    double baseline_w[IPW_DOMAIN_COUNT]; /* NAN: not measured */
    /* For each device, in the ledger's order, if a domain has several. */
    double device_baseline_w[IPW_DOMAIN_COUNT][IPW_RULE_DEVICES];
    size_t n_device_baselines[IPW_DOMAIN_COUNT];
    enum ipw_share share;
    bool lm_remote;          /* the model runs on another machine */
    char sub_remote[512];    /* the address of a sub-model on another machine, or "" */
    struct ipw_anchor clock; /* dates the session; all 0: use the manifest's */
};

#define IPW_LEDGER_RULES_NONE ((struct ipw_ledger_rules){.baseline_w = {NAN, NAN, NAN, NAN}})

/* The sharing rule by its name. */
int ipw_share_parse(enum ipw_share *out, const char *name, struct ipw_err *err);
/* With lm_remote, local accelerators leave the sums (reason "remote", unless a remote one is in the
 * sum).  So do other local channels of a domain with a remote channel in its sum. */
void ipw_ledger_rules_sums(struct ipw_ledger_rules *rules, struct ipw_channel *channels, size_t n);
/* Opens a ledger by these rules, which must outlive it, with the channels that they leave in the
 * sums. */
struct ipw_ledger *ipw_ledger_rules_open(struct ipw_ledger_rules *rules,
                                         struct ipw_channel *channels, size_t n_channels);
/* For the ledger of a merged run: passes the scopes of the run_start, if it has any.  After
 * ipw_ledger_rules_open(), with the same channels. */
void ipw_ledger_scopes_read(struct ipw_ledger *ledger, const struct ipw_channel *channels,
                            size_t n_channels, const struct ipw_json *data);
/* Appends a JSON array. */
void ipw_ledger_scopes_write(struct ipw_buf *out, const struct ipw_ledger_scope *scopes, size_t n,
                             const struct ipw_channel *channels, size_t n_channels);
/* Passes the idle power to the ledger. */
void ipw_ledger_rules_baseline(const struct ipw_ledger_rules *rules, struct ipw_ledger *ledger);
/* Copies the ledger's reasons for domains without a channel in their sum. */
void ipw_ledger_rules_take(struct ipw_ledger_rules *out, const struct ipw_ledger *ledger,
                           const struct ipw_source_set *set);
/* Appends a JSON object. */
void ipw_ledger_rules_write(struct ipw_buf *out, const struct ipw_ledger_rules *rules);
/* `data` may be NULL; missing members get their defaults. */
void ipw_ledger_rules_read(struct ipw_ledger_rules *out, const struct ipw_json *data);

#endif
