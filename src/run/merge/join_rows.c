#include "run/merge/join_rows.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "json/document.h"
#include "json/json.h"

enum { NO_LEADER = -1 };

struct reading {             /* of a session */
    int64_t t_ns, before_ns; /* before: the one before it; INT64_MIN: there is none */
    int64_t *values, *before;
};

struct waiting { /* a reading of another session than the leader */
    size_t from;
    struct reading reading; /* with values of its own */
};

struct sensor {
    char *key, *text; /* its name and channels, to recognise it; its object in the header */
    size_t first, n;  /* its channels */
    bool own_zero;
    int leader;      /* a session */
    bool shift_due;  /* the leader's counters are shifted at its next reading */
    int64_t last_ns; /* of the last reading that was passed on; INT64_MIN: none */
    int64_t *last;   /* its values */
    struct waiting *waiting;
    size_t n_waiting, cap_waiting;
};

struct from {
    struct ipw_power_reader power;
    int64_t end_ns;
    bool ready, over; /* a reading is in power; there is no further one */
    size_t *sensors;  /* of its own sources, by their number */
    /* By channel of the union: what is added to its counters; its previous reading. */
    int64_t *shift, *before;
    int64_t *before_ns; /* by sensor; INT64_MIN: none */
};

struct ipw_join_rows {
    struct from *from;
    size_t n_from;
    struct sensor *sensors;
    size_t n_sensors, cap_sensors;
    struct ipw_channel *channels;
    size_t n_channels, cap_channels;
    char *header; /* of the first session with sensors */
};

/* ---- the union of the sensors ---- */

/* What makes a sensor the same in two sessions. */
static char *key_of(const struct ipw_json *source)
{
    static const char *const keys[] = {"device", "domain", "in_sum",     "kind", "name",
                                       "remote", "unit",   "modulus_uj", NULL};
    struct ipw_buf out = IPW_BUF(16 * IPW_MIB);
    const struct ipw_json *channels = ipw_json_get(source, "channels");

    ipw_json_print(&out, ipw_json_get(source, "name"));
    for (const struct ipw_json *c = ipw_json_first(channels); c; c = ipw_json_next(c))
        for (const char *const *k = keys; *k; k++) {
            ipw_buf_addc(&out, ' ');
            ipw_json_print(&out, ipw_json_get(c, *k));
        }
    return ipw_buf_take(&out, NULL);
}

static size_t sensor_of(struct ipw_join_rows *r, const struct ipw_json *source,
                        const struct ipw_power_reader *p, size_t number)
{
    const struct ipw_power_source *own = &p->sources[number];
    char *key = key_of(source);
    struct sensor *s;

    for (size_t i = 0; i < r->n_sensors; i++)
        if (!strcmp(r->sensors[i].key, key)) {
            free(key);
            return i;
        }
    IPW_GROW(r->sensors, r->cap_sensors, r->n_sensors + 1);
    s = &r->sensors[r->n_sensors++];
    *s = (struct sensor){.key = key,
                         .text = ipw_json_text(source),
                         .first = r->n_channels,
                         .n = own->n,
                         .leader = NO_LEADER,
                         .last_ns = INT64_MIN,
                         .last = ipw_calloc(own->n + 1, sizeof *s->last)};
    IPW_GROW(r->channels, r->cap_channels, r->n_channels + own->n + 1);
    for (size_t i = 0; i < own->n; i++) {
        r->channels[r->n_channels++] = p->channels[own->first + i];
        s->own_zero |= p->channels[own->first + i].own_zero;
    }
    return r->n_sensors - 1;
}

static int open_from(struct ipw_join_rows *r, struct from *f, const struct ipw_join_from *from,
                     struct ipw_err *err)
{
    const struct ipw_json *sources;
    struct ipw_json *header = NULL;
    size_t i = 0;
    int rc = ipw_power_reader_open(&f->power, from->run, err);

    f->end_ns = from->end_ns;
    if (!rc) rc = ipw_power_reader_segment(&f->power, from->session, err);
    if (rc || !f->power.n_sources) {
        f->over = true;
        return rc;
    }
    rc = ipw_json_parse(&header, f->power.header_text, strlen(f->power.header_text), NULL, err);
    if (rc) return rc;
    if (!r->header) r->header = ipw_strdup(f->power.header_text);
    f->sensors = ipw_calloc(f->power.n_sources, sizeof *f->sensors);
    sources = ipw_json_get(header, "sources");
    for (const struct ipw_json *s = ipw_json_first(sources); s; s = ipw_json_next(s), i++)
        f->sensors[i] = sensor_of(r, s, &f->power, i);
    ipw_json_free(header);
    return 0;
}

static int advance(struct from *f, struct ipw_err *err)
{
    int rc;

    if (f->over) return 0;
    rc = ipw_power_reader_next(&f->power, err);
    f->ready = rc > 0;
    f->over = rc <= 0;
    return rc < 0 ? rc : 0;
}

int ipw_join_rows_open(struct ipw_join_rows **out, const struct ipw_join_from *from, size_t n,
                       size_t *at, struct ipw_err *err)
{
    struct ipw_join_rows *r = *out = ipw_calloc(1, sizeof *r);
    int rc = 0;

    r->from = ipw_calloc(n, sizeof *r->from);
    for (; r->n_from < n && !rc; r->n_from++) {
        *at = r->n_from;
        rc = open_from(r, &r->from[r->n_from], &from[r->n_from], err);
    }
    for (size_t i = 0; i < n && !rc; i++) {
        struct from *f = &r->from[i];

        f->shift = ipw_calloc(r->n_channels + 1, sizeof *f->shift);
        f->before = ipw_calloc(r->n_channels + 1, sizeof *f->before);
        f->before_ns = ipw_calloc(r->n_sensors + 1, sizeof *f->before_ns);
        for (size_t k = 0; k < r->n_sensors; k++) f->before_ns[k] = INT64_MIN;
        *at = i;
        rc = advance(f, err);
    }
    return rc;
}

struct ipw_channel *ipw_join_rows_channels(struct ipw_join_rows *r, size_t *n)
{
    *n = r->n_channels;
    return r->channels;
}

void ipw_join_rows_header(const struct ipw_join_rows *r, int number, struct ipw_buf *out)
{
    struct ipw_buf patch = IPW_BUF(256 * IPW_MIB);
    struct ipw_json *doc = NULL;

    if (!r->header || ipw_json_parse(&doc, r->header, strlen(r->header), NULL, NULL)) return;
    ipw_buf_addf(&patch, "{\"segment\":%d,\"sources\":[", number);
    for (size_t i = 0; i < r->n_sensors; i++)
        ipw_buf_addf(&patch, "%s%s", i ? "," : "", r->sensors[i].text);
    ipw_buf_adds(&patch, "]}");
    ipw_json_patch(out, doc, ipw_buf_str(&patch));
    ipw_buf_addc(out, '\n');
    ipw_buf_release(&patch);
    ipw_json_free(doc);
}

/* ---- readings ---- */

typedef void (*row_fn)(void *ud, const struct ipw_join_row *row);

static bool is_counter(const struct ipw_channel *c)
{
    return c->kind == IPW_CHANNEL_COUNTER || c->kind == IPW_CHANNEL_ESTIMATE;
}

static void pass(struct ipw_join_rows *r, struct sensor *s, int64_t t_ns, const int64_t *values,
                 row_fn fn, void *ud)
{
    const struct ipw_join_row row = {(size_t)(s - r->sensors), s->first, s->n, t_ns, values};

    if (t_ns <= s->last_ns) return;
    s->last_ns = t_ns;
    memcpy(s->last, values, s->n * sizeof *values);
    fn(ud, &row);
}

/* Does a reading lie between the last one and the leader's next one? */
static bool fits(const struct ipw_join_rows *r, const struct sensor *s, const int64_t *values,
                 const int64_t *next)
{
    for (size_t i = 0; i < s->n; i++) {
        if (!is_counter(&r->channels[s->first + i])) continue;
        if (values[i] == IPW_NO_VALUE || s->last[i] == IPW_NO_VALUE || next[i] == IPW_NO_VALUE ||
            values[i] < s->last[i] || values[i] > next[i])
            return false;
    }
    return true;
}

static void forget(struct sensor *s, size_t i)
{
    free(s->waiting[i].reading.values);
    free(s->waiting[i].reading.before);
    memmove(s->waiting + i, s->waiting + i + 1, (--s->n_waiting - i) * sizeof *s->waiting);
}

/* The readings that waited for the leader's next one. */
static void settle(struct ipw_join_rows *r, struct sensor *s, int64_t next_ns, const int64_t *next,
                   row_fn fn, void *ud)
{
    while (s->n_waiting && s->waiting[0].reading.t_ns < next_ns) {
        const struct reading *w = &s->waiting[0].reading;

        if (w->t_ns > s->last_ns && s->last_ns != INT64_MIN && fits(r, s, w->values, next))
            pass(r, s, w->t_ns, w->values, fn, ud);
        forget(s, 0);
    }
}

/* Counters of a new leader that have another zero go on where those of the leader before it ended:
 * between its readings before and after that instant they are a straight line.  Without own_zero
 * they have the same zero if the last reading lies between the two. */
static void shift_counters(struct ipw_join_rows *r, struct from *f, struct sensor *s,
                           const struct reading *now)
{
    s->shift_due = false;
    if (now->before_ns == INT64_MIN || now->before_ns > s->last_ns) return;
    for (size_t i = 0; i < s->n; i++) {
        const struct ipw_channel *c = &r->channels[s->first + i];
        int64_t before = now->before[i], last = s->last[i], after = now->values[i];
        double part = (double)(s->last_ns - now->before_ns) / (double)(now->t_ns - now->before_ns);

        if (!is_counter(c) || before == IPW_NO_VALUE || last == IPW_NO_VALUE ||
            after == IPW_NO_VALUE || after < before)
            continue;
        if (c->own_zero || last < before || last > after)
            f->shift[s->first + i] = last - before - (int64_t)((double)(after - before) * part);
    }
}

static void lead(struct ipw_join_rows *r, struct from *f, struct sensor *s,
                 const struct reading *now, row_fn fn, void *ud)
{
    int64_t *shifted = ipw_calloc(s->n + 1, sizeof *shifted);

    if (s->shift_due && now->t_ns > s->last_ns) shift_counters(r, f, s, now);
    for (size_t i = 0; i < s->n; i++)
        shifted[i] =
            now->values[i] == IPW_NO_VALUE ? IPW_NO_VALUE : now->values[i] + f->shift[s->first + i];
    settle(r, s, now->t_ns, shifted, fn, ud);
    pass(r, s, now->t_ns, shifted, fn, ud);
    free(shifted);
}

/* Of the sessions with readings so far, that whose readings go on for longest; else `begins`, with
 * its first reading. */
static void choose_leader(struct ipw_join_rows *r, struct sensor *s, int begins, row_fn fn,
                          void *ud)
{
    size_t number = (size_t)(s - r->sensors);
    bool first = s->leader == NO_LEADER;

    s->leader = NO_LEADER;
    for (size_t i = 0; i < r->n_from; i++) {
        const struct from *f = &r->from[i];
        bool more = f->ready && f->before_ns[number] != INT64_MIN;

        for (size_t k = 0; k < s->n_waiting && !more; k++) more = s->waiting[k].from == i;
        if (more && (s->leader == NO_LEADER || f->end_ns > r->from[s->leader].end_ns))
            s->leader = (int)i;
    }
    if (s->leader == NO_LEADER) s->leader = begins;
    s->shift_due = !first;
    /* Its readings that wait are now the leader's. */
    for (size_t k = 0; s->leader != NO_LEADER && k < s->n_waiting;) {
        struct waiting w = s->waiting[k];

        if (w.from != (size_t)s->leader) {
            k++;
            continue;
        }
        s->waiting[k].reading = (struct reading){0};
        forget(s, k);
        lead(r, &r->from[w.from], s, &w.reading, fn, ud);
        free(w.reading.values);
        free(w.reading.before);
        k = 0;
    }
}

/* A leader without further readings, of this sensor or of any, hands over. */
static void look_after_leader(struct ipw_join_rows *r, struct sensor *s, int begins, row_fn fn,
                              void *ud)
{
    if (s->leader == NO_LEADER || !r->from[s->leader].ready) choose_leader(r, s, begins, fn, ud);
}

static int64_t *copy_of(const int64_t *values, size_t n)
{
    int64_t *copy = ipw_calloc(n + 1, sizeof *copy);

    memcpy(copy, values, n * sizeof *copy);
    return copy;
}

static void keep_waiting(struct sensor *s, size_t from, const struct reading *now)
{
    IPW_GROW(s->waiting, s->cap_waiting, s->n_waiting + 1);
    s->waiting[s->n_waiting++] = (struct waiting){
        from, {now->t_ns, now->before_ns, copy_of(now->values, s->n), copy_of(now->before, s->n)}};
}

int64_t ipw_join_rows_next_ns(const struct ipw_join_rows *r)
{
    int64_t least = INT64_MAX;

    for (size_t i = 0; i < r->n_from; i++)
        if (r->from[i].ready && r->from[i].power.t_ns < least) least = r->from[i].power.t_ns;
    return least;
}

int ipw_join_rows_take(struct ipw_join_rows *r, row_fn fn, void *ud, size_t *at,
                       struct ipw_err *err)
{
    int64_t t_ns = ipw_join_rows_next_ns(r);
    struct reading now;
    struct sensor *s;
    struct from *f;
    size_t number, i = 0;

    while (!r->from[i].ready || r->from[i].power.t_ns != t_ns) i++;
    f = &r->from[i];
    number = f->sensors[f->power.source];
    s = &r->sensors[number];
    /* power.values: of this sensor alone. */
    now = (struct reading){t_ns, f->before_ns[number], f->power.values, f->before + s->first};
    look_after_leader(r, s, (int)i, fn, ud);
    if (s->leader == (int)i)
        lead(r, f, s, &now, fn, ud);
    else if (!s->own_zero)
        keep_waiting(s, i, &now);
    memcpy(f->before + s->first, now.values, s->n * sizeof *now.values);
    f->before_ns[number] = t_ns;
    f->ready = false;
    *at = i;
    return advance(f, err);
}

void ipw_join_rows_flush(struct ipw_join_rows *r, row_fn fn, void *ud)
{
    for (size_t i = 0; i < r->n_sensors; i++) {
        struct sensor *s = &r->sensors[i];

        while (s->n_waiting) {
            size_t n = s->n_waiting;

            choose_leader(r, s, NO_LEADER, fn, ud);
            if (s->n_waiting == n) break; /* none of the sessions had more */
        }
    }
}

bool ipw_join_rows_leads(const struct ipw_join_rows *r, size_t session, const char *channel)
{
    for (size_t i = 0; i < r->n_sensors; i++)
        for (size_t k = 0; k < r->sensors[i].n; k++)
            if (!strcmp(r->channels[r->sensors[i].first + k].name, channel))
                return r->sensors[i].leader == (int)session;
    return false;
}

void ipw_join_rows_close(struct ipw_join_rows *r)
{
    if (!r) return;
    for (size_t i = 0; i < r->n_from; i++) {
        ipw_power_reader_close(&r->from[i].power);
        free(r->from[i].sensors);
        free(r->from[i].shift);
        free(r->from[i].before);
        free(r->from[i].before_ns);
    }
    for (size_t i = 0; i < r->n_sensors; i++) {
        while (r->sensors[i].n_waiting) forget(&r->sensors[i], 0);
        free(r->sensors[i].waiting);
        free(r->sensors[i].last);
        free(r->sensors[i].key);
        free(r->sensors[i].text);
    }
    free(r->from);
    free(r->sensors);
    free(r->channels);
    free(r->header);
    free(r);
}
