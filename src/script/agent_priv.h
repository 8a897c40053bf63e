/* script/agent_priv.h: an untrusted agent: script/agent.h in a worker process.
 *
 * agent.c calls these functions of agent_worker.c.  Only text goes to the worker and back: the
 * query, the options of the command line, and the result. */
#ifndef IPW_SCRIPT_AGENT_PRIV_H
#define IPW_SCRIPT_AGENT_PRIV_H

#include "script/agent.h"
#include "script/vm.h"

struct ipw_agent_worker;

/* Loads the file in a worker and fills name, about, max_turns of info. */
int ipw_agent_worker_inspect(struct ipw_agent_info *info, const char *const *paths,
                             struct ipw_err *err);

int ipw_agent_worker_start(struct ipw_agent_worker **out, const struct ipw_agent_info *info,
                           const struct ipw_agent_config *config, const struct ipw_case *query,
                           const struct ipw_vm_options *options, ipw_agent_fn done, void *ud,
                           struct ipw_err *err);
void ipw_agent_worker_cancel(struct ipw_agent_worker *worker, const char *reason);
void ipw_agent_worker_free(struct ipw_agent_worker *worker); /* NULL is fine */

#endif
