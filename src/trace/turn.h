/* trace/turn.h: builds the turns of a query from its events.
 *
 * Pure.  A turn is one chat call (all its attempts) together with the tool calls that its reply
 * asked for.  It starts when the request is sent, and ends when the next call starts or the query
 * ends.  Tools belong to the turn that called them.  Time before the first turn is agent time of
 * the query.  Inside a turn there are attempts; prefill (request sent to first token) and decode
 * (first to last token) of the successful attempt; tool spans, which may overlap; and agent time
 * (all else).  Spans that a script names, and its web requests, belong to the turn in which they
 * begin, or lie before the first.  They open no turn, and their time is still agent time.  A span
 * without an end event ends with the query, with outcome "unfinished".  Where a program tells when
 * a tool ran (tool_span), that counts and not the events around it.  Events come in order of time;
 * events of equal time keep their order.
 *
 * ledger/query_energy.h fills in the energy of each part. */
#ifndef IPW_TRACE_TURN_H
#define IPW_TRACE_TURN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/texts.h"
#include "energy/source.h"
#include "trace/event.h"
#include "trace/figure.h"

enum ipw_span_kind {
    IPW_SPAN_LM,      /* one attempt */
    IPW_SPAN_PREFILL, /* inside the successful attempt */
    IPW_SPAN_DECODE,
    IPW_SPAN_TOOL,
    IPW_SPAN_EVENT, /* a span that a script named with ipw.event; it may contain other spans */
    IPW_SPAN_HTTP,  /* a web request of a script, or a proxied call that is no turn */
    IPW_SPAN_AGENT, /* an agent inside of a program's session; it may contain other spans */
    IPW_SPAN_KINDS,
};
/* "lm", "prefill", "decode", "tool", "event", "http", "agent", NULL */
extern const char *const ipw_span_kind_words[];

/* A query with this outcome was stopped with its run: by a signal, a kill, a limit of the run, or a
 * server that stayed away.  It did not fail and is not wrong; `resume` runs it again. */
bool ipw_outcome_is_stop(const char *outcome);

struct ipw_span {
    enum ipw_span_kind kind;
    const char *name; /* tool name, or model */
    int32_t id;       /* the events' span number; 0 for prefill and decode */
    int32_t inside;   /* the id of the agent's span that it belongs to; 0: the main agent's */
    int64_t start_ns, end_ns;
    const char *outcome; /* "ok", "error", "timeout", "refused", "unfinished", ... */
    const char *error;   /* or NULL */
    bool told;           /* of a tool: start and end are the program's own */
    int attempt;
    int64_t result_bytes; /* for tools and web requests; else -1 */
    /* Of tools, as in struct ipw_tool_facts; 0, NAN, NULL: unknown, or none. */
    int64_t argument_bytes, cut_bytes, child_peak_bytes;
    double child_cpu_s;
    const char *child_provenance;
    /* IPW_DOMAIN_COUNT values for the span's window, in the turn's span_energy; overlapping spans
     * count twice. */
    struct ipw_figure *energy;
};

/* One of several devices of a domain.  If a domain has one device, the domain's value is the
 * device's. */
struct ipw_device {
    char *name; /* name of the channel */
    enum ipw_domain domain;
};

/* Seconds of a turn's successful attempt, from its request's start; NAN: unknown.
 * docs/trace-format.md defines each. */
struct ipw_turn_times {
    double ttfo_s, ttst_s, itl_mean_s, gap_p50_s, gap_p90_s, gap_p99_s;
    double latency_content_s, latency_close_s, headers_s, connect_s;
    double server_queue_s, server_prefill_s, server_decode_s;
};

struct ipw_turn {
    int index; /* counted from 0 */
    int64_t start_ns, end_ns;
    int64_t input_tokens, output_tokens, cached_tokens, reasoning_tokens; /* -1: unknown */
    int64_t cache_write_tokens, cache_write_1h_tokens; /* 0: none, or not reported */
    bool tokens_estimated;
    double inference_s, ttft_s, decode_s; /* NAN: unknown */
    double agent_s;                       /* neither model call nor tool */
    int attempts;
    const char *finish_reason, *model, *error; /* or NULL */
    const char *asked; /* the requested model, if the server named another, or none; or NULL */
    struct ipw_span *spans;
    size_t n_spans, cap_spans;
    struct ipw_figure *span_energy;
    struct ipw_figure *energy;  /* IPW_DOMAIN_COUNT values for the whole turn */
    struct ipw_figure *devices; /* one for each of the trace's devices; NULL: no devices */
    double power_mean_w[IPW_DOMAIN_COUNT], power_peak_w[IPW_DOMAIN_COUNT]; /* NAN: unknown */
    struct ipw_turn_times times;
    double retry_wait_s;  /* between its attempts, plus held_ns; neither inference nor agent time */
    int64_t held_ns;      /* time at its end in which the in-flight limit delayed the next turn */
    const char *endpoint; /* the base URL that answered, or NULL */
    bool remote;          /* it is on another machine; set when the energy is filled in */
    double cost_usd;      /* sum over its attempts; NAN: unknown */
    bool malformed;       /* the agent could not use the reply */
    int64_t context_trimmed_bytes; /* left out of its request, so that it fits the context */
};

/* Readings during a query of a sensor other than a counter (utilisation, memory, temperature). */
struct ipw_metric {
    char *name, *unit; /* of the channel */
    double avg, median, min, max;
    int64_t n; /* number of readings; negative ones (by convention: not available) are left out */
};

/* Parts of a query's energy besides its turns; NAN: unknown. */
struct ipw_query_account {
    double exclusive_j; /* while no other query was in flight */
    double marginal_j;  /* net energy, above the idle baseline; may be negative */
    double waste_j;     /* in attempts that failed or whose reply could not be used */
    double idle_tax_j;  /* while its tools ran or a retry waited and no attempt was in progress */
};

/* What a query did: each instant of it belongs to one part.  Where several go on at once, the model
 * comes before tools, tools before a wait, a wait before the agent; tools of several names share
 * the instant equally. */
enum ipw_part_kind {
    IPW_PART_PREFILL,
    IPW_PART_DECODE,
    IPW_PART_LM,   /* an attempt outside both: a failed one, or between last token and close */
    IPW_PART_TOOL, /* by name */
    IPW_PART_WAIT, /* for the next attempt of a call */
    IPW_PART_AGENT,
    IPW_PART_KINDS,
};
/* "prefill", "decode", "lm", "tool", "wait", "agent", NULL */
extern const char *const ipw_part_kind_words[];

struct ipw_query_part {
    enum ipw_part_kind kind;
    char *name;    /* of the tool; else NULL */
    int64_t calls; /* attempts, tool calls or waits; 0 for the agent */
    double seconds;
    double j[IPW_DOMAIN_COUNT]; /* NAN: unknown */
    struct ipw_bounds bounds[IPW_DOMAIN_COUNT];
    double waste_j[IPW_DOMAIN_COUNT]; /* the part of j in attempts that were of no use */
};

/* Its texts are those of `texts`, of the JSON line that it was read from, or static. */
struct ipw_query_trace {
    struct ipw_texts texts;
    const char *id;
    int32_t index;
    int64_t start_ns, end_ns;
    int64_t scheduled_ns; /* when it was due (--rate); 0: not by a schedule */
    const char *outcome, *error;
    bool completed, timed_out;
    struct ipw_turn *turns;
    size_t n_turns, cap_turns;
    int64_t input_tokens, output_tokens; /* sums; -1 if any turn's value is unknown */
    size_t n_tool_calls;
    double agent_before_s;  /* before the first turn */
    struct ipw_turn before; /* only its spans are used: those that began before the first turn */
    /* For the query; equals the sum of turns + before. */
    struct ipw_figure energy[IPW_DOMAIN_COUNT];
    struct ipw_figure energy_before[IPW_DOMAIN_COUNT];
    /* By domain and name; a domain's energy is the sum of its devices'. */
    struct ipw_device *devices;
    size_t n_devices;
    struct ipw_figure *device_energy, *device_before; /* one for each device; NULL: no devices */
    struct ipw_query_account *device_account;         /* likewise; NULL also if unknown */
    double power_mean_w[IPW_DOMAIN_COUNT];
    struct ipw_power_stats power[IPW_DOMAIN_COUNT]; /* of the device, not shared; avg_w: the mean */
    struct ipw_query_account account[IPW_DOMAIN_COUNT];
    char *sources[IPW_DOMAIN_COUNT]; /* the summed channels, as a JSON array; NULL: none */
    struct ipw_query_part *parts;    /* in the order of their kinds, tools by name */
    size_t n_parts;
    struct ipw_metric *metrics; /* by name */
    size_t n_metrics, cap_metrics;
    bool lm_remote;      /* the model, or another that was asked, runs on another machine */
    unsigned lm_domains; /* with lm_remote: the domains read on that machine, as bits 1 << domain */
};

/* Energy values of a turn, all unknown; freed with the trace. */
struct ipw_figure *ipw_turn_figures(void);
/* The same for its spans, after the last was added. */
void ipw_turn_span_figures(struct ipw_turn *turn);

/* Collects the events of one query as they happen (and copies the facts it needs).  The energy
 * values are allocated when it finishes: otherwise thousands of waiting queries would hold 14 KiB
 * each. */
struct ipw_turn_builder;
struct ipw_turn_builder *ipw_turn_builder_new(void);
void ipw_turn_builder_add(struct ipw_turn_builder *b, const struct ipw_event *event);
/* Ends the query at `end_ns`, because nothing is known after it.  Open spans end there too, and
 * spans that began later get no length. */
void ipw_turn_builder_cut(struct ipw_turn_builder *b, int64_t end_ns);
/* Builds the trace of the added events (without energy yet) and frees the builder.  The caller
 * releases the trace. */
void ipw_turn_builder_finish(struct ipw_turn_builder *b, struct ipw_query_trace *out);
void ipw_turn_builder_free(struct ipw_turn_builder *b); /* NULL is fine */

/* The domains whose energy belongs to the model's machine, as bits 1 << domain.  All for a model on
 * this machine; 0 for a model on another machine without a readable sensor. */
unsigned ipw_turn_lm_domains(const struct ipw_query_trace *trace);
/* The sum over turns; NAN: the cost of one with a reply is not known.  A turn that failed adds what
 * it is known to cost. */
double ipw_query_trace_cost(const struct ipw_query_trace *trace);
/* Rounds the energy values and watts of a query, its turns and spans (trace/figure.h), so that they
 * are the same in memory and in its line.  False: they were rounded before. */
bool ipw_query_trace_round(struct ipw_query_trace *trace);
/* Frees the parts' names, not the array. */
void ipw_query_parts_release(struct ipw_query_part *parts, size_t n);
void ipw_query_trace_release(struct ipw_query_trace *trace);

#endif
