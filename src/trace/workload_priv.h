/* trace/workload_priv.h: the index of a workload: the places of its requests in the file.
 *
 * workload_lines.c and workload_events.c fill it while they read the file once.  workload.c sorts
 * it by time and reads requests through it.  Internal to these files. */
#ifndef IPW_TRACE_WORKLOAD_PRIV_H
#define IPW_TRACE_WORKLOAD_PRIV_H

#include "base/buf.h"
#include "json/jsonl.h"
#include "trace/workload.h"

#define IPW_WORKLOAD_NONE UINT32_MAX

struct ipw_workload_place { /* one query */
    int64_t at_ns;
    uint32_t first; /* its first entry */
    uint32_t n;     /* number of requests, without those that were sent again */
    /* Of lines: offset in `names`, or IPW_WORKLOAD_ROW + the row number from 0 for a row without a
     * name; of a run: index in `starts`. */
    uint32_t name;
};
#define IPW_WORKLOAD_ROW (UINT32_C(1) << 31)

struct ipw_workload_facts { /* a request in a run, which stores it in several lines */
    int64_t at_ns, gap_ns;
    int32_t input_tokens, output_tokens; /* -1: unknown */
    /* again: the same request sent once more, not a turn of its own. */
    bool tokens_estimated, again;
};

struct ipw_workload_start { /* the start of a query in a run */
    int64_t offset;         /* of its line */
    uint32_t name;          /* offset in `names` */
    int epoch;
};

struct ipw_workload {
    char *path, *file; /* file: the file to read; for a run `path`/events.jsonl */
    bool lines;
    struct ipw_jsonl_reader *reader;
    struct ipw_workload_place *places;
    size_t n, cap, n_requests;
    /* Entries: one per request, in file order. */
    int64_t *offsets;
    uint32_t *next; /* next entry of the same query */
    size_t n_entries, cap_offsets, cap_next;
    struct ipw_buf names; /* each ends with a NUL */
    char row_name[24];
    int64_t zero_ns; /* of lines: the first time stamp of their clock */
    /* for runs only: */
    struct ipw_workload_facts *facts; /* one for each entry */
    struct ipw_workload_start *starts;
    size_t cap_facts, cap_starts;
};

/* Adds a query without requests. */
struct ipw_workload_place *ipw_workload_add(struct ipw_workload *w);
/* Adds an entry; `before` is the entry before it in the same query, or IPW_WORKLOAD_NONE.
 * IPW_ELIMIT: there are too many. */
int ipw_workload_entry(uint32_t *out, struct ipw_workload *w, int64_t offset, uint32_t before,
                       struct ipw_err *err);
/* Stores a name; IPW_ELIMIT: there are too many. */
int ipw_workload_name(uint32_t *at, struct ipw_workload *w, const char *name, struct ipw_err *err);
int ipw_workload_index_lines(struct ipw_workload *w, struct ipw_err *err);
int ipw_workload_index_events(struct ipw_workload *w, struct ipw_err *err);
/* Read one more request of a taken query into query->turn. */
int ipw_workload_read_line(struct ipw_workload_query *query, const struct ipw_jsonl_line *line,
                           struct ipw_err *err);
int ipw_workload_read_event(struct ipw_workload_query *query, const struct ipw_jsonl_line *line,
                            size_t entry, struct ipw_err *err);
int ipw_workload_read_start(struct ipw_workload_query *query, size_t start, struct ipw_err *err);

#endif
