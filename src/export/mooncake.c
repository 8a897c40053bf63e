#include "export/mooncake.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/table.h"
#include "json/json.h"
#include "json/jsonl.h"
#include "json/write.h"
#include "trace/workload.h"

#define NS_PER_MS 1e6

struct place { /* the place of a request in the workload */
    int64_t at_ns;
    uint32_t query, turn;
};

struct writing {
    FILE *out;
    struct ipw_table seen; /* beginnings of prompts, by hash */
    double bytes_a_token;
    size_t guessed;
    struct place *places;
    size_t n_places;
    struct ipw_workload_query *
        *taken; /* by query; the queries of which some requests are written */
};

/* ---- the prompt as text: tools, which templates put first, then the messages ---- */

static void add_text(struct ipw_buf *out, const struct ipw_workload_turn *turn)
{
    struct ipw_json *rest = NULL;

    if (turn->rest && ipw_json_parse(&rest, turn->rest, strlen(turn->rest), NULL, NULL) == 0 &&
        ipw_json_get(rest, "tools"))
        ipw_json_print(out, ipw_json_get(rest, "tools"));
    ipw_json_free(rest);
    for (size_t i = 0; i < turn->n_messages; i++) ipw_buf_adds(out, turn->messages[i]);
}

/* The times of the requests, and the mean bytes of their tokens. */
static int look_through(struct writing *x, struct ipw_workload *w, struct ipw_err *err)
{
    double bytes = 0, tokens = 0;
    int rc = 0;

    x->places = ipw_calloc(ipw_workload_requests(w), sizeof *x->places);
    for (size_t i = 0; i < ipw_workload_count(w) && !rc; i++) {
        struct ipw_workload_query *q;

        rc = ipw_workload_take(&q, w, i, err);
        if (rc) break;
        while ((rc = ipw_workload_next(q, err)) > 0) {
            struct ipw_buf text = IPW_BUF(IPW_LINE_MAX);

            x->places[x->n_places++] = (struct place){
                .query = (uint32_t)i, .turn = (uint32_t)q->n_read - 1, .at_ns = q->turn.at_ns};
            if (q->turn.input_tokens <= 0) continue;
            add_text(&text, &q->turn);
            bytes += (double)text.len;
            tokens += (double)q->turn.input_tokens;
            ipw_buf_release(&text);
        }
        ipw_workload_drop(q);
    }
    x->bytes_a_token = tokens > 0 && bytes > tokens ? bytes / tokens : 4;
    return rc;
}

static uint64_t hash_more(uint64_t h, const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++) h = (h ^ (unsigned char)s[i]) * 0x100000001B3ULL;
    return h;
}

/* Beginnings of prompts are numbered in the order in which they come. */
static int64_t number_of(struct writing *x, uint64_t beginning)
{
    uint32_t *at = ipw_table_at(&x->seen, beginning, NULL);

    if (*at == IPW_TABLE_NONE) *at = (uint32_t)x->seen.n - 1;
    return *at;
}

static void write_blocks(struct ipw_jw *w, struct writing *x, const struct ipw_workload_turn *turn,
                         const struct ipw_buf *text, int64_t tokens)
{
    size_t n = (size_t)((tokens + IPW_WORKLOAD_BLOCK - 1) / IPW_WORKLOAD_BLOCK), done = 0;
    uint64_t hash = 0xCBF29CE484222325ULL;

    ipw_jw_arr(w);
    if (!turn->n_messages) {
        for (size_t i = 0; i < turn->n_blocks; i++) ipw_jw_int(w, turn->blocks[i]);
        n = 0;
    }
    for (size_t k = 1; k <= n; k++) {
        size_t end = (size_t)((double)(k * IPW_WORKLOAD_BLOCK) * x->bytes_a_token);
        char tail[32] = "";

        if (k == n || end >= text->len) {
            /* A block that the prompt's end cuts belongs to this prompt alone, unless all of it is
             * equal. */
            snprintf(tail, sizeof tail, "end %zu of %zu", k, n);
            end = text->len;
        }
        hash = hash_more(hash, ipw_buf_str(text) + done, end - done);
        done = end;
        ipw_jw_int(w, number_of(x, hash_more(hash, tail, strlen(tail))));
    }
    ipw_jw_arr_end(w);
}

static int write_turn(struct writing *x, const struct ipw_workload_query *q, size_t session,
                      struct ipw_err *err)
{
    const struct ipw_workload_turn *turn = &q->turn;
    struct ipw_buf line = IPW_BUF(64 * IPW_MIB), text = IPW_BUF(IPW_LINE_MAX);
    int64_t input = turn->input_tokens, output = turn->output_tokens;
    struct ipw_jw w;
    int rc = 0;

    add_text(&text, turn);
    x->guessed += input < 0 || output < 0 || turn->tokens_estimated;
    if (input < 0) input = (int64_t)((double)text.len / x->bytes_a_token + 0.5);
    ipw_jw_init(&w, &line);
    ipw_jw_obj(&w);
    if (q->n_read > 1) ipw_jw_knum(&w, "delay", (double)turn->gap_ns / NS_PER_MS);
    ipw_jw_key(&w, "hash_ids");
    write_blocks(&w, x, turn, &text, input);
    ipw_jw_kint(&w, "input_length", input);
    ipw_jw_kint(&w, "output_length", output < 0 ? 0 : output);
    if (q->n > 1) {
        char name[32];

        snprintf(name, sizeof name, "s%05zu", session);
        ipw_jw_kstr(&w, "session_id", name);
    }
    ipw_jw_kint(&w, "timestamp", (int64_t)((double)turn->at_ns / NS_PER_MS + 0.5));
    ipw_jw_obj_end(&w);
    ipw_buf_addc(&line, '\n');
    if (fwrite(ipw_buf_str(&line), 1, line.len, x->out) != line.len)
        rc = ipw_fail_errno(err, errno, "the export cannot be written");
    ipw_buf_release(&line);
    ipw_buf_release(&text);
    return rc;
}

static int by_time(const void *a, const void *b)
{
    const struct place *x = a, *y = b;

    if (x->at_ns != y->at_ns) return x->at_ns < y->at_ns ? -1 : 1;
    if (x->query != y->query) return x->query < y->query ? -1 : 1;
    return (x->turn > y->turn) - (x->turn < y->turn);
}

/* A query is taken at its first request and dropped after its last, so memory follows the number of
 * concurrent queries. */
static int write_all(struct writing *x, struct ipw_workload *w, struct ipw_err *err)
{
    int rc = 0;

    x->taken = ipw_calloc(ipw_workload_count(w), sizeof *x->taken);
    for (size_t i = 0; i < x->n_places && !rc; i++) {
        size_t at = x->places[i].query;
        struct ipw_workload_query **q = &x->taken[at];

        if (!*q) rc = ipw_workload_take(q, w, at, err);
        if (!rc) rc = ipw_workload_next(*q, err);
        if (rc <= 0) continue;
        rc = write_turn(x, *q, at, err);
        if ((*q)->n_read < (*q)->n) continue;
        ipw_workload_drop(*q);
        *q = NULL;
    }
    for (size_t i = 0; i < ipw_workload_count(w); i++) ipw_workload_drop(x->taken[i]);
    return rc;
}

int ipw_export_mooncake(const char *run, FILE *out, size_t *guessed, struct ipw_err *err)
{
    struct writing x = {.out = out};
    struct ipw_workload *w;
    int rc = ipw_workload_open(&w, run, err);

    if (rc) return rc;
    rc = look_through(&x, w, err);
    if (!rc) {
        if (x.n_places) qsort(x.places, x.n_places, sizeof *x.places, by_time);
        rc = write_all(&x, w, err);
    }
    *guessed = x.guessed;
    free(x.places);
    free(x.taken);
    ipw_table_release(&x.seen);
    ipw_workload_free(w);
    return rc;
}
