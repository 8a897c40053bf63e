/* The line of a query, with its turns and spans: the tables, and the members that need their own
 * code. */
#include "trace/schema.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "trace/channel_stats.h"
#include "trace/schema_priv.h"
#include "trace/spec_rows.h"

/* The structs that the tables refer to: the trace, its details (or turn, or span), and the values
 * computed for the line (schema_priv.h). */
enum { QUERY, DETAILS, TURN = DETAILS, SPAN = DETAILS, MADE, ENERGY, JUDGE = ENERGY };

static double since(const struct ipw_query_trace *q, int64_t t_ns)
{
    return ipw_ns_to_s(t_ns - q->start_ns);
}

/* ---- a span ---- */

static void put_span_energy(struct ipw_jw *w, const struct ipw_spec *s, const void *const *of)
{
    const struct ipw_span *span = of[SPAN];

    ipw_schema_put_energy(w, s->key, of[QUERY], span->energy, of[ENERGY], NULL, NULL, NULL);
}

/* clang-format off */
#define OF_SPAN(member, kinds) HELD(#member, kinds, SPAN, struct ipw_span, member)
const struct ipw_spec ipw_spec_span[] = {
    OF_SPAN(argument_bytes, C | OPT),
    OF_SPAN(attempt, CU),
    OF_SPAN(child_cpu_s, S | OPT),
    OF_SPAN(child_peak_bytes, C | OPT),
    {NAME("child_provenance"), .kind = T | OPT, .words = ipw_child_provenance_words,
     .hold = IPW_HOLD_TEXT, .base = SPAN, .at = offsetof(struct ipw_span, child_provenance)},
    OF_SPAN(cut_bytes, C | OPT),
    HELD("end_s", N, MADE, struct ipw_made_span, end_s),
    PUT_OF("energy", O, put_span_energy, ipw_spec_part_energy),
    OF_SPAN(error, TU | PRIVATE),
    OF_SPAN(id, CU),
    OF_SPAN(inside, C | OPT),
    {NAME("kind"), .kind = T, .words = ipw_span_kind_words, .hold = IPW_HOLD_WORD, .base = SPAN,
     .at = offsetof(struct ipw_span, kind)},
    OF_SPAN(name, TU | OPEN),
    OF_SPAN(outcome, TU | OPEN),
    OF_SPAN(result_bytes, CU),
    HELD("start_s", N, MADE, struct ipw_made_span, start_s),
    END,
};
/* clang-format on */

static void put_spans_of(struct ipw_jw *w, const struct ipw_spec *s,
                         const struct ipw_query_trace *q, const struct ipw_turn *turn,
                         const struct ipw_figure *energy)
{
    ipw_jw_key(w, s->key);
    ipw_jw_arr(w);
    for (size_t k = 0; k < turn->n_spans; k++) {
        const struct ipw_span *span = &turn->spans[k];
        struct ipw_made_span made = {since(q, span->start_ns), since(q, span->end_ns)};

        ipw_spec_write(w, s->of, (const void *const[]){q, span, &made, energy});
    }
    ipw_jw_arr_end(w);
}

/* ---- a turn ---- */

static void put_spans(struct ipw_jw *w, const struct ipw_spec *s, const void *const *of)
{
    const struct ipw_turn *turn = of[TURN];

    put_spans_of(w, s, of[QUERY], turn, turn->energy);
}

static void put_turn_energy(struct ipw_jw *w, const struct ipw_spec *s, const void *const *of)
{
    const struct ipw_query_trace *q = of[QUERY];
    const struct ipw_turn *turn = of[TURN];

    ipw_schema_put_energy(w, s->key, q, turn->energy, q->energy, turn->devices, turn->power_mean_w,
                          turn->power_peak_w);
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

    for (size_t k = 0; k < turn->n_spans; k++) { /* in order of start */
        const struct ipw_span *span = &turn->spans[k];

        if (span->kind != IPW_SPAN_TOOL) continue;
        if (span->start_ns < busy_until) return true;
        if (span->end_ns > busy_until) busy_until = span->end_ns;
    }
    return false;
}

/* Upstream's map from tool name to seconds; a repeated name becomes name#2, name#3. */
struct latency {
    char *key; /* NULL: a free slot */
    double s;
    int again; /* the suffix that the next call of this name tries first */
};

static int by_key(const void *a, const void *b)
{
    return strcmp(((const struct latency *)a)->key, ((const struct latency *)b)->key);
}

/* The slot of the key, or its free slot, in a table whose size is a power of two and that is never
 * full: a turn may have thousands of calls of one name. */
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

static void put_tool_latencies(struct ipw_jw *w, const struct ipw_spec *s, const void *const *of)
{
    const struct ipw_turn *turn = of[1];
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
    ipw_jw_key(w, s->key);
    ipw_jw_obj(w);
    for (size_t i = 0; i < n; i++) {
        ipw_jw_key_any(w, all[i].key, strlen(all[i].key));
        ipw_jw_num(w, all[i].s);
        free(all[i].key);
    }
    ipw_jw_obj_end(w);
    free(all);
}

static void put_tools_called(struct ipw_jw *w, const struct ipw_spec *s, const void *const *of)
{
    const struct ipw_turn *turn = of[TURN];

    ipw_jw_key(w, s->key);
    ipw_jw_arr(w);
    for (size_t k = 0; k < turn->n_spans; k++) {
        if (turn->spans[k].kind == IPW_SPAN_TOOL)
            ipw_jw_str(w, turn->spans[k].name ? turn->spans[k].name : "");
    }
    ipw_jw_arr_end(w);
}

static bool has_tools(const struct ipw_turn *turn)
{
    size_t k = 0;

    while (k < turn->n_spans && turn->spans[k].kind != IPW_SPAN_TOOL) k++;
    return k < turn->n_spans;
}

/* clang-format off */
#define OF_TURN(member, kinds)        HELD(#member, kinds, TURN, struct ipw_turn, member)
#define TURN_TIME(member, kinds)      HELD(#member, kinds, TURN, struct ipw_turn, times.member)
#define AS_TURN(name, kinds, member)  HELD(name, kinds, TURN, struct ipw_turn, member)
#define MADE_TURN(member, kinds)      HELD(#member, kinds, MADE, struct ipw_made_turn, member)
#define TURN_JOULES(name, domain)     HELD(name, JU, ENERGY, struct domains, of[domain])
struct domains {
    struct ipw_figure of[IPW_DOMAIN_COUNT];
};
const struct ipw_spec ipw_spec_turn[] = {
    OF_TURN(agent_s, N),
    OF_TURN(attempts, C),
    OF_TURN(cache_write_1h_tokens, C | OPT),
    OF_TURN(cache_write_tokens, C | OPT),
    OF_TURN(cached_tokens, CU),
    AS_TURN("chunk_gap_p50_s", SU, times.gap_p50_s),
    AS_TURN("chunk_gap_p90_s", SU, times.gap_p90_s),
    AS_TURN("chunk_gap_p99_s", SU, times.gap_p99_s),
    TURN_TIME(connect_s, SU),
    OF_TURN(context_trimmed_bytes, C | OPT),
    OF_TURN(cost_usd, NU),
    TURN_JOULES("cpu_energy_joules", IPW_DOMAIN_CPU),
    AS_TURN("cpu_power_avg_watts", JU, power_mean_w[IPW_DOMAIN_CPU]),
    OF_TURN(decode_s, SU),
    TURN_JOULES("dram_energy_joules", IPW_DOMAIN_DRAM),
    MADE_TURN(end_s, S),
    OF_TURN(endpoint, TU | PRIVATE),
    PUT_OF("energy", O, put_turn_energy, ipw_spec_part_energy),
    OF_TURN(error, TU | PRIVATE),
    OF_TURN(finish_reason, TU | OPEN),
    TURN_JOULES("gpu_energy_joules", IPW_DOMAIN_GPU),
    AS_TURN("gpu_power_avg_watts", JU, power_mean_w[IPW_DOMAIN_GPU]),
    MADE_TURN(has_parallel_tools, B),
    TURN_TIME(headers_s, SU),
    OF_TURN(inference_s, SU),
    OF_TURN(input_tokens, CU),
    TURN_TIME(itl_mean_s, SU),
    TURN_TIME(latency_close_s, SU),
    TURN_TIME(latency_content_s, SU),
    OF_TURN(model, TU | OPEN),
    AS_TURN("model_asked", T | OPT | OPEN, asked),
    OF_TURN(output_tokens, CU),
    AS_TURN("peak_watts", JU, power_peak_w[IPW_DOMAIN_GPU]),
    OF_TURN(reasoning_tokens, CU),
    OF_TURN(retry_wait_s, S),
    TURN_TIME(server_decode_s, SU),
    TURN_TIME(server_prefill_s, SU),
    TURN_TIME(server_queue_s, SU),
    MADE_TURN(shared_device_warning, B),
    PUT_OF("spans", A, put_spans, ipw_spec_span),
    MADE_TURN(start_s, S),
    OF_TURN(tokens_estimated, B),
    PUT("tool_latencies_s", O, put_tool_latencies, 0),
    MADE_TURN(tool_result_tokens, CU),
    PUT("tools_called", A | OPEN, put_tools_called, 0),
    TURN_TIME(ttfo_s, SU),
    OF_TURN(ttft_s, SU),
    TURN_TIME(ttst_s, SU),
    AS_TURN("turn_index", C, index),
    MADE_TURN(wall_clock_s, S),
    END,
};
/* clang-format on */

/* ---- a query ---- */

static void put_group(struct ipw_jw *w, const struct ipw_spec *s, const void *const *of)
{
    ipw_jw_key(w, s->key);
    ipw_spec_write(w, s->of, of);
}

static void put_resolved(struct ipw_jw *w, const struct ipw_spec *s, const void *const *of)
{
    int resolved = ((const struct ipw_query_details *)of[DETAILS])->is_resolved;

    if (resolved >= 0) ipw_jw_kbool(w, s->key, resolved != 0);
}

static void put_nothing(struct ipw_jw *w, const struct ipw_spec *s, const void *const *of)
{
    (void)of;
    ipw_jw_kraw(w, s->key, "{}", 2);
}

static void put_before(struct ipw_jw *w, const struct ipw_spec *s, const void *const *of)
{
    const struct ipw_query_trace *q = of[QUERY];

    ipw_schema_put_energy(w, s->key, q, q->energy_before, q->energy, q->device_before, NULL, NULL);
}

static void put_spans_before(struct ipw_jw *w, const struct ipw_spec *s, const void *const *of)
{
    const struct ipw_query_trace *q = of[QUERY];

    put_spans_of(w, s, q, &q->before, q->energy_before);
}

static void put_turns(struct ipw_jw *w, const struct ipw_spec *s, const void *const *of)
{
    const struct ipw_query_trace *q = of[QUERY];

    ipw_jw_key(w, s->key);
    ipw_jw_arr(w);
    for (size_t i = 0; i < q->n_turns; i++) {
        const struct ipw_turn *turn = &q->turns[i];
        struct ipw_made_turn made = {
            .start_s = since(q, turn->start_ns),
            .end_s = since(q, turn->end_ns),
            .wall_clock_s = ipw_ns_to_s(turn->end_ns - turn->start_ns),
            .has_parallel_tools = has_parallel_tools(turn),
            .shared_device_warning = shared(turn->energy),
            .tool_result_tokens = has_tools(turn) ? -1 : 0, /* nothing counts them */
        };

        ipw_spec_write(w, s->of, (const void *const[]){q, turn, &made, turn->energy});
    }
    ipw_jw_arr_end(w);
}

static const char *const superseded[] = {"cut", "failed", "limit", NULL};

/* clang-format off */
#define OF_QUERY(member, kinds)        HELD(#member, kinds, QUERY, struct ipw_query_trace, member)
#define AS_QUERY(name, kinds, member)  HELD(name, kinds, QUERY, struct ipw_query_trace, member)
#define OF_DETAILS(member, kinds)      HELD(#member, kinds, DETAILS, struct ipw_query_details, member)
#define AS_DETAILS(name, kinds, member) HELD(name, kinds, DETAILS, struct ipw_query_details, member)
#define OF_JUDGE(name, kinds, member)  HELD(name, kinds, JUDGE, struct ipw_judgement, member)
#define MADE_QUERY(member, kinds)      HELD(#member, kinds, MADE, struct ipw_made_query, member)
const struct ipw_spec ipw_spec_trace[] = {
    PUT_OF("accounts", O, put_group, ipw_spec_accounts),
    PUT("accuracy_metadata", O, put_nothing, 0),
    MADE_QUERY(accuracy_score, NU),
    OF_QUERY(agent_before_s, S),
    OF_DETAILS(answer, TU),
    OF_DETAILS(answer_source, TU | OPEN),
    OF_QUERY(completed, B),
    OF_QUERY(end_ns, I),
    PUT_OF("energy", O, ipw_schema_put_query_energy, ipw_spec_energy),
    PUT_OF("energy_before", O, put_before, ipw_spec_part_energy),
    MADE_QUERY(energy_per_output_token_joules, NU),
    OF_DETAILS(epoch, C),
    OF_QUERY(error, TU | PRIVATE),
    PUT_OF("hardware_utilization", OU, ipw_channel_stats_put_utilization, ipw_spec_utilization),
    PUT("is_resolved", BU, put_resolved, 0),
    OF_JUDGE("judge_asked", C | OPT, asked),
    OF_JUDGE("judge_cost_usd", N | OPT, cost_usd),
    OF_JUDGE("judge_cpu_energy_joules", JU, cpu_j),
    OF_JUDGE("judge_cpu_power_avg_watts", JU, cpu_w),
    OF_JUDGE("judge_gpu_energy_joules", JU, gpu_j),
    OF_JUDGE("judge_gpu_power_avg_watts", JU, gpu_w),
    OF_JUDGE("judge_input_tokens", CU, input_tokens),
    OF_JUDGE("judge_model", T | OPT | OPEN, model),
    OF_JUDGE("judge_output_tokens", CU, output_tokens),
    OF_JUDGE("judge_reason", T | OPT, reason),
    OF_JUDGE("judge_text", T | OPT | GONE, text),
    OF_JUDGE("judge_verdict", T | OPT | OPEN, verdict),
    OF_JUDGE("judge_wall_clock_s", SU, wall_s),
    MADE_QUERY(lm_energy_measurable, B),
    MADE_QUERY(lua_cpu_s, SU),
    OF_DETAILS(lua_peak_bytes, CU),
    PUT_OF("memory_metrics", OU, ipw_channel_stats_put_memory, ipw_spec_memory),
    OF_DETAILS(metadata, O | GONE),
    PUT_OF("metrics", O | EACH, ipw_schema_put_metrics, ipw_spec_metric),
    OF_DETAILS(model, TU | OPEN),
    OF_DETAILS(n_malformed, C),
    MADE_QUERY(n_retries, C),
    AS_QUERY("num_turns", C, n_turns),
    OF_QUERY(outcome, T | OPEN),
    PUT_OF("parts", A | OPT, ipw_schema_put_parts, ipw_spec_part),
    PUT_OF("power_metrics", OU, ipw_channel_stats_put_power, ipw_spec_power),
    AS_QUERY("query_cpu_energy_joules", JU, energy[IPW_DOMAIN_CPU]),
    AS_QUERY("query_cpu_power_avg_watts", JU, power_mean_w[IPW_DOMAIN_CPU]),
    AS_QUERY("query_gpu_energy_joules", JU, energy[IPW_DOMAIN_GPU]),
    AS_QUERY("query_gpu_power_avg_watts", JU, power_mean_w[IPW_DOMAIN_GPU]),
    MADE_QUERY(query_id, T | OPEN),
    AS_QUERY("query_index", C, index),
    MADE_QUERY(query_mbu_avg_pct, NU),
    MADE_QUERY(query_mbu_max_pct, NU),
    MADE_QUERY(query_text, T),
    OF_DETAILS(reference, O | OPT | GONE),
    OF_DETAILS(reference_answer, T | OPT | GONE),
    PUT("remote_domains", A | OPT | OPEN, ipw_schema_put_remote_domains, 0),
    MADE_QUERY(response_text, T),
    OF_QUERY(scheduled_ns, C | OPT),
    MADE_QUERY(schema_version, C),
    OF_DETAILS(score_metadata, O | GONE),
    OF_DETAILS(segment, C),
    MADE_QUERY(shared_device_warning, B),
    PUT_OF("spans_before", A, put_spans_before, ipw_spec_span),
    OF_QUERY(start_ns, I),
    MADE_QUERY(started_at, TU | OPEN),
    OF_DETAILS(subject, T | OPT | GONE),
    OF_DETAILS(superseded, T | OPT | OPEN),
    PUT_OF("temperature_metrics", OU, ipw_channel_stats_put_temperature, ipw_spec_statistic),
    MADE_QUERY(throughput_tokens_per_sec, SU),
    OF_QUERY(timed_out, B),
    AS_QUERY("tool_call_count", C, n_tool_calls),
    AS_DETAILS("total_cost_usd", NU, cost_usd),
    AS_QUERY("total_input_tokens", CU, input_tokens),
    AS_QUERY("total_output_tokens", CU, output_tokens),
    MADE_QUERY(total_task_cpu_energy_joules, JU),
    MADE_QUERY(total_task_gpu_energy_joules, JU),
    MADE_QUERY(total_tokens, CU),
    AS_QUERY("total_tool_calls", C, n_tool_calls),
    MADE_QUERY(total_wall_clock_s, S),
    PUT_OF("turns", A, put_turns, ipw_spec_turn),
    OF_DETAILS(unscorable_reason, TU),
    MADE_QUERY(workload_type, T),
    END,
};
/* clang-format on */
const struct ipw_spec ipw_spec_attempt[] = {WORD("superseded", T, superseded), END};

static bool measurable(const struct ipw_query_trace *q)
{
    unsigned domains = ipw_turn_lm_domains(q);
    bool any = false;

    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) any |= (domains >> d & 1) && q->energy[d].known;
    return any;
}

static int64_t retries(const struct ipw_query_trace *q)
{
    int64_t n = 0;

    for (size_t i = 0; i < q->n_turns; i++) {
        if (q->turns[i].attempts > 1) n += q->turns[i].attempts - 1;
    }
    return n;
}

/* A query's joules and its judge's; without a judge, the query's. */
static double of_task(const struct ipw_figure *query, const struct ipw_query_details *r,
                      double judge_j)
{
    double j = query->known ? query->j : NAN;

    return r->judge && r->judge->asked > 0 ? ipw_figure_add_j(j, judge_j) : j;
}

static const char *some(const char *text) { return text ? text : ""; }

/* The dataset row's own word, as in the upstream runner.  *metadata holds the text; the caller
 * frees it. */
static const char *type_of(const struct ipw_query_details *r, struct ipw_json **metadata)
{
    if (r->workload_type) return r->workload_type;
    if (r->metadata && strstr(r->metadata, "\"workload_type\""))
        (void)ipw_json_parse(metadata, r->metadata, strlen(r->metadata), NULL, NULL);
    return ipw_json_str(ipw_json_get(*metadata, "workload_type"), "agentic");
}

void ipw_schema_write_query(struct ipw_buf *out, const struct ipw_query_trace *q,
                            const struct ipw_query_details *r, const struct ipw_anchor *anchor)
{
    const struct ipw_figure *gpu = &q->energy[IPW_DOMAIN_GPU];
    double gpu_j = gpu->known ? ipw_figure_j(gpu->j) : 0;
    double wall_s = ipw_ns_to_s(q->end_ns - q->start_ns), output = (double)q->output_tokens;
    bool known = q->input_tokens >= 0 && q->output_tokens >= 0;
    const struct ipw_judgement none = IPW_JUDGEMENT_NONE, *judge = r->judge ? r->judge : &none;
    char iso[40];
    struct ipw_jw w;
    struct ipw_json *metadata = NULL;
    struct ipw_made_query made = {
        .accuracy_score = r->is_resolved < 0 ? NAN
                          : r->is_resolved   ? 1
                                             : 0,
        .energy_per_output_token_joules = gpu_j > 0 && output > 0 ? gpu_j / output : NAN,
        .lm_energy_measurable = measurable(q),
        .lua_cpu_s = r->lua_cpu_ns < 0 ? NAN : ipw_ns_to_s(r->lua_cpu_ns),
        .n_retries = retries(q),
        .query_id = some(q->id),
        .query_text = some(r->query_text),
        .response_text = some(r->response_text),
        .schema_version = IPW_SCHEMA_VERSION,
        .shared_device_warning = shared(q->energy),
        .started_at =
            anchor ? ipw_clock_iso8601(iso, sizeof iso, ipw_anchor_wall_ns(anchor, q->start_ns))
                   : NULL,
        .throughput_tokens_per_sec = output > 0 && wall_s > 0 ? output / wall_s : NAN,
        .total_task_cpu_energy_joules = of_task(&q->energy[IPW_DOMAIN_CPU], r, judge->cpu_j),
        .total_task_gpu_energy_joules = of_task(gpu, r, judge->gpu_j),
        .total_tokens = known ? q->input_tokens + q->output_tokens : -1,
        .total_wall_clock_s = wall_s,
        .workload_type = type_of(r, &metadata),
    };

    made.query_mbu_avg_pct = ipw_channel_stats_mbu(q, &made.query_mbu_max_pct);
    ipw_jw_init(&w, out);
    ipw_spec_write(&w, ipw_spec_trace, (const void *const[]){q, r, &made, judge});
    ipw_json_free(metadata);
}
