#include "energy/channel_json.h"

#include <stdio.h>
#include <string.h>

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
