/* io/attached.h: the user's own program, started in the user's place.
 *
 * It has our terminal, our environment (which holds no keys: base/keyring.h) with some variables on
 * top, the user's umask and no limits.  Its process group is its own; signals go to the whole
 * group, and processes that it leaves behind are ended with it (io/proc.h).  on_end is called once,
 * unless it was cancelled. */
#ifndef IPW_IO_ATTACHED_H
#define IPW_IO_ATTACHED_H

#include <stdint.h>

#include "base/err.h"
#include "io/loop.h"

struct ipw_attached_end {
    int exec_errno;             /* not 0: it was not started */
    int exit_code, term_signal; /* -1 and the signal, if one ended it */
    int64_t cpu_ns, peak_bytes; /* as in struct ipw_proc_result */
};

struct ipw_attached;
/* argv[0] without a slash is looked up in $PATH (IPW_ENOTFOUND).  `env`: NAME=value; or NULL. */
int ipw_attached_start(struct ipw_attached **out, struct ipw_loop *loop, const char *const *argv,
                       const char *const *env,
                       void (*on_end)(void *ud, const struct ipw_attached_end *end), void *ud,
                       struct ipw_err *err);
void ipw_attached_signal(struct ipw_attached *attached, int signum);
void ipw_attached_cancel(struct ipw_attached *attached); /* TERM, KILL after 2 s; no callback */

/* The path of a program in $PATH, malloc'ed; NULL: there is none. */
char *ipw_attached_find(const char *name);

#endif
