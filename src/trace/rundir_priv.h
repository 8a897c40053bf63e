/* trace/rundir_priv.h: the inside of a run directory, shared by rundir.c (taking and giving back
 * the folder), rundir_write.c (its files) and rundir_reopen.c (a run that goes on).  Nothing else includes it. */
#ifndef IPW_TRACE_RUNDIR_PRIV_H
#define IPW_TRACE_RUNDIR_PRIV_H

#include <stdbool.h>

#include "base/buf.h"
#include "json/jsonl.h"
#include "trace/lock.h"
#include "trace/rundir.h"

enum { IPW_RUNDIR_MAX_TORN = 8 };

struct ipw_rundir {
    char *path;
    struct ipw_lock lock;
    int spare_fd; /* given up for whole files, so that they can be written when sockets took the rest */
    int segment;                         /* the session of the run that is writing */
    const struct ipw_redactor *redactor; /* of what is written; NULL: as it is */
    bool no_sync;                        /* the files are not synced when they are closed */
    struct ipw_jsonl_appender *events, *power, *traces; /* power: once its header is written */
    struct ipw_jsonl_appender *warmup, *attempts;       /* NULL before their first line */
    struct ipw_buf events_text, power_text;             /* gathered lines */
    struct ipw_rundir_torn torn[IPW_RUNDIR_MAX_TORN];
    size_t n_torn;
    struct ipw_err first; /* of the first failure; code 0: none yet */
};

int ipw_rundir_begin_again(struct ipw_rundir *dir, struct ipw_err *err);
char *ipw_rundir_join(const char *folder, const char *name);           /* freed by the caller */
char *ipw_rundir_file(const struct ipw_rundir *dir, const char *name); /* the same */
/* Opens one of the folder's files for appending, unless it is open. */
int ipw_rundir_append_open(struct ipw_rundir *dir, struct ipw_jsonl_appender **out,
                           const char *name, struct ipw_err *err);

#endif
