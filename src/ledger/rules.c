#include "ledger/rules.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "json/write.h"
#include "trace/saved_clock.h"

int ipw_share_parse(enum ipw_share *out, const char *name, struct ipw_err *err)
{
    for (int i = IPW_SHARE_EQUAL; i <= IPW_SHARE_PHASE; i++) {
        if (strcmp(name, ipw_share_name((enum ipw_share)i))) continue;
        *out = (enum ipw_share)i;
        return 0;
    }
    if (!strcmp(name, "tokens"))
        return ipw_fail(err, IPW_EINVAL,
                        "--share tokens is no longer a rule: use phase (the default) or equal");
    return ipw_fail(err, IPW_EINVAL, "--share %.40s: expected equal or phase", name);
}

/* A domain belongs either to the model's machine or to this one, because their energy is not added.
 * If the model's machine is measured, this machine's channels leave the sum.  Local GPUs always
 * leave it. */
void ipw_ledger_rules_sums(struct ipw_ledger_rules *rules, struct ipw_channel *channels, size_t n)
{
    bool remote[IPW_DOMAIN_COUNT] = {false};

    if (!rules->lm_remote) return;
    for (size_t i = 0; i < n; i++) {
        remote[channels[i].domain] |= channels[i].remote && channels[i].in_sum;
    }
    for (size_t i = 0; i < n; i++) {
        enum ipw_domain d = channels[i].domain;

        if (!channels[i].remote && (remote[d] || d == IPW_DOMAIN_GPU)) channels[i].in_sum = false;
    }
    snprintf(rules->reasons[IPW_DOMAIN_GPU], sizeof rules->reasons[0], "%s",
             remote[IPW_DOMAIN_GPU] ? "" : "remote");
}

void ipw_ledger_rules_baseline(const struct ipw_ledger_rules *rules, struct ipw_ledger *ledger)
{
    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) {
        size_t n = rules->n_device_baselines[d];

        if (isnan(rules->baseline_w[d])) continue;
        ipw_ledger_set_baseline(ledger, (enum ipw_domain)d, rules->baseline_w[d]);
        /* Each gets an equal part. */
        if (n != ipw_ledger_devices(ledger, (enum ipw_domain)d)) continue;
        for (size_t i = 0; i < n; i++) {
            ipw_ledger_set_device_baseline(ledger, (enum ipw_domain)d, i,
                                           rules->device_baseline_w[d][i]);
        }
    }
}

struct ipw_ledger *ipw_ledger_rules_open(struct ipw_ledger_rules *rules,
                                         struct ipw_channel *channels, size_t n_channels)
{
    struct ipw_ledger *l;

    ipw_ledger_rules_sums(rules, channels, n_channels);
    l = ipw_ledger_new(channels, n_channels);
    ipw_ledger_set_share(l, rules->share);
    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) {
        if (rules->reasons[d][0]) {
            ipw_ledger_set_reason(l, (enum ipw_domain)d, rules->reasons[d]);
        }
    }
    ipw_ledger_rules_baseline(rules, l);
    return l;
}

static bool has_channel(const struct ipw_source_set *set, enum ipw_domain domain)
{
    for (size_t i = 0; i < set->n; i++) {
        const struct ipw_source *s = set->sources[i];

        for (size_t k = 0; k < s->n_channels; k++) {
            if (s->channels[k].in_sum && s->channels[k].domain == domain) return true;
        }
    }
    return false;
}

void ipw_ledger_rules_take(struct ipw_ledger_rules *out, const struct ipw_ledger *ledger,
                           const struct ipw_source_set *set)
{
    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) {
        struct ipw_ledger_question q = {
            .domain = (enum ipw_domain)d, .device = IPW_LEDGER_ALL, .what = IPW_LEDGER_TOTAL};
        struct ipw_figure none = ipw_ledger_figure(ledger, q);

        if (has_channel(set, (enum ipw_domain)d) || none.reason == out->reasons[d]) continue;
        if (none.reason) snprintf(out->reasons[d], sizeof out->reasons[d], "%s", none.reason);
    }
}

void ipw_ledger_rules_write(struct ipw_buf *out, const struct ipw_ledger_rules *rules)
{
    struct ipw_jw w;

    ipw_jw_init(&w, out);
    ipw_jw_obj(&w);
    ipw_jw_key(&w, "baseline_w");
    ipw_jw_obj(&w);
    for (int i = 0; i < IPW_DOMAIN_COUNT; i++) {
        enum ipw_domain d = ipw_domains_by_name[i];
        double watts = rules->baseline_w[d];

        if (!isnan(watts)) ipw_jw_knum(&w, ipw_domain_name(d), watts);
    }
    ipw_jw_obj_end(&w);
    ipw_jw_key(&w, "clock");
    ipw_saved_clock_write(&w, &rules->clock);
    ipw_jw_key(&w, "device_baseline_w");
    ipw_jw_obj(&w);
    for (int i = 0; i < IPW_DOMAIN_COUNT; i++) {
        enum ipw_domain d = ipw_domains_by_name[i];
        size_t n = rules->n_device_baselines[d];

        if (!n) continue;
        ipw_jw_key(&w, ipw_domain_name(d));
        ipw_jw_arr(&w);
        for (size_t k = 0; k < n; k++) ipw_jw_num(&w, rules->device_baseline_w[d][k]);
        ipw_jw_arr_end(&w);
    }
    ipw_jw_obj_end(&w);
    ipw_jw_kbool(&w, "lm_remote", rules->lm_remote);
    ipw_jw_key(&w, "reasons");
    ipw_jw_obj(&w);
    for (int i = 0; i < IPW_DOMAIN_COUNT; i++) {
        enum ipw_domain d = ipw_domains_by_name[i];
        const char *reason = rules->reasons[d];

        if (reason[0]) ipw_jw_kstr(&w, ipw_domain_name(d), reason);
    }
    ipw_jw_obj_end(&w);
    ipw_jw_kstr(&w, "share", ipw_share_name(rules->share));
    ipw_jw_kstr(&w, "sub_remote", rules->sub_remote[0] ? rules->sub_remote : NULL);
    ipw_jw_obj_end(&w);
}

static void read_devices(struct ipw_ledger_rules *out, enum ipw_domain domain,
                         const struct ipw_json *list)
{
    size_t n = ipw_json_count(list);

    if (n > IPW_RULE_DEVICES) return;
    out->n_device_baselines[domain] = n;
    for (size_t i = 0; i < n; i++)
        out->device_baseline_w[domain][i] = ipw_json_num(ipw_json_at(list, i), NAN);
}

void ipw_ledger_rules_read(struct ipw_ledger_rules *out, const struct ipw_json *data)
{
    const struct ipw_json *reasons = ipw_json_get(data, "reasons");
    const struct ipw_json *baseline = ipw_json_get(data, "baseline_w");
    const struct ipw_json *devices = ipw_json_get(data, "device_baseline_w");

    *out = IPW_LEDGER_RULES_NONE;
    out->clock = ipw_saved_clock_read(ipw_json_get(data, "clock"));
    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) {
        const char *name = ipw_domain_name((enum ipw_domain)d);

        snprintf(out->reasons[d], sizeof out->reasons[d], "%s",
                 ipw_json_str(ipw_json_get(reasons, name), ""));
        out->baseline_w[d] = ipw_json_num(ipw_json_get(baseline, name), NAN);
        read_devices(out, (enum ipw_domain)d, ipw_json_get(devices, name));
    }
    out->lm_remote = ipw_json_bool(ipw_json_get(data, "lm_remote"), false);
    snprintf(out->sub_remote, sizeof out->sub_remote, "%s",
             ipw_json_str(ipw_json_get(data, "sub_remote"), ""));
    ipw_share_parse(&out->share, ipw_json_str(ipw_json_get(data, "share"), "equal"), NULL);
}

/* ---- scopes ---- */

void ipw_ledger_scopes_write(struct ipw_buf *out, const struct ipw_ledger_scope *scopes, size_t n,
                             const struct ipw_channel *channels, size_t n_channels)
{
    struct ipw_jw w;

    ipw_jw_init(&w, out);
    ipw_jw_arr(&w);
    for (size_t i = 0; i < n; i++) {
        ipw_jw_obj(&w);
        ipw_jw_key(&w, "channels");
        ipw_jw_arr(&w);
        for (size_t c = 0; c < n_channels; c++)
            if (scopes[i].channels[c]) ipw_jw_str(&w, channels[c].name);
        ipw_jw_arr_end(&w);
        ipw_jw_kstr(&w, "clock", scopes[i].clock);
        ipw_jw_kint(&w, "clock_error_ns", scopes[i].clock_error_ns);
        ipw_jw_kint(&w, "end_ns", scopes[i].end_ns);
        ipw_jw_kint(&w, "start_ns", scopes[i].start_ns);
        ipw_jw_obj_end(&w);
    }
    ipw_jw_arr_end(&w);
}

static bool *read_channels(const struct ipw_json *names, const struct ipw_channel *channels,
                           size_t n_channels)
{
    bool *has = ipw_calloc(n_channels + 1, sizeof *has);

    for (const struct ipw_json *name = ipw_json_first(names); name; name = ipw_json_next(name))
        for (size_t c = 0; c < n_channels; c++)
            has[c] |= !strcmp(ipw_json_str(name, ""), channels[c].name);
    return has;
}

void ipw_ledger_scopes_read(struct ipw_ledger *ledger, const struct ipw_channel *channels,
                            size_t n_channels, const struct ipw_json *data)
{
    const struct ipw_json *list = ipw_json_get(data, "scopes");
    size_t n = 0;
    struct ipw_ledger_scope *scopes;

    if (!ipw_json_count(list)) return;
    scopes = ipw_calloc(ipw_json_count(list), sizeof *scopes);
    for (const struct ipw_json *s = ipw_json_first(list); s; s = ipw_json_next(s))
        scopes[n++] = (struct ipw_ledger_scope){
            .channels = read_channels(ipw_json_get(s, "channels"), channels, n_channels),
            .start_ns = ipw_json_int(ipw_json_get(s, "start_ns"), 0),
            .end_ns = ipw_json_int(ipw_json_get(s, "end_ns"), 0),
            .clock = ipw_json_str(ipw_json_get(s, "clock"), ""),
            .clock_error_ns = ipw_json_int(ipw_json_get(s, "clock_error_ns"), 0)};
    ipw_ledger_set_scopes(ledger, scopes, n);
    for (size_t i = 0; i < n; i++) free(scopes[i].channels);
    free(scopes);
}
