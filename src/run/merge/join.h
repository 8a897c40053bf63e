/* run/merge/join.h: several sessions of one boot as one session of the merged run.
 *
 * The events of all sessions are written in the order of their times, the readings as
 * run/merge/join_rows.h joins them, and both go through one ledger: so a device that the sessions
 * shared is booked once, and each query gets the part that it would have had in one run.  Queries
 * get the numbers of the uncut run.  A query is booked anew, where the readings of the joined
 * session have passed its end; its line is written with the score and texts of its shard.
 *
 * A session that was killed ends with its last event, and so do its queries. */
#ifndef IPW_RUN_MERGE_JOIN_H
#define IPW_RUN_MERGE_JOIN_H

#include "ledger/balance.h"
#include "ledger/rules.h"
#include "run/merge/shard_runs.h"
#include "trace/rundir.h"

struct ipw_join_member { /* a session of a shard */
    const struct ipw_shard_run *run;
    int session;
};

struct ipw_join {
    const struct ipw_shard_runs *runs;     /* NULL: one session of one run, whose queries keep their
                                        * numbers and which a meter was added to */
    const struct ipw_join_member *members; /* by start */
    size_t n;
    struct ipw_rundir *dir;
    int number;           /* of the joined session */
    const char *manifest; /* JSON text for its run_start */
    int64_t *n_extra;     /* attempts so far that got a number after those of all queries */
    /* Results.  Reasons in the balances point into the rules. */
    struct ipw_ledger_rules rules;
    int64_t start_ns, end_ns;
    struct ipw_balance balance[IPW_DOMAIN_COUNT];
    struct ipw_device_balances devices;
    size_t at; /* after an error: the member with the file that cannot be read */
};

int ipw_join_run(struct ipw_join *j, struct ipw_err *err);

#endif
