#include "run/rebook.h"

#include <stdlib.h>

#include "audit/ledger_check.h"
#include "base/mem.h"

struct rebooked { /* a line as it must be */
    int64_t index;
    char *text;
    size_t n;
};

struct rebook {
    int segment;
    struct ipw_check *check;
    struct ipw_recompute redone;
    struct ipw_uncounted warmup;
    struct rebooked *lines;
    size_t n, cap;
};

static int take_query(void *ud, const struct ipw_recompute_query *query, struct ipw_err *err)
{
    struct rebook *r = ud;
    struct ipw_buf now = IPW_BUF(IPW_LINE_MAX);
    struct ipw_query_loaded was;
    enum ipw_check_verdict verdict;
    int rc;

    if (query->segment != r->segment) return 0;
    if (query->warmup) ipw_uncounted_add(&r->warmup, query->trace);
    rc = ipw_check_query(r->check, r->redone.segments[r->redone.n_segments - 1], query, &verdict,
                         &was, NULL, &now, err);
    if (!rc && verdict == IPW_CHECK_DIFFERS) {
        IPW_GROW(r->lines, r->cap, r->n + 1);
        r->lines[r->n++] =
            (struct rebooked){query->trace->index, ipw_memdup(now.data, now.len), now.len};
    }
    if (!rc) ipw_query_loaded_release(&was);
    ipw_buf_release(&now);
    return rc;
}

static int by_index(const void *a, const void *b)
{
    const struct rebooked *x = a, *y = b;

    return x->index < y->index ? -1 : x->index > y->index;
}

static int edit(void *ud, const char *line, size_t n, struct ipw_buf *out, struct ipw_err *err)
{
    const struct rebook *r = ud;
    struct ipw_query_loaded was;
    const struct rebooked *now = NULL;
    int rc = ipw_schema_read_head(&was, line, n, err);

    if (rc) return rc;
    if (was.details.segment == r->segment)
        now = bsearch(&(struct rebooked){.index = was.trace.index}, r->lines, r->n,
                      sizeof *r->lines, by_index);
    ipw_buf_add(out, now ? now->text : line, now ? now->n : n);
    ipw_query_loaded_release(&was);
    return 1;
}

int ipw_rebook_session(struct ipw_rundir *dir, int segment, struct ipw_uncounted *warmup,
                       struct ipw_err *err)
{
    const char *run = ipw_rundir_path(dir);
    struct rebook r = {.segment = segment};
    struct ipw_recompute_options how = {.query = take_query, .ud = &r};
    int rc = ipw_check_open(&r.check, run, NULL, err);

    if (!rc && r.check) rc = ipw_recompute_run(&r.redone, run, &how, err);
    if (r.n) qsort(r.lines, r.n, sizeof *r.lines, by_index);
    if (!rc && r.n) rc = ipw_rundir_edit_traces(dir, edit, &r, err);
    if (!rc && r.n) rc = ipw_rundir_edit_warmup(dir, edit, &r, err);
    if (!rc && r.check) {
        ipw_uncounted_release(warmup);
        *warmup = r.warmup;
        r.warmup = (struct ipw_uncounted){0};
    }
    ipw_recompute_release(&r.redone);
    ipw_check_close(r.check);
    ipw_uncounted_release(&r.warmup);
    for (size_t i = 0; i < r.n; i++) free(r.lines[i].text);
    free(r.lines);
    return rc;
}
