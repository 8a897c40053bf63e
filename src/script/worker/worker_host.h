/* script/worker/worker_host.h: an agent in a worker process, seen from the core.
 *
 * The worker (script/worker/worker_main.h) runs the script; each call that touches the world comes here as a
 * message and is run by the same C functions, on the same host, as if the script had made it in
 * process: a Lua state of the core's own, in which nothing of the script's runs, makes it as a task.
 * on_end is called once, when the process has ended, with the JSON text of what it said last, or
 * with what became of it; not after ipw_worker_host_free(). */
#ifndef IPW_SCRIPT_WORKER_WORKER_HOST_H
#define IPW_SCRIPT_WORKER_WORKER_HOST_H

#include "base/buf.h"
#include "script/host.h"
#include "script/vm.h"

struct ipw_worker_host;

struct ipw_worker_host_end {
    const char *said; /* JSON, of the worker; or NULL */
    size_t said_n;
    bool cpu;          /* it used up its CPU time */
    const char *error; /* when it said nothing: one line */
    int64_t cpu_ns;    /* of the process; -1: not known */
};

struct ipw_worker_host_options {
    const struct ipw_vm_options *vm; /* host, script_dir, paths, memory_bytes */
    const char *path;                /* the script's, which the worker may read */
    const char *const *tools;        /* that the command line names, ended by NULL; or NULL */
    const char *start;               /* JSON text: the message that it starts with */
    size_t start_n;
    void (*on_end)(void *ud, const struct ipw_worker_host_end *end);
    void *ud;
};

int ipw_worker_host_start(struct ipw_worker_host **out,
                          const struct ipw_worker_host_options *options, struct ipw_err *err);
/* Ends what is in flight and tells the script, which has two seconds to come to an end. */
void ipw_worker_host_cancel(struct ipw_worker_host *ward, const char *reason);
void ipw_worker_host_free(struct ipw_worker_host *ward); /* NULL is fine; not from inside on_end */

#endif
