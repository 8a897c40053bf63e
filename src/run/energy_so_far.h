/* run/energy_so_far.h: the energy that a query, or the run, has used up to the last reading.
 *
 * Questions to the ledger in mid-run, a little in the past: for limits, for scripts that ask, and
 * for the progress line.  The joules of all domains together are those of the machine's own meter,
 * else the sum of the domains that are known.  Holds nothing. */
#ifndef IPW_RUN_ENERGY_SO_FAR_H
#define IPW_RUN_ENERGY_SO_FAR_H

#include "ledger/feed.h"
#include "ledger/ledger.h"
#include "script/host.h"

struct ipw_energy_so_far {
    struct ipw_figure domain[IPW_DOMAIN_COUNT];
    double joules;               /* of all; NAN: not known */
    enum ipw_provenance weakest; /* of the domains that matter in the sum */
    int64_t until_ns;            /* the last reading */
};

/* `query`: its number in the run. */
void ipw_energy_of_query(struct ipw_energy_so_far *out, const struct ipw_ledger *ledger,
                         const struct ipw_feed *feed, int32_t query, int64_t start_ns);
void ipw_energy_of_run(struct ipw_energy_so_far *out, const struct ipw_ledger *ledger,
                       int64_t start_ns);
/* The joules of the model's machine in the run, and in which time; leaves both alone when no sensor
 * has told yet. */
void ipw_energy_of_model(double *joules, double *seconds, const struct ipw_ledger *ledger,
                         const struct ipw_feed *feed, int64_t start_ns);
/* Can it no longer be said what was used?  Without the machine's own meter every domain that has a
 * sensor counts; readings that have not come for `patience_ns` are not known either. */
bool ipw_energy_is_blind(const struct ipw_energy_so_far *e, const struct ipw_ledger *ledger,
                         int64_t start_ns, int64_t patience_ns, const char **reason);
/* As a script reads it; start_ns: of its query. */
void ipw_energy_for_script(struct ipw_host_energy *out, const struct ipw_energy_so_far *e,
                           int64_t start_ns);

#endif
