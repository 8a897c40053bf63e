/* The tables of docs/trace-format.md, in the order of its sections. */
#include <string.h>

#include "trace/event.h"
#include "trace/spec.h"

enum {
    T = IPW_SPEC_TEXT,
    TZ = IPW_SPEC_TEXT | IPW_SPEC_NULL,
    I = IPW_SPEC_INT,
    C = IPW_SPEC_INT | IPW_SPEC_COUNT,
    CZ = IPW_SPEC_INT | IPW_SPEC_COUNT | IPW_SPEC_NULL,
    IZ = IPW_SPEC_INT | IPW_SPEC_NULL,
    N = IPW_SPEC_NUM,
    NZ = IPW_SPEC_NUM | IPW_SPEC_NULL,
    S = IPW_SPEC_NUM | IPW_SPEC_COUNT, /* seconds */
    SZ = IPW_SPEC_NUM | IPW_SPEC_COUNT | IPW_SPEC_NULL,
    B = IPW_SPEC_BOOL,
    BZ = IPW_SPEC_BOOL | IPW_SPEC_NULL,
    O = IPW_SPEC_OBJ,
    OZ = IPW_SPEC_OBJ | IPW_SPEC_NULL,
    A = IPW_SPEC_ARR,
    Z = IPW_SPEC_NULL,
    OPT = IPW_SPEC_OPTIONAL,
    EACH = IPW_SPEC_EACH,
};
#define END                                                                                        \
    {                                                                                              \
        NULL, 0, NULL, NULL                                                                        \
    }
#define KEY(key, kind)                                                                             \
    {                                                                                              \
        key, kind, NULL, NULL                                                                      \
    }
#define OF(key, kind, table)                                                                       \
    {                                                                                              \
        key, kind, table, NULL                                                                     \
    }
#define WORD(key, kind, words)                                                                     \
    {                                                                                              \
        key, kind, NULL, words                                                                     \
    }

static const char *const provenances[] = {"measured", "interpolated", "distributed", "estimated",
                                          NULL};
static const struct ipw_spec figure[] = {
    KEY("coverage", S | OPT),
    KEY("hi", N | OPT),
    KEY("joules", NZ),
    KEY("lo", N | OPT),
    KEY("mean_w", NZ | OPT),
    KEY("peak_w", NZ | OPT),
    WORD("provenance", T | OPT, provenances),
    KEY("reason", T | OPT),
    KEY("samples", C | OPT),
    KEY("sources", A | OPT),
    KEY("split_fraction", S | OPT),
    END,
};
static const struct ipw_spec energy[] = {
    OF("cpu", O, figure),
    OF("dram", O, figure),
    OF("gpu", O, figure),
    OF("machine", O, figure),
    END,
};

static const char *const span_kinds[] = {"lm", "prefill", "decode", "tool", "event", "http", NULL};
static const struct ipw_spec span[] = {
    KEY("attempt", CZ),
    OF("energy", O, energy),
    KEY("end_s", N),
    KEY("error", TZ),
    KEY("id", CZ),
    WORD("kind", T, span_kinds),
    KEY("name", TZ),
    KEY("outcome", TZ),
    KEY("result_bytes", CZ),
    KEY("start_s", N),
    END,
};
static const struct ipw_spec turn[] = {
    KEY("agent_s", N),
    KEY("attempts", C),
    KEY("cached_tokens", CZ),
    KEY("chunk_gap_p50_s", SZ),
    KEY("chunk_gap_p90_s", SZ),
    KEY("chunk_gap_p99_s", SZ),
    KEY("connect_s", SZ),
    KEY("cost_usd", NZ),
    KEY("cpu_energy_joules", NZ),
    KEY("cpu_power_avg_watts", NZ),
    KEY("decode_s", SZ),
    KEY("dram_energy_joules", NZ),
    KEY("end_s", S),
    KEY("endpoint", TZ),
    OF("energy", O, energy),
    KEY("error", TZ),
    KEY("finish_reason", TZ),
    KEY("gpu_energy_joules", NZ),
    KEY("gpu_power_avg_watts", NZ),
    KEY("has_parallel_tools", B),
    KEY("headers_s", SZ),
    KEY("inference_s", SZ),
    KEY("input_tokens", CZ),
    KEY("itl_mean_s", SZ),
    KEY("latency_close_s", SZ),
    KEY("latency_content_s", SZ),
    KEY("model", TZ),
    KEY("output_tokens", CZ),
    KEY("peak_watts", NZ),
    KEY("reasoning_tokens", CZ),
    KEY("retry_wait_s", S),
    KEY("server_decode_s", SZ),
    KEY("server_prefill_s", SZ),
    KEY("server_queue_s", SZ),
    KEY("shared_device_warning", B),
    OF("spans", A, span),
    KEY("start_s", S),
    KEY("tokens_estimated", B),
    KEY("tool_latencies_s", O),
    KEY("tool_result_tokens", CZ),
    KEY("tools_called", A),
    KEY("ttfo_s", SZ),
    KEY("ttft_s", SZ),
    KEY("ttst_s", SZ),
    KEY("turn_index", C),
    KEY("wall_clock_s", S),
    END,
};
#define ACCOUNT_KEYS                                                                               \
    KEY("attributed_j", N), KEY("exclusive_j", N), KEY("idle_tax_j", NZ), KEY("marginal_j", NZ),   \
        KEY("waste_j", NZ)

static const struct ipw_spec device_account[] = {ACCOUNT_KEYS, END};
static const struct ipw_spec account[] = {
    OF("devices", O | EACH | OPT, device_account),
    ACCOUNT_KEYS,
    END,
};
static const struct ipw_spec metric[] = {
    KEY("avg", N), KEY("max", N), KEY("median", N), KEY("min", N), KEY("n", C), KEY("unit", T), END,
};

/* Upstream's groups of statistics. */
static const struct ipw_spec statistic[] = {
    KEY("avg", N), KEY("max", N), KEY("median", N), KEY("min", N), END,
};
static const struct ipw_spec watts[] = {
    OF("per_query_watts", O, statistic),
    OF("total_watts", O, statistic),
    END,
};
static const struct ipw_spec memory[] = {
    OF("cpu_mb", OZ, statistic),
    OF("gpu_mb", OZ, statistic),
    END,
};
static const struct ipw_spec gpu_utilization[] = {
    KEY("compute_utilization_pct", NZ),
    KEY("memory_bandwidth_utilization_pct", NZ),
    KEY("memory_total_gb", NZ),
    KEY("memory_used_gb", NZ),
    KEY("tensor_core_utilization_pct", NZ),
    END,
};
static const struct ipw_spec derived[] = {
    KEY("arithmetic_intensity", NZ),
    KEY("mbu", NZ),
    KEY("mfu", NZ),
    END,
};
static const struct ipw_spec utilization[] = {
    OF("derived", O, derived),
    OF("gpu", O, gpu_utilization),
    END,
};

#define QUERY_KEYS                                                                                 \
    OF("accounts", O | EACH, account), KEY("accuracy_metadata", O), KEY("accuracy_score", NZ),     \
        KEY("agent_before_s", S), KEY("answer", TZ), KEY("answer_source", TZ),                     \
        KEY("completed", B), KEY("end_ns", I), OF("energy", O, energy),                            \
        OF("energy_before", O, energy), KEY("energy_per_output_token_joules", NZ),                 \
        KEY("epoch", C), KEY("error", TZ), OF("hardware_utilization", OZ, utilization),            \
        KEY("is_resolved", BZ), KEY("judge_cpu_energy_joules", Z),                                 \
        KEY("judge_cpu_power_avg_watts", Z), KEY("judge_gpu_energy_joules", Z),                    \
        KEY("judge_gpu_power_avg_watts", Z), KEY("judge_wall_clock_s", Z),                         \
        KEY("lm_energy_measurable", B), KEY("lua_cpu_s", SZ), KEY("lua_peak_bytes", CZ),           \
        OF("memory_metrics", OZ, memory), KEY("metadata", O), OF("metrics", O | EACH, metric),     \
        KEY("model", TZ), KEY("n_malformed", C), KEY("n_retries", C), KEY("num_turns", C),         \
        KEY("outcome", T), OF("power_metrics", OZ | EACH, watts),                                  \
        KEY("query_cpu_energy_joules", NZ), KEY("query_cpu_power_avg_watts", NZ),                  \
        KEY("query_gpu_energy_joules", NZ), KEY("query_gpu_power_avg_watts", NZ),                  \
        KEY("query_id", T), KEY("query_index", C), KEY("query_mbu_avg_pct", NZ),                   \
        KEY("query_mbu_max_pct", NZ), KEY("query_text", T), KEY("remote_domains", A | OPT),        \
        KEY("response_text", T), KEY("schema_version", C), KEY("score_metadata", O),               \
        KEY("segment", C), KEY("shared_device_warning", B), OF("spans_before", A, span),           \
        KEY("start_ns", I), KEY("started_at", TZ), OF("temperature_metrics", OZ, statistic),       \
        KEY("throughput_tokens_per_sec", SZ), KEY("timed_out", B), KEY("tool_call_count", C),      \
        KEY("total_cost_usd", NZ), KEY("total_input_tokens", CZ), KEY("total_output_tokens", CZ),  \
        KEY("total_task_cpu_energy_joules", NZ), KEY("total_task_gpu_energy_joules", NZ),          \
        KEY("total_tokens", CZ), KEY("total_tool_calls", C), KEY("total_wall_clock_s", S),         \
        OF("turns", A, turn), KEY("unscorable_reason", TZ), KEY("workload_type", T)
const struct ipw_spec ipw_spec_trace[] = {QUERY_KEYS, END};
static const char *const superseded[] = {"cut", "failed", "limit", NULL};
const struct ipw_spec ipw_spec_attempt[] = {QUERY_KEYS, WORD("superseded", T, superseded), END};

#define EVENT_KEYS                                                                                 \
    KEY("data", O | OPT), KEY("event", T), KEY("query", I), KEY("rows", C | OPT), KEY("span", C),  \
        KEY("t_ns", I)
static const struct ipw_spec any_event[] = {EVENT_KEYS, END};
static const struct ipw_spec run_start[] = {EVENT_KEYS, KEY("segment", C), END};
static const struct ipw_spec note[] = {EVENT_KEYS, KEY("name", T | OPT), END};
static const struct ipw_spec query_start[] = {EVENT_KEYS, KEY("id", T), END};
static const struct ipw_spec query_end[] = {EVENT_KEYS,   KEY("completed", B), KEY("error", TZ),
                                            KEY("id", T), KEY("outcome", T),   END};
static const struct ipw_spec lm_start[] = {EVENT_KEYS, KEY("attempt", C), KEY("model", TZ), END};
static const char *const lm_outcomes[] = {
    "ok",           "refused",   "timeout",   "reset",     "cut", "http_error",
    "server_error", "bad_reply", "too_large", "cancelled", NULL};
static const struct ipw_spec lm_end[] = {
    EVENT_KEYS,
    KEY("attempt", C),
    KEY("bytes_received", CZ),
    KEY("bytes_sent", CZ),
    KEY("cached_tokens", CZ),
    KEY("calls", C),
    KEY("chunks", CZ),
    KEY("error", TZ),
    KEY("finish_reason", TZ),
    KEY("first_byte_ns", IZ),
    KEY("first_token_ns", IZ),
    KEY("input_tokens", CZ),
    KEY("last_token_ns", IZ),
    KEY("malformed", B),
    KEY("model", TZ),
    WORD("outcome", T, lm_outcomes),
    KEY("output_tokens", CZ),
    KEY("reasoning_tokens", CZ),
    KEY("sent_ns", IZ),
    KEY("status", C),
    KEY("tokens_estimated", B),
    KEY("will_retry", B),
    END,
};
static const struct ipw_spec tool_start[] = {EVENT_KEYS, KEY("call_id", TZ), KEY("name", T), END};
static const struct ipw_spec tool_end[] = {
    EVENT_KEYS,   KEY("call_id", TZ), KEY("error", TZ),        KEY("name", T),
    KEY("ok", B), KEY("outcome", TZ), KEY("result_bytes", CZ), END,
};
static const char *const own_kinds[] = {"event", "http", NULL};
static const struct ipw_spec own_start[] = {EVENT_KEYS, WORD("kind", T, own_kinds), KEY("name", T),
                                            END};
static const struct ipw_spec own_end[] = {
    EVENT_KEYS,   KEY("error", TZ),   WORD("kind", T, own_kinds), KEY("name", T),
    KEY("ok", B), KEY("outcome", TZ), KEY("result_bytes", CZ),    END,
};

const struct ipw_spec *ipw_spec_event(const char *name)
{
    static const struct ipw_spec *const tables[IPW_EV_KINDS] = {
        [IPW_EV_RUN_START] = run_start,
        [IPW_EV_QUERY_START] = query_start,
        [IPW_EV_LM_START] = lm_start,
        [IPW_EV_LM_END] = lm_end,
        [IPW_EV_TOOL_START] = tool_start,
        [IPW_EV_TOOL_END] = tool_end,
        [IPW_EV_SPAN_START] = own_start,
        [IPW_EV_SPAN_END] = own_end,
        [IPW_EV_NOTE] = note,
        [IPW_EV_QUERY_END] = query_end,
        [IPW_EV_RUN_END] = any_event,
    };

    for (int k = 0; k < IPW_EV_KINDS; k++) {
        if (strcmp(name, ipw_event_name((enum ipw_event_kind)k)) == 0) return tables[k];
    }
    return NULL;
}

static const char *const channel_kinds[] = {"counter", "gauge", "metric", "estimate", NULL};
static const struct ipw_spec channel[] = {
    KEY("device", TZ),
    KEY("domain", TZ),
    KEY("in_sum", B),
    WORD("kind", T, channel_kinds),
    KEY("max_w", NZ),
    KEY("modulus_uj", N),
    KEY("name", T),
    KEY("undo_window", B | OPT),
    KEY("unit", T),
    KEY("window_ns", C | OPT),
    END,
};
static const struct ipw_spec source[] = {OF("channels", A, channel), KEY("name", T),
                                         KEY("note", TZ), KEY("period_ns", C), END};
const struct ipw_spec ipw_spec_power_header[] = {
    KEY("basis", OZ),        KEY("format", C | OPT),
    KEY("interval_ns", C),   KEY("schema_version", C),
    KEY("segment", C | OPT), OF("sources", A, source),
    KEY("verdicts", A),      END,
};

static const struct ipw_spec clock_anchor[] = {KEY("boot_ns", I), KEY("mono_ns", I),
                                               KEY("wall_ns", I), END};
static const struct ipw_spec program[] = {KEY("name", T), KEY("version", T), END};
static const struct ipw_spec torn[] = {KEY("bytes", C), KEY("file", T), KEY("offset", C), END};
static const struct ipw_spec session_books[] = {KEY("idle_j", NZ), KEY("reason", TZ),
                                                KEY("total_j", NZ), END};
static const char *const ends[] = {"complete", "interrupted", "limit", "killed", NULL};
static const struct ipw_spec segment[] = {
    KEY("baseline", OZ | OPT),
    KEY("client_base_url", TZ),
    OF("clock", O, clock_anchor),
    KEY("concurrency", C),
    WORD("end", TZ, ends),
    KEY("end_ns", IZ),
    KEY("ended_at", TZ),
    KEY("energy_note", TZ | OPT),
    KEY("forced", A),
    KEY("hardware", OZ),
    OF("ledger", OZ | EACH, session_books),
    KEY("not_quiet", TZ),
    KEY("note", TZ | OPT),
    KEY("own", OZ),
    KEY("pid", C),
    OF("program", O, program),
    KEY("segment", C),
    KEY("start_ns", IZ),
    KEY("started_at", TZ),
    OF("torn", A, torn),
    END,
};
const struct ipw_spec ipw_spec_manifest[] = {
    OF("clock", O, clock_anchor), KEY("config", O),
    KEY("hardware", OZ),          KEY("hashes", O | OPT),
    KEY("not_quiet", TZ),         OF("program", O, program),
    KEY("schema_version", C),     OF("segments", A | OPT, segment),
    KEY("started_at", TZ),        END,
};

static const struct ipw_spec balance[] = {
    KEY("balanced", BZ),
    KEY("difference_j", NZ),
    KEY("idle_j", NZ),
    KEY("partial_coverage", NZ | OPT),
    KEY("partial_j", NZ | OPT),
    KEY("queries_j", NZ),
    KEY("reason", TZ),
    KEY("total_j", NZ),
    KEY("warmup_j", NZ),
    KEY("wasted_j", NZ),
    END,
};
static const char *const states[] = {"complete", "interrupted", "limit", NULL};
static const struct ipw_spec run[] = {KEY("agent", T),
                                      KEY("dataset", T),
                                      KEY("earlier_attempts", C),
                                      KEY("model", TZ),
                                      KEY("planned", CZ),
                                      KEY("sessions", CZ),
                                      END};
static const struct ipw_spec totals[] = {
    KEY("accuracy", NZ),
    KEY("completed", C),
    KEY("cost_usd", NZ),
    KEY("cpu_energy_joules", NZ),
    KEY("dram_energy_joules", NZ),
    KEY("failed", C),
    KEY("gpu_energy_joules", NZ),
    KEY("input_tokens", CZ),
    KEY("interrupted", C | OPT),
    KEY("machine_energy_joules", NZ),
    KEY("output_tokens", CZ),
    KEY("queries", C),
    KEY("resolved", C),
    KEY("retries", C),
    KEY("timed_out", C),
    KEY("tool_calls", C),
    KEY("total_tokens", CZ),
    KEY("turns", C),
    KEY("unresolved", C),
    KEY("unscorable", C),
    KEY("unscored", C),
    KEY("wall_clock_s", S),
    END,
};
static const struct ipw_spec answered[] = {KEY("queries", C), KEY("turns", C), END};
const struct ipw_spec ipw_spec_summary[] = {
    KEY("accounts", O),
    KEY("averages", O),
    KEY("baseline", OZ),
    KEY("config", OZ),
    KEY("definitions", O),
    KEY("efficiency", O),
    KEY("energy_note", TZ),
    KEY("failed", O),
    KEY("generated_at", N),
    KEY("hardware", OZ),
    KEY("interrupted", O | OPT),
    OF("ledger", OZ | EACH, balance),
    OF("models", OZ | EACH | OPT, answered),
    KEY("normalized_efficiency", OZ),
    KEY("normalized_statistics", OZ),
    KEY("note", TZ),
    KEY("own_overhead", OZ),
    KEY("provenance", OZ),
    KEY("repeats", OZ),
    OF("run", O, run),
    KEY("schema_version", C),
    KEY("statistics", O),
    WORD("status", T, states),
    OF("totals", O, totals),
    END,
};
