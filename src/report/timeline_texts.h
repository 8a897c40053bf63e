/* report/timeline_texts.h: the texts of a run's events, for a timeline.
 *
 * Reads RUN/events.jsonl once and keeps the beginning of each reply, argument list and result, by
 * query and span.  For a missing or damaged file it keeps what it could read, and a remark.  Owns
 * its texts. */
#ifndef IPW_REPORT_TIMELINE_TEXTS_H
#define IPW_REPORT_TIMELINE_TEXTS_H

#include <stddef.h>
#include <stdint.h>

enum ipw_timeline_text_kind {
    IPW_TEXT_REASONING,
    IPW_TEXT_REPLY,
    IPW_TEXT_ARGUMENTS,
    IPW_TEXT_RESULT
};

struct ipw_timeline_text {
    int32_t query, span;
    enum ipw_timeline_text_kind kind;
    size_t order; /* if an attempt was run again, the later text counts */
    char *text;
};

struct ipw_timeline_texts {
    struct ipw_timeline_text *all;
    size_t n, cap;
    char remark[400]; /* "", or why texts may be missing */
};

#define IPW_TIMELINE_ALL INT32_MIN

/* `query`: the query to read, or IPW_TIMELINE_ALL.  `path` NULL: without texts. */
void ipw_timeline_texts_load(struct ipw_timeline_texts *texts, const char *path, int32_t query);
const char *ipw_timeline_texts_find(const struct ipw_timeline_texts *texts, int32_t query,
                                    int32_t span,
                                    enum ipw_timeline_text_kind kind); /* NULL when there is none */
void ipw_timeline_texts_release(struct ipw_timeline_texts *texts);

#endif
