/* io/worker.h: a child process of this binary that runs untrusted code.
 *
 * The parent starts one with ipw_worker_start(): `ipw-agent __lua` through the spawn helper
 * (io/proc.h).  Memory, CPU time and descriptors are limited.  It cannot gain privileges, it dies
 * with its parent, and a socket is its only connection.  on_exit is called once when it has ended
 * (after its last message), unless it was killed before.
 *
 * In the child, ipw_worker_confine() applies the seccomp filter.  From then on the child may
 * compute, use its memory and talk over its open descriptors.  It can open no file and no socket,
 * start no process and see no environment. */
#ifndef IPW_IO_WORKER_H
#define IPW_IO_WORKER_H

#include "io/message_channel.h"

enum { IPW_WORKER_FD = 0 }; /* the child's end of the socket */

struct ipw_worker;

struct ipw_worker_options {
    size_t memory_bytes; /* address space; 0: not limited */
    int64_t cpu_s;
    size_t message_max_bytes;
    void (*on_message)(void *ud, const char *bytes, size_t n);
    /* term_signal 0: it exited.  `cpu_ns` -1: unknown. */
    void (*on_exit)(void *ud, int exit_code, int term_signal, int64_t cpu_ns);
    void *ud;
};

int ipw_worker_start(struct ipw_worker **out, struct ipw_loop *loop,
                     const struct ipw_worker_options *options, struct ipw_err *err);
void ipw_worker_send(struct ipw_worker *worker, const char *bytes, size_t n);
/* Ends the worker at once; no callback follows.  The loop still reaps it.  NULL is fine. */
void ipw_worker_kill(struct ipw_worker *worker);

/* Call it in the child, once everything that it needs is open. */
int ipw_worker_confine(struct ipw_err *err);

#endif
