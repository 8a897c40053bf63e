#include "energy/sources/prometheus.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"
#include "energy/sources/meter_feed.h"
#include "energy/sources/sysfs.h"
#include "json/json.h"
#include "json/write.h"

#define PAGE_MAX      (4 * IPW_MIB)
#define TIMEOUT_NS    (2 * IPW_NS_PER_S)
#define PERIOD_NS     (500 * IPW_NS_PER_MS)
#define OWN_PERIOD_NS (200 * IPW_NS_PER_MS) /* the page of another ipw-agent is small */
#define RETRY_NS      IPW_NS_PER_S
#define OLD_MS        60000 /* a first stamp this far off tells nothing of the present */
#define MOST_MW       1e9   /* no machine draws a megawatt */

/* DCGM's "blank" values of 64-bit integers and of doubles (reasons are 0 to 15 above). */
#define DCGM_BLANK_INT    INT64_C(0x7ffffffffffffff0)
#define DCGM_BLANK_DOUBLE 140737488355328.0

/* A series' own time stamps: a page that is served again and again with an old one stands still. */
struct stamps {
    int64_t newest_ms; /* INT64_MIN: none */
    struct ipw_meter_feed_pace pace;
};

struct series {
    const char *metric;            /* borrowed from `known`, as are: */
    const struct ipw_json *labels; /* the labels that identify it, [name, value] each */
    double factor;                 /* converts the value to microjoules or milliwatts */
    struct stamps stamps;
};

struct prometheus {
    struct ipw_source source;
    struct ipw_page_fetch fetch;
    void *kept; /* state of `fetch` */
    char *url;
    char host[128]; /* as the URL has it, for the channels' names */
    bool here;
    struct ipw_buf body;
    struct ipw_json *known; /* what fetch.series told */
    struct series *series;
    struct ipw_channel *channels;
    size_t n;
    int64_t *values;  /* values of the current scrape */
    int64_t retry_ns; /* do not ask again before this time */
    uint64_t failures;
    size_t old; /* number of series whose time stamp stood still, of this scrape */
};

/* ---- the values of series ---- */

/* Has the sample no value, whatever it measures? */
static bool is_blank(const struct ipw_prom_sample *s)
{
    if (!isfinite(s->value) || s->value < 0) return true;
    return !strncmp(s->name, "DCGM_", 5) &&
           ((s->is_int && s->integer >= DCGM_BLANK_INT) ||
            (s->value >= DCGM_BLANK_DOUBLE && s->value < DCGM_BLANK_DOUBLE + 16));
}

/* Microjoules or milliwatts; IPW_NO_VALUE for a blank one, or one out of range. */
static int64_t value_of(const struct series *series, bool gauge, const struct ipw_prom_sample *s)
{
    double x = s->value * series->factor;
    int64_t whole = (int64_t)series->factor, exact;

    if (is_blank(s) || !isfinite(x) || x > (gauge ? MOST_MW : 9e18)) return IPW_NO_VALUE;
    if (s->is_int && (double)whole == series->factor &&
        !__builtin_mul_overflow(s->integer, whole, &exact))
        return exact;
    return (int64_t)(x + 0.5);
}

static bool is_of(const struct series *series, const struct ipw_prom_sample *s)
{
    if (strcmp(series->metric, s->name)) return false;
    for (const struct ipw_json *l = ipw_json_first(series->labels); l; l = ipw_json_next(l))
        if (strcmp(ipw_prom_label(s, ipw_json_str(ipw_json_at(l, 0), "")),
                   ipw_json_str(ipw_json_at(l, 1), "")))
            return false;
    return true;
}

/* Is the value with this stamp the present one?  Without a stamp it is. */
static bool is_fresh(struct stamps *s, int64_t stamp_ms, int64_t now_ns)
{
    int64_t age_ms = (int64_t)time(NULL) * 1000 - stamp_ms;
    bool first = s->newest_ms == INT64_MIN;

    if (stamp_ms == INT64_MIN) return true;
    if (stamp_ms != s->newest_ms && !(first && (age_ms > OLD_MS || age_ms < -OLD_MS)))
        ipw_meter_feed_pace_news(&s->pace, now_ns);
    s->newest_ms = stamp_ms;
    return !ipw_meter_feed_pace_is_stale(&s->pace, now_ns);
}

/* The first sample of a series counts. */
static void take(void *ud, const struct ipw_prom_sample *sample)
{
    struct prometheus *p = ud;
    size_t i = 0;

    while (i < p->n && !is_of(&p->series[i], sample)) i++;
    if (i == p->n || p->values[i] != IPW_NO_VALUE) return;
    if (is_fresh(&p->series[i].stamps, sample->stamp_ms, p->source.now()))
        p->values[i] = value_of(&p->series[i], p->channels[i].kind == IPW_CHANNEL_GAUGE, sample);
    else
        p->old++;
}

static int scrape(struct prometheus *p, struct ipw_err *err)
{
    return p->fetch.get(&p->kept, p->url, &p->body, TIMEOUT_NS, &p->here, err);
}

static void prometheus_read(struct ipw_source *self, int64_t *values)
{
    struct prometheus *p = (struct prometheus *)self;
    struct ipw_err err = {0};
    size_t was_old;

    for (size_t i = 0; i < p->n; i++) values[i] = IPW_NO_VALUE;
    if (self->now() < p->retry_ns) return;
    if (scrape(p, &err) < 0) {
        p->retry_ns = self->now() + RETRY_NS;
        p->failures++;
        ipw_source_set_note(&p->source, "%llu scrape%s failed: %.120s",
                            (unsigned long long)p->failures, p->failures == 1 ? "" : "s", err.text);
        return;
    }
    was_old = p->old;
    p->values = values;
    p->old = 0;
    ipw_prom_parse(ipw_buf_str(&p->body), p->body.len, take, p, NULL);
    p->values = NULL;
    if (p->old)
        ipw_source_set_note(&p->source, "the time stamps of %zu series stand still: no value",
                            p->old);
    else if (was_old)
        ipw_source_set_note(&p->source, "for a while its time stamps stood still");
}

static void prometheus_close(struct ipw_source *self)
{
    struct prometheus *p = (struct prometheus *)self;

    p->fetch.release(p->kept);
    ipw_buf_release(&p->body);
    free(p->url);
    free(p->series);
    free(p->channels);
    ipw_json_free(p->known);
    free(p);
}

/* ---- which series there are ---- */

static void put_sample(void *ud, const struct ipw_prom_sample *s)
{
    struct ipw_jw *w = ud;

    ipw_jw_obj(w);
    ipw_jw_kbool(w, "blank", is_blank(s));
    ipw_jw_key(w, "labels");
    ipw_jw_arr(w);
    for (size_t i = 0; i < s->n_labels; i++) {
        ipw_jw_arr(w);
        ipw_jw_str(w, s->labels[i].name);
        ipw_jw_str(w, s->labels[i].value);
        ipw_jw_arr_end(w);
    }
    ipw_jw_arr_end(w);
    ipw_jw_kstr(w, "name", s->name);
    ipw_jw_kbool(w, "stamped", s->stamp_ms != INT64_MIN);
    ipw_jw_obj_end(w);
}

/* Asks what the samples of the page are; *bad lines are not samples. */
static int ask_series(struct prometheus *p, size_t *bad, size_t *first_bad, struct ipw_err *err)
{
    struct ipw_buf page = IPW_BUF(8 * PAGE_MAX), answer = IPW_BUF(PAGE_MAX);
    struct ipw_jw w;
    int rc;

    ipw_jw_init(&w, &page);
    ipw_jw_obj(&w);
    ipw_jw_kbool(&w, "here", p->here);
    ipw_jw_kstr(&w, "host", p->host);
    ipw_jw_key(&w, "samples");
    ipw_jw_arr(&w);
    *bad = ipw_prom_parse(ipw_buf_str(&p->body), p->body.len, put_sample, &w, first_bad);
    ipw_jw_arr_end(&w);
    ipw_jw_obj_end(&w);
    rc = p->fetch.series(&answer, &page, err);
    if (!rc) rc = ipw_json_parse(&p->known, ipw_buf_str(&answer), answer.len, NULL, err);
    ipw_buf_release(&page);
    ipw_buf_release(&answer);
    return rc;
}

static int make_series(struct prometheus *p, struct ipw_err *err)
{
    const struct ipw_json *list = ipw_json_get(p->known, "series");
    int rc = 0;

    p->n = ipw_json_count(list);
    p->series = ipw_calloc(p->n + 1, sizeof *p->series);
    p->channels = ipw_calloc(p->n + 1, sizeof *p->channels);
    for (size_t i = 0; i < p->n && !rc; i++) {
        const struct ipw_json *one = ipw_json_at(list, i);

        p->series[i] = (struct series){.metric = ipw_json_str(ipw_json_get(one, "metric"), ""),
                                       .labels = ipw_json_get(one, "labels"),
                                       .factor = ipw_json_num(ipw_json_get(one, "factor"), 0),
                                       .stamps.newest_ms = INT64_MIN};
        rc = ipw_channel_read(&p->channels[i], ipw_json_get(one, "channel"), "channel", err);
        snprintf(p->channels[i].method, sizeof p->channels[i].method, "scrape");
        ipw_channel_unique(p->channels, i, i);
    }
    p->source.period_ns =
        ipw_json_bool(ipw_json_get(p->known, "own"), false) ? OWN_PERIOD_NS : PERIOD_NS;
    p->source.channels = p->channels;
    p->source.n_channels = p->n;
    return rc;
}

static int read_page(struct prometheus *p, struct ipw_err *err)
{
    size_t first_bad, bad;
    int rc = ask_series(p, &bad, &first_bad, err);
    const char *note;

    if (!rc) rc = make_series(p, err);
    if (rc) return rc;
    if (p->n == 0)
        return ipw_fail(err, IPW_EUNSUPPORTED,
                        "%.200s: no known series of energy or power%s (DCGM exporter, "
                        "Scaphandre, Kepler, node_exporter, ipw-agent telemetry)",
                        p->url, bad ? ", and some lines are not samples" : "");
    note = ipw_json_str(ipw_json_get(p->known, "note"), NULL);
    if (note)
        ipw_source_set_note(&p->source, "%s", note);
    else if (bad)
        ipw_source_set_note(&p->source,
                            "%zu lines of the page are not samples; the first is line %zu", bad,
                            first_bad);
    return 0;
}

int ipw_page_host(char *host, size_t size, const char **path, const char *url, struct ipw_err *err)
{
    const char *authority = url + 7;
    size_t n;

    if (strncasecmp(url, "https://", 8) == 0)
        return ipw_fail(err, IPW_EUNSUPPORTED,
                        "%.300s: https is not supported. Use the exporter's plain http address, or "
                        "a local proxy",
                        url);
    n = strncasecmp(url, "http://", 7) == 0 ? strcspn(authority, "/?#") : 0;
    if (!n) return ipw_fail(err, IPW_EINVAL, "%.300s: expected http://HOST:PORT/PATH", url);
    if (memchr(authority, '@', n))
        return ipw_fail(err, IPW_EUNSUPPORTED, "%.300s: a user in the URL is not supported", url);
    snprintf(host, size, "%.*s", (int)n, authority);
    *path = authority + n;
    return 0;
}

/* The default path is "/metrics". */
static int take_url(struct prometheus *p, const char *url, struct ipw_err *err)
{
    const char *path;
    int rc = ipw_page_host(p->host, sizeof p->host, &path, url, err);

    if (rc) return rc;
    if (*path == '/' && path[1] && path[1] != '#')
        p->url = ipw_strdup(url);
    else
        p->url = ipw_asprintf("%.*s/metrics%s", (int)(path - url), url, path + (*path == '/'));
    return 0;
}

int ipw_prometheus_open(struct ipw_source **out, const struct ipw_source_place *place,
                        const char *url, struct ipw_err *err)
{
    struct prometheus *p = ipw_calloc(1, sizeof *p);
    int rc;

    *out = NULL;
    p->fetch = *place->fetch;
    ipw_buf_init(&p->body, PAGE_MAX);
    p->source.name = "prometheus";
    p->source.read = prometheus_read;
    p->source.close = prometheus_close;
    p->source.now = ipw_now_ns;
    rc = take_url(p, url, err);
    if (rc == 0) rc = scrape(p, err);
    if (rc == 0) rc = read_page(p, err);
    if (rc < 0) {
        prometheus_close(&p->source);
        return rc;
    }
    *out = &p->source;
    return 0;
}

/* ---- the text of a page ---- */

/* A line is copied, and cut into texts in place; a longer line is not a sample. */
#define LINE_MAX_BYTES   ((size_t)8192)
#define NUMBER_MAX_BYTES ((size_t)63)

static char *skip_blanks(char *at) { return at + strspn(at, " \t"); }

/* The end of the name that begins here; NULL: none does. */
static char *name_end(char *at)
{
    size_t n = strspn(at, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_:0123456789");

    return n == 0 || (*at >= '0' && *at <= '9') ? NULL : at + n;
}

/* Reads a quoted text after its opening quote; returns what follows it, or NULL. */
static char *cut_quoted(char *at)
{
    char *out = at;

    for (; *at != '"'; at++) {
        if (*at == '\\' && at[1])
            *out++ = *++at == 'n' ? '\n' : *at;
        else if (*at)
            *out++ = *at;
        else
            return NULL;
    }
    *out = '\0';
    return at + 1;
}

/* Reads labels after their brace; returns what follows, or NULL. */
static char *read_labels(char *at, struct ipw_prom_sample *s)
{
    for (at = skip_blanks(at); *at != '}'; at = skip_blanks(at)) {
        char *name = at, *end = name_end(at), *value;

        if (!end || *(at = skip_blanks(end)) != '=') return NULL;
        *end = '\0';
        at = skip_blanks(at + 1);
        if (*at != '"') return NULL;
        value = at + 1;
        at = cut_quoted(value);
        if (!at) return NULL;
        if (s->n_labels < IPW_PROM_LABELS) {
            s->labels[s->n_labels].name = name;
            s->labels[s->n_labels++].value = value;
        }
        at = skip_blanks(at);
        if (*at == ',')
            at++;
        else if (*at != '}')
            return NULL;
    }
    return at + 1;
}

/* Cuts out a number as Go writes it: decimal, NaN, +Inf; returns what follows, or NULL. */
static char *cut_number(char *at, double *value)
{
    size_t n = strcspn(at, " \t");
    bool more = at[n] != '\0';
    char *end;

    at[n] = '\0';
    /* strtod also accepts hexadecimal numbers and "nan(...)". */
    if (n == 0 || n > NUMBER_MAX_BYTES || strpbrk(at, "xXpP(")) return NULL;
    *value = strtod(at, &end);
    return *end ? NULL : at + n + more;
}

/* Reads the value and the rest: nothing, a time stamp (whole milliseconds; in OpenMetrics seconds
 * with a point), or an exemplar. */
static bool read_value(char *at, struct ipw_prom_sample *s)
{
    char *text = at = skip_blanks(at), *end;
    double stamp;

    at = cut_number(at, &s->value);
    if (!at) return false;
    errno = 0;
    s->integer = strtoll(text, &end, 10);
    s->is_int = *end == '\0' && errno == 0;
    s->stamp_ms = INT64_MIN;
    text = at = skip_blanks(at);
    if (*at == '\0' || *at == '#') return true;
    at = cut_number(at, &stamp);
    if (!at) return false;
    if (strpbrk(text, ".eE")) stamp *= 1e3;
    if (stamp > -9e15 && stamp < 9e15) s->stamp_ms = (int64_t)stamp;
    at = skip_blanks(at);
    return *at == '\0' || *at == '#';
}

static bool read_sample(char *at, struct ipw_prom_sample *s)
{
    char *end = name_end(at);

    if (!end) return false;
    s->name = at;
    s->n_labels = 0;
    at = skip_blanks(end);
    if (*at == '{')
        at = read_labels(at + 1, s);
    else if (at == end)
        return false;
    *end = '\0';
    return at && read_value(at, s);
}

size_t ipw_prom_parse(const char *text, size_t n,
                      void (*fn)(void *ud, const struct ipw_prom_sample *sample), void *ud,
                      size_t *first_bad)
{
    char line[LINE_MAX_BYTES], *at;
    struct ipw_prom_sample s;
    const char *end = text + n;
    size_t bad = 0, number = 0;

    if (first_bad) *first_bad = 0;
    while (text < end) {
        const char *nl = memchr(text, '\n', (size_t)(end - text));
        size_t length = (size_t)((nl ? nl : end) - text), kept = length;

        if (kept >= sizeof line) kept = sizeof line - 1;
        memcpy(line, text, kept);
        text = nl ? nl + 1 : end;
        number++;
        if (length && kept == length && line[kept - 1] == '\r') kept--;
        line[kept] = '\0';
        at = skip_blanks(line);
        if (at == line + kept || *at == '#') continue;
        if (length < sizeof line && strlen(line) == kept && read_sample(at, &s)) {
            fn(ud, &s);
        } else if (bad++ == 0 && first_bad) {
            *first_bad = number;
        }
    }
    return bad;
}

const char *ipw_prom_label(const struct ipw_prom_sample *sample, const char *name)
{
    for (size_t i = 0; i < sample->n_labels; i++) {
        if (strcmp(sample->labels[i].name, name) == 0) return sample->labels[i].value;
    }
    return "";
}
