/* trace/turn.h: builds the turns of a query from its events.
 *
 * Pure.  A turn is one chat call (all its attempts) together with the tool calls its reply asked
 * for: it starts when the request is sent and ends when the next call starts, or when the query
 * ends.  Tools belong to the turn that called them.  Time before the first turn is the query's own
 * agent time.  Inside a turn: attempts, prefill (request sent to first token) and decode (first to
 * last token) of the successful one, each tool span (they may overlap), and agent (all else).
 * Spans that a script names (and its web requests) stand in the turn in which they begin, or before
 * the first; they open no turn, and their time is still the agent's.
 * Events may be unfinished (a start without an end): they end when the query does, outcome
 * "unfinished".  Input order is by time; equal times keep their order.
 *
 * What each part cost is filled in from the ledger (ledger/query_energy.h). */
#ifndef IPW_TRACE_TURN_H
#define IPW_TRACE_TURN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "energy/source.h"
#include "trace/event.h"
#include "trace/figure.h"

enum ipw_span_kind {
    IPW_SPAN_LM,      /* one attempt */
    IPW_SPAN_PREFILL, /* inside the successful attempt */
    IPW_SPAN_DECODE,
    IPW_SPAN_TOOL,
    IPW_SPAN_EVENT, /* what a script named with ipw.event; other spans may lie inside it */
    IPW_SPAN_HTTP,  /* a web request of a script */
    IPW_SPAN_KINDS,
};
/* "lm", "prefill", "decode", "tool", "event", "http", NULL */
extern const char *const ipw_span_kind_words[];

/* A query with this outcome was stopped with its run: by a signal, a kill, a limit of the run, or a
 * server that did not come back.  It neither failed nor was it wrong, and `resume` runs it again. */
bool ipw_outcome_is_stop(const char *outcome);

struct ipw_span {
    enum ipw_span_kind kind;
    char *name; /* tool name, or model */
    int32_t id; /* the events' span number; 0 for prefill and decode */
    int64_t start_ns, end_ns;
    char *outcome; /* "ok", "error", "timeout", "refused", "unfinished", ... */
    char *error;   /* or NULL */
    int attempt;
    int64_t result_bytes; /* tools and web requests; -1 else */
    struct ipw_figure
        *energy; /* IPW_DOMAIN_COUNT, of the span's window; overlapping spans overlap */
    struct ipw_figure *devices; /* the same of each of the trace's devices; NULL: it has none */
};

/* One of several devices of a domain: a domain that is one device has its figure for it. */
struct ipw_device {
    char *name; /* the channel's */
    enum ipw_domain domain;
};

/* Seconds of a turn's successful attempt, from its request's start; NAN: not known.  What each one
 * counts stands in docs/trace-format.md. */
struct ipw_turn_times {
    double ttfo_s, ttst_s, itl_mean_s, gap_p50_s, gap_p90_s, gap_p99_s;
    double latency_content_s, latency_close_s, headers_s, connect_s;
    double server_queue_s, server_prefill_s, server_decode_s;
};

struct ipw_turn {
    int index; /* from 0 */
    int64_t start_ns, end_ns;
    int64_t input_tokens, output_tokens, cached_tokens, reasoning_tokens; /* -1: not known */
    bool tokens_estimated;
    double inference_s, ttft_s, decode_s; /* NAN: not known */
    double agent_s;                       /* neither inference nor any tool */
    int attempts;
    char *finish_reason, *model, *error; /* or NULL */
    struct ipw_span *spans;
    size_t n_spans, cap_spans;
    struct ipw_figure *energy;  /* IPW_DOMAIN_COUNT, of the whole turn */
    struct ipw_figure *devices; /* as of a span */
    double power_mean_w[IPW_DOMAIN_COUNT], power_peak_w[IPW_DOMAIN_COUNT]; /* NAN: not known */
    struct ipw_turn_times times;
    double retry_wait_s; /* between its attempts, and held_ns; neither inference nor the agent's */
    int64_t held_ns;     /* at its end, before the first attempt of the next turn was let go */
    char *endpoint;      /* the base URL that answered, or NULL */
    double cost_usd;     /* of its attempts; NAN: not known */
    bool malformed;      /* the agent could not use the reply */
};

/* What a sensor other than a counter read during a query (utilisation, memory, temperature). */
struct ipw_metric {
    char *name, *unit; /* of the channel */
    double avg, median, min, max;
    int64_t n; /* readings; none of them negative (by convention: not available) */
};

/* Where a query's joules went, besides its turns; NAN: not known. */
struct ipw_query_account {
    double exclusive_j; /* while no other query was in flight; part of its energy */
    double marginal_j;  /* above the idle baseline: net; may be negative */
    double waste_j;     /* in attempts that failed or whose reply could not be used */
    double idle_tax_j; /* while its tools ran or a retry waited, and the model did nothing for it */
};

struct ipw_query_trace {
    char *id;
    int32_t index;
    int64_t start_ns, end_ns;
    char *outcome, *error;
    bool completed, timed_out;
    struct ipw_turn *turns;
    size_t n_turns, cap_turns;
    int64_t input_tokens, output_tokens; /* sums; -1 when any turn's is not known */
    size_t n_tool_calls;
    double agent_before_s;  /* before the first turn */
    struct ipw_turn before; /* only its spans count: those that began before the first turn */
    struct ipw_figure energy[IPW_DOMAIN_COUNT]; /* the query's: equals the sum of turns + before */
    struct ipw_figure energy_before[IPW_DOMAIN_COUNT];
    struct ipw_device *devices; /* by domain and name; a domain's figure is the sum of theirs */
    size_t n_devices;
    struct ipw_figure *device_energy, *device_before; /* of each; NULL: there are none */
    struct ipw_query_account *device_account;         /* likewise; NULL also: not known */
    double power_mean_w[IPW_DOMAIN_COUNT];
    struct ipw_power_stats power[IPW_DOMAIN_COUNT]; /* of the device, not shared; avg_w: the mean */
    struct ipw_query_account account[IPW_DOMAIN_COUNT];
    char *sources[IPW_DOMAIN_COUNT]; /* the summed channels, as a JSON array; NULL: none */
    struct ipw_metric *metrics;      /* by name */
    size_t n_metrics, cap_metrics;
    bool lm_remote;      /* the model runs on another machine */
    unsigned lm_domains; /* with lm_remote: the domains read on that machine, bits 1 << domain */
};

/* Figures of a turn or a span, none of them known; freed with the trace. */
struct ipw_figure *ipw_turn_figures(void);

/* Gathers the events of one query as they happen (copying what it needs).  Figures are made when it
 * finishes: thousands of queries that wait for a model would hold 14 KiB each. */
struct ipw_turn_builder;
struct ipw_turn_builder *ipw_turn_builder_new(void);
void ipw_turn_builder_add(struct ipw_turn_builder *b, const struct ipw_event *event);
/* Nothing is known of it after `end_ns`: it ends there, as does all that was going on, and what
 * began later has no length. */
void ipw_turn_builder_cut(struct ipw_turn_builder *b, int64_t end_ns);
/* Builds the trace of what was added (no energy yet) and frees the builder.  The caller releases
 * the trace. */
void ipw_turn_builder_finish(struct ipw_turn_builder *b, struct ipw_query_trace *out);
void ipw_turn_builder_free(struct ipw_turn_builder *b); /* NULL is fine */

/* The domains whose energy is that of the model's machine, bits 1 << domain: all of them for a model
 * on this machine, 0 for a model on another machine of which no sensor was read. */
unsigned ipw_query_lm_domains(const struct ipw_query_trace *trace);
/* Of the turns whose cost is known (upstream's rule); NAN when none is. */
double ipw_query_trace_cost(const struct ipw_query_trace *trace);
void ipw_query_trace_release(struct ipw_query_trace *trace);

#endif
