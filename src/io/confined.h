/* io/confined.h: a confined child process of this binary, for code that the user does not trust.
 *
 * The parent starts it with ipw_confined_start(): `ipw-agent __lua` through the spawn helper
 * (io/proc.h).  The child has limits on memory, CPU time and descriptors, can gain no privileges,
 * dies with the parent, and has one socket to talk over.  on_exit is called once when it has ended,
 * after its last message, unless the parent killed it.
 *
 * The child calls ipw_confined_enter() when everything it needs is open.  From then on it can
 * compute, use its memory and talk over its descriptors.  It cannot open files or sockets, start
 * processes, or read its environment. */
#ifndef IPW_IO_CONFINED_H
#define IPW_IO_CONFINED_H

#include "io/message_channel.h"

enum { IPW_CONFINED_FD = 0 }; /* the child's end of the socket */

struct ipw_confined;

struct ipw_confined_options {
    size_t memory_bytes; /* limit of the address space; 0: not limited */
    int64_t cpu_s;
    size_t message_max_bytes;
    void (*on_message)(void *ud, const char *bytes, size_t n);
    /* term_signal 0: it exited.  `cpu_ns` -1: unknown. */
    void (*on_exit)(void *ud, int exit_code, int term_signal, int64_t cpu_ns);
    void *ud;
};

int ipw_confined_start(struct ipw_confined **out, struct ipw_loop *loop,
                       const struct ipw_confined_options *options, struct ipw_err *err);
void ipw_confined_send(struct ipw_confined *worker, const char *bytes, size_t n);
/* Ends the child at once; no callback follows.  The loop reaps it later.  NULL is fine. */
void ipw_confined_kill(struct ipw_confined *worker);

/* Call it in the child, once everything that it needs is open. */
int ipw_confined_enter(struct ipw_err *err);

#endif
