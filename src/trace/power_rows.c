#include "trace/power_rows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/vlq.h"

enum { PLAIN_EVERY_ROWS = 128 };
#define PLAIN_EVERY_NS (10 * IPW_NS_PER_S)
#define MOST           (INT64_C(1) << 53) /* no difference beyond it is packed */

__extension__ typedef __int128 wide;
_Static_assert(IPW_NO_VALUE == IPW_VLQ_NONE, "null is written as no value");

struct ipw_power_stream {
    size_t first, n; /* its channels */
    bool open;       /* a plain row was seen */
    int64_t t_us, dt_us, plain_ns;
    unsigned rows; /* since the plain one */
};

struct ipw_power_past {
    bool counter;
    int64_t value, step, step_before; /* the newest value, and how it came there */
};

void ipw_power_rows_init(struct ipw_power_rows *r) { *r = (struct ipw_power_rows){0}; }

void ipw_power_rows_release(struct ipw_power_rows *r)
{
    free(r->streams);
    free(r->channels);
    *r = (struct ipw_power_rows){0};
}

void ipw_power_rows_add(struct ipw_power_rows *r, const struct ipw_channel *channels, size_t n)
{
    IPW_GROW(r->streams, r->cap, r->n + 1);
    r->streams[r->n++] = (struct ipw_power_stream){.first = r->n_channels, .n = n};
    IPW_GROW(r->channels, r->cap_channels, r->n_channels + n + 1);
    for (size_t i = 0; i < n; i++) {
        r->channels[r->n_channels++] =
            (struct ipw_power_past){.counter = channels[i].kind == IPW_CHANNEL_COUNTER};
    }
}

void ipw_power_rows_reset(struct ipw_power_rows *r)
{
    for (size_t i = 0; i < r->n; i++) r->streams[i].open = false;
}

/* ---- what both sides remember of a row ---- */

static void remember_plain(struct ipw_power_rows *r, struct ipw_power_stream *s, int64_t t_ns,
                           const int64_t *values)
{
    s->open = t_ns % 1000 == 0; /* stamps are packed in microseconds */
    s->t_us = t_ns / 1000;
    s->dt_us = 0;
    s->plain_ns = t_ns;
    s->rows = 0;
    for (size_t i = 0; i < s->n; i++) {
        struct ipw_power_past *c = &r->channels[s->first + i];

        c->value = values[i] == IPW_NO_VALUE ? 0 : values[i];
        c->step = c->step_before = 0;
    }
}

static void remember_packed(struct ipw_power_rows *r, struct ipw_power_stream *s, int64_t t_us,
                            const int64_t *values)
{
    s->dt_us = t_us - s->t_us;
    s->t_us = t_us;
    s->rows++;
    for (size_t i = 0; i < s->n; i++) {
        struct ipw_power_past *c = &r->channels[s->first + i];
        int64_t step = 0;

        if (values[i] == IPW_NO_VALUE) {
            c->step = 0;
            continue;
        }
        if (__builtin_sub_overflow(values[i], c->value, &step)) step = 0;
        c->step_before = c->step;
        c->step = step;
        c->value = values[i];
    }
}

/* A counter that has grown twice in a row is expected to go on growing at that rate; anything else
 * to stay.  False: beyond what is packed. */
static bool expected(int64_t *out, const struct ipw_power_past *c, int64_t dt_us,
                     int64_t last_dt_us)
{
    wide grown = 0;

    if (c->counter && c->step > 0 && c->step_before > 0 && dt_us > 0 && last_dt_us > 0)
        grown = (wide)c->step * dt_us / last_dt_us;
    return grown < MOST && !__builtin_add_overflow(c->value, (int64_t)grown, out);
}

/* ---- writing ---- */

static bool put_packed(struct ipw_power_rows *r, struct ipw_buf *out,
                       const struct ipw_sampler_row *row)
{
    struct ipw_power_stream *s = &r->streams[row->source];
    int64_t dt_us = row->t_ns / 1000 - s->t_us, since_plain, differs;
    size_t end;

    if (row->t_ns % 1000 || dt_us < 0 ||
        __builtin_sub_overflow(row->t_ns, s->plain_ns, &since_plain) ||
        since_plain >= PLAIN_EVERY_NS)
        return false;
    ipw_buf_adds(out, "[\"");
    ipw_vlq_put(out, (int64_t)row->source);
    ipw_vlq_put(out, dt_us - s->dt_us);
    end = out->len;
    for (size_t i = 0; i < s->n; i++) {
        if (row->values[i] == IPW_NO_VALUE) {
            ipw_vlq_put(out, IPW_NO_VALUE);
        } else {
            if (!expected(&differs, &r->channels[s->first + i], dt_us, s->dt_us) ||
                __builtin_sub_overflow(row->values[i], differs, &differs) || differs >= MOST ||
                differs <= -MOST)
                return false;
            ipw_vlq_put(out, differs);
            if (!differs) continue; /* at the end of a row it goes without saying */
        }
        end = out->len;
    }
    if (out->len > end) ipw_buf_truncate(out, end);
    ipw_buf_adds(out, "\"]\n");
    return true;
}

static void put_plain(struct ipw_buf *out, const struct ipw_sampler_row *row)
{
    ipw_buf_addf(out, "[%lld,%zu", (long long)row->t_ns, row->source);
    for (size_t i = 0; i < row->n; i++) {
        if (row->values[i] == IPW_NO_VALUE)
            ipw_buf_adds(out, ",null");
        else
            ipw_buf_addf(out, ",%lld", (long long)row->values[i]);
    }
    ipw_buf_adds(out, "]\n");
}

void ipw_power_row_write(struct ipw_power_rows *r, struct ipw_buf *out,
                         const struct ipw_sampler_row *row)
{
    struct ipw_power_stream *s = &r->streams[row->source];
    size_t start = out->len;

    if (s->open && s->rows + 1 < PLAIN_EVERY_ROWS && put_packed(r, out, row)) {
        remember_packed(r, s, row->t_ns / 1000, row->values);
        return;
    }
    if (!out->failed) ipw_buf_truncate(out, start);
    put_plain(out, row);
    remember_plain(r, s, row->t_ns, row->values);
}

/* ---- reading ---- */

static bool take_packed(struct ipw_power_rows *r, const char *at, int64_t *t_ns, size_t *source,
                        int64_t *values, bool *lost)
{
    struct ipw_power_stream *s;
    int64_t index, more, t_us, dt_us;

    if (!ipw_vlq_take(&at, &index) || index < 0 || (size_t)index >= r->n) return false;
    s = &r->streams[index];
    if (!ipw_vlq_take(&at, &more) || more == IPW_NO_VALUE) return false;
    if (__builtin_add_overflow(s->dt_us, more, &dt_us) ||
        __builtin_add_overflow(s->t_us, dt_us, &t_us) || dt_us < 0 ||
        __builtin_mul_overflow(t_us, 1000, t_ns))
        return false;
    *source = (size_t)index;
    *lost = !s->open;
    for (size_t i = 0; i < s->n; i++) {
        int64_t differs = 0;

        if (*at != '"' && !ipw_vlq_take(&at, &differs)) return false;
        values[i] = IPW_NO_VALUE;
        if (differs == IPW_NO_VALUE) continue;
        if (!expected(&values[i], &r->channels[s->first + i], dt_us, s->dt_us) ||
            __builtin_add_overflow(values[i], differs, &values[i]))
            return false;
    }
    if (strcmp(at, "\"]")) return false;
    if (s->open) remember_packed(r, s, t_us, values);
    return true;
}

/* One integer, or null; then a comma or the closing bracket, which is left in *end. */
static bool take_number(const char **at, int64_t *value, char *end)
{
    char *stop;

    if (!strncmp(*at, "null", 4)) {
        *value = IPW_NO_VALUE;
        *at += 4;
    } else {
        errno = 0;
        *value = strtoll(*at, &stop, 10);
        if (stop == *at || errno) return false;
        *at = stop;
    }
    *end = **at;
    if (*end != ',' && *end != ']') return false;
    (*at)++;
    return true;
}

static bool take_plain(struct ipw_power_rows *r, const char *at, int64_t *t_ns, size_t *source,
                       int64_t *values)
{
    int64_t index;
    char end;

    if (!take_number(&at, t_ns, &end) || end != ',' || *t_ns == IPW_NO_VALUE) return false;
    if (!take_number(&at, &index, &end) || index < 0 || (size_t)index >= r->n) return false;
    *source = (size_t)index;
    for (size_t i = 0; i < r->streams[index].n; i++) {
        if (end != ',' || !take_number(&at, &values[i], &end)) return false;
    }
    if (end != ']' || *at) return false;
    remember_plain(r, &r->streams[index], *t_ns, values);
    return true;
}

enum ipw_power_read ipw_power_row_read(struct ipw_power_rows *r, const char *line, int64_t *t_ns,
                                       size_t *source, int64_t *values)
{
    bool lost = false, ok = false;

    if (!strncmp(line, "[\"", 2))
        ok = take_packed(r, line + 2, t_ns, source, values, &lost);
    else if (line[0] == '[')
        ok = take_plain(r, line + 1, t_ns, source, values);
    if (!ok) ipw_power_rows_reset(r); /* whose row it was is not known */
    return !ok ? IPW_POWER_DAMAGED : lost ? IPW_POWER_LOST : IPW_POWER_ROW;
}
