/* The sensors of several sessions together: see run/merge/join_rows.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "json/document.h"
#include "json/json.h"
#include "run/merge/join_rows_priv.h"

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
    struct join_sensor *s;

    IPW_GROW(r->sensors, r->cap_sensors, r->n_sensors + 1);
    s = &r->sensors[r->n_sensors++];
    *s = (struct join_sensor){.key = key,
                              .text = text,
                              .first = r->n_channels,
                              .n = n,
                              .leader = IPW_NO_LEADER,
                              .last_ns = INT64_MIN,
                              .last = ipw_calloc(n + 1, sizeof *s->last)};
    IPW_GROW(r->channels, r->cap_channels, r->n_channels + n + 1);
    for (size_t i = 0; i < n; i++) {
        r->channels[r->n_channels++] = *channels[i];
        s->own_zero |= channels[i]->own_zero;
    }
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
static int add_part(struct ipw_join_rows *r, struct join_from *f, const struct ipw_json *source,
                    size_t number, const size_t *own, size_t n, struct ipw_err *err)
{
    const struct ipw_power_source *s = &f->power.sources[number];
    const struct ipw_channel **channels = ipw_calloc(n + 1, sizeof *channels);
    struct join_sensor *sensor;
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
    f->parts[f->n_parts++] = (struct join_part){number, at};
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

int ipw_join_rows_add_source(struct ipw_join_rows *r, struct join_from *f,
                             const struct ipw_json *source, size_t number, bool divided,
                             struct ipw_err *err)
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

static bool has_name(const struct ipw_join_rows *r, const struct join_sensor *s, const char *name)
{
    for (size_t i = s->first; i < s->first + s->n; i++)
        if (!strcmp(r->channels[i].name, name)) return true;
    return false;
}

static bool is_ambiguous(const struct ipw_join_rows *r, const struct join_sensor *s)
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
static void extend_names(struct ipw_join_rows *r, const struct join_sensor *s,
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

void ipw_join_rows_name_channels(struct ipw_join_rows *r)
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
static void put_sensor(const struct ipw_join_rows *r, const struct join_sensor *s,
                       struct ipw_buf *out)
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
