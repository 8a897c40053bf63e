/* run/energy_so_far.h: the energy of a query, or of the run, up to the last reading.
 *
 * Asks the ledger during a run, about a time slightly in the past: for limits, for scripts, and for
 * the progress line.  The joules of all domains are those of the machine's own meter, else the sum
 * of the known domains.  Owns nothing. */
#ifndef IPW_RUN_ENERGY_SO_FAR_H
#define IPW_RUN_ENERGY_SO_FAR_H

#include "ledger/feed.h"
#include "ledger/ledger.h"
#include "script/host.h"

struct ipw_energy_so_far {
    struct ipw_figure domain[IPW_DOMAIN_COUNT];
    double joules;               /* of all domains; NAN: unknown */
    enum ipw_provenance weakest; /* of the domains that matter in the sum */
    int64_t until_ns;            /* the last reading */
};

/* `query`: its number in the run. */
void ipw_energy_of_query(struct ipw_energy_so_far *out, const struct ipw_ledger *ledger,
                         const struct ipw_feed *feed, int32_t query, int64_t start_ns);
void ipw_energy_of_run(struct ipw_energy_so_far *out, const struct ipw_ledger *ledger,
                       int64_t start_ns);
/* The joules of the model's machine in the run, and their time; leaves both as they are before the
 * first reading. */
void ipw_energy_of_model(double *joules, double *seconds, const struct ipw_ledger *ledger,
                         const struct ipw_feed *feed, int64_t start_ns);
/* Whether the energy cannot be known any more.  Without the machine's own meter every domain with a
 * sensor counts.  Readings that are late by `patience_ns` count as unknown. */
bool ipw_energy_is_blind(const struct ipw_energy_so_far *e, const struct ipw_ledger *ledger,
                         int64_t start_ns, int64_t patience_ns, const char **reason);
/* The values for a script; start_ns: of its query. */
void ipw_energy_for_script(struct ipw_host_energy *out, const struct ipw_energy_so_far *e,
                           int64_t start_ns);

#endif
