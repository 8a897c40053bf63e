/* audit/share_rules.h: a saved run by both sharing rules, side by side.
 *
 * `ledger RUN --share all` computes the run once by each rule (ledger/recompute.h).  It shows each
 * query's energy by each rule, and how far the rules are apart.  Both hand out the same total.
 * Owns its rows. */
#ifndef IPW_AUDIT_SHARE_RULES_H
#define IPW_AUDIT_SHARE_RULES_H

#include "ledger/recompute.h"

#define IPW_SHARES IPW_SHARE_COUNT

struct ipw_shares_row { /* one query */
    char *id;
    int32_t index;
    int segment;
    double joules[IPW_SHARES][IPW_DOMAIN_COUNT]; /* NAN: not measured */
};

struct ipw_shares {
    const char *path;
    enum ipw_share own; /* of the run */
    struct ipw_shares_row *rows;
    size_t n, cap;
    double idle[IPW_SHARES][IPW_DOMAIN_COUNT];
};

int ipw_shares_run(struct ipw_shares *s, const char *run, struct ipw_err *err);
void ipw_shares_release(struct ipw_shares *s);

void ipw_shares_print(struct ipw_buf *out, const struct ipw_shares *s);
void ipw_shares_print_json(struct ipw_buf *out, const struct ipw_shares *s);

#endif
