/* replay/recorded_run.h: the saved run that is replayed: its manifest, its events, which queries.
 *
 * Opened once and read line by line (trace/record.h).  Owns what it read; the path is borrowed. */
#ifndef IPW_REPLAY_RECORDED_RUN_H
#define IPW_REPLAY_RECORDED_RUN_H

#include "base/clock.h"
#include "json/json.h"
#include "trace/record.h"

struct ipw_recorded_run {
    const char *path; /* its folder */
    struct ipw_json *manifest;
    const struct ipw_json *config; /* of the manifest */
    struct ipw_anchor clock;
    struct ipw_record *record;
    struct ipw_record_starts starts; /* where each query was begun last; if asked for */
    char *query_id;                  /* the only query to be replayed, or NULL: all are */
    int32_t query_index;             /* of that query; -1: any of that id */
};

/* `query`: as --query names one, or NULL.  Refuses a record without the texts that an agent could
 * be answered with. */
int ipw_recorded_run_open(struct ipw_recorded_run *r, const char *path, const char *query,
                          bool starts, struct ipw_err *err);
void ipw_recorded_run_release(struct ipw_recorded_run *r);

/* A member of the configuration; NULL, or the fallback, where it is missing. */
const char *ipw_recorded_run_text(const struct ipw_recorded_run *r, const char *key);
int64_t ipw_recorded_run_int(const struct ipw_recorded_run *r, const char *key, int64_t fallback);
bool ipw_recorded_run_flag(const struct ipw_recorded_run *r, const char *key);

/* A query_start: is it of a query to be replayed? */
bool ipw_recorded_run_wants(const struct ipw_recorded_run *r, const struct ipw_record_line *start);
/* Did a later session begin the query again?  Then that one counts. */
bool ipw_recorded_run_begun_again(const struct ipw_recorded_run *r,
                                  const struct ipw_record_line *start);

#endif
