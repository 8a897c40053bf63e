/* The Mooncake line format (reference/agent-harnesses.md 1c), read. */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "trace/workload.h"
#include "json/json.h"
#include "json/jsonl.h"

enum { MOST_TOKENS = 16 * 1024 * 1024 };
#define LINE_MAX_BYTES (64 * IPW_MIB)
#define NS_PER_MS      1e6

static int read_count(int64_t *out, const struct ipw_json *row, const char *key,
                      struct ipw_err *err)
{
    int rc = ipw_json_need_int(out, row, key, "", err);

    if (!rc && (*out < 0 || *out > MOST_TOKENS))
        rc = ipw_fail(err, IPW_EPARSE, "%s: expected a count of tokens, at most %d", key,
                      MOST_TOKENS);
    return rc;
}

/* Milliseconds, zero or more; false when the row has none. */
static bool read_ms(int64_t *ns, const struct ipw_json *row, const char *key, int *rc,
                    struct ipw_err *err)
{
    double ms;

    if (*rc || ipw_json_is_null(ipw_json_get(row, key))) return false;
    *rc = ipw_json_need_num(&ms, row, key, "", err);
    if (!*rc && !(ms >= 0 && ms < 1e13))
        *rc = ipw_fail(err, IPW_EPARSE, "%s: expected milliseconds, zero or more", key);
    if (!*rc) *ns = (int64_t)(ms * NS_PER_MS + 0.5);
    return !*rc;
}

static int read_blocks(struct ipw_workload_turn *turn, const struct ipw_json *row,
                       struct ipw_err *err)
{
    const struct ipw_json *ids = ipw_json_get(row, "hash_ids");

    if (ipw_json_is_null(ids)) return 0;
    if (ipw_json_kind(ids) != IPW_JSON_ARR)
        return ipw_fail(err, IPW_EPARSE, "hash_ids: expected a list");
    for (const struct ipw_json *id = ipw_json_first(ids); id; id = ipw_json_next(id)) {
        if (ipw_json_kind(id) != IPW_JSON_INT)
            return ipw_fail(err, IPW_EPARSE, "hash_ids[%zu]: expected an integer", turn->n_blocks);
        IPW_GROW(turn->blocks, turn->cap_blocks, turn->n_blocks + 1);
        turn->blocks[turn->n_blocks++] = ipw_json_int(id, 0);
    }
    return 0;
}

/* Rows of one session_id are the requests of one query; others are queries by themselves. */
static struct ipw_workload_query *query_of(struct ipw_workload *w, const struct ipw_json *row,
                                           int64_t number)
{
    const struct ipw_json *session = ipw_json_get(row, "session_id");
    struct ipw_workload_query *q;
    char id[40];

    snprintf(id, sizeof id, "%lld", (long long)ipw_json_int(session, number - 1));
    if (ipw_json_is_null(session)) {
        snprintf(id, sizeof id, "r%05lld", (long long)number - 1);
    } else {
        const char *name = ipw_json_str(session, id);

        for (size_t i = w->n; i-- > 0;)
            if (strcmp(w->queries[i].id, name) == 0) return &w->queries[i];
        q = ipw_workload_add(w);
        q->id = ipw_strdup(name);
        return q;
    }
    q = ipw_workload_add(w);
    q->id = ipw_strdup(id);
    return q;
}

static int read_row(struct ipw_workload *w, const struct ipw_json *row, int64_t number,
                    struct ipw_err *err)
{
    struct ipw_workload_query *q;
    struct ipw_workload_turn *turn;
    int rc = 0;
    bool timed;

    if (ipw_json_kind(row) != IPW_JSON_OBJ) return ipw_fail(err, IPW_EPARSE, "expected an object");
    q = query_of(w, row, number);
    turn = ipw_workload_add_turn(q);
    timed = read_ms(&turn->at_ns, row, "timestamp", &rc, err);
    read_ms(&turn->gap_ns, row, "delay", &rc, err); /* none: at once */
    if (rc) return rc;
    if (!timed) {
        if (q->n == 1)
            return ipw_fail(err, IPW_EPARSE, "timestamp: expected milliseconds, and it is missing");
        turn->at_ns = turn[-1].at_ns + turn->gap_ns;
    }
    if (q->n == 1) q->at_ns = turn->at_ns;
    rc = read_count(&turn->input_tokens, row, "input_length", err);
    if (!rc) rc = read_count(&turn->output_tokens, row, "output_length", err);
    return rc ? rc : read_blocks(turn, row, err);
}

int ipw_workload_read_lines(struct ipw_workload *w, struct ipw_err *err)
{
    struct ipw_jsonl_reader *reader;
    struct ipw_jsonl_line line;
    int64_t first_ns = INT64_MAX;
    int rc = ipw_jsonl_open(&reader, w->path, LINE_MAX_BYTES, err);

    if (rc) return rc;
    while ((rc = ipw_jsonl_next(reader, &line, err)) > 0) {
        struct ipw_json *row = NULL;

        rc = ipw_json_parse(&row, line.text, line.n, NULL, err);
        if (!rc) rc = read_row(w, row, line.number, err);
        ipw_json_free(row);
        if (rc) {
            ipw_err_prefix(err, "%s:%lld", w->path, (long long)line.number);
            break;
        }
    }
    ipw_jsonl_close(reader);
    if (rc < 0) return rc;
    /* The first request begins it, whatever its time stamp. */
    for (size_t i = 0; i < w->n; i++)
        if (w->queries[i].at_ns < first_ns) first_ns = w->queries[i].at_ns;
    for (size_t i = 0; i < w->n; i++) {
        w->queries[i].at_ns -= first_ns;
        for (size_t k = 0; k < w->queries[i].n; k++) w->queries[i].turns[k].at_ns -= first_ns;
    }
    return 0;
}
