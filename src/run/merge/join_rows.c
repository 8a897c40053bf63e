#include "run/merge/join_rows_priv.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "json/document.h"
#include "json/json.h"

/* More than the stamps of one far reading differ by in two sessions. */
#define STREAMS_APART_NS (10 * IPW_NS_PER_S)

static int open_from(struct ipw_join_rows *r, struct join_from *f, const struct ipw_join_from *from,
                     bool divided, struct ipw_err *err)
{
    const struct ipw_json *sources;
    struct ipw_json *header = NULL;
    size_t i = 0;
    int rc = ipw_power_reader_open(&f->power, from->run, err);

    f->is = from;
    if (!rc) rc = ipw_power_reader_segment(&f->power, from->session, err);
    if (rc || !f->power.n_sources) {
        f->over = true;
        return rc;
    }
    rc = ipw_json_parse(&header, f->power.header_text, strlen(f->power.header_text), NULL, err);
    if (rc) return rc;
    if (!r->header) r->header = ipw_strdup(f->power.header_text);
    f->joined = ipw_calloc(f->power.n_channels + 1, sizeof *f->joined);
    for (size_t c = 0; c < f->power.n_channels; c++) f->joined[c] = SIZE_MAX;
    sources = ipw_json_get(header, "sources");
    for (const struct ipw_json *s = ipw_json_first(sources); s; s = ipw_json_next(s), i++)
        if (!rc) rc = ipw_join_rows_add_source(r, f, s, i, divided, err);
    ipw_json_free(header);
    return rc;
}

static int advance(struct join_from *f, struct ipw_err *err)
{
    int rc;

    if (f->over) return 0;
    rc = ipw_power_reader_next(&f->power, err);
    f->ready = rc > 0;
    f->over = rc <= 0;
    return rc < 0 ? rc : 0;
}

int ipw_join_rows_open(struct ipw_join_rows **out, const struct ipw_join_from *from, size_t n,
                       bool divided, size_t *at, struct ipw_err *err)
{
    struct ipw_join_rows *r = *out = ipw_calloc(1, sizeof *r);
    int rc = 0;

    r->from = ipw_calloc(n, sizeof *r->from);
    r->sessions = ipw_calloc(n, sizeof *r->sessions);
    memcpy(r->sessions, from, n * sizeof *from);
    for (; r->n_from < n && !rc; r->n_from++) {
        *at = r->n_from;
        rc = open_from(r, &r->from[r->n_from], &r->sessions[r->n_from], divided, err);
    }
    ipw_join_rows_name_channels(r);
    for (size_t i = 0; i < n && !rc; i++) {
        struct join_from *f = &r->from[i];

        f->shift = ipw_calloc(r->n_channels + 1, sizeof *f->shift);
        f->now = ipw_calloc(r->n_channels + 1, sizeof *f->now);
        f->before = ipw_calloc(r->n_channels + 1, sizeof *f->before);
        f->before_ns = ipw_calloc(r->n_sensors + 1, sizeof *f->before_ns);
        for (size_t k = 0; k < r->n_channels; k++) f->now[k] = IPW_NO_VALUE;
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

const struct ipw_channel *ipw_join_rows_own(const struct ipw_join_rows *r, size_t session,
                                            const size_t **joined, size_t *n)
{
    const struct join_from *f = &r->from[session];

    *joined = f->joined;
    *n = f->joined ? f->power.n_channels : 0;
    return f->power.channels;
}

/* ---- readings ---- */

typedef void (*row_fn)(void *ud, const struct ipw_join_row *row);

static bool is_counter(const struct ipw_channel *c)
{
    return c->kind == IPW_CHANNEL_COUNTER || c->kind == IPW_CHANNEL_ESTIMATE;
}

static void pass(struct ipw_join_rows *r, struct join_sensor *s, int64_t t_ns,
                 const int64_t *values, row_fn fn, void *ud)
{
    const struct ipw_join_row row = {(size_t)(s - r->sensors), s->first, s->n, t_ns, values};

    if (t_ns <= s->last_ns) return;
    s->last_ns = t_ns;
    memcpy(s->last, values, s->n * sizeof *values);
    fn(ud, &row);
}

/* Does a reading lie between the last one and the leader's next one? */
static bool fits(const struct ipw_join_rows *r, const struct join_sensor *s, const int64_t *values,
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

static void forget(struct join_sensor *s, size_t i)
{
    free(s->waiting[i].reading.values);
    free(s->waiting[i].reading.before);
    memmove(s->waiting + i, s->waiting + i + 1, (--s->n_waiting - i) * sizeof *s->waiting);
}

/* The readings that waited for the leader's next one. */
static void settle(struct ipw_join_rows *r, struct join_sensor *s, int64_t next_ns,
                   const int64_t *next, row_fn fn, void *ud)
{
    while (s->n_waiting && s->waiting[0].reading.t_ns < next_ns) {
        const struct join_reading *w = &s->waiting[0].reading;

        if (w->t_ns > s->last_ns && s->last_ns != INT64_MIN && fits(r, s, w->values, next))
            pass(r, s, w->t_ns, w->values, fn, ud);
        forget(s, 0);
    }
}

/* Counters of a new leader that have another zero go on where those of the leader before it ended:
 * between its readings before and after that instant they are a straight line.  Without own_zero
 * they have the same zero if the last reading lies between the two. */
static void shift_counters(struct ipw_join_rows *r, struct join_from *f, struct join_sensor *s,
                           const struct join_reading *now)
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
        /* Of a stream the last reading can be an earlier one of the same: then it goes on. */
        if (c->own_zero || (last < before && !s->streamed) || last > after)
            f->shift[s->first + i] = last - before - (int64_t)((double)(after - before) * part);
    }
}

/* A new leader's reading of a stream that the one before it had already: their clocks are aligned
 * each by itself, so one reading has another stamp in each session.  Its counters tell it. */
static bool is_had(const struct ipw_join_rows *r, const struct join_sensor *s,
                   const struct join_reading *now)
{
    bool any = false;

    if (!s->streamed || now->t_ns - s->last_ns > STREAMS_APART_NS) return false;
    for (size_t i = 0; i < s->n; i++) {
        if (!is_counter(&r->channels[s->first + i]) || now->values[i] == IPW_NO_VALUE) continue;
        if (s->last[i] == IPW_NO_VALUE || now->values[i] > s->last[i]) return false;
        any = true;
    }
    return any;
}

static void lead(struct ipw_join_rows *r, struct join_from *f, struct join_sensor *s,
                 const struct join_reading *now, row_fn fn, void *ud)
{
    int64_t *shifted;

    if (s->shift_due && is_had(r, s, now)) return;
    shifted = ipw_calloc(s->n + 1, sizeof *shifted);
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
static void choose_leader(struct ipw_join_rows *r, struct join_sensor *s, int begins, row_fn fn,
                          void *ud)
{
    size_t number = (size_t)(s - r->sensors);
    bool first = s->leader == IPW_NO_LEADER;

    s->leader = IPW_NO_LEADER;
    for (size_t i = 0; i < r->n_from; i++) {
        const struct join_from *f = &r->from[i];
        bool more = f->ready && f->before_ns[number] != INT64_MIN;

        for (size_t k = 0; k < s->n_waiting && !more; k++) more = s->waiting[k].from == i;
        if (more && (s->leader == IPW_NO_LEADER || f->is->end_ns > r->from[s->leader].is->end_ns))
            s->leader = (int)i;
    }
    if (s->leader == IPW_NO_LEADER) s->leader = begins;
    s->shift_due = !first;
    /* Its readings that wait are now the leader's. */
    for (size_t k = 0; s->leader != IPW_NO_LEADER && k < s->n_waiting;) {
        struct join_waiting w = s->waiting[k];

        if (w.from != (size_t)s->leader) {
            k++;
            continue;
        }
        s->waiting[k].reading = (struct join_reading){0};
        forget(s, k);
        lead(r, &r->from[w.from], s, &w.reading, fn, ud);
        free(w.reading.values);
        free(w.reading.before);
        k = 0;
    }
}

/* A leader without further readings, of this sensor or of any, hands over. */
static void look_after_leader(struct ipw_join_rows *r, struct join_sensor *s, int begins, row_fn fn,
                              void *ud)
{
    if (s->leader == IPW_NO_LEADER || !r->from[s->leader].ready)
        choose_leader(r, s, begins, fn, ud);
}

static int64_t *copy_of(const int64_t *values, size_t n)
{
    int64_t *copy = ipw_calloc(n + 1, sizeof *copy);

    memcpy(copy, values, n * sizeof *copy);
    return copy;
}

static void keep_waiting(struct join_sensor *s, size_t from, const struct join_reading *now)
{
    IPW_GROW(s->waiting, s->cap_waiting, s->n_waiting + 1);
    s->waiting[s->n_waiting++] = (struct join_waiting){
        from, {now->t_ns, now->before_ns, copy_of(now->values, s->n), copy_of(now->before, s->n)}};
}

static int64_t stamp_of(const struct join_from *f) { return f->power.t_ns + f->is->ahead_ns; }

static bool is_one_clock(const struct join_from *a, const struct join_from *b)
{
    return a->is->host == b->is->host ||
           (a->is->host && b->is->host && !strcmp(a->is->host, b->is->host));
}

int64_t ipw_join_rows_next_ns(const struct ipw_join_rows *r)
{
    int64_t least = INT64_MAX;

    for (size_t i = 0; i < r->n_from; i++)
        if (r->from[i].ready && stamp_of(&r->from[i]) < least) least = stamp_of(&r->from[i]);
    return least;
}

bool ipw_join_rows_next_is_own(const struct ipw_join_rows *r, size_t session)
{
    const struct join_from *f = &r->from[session];

    return f->ready && f->power.source + f->is->n_added < f->power.n_sources;
}

int64_t ipw_join_rows_own_taken(const struct ipw_join_rows *r, size_t session)
{
    return r->from[session].n_own;
}

/* The reading of one sensor. */
static void take_part(struct ipw_join_rows *r, size_t at, struct join_sensor *s, row_fn fn,
                      void *ud)
{
    struct join_from *f = &r->from[at];
    size_t number = (size_t)(s - r->sensors);
    int64_t *values = f->now + s->first;
    const struct join_reading now = {stamp_of(f), f->before_ns[number], values,
                                     f->before + s->first};

    look_after_leader(r, s, (int)at, fn, ud);
    if (s->leader == (int)at)
        lead(r, f, s, &now, fn, ud);
    else if (!s->own_zero && !s->streamed && is_one_clock(f, &r->from[s->leader]))
        keep_waiting(s, at, &now);
    memcpy(f->before + s->first, values, s->n * sizeof *values);
    f->before_ns[number] = now.t_ns;
}

int ipw_join_rows_take(struct ipw_join_rows *r, row_fn fn, void *ud, size_t *at,
                       struct ipw_err *err)
{
    int64_t t_ns = ipw_join_rows_next_ns(r);
    const struct ipw_power_source *source;
    struct join_from *f;
    size_t i = 0;

    while (!r->from[i].ready || stamp_of(&r->from[i]) != t_ns) i++;
    f = &r->from[i];
    source = &f->power.sources[f->power.source];
    /* power.values: of this source alone. */
    for (size_t c = 0; c < source->n; c++)
        if (f->joined[source->first + c] != SIZE_MAX)
            f->now[f->joined[source->first + c]] = f->power.values[c];
    for (size_t k = 0; k < f->n_parts; k++)
        if (f->parts[k].source == f->power.source)
            take_part(r, i, &r->sensors[f->parts[k].sensor], fn, ud);
    f->n_own += ipw_join_rows_next_is_own(r, i);
    f->ready = false;
    *at = i;
    return advance(f, err);
}

void ipw_join_rows_flush(struct ipw_join_rows *r, row_fn fn, void *ud)
{
    for (size_t i = 0; i < r->n_sensors; i++) {
        struct join_sensor *s = &r->sensors[i];

        while (s->n_waiting) {
            size_t n = s->n_waiting;

            choose_leader(r, s, IPW_NO_LEADER, fn, ud);
            if (s->n_waiting == n) break; /* none of the sessions had more */
        }
    }
}

size_t ipw_join_rows_joined(const struct ipw_join_rows *r, size_t session, const char *own_name)
{
    const size_t *joined;
    size_t n;
    const struct ipw_channel *own = ipw_join_rows_own(r, session, &joined, &n);

    for (size_t i = 0; i < n; i++)
        if (!strcmp(own[i].name, own_name)) return joined[i];
    return SIZE_MAX;
}

bool ipw_join_rows_leads(const struct ipw_join_rows *r, size_t session, size_t channel)
{
    for (size_t i = 0; i < r->n_sensors; i++)
        if (channel >= r->sensors[i].first && channel < r->sensors[i].first + r->sensors[i].n)
            return r->sensors[i].leader == (int)session;
    return false;
}

void ipw_join_rows_close(struct ipw_join_rows *r)
{
    if (!r) return;
    for (size_t i = 0; i < r->n_from; i++) {
        ipw_power_reader_close(&r->from[i].power);
        free(r->from[i].parts);
        free(r->from[i].joined);
        free(r->from[i].shift);
        free(r->from[i].now);
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
    free(r->sessions);
    free(r->sensors);
    free(r->channels);
    free(r->header);
    free(r);
}
