/* trace/workload_priv.h: where the requests of a workload stand in its file.
 *
 * Filled by workload_lines.c and workload_record.c while they read the file once, in its order; put
 * into the order of time by workload.c, which reads from it.  Not for other floors. */
#ifndef IPW_TRACE_WORKLOAD_PRIV_H
#define IPW_TRACE_WORKLOAD_PRIV_H

#include "base/buf.h"
#include "json/jsonl.h"
#include "trace/workload.h"

#define IPW_WORKLOAD_NONE UINT32_MAX

struct ipw_workload_place { /* a query */
    int64_t at_ns;
    uint32_t first; /* entry */
    uint32_t n;     /* requests, without those that were sent again */
    uint32_t name; /* of lines: where in `names`, or IPW_WORKLOAD_ROW + its row from 0, which has no
                       name; of a record: which of `starts` */
};
#define IPW_WORKLOAD_ROW (UINT32_C(1) << 31)

struct ipw_workload_facts { /* of a request in a record, which holds them in several lines */
    int64_t at_ns, gap_ns;
    int32_t input_tokens, output_tokens; /* -1: not known */
    bool tokens_estimated, again; /* again: the same request sent once more, no turn of its own */
};

struct ipw_workload_start { /* of a query in a record */
    int64_t offset;         /* of its line */
    uint32_t name;          /* where in `names` */
    int epoch;
};

struct ipw_workload {
    char *path, *file; /* file: that is read; `path`/events.jsonl of a run */
    bool lines;
    struct ipw_jsonl_reader *reader;
    struct ipw_workload_place *places;
    size_t n, cap, n_requests;
    /* Entries: one a request, in the order of the file. */
    int64_t *offsets;
    uint32_t *next; /* of the same query */
    size_t n_entries, cap_offsets, cap_next;
    struct ipw_buf names; /* each ends with a NUL */
    char row_name[24];
    int64_t zero_ns; /* of the lines' clock: the first time stamp */
    /* of a record only */
    struct ipw_workload_facts *facts; /* by entry */
    struct ipw_workload_start *starts;
    size_t cap_facts, n_starts, cap_starts;
};

/* A query more, without requests. */
struct ipw_workload_place *ipw_workload_add(struct ipw_workload *w);
/* An entry more; `before` is the same query's before it, or IPW_WORKLOAD_NONE.  IPW_ELIMIT: there
 * are too many. */
int ipw_workload_entry(uint32_t *out, struct ipw_workload *w, int64_t offset, uint32_t before,
                       struct ipw_err *err);
/* IPW_ELIMIT likewise. */
int ipw_workload_name(uint32_t *at, struct ipw_workload *w, const char *name, struct ipw_err *err);
int ipw_workload_index_lines(struct ipw_workload *w, struct ipw_err *err);
int ipw_workload_index_record(struct ipw_workload *w, struct ipw_err *err);
/* Reads one more request of a taken query into query->turn. */
int ipw_workload_read_line(struct ipw_workload_query *query, const struct ipw_jsonl_line *line,
                           struct ipw_err *err);
int ipw_workload_read_record(struct ipw_workload_query *query, const struct ipw_jsonl_line *line,
                             size_t entry, struct ipw_err *err);
int ipw_workload_read_start(struct ipw_workload_query *query, size_t start, struct ipw_err *err);

/* Numbers below 2^32 - 1 by a key that hashes to 64 bits; `same` tells whether a number's key is
 * this one. */
struct ipw_workload_table {
    uint32_t *slots; /* IPW_WORKLOAD_NONE: free */
    uint64_t *hashes;
    size_t n, cap;
};
typedef bool (*ipw_workload_same)(const void *ud, uint32_t number, const void *key);
/* Where that key's number stands; IPW_WORKLOAD_NONE stands there when it is new, and the caller puts
 * another. */
uint32_t *ipw_workload_table_at(struct ipw_workload_table *t, uint64_t hash, ipw_workload_same same,
                                const void *ud, const void *key);
uint32_t ipw_workload_table_get(const struct ipw_workload_table *t, uint64_t hash,
                                ipw_workload_same same, const void *ud, const void *key);
void ipw_workload_table_remove(struct ipw_workload_table *t, uint64_t hash, ipw_workload_same same,
                               const void *ud, const void *key);
void ipw_workload_table_release(struct ipw_workload_table *t);
uint64_t ipw_workload_hash(const char *text, uint64_t seed);

#endif
