/* script/worker/worker_agent.h: an untrusted agent: the same as script/agent.h, in a worker process.
 *
 * For agent.c only.  What crosses is text: the query, what the command line says, and the result. */
#ifndef IPW_SCRIPT_WORKER_WORKER_AGENT_H
#define IPW_SCRIPT_WORKER_WORKER_AGENT_H

#include "script/agent.h"
#include "script/vm.h"

struct ipw_apart;

/* Fills name, about, max_turns of info as the file says, which is loaded in a worker. */
int ipw_agent_inspect_apart(struct ipw_agent_info *info, const char *const *paths,
                            struct ipw_err *err);

int ipw_apart_start(struct ipw_apart **out, const struct ipw_agent_info *info,
                    const struct ipw_agent_config *config, const struct ipw_case *query,
                    const struct ipw_vm_options *options, ipw_agent_fn done, void *ud,
                    struct ipw_err *err);
void ipw_apart_cancel(struct ipw_apart *apart, const char *reason);
void ipw_apart_free(struct ipw_apart *apart); /* NULL is fine */

#endif
