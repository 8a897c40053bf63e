/* script/stuck_watch.h: a thread that notices Lua code that does not come back.
 *
 * The budgets stop a script at its next instruction; a script that is stuck inside a C function
 * has none.  The watch looks at the loop's thread now and then (that costs it nothing: it counts its
 * way into and out of Lua), says after `warn_ns` in one slice who is stuck and where, and calls
 * on_give_up after `give_up_ns`.  Time during which the whole process stood still does not count.
 * Both callbacks run in the watch's thread while the other one is still stuck: they may write
 * and end the process, and must not touch Lua or the loop. */
#ifndef IPW_SCRIPT_STUCK_WATCH_H
#define IPW_SCRIPT_STUCK_WATCH_H

#include <stdint.h>

#include "base/err.h"

struct ipw_stuck_watch;

struct ipw_stuck_watch_stall {
    const char *who;   /* the name of the state's host, or "" */
    const char *where; /* "file.lua:12", or "" */
    double seconds;
};

struct ipw_stuck_watch_options {
    int64_t warn_ns, give_up_ns;
    void (*on_warn)(void *ud, const struct ipw_stuck_watch_stall *stall);
    void (*on_give_up)(void *ud, const struct ipw_stuck_watch_stall *stall);
    void *ud;
};

/* Watches the calling thread, which must be the one that runs Lua. */
int ipw_stuck_watch_start(struct ipw_stuck_watch **out,
                          const struct ipw_stuck_watch_options *options, struct ipw_err *err);
void ipw_stuck_watch_stop(struct ipw_stuck_watch *watch); /* NULL is fine */

#endif
