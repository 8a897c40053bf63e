/* The energy part of a trace line. */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "trace/channel_stats.h"
#include "trace/schema_priv.h"

static const enum ipw_domain sorted[IPW_DOMAIN_COUNT] = {IPW_DOMAIN_CPU, IPW_DOMAIN_DRAM,
                                                         IPW_DOMAIN_GPU, IPW_DOMAIN_MACHINE};

void ipw_schema_kjoules(struct ipw_jw *w, const char *key, const struct ipw_figure *f)
{
    ipw_jw_knum(w, key, f->known ? f->j : NAN); /* NAN is written as null */
}

static bool bounded(const struct ipw_figure *f)
{
    return (f->known || f->estimated) && (f->lo_j != 0 || f->hi_j != 0);
}

/* What stands beside a figure in some places. */
struct beside {
    const double *mean_w, *peak_w;
    const char *sources;
    const struct ipw_query_trace *q;
    enum ipw_domain domain;
    const struct ipw_figure *devices; /* of q; NULL: none are written */
};

static void put_figure(struct ipw_jw *w, const struct ipw_figure *f, const struct beside *b);

static void put_devices(struct ipw_jw *w, const struct beside *b)
{
    static const struct beside nothing = {0};
    bool any = false;

    for (size_t i = 0; b->devices && i < b->q->n_devices; i++) {
        const struct ipw_device *device = &b->q->devices[i];

        if (device->domain != b->domain) continue;
        if (!any) {
            ipw_jw_key(w, "devices");
            ipw_jw_obj(w);
        }
        any = true;
        ipw_jw_key_any(w, device->name, strlen(device->name));
        put_figure(w, &b->devices[i], &nothing);
    }
    if (any) ipw_jw_obj_end(w);
}

/* A figure of which nothing but the reason is told, at once: most of them, where sensors are few. */
static bool put_unknown(struct ipw_jw *w, const struct ipw_figure *f)
{
    char text[64] = "{\"joules\":null,\"reason\":\"";
    size_t n = strlen(text);

    if (f->known || f->estimated || f->coverage != 0 || f->provenance != IPW_PROV_NONE ||
        f->samples != 0 || !f->reason)
        return false;
    for (const char *p = f->reason; *p; p++) {
        if ((*p < 'a' || *p > 'z') && *p != '_') return false;
        if (n == sizeof text - 2) return false;
        text[n++] = *p;
    }
    text[n++] = '"';
    text[n++] = '}';
    ipw_jw_raw(w, text, n);
    return true;
}

/* A figure; what is at its default (no coverage, no samples, no reason) is left out, so that the
 * many figures of a machine without sensors stay short. */
static void put_figure(struct ipw_jw *w, const struct ipw_figure *f, const struct beside *b)
{
    if (!b->sources && !b->devices && !(b->mean_w && !isnan(*b->mean_w)) &&
        !(b->peak_w && !isnan(*b->peak_w)) && put_unknown(w, f))
        return;
    ipw_jw_obj(w);
    if (f->known || f->coverage != 0) ipw_jw_knum(w, "coverage", f->coverage);
    put_devices(w, b);
    if (f->estimated) {
        ipw_jw_key(w, "estimate");
        ipw_jw_obj(w);
        ipw_jw_kstr(w, "by", f->estimate_by);
        ipw_jw_knum(w, "joules", f->estimate_j);
        ipw_jw_obj_end(w);
    }
    if (bounded(f)) ipw_jw_knum(w, "hi", f->hi_j);
    ipw_schema_kjoules(w, "joules", f);
    if (bounded(f)) ipw_jw_knum(w, "lo", f->lo_j);
    if (b->mean_w && !isnan(*b->mean_w)) ipw_jw_knum(w, "mean_w", *b->mean_w);
    if (b->peak_w && !isnan(*b->peak_w)) ipw_jw_knum(w, "peak_w", *b->peak_w);
    if (f->known || f->provenance != IPW_PROV_NONE) {
        ipw_jw_kstr(w, "provenance", ipw_provenance_name(f->provenance));
    }
    if (f->reason) ipw_jw_kstr(w, "reason", f->reason);
    if (f->known || f->samples != 0) ipw_jw_kint(w, "samples", f->samples);
    if (b->sources) ipw_jw_kraw(w, "sources", b->sources, strlen(b->sources));
    if (f->known && f->split_fraction != 0) ipw_jw_knum(w, "split_fraction", f->split_fraction);
    ipw_jw_obj_end(w);
}

void ipw_schema_put_energy(struct ipw_jw *w, const char *key, const struct ipw_query_trace *q,
                           const struct ipw_figure *energy, const struct ipw_figure *devices,
                           const double *mean_w, const double *peak_w)
{
    ipw_jw_key(w, key);
    ipw_jw_obj(w);
    for (int i = 0; i < IPW_DOMAIN_COUNT; i++) {
        enum ipw_domain d = sorted[i];
        struct beside b = {.mean_w = mean_w ? &mean_w[d] : NULL,
                           .peak_w = peak_w ? &peak_w[d] : NULL,
                           .q = q,
                           .domain = d,
                           .devices = devices};

        ipw_jw_key(w, ipw_domain_name(d));
        put_figure(w, &energy[d], &b);
    }
    ipw_jw_obj_end(w);
}

void ipw_schema_put_query_energy(struct ipw_jw *w, const struct ipw_query_trace *q)
{
    ipw_jw_key(w, "energy");
    ipw_jw_obj(w);
    for (int i = 0; i < IPW_DOMAIN_COUNT; i++) {
        enum ipw_domain d = sorted[i];
        struct beside b = {.mean_w = &q->power_mean_w[d],
                           .sources = q->sources[d],
                           .q = q,
                           .domain = d,
                           .devices = q->device_energy};

        ipw_jw_key(w, ipw_domain_name(d));
        put_figure(w, &q->energy[d], &b);
    }
    ipw_jw_obj_end(w);
}

void ipw_schema_put_remote_domains(struct ipw_jw *w, const struct ipw_query_trace *q)
{
    if (!q->lm_remote) return;
    ipw_jw_key(w, "remote_domains");
    ipw_jw_arr(w);
    for (int i = 0; i < IPW_DOMAIN_COUNT; i++) {
        if (q->lm_domains >> sorted[i] & 1) ipw_jw_str(w, ipw_domain_name(sorted[i]));
    }
    ipw_jw_arr_end(w);
}

void ipw_schema_read_remote_domains(struct ipw_query_trace *q, const struct ipw_json *line)
{
    const struct ipw_json *list = ipw_json_get(line, "remote_domains");

    q->lm_remote = ipw_json_kind(list) == IPW_JSON_ARR;
    for (const struct ipw_json *node = ipw_json_first(list); node; node = ipw_json_next(node)) {
        for (int d = 0; d < IPW_DOMAIN_COUNT; d++) {
            if (!strcmp(ipw_json_str(node, ""), ipw_domain_name((enum ipw_domain)d)))
                q->lm_domains |= 1u << d;
        }
    }
}

static void put_account(struct ipw_jw *w, const struct ipw_query_account *a,
                        const struct ipw_figure *attributed, const struct ipw_query_trace *q,
                        enum ipw_domain domain);

/* Of each device of a domain that has several. */
static void put_device_accounts(struct ipw_jw *w, const struct ipw_query_trace *q,
                                enum ipw_domain domain)
{
    bool any = false;

    for (size_t i = 0; q->device_account && i < q->n_devices; i++) {
        if (q->devices[i].domain != domain) continue;
        if (!any) {
            ipw_jw_key(w, "devices");
            ipw_jw_obj(w);
        }
        any = true;
        ipw_jw_key_any(w, q->devices[i].name, strlen(q->devices[i].name));
        put_account(w, &q->device_account[i], &q->device_energy[i], NULL, domain);
    }
    if (any) ipw_jw_obj_end(w);
}

/* `q`: with its devices' beside it; or NULL. */
static void put_account(struct ipw_jw *w, const struct ipw_query_account *a,
                        const struct ipw_figure *attributed, const struct ipw_query_trace *q,
                        enum ipw_domain domain)
{
    if (!attributed->known) {
        ipw_jw_null(w);
        return;
    }
    ipw_jw_obj(w);
    ipw_jw_knum(w, "attributed_j", attributed->j);
    if (q) put_device_accounts(w, q, domain);
    ipw_jw_knum(w, "exclusive_j", a->exclusive_j);
    ipw_jw_knum(w, "idle_tax_j", a->idle_tax_j);
    ipw_jw_knum(w, "marginal_j", a->marginal_j);
    ipw_jw_knum(w, "waste_j", a->waste_j);
    ipw_jw_obj_end(w);
}

void ipw_schema_put_accounts(struct ipw_jw *w, const struct ipw_query_trace *q)
{
    ipw_jw_key(w, "accounts");
    ipw_jw_obj(w);
    for (int i = 0; i < IPW_DOMAIN_COUNT; i++) {
        enum ipw_domain d = sorted[i];

        ipw_jw_key(w, ipw_domain_name(d));
        put_account(w, &q->account[d], &q->energy[d], q, d);
    }
    ipw_jw_obj_end(w);
}

void ipw_schema_put_metrics(struct ipw_jw *w, const struct ipw_query_trace *q)
{
    ipw_jw_key(w, "metrics");
    ipw_jw_obj(w);
    for (size_t i = 0; i < q->n_metrics; i++) {
        const struct ipw_metric *m = &q->metrics[i];

        ipw_jw_key_any(w, m->name, strlen(m->name));
        ipw_jw_obj(w);
        ipw_jw_knum(w, "avg", m->avg);
        ipw_jw_knum(w, "max", m->max);
        ipw_jw_knum(w, "median", m->median);
        ipw_jw_knum(w, "min", m->min);
        ipw_jw_kint(w, "n", m->n);
        ipw_jw_kstr(w, "unit", m->unit);
        ipw_jw_obj_end(w);
    }
    ipw_jw_obj_end(w);
}

void ipw_schema_put_mbu(struct ipw_jw *w, const struct ipw_query_trace *q)
{
    double max, avg = ipw_query_mbu(q, &max);

    ipw_jw_knum(w, "query_mbu_avg_pct", avg);
    ipw_jw_knum(w, "query_mbu_max_pct", max);
}

/* ---- reading ---- */

static enum ipw_provenance provenance_of(const char *name)
{
    for (int p = IPW_PROV_NONE; p <= IPW_PROV_ESTIMATED; p++) {
        if (name && !strcmp(name, ipw_provenance_name((enum ipw_provenance)p))) {
            return (enum ipw_provenance)p;
        }
    }
    return IPW_PROV_NONE;
}

static struct ipw_figure read_figure(const struct ipw_json *f)
{
    const struct ipw_json *estimate = ipw_json_get(f, "estimate");
    double j = ipw_json_get_num(f, "joules");

    return (struct ipw_figure){
        .estimated = estimate != NULL,
        .estimate_j = ipw_json_num(ipw_json_get(estimate, "joules"), 0),
        .estimate_by = ipw_json_str(ipw_json_get(estimate, "by"), NULL),
        .known = !isnan(j),
        .j = isnan(j) ? 0 : j,
        .provenance = provenance_of(ipw_json_str(ipw_json_get(f, "provenance"), NULL)),
        .coverage = ipw_json_num(ipw_json_get(f, "coverage"), 0),
        .samples = ipw_json_int(ipw_json_get(f, "samples"), 0),
        .reason = ipw_json_str(ipw_json_get(f, "reason"), NULL),
        .lo_j = ipw_json_num(ipw_json_get(f, "lo"), 0),
        .hi_j = ipw_json_num(ipw_json_get(f, "hi"), 0),
        .split_fraction = ipw_json_num(ipw_json_get(f, "split_fraction"), 0),
    };
}

void ipw_schema_read_energy(struct ipw_figure *energy, double *mean_w, double *peak_w,
                            const struct ipw_json *object)
{
    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) {
        const struct ipw_json *f = ipw_json_get(object, ipw_domain_name((enum ipw_domain)d));

        energy[d] = read_figure(f);
        if (mean_w) mean_w[d] = ipw_json_get_num(f, "mean_w");
        if (peak_w) peak_w[d] = ipw_json_get_num(f, "peak_w");
    }
}

static const struct ipw_json *devices_of(const struct ipw_json *energy, enum ipw_domain d)
{
    return ipw_json_get(ipw_json_get(energy, ipw_domain_name(d)), "devices");
}

void ipw_schema_read_device_table(struct ipw_query_trace *q, const struct ipw_json *energy)
{
    size_t cap = 0;

    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) {
        const struct ipw_json *devices = devices_of(energy, (enum ipw_domain)d);

        for (const struct ipw_json *x = ipw_json_first(devices); x; x = ipw_json_next(x)) {
            IPW_GROW(q->devices, cap, q->n_devices + 1);
            q->devices[q->n_devices++] =
                (struct ipw_device){ipw_strdup(ipw_json_key(x)), (enum ipw_domain)d};
        }
    }
}

struct ipw_figure *ipw_schema_read_devices(const struct ipw_query_trace *q,
                                           const struct ipw_json *energy)
{
    struct ipw_figure *figures = q->n_devices ? ipw_calloc(q->n_devices, sizeof *figures) : NULL;

    for (size_t i = 0; i < q->n_devices; i++) {
        const struct ipw_device *device = &q->devices[i];

        figures[i] = read_figure(ipw_json_get(devices_of(energy, device->domain), device->name));
    }
    return figures;
}

static char *printed(const struct ipw_json *node)
{
    struct ipw_buf out = IPW_BUF(IPW_MIB);
    char *text = NULL;

    if (!node) return NULL;
    ipw_json_print(&out, node);
    if (!out.failed) text = ipw_memdup(out.data, out.len);
    ipw_buf_release(&out);
    return text;
}

static struct ipw_query_account read_account(const struct ipw_json *a)
{
    return (struct ipw_query_account){
        .exclusive_j = ipw_json_get_num(a, "exclusive_j"),
        .marginal_j = ipw_json_get_num(a, "marginal_j"),
        .waste_j = ipw_json_get_num(a, "waste_j"),
        .idle_tax_j = ipw_json_get_num(a, "idle_tax_j"),
    };
}

static struct ipw_query_account *no_accounts(size_t n)
{
    struct ipw_query_account *all = ipw_calloc(n, sizeof *all);

    for (size_t i = 0; i < n; i++) all[i] = (struct ipw_query_account){NAN, NAN, NAN, NAN};
    return all;
}

void ipw_schema_read_account(struct ipw_query_trace *q, const struct ipw_json *line)
{
    const struct ipw_json *accounts = ipw_json_get(line, "accounts");
    const struct ipw_json *metrics = ipw_json_get(line, "metrics");

    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) {
        const char *name = ipw_domain_name((enum ipw_domain)d);
        const struct ipw_json *a = ipw_json_get(accounts, name);

        q->account[d] = read_account(a);
        q->sources[d] =
            printed(ipw_json_get(ipw_json_get(ipw_json_get(line, "energy"), name), "sources"));
    }
    for (size_t i = 0; i < q->n_devices; i++) {
        const struct ipw_json *of = devices_of(accounts, q->devices[i].domain);

        if (!of) continue; /* an older line, or no figure of the domain */
        if (!q->device_account) q->device_account = no_accounts(q->n_devices);
        q->device_account[i] = read_account(ipw_json_get(of, q->devices[i].name));
    }
    if (ipw_json_kind(metrics) != IPW_JSON_OBJ) return;
    for (const struct ipw_json *m = ipw_json_first(metrics); m; m = ipw_json_next(m)) {
        IPW_GROW(q->metrics, q->cap_metrics, q->n_metrics + 1);
        q->metrics[q->n_metrics++] = (struct ipw_metric){
            .name = ipw_strdup(ipw_json_key(m)),
            .unit = ipw_strdup(ipw_json_str(ipw_json_get(m, "unit"), "")),
            .avg = ipw_json_get_num(m, "avg"),
            .median = ipw_json_get_num(m, "median"),
            .min = ipw_json_get_num(m, "min"),
            .max = ipw_json_get_num(m, "max"),
            .n = ipw_json_int(ipw_json_get(m, "n"), 0),
        };
    }
}
