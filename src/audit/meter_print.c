/* The report of a power meter's log, for a person and for a program. */
#include <math.h>
#include <string.h>

#include "audit/meter_report.h"
#include "base/clock.h"
#include "base/text.h"
#include "json/write.h"
#include "report/format.h"

#define J_PER_WH 3600.0

static double joules(const struct ipw_figure *f) { return f->known ? f->j : NAN; }

static double watts(const struct ipw_figure *f, double seconds)
{
    return f->known && seconds > 0 ? f->j / seconds : NAN;
}

static void write_clock(struct ipw_buf *out, const struct ipw_metered_run_input *in)
{
    const struct ipw_meter_fit *fit = &in->fit;

    ipw_buf_addf(out, "clock    the log is %.2f s %s the run", fabs(fit->offset_s),
                 fit->offset_s < 0 ? "behind" : "ahead of");
    if (!in->aligned) {
        ipw_buf_adds(out, " (as told)\n");
        return;
    }
    ipw_buf_addf(out, " (found by its load, to %.2f s; correlation %.3f)\n",
                 fit->plus_minus_s + 0.01, fit->correlation);
    ipw_buf_addf(out, "         rows every %.3g s, each %s\n", fit->row_s,
                 fit->averages ? "the mean since the one before" : "the power at its instant");
    if (!isnan(fit->other_s)) {
        ipw_buf_addf(out,
                     "         (were they %s, the clock would be %.2f s ahead; the joules "
                     "are the same)\n",
                     fit->averages ? "instants" : "means", fit->other_s);
    }
}

static void write_log(struct ipw_buf *out, const struct ipw_metered_run_input *in)
{
    bool first = true;

    ipw_buf_adds(out, "log      ");
    ipw_text_printable(out, in->path, strlen(in->path), 0);
    ipw_buf_addf(out, ": %zu rows, ", in->log.rows);
    for (size_t i = 0; i < in->log.format.n_columns; i++) {
        const struct ipw_meter_column *c = &in->log.format.columns[i];
        if (!c->in_sum) continue;
        ipw_buf_adds(out, first ? "column " : " + ");
        ipw_text_printable(out, c->name, strlen(c->name), 40);
        first = false;
    }
    ipw_buf_addc(out, '\n');
    if (in->log.bad_rows) {
        ipw_buf_addf(out, "         %zu damaged row%s left out; ", in->log.bad_rows,
                     in->log.bad_rows == 1 ? "" : "s");
        ipw_text_printable(out, in->path, strlen(in->path), 0);
        ipw_buf_addc(out, ' ');
        ipw_text_printable(out, in->log.first_bad, strlen(in->log.first_bad), 0);
        ipw_buf_addc(out, '\n');
    }
    write_clock(out, in);
}

static void write_joules(struct ipw_buf *out, double j)
{
    char a[32], b[32];

    ipw_buf_addf(out, "%s = %s", ipw_format_si(a, j, " J"), ipw_format_si(b, j / J_PER_WH, " Wh"));
}

void ipw_metered_run_text(struct ipw_buf *out, const struct ipw_metered_run *r)
{
    double run_s = r->t1_s - r->t0_s, sum = 0;
    char a[32], b[32], c[32];

    ipw_buf_adds(out, "run      ");
    ipw_text_printable(out, r->run, strlen(r->run), 0);
    ipw_buf_addf(out, ": %zu quer%s in %s\n", r->n_queries, r->n_queries == 1 ? "y" : "ies",
                 ipw_format_seconds(a, run_s));
    for (size_t i = 0; i < r->n_logs; i++) write_log(out, &r->logs[i]);
    ipw_buf_addf(out, "samples  %zu in the run\n", r->samples);
    ipw_buf_addf(out, "power    average %s, peak %s, minimum %s\n",
                 ipw_format_si(a, watts(&r->total, run_s), " W"), ipw_format_si(b, r->peak_w, " W"),
                 ipw_format_si(c, r->least_w, " W"));
    ipw_buf_adds(out, "energy   ");
    write_joules(out, joules(&r->total));
    ipw_buf_addf(out, ", %s\n", ipw_provenance_name(r->total.provenance));
    for (size_t i = 0; i < r->n_queries; i++) sum += joules(&r->queries[i].energy);
    ipw_buf_addf(out, "         queries %s, between them %s\n\n", ipw_format_si(a, sum, " J"),
                 ipw_format_si(b, joules(&r->idle), " J"));
    ipw_buf_addf(out, "%-24s %9s %9s %9s %9s  %s\n", "query", "time", "energy", "Wh", "power",
                 "how");
    for (size_t i = 0; i < r->n_queries; i++) {
        const struct ipw_metered_run_query *q = &r->queries[i];
        double j = joules(&q->energy);

        ipw_format_cell(out, q->id, 24, IPW_ALIGN_LEFT);
        ipw_buf_addc(out, ' ');
        ipw_format_cell(out, ipw_format_seconds(a, q->t1_s - q->t0_s), 9, IPW_ALIGN_RIGHT);
        ipw_buf_addc(out, ' ');
        ipw_format_cell(out, ipw_format_si(a, j, " J"), 9, IPW_ALIGN_RIGHT);
        ipw_buf_addc(out, ' ');
        ipw_format_cell(out, ipw_format_si(a, j / J_PER_WH, " Wh"), 9, IPW_ALIGN_RIGHT);
        ipw_buf_addc(out, ' ');
        ipw_format_cell(out, ipw_format_si(a, watts(&q->energy, q->t1_s - q->t0_s), " W"), 9,
                        IPW_ALIGN_RIGHT);
        ipw_buf_addf(out, "  %s\n",
                     q->energy.known ? ipw_provenance_name(q->energy.provenance)
                                     : q->energy.reason);
    }
}

static void json_log(struct ipw_jw *w, const struct ipw_metered_run_input *in)
{
    ipw_jw_obj(w);
    ipw_jw_kint(w, "bad_rows", (int64_t)in->log.bad_rows);
    ipw_jw_key(w, "columns");
    ipw_jw_arr(w);
    for (size_t i = 0; i < in->log.format.n_columns; i++) {
        const struct ipw_meter_column *c = &in->log.format.columns[i];
        ipw_jw_obj(w);
        ipw_jw_kbool(w, "in_sum", c->in_sum);
        ipw_jw_kstr(w, "kind", c->kind == IPW_METER_WATTS ? "watts" : "joules");
        ipw_jw_kstr(w, "name", c->name);
        ipw_jw_obj_end(w);
    }
    ipw_jw_arr_end(w);
    ipw_jw_knum(w, "correlation", in->aligned ? in->fit.correlation : NAN);
    ipw_jw_kstr(w, "file", in->path);
    ipw_jw_kstr(w, "first_bad_row", in->log.first_bad[0] ? in->log.first_bad : NULL);
    ipw_jw_knum(w, "offset_if_other_kind_s", in->fit.other_s);
    ipw_jw_knum(w, "offset_plus_minus_s", in->aligned ? in->fit.plus_minus_s : NAN);
    ipw_jw_knum(w, "offset_s", in->fit.offset_s);
    ipw_jw_knum(w, "row_interval_s", in->aligned ? in->fit.row_s : NAN);
    ipw_jw_kint(w, "rows", (int64_t)in->log.rows);
    ipw_jw_kstr(w, "rows_are", !in->aligned ? NULL : in->fit.averages ? "means" : "instants");
    ipw_jw_obj_end(w);
}

static void json_query(struct ipw_jw *w, const struct ipw_metered_run_query *q)
{
    ipw_jw_obj(w);
    ipw_jw_knum(w, "average_watts", watts(&q->energy, q->t1_s - q->t0_s));
    ipw_jw_knum(w, "coverage", q->energy.coverage);
    ipw_jw_knum(w, "duration_s", q->t1_s - q->t0_s);
    ipw_jw_kmicro(w, "energy_joules", joules(&q->energy));
    ipw_jw_knum(w, "energy_wh", joules(&q->energy) / J_PER_WH);
    ipw_jw_kstr(w, "provenance",
                q->energy.known ? ipw_provenance_name(q->energy.provenance) : NULL);
    ipw_jw_kstr(w, "query_id", q->id);
    ipw_jw_kstr(w, "reason", q->energy.reason);
    ipw_jw_obj_end(w);
}

void ipw_metered_run_json(struct ipw_buf *out, const struct ipw_metered_run *r)
{
    double sum = 0;
    struct ipw_jw w;

    for (size_t i = 0; i < r->n_queries; i++) sum += joules(&r->queries[i].energy);
    ipw_jw_init(&w, out);
    ipw_jw_obj(&w);
    ipw_jw_knum(&w, "average_watts", watts(&r->total, r->t1_s - r->t0_s));
    ipw_jw_knum(&w, "coverage", r->total.coverage);
    ipw_jw_knum(&w, "duration_s", r->t1_s - r->t0_s);
    ipw_jw_kmicro(&w, "energy_joules", joules(&r->total));
    ipw_jw_knum(&w, "energy_wh", joules(&r->total) / J_PER_WH);
    ipw_jw_kmicro(&w, "idle_joules", joules(&r->idle));
    ipw_jw_key(&w, "logs");
    ipw_jw_arr(&w);
    for (size_t i = 0; i < r->n_logs; i++) json_log(&w, &r->logs[i]);
    ipw_jw_arr_end(&w);
    ipw_jw_knum(&w, "minimum_watts", r->least_w);
    ipw_jw_knum(&w, "peak_watts", r->peak_w);
    ipw_jw_kstr(&w, "provenance", ipw_provenance_name(r->total.provenance));
    ipw_jw_key(&w, "queries");
    ipw_jw_arr(&w);
    for (size_t i = 0; i < r->n_queries; i++) json_query(&w, &r->queries[i]);
    ipw_jw_arr_end(&w);
    ipw_jw_kmicro(&w, "queries_joules", sum);
    ipw_jw_kstr(&w, "run", r->run);
    ipw_jw_kint(&w, "samples", (int64_t)r->samples);
    ipw_jw_kint(&w, "schema_version", 1);
    ipw_jw_obj_end(&w);
    ipw_buf_addc(out, '\n');
}

/* ---- energy_report.json ---- */

enum { FEW_SAMPLES = 10, MANY_SAMPLES = 60 };

static size_t unknown_queries(const struct ipw_metered_run *r)
{
    size_t n = 0;

    for (size_t i = 0; i < r->n_queries; i++) n += !r->queries[i].energy.known;
    return n;
}

void ipw_metered_run_doubts(struct ipw_buf *out, const struct ipw_metered_run *r)
{
    size_t unknown = unknown_queries(r);

    if (r->samples < FEW_SAMPLES)
        ipw_buf_addf(out,
                     "the run is too short for its meter: %zu reading%s in it; with %d and more "
                     "its joules are good, with fewer than %d they are rough\n",
                     r->samples, r->samples == 1 ? "" : "s", MANY_SAMPLES, FEW_SAMPLES);
    if (unknown)
        ipw_buf_addf(out, "%zu of %zu queries have no joules of their own from this meter\n",
                     unknown, r->n_queries);
}

static void put_date(struct ipw_jw *w, const char *key, double t_s)
{
    char date[40];

    ipw_jw_kstr(w, key, ipw_clock_iso8601(date, sizeof date, ipw_s_to_ns(t_s)));
}

/* {"per_epoch", "per_run", "total"}; per_run: of one query, as the guide calls it. */
static void put_amount(struct ipw_jw *w, const char *key, double total, size_t n, int epochs)
{
    ipw_jw_key(w, key);
    ipw_jw_obj(w);
    ipw_jw_knum(w, "per_epoch", total / epochs);
    ipw_jw_knum(w, "per_run", total / (double)n);
    ipw_jw_knum(w, "total", total);
    ipw_jw_obj_end(w);
}

/* The queries of an epoch; its seconds are from the first one's start to the last one's end. */
static void put_epoch(struct ipw_jw *w, const struct ipw_metered_run *r, int epoch)
{
    double j = 0, t0_s = INFINITY, t1_s = -INFINITY;
    int64_t n = 0;

    for (size_t i = 0; i < r->n_queries; i++) {
        const struct ipw_metered_run_query *q = &r->queries[i];

        if (q->epoch != epoch) continue;
        n++;
        j += joules(&q->energy);
        t0_s = fmin(t0_s, q->t0_s);
        t1_s = fmax(t1_s, q->t1_s);
    }
    if (!n) return;
    ipw_jw_obj(w);
    ipw_jw_knum(w, "duration_seconds", t1_s - t0_s);
    ipw_jw_kint(w, "epoch", epoch);
    ipw_jw_kint(w, "num_runs", n);
    ipw_jw_kmicro(w, "queries_joules", j);
    ipw_jw_obj_end(w);
}

static void put_doubts(struct ipw_jw *w, const struct ipw_metered_run *r)
{
    struct ipw_buf text = IPW_BUF(IPW_MIB);

    ipw_metered_run_doubts(&text, r);
    ipw_jw_key(w, "warnings");
    ipw_jw_arr(w);
    for (const char *at = ipw_buf_str(&text); *at; at += strcspn(at, "\n") + 1)
        ipw_jw_strn(w, at, strcspn(at, "\n"));
    ipw_jw_arr_end(w);
    ipw_buf_release(&text);
}

void ipw_metered_run_energy_report(struct ipw_buf *out, const struct ipw_metered_run *r)
{
    double run_s = r->t1_s - r->t0_s, total = joules(&r->total), sum = 0;
    int epochs = 1;
    struct ipw_jw w;

    for (size_t i = 0; i < r->n_queries; i++) {
        sum += joules(&r->queries[i].energy);
        if (r->queries[i].epoch >= epochs) epochs = r->queries[i].epoch + 1;
    }
    ipw_jw_init(&w, out);
    ipw_jw_obj(&w);
    ipw_jw_knum(&w, "duration_seconds", run_s);
    put_date(&w, "end_timestamp", r->t1_s);
    put_amount(&w, "energy_joules", total, r->n_queries, epochs);
    put_amount(&w, "energy_wh", total / J_PER_WH, r->n_queries, epochs);
    ipw_jw_key(&w, "epochs");
    ipw_jw_arr(&w);
    for (int e = 0; e < epochs; e++) put_epoch(&w, r, e);
    ipw_jw_arr_end(&w);
    ipw_jw_kmicro(&w, "idle_joules", joules(&r->idle));
    ipw_jw_key(&w, "logs");
    ipw_jw_arr(&w);
    for (size_t i = 0; i < r->n_logs; i++) json_log(&w, &r->logs[i]);
    ipw_jw_arr_end(&w);
    ipw_jw_kint(&w, "num_epochs", epochs);
    ipw_jw_kint(&w, "num_power_samples", (int64_t)r->samples);
    ipw_jw_kint(&w, "num_runs", (int64_t)r->n_queries);
    ipw_jw_key(&w, "power_watts");
    ipw_jw_obj(&w);
    ipw_jw_knum(&w, "average", watts(&r->total, run_s));
    ipw_jw_knum(&w, "min", r->least_w);
    ipw_jw_knum(&w, "peak", r->peak_w);
    ipw_jw_obj_end(&w);
    ipw_jw_kstr(&w, "provenance", ipw_provenance_name(r->total.provenance));
    ipw_jw_kmicro(&w, "queries_joules", sum);
    put_date(&w, "start_timestamp", r->t0_s);
    put_doubts(&w, r);
    ipw_jw_obj_end(&w);
    ipw_buf_addc(out, '\n');
}
