/* summary.json: how long the model calls took, and the statistics of one metric. */
#include <math.h>
#include <string.h>

#include "base/stats.h"
#include "report/write_summary_priv.h"

static double l_gap_p50(const struct ipw_summary_call *c) { return c->gap_p50_s; }
static double l_gap_p99(const struct ipw_summary_call *c) { return c->gap_p99_s; }
static double l_decode(const struct ipw_summary_call *c)
{
    return c->itl_mean_s > 0 ? 1 / c->itl_mean_s : NAN;
}
static double l_itl(const struct ipw_summary_call *c) { return c->itl_mean_s; }
static double l_close(const struct ipw_summary_call *c) { return c->latency_close_s; }
static double l_content(const struct ipw_summary_call *c) { return c->latency_content_s; }
static double l_prefill(const struct ipw_summary_call *c)
{
    return c->ttft_s > 0 ? c->input_tokens / c->ttft_s : NAN;
}
static double l_ttfo(const struct ipw_summary_call *c) { return c->ttfo_s; }
static double l_ttft(const struct ipw_summary_call *c) { return c->ttft_s; }

/* clang-format off */
static const struct latency {
    const char *name, *text;
    double (*get)(const struct ipw_summary_call *call);
} latencies[] = {
    {"chunk_gap_p50_s", "the median gap between two content events of a reply", l_gap_p50},
    {"chunk_gap_p99_s", "99 % of the gaps between two content events of a reply are not above it", l_gap_p99},
    {"decode_tokens_per_s", "1 / itl_mean_s: tokens per second as one user sees them", l_decode},
    {"itl_mean_s", "inter-token latency: (last - first content event) / (output tokens - 1), reasoning included", l_itl},
    {"latency_close_s", "the request's start to the end of the reply", l_close},
    {"latency_content_s", "end to end: the request's start to the last content event", l_content},
    {"prefill_tokens_per_s", "input tokens / ttft_s; the time in the server's queue is included", l_prefill},
    {"ttfo_s", "the request's start to the first output that is not reasoning", l_ttfo},
    {"ttft_s", "time to first token: the request's start to the first text, reasoning or tool call; an empty event does not count", l_ttft},
    {NULL, NULL, NULL},
};
/* clang-format on */

static void put_result(struct ipw_jw *w, const char *key, struct ipw_stats_result r)
{
    ipw_jw_key(w, key);
    ipw_jw_obj(w);
    ipw_jw_knum(w, "avg", r.mean);
    ipw_jw_knum(w, "max", r.max);
    ipw_jw_knum(w, "median", r.median);
    ipw_jw_knum(w, "min", r.min);
    ipw_jw_kint(w, "n", (int64_t)r.n);
    ipw_jw_knum(w, "p50", r.median);
    ipw_jw_knum(w, "p90", r.p90);
    ipw_jw_knum(w, "p95", r.p95);
    ipw_jw_knum(w, "p99", r.p99);
    ipw_jw_knum(w, "std", r.std);
    ipw_jw_obj_end(w);
}

void ipw_summary_put_statistic(struct ipw_jw *w, const char *key, const struct ipw_spill *values)
{
    put_result(w, key, ipw_stats_result(values));
}

static struct ipw_stats_result result_of(const struct ipw_summary *s, const struct latency *l)
{
    struct ipw_stats_result r;
    struct ipw_spill values;

    ipw_spill_init(&values, sizeof(double), s->calls.place);
    for (size_t i = 0; i < s->calls.n; i++)
        ipw_stats_add(&values, l->get(ipw_spill_at(&s->calls, i)));
    r = ipw_stats_result(&values);
    ipw_spill_release(&values);
    return r;
}

struct ipw_stats_result ipw_summary_latency(const struct ipw_summary *s, const char *key)
{
    const struct latency *l = latencies;

    while (strcmp(l->name, key) != 0) l++;
    return result_of(s, l);
}

void ipw_summary_put_latency(struct ipw_jw *w, const struct ipw_summary *s)
{
    ipw_jw_key(w, "latency");
    ipw_jw_obj(w);
    for (const struct latency *l = latencies; l->name; l++) put_result(w, l->name, result_of(s, l));
    ipw_jw_obj_end(w);
}

void ipw_summary_put_latency_definitions(struct ipw_jw *w)
{
    ipw_jw_key(w, "latency");
    ipw_jw_obj(w);
    for (const struct latency *l = latencies; l->name; l++) ipw_jw_kstr(w, l->name, l->text);
    ipw_jw_obj_end(w);
}
