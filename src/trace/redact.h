/* trace/redact.h: the files of a run without what was said in them.
 *
 * Texts are replaced by common words of the same length, so that a record stays a record and can be
 * sent again as a workload: equal texts become equal words, and texts that begin alike (to 64 bytes)
 * begin alike afterwards, so that prefix caches are hit as before.  Which words is decided by a hash
 * with a random key that is thrown away.  Lengths, times, token counts, figures, roles, ids of
 * queries, and the names of models and tools stay.  Pure but for the key. */
#ifndef IPW_TRACE_REDACT_H
#define IPW_TRACE_REDACT_H

#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "json/json.h"

enum ipw_redact {                      /* or-ed */
                  IPW_REDACT_TEXT = 1, /* prompts, replies, answers, metadata, scripts' own notes */
                  IPW_REDACT_TOOLS = 2, /* arguments, results, web requests, what scripts read */
                  IPW_REDACT_ALL = 3,   /* both */
};
/* "text", "tools", "all". */
int ipw_redact_parse(enum ipw_redact *out, const char *name, struct ipw_err *err);
const char *ipw_redact_name(enum ipw_redact what);

struct ipw_redactor {
    enum ipw_redact what;
    uint64_t key;
};
int ipw_redactor_init(struct ipw_redactor *r, enum ipw_redact what, struct ipw_err *err);

/* A line of events.jsonl (without newline). */
void ipw_redact_event(struct ipw_buf *out, const struct ipw_redactor *r,
                      const struct ipw_json *line);
/* A line of traces.jsonl, attempts.jsonl, warmup.jsonl. */
void ipw_redact_trace(struct ipw_buf *out, const struct ipw_redactor *r,
                      const struct ipw_json *line);
/* manifest.json, summary.json and the headers in power.jsonl: who ran it, where, with which words on
 * the command line, what the sensors say of paths and addresses. */
void ipw_redact_document(struct ipw_buf *out, const struct ipw_redactor *r,
                         const struct ipw_json *doc);

#endif
