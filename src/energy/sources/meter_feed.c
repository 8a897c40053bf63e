#include "energy/sources/meter_feed.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"

#define ASK_NS         (20 * IPW_NS_PER_MS)
#define LEAST_STALE_NS IPW_NS_PER_S
#define FIRST_STALE_NS (10 * IPW_NS_PER_S)    /* while the distance of rows is unknown */
#define HOLD_NS        (2500 * IPW_NS_PER_MS) /* a finished query waits 3 s for a reading */
#define TELL_NS        (500 * IPW_NS_PER_MS)  /* how often a silence is told */
#define MAX_W          30000
#define MOST_ROWS      ((size_t)4096) /* of one pull; beyond, the oldest are left out */

/* ---- staleness ---- */

void ipw_meter_feed_pace_news(struct ipw_meter_feed_pace *p, int64_t now_ns)
{
    int64_t since = now_ns - p->last_ns;

    /* News that come together do not tell their distance. */
    if (p->last_ns && since >= IPW_NS_PER_MS)
        p->spacing_ns = p->spacing_ns ? (3 * p->spacing_ns + since) / 4 : since;
    p->last_ns = now_ns;
}

bool ipw_meter_feed_pace_is_stale(const struct ipw_meter_feed_pace *p, int64_t now_ns)
{
    int64_t limit = p->spacing_ns ? 3 * p->spacing_ns : FIRST_STALE_NS;

    return !p->last_ns || now_ns - p->last_ns > (limit > LEAST_STALE_NS ? limit : LEAST_STALE_NS);
}

/* ---- lines ---- */

static void note_bad(struct ipw_meter_feed *f, const char *why)
{
    if (f->bad++ == 0) {
        snprintf(f->first_bad, sizeof f->first_bad, "%s%s%lld: %.90s",
                 f->name[0] ? f->name : "line", f->name[0] ? ":" : " ", (long long)f->number, why);
        for (char *p = f->first_bad; *p; p++)
            if ((unsigned char)*p < ' ' || *p == 127) *p = ' ';
    }
    ipw_source_set_note(&f->source, "%zu line%s no reading; %.120s", f->bad,
                        f->bad == 1 ? " is" : "s are", f->first_bad);
}

static bool has_same_columns(const struct ipw_meter_feed *f, const struct ipw_meter_format *other)
{
    if (other->bare != f->format.bare || other->n_columns != f->format.n_columns) return false;
    for (size_t i = 0; i < other->n_columns; i++)
        if (other->columns[i].kind != f->format.columns[i].kind ||
            strcmp(other->columns[i].name, f->format.columns[i].name))
            return false;
    return true;
}

/* Takes the heading, also that of a file that replaced the first.  A log that is emptied while it
 * is written (logrotate's copytruncate) goes on without one.  1: the line was only the heading. */
static int begin(struct ipw_meter_feed *f, const char *line, size_t n)
{
    bool known = f->source.n_channels > 0;
    struct ipw_meter_format format = f->format;
    struct ipw_meter_row row;
    int rc;

    if (known && ipw_meter_row(&format, line, n, &row, NULL) > 0) {
        f->begun = true;
        return 0;
    }
    rc = ipw_meter_format_begin(&format, line, n, f->column, &f->err);
    if (f->patient && (rc < 0 || (rc > 0 && !format.time_named)))
        rc = ipw_fail(&f->err, IPW_EPARSE, "'%.*s' is not a reading", (int)(n < 60 ? n : 60), line);
    if (rc >= 0 && known && !has_same_columns(f, &format))
        rc = ipw_fail(&f->err, IPW_EPARSE, "the columns have changed");
    if (rc < 0) return rc;
    f->format = format;
    f->begun = true;
    return rc;
}

static void add_row(struct ipw_meter_feed *f, const struct ipw_meter_row *row)
{
    struct ipw_meter_feed_row *to;

    if (f->n_rows - f->taken >= MOST_ROWS) f->taken++;
    if (f->taken && f->n_rows == f->cap_rows) {
        memmove(f->rows, f->rows + f->taken, (f->n_rows - f->taken) * sizeof *f->rows);
        f->n_rows -= f->taken;
        f->taken = 0;
    }
    IPW_GROW(f->rows, f->cap_rows, f->n_rows + 1);
    to = &f->rows[f->n_rows++];
    *to = (struct ipw_meter_feed_row){.stamp_s = row->t_s};
    for (size_t i = 0; i < f->format.n_columns; i++) {
        if (!isnan(row->values[i])) f->newest[i] = row->values[i];
        to->values[i] = f->newest[i]; /* a cell that another row has holds */
    }
}

static void take_line(struct ipw_meter_feed *f)
{
    const char *line = f->text;
    size_t n = f->n_text;
    struct ipw_meter_row row;
    struct ipw_err err = {0};
    int rc = 0;

    f->n_text = 0;
    f->number++;
    if (n && line[n - 1] == '\r') n--;
    if (f->number == 1 && n >= 3 && !memcmp(line, "\xEF\xBB\xBF", 3)) line += 3, n -= 3; /* BOM */
    while (n && (*line == ' ' || *line == '\t')) line++, n--;
    if (!n || *line == '#' || f->err.code) return;
    if (!f->begun) {
        rc = begin(f, line, n);
        if (rc < 0) note_bad(f, f->err.text);
        if (f->patient) f->err.code = IPW_OK;
        if (rc != 0) return;
    }
    if (f->skip) return;
    rc = ipw_meter_row(&f->format, line, n, &row, &err);
    if (rc < 0) note_bad(f, err.text);
    if (rc == IPW_EUNSUPPORTED) { /* no row can be used, earlier ones included */
        f->err = err;
        f->taken = f->n_rows;
        f->pace = (struct ipw_meter_feed_pace){0};
    }
    if (rc > 0) add_row(f, &row);
}

void ipw_meter_feed_bytes(struct ipw_meter_feed *f, const char *bytes, size_t n)
{
    while (n > 0) {
        const char *nl = memchr(bytes, '\n', n);
        size_t piece = nl ? (size_t)(nl - bytes) : n, room = sizeof f->text - f->n_text;

        memcpy(f->text + f->n_text, bytes, piece < room ? piece : room);
        f->n_text += piece < room ? piece : room;
        if (!nl) return;
        take_line(f);
        bytes += piece + 1;
        n -= piece + 1;
    }
}

void ipw_meter_feed_end_line(struct ipw_meter_feed *f)
{
    if (f->n_text) take_line(f);
}

void ipw_meter_feed_restart(struct ipw_meter_feed *f)
{
    f->n_text = 0;
    f->number = 0;
    f->begun = false;
    f->err.code = IPW_OK;
}

/* ---- times ---- */

/* When the i-th of `n` rows that came together was written, `before_s` before the last one by its
 * stamp (NAN: unknown); see meter_feed.h. */
static int64_t written_ns(const struct ipw_meter_feed *f, size_t i, size_t n, double before_s,
                          int64_t now_ns, int64_t *half_ns)
{
    *half_ns = f->pulled_ns ? now_ns - f->pulled_ns : 0;
    if (i == n - 1) return now_ns;
    if (before_s >= 0) return now_ns - (int64_t)(fmin(before_s, 1e9) * 1e9);
    *half_ns = now_ns - f->row_ns;
    return f->row_ns + (now_ns - f->row_ns) / (int64_t)n * (int64_t)(i + 1);
}

/* Gives the rows that came with a pull their times, and drops those from before the last one. */
static void place_rows(struct ipw_meter_feed *f, size_t waiting, int64_t now_ns)
{
    size_t n = f->n_rows - f->taken - waiting, kept = 0;
    struct ipw_meter_feed_row *rows;
    int64_t least_ns = f->row_ns;
    double last_s;

    if (n == 0) return;
    rows = f->rows + f->taken + waiting;
    if (f->past || !f->row_ns) rows[0] = rows[n - 1], n = 1;
    last_s = rows[n - 1].stamp_s;
    if (!(last_s > rows[0].stamp_s)) last_s = NAN; /* stamps that do not go on tell nothing */
    for (size_t i = 0; i < n; i++) {
        struct ipw_meter_feed_row row = rows[i];

        row.t_ns = written_ns(f, i, n, last_s - row.stamp_s, now_ns, &row.half_ns);
        if (row.t_ns <= least_ns) continue;
        least_ns = row.t_ns;
        rows[kept++] = row; /* kept <= i: no later row is overwritten */
    }
    f->n_rows = f->taken + waiting + kept;
    f->row_ns = least_ns;
    ipw_meter_feed_pace_news(&f->pace, now_ns);
}

void ipw_meter_feed_pull(struct ipw_meter_feed *f)
{
    int64_t now_ns = f->source.now();
    size_t waiting = f->n_rows - f->taken;

    f->pull(f);
    if (waiting > f->n_rows - f->taken) waiting = f->n_rows - f->taken;
    place_rows(f, waiting, now_ns);
    f->pulled_ns = now_ns;
}

/* ---- the source ---- */

static void put_values(const struct ipw_meter_feed *f, const double *from, int64_t half_ns,
                       int64_t *values)
{
    for (size_t i = 0; i < f->format.n_columns; i++) {
        double x = from ? from[i] : NAN;

        x *= f->format.columns[i].kind == IPW_METER_WATTS ? 1e3 : 1e6;
        values[i] = x >= 0 && x < 9e18 ? (int64_t)(x + 0.5) : IPW_NO_VALUE;
    }
    values[f->format.n_columns] = half_ns; /* thousandths of a microsecond */
}

static int give(struct ipw_meter_feed *f, int64_t t_ns, int64_t *out_ns)
{
    *out_ns = f->given_ns = t_ns;
    return 1;
}

static int feed_next(struct ipw_source *self, int64_t *values, int64_t *t_ns, int64_t *half_ns)
{
    struct ipw_meter_feed *f = (struct ipw_meter_feed *)self;
    int64_t now_ns = self->now(), since;
    bool stale;

    if (f->taken == f->n_rows && !f->ended) ipw_meter_feed_pull(f);
    *half_ns = 0;
    while (f->taken < f->n_rows) {
        const struct ipw_meter_feed_row *row = &f->rows[f->taken++];

        if (row->t_ns <= f->given_ns) continue; /* its time is held already */
        *half_ns = row->half_ns;
        put_values(f, row->values, row->half_ns, values);
        return give(f, row->t_ns, t_ns);
    }
    f->taken = f->n_rows = 0;
    if (f->ended) return -1;
    stale = ipw_meter_feed_pace_is_stale(&f->pace, now_ns);
    since = now_ns - f->given_ns;
    if (f->given_ns && since < (stale ? TELL_NS : HOLD_NS)) return 0;
    put_values(f, stale ? NULL : f->newest, 0, values);
    return give(f, now_ns, t_ns);
}

static void feed_read(struct ipw_source *self, int64_t *values)
{
    struct ipw_meter_feed *f = (struct ipw_meter_feed *)self;
    int64_t now_ns = self->now();

    if (!f->ended) ipw_meter_feed_pull(f);
    f->taken = f->n_rows = 0;
    put_values(f, f->ended || ipw_meter_feed_pace_is_stale(&f->pace, now_ns) ? NULL : f->newest, 0,
               values);
}

static void feed_close(struct ipw_source *self)
{
    struct ipw_meter_feed *f = (struct ipw_meter_feed *)self;

    free(f->rows);
    f->shut(f);
}

void ipw_meter_feed_init(struct ipw_meter_feed *f, const char *source_name)
{
    f->source.name = source_name;
    f->source.read = feed_read;
    f->source.next = feed_next;
    f->source.close = feed_close;
    f->source.now = ipw_now_ns;
    f->source.period_ns = ASK_NS;
    for (size_t i = 0; i < IPW_METER_COLUMNS; i++) f->newest[i] = NAN;
}

void ipw_meter_feed_describe(struct ipw_meter_feed *f, const char *prefix, const char *method)
{
    static const enum ipw_scope scopes[IPW_DOMAIN_COUNT] = {[IPW_DOMAIN_GPU] = IPW_SCOPE_DEVICE,
                                                            [IPW_DOMAIN_CPU] = IPW_SCOPE_PACKAGE,
                                                            [IPW_DOMAIN_DRAM] = IPW_SCOPE_DRAM,
                                                            [IPW_DOMAIN_MACHINE] =
                                                                IPW_SCOPE_MACHINE};
    size_t n = f->format.n_columns;

    for (size_t i = 0; i < n; i++) {
        const struct ipw_meter_column *column = &f->format.columns[i];
        struct ipw_channel *c = &f->channels[i];
        bool watts = column->kind == IPW_METER_WATTS;

        *c = (struct ipw_channel){.domain = column->domain,
                                  .scope = scopes[column->domain],
                                  .kind = watts ? IPW_CHANNEL_GAUGE : IPW_CHANNEL_COUNTER,
                                  .max_w = MAX_W,
                                  .in_sum = column->in_sum,
                                  .fresh = watts,
                                  /* Each process starts a command anew. */
                                  .own_zero = f->patient && !watts};
        if (f->format.bare)
            snprintf(c->name, sizeof c->name, "%.60s", prefix);
        else
            snprintf(c->name, sizeof c->name, "%.24s:%.36s", prefix, column->name);
        memcpy(c->device, c->name, sizeof c->name);
        snprintf(c->unit, sizeof c->unit, "%s", watts ? "mW" : "uJ");
        snprintf(c->method, sizeof c->method, "%s", method);
    }
    f->channels[n] = (struct ipw_channel){
        .domain = IPW_DOMAIN_MACHINE, .kind = IPW_CHANNEL_METRIC, .unit = IPW_UNIT_CLOCK};
    snprintf(f->channels[n].name, sizeof f->channels[n].name, "%.56s/clock", prefix);
    f->source.channels = f->channels;
    f->source.n_channels = n + 1;
}
