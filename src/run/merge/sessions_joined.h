/* run/merge/sessions_joined.h: which sessions of the shards are one session of the merged run.
 *
 * Sessions that overlap on one boot and have a device of their sums in common are joined.  So are
 * sessions of different boots that read a device of another machine (a scrape) at the same time, by
 * their wall clocks.  Devices of which nobody can tell whether they are the same would be counted
 * twice, and are an error: one boot whose CPUs, for example, two sessions read by different sensors
 * at the same time. */
#ifndef IPW_RUN_MERGE_SESSIONS_JOINED_H
#define IPW_RUN_MERGE_SESSIONS_JOINED_H

#include "run/merge/join.h"

struct ipw_sessions_joined {
    struct ipw_join_member *members; /* of all groups, one after the other */
    size_t n_members;
    size_t *first; /* n + 1 places in members: group i is [first[i], first[i + 1]) */
    bool *divided; /* for each group: see ipw_join */
    size_t n;
};

/* Groups by the time of their start, and so are their members. */
int ipw_sessions_joined_find(struct ipw_sessions_joined *out, const struct ipw_shard_runs *runs,
                             struct ipw_err *err);
void ipw_sessions_joined_release(struct ipw_sessions_joined *s);

#endif
