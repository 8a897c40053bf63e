/* script/worker/worker_main.h: the inside of a worker process: an agent whose calls go to the core.
 *
 * Messages to the core (script/worker/worker_host.h) replace the functions of ipw.core.* that touch
 * the world.  A function that waits suspends the task; any other blocks the process.  Modules and
 * scripts come from the core as text.  Functions that only compute stay as they are. */
#ifndef IPW_SCRIPT_WORKER_WORKER_MAIN_H
#define IPW_SCRIPT_WORKER_WORKER_MAIN_H

/* The whole life of a worker; `fd` is its socket to the core.  Returns an exit status. */
int ipw_worker_main(int fd);

#endif
