#include "run/merge/join_rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "json/document.h"
#include "json/json.h"

enum { NO_LEADER = -1 };
#define NO_POINT ((struct point){INT64_MIN, IPW_NO_VALUE})

struct sensor {
    char *key, *text; /* its name and devices, to recognise it; its object in the header */
    size_t first, n;  /* its channels */
    bool streamed;    /* all sessions get the same readings of a far process */
    int leader;       /* a session */
    bool is_new;      /* no reading of the leader was passed on yet */
    int64_t last_ns;  /* of the last reading that was passed on; INT64_MIN: none */
    int64_t *last;    /* its values */
};

/* A value of a counter that was read.  t_ns INT64_MIN: none. */
struct point {
    int64_t t_ns, value;
};

struct counter {       /* by channel of the union */
    struct point last; /* passed on */
    bool due;          /* its new leader may have another zero */
};

struct part { /* of a session's own source: a sensor, by its number */
    size_t source, sensor;
};

struct from {
    struct ipw_power_reader power;
    const struct ipw_join_from *is;
    bool ready, over; /* a reading is in power; there is no further one */
    int64_t n_own;    /* readings taken that are the session's own */
    struct part *parts;
    size_t n_parts, cap_parts;
    size_t *joined;         /* for each own channel: the joined one, or SIZE_MAX */
    bool *has;              /* by sensor: it has read it */
    struct seen {           /* by channel of the union */
        int64_t now, shift; /* the value of this row; what is added to a counter */
        /* Its newest value, and those around the last one that was passed on of the counter. */
        struct point newest, before, after;
    } * seen;
};

struct ipw_join_rows {
    struct from *from;
    size_t n_from;
    struct ipw_join_from *sessions;
    struct sensor *sensors;
    size_t n_sensors, cap_sensors;
    struct ipw_channel *channels;
    size_t n_channels, cap_channels;
    struct counter *counters; /* by channel */
    char *header;             /* of the first session with sensors */
};

/* ---- the sensors of all sessions together ---- */

/* The number of a GPU may differ from session to session; its id may not. */
static bool has_id(const struct ipw_channel *c)
{
    return c->domain == IPW_DOMAIN_GPU && c->device[0];
}

static const char *suffix_of(const char *name)
{
    const char *slash = strchr(name, '/');

    return slash ? slash : "";
}

/* What makes a channel the same in two sessions. */
static void put_key(struct ipw_buf *out, const struct ipw_channel *c, const char *host)
{
    ipw_buf_addf(out, "\n%s|%d|%d|%s|%lld|%d|%s", c->device, (int)c->domain, (int)c->kind,
                 has_id(c) ? suffix_of(c->name) : c->name, (long long)c->modulus_uj, (int)c->in_sum,
                 c->remote || !host ? "" : host);
}

/* The channels in a sum tell which sensor it is; other channels may come and go. */
static char *key_of(const char *source, const struct ipw_channel *const *channels, size_t n,
                    const char *host)
{
    struct ipw_buf out = IPW_BUF(16 * IPW_MIB);
    bool any = false;

    for (size_t i = 0; i < n; i++) any |= channels[i]->in_sum;
    ipw_buf_adds(&out, source);
    for (size_t i = 0; i < n; i++)
        if (channels[i]->in_sum || !any) put_key(&out, channels[i], host);
    return ipw_buf_take(&out, NULL);
}

static size_t find_sensor(const struct ipw_join_rows *r, const char *key)
{
    for (size_t i = 0; i < r->n_sensors; i++)
        if (!strcmp(r->sensors[i].key, key)) return i;
    return SIZE_MAX;
}

/* The source's object with these of its channels alone. */
static char *text_of(const struct ipw_json *source, const size_t *own, size_t n)
{
    const struct ipw_json *channels = ipw_json_get(source, "channels");
    struct ipw_buf patch = IPW_BUF(16 * IPW_MIB), out = IPW_BUF(16 * IPW_MIB);

    if (n == ipw_json_count(channels)) return ipw_json_text(source);
    ipw_buf_adds(&patch, "{\"channels\":[");
    for (size_t i = 0; i < n; i++) {
        char *text = ipw_json_text(ipw_json_at(channels, own[i]));

        ipw_buf_addf(&patch, "%s%s", i ? "," : "", text);
        free(text);
    }
    ipw_buf_adds(&patch, "]}");
    ipw_json_patch(&out, source, ipw_buf_str(&patch));
    ipw_buf_release(&patch);
    return ipw_buf_take(&out, NULL);
}

/* Another sensor of the joined session that has the device of one of these in a sum, too. */
static bool is_read_otherwise(const struct ipw_join_rows *r,
                              const struct ipw_channel *const *channels, size_t n)
{
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < r->n_channels && channels[i]->in_sum && has_id(channels[i]); k++)
            if (r->channels[k].in_sum && r->channels[k].domain == channels[i]->domain &&
                !strcmp(r->channels[k].device, channels[i]->device))
                return true;
    return false;
}

static size_t add_sensor(struct ipw_join_rows *r, char *key, char *text,
                         const struct ipw_channel *const *channels, size_t n)
{
    struct sensor *s;

    IPW_GROW(r->sensors, r->cap_sensors, r->n_sensors + 1);
    s = &r->sensors[r->n_sensors++];
    *s = (struct sensor){.key = key,
                         .text = text,
                         .first = r->n_channels,
                         .n = n,
                         .leader = NO_LEADER,
                         .last_ns = INT64_MIN,
                         .last = ipw_calloc(n + 1, sizeof *s->last)};
    IPW_GROW(r->channels, r->cap_channels, r->n_channels + n + 1);
    for (size_t i = 0; i < n; i++) r->channels[r->n_channels++] = *channels[i];
    return r->n_sensors - 1;
}

static bool is_same_channel(const struct ipw_channel *a, const struct ipw_channel *b)
{
    return a->kind == b->kind && !strcmp(a->unit, b->unit) && a->in_sum == b->in_sum &&
           (has_id(a) ? !strcmp(suffix_of(a->name), suffix_of(b->name))
                      : !strcmp(a->name, b->name));
}

/* A stream has a channel that tells how far its stamps may be off. */
static bool is_streamed(const struct ipw_channel *channels, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!strcmp(channels[i].unit, IPW_UNIT_CLOCK)) return true;
    return false;
}

/* Takes channels own[0..n) of a source for a sensor, new or known. */
static int add_part(struct ipw_join_rows *r, struct from *f, const struct ipw_json *source,
                    size_t number, const size_t *own, size_t n, struct ipw_err *err)
{
    const struct ipw_power_source *s = &f->power.sources[number];
    const struct ipw_channel **channels = ipw_calloc(n + 1, sizeof *channels);
    struct sensor *sensor;
    size_t at;
    char *key;
    int rc = 0;

    for (size_t i = 0; i < n; i++) channels[i] = &f->power.channels[s->first + own[i]];
    key = key_of(s->name, channels, n, f->is->host);
    at = find_sensor(r, key);
    if (at == SIZE_MAX && is_read_otherwise(r, channels, n))
        rc = ipw_fail(err, IPW_EUNSUPPORTED,
                      "%s: reads %s by another sensor than a shard that ran at the same time; give "
                      "all shards the same --telemetry",
                      f->is->run, channels[0]->device);
    if (!rc && at == SIZE_MAX) {
        at = add_sensor(r, key, text_of(source, own, n), channels, n);
        key = NULL;
    }
    free(key);
    if (rc) {
        free(channels);
        return rc;
    }
    IPW_GROW(f->parts, f->cap_parts, f->n_parts + 1);
    f->parts[f->n_parts++] = (struct part){number, at};
    sensor = &r->sensors[at];
    sensor->streamed |= is_streamed(&f->power.channels[s->first], s->n);
    for (size_t i = 0; i < n; i++)
        for (size_t k = sensor->first; k < sensor->first + sensor->n; k++)
            if (is_same_channel(channels[i], &r->channels[k])) f->joined[s->first + own[i]] = k;
    free(channels);
    return 0;
}

static bool one_device(const struct ipw_channel *a, const struct ipw_channel *b)
{
    return a->domain == b->domain &&
           !strcmp(a->device[0] ? a->device : a->name, b->device[0] ? b->device : b->name);
}

/* The source of a session: finds its sensors, or adds them.  Fails if another sensor reads the same
 * device. */
static int add_source(struct ipw_join_rows *r, struct from *f, const struct ipw_json *source,
                      size_t number, bool divided, struct ipw_err *err)
{
    const struct ipw_power_source *s = &f->power.sources[number];
    const struct ipw_channel *channels = &f->power.channels[s->first];
    size_t *own = ipw_calloc(s->n + 1, sizeof *own);
    bool *taken = ipw_calloc(s->n + 1, sizeof *taken);
    int rc = 0;

    for (size_t i = 0; i < s->n && !rc; i++) {
        size_t n = 0;

        for (size_t k = i; k < s->n && !taken[i]; k++)
            if (!divided || one_device(&channels[i], &channels[k])) own[n++] = k;
        for (size_t k = 0; k < n; k++) taken[own[k]] = true;
        if (n) rc = add_part(r, f, source, number, own, n, err);
    }
    free(own);
    free(taken);
    return rc;
}

/* ---- names: unique in the joined session ---- */

static bool has_name(const struct ipw_join_rows *r, const struct sensor *s, const char *name)
{
    for (size_t i = s->first; i < s->first + s->n; i++)
        if (!strcmp(r->channels[i].name, name)) return true;
    return false;
}

static bool is_ambiguous(const struct ipw_join_rows *r, const struct sensor *s)
{
    for (size_t i = 0; i < r->n_sensors; i++)
        for (size_t k = s->first; k < s->first + s->n; k++)
            if (&r->sensors[i] != s && has_name(r, &r->sensors[i], r->channels[k].name))
                return true;
    return false;
}

/* How much of a GPU's id tells it from the others. */
static int id_length(const struct ipw_join_rows *r, const char *id)
{
    int whole = (int)strcspn(id, " "), n = 12;

    for (size_t i = 0; i < r->n_channels; i++) {
        const char *other = r->channels[i].device;

        while (n < whole && strncmp(id, other, (size_t)whole) != 0 &&
               !strncmp(id, other, (size_t)n))
            n++;
    }
    return n < whole ? n : whole;
}

/* A host's name, or, if another has the same, the beginning of its boot id. */
static const char *label_of(const struct ipw_join_rows *r, const struct ipw_join_from *host,
                            int *length)
{
    const char *name = host->host_name ? host->host_name : "";
    bool unique = *name;

    for (size_t i = 0; i < r->n_from && host->host; i++) {
        const struct ipw_join_from *other = r->from[i].is;

        unique &= !other->host || !strcmp(other->host, host->host) ||
                  strcmp(other->host_name ? other->host_name : "", name) != 0;
    }
    if (unique || !host->host)
        name = *name ? name : "unknown";
    else
        name = host->host;
    *length = name == host->host ? 8 : (int)strlen(name);
    return name;
}

/* "gpu0/power" becomes "gpu0@GPU-3f29ab10/power", "package-0" becomes "package-0@node7". */
static void extend_names(struct ipw_join_rows *r, const struct sensor *s,
                         const struct ipw_join_from *host)
{
    int label_length;
    const char *label = label_of(r, host, &label_length);

    for (size_t i = s->first; i < s->first + s->n; i++) {
        struct ipw_channel *c = &r->channels[i];
        const char *suffix = suffix_of(c->name), *id = has_id(c) ? c->device : label;
        int base = (int)(strlen(c->name) - strlen(suffix));
        int most = has_id(c) ? id_length(r, id) : label_length;
        char name[sizeof c->name];

        snprintf(name, sizeof name, "%.*s@%.*s%.10s", base < 12 ? base : 12, c->name,
                 most < 40 ? most : 40, id, suffix);
        memcpy(c->name, name, sizeof name);
    }
}

static void name_channels(struct ipw_join_rows *r)
{
    bool *ambiguous = ipw_calloc(r->n_sensors + 1, sizeof *ambiguous);

    for (size_t i = 0; i < r->n_sensors; i++) ambiguous[i] = is_ambiguous(r, &r->sensors[i]);
    for (size_t i = 0; i < r->n_sensors; i++) {
        const struct ipw_join_from *host = NULL;

        if (!ambiguous[i]) continue;
        for (size_t f = 0; f < r->n_from && !host; f++)
            for (size_t k = 0; k < r->from[f].n_parts; k++)
                if (r->from[f].parts[k].sensor == i) host = r->from[f].is;
        extend_names(r, &r->sensors[i], host);
    }
    free(ambiguous);
}

/* The sensor's object, with the names that its channels have in the joined session. */
static void put_sensor(const struct ipw_join_rows *r, const struct sensor *s, struct ipw_buf *out)
{
    struct ipw_buf patch = IPW_BUF(16 * IPW_MIB);
    struct ipw_json *doc = NULL;
    size_t i = s->first;

    if (ipw_json_parse(&doc, s->text, strlen(s->text), NULL, NULL)) return;
    ipw_buf_adds(&patch, "{\"channels\":[");
    for (const struct ipw_json *c = ipw_json_first(ipw_json_get(doc, "channels")); c;
         c = ipw_json_next(c), i++) {
        struct ipw_buf name = IPW_BUF(1024);

        ipw_buf_addf(&name, "{\"name\":\"%s\"}", r->channels[i].name);
        if (i > s->first) ipw_buf_addc(&patch, ',');
        ipw_json_patch(&patch, c, ipw_buf_str(&name));
        ipw_buf_release(&name);
    }
    ipw_buf_adds(&patch, "]}");
    ipw_json_patch(out, doc, ipw_buf_str(&patch));
    ipw_buf_release(&patch);
    ipw_json_free(doc);
}

void ipw_join_rows_header(const struct ipw_join_rows *r, int number, struct ipw_buf *out)
{
    struct ipw_buf patch = IPW_BUF(256 * IPW_MIB);
    struct ipw_json *doc = NULL;

    if (!r->header || ipw_json_parse(&doc, r->header, strlen(r->header), NULL, NULL)) return;
    ipw_buf_addf(&patch, "{\"segment\":%d,\"sources\":[", number);
    for (size_t i = 0; i < r->n_sensors; i++) {
        if (i) ipw_buf_addc(&patch, ',');
        put_sensor(r, &r->sensors[i], &patch);
    }
    ipw_buf_adds(&patch, "]}");
    ipw_json_patch(out, doc, ipw_buf_str(&patch));
    ipw_buf_addc(out, '\n');
    ipw_buf_release(&patch);
    ipw_json_free(doc);
}

/* ---- opening ---- */

/* More than the stamps of one far reading differ by in two sessions. */
#define STREAMS_APART_NS (10 * IPW_NS_PER_S)

static int open_from(struct ipw_join_rows *r, struct from *f, const struct ipw_join_from *from,
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
        if (!rc) rc = add_source(r, f, s, i, divided, err);
    ipw_json_free(header);
    return rc;
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
    name_channels(r);
    r->counters = ipw_calloc(r->n_channels + 1, sizeof *r->counters);
    for (size_t i = 0; i < r->n_channels; i++) r->counters[i].last = NO_POINT;
    for (size_t i = 0; i < n && !rc; i++) {
        struct from *f = &r->from[i];

        f->has = ipw_calloc(r->n_sensors + 1, sizeof *f->has);
        f->seen = ipw_calloc(r->n_channels + 1, sizeof *f->seen);
        for (size_t k = 0; k < r->n_channels; k++)
            f->seen[k] = (struct seen){IPW_NO_VALUE, 0, NO_POINT, NO_POINT, NO_POINT};
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
    const struct from *f = &r->from[session];

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

/* A session's value of a counter.  Readings come in the order of time, so those around the last
 * value that was passed on are known when the next leader needs them. */
static void see(struct seen *x, const struct counter *c, int64_t t_ns)
{
    const struct point now = {t_ns, x->now};

    if (x->now == IPW_NO_VALUE) return;
    if (x->newest.t_ns <= c->last.t_ns) {
        x->before = x->newest;
        x->after = now;
    }
    x->newest = now;
}

/* A counter of a new leader that has another zero goes on where that of the leader before it ended:
 * between its values before and after that instant it is a straight line.  Without own_zero it has
 * the same zero if the last value lies between the two. */
static void shift_counter(struct seen *x, struct counter *c, const struct ipw_channel *channel,
                          bool streamed)
{
    int64_t before = x->before.value, after = x->after.value, last = c->last.value;
    double part;

    c->due = false;
    if (x->before.t_ns == INT64_MIN || c->last.t_ns == INT64_MIN || after < before) return;
    part = (double)(c->last.t_ns - x->before.t_ns) / (double)(x->after.t_ns - x->before.t_ns);
    /* Of a stream the last reading can be an earlier one of the same: then it goes on. */
    if (channel->own_zero || (last < before && !streamed) || last > after)
        x->shift = last - before - (int64_t)((double)(after - before) * part);
}

/* A new leader's reading of a stream that the one before it had already: their clocks are aligned
 * each by itself, so one reading has another stamp in each session.  Its counters tell it. */
static bool is_had(const struct ipw_join_rows *r, const struct seen *seen, const struct sensor *s,
                   int64_t t_ns)
{
    bool any = false;

    if (!s->is_new || !s->streamed || t_ns - s->last_ns > STREAMS_APART_NS) return false;
    for (size_t i = 0; i < s->n; i++) {
        const struct point *last = &r->counters[s->first + i].last;

        if (!is_counter(&r->channels[s->first + i]) || seen[i].now == IPW_NO_VALUE) continue;
        if (last->t_ns == INT64_MIN || seen[i].now > last->value) return false;
        any = true;
    }
    return any;
}

/* The leader's reading. */
static void lead(struct ipw_join_rows *r, struct seen *seen, struct sensor *s, int64_t t_ns,
                 row_fn fn, void *ud)
{
    struct ipw_join_row row = {(size_t)(s - r->sensors), s->first, s->n, t_ns, s->last};

    if (t_ns <= s->last_ns || is_had(r, seen, s, t_ns)) return;
    for (size_t i = 0; i < s->n; i++) {
        struct counter *c = &r->counters[s->first + i];

        s->last[i] = seen[i].now;
        if (seen[i].now == IPW_NO_VALUE || !is_counter(&r->channels[s->first + i])) continue;
        if (c->due) shift_counter(&seen[i], c, &r->channels[s->first + i], s->streamed);
        s->last[i] += seen[i].shift;
        c->last = (struct point){t_ns, s->last[i]};
    }
    s->is_new = false;
    s->last_ns = t_ns;
    fn(ud, &row);
}

/* Of the sessions with readings so far, that whose readings go on for longest; else `begins`, with
 * its first reading. */
static void choose_leader(struct ipw_join_rows *r, struct sensor *s, int begins)
{
    size_t number = (size_t)(s - r->sensors);

    s->is_new = s->leader != NO_LEADER;
    for (size_t i = 0; i < s->n; i++) r->counters[s->first + i].due = s->is_new;
    s->leader = NO_LEADER;
    for (size_t i = 0; i < r->n_from; i++) {
        const struct from *f = &r->from[i];

        if (f->ready && f->has[number] &&
            (s->leader == NO_LEADER || f->is->end_ns > r->from[s->leader].is->end_ns))
            s->leader = (int)i;
    }
    if (s->leader == NO_LEADER) s->leader = begins;
}

static int64_t stamp_of(const struct from *f) { return f->power.t_ns + f->is->ahead_ns; }

int64_t ipw_join_rows_next_ns(const struct ipw_join_rows *r)
{
    int64_t least = INT64_MAX;

    for (size_t i = 0; i < r->n_from; i++)
        if (r->from[i].ready && stamp_of(&r->from[i]) < least) least = stamp_of(&r->from[i]);
    return least;
}

bool ipw_join_rows_next_is_own(const struct ipw_join_rows *r, size_t session)
{
    const struct from *f = &r->from[session];

    return f->ready && f->power.source + f->is->n_added < f->power.n_sources;
}

int64_t ipw_join_rows_own_taken(const struct ipw_join_rows *r, size_t session)
{
    return r->from[session].n_own;
}

/* The reading of one sensor. */
static void take_part(struct ipw_join_rows *r, size_t at, struct sensor *s, row_fn fn, void *ud)
{
    struct from *f = &r->from[at];
    int64_t t_ns = stamp_of(f);

    if (s->leader == NO_LEADER || !r->from[s->leader].ready) choose_leader(r, s, (int)at);
    f->has[s - r->sensors] = true;
    for (size_t i = s->first; i < s->first + s->n; i++) see(&f->seen[i], &r->counters[i], t_ns);
    if (s->leader == (int)at) lead(r, f->seen + s->first, s, t_ns, fn, ud);
}

int ipw_join_rows_take(struct ipw_join_rows *r, row_fn fn, void *ud, size_t *at,
                       struct ipw_err *err)
{
    int64_t t_ns = ipw_join_rows_next_ns(r);
    const struct ipw_power_source *source;
    struct from *f;
    size_t i = 0;

    while (!r->from[i].ready || stamp_of(&r->from[i]) != t_ns) i++;
    f = &r->from[i];
    source = &f->power.sources[f->power.source];
    /* power.values: of this source alone. */
    for (size_t c = 0; c < source->n; c++)
        if (f->joined[source->first + c] != SIZE_MAX)
            f->seen[f->joined[source->first + c]].now = f->power.values[c];
    for (size_t k = 0; k < f->n_parts; k++)
        if (f->parts[k].source == f->power.source)
            take_part(r, i, &r->sensors[f->parts[k].sensor], fn, ud);
    f->n_own += ipw_join_rows_next_is_own(r, i);
    f->ready = false;
    *at = i;
    return advance(f, err);
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
        free(r->from[i].has);
        free(r->from[i].seen);
    }
    for (size_t i = 0; i < r->n_sensors; i++) {
        free(r->sensors[i].last);
        free(r->sensors[i].key);
        free(r->sensors[i].text);
    }
    free(r->from);
    free(r->sessions);
    free(r->sensors);
    free(r->channels);
    free(r->counters);
    free(r->header);
    free(r);
}
