#include "energy/sources/stream_line.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "json/json.h"

#define MOST_PERIOD_NS (3600 * IPW_NS_PER_S)
#define MOST_NUMBER    (INT64_C(1) << 61)

static void clean(char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < ' ' || *text == 127) *text = ' ';
}

static int need_text(char *out, size_t size, const struct ipw_json *doc, const char *key,
                     struct ipw_err *err)
{
    const char *text;
    int rc = ipw_json_need_str(&text, doc, key, "", err);

    if (rc) return rc;
    if (!*text || strlen(text) >= size)
        return ipw_fail(err, IPW_EPARSE, "%s: expected 1 to %zu characters", key, size - 1);
    snprintf(out, size, "%s", text);
    clean(out);
    return 0;
}

static int need_number(int64_t *out, const struct ipw_json *doc, const char *key, int64_t most,
                       struct ipw_err *err)
{
    int rc = ipw_json_need_int(out, doc, key, "", err);

    if (rc) return rc;
    if (*out < 0 || *out > most)
        return ipw_fail(err, IPW_EPARSE, "%s: %lld is out of range", key, (long long)*out);
    return 0;
}

/* ---- hello ---- */

static int add_channel(struct ipw_stream_hello *h, const struct ipw_json *node, const char *where,
                       struct ipw_err *err)
{
    struct ipw_channel *c;
    int rc;

    if (h->n_channels == IPW_STREAM_CHANNELS_MAX)
        return ipw_fail(err, IPW_ELIMIT, "%s: more than %d channels", where,
                        IPW_STREAM_CHANNELS_MAX);
    c = &h->channels[h->n_channels];
    rc = ipw_channel_read(c, node, where, err);
    if (rc) return rc;
    clean(c->name);
    clean(c->device);
    clean(c->unit);
    if (!c->name[0] || c->kind == IPW_CHANNEL_ESTIMATE || c->period_ns > MOST_PERIOD_NS ||
        c->window_ns > MOST_PERIOD_NS || c->modulus_uj > MOST_NUMBER || c->max_w > 1000000)
        return ipw_fail(err, IPW_EPARSE, "%s: not a channel of a sensor", where);
    for (size_t i = 0; i < h->n_channels; i++)
        if (!strcmp(h->channels[i].name, c->name))
            return ipw_fail(err, IPW_EPARSE, "%s: a second channel '%s'", where, c->name);
    h->n_channels++;
    return 0;
}

static int add_source(struct ipw_stream_hello *h, const struct ipw_json *node, int64_t interval_ns,
                      struct ipw_err *err)
{
    const struct ipw_json *channels;
    size_t at = h->n_sources, first = h->n_channels;
    char where[64];
    int rc;

    if (at == IPW_STREAM_SOURCES_MAX)
        return ipw_fail(err, IPW_ELIMIT, "more than %d sensors", IPW_STREAM_SOURCES_MAX);
    rc = need_text(h->sources[at].name, sizeof h->sources[at].name, node, "name", err);
    if (!rc) rc = need_number(&h->sources[at].period_ns, node, "period_ns", MOST_PERIOD_NS, err);
    if (!rc) rc = ipw_json_need_arr(&channels, node, "channels", "", err);
    if (rc) return rc;
    for (const struct ipw_json *c = ipw_json_first(channels); c && !rc; c = ipw_json_next(c)) {
        snprintf(where, sizeof where, "sources[%zu].channels[%zu]", at, h->n_channels - first);
        rc = add_channel(h, c, where, err);
    }
    if (interval_ns > h->sources[at].period_ns) h->sources[at].period_ns = interval_ns;
    h->sources[at].first = first;
    h->sources[at].n = h->n_channels - first;
    h->n_sources++;
    return rc;
}

int ipw_stream_hello_read(struct ipw_stream_hello *out, const char *text, size_t n,
                          struct ipw_err *err)
{
    const struct ipw_json *power, *sources;
    struct ipw_json *doc = NULL;
    int64_t format = 0, interval_ns = 0;
    int rc = ipw_json_parse(&doc, text, n, NULL, err);

    *out = (struct ipw_stream_hello){0};
    if (rc) return rc;
    out->channels = ipw_calloc(IPW_STREAM_CHANNELS_MAX, sizeof *out->channels);
    rc = need_number(&format, doc, "stream", MOST_NUMBER, err);
    if (!rc && format != IPW_STREAM_FORMAT)
        rc = ipw_fail(err, IPW_EUNSUPPORTED, "format %lld of the stream; this program reads %d",
                      (long long)format, IPW_STREAM_FORMAT);
    if (!rc) rc = need_text(out->boot_id, sizeof out->boot_id, doc, "boot_id", err);
    if (!rc) rc = need_text(out->instance, sizeof out->instance, doc, "instance", err);
    if (!rc) rc = ipw_json_need_obj(&power, doc, "power", "", err);
    if (!rc) rc = need_number(&interval_ns, power, "interval_ns", MOST_PERIOD_NS, err);
    if (!rc) rc = ipw_json_need_arr(&sources, power, "sources", "", err);
    for (const struct ipw_json *s = rc ? NULL : ipw_json_first(sources); s && !rc;
         s = ipw_json_next(s))
        rc = add_source(out, s, interval_ns, err);
    ipw_json_free(doc);
    if (rc) ipw_stream_hello_release(out);
    return rc;
}

void ipw_stream_hello_release(struct ipw_stream_hello *hello)
{
    free(hello->channels);
    *hello = (struct ipw_stream_hello){0};
}

bool ipw_stream_hello_same(const struct ipw_stream_hello *a, const struct ipw_stream_hello *b)
{
    if (a->n_sources != b->n_sources || a->n_channels != b->n_channels) return false;
    for (size_t i = 0; i < a->n_sources; i++)
        if (a->sources[i].n != b->sources[i].n || strcmp(a->sources[i].name, b->sources[i].name))
            return false;
    for (size_t i = 0; i < a->n_channels; i++) {
        const struct ipw_channel *x = &a->channels[i], *y = &b->channels[i];

        if (strcmp(x->name, y->name) || strcmp(x->device, y->device) || x->kind != y->kind ||
            x->domain != y->domain || x->modulus_uj != y->modulus_uj)
            return false;
    }
    return true;
}

/* ---- the other lines ---- */

static int read_values(int64_t *values, size_t n, const struct ipw_json *doc, struct ipw_err *err)
{
    const struct ipw_json *list, *v;
    size_t i = 0;
    int rc = ipw_json_need_arr(&list, doc, "values", "", err);

    if (rc) return rc;
    for (v = ipw_json_first(list); v && i < n; v = ipw_json_next(v), i++) {
        values[i] = IPW_NO_VALUE;
        if (ipw_json_is_null(v)) continue;
        values[i] = ipw_json_kind(v) == IPW_JSON_INT ? ipw_json_int(v, -1) : -1;
        if (values[i] < 0 || values[i] > MOST_NUMBER)
            return ipw_fail(err, IPW_EPARSE, "values[%zu]: not a whole number from 0", i);
    }
    if (v || i != n) return ipw_fail(err, IPW_EPARSE, "values: expected %zu", n);
    return 0;
}

int ipw_stream_line_read(struct ipw_stream_line *out, int64_t *values,
                         const struct ipw_stream_hello *hello, const char *text, size_t n,
                         struct ipw_err *err)
{
    struct ipw_json *doc = NULL;
    int64_t source = 0;
    int rc = ipw_json_parse(&doc, text, n, NULL, err);

    *out = (struct ipw_stream_line){0};
    if (rc) return rc;
    rc = need_number(&out->seq, doc, "seq", MOST_NUMBER, err);
    if (!rc && ipw_json_get(doc, "dropped")) {
        rc = need_number(&out->dropped, doc, "dropped", MOST_NUMBER, err);
        ipw_json_free(doc);
        return rc;
    }
    out->is_row = true;
    if (!rc) rc = need_number(&out->mono_ns, doc, "mono_ns", MOST_NUMBER, err);
    if (!rc) rc = need_number(&source, doc, "source", INT32_MAX, err);
    if (!rc && (size_t)source >= hello->n_sources)
        rc = ipw_fail(err, IPW_EPARSE, "source: there are %zu", hello->n_sources);
    if (!rc) {
        out->source = (size_t)source;
        rc = read_values(values, hello->sources[source].n, doc, err);
    }
    ipw_json_free(doc);
    return rc;
}

int ipw_stream_clock_read(int64_t *mono_ns, const char *text, size_t n, struct ipw_err *err)
{
    struct ipw_json *doc = NULL;
    int rc = ipw_json_parse(&doc, text, n, NULL, err);

    if (!rc) rc = need_number(mono_ns, doc, "mono_ns", MOST_NUMBER, err);
    ipw_json_free(doc);
    return rc;
}
