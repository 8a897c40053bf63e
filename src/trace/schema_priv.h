/* trace/schema_priv.h: the energy part of a trace line, written and read (schema_energy.c).
 * Internal to schema.c and schema_read.c. */
#ifndef IPW_TRACE_SCHEMA_PRIV_H
#define IPW_TRACE_SCHEMA_PRIV_H

#include "trace/schema.h"
#include "trace/spec.h"

/* Members of a line that are computed when it is written. */
struct ipw_made_span {
    double start_s, end_s;
};
struct ipw_made_turn {
    double start_s, end_s, wall_clock_s;
    bool has_parallel_tools, shared_device_warning;
    int64_t tool_result_tokens;
};
struct ipw_made_query {
    double accuracy_score, energy_per_output_token_joules, lua_cpu_s, query_mbu_avg_pct,
        query_mbu_max_pct, throughput_tokens_per_sec, total_task_cpu_energy_joules,
        total_task_gpu_energy_joules, total_wall_clock_s;
    bool lm_energy_measurable, shared_device_warning;
    int schema_version;
    int64_t n_retries, total_tokens;
    const char *query_id, *query_text, *response_text, *started_at, *workload_type;
};

/* Domain to energy value; domain to account or null; one channel's metric. */
extern const struct ipw_spec ipw_spec_energy[], ipw_spec_accounts[], ipw_spec_metric[];
extern const struct ipw_spec ipw_spec_part[];
/* The same of a part of the query: a domain is absent if the query tells its reason. */
extern const struct ipw_spec ipw_spec_part_energy[];
extern const struct ipw_spec ipw_spec_turn[], ipw_spec_span[];

/* The energy of a part of the query.  `whole`: that of the turn, or of the query, around it; what
 * is equal there is left out.  `devices` (energy values of q->devices), `mean_w` and `peak_w` may
 * be NULL. */
void ipw_schema_put_energy(struct ipw_jw *w, const char *key, const struct ipw_query_trace *q,
                           const struct ipw_figure *energy, const struct ipw_figure *whole,
                           const struct ipw_figure *devices, const double *mean_w,
                           const double *peak_w);
/* Rows of the query's table; of[0] is the trace.  "energy": with mean_w and sources. */
void ipw_schema_put_query_energy(struct ipw_jw *w, const struct ipw_spec *s, const void *const *of);
void ipw_schema_put_parts(struct ipw_jw *w, const struct ipw_spec *s, const void *const *of);
void ipw_schema_put_metrics(struct ipw_jw *w, const struct ipw_spec *s, const void *const *of);
/* "remote_domains": only for a model on another machine. */
void ipw_schema_put_remote_domains(struct ipw_jw *w, const struct ipw_spec *s,
                                   const void *const *of);

/* The JSON text of an object or array, owned by the caller; NULL if empty or absent. */
char *ipw_schema_text(const struct ipw_json *node);
/* `mean_w` and `peak_w` may be NULL.  `whole`: the energy of the turn, or of the query, that it is
 * part of, which was read before; NULL: it is the query's own. */
void ipw_schema_read_energy(struct ipw_figure *energy, double *mean_w, double *peak_w,
                            const struct ipw_query_loaded *l, const struct ipw_figure *whole,
                            const struct ipw_json *object);
/* Reads the trace's devices from its query's energy. */
void ipw_schema_read_device_table(struct ipw_query_trace *q, const struct ipw_json *energy);
/* Reads the devices' values in an energy object, of which `energy` was read; owned by the caller;
 * NULL: the trace has no devices. */
struct ipw_figure *ipw_schema_read_devices(const struct ipw_query_loaded *l,
                                           const struct ipw_json *object,
                                           const struct ipw_figure *energy);
void ipw_schema_read_remote_domains(struct ipw_query_trace *q, const struct ipw_json *line);
void ipw_schema_read_parts(struct ipw_query_trace *q, const struct ipw_json *line);
/* Reads accounts and metrics of our own line, and the sources of its energy; absent values are
 * unknown. */
void ipw_schema_read_account(struct ipw_query_trace *q, const struct ipw_json *energy,
                             const struct ipw_json *line);

#endif
