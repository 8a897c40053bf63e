/* script/stuck_watch.h: a thread that detects Lua code that does not return.
 *
 * The budgets stop a script at its next instruction, but a script that is stuck inside a C function
 * has none.  The watch reads now and then how often the loop's thread has entered and left Lua,
 * which costs that thread nothing.  After `warn_ns` in one slice it reports which query is stuck
 * and where; after `give_up_ns` it calls on_give_up.  Time in which the whole process stood still
 * does not count.  Both callbacks run in the watch's thread while the other thread is stuck: they
 * can write and end the process, but must not touch Lua or the loop. */
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
