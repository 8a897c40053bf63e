/* trace/event.h: the events of a run, as typed structs.
 *
 * An event is one line of events.jsonl.  The struct holds the facts that the turn builder and the
 * ledger need.  `payload` is the full content (request, reply, arguments, result) as raw JSON text;
 * it is written to the file and not kept in memory.  Times are monotonic, taken as the first
 * statement of the callback that saw the event.  A function that takes an event borrows its strings
 * for the call, unless its comment says that it copies them. */
#ifndef IPW_TRACE_EVENT_H
#define IPW_TRACE_EVENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "json/json.h"

enum ipw_event_kind {
    IPW_EV_RUN_START,
    IPW_EV_QUERY_START,
    IPW_EV_LM_START,   /* "lm_inference_start": the request of one attempt is sent */
    IPW_EV_LM_END,     /* "lm_inference_end": that attempt has ended, with success or not */
    IPW_EV_TOOL_START, /* "tool_call_start" */
    IPW_EV_TOOL_END,   /* "tool_call_end" */
    IPW_EV_TOOL_SPAN,  /* "tool_span": a program told when a tool ran */
    IPW_EV_SPAN_START, /* "span_start": a span that a script named, or a web request */
    IPW_EV_SPAN_END,   /* "span_end" */
    IPW_EV_NOTE,       /* "note": a fact that a script or the core stores */
    IPW_EV_QUERY_END,
    IPW_EV_RUN_END,
    IPW_EV_KINDS,
};
const char *ipw_event_name(enum ipw_event_kind kind);

/* Spans inside a tool that has its own file are numbered from here on.  A replay has that tool's
 * result and does not run it, so the spans outside get the same numbers without it. */
enum { IPW_SPAN_INSIDE = 1 << 20 };

/* How one inference attempt ended. */
enum ipw_lm_outcome {
    IPW_LM_OK,
    IPW_LM_REFUSED, /* no connection */
    IPW_LM_TIMEOUT,
    IPW_LM_RESET,        /* the connection broke before the first token */
    IPW_LM_CUT,          /* it broke after the first token, or the stream ended without a finish */
    IPW_LM_HTTP_ERROR,   /* a status other than 2xx */
    IPW_LM_CONTEXT_FULL, /* the server says that the request is longer than the context */
    IPW_LM_SERVER_ERROR, /* an error object inside a 200 */
    IPW_LM_BAD_REPLY,    /* not the protocol: not JSON, or no choices */
    IPW_LM_TOO_LARGE,
    IPW_LM_CANCELLED,
    IPW_LM_OUTCOMES,
};
const char *ipw_lm_outcome_name(enum ipw_lm_outcome outcome);

/* Times of an attempt, on the run's clock; 0: unknown. */
struct ipw_lm_times {
    int64_t sent_ns; /* the request's start */
    /* Arrival of the status line, of the first byte, of the first event of any kind. */
    int64_t headers_ns, first_byte_ns, first_event_ns;
    int64_t first_token_ns, second_token_ns, last_token_ns;
    int64_t first_text_ns, first_reasoning_ns, first_call_ns;
    int64_t dns_ns, connect_ns, tls_ns; /* durations; 0 on a reused connection */
    int64_t gaps; /* gaps between content events: their number, then quantiles (0 gaps: unknown) */
    int64_t gap_p50_ns, gap_p90_ns, gap_p99_ns, gap_max_ns;
    int64_t server_queue_ns, server_prefill_ns, server_decode_ns; /* as the server reported them */
};

struct ipw_lm_cost {
    bool known; /* false: usd is unknown */
    double usd;
    const char *source; /* "provider", "table" or "free" */
};

/* For IPW_EV_LM_END, whose t_ns is the attempt's close; LM_START: attempt, model. */
struct ipw_lm_facts {
    int attempt;     /* counted from 1, within one chat call */
    bool will_retry; /* another attempt of the same call follows */
    bool retryable;  /* the failure is of a kind that a retry may cure */
    enum ipw_lm_outcome outcome;
    int status;                /* HTTP status; 0: none */
    const char *error;         /* one line, or NULL */
    const char *model;         /* as the server named it, or NULL */
    const char *finish_reason; /* the server's own word, or NULL */
    struct ipw_lm_times times;
    int64_t input_tokens, output_tokens, cached_tokens, reasoning_tokens; /* -1: unknown */
    /* Prompt tokens put into the provider's cache, and of these those kept for an hour; 0: none, or
     * not reported. */
    int64_t cache_write_tokens, cache_write_1h_tokens;
    bool tokens_estimated;
    int calls;      /* number of tool calls in the reply */
    int64_t chunks; /* number of content events of a stream */
    int64_t bytes_sent, bytes_received;
    bool malformed;        /* a later note sets it: the agent could not use the reply */
    int64_t retry_wait_ns; /* announced wait before the next attempt; 0: no attempt follows */
    const char *endpoint;  /* the base URL of the request, or NULL */
    /* reused: an open connection; resent: sent twice, the server saw only the second. */
    bool reused, resent;
    struct ipw_lm_cost cost;
    const char *asked;     /* END: the model's name in the request; not written */
    int64_t forced_tokens; /* END: the output length that the request forces, or 0; not written */
    int64_t held_ns;       /* START: how long the in-flight limit delayed it */
    int64_t due_ns;        /* START: when the agent wanted it sent; 0: at once */
    /* END, of a request that was due: CPU time of this thread from the request's creation until it
     * was sent, or 0. */
    int64_t send_cpu_ns;
};

struct ipw_tool_facts {   /* for tools and spans */
    const char *name;     /* START and END */
    const char *kind;     /* spans, START and END: "event", "http" or "agent" */
    const char *call_id;  /* the model's id or our own; may be NULL */
    bool ok;              /* END */
    const char *outcome;  /* END: "ok", "error", "timeout", "bad_arguments", "unknown_tool", ... */
    int64_t result_bytes; /* END: size of the result that the model reads */
    const char *error;    /* END: one line, or NULL */
    /* Of tools; 0: unknown, or none. */
    int64_t argument_bytes; /* START: size of the arguments, as the model wrote them */
    int64_t cut_bytes;      /* END: bytes of the result that a cap left out */
    int64_t child_cpu_ns, child_peak_bytes; /* END: what its child processes used (io/proc.h) */
    /* END: how that is known, one of ipw_child_provenance_words; NULL: no child process ran */
    const char *child_provenance;
    int64_t from_ns, to_ns; /* TOOL_SPAN: when it ran; not after the event */
};
/* "rusage": as they ended; "unknown": one stays or was cancelled; NULL */
extern const char *const ipw_child_provenance_words[];

struct ipw_query_facts { /* START: id, scheduled_ns, scope; END: the rest and id */
    const char *id;
    int64_t scope; /* in a merged run: the place of its scope in the run_start, from 1; 0: none */
    const char
        *outcome;      /* "answered", "max_turns", "error", "timeout", "cancelled", "interrupted" */
    bool completed;    /* the agent returned an answer */
    const char *error; /* one line, or NULL */
    int64_t scheduled_ns; /* START: when it was due (--rate); 0: not by a schedule */
    /* END: it ended then, which only its silence until now has told; 0: it ends now. */
    int64_t ended_ns;
};

struct ipw_event {
    enum ipw_event_kind kind;
    int64_t t_ns;
    int32_t query;  /* index of the query in the run; -1: the run itself */
    int32_t span;   /* joins a start and its end; unique within a query, from 1; 0: none */
    int32_t inside; /* of a start: the span of the agent that it belongs to; 0: the main one */
    int64_t
        /* Rows of its session in power.jsonl that the ledger had taken before it; 0: none or
         * unknown. */
        rows;
    int32_t segment; /* RUN_START: the session of the run that begins, from 0 */
    struct ipw_lm_facts lm;
    struct ipw_tool_facts tool;
    struct ipw_query_facts q;
    const char *payload; /* JSON object text, or NULL */
    size_t payload_len;
};

/* Appends the event as one line with sorted keys and a newline.  Its keys: "attempt", "data"
 * (payload), "event", "query", "span", "t_ns", and the facts of its kind under their own names. */
void ipw_event_write(struct ipw_buf *out, const struct ipw_event *event);
/* The document of such a line, for a reader that follows a run: the data of run_start, query_start
 * and note are in it.  Those of a request, a reply or a tool call, most of the file, are null.
 * `repairs`: see ipw_json_parse(). */
int ipw_event_parse(struct ipw_json **line, const char *text, size_t n, size_t *repairs,
                    struct ipw_err *err);
/* Reads such a line.  Strings point into `line`, which must outlive the event.  The payload is not
 * set; use ipw_json_get(line, "data").  Absent facts are unknown. */
int ipw_event_read(struct ipw_event *out, const struct ipw_json *line, struct ipw_err *err);
/* Sets the payload to the text of "data" in the event's line, as ipw_event_write() wrote it: to
 * write the event again with other facts. */
void ipw_event_take_payload(struct ipw_event *event, const char *line, size_t n);
/* Moves each instant that the event tells by `ahead_ns`, to another clock; one that is then later
 * than `latest_ns` becomes that.  Unknown instants (0) stay. */
void ipw_event_move(struct ipw_event *event, int64_t ahead_ns, int64_t latest_ns);
/* When the query of a query_end ended: not after the event. */
int64_t ipw_event_end_ns(const struct ipw_event *event);
/* Limits times and counts so that they can be added safely (trace/spec.h), as reading does. */
void ipw_event_cut(struct ipw_event *event);

#endif
