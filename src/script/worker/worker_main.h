/* script/worker/worker_main.h: the inside of a worker process: an agent whose calls leave it.
 *
 * The functions of ipw.core.* that touch the world are replaced by messages to the core
 * (script/worker/worker_host.h), which runs them and answers; those that wait suspend the task, the
 * others block the process.  Modules and scripts come as text from there too.  A function that only
 * computes stays as it is. */
#ifndef IPW_SCRIPT_WORKER_WORKER_MAIN_H
#define IPW_SCRIPT_WORKER_WORKER_MAIN_H

/* The whole life of a worker; the descriptor is its socket to the core.  An exit status. */
int ipw_worker_main(int fd);

#endif
