#include "energy/source.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "json/json.h"

const char *ipw_scope_name(enum ipw_scope scope)
{
    static const char *const names[] = {"device",   "package", "core",    "uncore", "dram",
                                        "platform", "module",  "machine", "rail"};

    return (size_t)scope < sizeof names / sizeof *names ? names[scope] : "unknown";
}

const char *ipw_channel_kind_name(enum ipw_channel_kind kind)
{
    static const char *const names[] = {"counter", "gauge", "metric", "estimate"};

    return (size_t)kind < sizeof names / sizeof *names ? names[kind] : "unknown";
}

const enum ipw_domain ipw_domains_by_name[IPW_DOMAIN_COUNT] = {IPW_DOMAIN_CPU, IPW_DOMAIN_DRAM,
                                                               IPW_DOMAIN_GPU, IPW_DOMAIN_MACHINE};

const char *ipw_domain_name(enum ipw_domain domain)
{
    static const char *const names[IPW_DOMAIN_COUNT] = {"gpu", "cpu", "dram", "machine"};

    return domain >= 0 && domain < IPW_DOMAIN_COUNT ? names[domain] : "unknown";
}

/* Protects all notes of all sources: they are written and read only a few times per run. */
static pthread_mutex_t note_lock = PTHREAD_MUTEX_INITIALIZER;

void ipw_source_set_note(struct ipw_source *source, const char *fmt, ...)
{
    va_list ap;

    pthread_mutex_lock(&note_lock);
    va_start(ap, fmt);
    vsnprintf(source->note, sizeof source->note, fmt, ap);
    va_end(ap);
    pthread_mutex_unlock(&note_lock);
}

void ipw_source_add_note(struct ipw_source *source, const char *fmt, ...)
{
    size_t n;
    va_list ap;

    pthread_mutex_lock(&note_lock);
    n = strlen(source->note);
    if (n > 0) snprintf(source->note + n, sizeof source->note - n, "; ");
    n = strlen(source->note);
    va_start(ap, fmt);
    vsnprintf(source->note + n, sizeof source->note - n, fmt, ap);
    va_end(ap);
    pthread_mutex_unlock(&note_lock);
}

const char *ipw_source_note(const struct ipw_source *source, char *out)
{
    pthread_mutex_lock(&note_lock);
    memcpy(out, source->note, IPW_NOTE_BYTES);
    pthread_mutex_unlock(&note_lock);
    return out;
}

const char *ipw_source_verdict_words(const struct ipw_source_verdict *v, char *out)
{
    bool absent = v->code == IPW_EUNSUPPORTED || v->code == IPW_ENOTFOUND;

    snprintf(out, IPW_VERDICT_BYTES, "%s%s",
             absent                 ? "not here: "
             : v->code == IPW_EPERM ? "permission: "
                                    : "",
             v->text);
    return out;
}

size_t ipw_source_set_first(const struct ipw_source_set *set, size_t source)
{
    size_t first = 0;

    for (size_t i = 0; i < source; i++) first += set->sources[i]->n_channels;
    return first;
}

void ipw_source_set_describe(struct ipw_source_set *set)
{
    size_t n = ipw_source_set_first(set, set->n);

    set->n_channels = n;
    set->channels = ipw_calloc(n + 1, sizeof *set->channels);
    set->rejected = ipw_calloc(n + 1, sizeof *set->rejected);
    for (size_t i = 0; i < set->n; i++) set->own[i] = set->sources[i]->channels;
}

void ipw_source_set_add(struct ipw_source_set *set, struct ipw_source *source)
{
    size_t had = set->n_channels;
    bool *rejected = set->rejected;

    for (size_t i = 0; i < set->n && set->channels; i++) set->sources[i]->channels = set->own[i];
    free(set->channels);
    set->channels = NULL;
    set->rejected = NULL;
    set->sources[set->n++] = source;
    ipw_source_set_describe(set);
    if (had) memcpy(set->rejected, rejected, had * sizeof *rejected);
    free(rejected);
}

void ipw_source_set_close(struct ipw_source_set *set)
{
    for (size_t i = 0; i < set->n; i++) {
        if (set->channels) set->sources[i]->channels = set->own[i];
        set->sources[i]->close(set->sources[i]);
    }
    free(set->channels);
    free(set->rejected);
    *set = (struct ipw_source_set){0};
}

/* ---- descriptions in JSON ---- */

static int find(const char *name, const char *(*nth)(int), int n)
{
    for (int i = 0; name && i < n; i++) {
        if (!strcmp(name, nth(i))) return i;
    }
    return -1;
}

static const char *domain(int i) { return ipw_domain_name((enum ipw_domain)i); }
static const char *scope(int i) { return ipw_scope_name((enum ipw_scope)i); }
static const char *kind(int i) { return ipw_channel_kind_name((enum ipw_channel_kind)i); }

int ipw_channel_read(struct ipw_channel *out, const struct ipw_json *node, const char *where,
                     struct ipw_err *err)
{
    struct ipw_channel c = {0};
    int d = find(ipw_json_str(ipw_json_get(node, "domain"), NULL), domain, IPW_DOMAIN_COUNT);
    int k = find(ipw_json_str(ipw_json_get(node, "kind"), NULL), kind, IPW_CHANNEL_ESTIMATE + 1);
    int s = find(ipw_json_str(ipw_json_get(node, "scope"), NULL), scope, IPW_SCOPE_RAIL + 1);

    if (d < 0) return ipw_fail(err, IPW_EPARSE, "%s.domain: no such domain", where);
    if (k < 0) return ipw_fail(err, IPW_EPARSE, "%s.kind: no such kind", where);
    c.domain = (enum ipw_domain)d;
    c.kind = (enum ipw_channel_kind)k;
    c.scope = s < 0 ? IPW_SCOPE_DEVICE : (enum ipw_scope)s;
    snprintf(c.name, sizeof c.name, "%s", ipw_json_str(ipw_json_get(node, "name"), ""));
    snprintf(c.device, sizeof c.device, "%s", ipw_json_str(ipw_json_get(node, "device"), ""));
    snprintf(c.unit, sizeof c.unit, "%s", ipw_json_str(ipw_json_get(node, "unit"), ""));
    c.modulus_uj = ipw_json_int(ipw_json_get(node, "modulus_uj"), 0);
    c.max_w = ipw_json_int(ipw_json_get(node, "max_w"), 0);
    c.period_ns = ipw_json_int(ipw_json_get(node, "period_ns"), 0);
    c.window_ns = ipw_json_int(ipw_json_get(node, "window_ns"), 0);
    c.fresh = ipw_json_bool(ipw_json_get(node, "fresh"), false);
    c.own_zero = ipw_json_bool(ipw_json_get(node, "own_zero"), false);
    c.in_sum = ipw_json_bool(ipw_json_get(node, "in_sum"), false);
    c.remote = ipw_json_bool(ipw_json_get(node, "remote"), false);
    if (c.modulus_uj < 0 || c.max_w < 0 || c.period_ns < 0 || c.window_ns < 0)
        return ipw_fail(err, IPW_EPARSE, "%s: a negative quantity", where);
    *out = c;
    return 0;
}
