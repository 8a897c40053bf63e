#include "audit/ledger_print.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "json/write.h"
#include "report/format.h"
#include "report/words.h"
#include "report/write_summary.h"

void ipw_ledger_report_init(struct ipw_ledger_report *r, const char *path)
{
    *r = (struct ipw_ledger_report){.path = path};
    ipw_summary_init(&r->summary);
}

static double joules_of(const struct ipw_figure *f) { return f->known ? f->j : (double)NAN; }

void ipw_ledger_report_add(struct ipw_ledger_report *r, const struct ipw_recompute_query *query,
                           const struct ipw_query_details *details,
                           const struct ipw_query_loaded *was, bool differs)
{
    const struct ipw_query_trace *trace = query->trace;
    struct ipw_ledger_row row = {.id = ipw_strdup(trace->id),
                                 .index = trace->index,
                                 .differs = differs,
                                 .compared = was != NULL,
                                 .segment = query->segment,
                                 .warmup = query->warmup,
                                 .earlier = was ? details->superseded != NULL : query->cut};

    memcpy(row.energy, trace->energy, sizeof row.energy);
    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) {
        row.energy[d].reason = NULL; /* the ledger's */
        row.was[d] = was ? joules_of(&was->trace.energy[d]) : (double)NAN;
        if (!row.earlier && !row.warmup) r->was_j[d] = ipw_figure_add_j(r->was_j[d], row.was[d]);
    }
    r->n_earlier += row.earlier;
    IPW_GROW(r->rows, r->cap, r->n + 1);
    r->rows[r->n++] = row;
    if (row.earlier)
        ipw_uncounted_add(&r->balances.earlier, trace);
    else if (row.warmup)
        ipw_uncounted_add(&r->balances.warmup, trace);
    else
        ipw_summary_add(&r->summary, trace, details);
}

void ipw_ledger_report_close(struct ipw_ledger_report *r, const struct ipw_recompute *redone)
{
    r->n_segments = redone->n_segments;
    for (size_t i = 0; i < redone->n_segments; i++) {
        const struct ipw_recompute_segment *s = redone->segments[i];

        r->wall_ns += s->end_ns - s->start_ns;
        r->n_cut += s->cut;
        ipw_run_balance_session(&r->balances, s->balance, &s->devices);
    }
    ipw_run_balance_close(&r->balances);
}

void ipw_ledger_report_release(struct ipw_ledger_report *r)
{
    for (size_t i = 0; i < r->n; i++) free(r->rows[i].id);
    free(r->rows);
    ipw_summary_release(&r->summary);
    ipw_run_balance_release(&r->balances);
    *r = (struct ipw_ledger_report){0};
}

/* ---- a table ---- */

void ipw_joules_cell(struct ipw_buf *out, double j)
{
    char text[40];

    if (j != j) {
        snprintf(text, sizeof text, "%s", IPW_UNKNOWN_TEXT);
    } else {
        snprintf(text, sizeof text, "%.6f", fabs(j) < 5e-7 ? 0.0 : j); /* no -0.000000 */
    }
    ipw_buf_addc(out, ' ');
    ipw_format_cell(out, text, 15, IPW_ALIGN_RIGHT);
}

static void put_part(struct ipw_buf *out, const char *what, double j)
{
    if (isnan(j)) return;
    ipw_buf_adds(out, "           ");
    ipw_joules_cell(out, j);
    ipw_buf_addf(out, "  %s\n", what);
}

/* Four columns fit a terminal; values that most runs lack have lines of their own. */
static void put_line(struct ipw_buf *out, const char *label,
                     const struct ipw_summary_balance_line *line)
{
    ipw_format_cell(out, label, 11, IPW_ALIGN_LEFT);
    ipw_joules_cell(out, line->queries_j);
    ipw_joules_cell(out, line->idle_j);
    ipw_joules_cell(out, line->total_j);
    ipw_joules_cell(out, line->difference_j);
    ipw_buf_adds(out, line->state == IPW_LEDGER_OFF ? "  OFF: a bug\n" : "\n");
    if (line->warmup_j > 0) put_part(out, "of the total: warm-up", line->warmup_j);
    if (line->wasted_j > 0) put_part(out, "of the total: earlier attempts", line->wasted_j);
}

/* Each device of a domain that has several. */
static void put_devices(struct ipw_buf *out, const struct ipw_ledger_report *r, enum ipw_domain d,
                        size_t n_queries)
{
    if (!ipw_device_balances_whole(&r->balances.devices, d)) return;
    for (size_t i = 0; i < r->balances.devices.n; i++) {
        const struct ipw_device_balance *item = &r->balances.devices.all[i];
        struct ipw_sum sum = {.total =
                                  ipw_device_sums_get(&r->summary.kept.devices, d, item->name)};
        struct ipw_summary_balance_line line;
        char label[16];

        if (item->domain != d) continue;
        ipw_summary_balance_line(&line, &item->balance, &sum, n_queries);
        snprintf(label, sizeof label, " %s", item->name);
        put_line(out, label, &line);
    }
}

static void put_balance(struct ipw_buf *out, const struct ipw_ledger_report *r)
{
    struct ipw_totals totals;
    bool any = false;

    ipw_summary_totals(&totals, &r->summary);
    ipw_buf_adds(out,
                 "joules              queries            idle           total      difference\n");
    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) {
        struct ipw_summary_balance_line line;

        ipw_summary_balance_line(&line, &r->balances.balance[d], &totals.energy[d], totals.queries);
        if (line.total_j == line.total_j) {
            any = true;
            put_line(out, ipw_words_domain((enum ipw_domain)d), &line);
        }
        put_devices(out, r, (enum ipw_domain)d, totals.queries);
        if (line.total_j != line.total_j) continue;
        put_part(out, "of the queries: wasted", totals.account[d].waste_j);
        put_part(out, "of the queries: while tools ran or a retry waited",
                 totals.account[d].idle_tax_j);
        put_part(out, "of the queries: net, above the idle baseline", totals.account[d].marginal_j);
    }
    if (!any) ipw_buf_adds(out, "no domain has a total: no sensor was read\n");
}

/* The values that the run wrote, and the change. */
static void put_was(struct ipw_buf *out, const double *was, const double *now)
{
    ipw_buf_adds(out, "  the run wrote ");
    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) ipw_joules_cell(out, was[d]);
    ipw_buf_adds(out, "\n  change        ");
    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) {
        char text[40];

        if (isnan(now[d] - was[d])) {
            snprintf(text, sizeof text, "%s", IPW_UNKNOWN_TEXT);
        } else if (was[d] > 0) {
            snprintf(text, sizeof text, "%+.1f %%", 100 * (now[d] - was[d]) / was[d]);
        } else {
            snprintf(text, sizeof text, "%+.6f", now[d] - was[d]);
        }
        ipw_buf_addc(out, ' ');
        ipw_format_cell(out, text, 15, IPW_ALIGN_RIGHT);
    }
    ipw_buf_addc(out, '\n');
}

static bool moved(const struct ipw_ledger_row *row)
{
    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) {
        double now = joules_of(&row->energy[d]);

        if (isnan(now) != isnan(row->was[d]) || fabs(now - row->was[d]) > 5e-7) return true;
    }
    return false;
}

static void put_queries(struct ipw_buf *out, const struct ipw_ledger_report *r)
{
    ipw_buf_adds(out, "\nquery                        GPU             CPU            DRAM"
                      "         machine\n");
    for (size_t i = 0; i < r->n; i++) {
        const struct ipw_ledger_row *row = &r->rows[i];
        double now[IPW_DOMAIN_COUNT];

        ipw_format_cell(out, row->id, 16, IPW_ALIGN_LEFT);
        for (int d = 0; d < IPW_DOMAIN_COUNT; d++) {
            now[d] = joules_of(&row->energy[d]);
            ipw_joules_cell(out, now[d]);
        }
        if (r->n_segments > 1) ipw_buf_addf(out, "  session %d", row->segment);
        ipw_buf_addf(out, "%s%s%s\n", row->warmup ? "  warm-up" : "",
                     row->earlier ? "  earlier attempt" : "", row->differs ? "  differs" : "");
        if (row->compared && (row->differs || r->share) && moved(row)) put_was(out, row->was, now);
    }
}

/* How far another rule changes the queries' energy. */
static void put_moves(struct ipw_buf *out, const struct ipw_ledger_report *r)
{
    size_t n = 0, n_compared = 0;
    double most = 0;
    const char *who = "", *what = "";

    for (size_t i = 0; i < r->n; i++) {
        const struct ipw_ledger_row *row = &r->rows[i];

        n_compared += row->compared;
        n += row->compared && moved(row);
        for (int d = 0; row->compared && d < IPW_DOMAIN_COUNT; d++) {
            double by = (joules_of(&row->energy[d]) - row->was[d]) / row->was[d];

            if (!(fabs(by) > fabs(most)) || isinf(by)) continue;
            most = by;
            who = row->id;
            what = ipw_words_domain((enum ipw_domain)d);
        }
    }
    ipw_buf_addf(out, "\nShared by %s: %zu of %zu queries have other values than the run", r->share,
                 n, n_compared);
    if (n && who[0]) ipw_buf_addf(out, ", %s the most (%s %+.1f %%)", who, what, 100 * most);
    ipw_buf_adds(out, ".\n");
}

static void put_known(struct ipw_buf *out, double j, const char *reason)
{
    if (!isnan(j)) {
        ipw_buf_addf(out, "%.6f J", j);
        return;
    }
    ipw_buf_adds(out, "not measured");
    if (!reason || !*reason) return;
    ipw_buf_adds(out, " (");
    ipw_words_reason(out, reason);
    ipw_buf_addc(out, ')');
}

/* For a changed file: saved and recomputed totals. */
static void put_saved(struct ipw_buf *out, const struct ipw_ledger_report *r)
{
    struct ipw_totals totals;

    ipw_summary_totals(&totals, &r->summary);
    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) {
        double now = totals.energy[d].total, was = r->was_j[d];

        if (isnan(now) ? isnan(was) : fabs(now - was) <= 5e-7) continue;
        ipw_buf_addf(out, "%s: saved ", ipw_words_domain((enum ipw_domain)d));
        put_known(out, was, NULL);
        ipw_buf_adds(out, ", recomputed ");
        put_known(out, now, r->summary.kept.reason[d]);
        ipw_buf_addc(out, '\n');
    }
}

static void put_verdict(struct ipw_buf *out, const struct ipw_ledger_report *r)
{
    size_t bad = r->n_differs + r->n_missing + r->n_left;

    if (!r->compared) {
        ipw_buf_adds(out, "\nThe run has no traces.jsonl to compare with.\n");
    } else if (r->share) {
        put_moves(out, r);
    } else if (!bad) {
        ipw_buf_addf(out, "\n%zu of %zu queries are identical to the run, byte for byte.\n",
                     r->n - r->n_earlier, r->n - r->n_earlier);
    } else {
        ipw_buf_addf(out, "\n%zu of %zu queries differ from what the run wrote", r->n_differs,
                     r->n);
        if (r->n_missing) ipw_buf_addf(out, "; %zu are not in the run", r->n_missing);
        if (r->n_left) ipw_buf_addf(out, "; %zu of the run have no events", r->n_left);
        ipw_buf_adds(out, "\n");
        put_saved(out, r);
    }
    if (r->n_cut && r->n_segments == 1) {
        ipw_buf_adds(out, "The run was killed: its balance ends at its last sample.\n");
    } else if (r->n_cut) {
        ipw_buf_addf(out,
                     "%zu of %zu sessions were killed: their balance ends at their last sample.\n",
                     r->n_cut, r->n_segments);
    }
}

void ipw_ledger_print_table(struct ipw_buf *out, const struct ipw_ledger_report *r)
{
    char time[32];

    ipw_buf_addf(out, "%s: %zu quer%s in %s, computed from its events and samples\n\n", r->path,
                 r->n, r->n == 1 ? "y" : "ies", ipw_format_seconds(time, ipw_ns_to_s(r->wall_ns)));
    put_balance(out, r);
    if (r->n) put_queries(out, r);
    put_verdict(out, r);
}

/* ---- JSON ---- */

static void put_figure(struct ipw_jw *w, const struct ipw_figure *f)
{
    ipw_jw_obj(w);
    ipw_jw_knum(w, "coverage", f->coverage);
    ipw_jw_kmicro(w, "hi", f->known ? f->hi_j : (double)NAN);
    ipw_jw_kmicro(w, "joules", f->known ? f->j : (double)NAN);
    ipw_jw_kmicro(w, "lo", f->known ? f->lo_j : (double)NAN);
    ipw_jw_kstr(w, "provenance", ipw_provenance_name(f->provenance));
    ipw_jw_kint(w, "samples", f->samples);
    ipw_jw_obj_end(w);
}

void ipw_joules_write(struct ipw_jw *w, const char *key, const double *joules)
{
    ipw_jw_key(w, key);
    if (!joules) {
        ipw_jw_null(w);
        return;
    }
    ipw_jw_obj(w);
    for (int i = 0; i < IPW_DOMAIN_COUNT; i++) {
        enum ipw_domain d = ipw_domains_by_name[i];

        ipw_jw_knum(w, ipw_domain_name(d), joules[d]);
    }
    ipw_jw_obj_end(w);
}

void ipw_ledger_print_json(struct ipw_buf *out, const struct ipw_ledger_report *r)
{
    struct ipw_totals totals;
    struct ipw_jw w;

    ipw_summary_totals(&totals, &r->summary);
    ipw_jw_init(&w, out);
    ipw_jw_obj(&w);
    ipw_jw_key(&w, "balance");
    ipw_jw_obj(&w);
    for (int i = 0; i < IPW_DOMAIN_COUNT; i++) {
        enum ipw_domain d = ipw_domains_by_name[i];
        struct ipw_summary_balance_line line;

        ipw_summary_balance_line(&line, &r->balances.balance[d], &totals.energy[d], totals.queries);
        ipw_jw_key(&w, ipw_domain_name(d));
        ipw_jw_obj(&w);
        ipw_summary_put_devices(&w, &r->balances.devices, d, &r->summary.kept.devices,
                                totals.queries);
        ipw_jw_kmicro(&w, "difference_j", line.difference_j);
        ipw_jw_kmicro(&w, "idle_j", line.idle_j);
        ipw_jw_kmicro(&w, "idle_tax_j", totals.account[d].idle_tax_j);
        ipw_jw_kmicro(&w, "marginal_j", totals.account[d].marginal_j);
        ipw_jw_kmicro(&w, "queries_j", line.queries_j);
        ipw_jw_kstr(&w, "reason",
                    r->balances.balance[d].total.known ? NULL
                                                       : r->balances.balance[d].total.reason);
        ipw_jw_kmicro(&w, "total_j", line.total_j);
        ipw_jw_kmicro(&w, "warmup_j", line.warmup_j);
        ipw_jw_kmicro(&w, "waste_j", totals.account[d].waste_j);
        ipw_jw_kmicro(&w, "wasted_j", line.wasted_j);
        ipw_jw_obj_end(&w);
    }
    ipw_jw_obj_end(&w);
    ipw_jw_kbool(&w, "cut", r->n_cut > 0);
    if (r->compared && !r->share) {
        ipw_jw_kbool(&w, "identical", !r->n_differs && !r->n_missing && !r->n_left);
    } else {
        ipw_jw_knull(&w, "identical");
    }
    ipw_jw_key(&w, "queries");
    ipw_jw_arr(&w);
    for (size_t i = 0; i < r->n; i++) {
        const struct ipw_ledger_row *row = &r->rows[i];

        ipw_jw_obj(&w);
        ipw_jw_kbool(&w, "differs", row->differs);
        ipw_jw_kbool(&w, "earlier", row->earlier);
        ipw_jw_key(&w, "energy");
        ipw_jw_obj(&w);
        for (int k = 0; k < IPW_DOMAIN_COUNT; k++) {
            enum ipw_domain d = ipw_domains_by_name[k];

            ipw_jw_key(&w, ipw_domain_name(d));
            put_figure(&w, &row->energy[d]);
        }
        ipw_jw_obj_end(&w);
        ipw_jw_kint(&w, "index", row->index);
        ipw_jw_kstr(&w, "query_id", row->id);
        ipw_jw_kint(&w, "segment", row->segment);
        ipw_jw_kbool(&w, "warmup", row->warmup);
        ipw_joules_write(&w, "was", row->compared ? row->was : NULL);
        ipw_jw_obj_end(&w);
    }
    ipw_jw_arr_end(&w);
    ipw_jw_kint(&w, "segments", (int64_t)r->n_segments);
    ipw_jw_kstr(&w, "share", r->share);
    ipw_jw_knum(&w, "wall_s", ipw_ns_to_s(r->wall_ns));
    ipw_joules_write(&w, "was_queries", r->compared ? r->was_j : NULL);
    ipw_jw_obj_end(&w);
    ipw_buf_addc(out, '\n');
}
