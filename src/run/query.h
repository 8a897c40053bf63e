/* run/query.h: one query, from its start until its line is written.
 *
 * Owns the query's agent, its workspace, its turns, and its end.  struct ipw_query_ground has what
 * all queries of a run share: borrowed parts, and the callback for a query's end.  The lists of
 * queries belong to their owners: in flight (run/schedule.h), waiting for their energy
 * (run/finished_queries.h). */
#ifndef IPW_RUN_QUERY_H
#define IPW_RUN_QUERY_H

#include "run/ending.h"
#include "run/sinks.h"
#include "run/workspaces.h"
#include "script/agent.h"

struct ipw_query;

struct ipw_query_ground {
    struct ipw_loop *loop;
    struct ipw_llm *llm;
    const char *model;
    struct ipw_llm *sub; /* see struct ipw_host_model */
    const char *sub_model;
    const struct ipw_agent_options *agent;
    struct ipw_host_grants grants; /* of every query */
    struct ipw_host_trace trace;   /* but for the query's number */
    const struct ipw_agent_info *info;
    const struct ipw_agent_config *config;
    struct ipw_dataset *cases;
    struct ipw_workspaces *workspaces;
    struct ipw_run_limits *limits;
    struct ipw_sinks sinks;
    void (*over)(void *ud, struct ipw_query *q);
    void *ud;
};

struct ipw_query {
    const struct ipw_query_ground *ground;
    struct ipw_place place;
    struct ipw_query_sinks sinks;
    struct ipw_host host;
    struct ipw_agent *agent;
    char *workspace;
    int64_t start_ns, end_ns;
    enum ipw_query_stop stop;

    /* set at its end */
    bool completed, never_ran; /* never_ran: the agent was not started */
    char *outcome, *response, *error;
    struct ipw_score score;
    bool scored;
    int64_t lua_peak_bytes, lua_cpu_ns;

    struct ipw_query *prev, *next; /* in flight */
    struct ipw_query *next_over, *next_finished;
    bool agent_over;        /* its agent must be freed first */
    unsigned checks_at_end; /* number of checks by finished_queries at its end */
};

struct ipw_query *ipw_query_new(const struct ipw_query_ground *ground, size_t index,
                                struct ipw_place place);
/* A query that cannot run ends at once. */
void ipw_query_start(struct ipw_query *q);
/* The first reason counts. */
void ipw_query_cancel(struct ipw_query *q, enum ipw_query_stop how);
void ipw_query_free_agent(struct ipw_query *q); /* not from inside its callbacks */
void ipw_query_free(struct ipw_query *q);

#endif
