#include "energy/meter.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "energy/meter_priv.h"

/* ---- a row ---- */

/* The most that is believed: no machine draws a megawatt, and microjoules must fit 63 bits. */
static bool is_in_range(double value, enum ipw_meter_kind kind)
{
    return value >= 0 && value <= (kind == IPW_METER_WATTS ? 1e6 : 9e12);
}

static int read_cell(const struct ipw_meter_format *f, const struct ipw_meter_column *c,
                     const struct meter_cell *cell, double *out, struct ipw_err *err)
{
    enum ipw_meter_kind kind;
    double value;

    *out = NAN;
    if (cell->n == 0 || (cell->n == 1 && *cell->text == '-') ||
        (cell->n == 3 &&
         (!strncasecmp(cell->text, "n/a", 3) || !strncasecmp(cell->text, "nan", 3)))) {
        return 0;
    }
    if (!ipw_meter_quantity(cell->text, cell->n, f->decimal_comma, &value, &kind)) {
        return ipw_fail(err, IPW_EPARSE, "'%.*s' in column %s is not a number",
                        (int)(cell->n < 40 ? cell->n : 40), cell->text, c->name);
    }
    if (kind != IPW_METER_NONE && kind != c->kind) {
        return ipw_fail(err, IPW_EPARSE, "'%.*s' in column %s: expected %s",
                        (int)(cell->n < 40 ? cell->n : 40), cell->text, c->name,
                        c->kind == IPW_METER_WATTS ? "watts" : "joules");
    }
    /* A unit in the cell overrides the heading's. */
    if (kind == IPW_METER_NONE) value *= c->factor;
    if (!is_in_range(value, c->kind)) {
        return ipw_fail(err, IPW_EPARSE, "'%.*s' in column %s is out of range",
                        (int)(cell->n < 40 ? cell->n : 40), cell->text, c->name);
    }
    *out = value;
    return 0;
}

static bool is_blank(const char *line, size_t n)
{
    size_t i = 0;

    while (i < n && strchr(" \t\r", line[i])) i++;
    return i == n || line[i] == '#';
}

/* The cell may hold the date alone, with the time of day in another cell. */
static int read_time(struct ipw_meter_format *f, const struct meter_cell *cells, double *t_s,
                     struct ipw_err *err)
{
    const struct meter_cell *date = &cells[f->time_cell], *clock;
    int rc = ipw_meter_time(f, date->text, date->n, t_s, err);
    char text[96];

    if (rc == 0 || f->clock_cell == SIZE_MAX) return rc;
    clock = &cells[f->clock_cell];
    if (date->n + clock->n + 2 > sizeof text) return rc;
    snprintf(text, sizeof text, "%.*s %.*s", (int)date->n, date->text, (int)clock->n, clock->text);
    return ipw_meter_time(f, text, strlen(text), t_s, err);
}

/* Rows of several devices are noticed when the first device's name comes again.  A counter of rows,
 * which may also be called index, never repeats a value. */
static int check_device(struct ipw_meter_format *f, const struct meter_cell *cell,
                        struct ipw_err *err)
{
    char name[sizeof f->first_device];

    snprintf(name, sizeof name, "%.*s", (int)(cell->n < sizeof name ? cell->n : sizeof name - 1),
             cell->text);
    if (!f->first_device[0]) memcpy(f->first_device, name, sizeof name);
    if (strcmp(f->first_device, name) != 0) f->others = true;
    if (!f->others || strcmp(f->first_device, name) != 0) return 0;
    return ipw_fail(
        err, IPW_EUNSUPPORTED,
        "the log mixes several devices ('%s' and others). Use one log per device and repeat --log",
        name);
}

/* A number without a unit has the kind of the first line. */
static int read_single(const struct ipw_meter_format *f, const char *line, size_t n,
                       struct ipw_meter_row *row, struct ipw_err *err)
{
    enum ipw_meter_kind kind, wanted = f->columns[0].kind;
    double *value = &row->values[0];
    const char *why = NULL;

    if (!ipw_meter_single(line, n, &row->t_s, value, &kind))
        why = "is not a reading";
    else if (kind != IPW_METER_NONE && kind != wanted)
        why = wanted == IPW_METER_WATTS ? "is not watts" : "is not joules";
    else if (!is_in_range(*value, wanted))
        why = "is out of range";
    return why ? ipw_fail(err, IPW_EPARSE, "'%.*s' %s", (int)(n < 60 ? n : 60), line, why) : 1;
}

int ipw_meter_row(struct ipw_meter_format *f, const char *line, size_t n, struct ipw_meter_row *row,
                  struct ipw_err *err)
{
    struct meter_cell cells[METER_CELLS];
    struct ipw_meter_format before = *f;
    size_t count;
    int rc;

    if (is_blank(line, n)) return 0;
    if (memchr(line, '\0', n)) return ipw_fail(err, IPW_EPARSE, "a NUL byte");
    if (f->bare) return read_single(f, line, n, row, err);
    count = ipw_meter_split(cells, METER_CELLS, line, n, f->delimiter);
    if (count != f->n_cells) {
        return ipw_fail(err, IPW_EPARSE, "%zu cells, expected %zu", count, f->n_cells);
    }
    rc = f->device_cell < count ? check_device(f, &cells[f->device_cell], err) : 0;
    if (rc == 0) rc = read_time(f, cells, &row->t_s, err);
    for (size_t i = 0; i < f->n_columns && rc == 0; i++) {
        rc = read_cell(f, &f->columns[i], &cells[f->columns[i].cell], &row->values[i], err);
    }
    if (rc < 0) *f = before;
    return rc < 0 ? rc : 1;
}

/* ---- a log ---- */

void ipw_meter_log_init(struct ipw_meter_log *log) { *log = (struct ipw_meter_log){0}; }

void ipw_meter_log_release(struct ipw_meter_log *log)
{
    for (size_t i = 0; i < IPW_METER_COLUMNS; i++) free(log->columns[i].at);
    *log = (struct ipw_meter_log){0};
}

static void add_point(struct ipw_meter_points *points, double t_s, double value)
{
    IPW_GROW(points->at, points->cap, points->n + 1);
    points->at[points->n++] = (struct ipw_meter_point){t_s, value};
}

static void add_row(struct ipw_meter_log *log, const struct ipw_meter_row *row)
{
    for (size_t i = 0; i < log->format.n_columns; i++) {
        if (isnan(row->values[i])) continue;
        add_point(&log->columns[i], row->t_s, row->values[i]);
        log->total++;
    }
    log->rows++;
}

int ipw_meter_log_line(struct ipw_meter_log *log, const char *line, size_t n, int64_t number,
                       const char *only, struct ipw_err *err)
{
    struct ipw_meter_row row;
    struct ipw_err why = {0};
    int rc;

    if (is_blank(line, n)) return 0;
    if (!log->begun) {
        rc = ipw_meter_format_begin(&log->format, line, n, only, err);
        if (rc == 0 && log->format.bare)
            rc = ipw_fail(err, IPW_EPARSE, "expected a time and watts in each row");
        if (rc < 0) return rc;
        log->begun = true;
        if (rc > 0) return 0;
    }
    rc = ipw_meter_row(&log->format, line, n, &row, &why);
    if (rc == IPW_EUNSUPPORTED) return ipw_fail(err, rc, "%s", why.text);
    if (rc < 0) {
        if (log->bad_rows++ == 0) {
            snprintf(log->first_bad, sizeof log->first_bad, "line %lld: %.160s", (long long)number,
                     why.text);
        }
        return 0;
    }
    if (rc > 0) add_row(log, &row);
    if (log->total > IPW_METER_POINTS) {
        return ipw_fail(err, IPW_ELIMIT, "more than %zu readings: shorten the log to the run",
                        IPW_METER_POINTS);
    }
    return 0;
}

static int by_time(const void *a, const void *b)
{
    const struct ipw_meter_point *pa = a, *pb = b;

    return pa->t_s < pb->t_s ? -1 : pa->t_s > pb->t_s;
}

/* Sorts the points; of several readings of one instant it keeps the last. */
static void put_in_order(struct ipw_meter_points *points)
{
    size_t kept = 0;
    bool sorted = true;

    for (size_t i = 1; i < points->n && sorted; i++) {
        sorted = points->at[i].t_s >= points->at[i - 1].t_s;
    }
    if (!sorted) qsort(points->at, points->n, sizeof *points->at, by_time);
    for (size_t i = 0; i < points->n; i++) {
        if (kept && points->at[kept - 1].t_s == points->at[i].t_s) kept--;
        points->at[kept++] = points->at[i];
    }
    points->n = kept;
}

/* Prefer a column of the whole machine: its power includes the parts'. */
static void prefer_machine(struct ipw_meter_format *f)
{
    bool machine = false;

    for (size_t i = 0; i < f->n_columns; i++) {
        machine |= f->columns[i].in_sum && f->columns[i].domain == IPW_DOMAIN_MACHINE;
    }
    for (size_t i = 0; i < f->n_columns; i++) {
        if (machine && f->columns[i].domain != IPW_DOMAIN_MACHINE) f->columns[i].in_sum = false;
    }
}

int ipw_meter_log_end(struct ipw_meter_log *log, struct ipw_err *err)
{
    prefer_machine(&log->format);
    for (size_t i = 0; i < log->format.n_columns; i++) {
        struct ipw_meter_column *c = &log->format.columns[i];

        put_in_order(&log->columns[i]);
        if (log->columns[i].n >= 2 || !c->in_sum) continue;
        return ipw_fail(err, IPW_EPARSE, "column %s has fewer than two readings%s%s", c->name,
                        log->first_bad[0] ? "; " : "", log->first_bad);
    }
    if (!log->begun) return ipw_fail(err, IPW_EPARSE, "the log is empty");
    return 0;
}

/* ---- sums ---- */

struct part {
    struct ipw_meter_points points;
    double shift_s;
    size_t at; /* the point before the current instant */
    bool owned;
};

/* The watts of a counter: the mean since the reading before.  A backward step is a reset and gives
 * no power. */
static struct ipw_meter_points differences(const struct ipw_meter_points *joules)
{
    struct ipw_meter_points out = {.means = true};

    for (size_t i = 1; i < joules->n; i++) {
        const struct ipw_meter_point *a = &joules->at[i - 1], *b = &joules->at[i];
        if (b->value >= a->value)
            add_point(&out, b->t_s, (b->value - a->value) / (b->t_s - a->t_s));
    }
    return out;
}

static size_t gather_parts(struct part **parts, const struct ipw_meter_log *const *logs,
                           const double *shift_s, size_t n_logs)
{
    size_t n = 0, cap = 0;

    *parts = NULL;
    for (size_t l = 0; l < n_logs; l++) {
        for (size_t i = 0; i < logs[l]->format.n_columns; i++) {
            const struct ipw_meter_column *c = &logs[l]->format.columns[i];
            struct part part = {.points = logs[l]->columns[i], .shift_s = shift_s[l]};

            if (!c->in_sum) continue;
            if (c->kind == IPW_METER_JOULES) {
                part.points = differences(&logs[l]->columns[i]);
                part.owned = true;
            }
            IPW_GROW(*parts, cap, n + 1);
            (*parts)[n++] = part;
        }
    }
    return n;
}

static double time_of(const struct part *p, size_t i) { return p->points.at[i].t_s - p->shift_s; }

/* The watts of a part at an instant inside it; call it with instants in order. */
static double value_at(struct part *p, double t_s)
{
    const struct ipw_meter_point *a, *b;

    while (p->at + 2 < p->points.n && time_of(p, p->at + 1) <= t_s) p->at++;
    if (p->points.n == 1) return p->points.at[0].value;
    a = &p->points.at[p->at];
    b = a + 1;
    if (p->points.means) return t_s <= time_of(p, p->at) ? a->value : b->value;
    return a->value + (b->value - a->value) * (t_s - time_of(p, p->at)) / (b->t_s - a->t_s);
}

void ipw_meter_sum(struct ipw_meter_points *out, const struct ipw_meter_log *const *logs,
                   const double *shift_s, size_t n_logs)
{
    struct part *parts;
    size_t n = gather_parts(&parts, logs, shift_s, n_logs), *next;
    double from = -INFINITY, to = INFINITY;

    *out = (struct ipw_meter_points){.means = n > 0};
    next = ipw_calloc(n + 1, sizeof *next);
    for (size_t i = 0; i < n; i++) {
        out->means = out->means && parts[i].points.means;
        if (parts[i].points.n == 0) {
            from = INFINITY; /* no instant is inside all parts */
            to = -INFINITY;
            continue;
        }
        if (time_of(&parts[i], 0) > from) from = time_of(&parts[i], 0);
        if (time_of(&parts[i], parts[i].points.n - 1) < to) {
            to = time_of(&parts[i], parts[i].points.n - 1);
        }
    }
    while (n > 0 && from <= to) {
        double t = INFINITY, watts = 0;

        for (size_t i = 0; i < n; i++) {
            while (next[i] < parts[i].points.n && time_of(&parts[i], next[i]) < from) next[i]++;
            if (next[i] < parts[i].points.n && time_of(&parts[i], next[i]) < t) {
                t = time_of(&parts[i], next[i]);
            }
        }
        if (t > to) break;
        for (size_t i = 0; i < n; i++) {
            watts += value_at(&parts[i], t);
            if (next[i] < parts[i].points.n && time_of(&parts[i], next[i]) <= t) next[i]++;
        }
        add_point(out, t, watts);
    }
    for (size_t i = 0; i < n; i++) {
        if (parts[i].owned) free(parts[i].points.at);
    }
    free(parts);
    free(next);
}
