#include "audit/ledger_facts.h"

#include <math.h>

#include "audit/ledger_check.h"
#include "base/clock.h"
#include "json/write.h"
#include "ledger/recompute.h"
#include "report/summary.h"

enum { FACTS_BYTES = 64 * IPW_MIB };

struct job {
    struct ipw_recompute redone; /* owns the reasons of the balances */
    struct ipw_check *check;     /* NULL: there are no traces to compare with */
    const enum ipw_share *share; /* another rule than the run's, or NULL */
    struct ipw_summary summary;  /* of the queries that count */
    struct ipw_run_balance balances;
    struct ipw_jw w; /* of the array of queries */
};

static void put_figure(struct ipw_jw *w, const struct ipw_figure *f)
{
    struct ipw_bounds b = ipw_figure_bounds(f);

    ipw_jw_obj(w);
    ipw_jw_knum(w, "coverage", f->coverage);
    ipw_jw_knum(w, "hi", b.hi);
    ipw_jw_knum(w, "joules", f->known ? f->j : (double)NAN);
    ipw_jw_knum(w, "lo", b.lo);
    ipw_jw_kstr(w, "provenance", ipw_provenance_name(f->provenance));
    ipw_jw_kint(w, "samples", f->samples);
    ipw_jw_knum(w, "u", b.u);
    ipw_jw_obj_end(w);
}

static void put_energy(struct ipw_jw *w, const struct ipw_figure *energy)
{
    ipw_jw_key(w, "energy");
    ipw_jw_obj(w);
    for (int i = 0; i < IPW_DOMAIN_COUNT; i++) {
        ipw_jw_key(w, ipw_domain_name(ipw_domains_by_name[i]));
        put_figure(w, &energy[ipw_domains_by_name[i]]);
    }
    ipw_jw_obj_end(w);
}

/* The joules that the run wrote; null: it wrote no such line. */
static void put_was(struct ipw_jw *w, const struct ipw_query_loaded *was)
{
    if (!was) {
        ipw_jw_knull(w, "was");
        return;
    }
    ipw_jw_key(w, "was");
    ipw_jw_obj(w);
    for (int i = 0; i < IPW_DOMAIN_COUNT; i++) {
        const struct ipw_figure *f = &was->trace.energy[ipw_domains_by_name[i]];

        ipw_jw_knum(w, ipw_domain_name(ipw_domains_by_name[i]), f->known ? f->j : (double)NAN);
    }
    ipw_jw_obj_end(w);
}

/* `was`: the run's own line, NULL: it has none; `what`: the first difference, or "". */
static void take(struct job *j, const struct ipw_recompute_query *query, bool earlier,
                 enum ipw_check_verdict verdict, const struct ipw_query_loaded *was,
                 const char *what)
{
    static const char *const verdicts[] = {"same", "differs", "missing", "unwritten"};
    struct ipw_query_details unknown = {.is_resolved = -1, .cost_usd = NAN};

    ipw_jw_obj(&j->w);
    ipw_jw_kbool(&j->w, "earlier", earlier);
    put_energy(&j->w, query->trace->energy);
    ipw_jw_kint(&j->w, "index", query->trace->index);
    ipw_jw_kstr(&j->w, "query_id", query->trace->id);
    ipw_jw_kint(&j->w, "segment", query->segment);
    ipw_jw_kstr(&j->w, "verdict", verdicts[verdict]);
    ipw_jw_kbool(&j->w, "warmup", query->warmup);
    put_was(&j->w, was);
    ipw_jw_kstr(&j->w, "what", what);
    ipw_jw_obj_end(&j->w);
    if (earlier)
        ipw_uncounted_add(&j->balances.earlier, query->trace);
    else if (query->warmup)
        ipw_uncounted_add(&j->balances.warmup, query->trace);
    else
        ipw_summary_add(&j->summary, query->trace, was ? &was->details : &unknown);
}

static int take_query(void *ud, const struct ipw_recompute_query *query, struct ipw_err *err)
{
    struct job *j = ud;
    const struct ipw_recompute_segment *segment = j->redone.segments[j->redone.n_segments - 1];
    struct ipw_query_loaded was = {0};
    struct ipw_buf what = IPW_BUF(4096);
    enum ipw_check_verdict verdict = IPW_CHECK_SAME;
    bool known, earlier = query->cut;
    int rc = 0;

    if (j->check)
        rc = ipw_check_query(j->check, segment, query, &verdict, &was, j->share ? NULL : &what,
                             NULL, err);
    known = j->check && verdict != IPW_CHECK_MISSING && verdict != IPW_CHECK_UNWRITTEN;
    if (known)
        earlier = was.details.superseded != NULL;
    else
        earlier |= verdict == IPW_CHECK_UNWRITTEN; /* an earlier attempt, which will run again */
    if (!rc) take(j, query, earlier, verdict, known ? &was : NULL, ipw_buf_str(&what));
    ipw_query_loaded_release(&was);
    ipw_buf_release(&what);
    return rc;
}

static void put_summary(struct ipw_buf *out, struct job *j, double *wall_s, int64_t *cut)
{
    struct ipw_summary_run run = IPW_SUMMARY_RUN_UNKNOWN;

    for (size_t i = 0; i < j->redone.n_segments; i++) {
        const struct ipw_recompute_segment *s = j->redone.segments[i];

        *wall_s += ipw_ns_to_s(s->end_ns - s->start_ns);
        *cut += s->cut;
        ipw_run_balance_session(&j->balances, s->balance, &s->devices);
    }
    ipw_run_balance_close(&j->balances);
    run.have_balance = true;
    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) run.balance[d] = j->balances.balance[d];
    run.devices = &j->balances.devices;
    ipw_summary_facts(out, &j->summary, &run);
}

/* Everything after the queries, in the order of the keys. */
static int put_rest(struct ipw_jw *w, struct job *j, size_t left, struct ipw_err *err)
{
    struct ipw_buf summary = IPW_BUF(FACTS_BYTES);
    double wall_s = 0;
    int64_t cut = 0;
    int rc = 0;

    put_summary(&summary, j, &wall_s, &cut);
    ipw_jw_key(w, "rules");
    ipw_jw_arr(w);
    for (int r = IPW_SHARE_EQUAL; r <= IPW_SHARE_PHASE; r++)
        ipw_jw_str(w, ipw_share_name((enum ipw_share)r));
    ipw_jw_arr_end(w);
    ipw_jw_kint(w, "segments", (int64_t)j->redone.n_segments);
    ipw_jw_kint(w, "segments_cut", cut);
    ipw_jw_kraw(w, "summary", ipw_buf_str(&summary), summary.len);
    ipw_jw_kint(w, "unbooked", (int64_t)left);
    ipw_jw_knum(w, "wall_s", wall_s);
    if (summary.failed) rc = ipw_fail(err, IPW_ELIMIT, "the sums of the run exceed 64 MiB");
    ipw_buf_release(&summary);
    return rc;
}

static int compute(struct job *j, struct ipw_buf *out, const char *path, bool compare,
                   struct ipw_err *err)
{
    struct ipw_recompute_options how = {.query = take_query, .ud = j, .share = j->share};
    struct ipw_buf queries = IPW_BUF(out->max);
    size_t left = 0;
    struct ipw_jw w;
    int rc = compare ? ipw_check_open(&j->check, path, NULL, err) : 0;

    if (rc) return rc;
    ipw_jw_init(&j->w, &queries);
    ipw_jw_arr(&j->w);
    rc = ipw_recompute_run(&j->redone, path, &how, err);
    ipw_jw_arr_end(&j->w);
    if (!rc && j->check) rc = ipw_check_left(j->check, &left, err);
    ipw_jw_init(&w, out);
    ipw_jw_obj(&w);
    ipw_jw_kbool(&w, "compared", j->check != NULL);
    ipw_jw_kstr(
        &w, "own",
        ipw_share_name(j->redone.n_segments ? j->redone.segments[0]->own_share : IPW_SHARE_EQUAL));
    ipw_jw_kraw(&w, "queries", ipw_buf_str(&queries), queries.len);
    if (!rc) rc = put_rest(&w, j, left, err);
    ipw_jw_obj_end(&w);
    if (!rc && (queries.failed || out->failed))
        rc = ipw_fail(err, IPW_ELIMIT, "%s: the books of its queries exceed %zu MiB", path,
                      out->max / IPW_MIB);
    ipw_buf_release(&queries);
    return rc;
}

int ipw_ledger_facts(struct ipw_buf *out, const char *run, const char *share, bool compare,
                     struct ipw_err *err)
{
    enum ipw_share rule = IPW_SHARE_EQUAL;
    struct job j = {.share = share ? &rule : NULL};
    int rc = share ? ipw_share_parse(&rule, share, err) : 0;

    if (rc) return rc;
    ipw_summary_init(&j.summary);
    rc = compute(&j, out, run, compare, err);
    ipw_check_close(j.check);
    ipw_summary_release(&j.summary);
    ipw_run_balance_release(&j.balances);
    ipw_recompute_release(&j.redone);
    return rc;
}
