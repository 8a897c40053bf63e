/* run/query_state.h: one query in flight, shared by query.c and write_queries.c.
 *
 * Owned by the run's lists: active while its agent runs, unbooked until its energy is known, freed
 * when its trace line is written. */
#ifndef IPW_RUN_QUERY_STATE_H
#define IPW_RUN_QUERY_STATE_H

#include "run/run.h"

struct ipw_query {
    struct ipw_run *run;
    size_t index; /* its number in the run */
    struct ipw_place place;
    const struct ipw_case *c;
    struct ipw_host host;
    struct ipw_host_workload *seat; /* of a workload replay; the origin's, or NULL */
    struct ipw_agent *agent;
    struct ipw_turn_builder *builder;
    struct ipw_query_limits limits;
    char *workspace;
    int64_t start_ns, end_ns;
    unsigned looks_at_end;     /* run->sample_looks by then */
    bool asked;                /* the model, or waits to be let */
    const char *cancel_reason; /* "interrupted", the name of a limit, ...; or NULL */

    /* once over */
    bool completed, never_ran; /* never_ran: the agent was not started */
    char *outcome, *response, *error;
    struct ipw_score score;
    bool scored;
    int n_malformed;
    int64_t last_prompt_tokens; /* of the last reply; 0: none yet */
    int64_t lua_peak_bytes, lua_cpu_ns;

    struct ipw_query *prev, *next; /* in active */
    struct ipw_query *next_over, *next_unbooked;
    bool agent_over;
};

#endif
