/* run/durable.h: decides when written queries count as done.
 *
 * A query's line is written, then synced by the policy of --sync, then announced ("done ID"), in
 * this order.  Owns the thread that syncs, and the ids of lines that are written but not yet safe;
 * borrows the loop and the run's folder.  There is one sync at a time; the next one covers what was
 * written meanwhile. */
#ifndef IPW_RUN_DURABLE_H
#define IPW_RUN_DURABLE_H

#include "io/loop.h"
#include "io/syncer.h"
#include "trace/rundir.h"

enum ipw_sync { IPW_SYNC_QUERY, IPW_SYNC_RUN, IPW_SYNC_OFF }; /* --sync */
const char *ipw_sync_name(enum ipw_sync sync);
int ipw_sync_parse(enum ipw_sync *out, const char *name, struct ipw_err *err);

struct ipw_durable {
    enum ipw_sync policy;
    struct ipw_loop *loop;
    struct ipw_rundir *dir;
    size_t n_done; /* queries that are safe, including earlier sessions */

    bool (*more)(void *ud); /* whether more queries will follow */
    void (*done)(void *ud); /* a sync has ended; n_done may have grown */
    void (*failed)(void *ud, const struct ipw_err *err); /* the sync failed */
    void *ud;

    struct ipw_syncer *syncer;
    bool syncing;
    int64_t began_ns; /* start of the last sync */
    char **waiting;   /* ids of queries that are written but not yet safe, in order */
    size_t n_waiting, cap_waiting, n_syncing;
};

void ipw_durable_open(struct ipw_durable *d);
void ipw_durable_wrote(struct ipw_durable *d, const char *id); /* a query's line */
void ipw_durable_sync(struct ipw_durable *d);                  /* by the policy */
void ipw_durable_close(struct ipw_durable *d);

#endif
