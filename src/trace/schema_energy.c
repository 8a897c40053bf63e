/* The energy part of a trace line. */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "trace/channel_stats.h"
#include "trace/schema_priv.h"
#include "trace/spec_rows.h"

/* ---- energy values ---- */

/* The energy values of one window, with optional companions (NULL: none). */
struct figures {
    const struct ipw_query_trace *q;
    const struct ipw_figure *energy, *devices; /* one per domain; one per device of q->devices */
    const struct ipw_figure *whole; /* of the window that this one is part of; NULL: the query's */
    const double *mean_w, *peak_w;
    char *const *sources;
};

static const struct ipw_spec figure[] = {
    KEY("coverage", S | OPT),
    OF("devices", O | EACH | OPT, figure),
    KEY("estimate", O | OPT | OPEN),
    KEY("hi", J | OPT),
    KEY("joules", JU),
    KEY("lo", J | OPT),
    KEY("mean_w", JU),
    KEY("peak_w", JU),
    WORD("provenance", T | OPT, ipw_provenance_words),
    KEY("reason", T | OPT | OPEN),
    KEY("samples", C | OPT),
    KEY("sources", A | OPT | OPEN),
    KEY("split_fraction", S | OPT),
    KEY("u", J | OPT),
    END,
};

static bool bounded(const struct ipw_figure *f)
{
    return (f->known || f->estimated) && (ipw_figure_j(f->lo_j) != 0 || ipw_figure_j(f->hi_j) != 0);
}

static void put_device(struct ipw_jw *w, const struct ipw_figure *f, const struct ipw_figure *sum);

static void put_devices(struct ipw_jw *w, const struct figures *of, enum ipw_domain d)
{
    bool any = false;

    for (size_t i = 0; of->devices && i < of->q->n_devices; i++) {
        const struct ipw_device *device = &of->q->devices[i];

        if (device->domain != d) continue;
        if (!any) {
            ipw_jw_key(w, "devices");
            ipw_jw_obj(w);
        }
        any = true;
        ipw_jw_key_any(w, device->name, strlen(device->name));
        put_device(w, &of->devices[i], &of->energy[d]);
    }
    if (any) ipw_jw_obj_end(w);
}

static void put_known(struct ipw_jw *w, const char *key, const double *watts, enum ipw_domain d)
{
    if (watts && isfinite(watts[d])) ipw_jw_kmicro(w, key, watts[d]);
}

static void put_joules(struct ipw_jw *w, const struct ipw_figure *f)
{
    if (f->estimated) {
        ipw_jw_key(w, "estimate");
        ipw_jw_obj(w);
        ipw_jw_kstr(w, "by", f->estimate_by);
        ipw_jw_kmicro(w, "joules", f->estimate_j);
        ipw_jw_obj_end(w);
    }
    if (bounded(f)) ipw_jw_kmicro(w, "hi", f->hi_j);
    if (f->known) ipw_jw_kmicro(w, "joules", f->j);
    if (bounded(f)) ipw_jw_kmicro(w, "lo", f->lo_j);
}

static bool same_reason(const struct ipw_figure *a, const struct ipw_figure *b)
{
    return a->reason == b->reason || (a->reason && b->reason && !strcmp(a->reason, b->reason));
}

/* What an absent member of a figure means: a known value covers all of its window, has no readings
 * and no split, and was obtained as that of the whole. */
static struct ipw_figure usual(bool known, const struct ipw_figure *whole)
{
    return (struct ipw_figure){.coverage = known ? 1 : 0,
                               .provenance = known && whole ? whole->provenance : IPW_PROV_NONE};
}

/* Writes a figure without the members that are as in `like`.  `beside` NULL: it is a device. */
static void put_figure(struct ipw_jw *w, const struct ipw_figure *f, const struct ipw_figure *like,
                       const struct figures *beside, enum ipw_domain d)
{
    ipw_jw_obj(w);
    if (f->coverage != like->coverage) ipw_jw_knum(w, "coverage", f->coverage);
    if (beside) put_devices(w, beside, d);
    put_joules(w, f);
    if (beside) put_known(w, "mean_w", beside->mean_w, d);
    if (beside) put_known(w, "peak_w", beside->peak_w, d);
    if (f->provenance != like->provenance)
        ipw_jw_kstr(w, "provenance", ipw_provenance_name(f->provenance));
    if (f->reason && !same_reason(f, like)) ipw_jw_kstr(w, "reason", f->reason);
    if (f->samples != like->samples) ipw_jw_kint(w, "samples", f->samples);
    if (beside && beside->sources && beside->sources[d])
        ipw_jw_kraw(w, "sources", beside->sources[d], strlen(beside->sources[d]));
    if (f->split_fraction != like->split_fraction)
        ipw_jw_knum(w, "split_fraction", f->split_fraction);
    if (f->known && f->u_j > 0) ipw_jw_kmicro(w, "u", f->u_j);
    ipw_jw_obj_end(w);
}

static void put_device(struct ipw_jw *w, const struct ipw_figure *f, const struct ipw_figure *sum)
{
    put_figure(w, f, sum, NULL, 0);
}

static void put_domain(struct ipw_jw *w, const struct ipw_spec *s, const void *const *of)
{
    const struct figures *figures = of[0];
    const struct ipw_figure *f = &figures->energy[s->at],
                            like = usual(f->known, figures->whole ? &figures->whole[s->at] : NULL);

    ipw_jw_key(w, s->key);
    put_figure(w, f, &like, figures, (enum ipw_domain)s->at);
}

const struct ipw_spec ipw_spec_energy[] = {DOMAINS(O, put_domain, figure), END};

/* Is nothing known of a part in this domain but what the query's own figure says already? */
static bool told_by_query(const struct ipw_query_trace *q, const struct ipw_figure *f,
                          enum ipw_domain d)
{
    const struct ipw_figure *of = &q->energy[d];

    for (size_t i = 0; i < q->n_devices; i++) {
        if (q->devices[i].domain == d) return false;
    }
    return !f->known && !of->known && !f->estimated && f->coverage == 0 && f->samples == 0 &&
           f->provenance == IPW_PROV_NONE && f->reason && same_reason(f, of);
}

static void put_part_domain(struct ipw_jw *w, const struct ipw_spec *s, const void *const *of)
{
    const struct figures *figures = of[0];

    if (!told_by_query(figures->q, &figures->energy[s->at], (enum ipw_domain)s->at))
        put_domain(w, s, of);
}

const struct ipw_spec ipw_spec_part_energy[] = {DOMAINS(O | OPT, put_part_domain, figure), END};

void ipw_schema_put_energy(struct ipw_jw *w, const char *key, const struct ipw_query_trace *q,
                           const struct ipw_figure *energy, const struct ipw_figure *whole,
                           const struct ipw_figure *devices, const double *mean_w,
                           const double *peak_w)
{
    const struct figures figures = {q, energy, devices, whole, mean_w, peak_w, NULL};

    ipw_jw_key(w, key);
    ipw_spec_write(w, ipw_spec_part_energy, (const void *const[]){&figures});
}

void ipw_schema_put_query_energy(struct ipw_jw *w, const struct ipw_spec *s, const void *const *of)
{
    const struct ipw_query_trace *q = of[0];
    const struct figures figures = {.q = q,
                                    .energy = q->energy,
                                    .devices = q->device_energy,
                                    .mean_w = q->power_mean_w,
                                    .sources = q->sources};

    ipw_jw_key(w, s->key);
    ipw_spec_write(w, ipw_spec_energy, (const void *const[]){&figures});
}

/* ---- the machine of the model ---- */

void ipw_schema_put_remote_domains(struct ipw_jw *w, const struct ipw_spec *s,
                                   const void *const *of)
{
    const struct ipw_query_trace *q = of[0];

    if (!q->lm_remote) return;
    ipw_jw_key(w, s->key);
    ipw_jw_arr(w);
    for (const struct ipw_spec *d = ipw_spec_energy; d->key; d++) {
        if (q->lm_domains >> d->at & 1) ipw_jw_str(w, d->key);
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

void ipw_bounds_write(struct ipw_jw *w, const char *key, struct ipw_bounds b)
{
    if (isnan(b.lo) || isnan(b.hi)) return;
    ipw_jw_key(w, key);
    ipw_jw_obj(w);
    ipw_jw_kmicro(w, "hi", b.hi);
    ipw_jw_kmicro(w, "lo", b.lo);
    if (!isnan(b.u)) ipw_jw_kmicro(w, "u", b.u);
    ipw_jw_obj_end(w);
}

void ipw_bounds_write_domains(struct ipw_jw *w, const struct ipw_bounds *of)
{
    ipw_jw_obj(w);
    for (int i = 0; i < IPW_DOMAIN_COUNT; i++)
        ipw_bounds_write(w, ipw_domain_name(ipw_domains_by_name[i]), of[ipw_domains_by_name[i]]);
    ipw_jw_obj_end(w);
}

/* ---- accounts: the parts of a query's energy ---- */

#define ACCOUNT(member, kinds) HELD(#member, kinds, 0, struct ipw_query_account, member)
#define ATTRIBUTED             HELD("attributed_j", J, 1, struct ipw_figure, j)

static const struct ipw_spec device_account[] = {
    ATTRIBUTED,
    ACCOUNT(exclusive_j, J),
    ACCOUNT(idle_tax_j, JU),
    ACCOUNT(marginal_j, JU),
    ACCOUNT(waste_j, JU),
    END,
};

/* Each device of a domain with several; of: the domain's account and energy value, the trace, the
 * domain. */
static void put_device_accounts(struct ipw_jw *w, const struct ipw_spec *s, const void *const *of)
{
    const struct ipw_query_trace *q = of[2];
    bool any = false;

    for (size_t i = 0; q->device_account && i < q->n_devices; i++) {
        if (q->devices[i].domain != *(const enum ipw_domain *)of[3]) continue;
        if (!any) {
            ipw_jw_key(w, s->key);
            ipw_jw_obj(w);
        }
        any = true;
        if (!q->device_energy[i].known) continue;
        ipw_jw_key_any(w, q->devices[i].name, strlen(q->devices[i].name));
        ipw_spec_write(w, device_account,
                       (const void *const[]){&q->device_account[i], &q->device_energy[i]});
    }
    if (any) ipw_jw_obj_end(w);
}

static const struct ipw_spec account[] = {
    ATTRIBUTED,
    PUT_OF("devices", O | EACH | OPT, put_device_accounts, device_account),
    ACCOUNT(exclusive_j, J),
    ACCOUNT(idle_tax_j, JU),
    ACCOUNT(marginal_j, JU),
    ACCOUNT(waste_j, JU),
    END,
};

static void put_account(struct ipw_jw *w, const struct ipw_spec *s, const void *const *of)
{
    const struct ipw_query_trace *q = of[0];
    enum ipw_domain d = (enum ipw_domain)s->at;

    if (!q->energy[d].known) return;
    ipw_jw_key(w, s->key);
    ipw_spec_write(w, account, (const void *const[]){&q->account[d], &q->energy[d], q, &d});
}

const struct ipw_spec ipw_spec_accounts[] = {DOMAINS(OU, put_account, account), END};

#define METRIC(member, kinds) HELD(#member, kinds, 0, struct ipw_metric, member)
const struct ipw_spec ipw_spec_metric[] = {
    METRIC(avg, N),
    METRIC(max, N),
    METRIC(median, N),
    METRIC(min, N),
    METRIC(n, C),
    METRIC(unit, T | OPEN),
    END,
};

void ipw_schema_put_metrics(struct ipw_jw *w, const struct ipw_spec *s, const void *const *of)
{
    const struct ipw_query_trace *q = of[0];

    ipw_jw_key(w, s->key);
    ipw_jw_obj(w);
    for (size_t i = 0; i < q->n_metrics; i++) {
        ipw_jw_key_any(w, q->metrics[i].name, strlen(q->metrics[i].name));
        ipw_spec_write(w, ipw_spec_metric, (const void *const[]){&q->metrics[i]});
    }
    ipw_jw_obj_end(w);
}

/* ---- reading ---- */

static enum ipw_provenance provenance_of(const char *name)
{
    for (int i = 0; name && ipw_provenance_words[i]; i++) {
        if (!strcmp(name, ipw_provenance_words[i])) return (enum ipw_provenance)(i + 1);
    }
    return IPW_PROV_NONE;
}

/* What has no finite value could not be written again. */
static double number(const struct ipw_json *object, const char *key, double fallback)
{
    double value = ipw_json_get_num(object, key);

    return isnan(value) ? fallback : value;
}

/* What is absent is as in `like`; NULL: as usual in a part of `whole`. */
static struct ipw_figure read_figure(const struct ipw_json *f, const struct ipw_figure *like,
                                     const struct ipw_figure *whole)
{
    const struct ipw_json *estimate = ipw_json_get(f, "estimate");
    const char *provenance = ipw_json_get_str(f, "provenance");
    double j = ipw_json_get_num(f, "joules");
    struct ipw_figure own = usual(!isnan(j), whole);

    if (!like) like = &own;
    return (struct ipw_figure){
        .estimated = estimate != NULL,
        .estimate_j = number(estimate, "joules", 0),
        .estimate_by = ipw_json_str(ipw_json_get(estimate, "by"), NULL),
        .known = !isnan(j),
        .j = isnan(j) ? 0 : j,
        .provenance = provenance ? provenance_of(provenance) : like->provenance,
        .coverage = number(f, "coverage", like->coverage),
        .samples = ipw_json_int(ipw_json_get(f, "samples"), like->samples),
        .reason = ipw_json_str(ipw_json_get(f, "reason"), isnan(j) ? like->reason : NULL),
        .lo_j = number(f, "lo", 0),
        .hi_j = number(f, "hi", 0),
        .split_fraction = number(f, "split_fraction", like->split_fraction),
        .u_j = number(f, "u", 0),
    };
}

void ipw_schema_read_energy(struct ipw_figure *energy, double *mean_w, double *peak_w,
                            const struct ipw_query_loaded *l, const struct ipw_figure *whole,
                            const struct ipw_json *object)
{
    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) {
        const struct ipw_json *f = ipw_json_get(object, ipw_domain_name((enum ipw_domain)d));

        energy[d] = read_figure(f, NULL, whole ? &whole[d] : NULL);
        if (!f && whole && !l->trace.energy[d].known) energy[d].reason = l->trace.energy[d].reason;
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

struct ipw_figure *ipw_schema_read_devices(const struct ipw_query_loaded *l,
                                           const struct ipw_json *object,
                                           const struct ipw_figure *energy)
{
    const struct ipw_query_trace *q = &l->trace;
    struct ipw_figure *figures = q->n_devices ? ipw_calloc(q->n_devices, sizeof *figures) : NULL;

    for (size_t i = 0; i < q->n_devices; i++) {
        const struct ipw_device *device = &q->devices[i];

        figures[i] = read_figure(ipw_json_get(devices_of(object, device->domain), device->name),
                                 &energy[device->domain], NULL);
    }
    return figures;
}

static struct ipw_query_account read_account(const struct ipw_json *object)
{
    struct ipw_query_account a;
    struct ipw_figure attributed; /* read with the energy values */

    ipw_spec_read(object, device_account, (void *const[]){&a, &attributed});
    return a;
}

static struct ipw_query_account *no_accounts(size_t n)
{
    struct ipw_query_account *all = ipw_calloc(n, sizeof *all);

    for (size_t i = 0; i < n; i++) all[i] = (struct ipw_query_account){NAN, NAN, NAN, NAN};
    return all;
}

void ipw_schema_read_account(struct ipw_query_trace *q, const struct ipw_json *energy,
                             const struct ipw_json *line)
{
    const struct ipw_json *accounts = ipw_json_get(line, "accounts");
    const struct ipw_json *metrics = ipw_json_get(line, "metrics");

    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) {
        const char *name = ipw_domain_name((enum ipw_domain)d);
        const struct ipw_json *a = ipw_json_get(accounts, name);

        q->account[d] = read_account(a);
        q->sources[d] = ipw_schema_text(ipw_json_get(ipw_json_get(energy, name), "sources"));
    }
    for (size_t i = 0; i < q->n_devices; i++) {
        const struct ipw_json *of = devices_of(accounts, q->devices[i].domain);

        if (!of) continue; /* the domain has no energy value */
        if (!q->device_account) q->device_account = no_accounts(q->n_devices);
        q->device_account[i] = read_account(ipw_json_get(of, q->devices[i].name));
    }
    if (ipw_json_kind(metrics) != IPW_JSON_OBJ) return;
    for (const struct ipw_json *m = ipw_json_first(metrics); m; m = ipw_json_next(m)) {
        struct ipw_metric *metric;

        IPW_GROW(q->metrics, q->cap_metrics, q->n_metrics + 1);
        metric = &q->metrics[q->n_metrics++];
        ipw_spec_read(m, ipw_spec_metric, (void *const[]){metric});
        metric->name = ipw_strdup(ipw_json_key(m));
        if (!metric->unit) metric->unit = ipw_strdup("");
    }
}
