/* Reads the Mooncake line format (docs/trace-format.md describes its fields). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/table.h"
#include "json/json.h"
#include "trace/workload_priv.h"

enum { MOST_TOKENS = 16 * 1024 * 1024 };
#define NS_PER_MS 1e6

/* ---- one row ---- */

static int read_count(int64_t *out, const struct ipw_json *row, const char *key,
                      struct ipw_err *err)
{
    int rc = ipw_json_need_int(out, row, key, "", err);

    if (!rc && (*out < 0 || *out > MOST_TOKENS))
        rc = ipw_fail(err, IPW_EPARSE, "%s: expected a count of tokens, at most %d", key,
                      MOST_TOKENS);
    return rc;
}

/* Reads milliseconds, zero or more; leaves *ns unchanged if the row has none. */
static void read_ms(int64_t *ns, const struct ipw_json *row, const char *key, int *rc,
                    struct ipw_err *err)
{
    double ms;

    if (*rc || ipw_json_is_null(ipw_json_get(row, key))) return;
    *rc = ipw_json_need_num(&ms, row, key, "", err);
    if (!*rc && !(ms >= 0 && ms < 1e12))
        *rc = ipw_fail(err, IPW_EPARSE, "%s: expected milliseconds, zero or more", key);
    if (!*rc) *ns = (int64_t)(ms * NS_PER_MS + 0.5);
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

static int read_session(char **session, const struct ipw_json *row, struct ipw_err *err)
{
    const struct ipw_json *id = ipw_json_get(row, "session_id");

    if (ipw_json_is_null(id)) return 0;
    if (ipw_json_kind(id) == IPW_JSON_STR)
        *session = ipw_strdup(ipw_json_str(id, ""));
    else if (ipw_json_kind(id) == IPW_JSON_INT)
        *session = ipw_asprintf("%lld", (long long)ipw_json_int(id, 0));
    else
        return ipw_fail(err, IPW_EPARSE, "session_id: expected a text or an integer");
    return 0;
}

static int read_row(struct ipw_workload_turn *turn, char **session, const struct ipw_json *row,
                    struct ipw_err *err)
{
    int rc = 0;

    if (ipw_json_kind(row) != IPW_JSON_OBJ) return ipw_fail(err, IPW_EPARSE, "expected an object");
    rc = read_session(session, row, err);
    read_ms(&turn->at_ns, row, "timestamp", &rc, err);
    read_ms(&turn->gap_ns, row, "delay", &rc, err); /* absent: no delay */
    if (rc) return rc;
    rc = read_count(&turn->input_tokens, row, "input_length", err);
    if (!rc) rc = read_count(&turn->output_tokens, row, "output_length", err);
    return rc ? rc : read_blocks(turn, row, err);
}

int ipw_workload_row(struct ipw_workload_turn *turn, char **session, const char *text, size_t n,
                     struct ipw_err *err)
{
    struct ipw_json *row = NULL;
    int rc;

    *turn = (struct ipw_workload_turn){.at_ns = -1, .input_tokens = -1, .output_tokens = -1};
    *session = NULL;
    rc = ipw_json_parse(&row, text, n, NULL, err);
    if (!rc) rc = read_row(turn, session, row, err);
    ipw_json_free(row);
    return rc;
}

/* A row without a time stamp comes its delay after the row before it in its session. */
static int settle_time(struct ipw_workload_turn *turn, bool first, int64_t before_ns,
                       struct ipw_err *err)
{
    if (turn->at_ns >= 0) return 0;
    if (first) return ipw_fail(err, IPW_EPARSE, "timestamp: missing; expected milliseconds");
    turn->at_ns = before_ns > INT64_MAX - turn->gap_ns ? INT64_MAX : before_ns + turn->gap_ns;
    return 0;
}

/* ---- the index of all rows ---- */

struct tail { /* a session's last row so far */
    uint32_t entry;
    int64_t at_ns;
};

struct indexing {
    struct ipw_workload *w;
    struct ipw_table sessions; /* places, by name */
    struct tail *tails;        /* by index of place; for sessions only */
    size_t n_tails, cap_tails;
};

static bool is_called(const void *ud, uint32_t number, const void *name)
{
    const struct ipw_workload *w = ud;

    return strcmp(w->names.data + w->places[number].name, name) == 0;
}

static struct tail *tail_of(struct indexing *x, uint32_t place)
{
    IPW_GROW(x->tails, x->cap_tails, (size_t)place + 1);
    while (x->n_tails <= place) x->tails[x->n_tails++] = (struct tail){IPW_WORKLOAD_NONE, 0};
    return &x->tails[place];
}

/* Rows with the same session_id are the requests of one query; any other row is its own query. */
static int place_of(uint32_t *place, struct indexing *x, const char *session, int64_t number,
                    struct ipw_err *err)
{
    struct ipw_workload *w = x->w;
    uint32_t name = IPW_WORKLOAD_ROW + (uint32_t)(number - 1), *at;
    int rc;

    if (number >= IPW_WORKLOAD_ROW)
        return ipw_fail(err, IPW_ELIMIT, "more than %u lines", IPW_WORKLOAD_ROW - 1);
    *place = (uint32_t)w->n;
    if (session) {
        at = ipw_table_at(&x->sessions, ipw_table_text_key(session, 0), session);
        if (*at != IPW_TABLE_NONE) {
            *place = *at;
            return 0;
        }
        rc = ipw_workload_name(&name, w, session, err);
        if (rc) return rc;
        *at = *place;
    }
    ipw_workload_add(w)->name = name;
    return 0;
}

static int index_line(struct indexing *x, const struct ipw_jsonl_line *line, struct ipw_err *err)
{
    struct ipw_workload *w = x->w;
    struct ipw_workload_turn turn;
    struct tail *tail = NULL;
    uint32_t at = 0, entry = 0;
    bool first = false;
    char *session;
    int rc = ipw_workload_row(&turn, &session, line->text, line->n, err);

    if (!rc) rc = place_of(&at, x, session, line->number, err);
    if (!rc) {
        if (session) tail = tail_of(x, at);
        first = w->places[at].first == IPW_WORKLOAD_NONE;
        rc = settle_time(&turn, first, tail ? tail->at_ns : 0, err);
    }
    if (!rc)
        rc = ipw_workload_entry(&entry, w, line->offset, tail ? tail->entry : IPW_WORKLOAD_NONE,
                                err);
    if (!rc) {
        if (first) w->places[at].first = entry;
        if (first) w->places[at].at_ns = turn.at_ns;
        if (tail) *tail = (struct tail){entry, turn.at_ns};
        w->places[at].n++;
    }
    ipw_workload_turn_release(&turn);
    free(session);
    return rc;
}

int ipw_workload_index_lines(struct ipw_workload *w, struct ipw_err *err)
{
    struct indexing x = {.w = w, .sessions = {.same = is_called, .ud = w}};
    struct ipw_jsonl_line line;
    int64_t first_ns = INT64_MAX;
    int rc;

    while ((rc = ipw_jsonl_next(w->reader, &line, err)) > 0) {
        rc = index_line(&x, &line, err);
        if (rc) {
            ipw_err_prefix(err, "%s:%lld", w->path, (long long)line.number);
            break;
        }
    }
    ipw_table_release(&x.sessions);
    free(x.tails);
    if (rc) return rc;
    /* The first request starts the workload, whatever its time stamp. */
    for (size_t i = 0; i < w->n; i++)
        if (w->places[i].at_ns < first_ns) first_ns = w->places[i].at_ns;
    for (size_t i = 0; i < w->n; i++) w->places[i].at_ns -= first_ns;
    w->zero_ns = first_ns;
    return 0;
}

/* ---- one row again ---- */

int ipw_workload_read_line(struct ipw_workload_query *q, const struct ipw_jsonl_line *line,
                           struct ipw_err *err)
{
    int64_t before_ns = q->turn.at_ns;
    char *session;
    int rc;

    ipw_workload_turn_release(&q->turn);
    rc = ipw_workload_row(&q->turn, &session, line->text, line->n, err);
    free(session);
    if (!rc && q->turn.at_ns >= 0) q->turn.at_ns -= q->workload->zero_ns;
    return rc ? rc : settle_time(&q->turn, q->n_read == 0, before_ns, err);
}
