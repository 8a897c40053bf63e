/* run/follower.h: the process beside a run that lets others watch it: --listen, --watch and --otlp.
 *
 * Owns one child: this program's own lua/ipw/cli/follow.lua, which reads the run's files as they
 * grow.  So a page, a collector or their clients cannot slow the run, fill its memory or end it.
 * The child is started before the run begins, so that a wrong address ends the command at once; it
 * is told of the run when its folder is there, and notices the run's end by itself, also of a
 * killed run.  Each function takes NULL for a run that nobody asked to watch. */
#ifndef IPW_RUN_FOLLOWER_H
#define IPW_RUN_FOLLOWER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/option.h"

struct ipw_watch_options {
    const char *listen; /* "127.0.0.1:9441", "9441"; NULL: no page of metrics */
    bool watch;         /* a page for a browser, at the address of `listen`, else of its own */
    const char *otlp;   /* a collector's URL; "": by the environment; NULL: none */
};
extern const struct ipw_opt ipw_watch_option_rows[];

struct ipw_follower;
/* *out NULL: nothing is asked for.  `quiet`: an address is only said if the port was 0.
 * IPW_EINVAL: an address that is none. */
int ipw_follower_open(struct ipw_follower **out, const struct ipw_watch_options *options,
                      bool quiet, struct ipw_err *err);

struct ipw_followed_run {
    const char *folder, *agent, *model, *dataset;
    int session;    /* from 0 */
    size_t planned; /* queries, with those of earlier sessions */
};
/* The run has its folder, which is locked. */
void ipw_follower_begin(struct ipw_follower *f, const struct ipw_followed_run *run);
/* CPU time that the child has used: part of the run's own overhead. */
int64_t ipw_follower_cpu_ns(const struct ipw_follower *f);
/* The run's folder was closed: waits for the last figures to be seen and the rest to be sent, some
 * seconds at the most. */
void ipw_follower_close(struct ipw_follower *f);

#endif
