/* The tables of files without a struct of their own: the header of power.jsonl, manifest.json,
 * summary.json. */
#include "trace/spec_rows.h"

/* clang-format off */
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
static const struct ipw_spec source[] = {
    OF("channels", A, channel),
    KEY("name", T),
    KEY("note", TZ),
    KEY("period_ns", C),
    END,
};
const struct ipw_spec ipw_spec_power_header[] = {
    KEY("basis", OZ),
    KEY("format", C | OPT),
    KEY("interval_ns", C),
    KEY("schema_version", C),
    KEY("segment", C | OPT),
    OF("sources", A, source),
    KEY("verdicts", A),
    END,
};

static const struct ipw_spec clock_anchor[] = {KEY("boot_ns", I), KEY("mono_ns", I), KEY("wall_ns", I), END};
static const struct ipw_spec program[] = {KEY("name", T), KEY("version", T), END};
static const struct ipw_spec torn[] = {KEY("bytes", C), KEY("file", T), KEY("offset", C), END};
static const struct ipw_spec session_balance[] = {KEY("idle_j", NZ), KEY("reason", TZ), KEY("total_j", NZ), END};
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
    OF("ledger", OZ | EACH, session_balance),
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
    OF("clock", O, clock_anchor),
    KEY("config", O),
    KEY("hardware", OZ),
    KEY("hashes", O | OPT),
    KEY("not_quiet", TZ),
    OF("program", O, program),
    KEY("schema_version", C),
    OF("segments", A | OPT, segment),
    KEY("started_at", TZ),
    END,
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
static const struct ipw_spec run[] = {
    KEY("agent", T),
    KEY("dataset", T),
    KEY("earlier_attempts", C),
    KEY("model", TZ),
    KEY("planned", CZ),
    KEY("sessions", CZ),
    END,
};
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
/* clang-format on */
