/* The results of a workload replay: the manifest's member, replay.json, and the printed lines. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "json/jsonl.h"
#include "json/write.h"
#include "replay/workload_run.h"

enum { MAX_REPORT_BYTES = 1024 * 1024 };

void ipw_workload_run_write(const struct ipw_origin *origin, struct ipw_jw *w)
{
    const struct ipw_workload_run *wr = (const struct ipw_workload_run *)origin;

    ipw_jw_obj(w);
    ipw_jw_kbool(w, "forced_length", wr->forced);
    ipw_jw_kstr(w, "mode", "workload");
    ipw_jw_kstr(w, "of", wr->of);
    ipw_jw_kstr(w, "schedule", wr->open ? "open" : "closed");
    ipw_jw_knum(w, "speed", wr->speed);
    ipw_jw_obj_end(w);
}

static int by_size(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

/* A quantile of sorted values, by nearest rank, in seconds; NAN: there are none. */
static double rank(const struct ipw_workload_lags *l, double share)
{
    size_t k = l->n ? (size_t)ceil(share * (double)l->n) : 0;

    return l->n ? ipw_ns_to_s(l->ns[k ? k - 1 : 0]) : NAN;
}

static double least(const struct ipw_workload_lags *l) { return rank(l, 0); }

static void write_spread(struct ipw_jw *w, const char *key, const struct ipw_workload_lags *l,
                         double less)
{
    ipw_jw_key(w, key);
    ipw_jw_obj(w);
    ipw_jw_knum(w, "max", rank(l, 1) - less);
    ipw_jw_knum(w, "p50", rank(l, 0.5) - less);
    ipw_jw_knum(w, "p90", rank(l, 0.9) - less);
    ipw_jw_knum(w, "p99", rank(l, 0.99) - less);
    ipw_jw_obj_end(w);
}

static bool degraded(const struct ipw_workload_run *wr)
{
    return wr->lag.n && rank(&wr->lag, 0.99) > ipw_ns_to_s(wr->max_lag_ns);
}

static void report(struct ipw_buf *out, const struct ipw_workload_run *wr, const char *path)
{
    struct ipw_jw w;

    ipw_jw_init(&w, out);
    ipw_jw_obj(&w);
    ipw_jw_kbool(&w, "degraded", degraded(wr));
    ipw_jw_kint(&w, "failed", (int64_t)wr->n_failed);
    ipw_jw_kbool(&w, "forced_length", wr->forced);
    write_spread(&w, "lag_absolute_s", &wr->lag, 0);
    write_spread(&w, "lag_anchored_s", &wr->lag, least(&wr->lag));
    ipw_jw_kint(&w, "late", (int64_t)wr->late.n);
    write_spread(&w, "late_s", &wr->late, 0);
    ipw_jw_knum(&w, "max_lag_s", ipw_ns_to_s(wr->max_lag_ns));
    ipw_jw_kstr(&w, "mode", "workload");
    ipw_jw_kstr(&w, "of", wr->of);
    ipw_jw_kint(&w, "output_length_kept", (int64_t)wr->n_length_kept);
    ipw_jw_kint(&w, "output_length_known", (int64_t)wr->n_length);
    ipw_jw_kstr(&w, "path", path);
    ipw_jw_knum(&w, "prompt_tokens_ratio",
                wr->input_asked ? (double)wr->input_counted / (double)wr->input_asked
                                : (double)NAN);
    ipw_jw_kint(&w, "queries", (int64_t)ipw_workload_count(wr->workload));
    ipw_jw_kstr(&w, "schedule", wr->open ? "open" : "closed");
    write_spread(&w, "send_cpu_s", &wr->cpu, 0);
    ipw_jw_knum(&w, "speed", wr->speed);
    ipw_jw_kint(&w, "turns", (int64_t)wr->lag.n);
    ipw_jw_kint(&w, "turns_recorded", (int64_t)ipw_workload_requests(wr->workload));
    ipw_jw_obj_end(&w);
    ipw_buf_addc(out, '\n');
}

static void say(const struct ipw_workload_run *wr)
{
    const struct ipw_workload_lags *lag = &wr->lag;
    double anchor = least(lag);

    printf("workload of %s, %s loop", wr->of, wr->open ? "open" : "closed");
    if (wr->speed != 1) printf(", speed %g", wr->speed);
    printf(": %zu of %zu requests sent", lag->n, ipw_workload_requests(wr->workload));
    if (wr->n_failed) printf(", %zu failed", wr->n_failed);
    if (wr->n_length)
        printf(", %zu of %zu replies as long as saved", wr->n_length_kept, wr->n_length);
    putchar('\n');
    if (lag->n)
        printf("send lag p50 %.2f p90 %.2f p99 %.2f ms (anchored %.2f %.2f %.2f)\n",
               1e3 * rank(lag, 0.5), 1e3 * rank(lag, 0.9), 1e3 * rank(lag, 0.99),
               1e3 * (rank(lag, 0.5) - anchor), 1e3 * (rank(lag, 0.9) - anchor),
               1e3 * (rank(lag, 0.99) - anchor));
    if (wr->late.n)
        printf("%zu requests waited for the reply before them, past their time (p50 %.3g s)\n",
               wr->late.n, rank(&wr->late, 0.5));
    if (degraded(wr))
        printf("DEGRADED: requests were sent too late for this to be the workload (p99 over "
               "%.3g s)\n",
               ipw_ns_to_s(wr->max_lag_ns));
}

static void sort(struct ipw_workload_lags *l)
{
    if (l->n) qsort(l->ns, l->n, sizeof *l->ns, by_size);
}

int ipw_workload_run_finish(struct ipw_origin *origin, const char *run, bool json,
                            struct ipw_err *err)
{
    struct ipw_workload_run *wr = (struct ipw_workload_run *)origin;
    struct ipw_buf out = IPW_BUF(MAX_REPORT_BYTES);
    char *path;
    int rc;

    sort(&wr->lag);
    sort(&wr->cpu);
    sort(&wr->late);
    report(&out, wr, run);
    path = ipw_asprintf("%s/replay.json", run);
    rc = ipw_file_write_atomic(path, out.data, out.len, err);
    free(path);
    ipw_buf_release(&out);
    if (!rc && !json) say(wr);
    return rc;
}
