#include "trace/schema.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "json/write.h"
#include "trace/channel_stats.h"
#include "trace/schema_priv.h"

static void kcount(struct ipw_jw *w, const char *key, int64_t n)
{
    if (n < 0) {
        ipw_jw_knull(w, key);
    } else {
        ipw_jw_kint(w, key, n);
    }
}

static void kobject(struct ipw_jw *w, const char *key, const char *json)
{
    if (!json) json = "{}";
    ipw_jw_kraw(w, key, json, strlen(json));
}

static double since(const struct ipw_query_trace *q, int64_t t_ns)
{
    return ipw_ns_to_s(t_ns - q->start_ns);
}

static void put_span(struct ipw_jw *w, const struct ipw_query_trace *q, const struct ipw_span *span)
{
    ipw_jw_obj(w);
    kcount(w, "attempt", span->attempt > 0 ? span->attempt : -1);
    ipw_jw_knum(w, "end_s", since(q, span->end_ns));
    ipw_schema_put_energy(w, "energy", q, span->energy, span->devices, NULL, NULL);
    ipw_jw_kstr(w, "error", span->error);
    kcount(w, "id", span->id > 0 ? span->id : -1);
    ipw_jw_kstr(w, "kind", ipw_span_kind_name(span->kind));
    ipw_jw_kstr(w, "name", span->name);
    ipw_jw_kstr(w, "outcome", span->outcome);
    kcount(w, "result_bytes", span->result_bytes);
    ipw_jw_knum(w, "start_s", since(q, span->start_ns));
    ipw_jw_obj_end(w);
}

static bool shared(const struct ipw_figure *energy)
{
    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) {
        if (energy[d].known && energy[d].provenance == IPW_PROV_DISTRIBUTED) return true;
    }
    return false;
}

static bool has_parallel_tools(const struct ipw_turn *turn)
{
    int64_t busy_until = INT64_MIN;

    for (size_t k = 0; k < turn->n_spans; k++) { /* in order of their starts */
        const struct ipw_span *span = &turn->spans[k];

        if (span->kind != IPW_SPAN_TOOL) continue;
        if (span->start_ns < busy_until) return true;
        if (span->end_ns > busy_until) busy_until = span->end_ns;
    }
    return false;
}

/* Upstream's map from tool name to seconds, in which a repeated name becomes name#2, name#3. */
struct latency {
    char *key; /* NULL: a free place */
    double s;
    int again; /* the number that the next call of this name asks for first */
};

static int by_key(const void *a, const void *b)
{
    return strcmp(((const struct latency *)a)->key, ((const struct latency *)b)->key);
}

/* Where the key is or belongs in a table of a power of two, which has free places: a turn may have
 * thousands of calls of one name. */
static struct latency *place_of(struct latency *all, size_t cap, const char *key)
{
    size_t at = 5381;

    for (const char *c = key; *c; c++) at = at * 33 + (unsigned char)*c;
    for (at &= cap - 1; all[at].key && strcmp(all[at].key, key) != 0;) at = (at + 1) & (cap - 1);
    return &all[at];
}

static void add_latency(struct latency *all, size_t cap, const struct ipw_span *span)
{
    const char *name = span->name ? span->name : "";
    struct latency *first = place_of(all, cap, name), *place = first;
    char *key = place->key ? NULL : ipw_strdup(name);

    while (!key) {
        key = ipw_asprintf("%s#%d", name, first->again++);
        place = place_of(all, cap, key);
        if (!place->key) break;
        free(key);
        key = NULL;
    }
    *place = (struct latency){key, ipw_ns_to_s(span->end_ns - span->start_ns), 2};
}

static void put_tool_latencies(struct ipw_jw *w, const struct ipw_turn *turn)
{
    struct latency *all;
    size_t n = 0, cap = 8;

    while (cap < 2 * turn->n_spans) cap *= 2;
    all = ipw_calloc(cap, sizeof *all);
    for (size_t k = 0; k < turn->n_spans; k++) {
        if (turn->spans[k].kind == IPW_SPAN_TOOL) add_latency(all, cap, &turn->spans[k]);
    }
    for (size_t i = 0; i < cap; i++) {
        if (all[i].key) all[n++] = all[i];
    }
    if (n) qsort(all, n, sizeof *all, by_key);
    ipw_jw_key(w, "tool_latencies_s");
    ipw_jw_obj(w);
    for (size_t i = 0; i < n; i++) {
        ipw_jw_key_any(w, all[i].key, strlen(all[i].key));
        ipw_jw_num(w, all[i].s);
        free(all[i].key);
    }
    ipw_jw_obj_end(w);
    free(all);
}

static size_t put_tools_called(struct ipw_jw *w, const struct ipw_turn *turn, bool write)
{
    size_t n = 0;

    if (write) {
        ipw_jw_key(w, "tools_called");
        ipw_jw_arr(w);
    }
    for (size_t k = 0; k < turn->n_spans; k++) {
        if (turn->spans[k].kind != IPW_SPAN_TOOL) continue;
        if (write) ipw_jw_str(w, turn->spans[k].name ? turn->spans[k].name : "");
        n++;
    }
    if (write) ipw_jw_arr_end(w);
    return n;
}

static void put_turn(struct ipw_jw *w, const struct ipw_query_trace *q, const struct ipw_turn *turn)
{
    ipw_jw_obj(w);
    ipw_jw_knum(w, "agent_s", turn->agent_s);
    ipw_jw_kint(w, "attempts", turn->attempts);
    kcount(w, "cached_tokens", turn->cached_tokens);
    ipw_jw_knum(w, "chunk_gap_p50_s", turn->gap_p50_s);
    ipw_jw_knum(w, "chunk_gap_p90_s", turn->gap_p90_s);
    ipw_jw_knum(w, "chunk_gap_p99_s", turn->gap_p99_s);
    ipw_jw_knum(w, "connect_s", turn->connect_s);
    ipw_jw_knum(w, "cost_usd", turn->cost_usd);
    ipw_schema_kjoules(w, "cpu_energy_joules", &turn->energy[IPW_DOMAIN_CPU]);
    ipw_jw_knum(w, "cpu_power_avg_watts", turn->power_mean_w[IPW_DOMAIN_CPU]);
    ipw_jw_knum(w, "decode_s", turn->decode_s);
    ipw_schema_kjoules(w, "dram_energy_joules", &turn->energy[IPW_DOMAIN_DRAM]);
    ipw_jw_knum(w, "end_s", since(q, turn->end_ns));
    ipw_jw_kstr(w, "endpoint", turn->endpoint);
    ipw_schema_put_energy(w, "energy", q, turn->energy, turn->devices, turn->power_mean_w,
                          turn->power_peak_w);
    ipw_jw_kstr(w, "error", turn->error);
    ipw_jw_kstr(w, "finish_reason", turn->finish_reason);
    ipw_schema_kjoules(w, "gpu_energy_joules", &turn->energy[IPW_DOMAIN_GPU]);
    ipw_jw_knum(w, "gpu_power_avg_watts", turn->power_mean_w[IPW_DOMAIN_GPU]);
    ipw_jw_kbool(w, "has_parallel_tools", has_parallel_tools(turn));
    ipw_jw_knum(w, "headers_s", turn->headers_s);
    ipw_jw_knum(w, "inference_s", turn->inference_s);
    kcount(w, "input_tokens", turn->input_tokens);
    ipw_jw_knum(w, "itl_mean_s", turn->itl_mean_s);
    ipw_jw_knum(w, "latency_close_s", turn->latency_close_s);
    ipw_jw_knum(w, "latency_content_s", turn->latency_content_s);
    ipw_jw_kstr(w, "model", turn->model);
    kcount(w, "output_tokens", turn->output_tokens);
    ipw_jw_knum(w, "peak_watts", turn->power_peak_w[IPW_DOMAIN_GPU]);
    kcount(w, "reasoning_tokens", turn->reasoning_tokens);
    ipw_jw_knum(w, "retry_wait_s", turn->retry_wait_s);
    ipw_jw_knum(w, "server_decode_s", turn->server_decode_s);
    ipw_jw_knum(w, "server_prefill_s", turn->server_prefill_s);
    ipw_jw_knum(w, "server_queue_s", turn->server_queue_s);
    ipw_jw_kbool(w, "shared_device_warning", shared(turn->energy));
    ipw_jw_key(w, "spans");
    ipw_jw_arr(w);
    for (size_t k = 0; k < turn->n_spans; k++) put_span(w, q, &turn->spans[k]);
    ipw_jw_arr_end(w);
    ipw_jw_knum(w, "start_s", since(q, turn->start_ns));
    ipw_jw_kbool(w, "tokens_estimated", turn->tokens_estimated);
    put_tool_latencies(w, turn);
    kcount(w, "tool_result_tokens", put_tools_called(w, turn, false) ? -1 : 0);
    put_tools_called(w, turn, true);
    ipw_jw_knum(w, "ttfo_s", turn->ttfo_s);
    ipw_jw_knum(w, "ttft_s", turn->ttft_s);
    ipw_jw_knum(w, "ttst_s", turn->ttst_s);
    ipw_jw_kint(w, "turn_index", turn->index);
    ipw_jw_knum(w, "wall_clock_s", ipw_ns_to_s(turn->end_ns - turn->start_ns));
    ipw_jw_obj_end(w);
}

static void put_resolved(struct ipw_jw *w, const char *key, int resolved, bool as_score)
{
    if (resolved < 0) {
        ipw_jw_knull(w, key);
    } else if (as_score) {
        ipw_jw_knum(w, key, resolved ? 1 : 0);
    } else {
        ipw_jw_kbool(w, key, resolved != 0);
    }
}

static void put_totals(struct ipw_jw *w, const struct ipw_query_trace *q,
                       const struct ipw_query_record *r)
{
    kcount(w, "tool_call_count", (int64_t)q->n_tool_calls);
    ipw_jw_knum(w, "total_cost_usd", r->cost_usd);
    kcount(w, "total_input_tokens", q->input_tokens);
    kcount(w, "total_output_tokens", q->output_tokens);
    /* There is no judge window of its own: the task is the query. */
    ipw_schema_kjoules(w, "total_task_cpu_energy_joules", &q->energy[IPW_DOMAIN_CPU]);
    ipw_schema_kjoules(w, "total_task_gpu_energy_joules", &q->energy[IPW_DOMAIN_GPU]);
    kcount(w, "total_tokens",
           q->input_tokens < 0 || q->output_tokens < 0 ? -1 : q->input_tokens + q->output_tokens);
    kcount(w, "total_tool_calls", (int64_t)q->n_tool_calls);
    ipw_jw_knum(w, "total_wall_clock_s", ipw_ns_to_s(q->end_ns - q->start_ns));
}

static int64_t retries(const struct ipw_query_trace *q)
{
    int64_t n = 0;

    for (size_t i = 0; i < q->n_turns; i++) {
        if (q->turns[i].attempts > 1) n += q->turns[i].attempts - 1;
    }
    return n;
}

static bool measurable(const struct ipw_query_trace *q)
{
    unsigned domains = ipw_query_lm_domains(q);

    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) {
        if ((domains >> d & 1) && q->energy[d].known) return true;
    }
    return false;
}

static void put_identity(struct ipw_jw *w, const struct ipw_query_trace *q,
                         const struct ipw_query_record *r)
{
    ipw_jw_kstr(w, "model", r->model);
    ipw_jw_kint(w, "n_malformed", r->n_malformed);
    ipw_jw_kint(w, "n_retries", retries(q));
    ipw_jw_kint(w, "num_turns", (int64_t)q->n_turns);
    ipw_jw_kstr(w, "outcome", q->outcome);
    ipw_stats_put_power(w, q);
    ipw_schema_kjoules(w, "query_cpu_energy_joules", &q->energy[IPW_DOMAIN_CPU]);
    ipw_jw_knum(w, "query_cpu_power_avg_watts", q->power_mean_w[IPW_DOMAIN_CPU]);
    ipw_schema_kjoules(w, "query_gpu_energy_joules", &q->energy[IPW_DOMAIN_GPU]);
    ipw_jw_knum(w, "query_gpu_power_avg_watts", q->power_mean_w[IPW_DOMAIN_GPU]);
    ipw_jw_kstr(w, "query_id", q->id ? q->id : "");
    ipw_jw_kint(w, "query_index", q->index);
    ipw_schema_put_mbu(w, q);
    ipw_jw_kstr(w, "query_text", r->query_text ? r->query_text : "");
    ipw_schema_put_remote_domains(w, q);
    ipw_jw_kstr(w, "response_text", r->response_text ? r->response_text : "");
}

void ipw_schema_write_query(struct ipw_buf *out, const struct ipw_query_trace *q,
                            const struct ipw_query_record *r, const struct ipw_anchor *anchor)
{
    const struct ipw_figure *gpu = &q->energy[IPW_DOMAIN_GPU];
    double wall_s = ipw_ns_to_s(q->end_ns - q->start_ns);
    char iso[40];
    struct ipw_jw w;

    ipw_jw_init(&w, out);
    ipw_jw_obj(&w);
    ipw_schema_put_accounts(&w, q);
    kobject(&w, "accuracy_metadata", NULL);
    put_resolved(&w, "accuracy_score", r->is_resolved, true);
    ipw_jw_knum(&w, "agent_before_s", q->agent_before_s);
    ipw_jw_kstr(&w, "answer", r->answer);
    ipw_jw_kstr(&w, "answer_source", r->answer_source);
    ipw_jw_kbool(&w, "completed", q->completed);
    ipw_jw_kint(&w, "end_ns", q->end_ns);
    ipw_schema_put_query_energy(&w, q);
    ipw_schema_put_energy(&w, "energy_before", q, q->energy_before, q->device_before, NULL, NULL);
    ipw_jw_knum(&w, "energy_per_output_token_joules",
                gpu->known && gpu->j > 0 && q->output_tokens > 0 ? gpu->j / (double)q->output_tokens
                                                                 : NAN);
    ipw_jw_kint(&w, "epoch", r->epoch);
    ipw_jw_kstr(&w, "error", q->error);
    ipw_stats_put_utilization(&w, q);
    put_resolved(&w, "is_resolved", r->is_resolved, false);
    ipw_jw_knull(&w, "judge_cpu_energy_joules");
    ipw_jw_knull(&w, "judge_cpu_power_avg_watts");
    ipw_jw_knull(&w, "judge_gpu_energy_joules");
    ipw_jw_knull(&w, "judge_gpu_power_avg_watts");
    ipw_jw_knull(&w, "judge_wall_clock_s");
    ipw_jw_kbool(&w, "lm_energy_measurable", measurable(q));
    ipw_jw_knum(&w, "lua_cpu_s", r->lua_cpu_ns < 0 ? NAN : ipw_ns_to_s(r->lua_cpu_ns));
    kcount(&w, "lua_peak_bytes", r->lua_peak_bytes);
    ipw_stats_put_memory(&w, q);
    kobject(&w, "metadata", r->metadata);
    ipw_schema_put_metrics(&w, q);
    put_identity(&w, q, r);
    ipw_jw_kint(&w, "schema_version", IPW_SCHEMA_VERSION);
    kobject(&w, "score_metadata", r->score_metadata);
    ipw_jw_kint(&w, "segment", r->segment);
    ipw_jw_kbool(&w, "shared_device_warning", shared(q->energy));
    ipw_jw_key(&w, "spans_before");
    ipw_jw_arr(&w);
    for (size_t k = 0; k < q->before.n_spans; k++) put_span(&w, q, &q->before.spans[k]);
    ipw_jw_arr_end(&w);
    ipw_jw_kint(&w, "start_ns", q->start_ns);
    ipw_jw_kstr(&w, "started_at",
                anchor ? ipw_clock_iso8601(iso, sizeof iso, ipw_anchor_wall_ns(anchor, q->start_ns))
                       : NULL);
    if (r->superseded) ipw_jw_kstr(&w, "superseded", r->superseded);
    ipw_stats_put_temperature(&w, q);
    ipw_jw_knum(&w, "throughput_tokens_per_sec",
                q->output_tokens > 0 && wall_s > 0 ? (double)q->output_tokens / wall_s : NAN);
    ipw_jw_kbool(&w, "timed_out", q->timed_out);
    put_totals(&w, q, r);
    ipw_jw_key(&w, "turns");
    ipw_jw_arr(&w);
    for (size_t i = 0; i < q->n_turns; i++) put_turn(&w, q, &q->turns[i]);
    ipw_jw_arr_end(&w);
    ipw_jw_kstr(&w, "unscorable_reason", r->unscorable_reason);
    ipw_jw_kstr(&w, "workload_type", r->workload_type ? r->workload_type : "agentic");
    ipw_jw_obj_end(&w);
}
