/* trace/schema.h: writes a query's trace as one line of traces.jsonl, and reads it.
 *
 * The line is a superset of upstream's QueryTrace and TurnTrace (names, types and null rules), with
 * sorted keys; our extra keys come on top.  Reading is lenient: a line written by upstream (either
 * generation) loads as well.  docs/trace-format.md specifies the format. */
#ifndef IPW_TRACE_SCHEMA_H
#define IPW_TRACE_SCHEMA_H

#include <math.h>

#include "base/clock.h"
#include "trace/spec.h"
#include "trace/turn.h"

/* What a judge model said of a query's answer, and what that took.  It was asked after the query,
 * outside of its window.  Texts are NULL and numbers NAN or -1 where they are unknown. */
struct ipw_judgement {
    const char *verdict; /* "correct", "incorrect", "not_attempted" */
    const char *reason;  /* why there is no verdict */
    const char *text;    /* the judge's reply */
    const char *model;
    int64_t asked; /* model calls; 0: not asked */
    int64_t input_tokens, output_tokens;
    double cost_usd, wall_s;
    double gpu_j, cpu_j, gpu_w, cpu_w;
};

#define IPW_JUDGEMENT_NONE                                                                         \
    {                                                                                              \
        .input_tokens = -1, .output_tokens = -1, .cost_usd = NAN, .wall_s = NAN, .gpu_j = NAN,     \
        .cpu_j = NAN, .gpu_w = NAN, .cpu_w = NAN                                                   \
    }

/* A query's values besides its turns.  Borrowed by the writer; owned by the reader's result. */
struct ipw_query_details {
    const char *workload_type; /* NULL: the metadata's, else "agentic" */
    const char *query_text;
    const char *response_text;     /* the agent's answer or the error's text */
    const char *reference_answer;  /* of the dataset, or NULL */
    const char *reference;         /* JSON object text: what else the scorer knows; or NULL */
    const char *subject;           /* or NULL */
    const char *answer;            /* extracted final answer, or NULL */
    const char *answer_source;     /* "marker", "tool", "last_line", "none", or NULL */
    int is_resolved;               /* 1, 0, or -1: unknown */
    const char *unscorable_reason; /* or NULL */
    const char *score_metadata;    /* JSON object text, or NULL */
    const char *metadata;          /* JSON object text: level, files, ...; or NULL */
    const char *model;
    double cost_usd;                    /* NAN: unknown */
    int n_malformed;                    /* number of replies that the agent could not use */
    int64_t lua_peak_bytes, lua_cpu_ns; /* -1: unknown */
    int epoch;
    int segment;                       /* the session of the run, from 0 */
    const struct ipw_judgement *judge; /* NULL: there is none */
    const char *superseded;            /* for an earlier attempt: "cut", "failed", ...; or NULL */
};

/* Appends the line without its newline.  `anchor` NULL leaves "started_at" null. */
void ipw_schema_write_query(struct ipw_buf *out, const struct ipw_query_trace *trace,
                            const struct ipw_query_details *details,
                            const struct ipw_anchor *anchor);

/* A trace that was read: `doc` owns the strings of `details` and the reasons of the energy
 * values. */
struct ipw_query_loaded {
    struct ipw_query_trace trace;
    struct ipw_query_details details;
    struct ipw_json *doc;
    char *texts[3];              /* details.metadata, .score_metadata and .reference */
    struct ipw_judgement *judge; /* details.judge, or NULL */
    const char *started_at;      /* as written, or NULL */
    const char *line; /* the line itself, n bytes; only within ipw_rundir_each_query()'s callback */
    size_t line_n;
    int version; /* schema_version; 0: upstream's line, whose joules count as "estimated" */
};
/* On failure *out needs no release, and the message names the field at fault. */
int ipw_schema_read_query(struct ipw_query_loaded *out, const char *line, size_t n,
                          struct ipw_err *err);
/* The same without the query's turns, spans and accounts: its `trace` has none of them, and they
 * are not checked.  A line with a damaged byte is refused. */
int ipw_schema_read_head(struct ipw_query_loaded *out, const char *line, size_t n,
                         struct ipw_err *err);
/* The same of a line that was parsed.  *out takes the document over, also on failure. */
int ipw_schema_read_parsed(struct ipw_query_loaded *out, struct ipw_json *line,
                           struct ipw_err *err);
void ipw_query_loaded_release(struct ipw_query_loaded *loaded);

/* Writes bounds as {hi, lo, u} under a key; nothing where they are not known. */
void ipw_bounds_write(struct ipw_jw *w, const char *key, struct ipw_bounds b);
/* An object of those of each domain; `of`: an array of IPW_DOMAIN_COUNT. */
void ipw_bounds_write_domains(struct ipw_jw *w, const struct ipw_bounds *of);

#endif
