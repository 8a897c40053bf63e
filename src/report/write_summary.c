/* The file summary.json: upstream's keys and ours; docs/trace-format.md specifies each. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/stats.h"
#include "json/write.h"
#include "report/repeats.h"
#include "report/write_summary_priv.h"

#define TRIM_FROM  4    /* queries from which the trimmed statistics are given */
#define TRIM_SHARE 0.05 /* cut at each end */

/* The statistics, one for each metric, sorted by name as in the file. */

static double count(int64_t n) { return n < 0 ? NAN : (double)n; }
static double known(const struct ipw_summary_figure *f) { return f->known ? f->j : NAN; }

static double m_judge_cpu_j(const struct ipw_summary_row *r) { return r->judge_cpu_j; }
static double m_judge_cpu_w(const struct ipw_summary_row *r) { return r->judge_cpu_w; }
static double m_judge_gpu_j(const struct ipw_summary_row *r) { return r->judge_gpu_j; }
static double m_judge_gpu_w(const struct ipw_summary_row *r) { return r->judge_gpu_w; }
static double m_judge_wall(const struct ipw_summary_row *r) { return r->judge_wall_s; }
static double m_mbu(const struct ipw_summary_row *r) { return r->mbu_avg_pct; }
static double m_cost(const struct ipw_summary_row *r) { return r->cost_usd; }
static double m_cpu_j(const struct ipw_summary_row *r) { return known(&r->energy[IPW_DOMAIN_CPU]); }
static double m_cpu_w(const struct ipw_summary_row *r) { return r->cpu_w; }
static double m_gpu_j(const struct ipw_summary_row *r) { return known(&r->energy[IPW_DOMAIN_GPU]); }
static double m_gpu_w(const struct ipw_summary_row *r) { return r->gpu_w; }
/* The query and its judge. */
static double m_task_cpu_j(const struct ipw_summary_row *r)
{
    return r->judged ? m_cpu_j(r) + r->judge_cpu_j : m_cpu_j(r);
}
static double m_task_gpu_j(const struct ipw_summary_row *r)
{
    return r->judged ? m_gpu_j(r) + r->judge_gpu_j : m_gpu_j(r);
}
static double m_input(const struct ipw_summary_row *r) { return count(r->input_tokens); }
static double m_output(const struct ipw_summary_row *r) { return count(r->output_tokens); }
static double m_tokens(const struct ipw_summary_row *r) { return m_input(r) + m_output(r); }
static double m_tools(const struct ipw_summary_row *r) { return (double)r->tools; }
static double m_turns(const struct ipw_summary_row *r) { return (double)r->turns; }
static double m_wall(const struct ipw_summary_row *r) { return r->wall_s; }
static double m_throughput(const struct ipw_summary_row *r)
{
    return r->output_tokens > 0 && r->wall_s > 0 ? (double)r->output_tokens / r->wall_s : NAN;
}
static double m_j_per_token(const struct ipw_summary_row *r)
{
    return r->output_tokens > 0 && m_gpu_j(r) > 0 ? m_gpu_j(r) / (double)r->output_tokens : NAN;
}

static const struct metric {
    const char *name;
    double (*get)(const struct ipw_summary_row *row);
} metrics[] = {
    {"cost_usd", m_cost},
    {"cpu_energy_joules", m_cpu_j},
    {"cpu_power_watts", m_cpu_w},
    {"energy_per_token_joules", m_j_per_token},
    {"gpu_energy_joules", m_gpu_j},
    {"gpu_power_watts", m_gpu_w},
    {"input_tokens", m_input},
    {"judge_cpu_energy_joules", m_judge_cpu_j},
    {"judge_cpu_power_watts", m_judge_cpu_w},
    {"judge_gpu_energy_joules", m_judge_gpu_j},
    {"judge_gpu_power_watts", m_judge_gpu_w},
    {"judge_wall_clock_s", m_judge_wall},
    {"mbu_avg_pct", m_mbu},
    {"output_tokens", m_output},
    {"throughput_tokens_per_sec", m_throughput},
    {"tool_calls", m_tools},
    {"total_task_cpu_energy_joules", m_task_cpu_j},
    {"total_task_gpu_energy_joules", m_task_gpu_j},
    {"total_tokens", m_tokens},
    {"turns", m_turns},
    {"wall_clock_s", m_wall},
};

struct trim {
    size_t before, after;
};

/* Upstream's remarks beside trimmed values; underscores sort before letters. */
static void put_trim(struct ipw_jw *w, const struct trim *trim, const char *description)
{
    if (!trim) return;
    ipw_jw_kstr(w, "_description", description);
    ipw_jw_key(w, "_outliers_removed");
    ipw_jw_obj(w);
    ipw_jw_kint(w, "bottom_pct", 5);
    ipw_jw_kint(w, "queries_after", (int64_t)trim->after);
    ipw_jw_kint(w, "queries_before", (int64_t)trim->before);
    ipw_jw_kint(w, "removed", (int64_t)(trim->before - trim->after));
    ipw_jw_kint(w, "top_pct", 5);
    ipw_jw_obj_end(w);
}

static void put_statistics(struct ipw_jw *w, const char *key, const struct ipw_summary *s,
                           const struct trim *trim)
{
    ipw_jw_key(w, key);
    ipw_jw_obj(w);
    put_trim(w, trim,
             "Statistics of the queries left after the shortest and the longest 5 % by "
             "wall clock (at least one each) were removed");
    for (size_t m = 0; m < sizeof metrics / sizeof *metrics; m++) {
        struct ipw_spill values;

        ipw_spill_init(&values, sizeof(double), s->rows.place);
        for (size_t i = 0; i < s->n; i++)
            ipw_stats_add(&values, metrics[m].get(ipw_summary_row(s, i)));
        ipw_summary_put_statistic(w, metrics[m].name, &values);
        ipw_spill_release(&values);
    }
    ipw_jw_obj_end(w);
}

static double mean_power(const struct ipw_summary *s,
                         double (*power_w)(const struct ipw_summary_row *row))
{
    double joules = 0, seconds = 0;

    for (size_t i = 0; i < s->n; i++) {
        const struct ipw_summary_row *row = ipw_summary_row(s, i);

        if (isnan(power_w(row)) || row->wall_s <= 0) continue;
        joules += power_w(row) * row->wall_s;
        seconds += row->wall_s;
    }
    return seconds > 0 ? joules / seconds : NAN;
}

static void put_basis(struct ipw_jw *w, unsigned domains)
{
    struct ipw_buf basis = IPW_BUF(64);

    ipw_summary_basis_text(&basis, domains);
    ipw_jw_kstr(w, "basis", domains ? ipw_buf_str(&basis) : NULL);
    ipw_buf_release(&basis);
}

static void put_efficiency_bounds(struct ipw_jw *w, const struct ipw_efficiency *e, double accuracy,
                                  bool tokens)
{
    ipw_jw_key(w, "bounds");
    ipw_jw_obj(w);
    if (!isnan(e->ipj) && e->mean.lo > 0) {
        struct ipw_bounds ipj = {accuracy / e->mean.hi, accuracy / e->mean.lo,
                                 e->ipj * e->mean.u / e->mean_j};

        ipw_bounds_write(w, "intelligence_per_joule", ipj);
    }
    ipw_bounds_write(w, "joules_per_correct_answer", e->correct);
    if (tokens) ipw_bounds_write(w, "joules_per_output_token", e->token);
    ipw_bounds_write(w, "mean_joules_per_query", e->mean);
    ipw_jw_obj_end(w);
}

static void put_domain_efficiency(struct ipw_jw *w, const struct ipw_summary *s, double accuracy)
{
    ipw_jw_key(w, "by_domain");
    ipw_jw_obj(w);
    for (int i = 0; i < IPW_DOMAIN_COUNT; i++) {
        struct ipw_efficiency e;

        ipw_summary_efficiency(&e, s, 1u << ipw_domains_by_name[i]);
        ipw_jw_key(w, ipw_domain_name(ipw_domains_by_name[i]));
        if (!e.queries) {
            ipw_jw_null(w);
            continue;
        }
        ipw_jw_obj(w);
        put_efficiency_bounds(w, &e, accuracy, false);
        ipw_jw_knum(w, "intelligence_per_joule", e.ipj);
        ipw_jw_knum(w, "intelligence_per_watt", e.ipw);
        ipw_jw_knum(w, "joules_per_correct_answer", e.j_per_correct);
        ipw_jw_knum(w, "mean_joules_per_query", e.mean_j);
        ipw_jw_knum(w, "mean_watts_per_query", e.mean_w);
        ipw_jw_kint(w, "queries_with_energy", (int64_t)e.queries);
        ipw_jw_obj_end(w);
    }
    ipw_jw_obj_end(w);
}

static void put_efficiency(struct ipw_jw *w, const char *key, const struct ipw_summary *s,
                           const struct trim *trim)
{
    struct ipw_totals t;
    struct ipw_efficiency e;
    double gpu_j, gpu_w = mean_power(s, m_gpu_w);
    bool gives;

    ipw_summary_totals(&t, s);
    ipw_summary_efficiency(&e, s, ipw_summary_basis(s));
    gpu_j = t.energy[IPW_DOMAIN_GPU].total;
    gives = t.accuracy > 0 && !ipw_bounds_coarse(t.energy[IPW_DOMAIN_GPU].bounds, gpu_j);
    ipw_jw_key(w, key);
    ipw_jw_obj(w);
    put_trim(w, trim, "Efficiency over the queries left by the same cut");
    ipw_jw_knum(w, "accuracy", t.accuracy);
    ipw_jw_kmicro(w, "avg_cpu_power_watts", mean_power(s, m_cpu_w));
    ipw_jw_kmicro(w, "avg_gpu_power_watts", gpu_w);
    put_basis(w, e.domains);
    put_efficiency_bounds(w, &e, t.accuracy, true);
    put_domain_efficiency(w, s, t.accuracy);
    ipw_jw_knum(w, "energy_delay_product", e.edp_js);
    ipw_jw_knum(w, "intelligence_per_joule", e.ipj);
    ipw_jw_knum(w, "intelligence_per_watt", e.ipw);
    ipw_jw_knum(w, "ipj", gives && gpu_j > 0 ? t.accuracy / gpu_j : NAN);
    ipw_jw_knum(w, "ipw", gives && gpu_w > 0 ? t.accuracy / gpu_w : NAN);
    ipw_jw_knum(w, "joules_per_correct_answer", e.j_per_correct);
    ipw_jw_knum(w, "joules_per_output_token", e.j_per_token);
    ipw_jw_knum(w, "mean_joules_per_query", e.mean_j);
    ipw_jw_knum(w, "mean_watts_per_query", e.mean_w);
    ipw_jw_kint(w, "queries_with_energy", (int64_t)e.queries);
    ipw_jw_knum(w, "tokens_per_joule", e.tokens_per_j);
    ipw_jw_kmicro(w, "total_cpu_energy_joules", t.energy[IPW_DOMAIN_CPU].total);
    ipw_jw_kmicro(w, "total_gpu_energy_joules", gpu_j);
    ipw_jw_kstr(w, "withheld", e.coarse ? "too_coarse" : NULL);
    ipw_jw_obj_end(w);
}

static int by_wall(const void *a, const void *b)
{
    const struct ipw_summary_row *x = a, *y = b;

    if (x->wall_s != y->wall_s) return x->wall_s < y->wall_s ? -1 : 1;
    return x->number < y->number ? -1 : x->number > y->number;
}

static void put_normalized(struct ipw_jw *w, const struct ipw_summary *s)
{
    struct ipw_summary cut = {.part = true};
    struct trim trim;
    size_t each;

    if (s->n < TRIM_FROM) {
        ipw_jw_knull(w, "normalized_efficiency");
        ipw_jw_knull(w, "normalized_statistics");
        return;
    }
    ipw_spill_sort(&cut.rows, &s->rows, by_wall);
    each = (size_t)((double)s->n * TRIM_SHARE);
    if (each < 1) each = 1;
    cut.first = each;
    cut.n = s->n - 2 * each;
    trim = (struct trim){s->n, cut.n};
    put_efficiency(w, "normalized_efficiency", &cut, &trim);
    put_statistics(w, "normalized_statistics", &cut, &trim);
    ipw_spill_release(&cut.rows);
}

static void put_sum(struct ipw_jw *w, const char *key, const struct ipw_sum *sum, bool whole)
{
    double x = whole ? sum->total : sum->known;

    if (x == floor(x) && fabs(x) < 9e15 && strstr(key, "tokens")) {
        ipw_jw_kint(w, key, (int64_t)x);
    } else if (strstr(key, "joules")) {
        ipw_jw_kmicro(w, key, x);
    } else {
        ipw_jw_knum(w, key, x);
    }
}

/* The sums again: over the known values, and the number of missing queries for each. */
static void put_known(struct ipw_jw *w, const struct ipw_totals *t, bool counts)
{
    const struct {
        const char *key;
        const struct ipw_sum *sum;
    } sums[] = {
        {"cost_usd", &t->cost_usd},
        {"cpu_energy_joules", &t->energy[IPW_DOMAIN_CPU]},
        {"dram_energy_joules", &t->energy[IPW_DOMAIN_DRAM]},
        {"gpu_energy_joules", &t->energy[IPW_DOMAIN_GPU]},
        {"input_tokens", &t->input_tokens},
        {"machine_energy_joules", &t->energy[IPW_DOMAIN_MACHINE]},
        {"output_tokens", &t->output_tokens},
        {"total_tokens", &t->total_tokens},
    };

    ipw_jw_obj(w);
    for (size_t i = 0; i < sizeof sums / sizeof *sums; i++) {
        if (counts) {
            ipw_jw_kint(w, sums[i].key, (int64_t)sums[i].sum->unknown);
        } else {
            put_sum(w, sums[i].key, sums[i].sum, false);
        }
    }
    ipw_jw_obj_end(w);
}

/* Only if an estimate replaces an energy value; it is in no other total. */
static void put_estimated(struct ipw_jw *w, const struct ipw_totals *t)
{
    bool any = false;

    for (int i = 0; i < IPW_DOMAIN_COUNT; i++) {
        enum ipw_domain d = ipw_domains_by_name[i];

        if (isnan(t->estimated[d].total) || !isnan(t->energy[d].total)) continue;
        if (!any) {
            ipw_jw_key(w, "with_estimates");
            ipw_jw_obj(w);
        }
        any = true;
        ipw_jw_kmicro(w, ipw_domain_name(d), t->estimated[d].total);
    }
    if (any) ipw_jw_obj_end(w);
}

/* The queries' joules and the judge's. */
static void put_task(struct ipw_jw *w, const char *key, const struct ipw_sum *queries,
                     const struct ipw_judge_sums *judge, double judge_j)
{
    struct ipw_sum sum = *queries;

    if (judge->asked) sum.total += judge_j;
    put_sum(w, key, &sum, true);
}

/* Of a total, or of what is known of it. */
static void put_total_bounds(struct ipw_jw *w, const struct ipw_totals *t)
{
    static const char *const keys[] = {"cpu_energy_joules", "dram_energy_joules",
                                       "gpu_energy_joules", "machine_energy_joules"};

    ipw_jw_key(w, "bounds");
    ipw_jw_obj(w);
    for (int i = 0; i < IPW_DOMAIN_COUNT; i++) {
        const struct ipw_sum *sum = &t->energy[ipw_domains_by_name[i]];

        if (!isnan(sum->total)) ipw_bounds_write(w, keys[i], sum->bounds);
    }
    ipw_jw_obj_end(w);
}

static void put_totals(struct ipw_jw *w, const struct ipw_totals *t,
                       const struct ipw_judge_sums *judge)
{
    ipw_jw_key(w, "totals");
    ipw_jw_obj(w);
    ipw_jw_knum(w, "accuracy", t->accuracy);
    put_total_bounds(w, t);
    ipw_jw_kint(w, "completed", (int64_t)t->completed);
    if (t->trimmed) ipw_jw_kint(w, "context_trimmed_turns", t->trimmed);
    put_sum(w, "cost_usd", &t->cost_usd, true);
    put_sum(w, "cpu_energy_joules", &t->energy[IPW_DOMAIN_CPU], true);
    put_sum(w, "dram_energy_joules", &t->energy[IPW_DOMAIN_DRAM], true);
    ipw_jw_kint(w, "failed", (int64_t)t->failed);
    put_sum(w, "gpu_energy_joules", &t->energy[IPW_DOMAIN_GPU], true);
    put_sum(w, "input_tokens", &t->input_tokens, true);
    ipw_jw_kint(w, "interrupted", (int64_t)t->interrupted);
    ipw_jw_kmicro(w, "judge_cpu_energy_joules", judge->asked ? judge->cpu_j : (double)NAN);
    ipw_jw_kmicro(w, "judge_gpu_energy_joules", judge->asked ? judge->gpu_j : (double)NAN);
    ipw_jw_key(w, "known");
    put_known(w, t, false);
    put_sum(w, "machine_energy_joules", &t->energy[IPW_DOMAIN_MACHINE], true);
    ipw_jw_kint(w, "malformed_replies", t->malformed);
    put_sum(w, "output_tokens", &t->output_tokens, true);
    ipw_jw_kint(w, "queries", (int64_t)t->queries);
    ipw_jw_kint(w, "resolved", (int64_t)t->resolved);
    ipw_jw_kint(w, "retries", t->retries);
    ipw_jw_kint(w, "timed_out", (int64_t)t->timed_out);
    ipw_jw_kint(w, "tool_calls", (int64_t)t->tools);
    put_task(w, "total_task_cpu_energy_joules", &t->energy[IPW_DOMAIN_CPU], judge, judge->cpu_j);
    put_task(w, "total_task_gpu_energy_joules", &t->energy[IPW_DOMAIN_GPU], judge, judge->gpu_j);
    put_sum(w, "total_tokens", &t->total_tokens, true);
    ipw_jw_kint(w, "turns", (int64_t)t->turns);
    ipw_jw_key(w, "unknown");
    put_known(w, t, true);
    ipw_jw_kint(w, "unresolved", (int64_t)t->unresolved);
    ipw_jw_kint(w, "unscorable", (int64_t)t->unscorable);
    ipw_jw_kint(w, "unscored", (int64_t)t->unscored);
    ipw_jw_knum(w, "wall_clock_s", t->wall_s);
    put_estimated(w, t);
    ipw_jw_obj_end(w);
}

static void put_averages(struct ipw_jw *w, const struct ipw_summary *s, const struct ipw_totals *t)
{
    struct ipw_efficiency gpu;
    double n = s->n ? (double)s->n : 1;

    ipw_summary_efficiency(&gpu, s, 1u << IPW_DOMAIN_GPU);
    ipw_jw_key(w, "averages");
    ipw_jw_obj(w);
    ipw_jw_knum(w, "gpu_energy_per_query_joules", gpu.mean_j);
    ipw_jw_knum(w, "tool_calls_per_query", (double)t->tools / n);
    ipw_jw_knum(w, "turns_per_query", (double)t->turns / n);
    ipw_jw_knum(w, "wall_clock_per_query_s", t->wall_s / n);
    ipw_jw_obj_end(w);
}

static void put_ledger_bounds(struct ipw_jw *w, const struct ipw_summary_balance_line *line,
                              const struct ipw_balance *balance)
{
    ipw_jw_key(w, "bounds");
    ipw_jw_obj(w);
    if (!isnan(line->idle_j)) ipw_bounds_write(w, "idle_j", ipw_figure_bounds(&balance->idle));
    if (!isnan(line->queries_j)) ipw_bounds_write(w, "queries_j", line->queries);
    if (!isnan(line->total_j)) ipw_bounds_write(w, "total_j", ipw_figure_bounds(&balance->total));
    if (!isnan(line->warmup_j)) ipw_bounds_write(w, "warmup_j", balance->warmup);
    if (!isnan(line->wasted_j)) ipw_bounds_write(w, "wasted_j", balance->wasted);
    ipw_jw_obj_end(w);
}

static void put_balanced(struct ipw_jw *w, const struct ipw_summary_balance_line *line)
{
    if (line->state == IPW_LEDGER_UNKNOWN) {
        ipw_jw_knull(w, "balanced");
    } else {
        ipw_jw_kbool(w, "balanced", line->state == IPW_LEDGER_BALANCED);
    }
}

static void put_parts(struct ipw_jw *w, const struct ipw_summary_balance_line *line,
                      const struct ipw_balance *balance)
{
    /* If one of several devices has no readings, the energy of the others is still a part. */
    bool partial =
        !balance->total.known && (balance->total.coverage > 0 || balance->total.partial_j > 0);

    ipw_jw_kmicro(w, "difference_j", line->difference_j);
    ipw_jw_kmicro(w, "idle_j", line->idle_j);
    ipw_jw_knum(w, "partial_coverage", partial ? balance->total.coverage : NAN);
    ipw_jw_kmicro(w, "partial_j", partial ? balance->total.partial_j : NAN);
    ipw_jw_kmicro(w, "queries_j", line->queries_j);
    ipw_jw_kstr(w, "reason", balance->total.known ? NULL : balance->total.reason);
    ipw_jw_kmicro(w, "total_j", line->total_j);
    ipw_jw_kmicro(w, "warmup_j", line->warmup_j);
    ipw_jw_kmicro(w, "wasted_j", line->wasted_j);
}

/* Of the queries on a device only the ledger knows bounds: of all together. */
static struct ipw_sum device_sum(const struct ipw_device_sums *queries,
                                 const struct ipw_device_balance *item)
{
    double j = ipw_device_sums_get(queries, item->domain, item->name);
    struct ipw_bounds own = IPW_NO_BOUNDS;

    return (struct ipw_sum){.total = j, .bounds = ipw_balance_narrow(&item->balance, own, j)};
}

void ipw_summary_put_devices(struct ipw_jw *w, const struct ipw_device_balances *balances,
                             enum ipw_domain domain, const struct ipw_device_sums *queries,
                             size_t n_queries)
{
    if (!ipw_device_balances_whole(balances, domain)) return;
    ipw_jw_key(w, "devices");
    ipw_jw_obj(w);
    for (size_t i = 0; i < balances->n; i++) {
        const struct ipw_device_balance *item = &balances->all[i];
        struct ipw_sum sum = device_sum(queries, item);
        struct ipw_summary_balance_line line;

        if (item->domain != domain) continue;
        ipw_summary_balance_line(&line, &item->balance, &sum, n_queries);
        ipw_jw_key_any(w, item->name, strlen(item->name));
        ipw_jw_obj(w);
        put_balanced(w, &line);
        put_ledger_bounds(w, &line, &item->balance);
        put_parts(w, &line, &item->balance);
        ipw_jw_obj_end(w);
    }
    ipw_jw_obj_end(w);
}

static void put_ledger(struct ipw_jw *w, const struct ipw_summary *s, const struct ipw_totals *t,
                       const struct ipw_summary_run *run)
{
    ipw_jw_key(w, "ledger");
    if (!run->have_balance) {
        ipw_jw_null(w);
        return;
    }
    ipw_jw_obj(w);
    for (int i = 0; i < IPW_DOMAIN_COUNT; i++) {
        enum ipw_domain d = ipw_domains_by_name[i];
        struct ipw_summary_balance_line line;

        ipw_summary_balance_line(&line, &run->balance[d], &t->energy[d], t->queries);
        ipw_jw_key(w, ipw_domain_name(d));
        ipw_jw_obj(w);
        put_balanced(w, &line);
        put_ledger_bounds(w, &line, &run->balance[d]);
        ipw_summary_put_devices(w, run->devices, d, &s->devices, t->queries);
        put_parts(w, &line, &run->balance[d]);
        ipw_jw_obj_end(w);
    }
    ipw_jw_obj_end(w);
}

static void put_provenance(struct ipw_jw *w, const struct ipw_summary *s)
{
    static const enum ipw_provenance sorted[] = {IPW_PROV_DISTRIBUTED, IPW_PROV_ESTIMATED,
                                                 IPW_PROV_INTERPOLATED, IPW_PROV_MEASURED,
                                                 IPW_PROV_NONE};

    ipw_jw_key(w, "provenance");
    ipw_jw_obj(w);
    for (int i = 0; i < IPW_DOMAIN_COUNT; i++) {
        const double *j = s->provenance_j[ipw_domains_by_name[i]];
        double total = 0;

        for (int p = 0; p < IPW_PROV_COUNT; p++) total += j[p];
        ipw_jw_key(w, ipw_domain_name(ipw_domains_by_name[i]));
        if (total <= 0) {
            ipw_jw_null(w);
            continue;
        }
        ipw_jw_obj(w);
        for (int p = 0; p < IPW_PROV_COUNT; p++) {
            if (j[sorted[p]] > 0) {
                ipw_jw_knum(w, ipw_provenance_name(sorted[p]), j[sorted[p]] / total);
            }
        }
        ipw_jw_obj_end(w);
    }
    ipw_jw_obj_end(w);
}

static void kobject(struct ipw_jw *w, const char *key, const char *json)
{
    if (json) {
        ipw_jw_kraw(w, key, json, strlen(json));
    } else {
        ipw_jw_knull(w, key);
    }
}

static void put_definitions(struct ipw_jw *w)
{
    ipw_jw_key(w, "definitions");
    ipw_jw_obj(w);
    ipw_jw_kstr(w, "energy_delay_product", ipw_definition_edp);
    ipw_jw_kstr(w, "idle_tax_j", ipw_definition_idle_tax);
    ipw_jw_kstr(w, "ipj", ipw_definition_ipj);
    ipw_jw_kstr(w, "ipw", ipw_definition_ipw);
    ipw_jw_kstr(w, "joules_per_correct_answer", ipw_definition_j_per_correct);
    ipw_jw_kstr(w, "joules_per_output_token", ipw_definition_j_per_token);
    ipw_jw_kstr(w, "judge", ipw_definition_judge);
    ipw_summary_put_latency_definitions(w);
    ipw_jw_kstr(w, "marginal_j", ipw_definition_net);
    ipw_jw_kstr(w, "tokens_per_joule", ipw_definition_tokens_per_j);
    ipw_jw_kstr(w, "waste_j", ipw_definition_waste);
    ipw_jw_obj_end(w);
}

static void put_overhead(struct ipw_jw *w, const struct ipw_summary_run *run)
{
    ipw_jw_key(w, "own_overhead");
    ipw_jw_obj(w);
    ipw_jw_kmicro(w, "estimated_joules", run->own_joules);
    ipw_jw_knum(w, "runner_cpu_s", run->runner_cpu_s);
    ipw_jw_knum(w, "sampler_cpu_s", run->sampler_cpu_s);
    ipw_jw_knum(w, "share",
                run->wall_s > 0 ? (run->runner_cpu_s + run->sampler_cpu_s) / run->wall_s : NAN);
    ipw_jw_knum(w, "wall_s", run->wall_s);
    ipw_jw_obj_end(w);
}

static void put_run(struct ipw_jw *w, const struct ipw_summary_run *run)
{
    ipw_jw_key(w, "run");
    ipw_jw_obj(w);
    ipw_jw_kstr(w, "agent", run->agent);
    ipw_jw_kstr(w, "dataset", run->dataset);
    ipw_jw_kint(w, "earlier_attempts", run->attempts);
    ipw_jw_kstr(w, "model", run->model);
    if (run->planned < 0) {
        ipw_jw_knull(w, "planned");
    } else {
        ipw_jw_kint(w, "planned", run->planned);
    }
    if (run->sessions)
        ipw_jw_kint(w, "sessions", run->sessions);
    else
        ipw_jw_knull(w, "sessions");
    ipw_jw_obj_end(w);
}

int ipw_summary_write(struct ipw_buf *out, const struct ipw_summary *s,
                      const struct ipw_summary_run *run, struct ipw_err *err)
{
    struct ipw_totals t;
    struct ipw_jw w;

    ipw_summary_totals(&t, s);
    ipw_jw_init(&w, out);
    ipw_jw_obj(&w);
    ipw_summary_put_accounts(&w, s, &t, run);
    put_averages(&w, s, &t);
    ipw_summary_put_baseline(&w, &t, run);
    kobject(&w, "config", run->config ? run->config : "{}");
    put_definitions(&w);
    put_efficiency(&w, "efficiency", s, NULL);
    ipw_jw_kstr(&w, "energy_note", run->energy_note);
    ipw_summary_put_outcomes(&w, "failed", s, false);
    ipw_jw_knum(&w, "generated_at", run->wall_ns ? (double)run->wall_ns / 1e9 : NAN);
    kobject(&w, "hardware", run->hardware);
    ipw_summary_put_outcomes(&w, "interrupted", s, true);
    ipw_jw_key(&w, "judge");
    ipw_judge_sums_write(&w, &s->judge);
    ipw_summary_put_latency(&w, s);
    put_ledger(&w, s, &t, run);
    ipw_summary_put_models(&w, s);
    put_normalized(&w, s);
    ipw_jw_kstr(&w, "note", run->note);
    put_overhead(&w, run);
    ipw_summary_put_parts(&w, s);
    put_provenance(&w, s);
    ipw_jw_key(&w, "repeats");
    ipw_repeats_write(&w, s);
    put_run(&w, run);
    ipw_jw_kint(&w, "schema_version", IPW_SCHEMA_VERSION);
    put_statistics(&w, "statistics", s, NULL);
    ipw_jw_kstr(&w, "status", run->status ? run->status : "complete");
    ipw_summary_put_tools(&w, s);
    put_totals(&w, &t, &s->judge);
    ipw_jw_obj_end(&w);
    ipw_buf_addc(out, '\n');
    return ipw_summary_check(s, err);
}
