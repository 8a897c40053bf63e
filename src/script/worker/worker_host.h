/* script/worker/worker_host.h: an agent in a worker process, seen from the core.
 *
 * The worker (script/worker/worker_main.h) runs the script.  Each call that touches the world comes
 * here as a message.  A separate Lua state, which runs no script code, makes the call as a task,
 * with the same C functions and the same host as a script in the core's process.  on_end is called
 * once, after the process has ended, with the worker's last JSON text, or with the reason of its
 * end.  It is not called after ipw_worker_host_free(). */
#ifndef IPW_SCRIPT_WORKER_WORKER_HOST_H
#define IPW_SCRIPT_WORKER_WORKER_HOST_H

#include "base/buf.h"
#include "script/host.h"
#include "script/vm.h"

struct ipw_worker_host;

struct ipw_worker_host_end {
    const char *said; /* the worker's last JSON text; or NULL */
    size_t said_n;
    bool cpu;          /* it used up its CPU time */
    const char *error; /* if it sent none: one line */
    int64_t cpu_ns;    /* of the process; -1: not known */
};

struct ipw_worker_host_options {
    const struct ipw_vm_options *vm; /* host, script_dir, paths, memory_bytes */
    const char *path;                /* of the script, which the worker can read */
    const char *const *tools;        /* of the command line, ended by NULL; or NULL */
    const char *start;               /* JSON text: its first message */
    size_t start_n;
    void (*on_end)(void *ud, const struct ipw_worker_host_end *end);
    void *ud;
};

int ipw_worker_host_start(struct ipw_worker_host **out,
                          const struct ipw_worker_host_options *options, struct ipw_err *err);
/* Ends the operations in flight and tells the script, which has two seconds to end. */
void ipw_worker_host_cancel(struct ipw_worker_host *host, const char *reason);
void ipw_worker_host_free(struct ipw_worker_host *host); /* NULL is fine; not from inside on_end */

#endif
