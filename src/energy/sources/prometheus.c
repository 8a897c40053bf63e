/* Scraping: fetches the page and matches its known series to the channels of the first scrape. */
#include "energy/sources/prometheus.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"
#include "energy/sources/meter_feed.h"
#include "energy/sources/prometheus_page.h"
#include "energy/sources/sysfs.h"

#define PAGE_MAX      (4 * IPW_MIB)
#define TIMEOUT_NS    (2 * IPW_NS_PER_S)
#define CHANNELS_MAX  ((size_t)256)
#define PERIOD_NS     (500 * IPW_NS_PER_MS)
#define OWN_PERIOD_NS (200 * IPW_NS_PER_MS) /* the page of another ipw-agent is small */
#define RETRY_NS      IPW_NS_PER_S
#define OLD_MS        60000 /* a first stamp this far off tells nothing of the present */

/* A series' own time stamps: a page that is served again and again with an old one stands still. */
struct stamps {
    int64_t newest_ms; /* INT64_MIN: none */
    struct ipw_meter_feed_pace pace;
};

struct prometheus {
    struct ipw_source source;
    struct ipw_page_fetch fetch;
    void *kept; /* state of `fetch` */
    char *url;
    char host[128]; /* as the URL has it, for the channels' names */
    bool here;
    struct ipw_buf body;
    struct ipw_prom_series *series;
    size_t n, cap;
    size_t beyond; /* number of series beyond the limit */
    size_t blank;  /* number of series without a value at the first scrape */
    char first_blank[64];
    struct ipw_channel *channels;
    struct stamps *stamps;
    int64_t *values;  /* values of the current scrape */
    int64_t retry_ns; /* do not ask again before this time */
    uint64_t failures;
    size_t old; /* number of series whose time stamp stood still, of this scrape */
};

static struct ipw_prom_series *find(struct prometheus *p, const char *key)
{
    for (size_t i = 0; i < p->n; i++) {
        if (strcmp(p->series[i].key, key) == 0) return &p->series[i];
    }
    return NULL;
}

/* The first sample of a key counts, because MIG slices and pods repeat the whole device's.  A
 * device without a value gets no channel, as with NVML; a gauge may then replace its counter. */
static void gather(void *ud, const struct ipw_prom_sample *sample)
{
    struct prometheus *p = ud;
    struct ipw_prom_series series;

    if (!ipw_prom_series_of(&series, sample) || find(p, series.key)) return;
    if (ipw_prom_series_value(&series, sample) == IPW_NO_VALUE) {
        if (p->blank++ == 0) snprintf(p->first_blank, sizeof p->first_blank, "%.60s", series.key);
        return;
    }
    if (p->n == CHANNELS_MAX) {
        p->beyond++;
        return;
    }
    IPW_GROW(p->series, p->cap, p->n + 1);
    series.channel.fresh =
        series.channel.kind == IPW_CHANNEL_GAUGE && sample->stamp_ms != INT64_MIN;
    p->series[p->n++] = series;
}

static void name_chip(void *ud, const struct ipw_prom_sample *sample)
{
    struct prometheus *p = ud;
    char chip[sizeof p->series->chip];

    if (strcmp(sample->name, "node_hwmon_chip_names") != 0) return;
    snprintf(chip, sizeof chip, "%.90s", ipw_prom_label(sample, "chip"));
    for (size_t i = 0; i < p->n; i++) {
        if (!chip[0] || strcmp(p->series[i].chip, chip) != 0) continue;
        ipw_prom_series_chip(&p->series[i], ipw_prom_label(sample, "chip_name"));
    }
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

static void take(void *ud, const struct ipw_prom_sample *sample)
{
    struct prometheus *p = ud;
    struct ipw_prom_series series;
    const struct ipw_prom_series *known;
    size_t i;

    if (!ipw_prom_series_of(&series, sample)) return;
    known = find(p, series.key);
    i = known ? (size_t)(known - p->series) : 0;
    if (!known || p->values[i] != IPW_NO_VALUE) return;
    if (is_fresh(&p->stamps[i], sample->stamp_ms, p->source.now()))
        p->values[i] = ipw_prom_series_value(known, sample);
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
    free(p->stamps);
    free(p);
}

/* Channel names begin with the host, so that gpu0 of two machines differ. */
static void make_channels(struct prometheus *p)
{
    p->source.period_ns = OWN_PERIOD_NS;
    p->channels = ipw_calloc(p->n, sizeof *p->channels);
    p->stamps = ipw_calloc(p->n, sizeof *p->stamps);
    for (size_t i = 0; i < p->n; i++) p->stamps[i].newest_ms = INT64_MIN;
    for (size_t i = 0; i < p->n; i++) {
        struct ipw_channel *c = &p->channels[i];
        size_t room = sizeof c->name - 1, n = strlen(p->series[i].channel.name);

        *c = p->series[i].channel;
        c->remote = !p->here;
        room = n + 1 < room ? room - n - 1 : 0;
        snprintf(c->name, sizeof c->name, "%.*s/%.52s", (int)room, p->host,
                 p->series[i].channel.name);
        snprintf(c->method, sizeof c->method, "scrape");
        ipw_channel_unique(p->channels, i, i);
        if (!p->series[i].own) p->source.period_ns = PERIOD_NS;
    }
    p->source.channels = p->channels;
    p->source.n_channels = p->n;
}

/* Without a chip name we cannot tell what a series measures, so drop it. */
static void drop_unknown_chips(struct prometheus *p)
{
    size_t kept = 0;

    for (size_t i = 0; i < p->n; i++) {
        if (p->series[i].chip[0] && p->series[i].channel.scope == IPW_SCOPE_RAIL) continue;
        if (kept != i) p->series[kept] = p->series[i];
        kept++;
    }
    p->n = kept;
}

static int read_page(struct prometheus *p, struct ipw_err *err)
{
    size_t first_bad, bad;

    bad = ipw_prom_parse(ipw_buf_str(&p->body), p->body.len, gather, p, &first_bad);
    ipw_prom_parse(ipw_buf_str(&p->body), p->body.len, name_chip, p, NULL);
    drop_unknown_chips(p);
    if (p->n == 0) {
        return ipw_fail(err, IPW_EUNSUPPORTED,
                        "%.200s: no known series of energy or power%s (DCGM exporter, "
                        "Scaphandre, Kepler, node_exporter, ipw-agent telemetry)",
                        p->url, bad ? ", and some lines are not samples" : "");
    }
    ipw_prom_series_choose(p->series, p->n);
    make_channels(p);
    if (p->beyond) {
        ipw_source_set_note(&p->source, "%zu series over the limit of %zu are left out", p->beyond,
                            CHANNELS_MAX);
    } else if (p->blank) {
        ipw_source_set_note(&p->source, "without a value and not counted: %s%s", p->first_blank,
                            p->blank > 1 ? " and others" : "");
    } else if (bad) {
        ipw_source_set_note(&p->source,
                            "%zu lines of the page are not samples; the first is line %zu", bad,
                            first_bad);
    }
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
