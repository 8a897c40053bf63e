#include "app/doubts.h"

#include <string.h>

#include "energy/belief.h"
#include "json/json.h"

/* The domain whose sum has the channel; IPW_DOMAIN_COUNT: no domain. */
static int domain_of(const struct ipw_json *hardware, const char *channel)
{
    const struct ipw_json *channels = ipw_json_get(hardware, "channels");

    for (const struct ipw_json *c = ipw_json_first(channels); c; c = ipw_json_next(c)) {
        const char *domain = ipw_json_str(ipw_json_get(c, "domain"), "");

        if (strcmp(ipw_json_str(ipw_json_get(c, "name"), ""), channel)) continue;
        if (!ipw_json_bool(ipw_json_get(c, "in_sum"), false)) return IPW_DOMAIN_COUNT;
        for (int d = 0; d < IPW_DOMAIN_COUNT; d++)
            if (!strcmp(domain, ipw_domain_name((enum ipw_domain)d))) return d;
    }
    return IPW_DOMAIN_COUNT;
}

static void look(struct ipw_doubts *d, const struct ipw_json *hardware)
{
    const struct ipw_json *tests = ipw_json_get(hardware, "self_test");

    for (const struct ipw_json *t = ipw_json_first(tests); t; t = ipw_json_next(t)) {
        int domain = domain_of(hardware, ipw_json_str(ipw_json_get(t, "channel"), ""));

        if (domain < IPW_DOMAIN_COUNT &&
            ipw_belief_saved(ipw_json_str(ipw_json_get(t, "state"), ""),
                             ipw_json_bool(ipw_json_get(t, "frozen"), false)) != IPW_DOUBT_NONE)
            d->stuck[domain] = true;
    }
}

void ipw_doubts_load(struct ipw_doubts *d, const char *manifest, size_t n)
{
    struct ipw_json *doc = NULL;

    *d = (struct ipw_doubts){0};
    if (!ipw_json_parse(&doc, manifest, n, NULL, NULL)) look(d, ipw_json_get(doc, "hardware"));
    ipw_json_free(doc);
}

static void take_back(const struct ipw_doubts *d, struct ipw_figure *figures)
{
    for (int i = 0; i < IPW_DOMAIN_COUNT; i++)
        if (d->stuck[i] && figures[i].known && figures[i].j <= 0)
            figures[i] = (struct ipw_figure){.provenance = IPW_PROV_NONE, .reason = "stuck"};
}

void ipw_doubts_apply(const struct ipw_doubts *d, struct ipw_query_trace *trace)
{
    take_back(d, trace->energy);
    for (size_t i = 0; i < trace->n_turns; i++)
        if (trace->turns[i].energy) take_back(d, trace->turns[i].energy);
}
