/* trace/event.h: what happened, as typed events.
 *
 * An event is one line of events.jsonl.  The struct holds the facts that the turn builder and the
 * ledger need; `payload` is the full record (request, reply, arguments, result) as raw JSON text,
 * written to the file and not kept in memory.  Times are monotonic, taken as the first statement of
 * the callback that saw the event.  Strings are borrowed by the call that takes the event, unless a
 * function says that it copies. */
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
    IPW_EV_LM_START,   /* "lm_inference_start": one attempt's request is sent */
    IPW_EV_LM_END,     /* "lm_inference_end": that attempt is over, well or badly */
    IPW_EV_TOOL_START, /* "tool_call_start" */
    IPW_EV_TOOL_END,   /* "tool_call_end" */
    IPW_EV_SPAN_START, /* "span_start": a stretch of time that a script named, or a web request */
    IPW_EV_SPAN_END,   /* "span_end" */
    IPW_EV_NOTE,       /* "note": something a script or the core wants on record */
    IPW_EV_QUERY_END,
    IPW_EV_RUN_END,
    IPW_EV_KINDS,
};
const char *ipw_event_name(enum ipw_event_kind kind);

/* What happens inside a tool that has a file of its own is numbered from here on: a replay has that
 * tool's result and does not run it, and numbers what is outside alike without it. */
enum { IPW_SPAN_INSIDE = 1 << 20 };

/* How one inference attempt ended. */
enum ipw_lm_outcome {
    IPW_LM_OK,
    IPW_LM_REFUSED, /* no connection */
    IPW_LM_TIMEOUT,
    IPW_LM_RESET,        /* broke before the first token */
    IPW_LM_CUT,          /* broke after it, or the stream ended without a finish */
    IPW_LM_HTTP_ERROR,   /* a status other than 2xx */
    IPW_LM_SERVER_ERROR, /* an error object inside a 200 */
    IPW_LM_BAD_REPLY,    /* not the protocol: not JSON, no choices */
    IPW_LM_TOO_LARGE,
    IPW_LM_CANCELLED,
    IPW_LM_OUTCOMES,
};
const char *ipw_lm_outcome_name(enum ipw_lm_outcome outcome);

/* When an attempt's parts came, on the run's clock; 0: not known. */
struct ipw_lm_times {
    int64_t sent_ns;                                   /* the request's start */
    int64_t headers_ns, first_byte_ns, first_event_ns; /* the status line; an event of any kind */
    int64_t first_token_ns, second_token_ns, last_token_ns;
    int64_t first_text_ns, first_reasoning_ns, first_call_ns;
    int64_t dns_ns, connect_ns, tls_ns; /* durations; 0 on a reused connection */
    int64_t gaps; /* between content events: how many; then their quantiles (0 gaps: not known) */
    int64_t gap_p50_ns, gap_p90_ns, gap_p99_ns, gap_max_ns;
    int64_t server_queue_ns, server_prefill_ns, server_decode_ns; /* as the server told them */
};

struct ipw_lm_cost {
    bool known; /* whether `usd` says anything */
    double usd;
    const char *source; /* "provider", "table" or "free" */
};

struct
    ipw_lm_facts {   /* of IPW_EV_LM_END; its t_ns is the attempt's close.  START: attempt, model */
    int attempt;     /* from 1, within one chat call */
    bool will_retry; /* another attempt of the same call follows */
    bool retryable;  /* it failed in a way that was worth repeating */
    enum ipw_lm_outcome outcome;
    int status;                /* HTTP status, 0 none */
    const char *error;         /* one line, or NULL */
    const char *model;         /* as the server named it, or NULL */
    const char *finish_reason; /* the server's word, or NULL */
    struct ipw_lm_times times;
    int64_t input_tokens, output_tokens, cached_tokens, reasoning_tokens; /* -1: not known */
    bool tokens_estimated;
    int calls;      /* tool calls in the reply */
    int64_t chunks; /* content events of a stream */
    int64_t bytes_sent, bytes_received;
    bool malformed;        /* set later by a note: the agent could not use the reply */
    int64_t retry_wait_ns; /* the wait announced before the next attempt; 0: none follows */
    const char *endpoint;  /* the base URL that was asked, or NULL */
    bool reused, resent;   /* the connection; the request was sent twice, the first unseen */
    struct ipw_lm_cost cost;
    const char *asked;     /* END: the model as the request named it; not written */
    int64_t forced_tokens; /* END: what the request asked for, or 0; not written */
    int64_t held_ns;       /* START: held back before it by the limit of requests in flight */
    int64_t send_cpu_ns; /* END: CPU time of this thread from the instant that the request was made
                            to wait for to its being sent, or 0; not written */
};

struct ipw_tool_facts {   /* of tools and of spans */
    const char *name;     /* START and END */
    const char *kind;     /* of a span, START and END: "event" or "http" */
    const char *call_id;  /* the model's, or ours; may be NULL */
    bool ok;              /* END */
    const char *outcome;  /* END: "ok", "error", "timeout", "bad_arguments", "unknown_tool", ... */
    int64_t result_bytes; /* END: what the model gets to read */
    const char *error;    /* END: one line, or NULL */
};

struct ipw_query_facts { /* START: id, prompt; END: the rest */
    const char *id;
    const char
        *outcome;      /* "answered", "max_turns", "error", "timeout", "cancelled", "interrupted" */
    bool completed;    /* the agent returned an answer */
    const char *error; /* one line, or NULL */
};

struct ipw_event {
    enum ipw_event_kind kind;
    int64_t t_ns;
    int32_t query; /* index of the query in the run; -1: the run itself */
    int32_t span;  /* joins a start to its end; unique within a query, from 1; 0: none */
    int64_t
        rows; /* rows of its segment in power.jsonl that the ledger had taken before it; 0: none,
                      or untold */
    int32_t segment; /* RUN_START: which session of the run begins, from 0 */
    struct ipw_lm_facts lm;
    struct ipw_tool_facts tool;
    struct ipw_query_facts q;
    const char *payload; /* JSON object text, or NULL */
    size_t payload_len;
};

/* Appends the event as one line with sorted keys and a newline.  The keys: "attempt", "data"
 * (payload), "event", "query", "span", "t_ns", and the facts of its kind under their own names. */
void ipw_event_write(struct ipw_buf *out, const struct ipw_event *event);
/* The reverse.  Strings point into `line`, which must outlive the event; payload is not set, use
 * ipw_json_get(line, "data").  Absent facts are read as not known. */
int ipw_event_read(struct ipw_event *out, const struct ipw_json *line, struct ipw_err *err);
/* Makes times and counts safe to add up (trace/spec.h), as reading does. */
void ipw_event_cut(struct ipw_event *event);

#endif
