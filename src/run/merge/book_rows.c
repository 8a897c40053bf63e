#include "run/merge/book_rows.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "json/document.h"
#include "json/write.h"
#include "ledger/power_reader.h"
#include "trace/power.h"
#include "trace/spec.h"

#define TEXT_MAX  (64 * IPW_MIB)
#define MARGIN_NS (60 * IPW_NS_PER_S) /* rows so far around a session are taken */

struct column { /* of a log: a source of its own */
    const struct ipw_metered_run_input *log;
    size_t index;
    bool watts;
    int64_t late_ns; /* how much later than its instant a row is stamped */
    struct ipw_channel channel;
};

struct columns {
    struct column *all;
    size_t n, cap;
};

/* ---- the meter's channels ---- */

static int by_number(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

double ipw_book_row_s(const struct ipw_metered_run_input *in)
{
    double row_s = NAN;

    for (size_t c = 0; c < in->log.format.n_columns && isnan(row_s); c++) {
        const struct ipw_meter_points *p = &in->log.columns[c];
        double *gaps = ipw_calloc(p->n + 1, sizeof *gaps);

        for (size_t i = 1; i < p->n; i++) gaps[i - 1] = p->at[i].t_s - p->at[i - 1].t_s;
        if (p->n > 1) qsort(gaps, p->n - 1, sizeof *gaps, by_number);
        if (p->n > 1) row_s = gaps[(p->n - 1) / 2];
        free(gaps);
    }
    return row_s;
}

/* Twice the highest power of the column: the most that the ledger believes of the machine. */
static int64_t most_w(const struct ipw_metered_run_input *in, size_t index)
{
    const struct ipw_meter_points *p = &in->log.columns[index];
    bool watts = in->log.format.columns[index].kind == IPW_METER_WATTS;
    double most = 0;

    for (size_t i = 0; i < p->n; i++) {
        if (watts)
            most = fmax(most, p->at[i].value);
        else if (i && p->at[i].t_s > p->at[i - 1].t_s)
            most = fmax(most,
                        (p->at[i].value - p->at[i - 1].value) / (p->at[i].t_s - p->at[i - 1].t_s));
    }
    return (int64_t)fmin(ceil(2 * most) + 1, 1e9);
}

static void add_column(struct columns *c, const struct ipw_metered_run_input *in, size_t index)
{
    const struct ipw_meter_column *of = &in->log.format.columns[index];
    const char *slash = strrchr(in->path, '/');
    double row_s = ipw_book_row_s(in),
           apart_s = isnan(in->clock.plus_minus_s) ? 0 : in->clock.plus_minus_s;
    struct column *to;

    IPW_GROW(c->all, c->cap, c->n + 1);
    to = &c->all[c->n];
    *to = (struct column){.log = in, .index = index, .watts = of->kind == IPW_METER_WATTS};
    to->channel = (struct ipw_channel){.domain = IPW_DOMAIN_MACHINE,
                                       .kind = to->watts ? IPW_CHANNEL_GAUGE : IPW_CHANNEL_COUNTER,
                                       .max_w = most_w(in, index),
                                       .in_sum = true,
                                       .period_ns = ipw_s_to_ns(row_s + apart_s),
                                       .scope = IPW_SCOPE_MACHINE,
                                       .own_zero = !to->watts};
    snprintf(to->channel.name, sizeof to->channel.name, "%s%zu/%.40s", IPW_BOOK_SOURCE, ++c->n,
             of->name[0] ? of->name : "column");
    snprintf(to->channel.device, sizeof to->channel.device, "%.60s", slash ? slash + 1 : in->path);
    snprintf(to->channel.unit, sizeof to->channel.unit, "%s", to->watts ? "mW" : "uJ");
    snprintf(to->channel.method, sizeof to->channel.method, "log of a power meter");
    if (to->watts && in->clock.averages) to->channel.window_ns = ipw_s_to_ns(row_s);
    if (to->watts) to->late_ns = (to->channel.period_ns + to->channel.window_ns) / 2;
}

static struct columns columns_of(const struct ipw_metered_run *meter)
{
    struct columns c = {0};

    for (size_t l = 0; l < meter->n_logs; l++)
        for (size_t i = 0; i < meter->logs[l].log.format.n_columns; i++)
            if (meter->logs[l].log.format.columns[i].in_sum) add_column(&c, &meter->logs[l], i);
    return c;
}

/* ---- headers ---- */

/* A list of channels without another one in the machine's sum. */
static void put_others(struct ipw_jw *w, const struct ipw_json *channels)
{
    for (const struct ipw_json *c = ipw_json_first(channels); c; c = ipw_json_next(c)) {
        bool other = !strcmp(ipw_json_str(ipw_json_get(c, "domain"), ""),
                             ipw_domain_name(IPW_DOMAIN_MACHINE));
        struct ipw_buf text = IPW_BUF(TEXT_MAX);

        ipw_json_patch(&text, c, other ? "{\"in_sum\":false}" : "{}");
        ipw_jw_raw(w, ipw_buf_str(&text), text.len);
        ipw_buf_release(&text);
    }
}

/* A source of the header: it is written by trace/power.h as of a set of one. */
static void put_source(struct ipw_jw *w, const struct column *c, size_t number)
{
    struct ipw_source source = {
        .channels = &c->channel, .n_channels = 1, .period_ns = c->channel.period_ns};
    struct ipw_source_set set = {.sources = {&source}, .n = 1};
    struct ipw_buf header = IPW_BUF(TEXT_MAX);
    struct ipw_json *doc = NULL;
    char name[32], *text;

    snprintf(name, sizeof name, "%s%zu", IPW_BOOK_SOURCE, number);
    source.name = name;
    ipw_source_set_note(&source, "booked after the run: the log's clock was %+.2f s, +-%.2f s",
                        c->log->clock.offset_s,
                        isnan(c->log->clock.plus_minus_s) ? 0 : c->log->clock.plus_minus_s);
    ipw_source_set_describe(&set);
    ipw_power_header_write(&header, &set, c->channel.period_ns, 0);
    if (ipw_json_parse(&doc, ipw_buf_str(&header), header.len - 1, NULL, NULL))
        IPW_BUG("the header of power.jsonl is not JSON");
    text = ipw_json_text(ipw_json_at(ipw_json_get(doc, "sources"), 0));
    ipw_jw_raw(w, text, strlen(text));
    free(text);
    ipw_json_free(doc);
    ipw_buf_release(&header);
    free(set.channels);
    free(set.rejected);
}

static void put_basis(struct ipw_jw *w, const struct ipw_json *basis, const struct columns *c)
{
    struct ipw_buf text = IPW_BUF(TEXT_MAX), patch = IPW_BUF(TEXT_MAX);
    struct ipw_json *none = NULL;
    struct ipw_jw p;

    ipw_jw_init(&p, &patch);
    ipw_jw_obj(&p);
    ipw_jw_kstr(&p, "machine", c->n == 1 ? "power meter" : "power meters");
    ipw_jw_obj_end(&p);
    if (!basis &&
        ipw_json_parse(&none, "{\"cpu\":null,\"dram\":null,\"gpu\":null}", 35, NULL, NULL))
        IPW_BUG("an empty basis is not JSON");
    ipw_json_patch(&text, basis ? basis : none, ipw_buf_str(&patch));
    ipw_jw_kraw(w, "basis", ipw_buf_str(&text), text.len);
    ipw_buf_release(&text);
    ipw_buf_release(&patch);
    ipw_json_free(none);
}

static void put_sources(struct ipw_jw *w, const struct ipw_json *sources, const struct columns *c)
{
    ipw_jw_key(w, "sources");
    ipw_jw_arr(w);
    for (const struct ipw_json *s = ipw_json_first(sources); s; s = ipw_json_next(s)) {
        struct ipw_buf text = IPW_BUF(TEXT_MAX), patch = IPW_BUF(TEXT_MAX);
        struct ipw_jw p;

        ipw_jw_init(&p, &patch);
        ipw_jw_obj(&p);
        ipw_jw_key(&p, "channels");
        ipw_jw_arr(&p);
        put_others(&p, ipw_json_get(s, "channels"));
        ipw_jw_arr_end(&p);
        ipw_jw_obj_end(&p);
        ipw_json_patch(&text, s, ipw_buf_str(&patch));
        ipw_jw_raw(w, ipw_buf_str(&text), text.len);
        ipw_buf_release(&text);
        ipw_buf_release(&patch);
    }
    for (size_t i = 0; i < c->n; i++) put_source(w, &c->all[i], i + 1);
    ipw_jw_arr_end(w);
}

/* `own` NULL: the session read no sensor. */
static void put_header(struct ipw_buf *out, const char *own, int session, const struct columns *c)
{
    struct ipw_buf patch = IPW_BUF(TEXT_MAX), plain = IPW_BUF(TEXT_MAX);
    const struct ipw_source_set none = {.n = 0};
    struct ipw_json *doc = NULL;
    struct ipw_jw w;

    if (!own) ipw_power_header_write(&plain, &none, c->all[0].channel.period_ns, session);
    if (ipw_json_parse(&doc, own ? own : ipw_buf_str(&plain), own ? strlen(own) : plain.len - 1,
                       NULL, NULL))
        IPW_BUG("the header of power.jsonl is not JSON");
    ipw_jw_init(&w, &patch);
    ipw_jw_obj(&w);
    put_basis(&w, ipw_json_get(doc, "basis"), c);
    put_sources(&w, ipw_json_get(doc, "sources"), c);
    ipw_jw_obj_end(&w);
    ipw_json_patch(out, doc, ipw_buf_str(&patch));
    ipw_buf_addc(out, '\n');
    ipw_json_free(doc);
    ipw_buf_release(&patch);
    ipw_buf_release(&plain);
}

void ipw_book_hardware_put(struct ipw_buf *out, const struct ipw_json *hardware,
                           const struct ipw_metered_run *meter)
{
    struct columns c = columns_of(meter);
    struct ipw_buf patch = IPW_BUF(TEXT_MAX);
    struct ipw_jw w;

    ipw_jw_init(&w, &patch);
    ipw_jw_obj(&w);
    put_basis(&w, ipw_json_get(hardware, "basis"), &c);
    ipw_jw_key(&w, "channels");
    ipw_jw_arr(&w);
    put_others(&w, ipw_json_get(hardware, "channels"));
    for (size_t i = 0; i < c.n; i++) {
        const struct ipw_channel *channel = &c.all[i].channel;
        char source[32];

        snprintf(source, sizeof source, "%s%zu", IPW_BOOK_SOURCE, i + 1);
        ipw_jw_obj(&w);
        ipw_jw_kstr(&w, "device", channel->device);
        ipw_jw_kstr(&w, "domain", ipw_domain_name(channel->domain));
        ipw_jw_kbool(&w, "in_sum", true);
        ipw_jw_kstr(&w, "kind", c.all[i].watts ? "gauge" : "counter");
        ipw_jw_kstr(&w, "method", channel->method);
        ipw_jw_kstr(&w, "name", channel->name);
        ipw_jw_kbool(&w, "remote", false);
        ipw_jw_kstr(&w, "scope", ipw_scope_name(channel->scope));
        ipw_jw_kstr(&w, "source", source);
        ipw_jw_kbool(&w, "whole_gpu", false);
        ipw_jw_obj_end(&w);
    }
    ipw_jw_arr_end(&w);
    ipw_jw_obj_end(&w);
    ipw_json_patch(out, hardware, ipw_buf_str(&patch));
    ipw_buf_release(&patch);
    free(c.all);
}

/* ---- rows ---- */

struct row {
    int64_t t_ns, value;
    size_t column;
};

struct rows {
    struct row *all;
    size_t n, cap, at;
};

static int by_time(const void *a, const void *b)
{
    const struct row *x = a, *y = b;

    if (x->t_ns != y->t_ns) return x->t_ns < y->t_ns ? -1 : 1;
    return (x->column > y->column) - (x->column < y->column);
}

/* The rows around a session, on its clock.  Rows of one column have different times. */
static void take_rows(struct rows *out, const struct columns *c, const struct ipw_shard_session *s)
{
    for (size_t i = 0; i < c->n; i++) {
        const struct column *of = &c->all[i];
        int64_t before_ns = INT64_MIN;

        for (size_t k = 0; k < of->log->log.columns[of->index].n; k++) {
            struct row row = {.column = i};
            double t_s = ipw_metered_run_reading(&row.value, of->log, of->index, k);

            /* ipw_shard_session.clock ties the session's clock to the date. */
            row.t_ns = s->clock.mono_ns + (ipw_s_to_ns(t_s) - s->clock.wall_ns) + of->late_ns;
            if (row.t_ns < s->start_ns - MARGIN_NS || row.t_ns > s->end_ns + MARGIN_NS ||
                row.t_ns <= before_ns)
                continue;
            before_ns = row.t_ns;
            IPW_GROW(out->all, out->cap, out->n + 1);
            out->all[out->n++] = row;
        }
    }
    if (out->n) qsort(out->all, out->n, sizeof *out->all, by_time);
}

static void put_rows_before(struct ipw_buf *out, struct rows *rows, int64_t t_ns, size_t n_sources)
{
    for (; rows->at < rows->n && rows->all[rows->at].t_ns <= t_ns; rows->at++) {
        struct row *r = &rows->all[rows->at];
        struct ipw_sampler_row line = {
            .t_ns = r->t_ns, .source = n_sources + r->column, .n = 1, .values = &r->value};

        ipw_power_row_write(out, &line);
    }
}

static int flush(struct ipw_buf *out, FILE *to, const char *path, struct ipw_err *err)
{
    if (fwrite(ipw_buf_str(out), 1, out->len, to) != out->len)
        return ipw_fail_errno(err, errno, "%s", path);
    ipw_buf_clear(out);
    return 0;
}

static int write_session(FILE *to, const char *path, struct ipw_power_reader *p, int number,
                         const struct ipw_shard_session *s, const struct columns *c,
                         struct ipw_err *err)
{
    struct ipw_buf out = IPW_BUF(TEXT_MAX);
    struct rows rows = {0};
    int rc = ipw_power_reader_segment(p, number, err);
    size_t n_sources = rc ? 0 : p->n_sources;

    take_rows(&rows, c, s);
    if (!rc) put_header(&out, n_sources ? p->header_text : NULL, number, c);
    while (!rc && n_sources && (rc = ipw_power_reader_next(p, err)) > 0) {
        struct ipw_sampler_row line = {.t_ns = p->t_ns,
                                       .source = p->source,
                                       .n = p->sources[p->source].n,
                                       .values = p->values};

        put_rows_before(&out, &rows, p->t_ns, n_sources);
        ipw_power_row_write(&out, &line);
        rc = out.len > IPW_MIB ? flush(&out, to, path, err) : 0;
    }
    if (!rc) put_rows_before(&out, &rows, INT64_MAX, n_sources);
    if (!rc) rc = flush(&out, to, path, err);
    free(rows.all);
    ipw_buf_release(&out);
    return rc;
}

int ipw_book_rows_write(const char *folder, struct ipw_shard_run *run,
                        const struct ipw_metered_run *meter, struct ipw_err *err)
{
    char *path = ipw_asprintf("%s/power.jsonl", folder);
    struct columns c = columns_of(meter);
    struct ipw_power_reader p;
    FILE *to = fopen(path, "wxe");
    int rc =
        to ? ipw_power_reader_open(&p, run->path, err) : ipw_fail_errno(err, errno, "%s", path);

    run->n_added = c.n;
    for (size_t i = 0; i < run->n_sessions && !rc; i++)
        if (run->sessions[i].start_ns)
            rc = write_session(to, path, &p, (int)i, &run->sessions[i], &c, err);
    if (to) ipw_power_reader_close(&p);
    if (to && fclose(to) && !rc) rc = ipw_fail_errno(err, errno, "%s", path);
    free(c.all);
    free(path);
    return rc;
}
