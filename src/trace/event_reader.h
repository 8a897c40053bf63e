/* trace/event_reader.h: reads a saved run's events.jsonl for a replay.
 *
 * Returns parsed lines one at a time, in file order, and looks ahead for the next lines of one
 * query.  It holds only lines that were looked at and not yet dropped.  So memory depends on how
 * far the saved queries overlap, not on the length of the file.  A torn last line is ignored. */
#ifndef IPW_TRACE_EVENT_READER_H
#define IPW_TRACE_EVENT_READER_H

#include "trace/event.h"

struct ipw_event_reader;

struct ipw_event_line {
    int64_t number; /* line number in the file, from 1 */
    char *text;     /* without its line feed */
    size_t n;
    struct ipw_json *doc;
    const struct ipw_json *data; /* the payload, or NULL */
    struct ipw_event event;      /* its strings belong to `doc`; it has no payload */
    struct ipw_event_line *next;
};

/* A line of its own from its text, which it takes; NULL: it is not a line of events.jsonl. */
struct ipw_event_line *ipw_event_line_new(char *text, size_t n, struct ipw_err *err);
void ipw_event_line_free(struct ipw_event_line *line); /* NULL is fine */

int ipw_event_reader_open(struct ipw_event_reader **out, const char *run, struct ipw_err *err);
void ipw_event_reader_close(struct ipw_event_reader *events); /* NULL is fine */

/* 1: *line is the first line that was not dropped; 0: the end; negative: a damaged line, named by
 * file and number. */
int ipw_event_reader_head(struct ipw_event_reader *events, const struct ipw_event_line **line,
                          struct ipw_err *err);
/* The i-th line (from 0) of that query that was not dropped; NULL if there is none, or none within
 * `reach` lines. */
const struct ipw_event_line *ipw_event_reader_peek(struct ipw_event_reader *events, int32_t query,
                                                   size_t i, size_t reach);
void ipw_event_reader_drop(struct ipw_event_reader *events, const struct ipw_event_line *line);

/* Where each query begins for the last time.  If a session of the run was killed, or a query
 * failed, a later session begins the query again under the same index.  Reads the file from its
 * start. */
struct ipw_query_starts {
    int64_t *lines; /* line numbers by index; 0: unknown */
    size_t n, cap;
};
int ipw_query_starts(struct ipw_query_starts *out, const struct ipw_event_reader *events,
                     struct ipw_err *err);
void ipw_query_starts_release(struct ipw_query_starts *starts);

/* The messages of a request as they were sent: a list of JSON texts.  Reads the file from its
 * start, so use it for error messages, not for the replay itself. */
struct ipw_request_messages {
    char **texts;
    size_t n, cap;
};
/* The messages of the query's last request at or before line `upto`. */
int ipw_request_messages(struct ipw_request_messages *out, const struct ipw_event_reader *events,
                         int32_t query, int64_t upto, struct ipw_err *err);
void ipw_request_messages_release(struct ipw_request_messages *messages);
/* Applies a request line, which holds only the changes against the request before it. */
void ipw_request_messages_add(struct ipw_request_messages *messages, const struct ipw_json *data);

#endif
