/* trace/rundir_priv.h: the inside of a run directory.  Shared by rundir.c (taking and releasing the
 * folder), rundir_write.c (its files) and rundir_reopen.c (a resumed run). */
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
    /* Closed to write whole files, so that they can be written even if sockets took all others. */
    int spare_fd;
    int segment;                         /* the session of the run that writes */
    const struct ipw_redactor *redactor; /* redacts written lines; NULL: unchanged */
    bool no_sync;                        /* do not sync the files when they are closed */
    /* power: NULL until its header is written. */
    struct ipw_jsonl_appender *events, *power, *traces;
    struct ipw_jsonl_appender *warmup, *attempts; /* NULL until their first line */
    struct ipw_buf events_text, power_text;       /* collected lines */
    struct ipw_rundir_torn torn[IPW_RUNDIR_MAX_TORN];
    size_t n_torn;
    struct ipw_err first; /* the first failure; code 0: none */
};

int ipw_rundir_begin_again(struct ipw_rundir *dir, struct ipw_err *err);
char *ipw_rundir_join(const char *folder, const char *name);           /* freed by the caller */
char *ipw_rundir_file(const struct ipw_rundir *dir, const char *name); /* freed by the caller */
/* Opens one of the folder's files for appending, unless it is open. */
int ipw_rundir_append_open(struct ipw_rundir *dir, struct ipw_jsonl_appender **out,
                           const char *name, struct ipw_err *err);

#endif
