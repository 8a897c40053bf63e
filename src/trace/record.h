/* trace/record.h: a run's events.jsonl, read as the script of a replay.
 *
 * Hands out the lines in the order of the file, parsed, one at a time, and looks ahead for the next
 * lines of one query where a replay needs them.  Holds only what was looked at and not yet dropped:
 * memory follows how far the queries of the record overlap, not its length.  A torn last line is not
 * part of the record. */
#ifndef IPW_TRACE_RECORD_H
#define IPW_TRACE_RECORD_H

#include "trace/event.h"

struct ipw_record;

struct ipw_record_line {
    int64_t number; /* in the file, from 1 */
    char *text;     /* without its line feed */
    size_t n;
    struct ipw_json *doc;
    const struct ipw_json *data; /* the payload, or NULL */
    struct ipw_event event;      /* its strings are the document's */
    struct ipw_record_line *next;
};

int ipw_record_open(struct ipw_record **out, const char *run, struct ipw_err *err);
void ipw_record_close(struct ipw_record *record); /* NULL is fine */

/* 1: *line is the first that was not dropped; 0: the end; negative: damage, named by file and line. */
int ipw_record_head(struct ipw_record *record, const struct ipw_record_line **line,
                    struct ipw_err *err);
/* The i-th line (from 0) of that query that was not dropped; NULL when there is none, or none within
 * `reach` lines. */
const struct ipw_record_line *ipw_record_peek(struct ipw_record *record, int32_t query, size_t i,
                                              size_t reach);
void ipw_record_drop(struct ipw_record *record, const struct ipw_record_line *line);

/* Where each query begins for the last time: after a session of the run was cut down, or a query
 * failed, a later session begins it again under the same index.  Reads the file from its start. */
struct ipw_record_starts {
    int64_t *lines; /* by index; 0: none is known */
    size_t n, cap;
};
int ipw_record_starts(struct ipw_record_starts *out, const struct ipw_record *record,
                      struct ipw_err *err);
void ipw_record_starts_release(struct ipw_record_starts *starts);

/* The messages of a request as they were sent: a list of JSON texts.  Reads the file from its start:
 * for messages about a request, not for the replay itself. */
struct ipw_record_messages {
    char **texts;
    size_t n, cap;
};
/* Of the query's last request that stands at or before line `upto`. */
int ipw_record_messages(struct ipw_record_messages *out, const struct ipw_record *record,
                        int32_t query, int64_t upto, struct ipw_err *err);
void ipw_record_messages_release(struct ipw_record_messages *messages);
/* What a request line says, on top of the request before it. */
void ipw_record_messages_add(struct ipw_record_messages *messages, const struct ipw_json *data);

#endif
