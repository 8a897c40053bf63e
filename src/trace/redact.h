/* trace/redact.h: removes the texts from the files of a run.
 *
 * Texts are replaced by common words of the same length, so the run stays readable and can be sent
 * again as a workload.  Equal texts become equal words.  Texts with the same beginning (of 64 bytes
 * or more) keep a common beginning, so prefix caches are hit as before.  A hash with a random key,
 * which is thrown away, selects the words.  Lengths, times, token counts, energy values, roles, ids
 * of queries, and the names of models and tools stay: the tables of the format (trace/spec.h) flag
 * them.  A text that no table names is hidden.  Pure except for the key. */
#ifndef IPW_TRACE_REDACT_H
#define IPW_TRACE_REDACT_H

#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "json/json.h"

enum ipw_redact {                      /* flags */
                  IPW_REDACT_TEXT = 1, /* prompts, replies, answers, metadata, scripts' own notes */
                  /* Arguments, results, web requests, data that scripts read. */
                  IPW_REDACT_TOOLS = 2,
                  IPW_REDACT_ALL = 3, /* both */
};
/* "text", "tools", "all". */
int ipw_redact_parse(enum ipw_redact *out, const char *name, struct ipw_err *err);
const char *ipw_redact_name(enum ipw_redact what);

struct ipw_redactor {
    enum ipw_redact what;
    uint64_t key;
};
int ipw_redactor_init(struct ipw_redactor *r, enum ipw_redact what, struct ipw_err *err);

/* Redacts a line of events.jsonl (without newline). */
void ipw_redact_event(struct ipw_buf *out, const struct ipw_redactor *r,
                      const struct ipw_json *line);
/* Redacts a line of traces.jsonl, attempts.jsonl, warmup.jsonl. */
void ipw_redact_trace(struct ipw_buf *out, const struct ipw_redactor *r,
                      const struct ipw_json *line);
/* Redacts manifest.json, summary.json and the headers in power.jsonl: user, machine, command line,
 * and the sensors' texts with paths and addresses. */
void ipw_redact_document(struct ipw_buf *out, const struct ipw_redactor *r,
                         const struct ipw_json *doc);

#endif
