#include "audit/validate_power.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* The values that a domain may have, given a counter of its sum. */
enum allowed { ANY_FIGURE, NOT_ZERO, NO_FIGURE };

struct ipw_still { /* a sensor that is not believed in a session */
    int segment;
    enum ipw_domain domain;
    enum allowed what;
    char name[64], words[120];
};

void ipw_still_row(struct ipw_still_list *l, const struct ipw_power_reader *p)
{
    const struct ipw_power_source *s = &p->sources[p->source];
    struct ipw_sampler_row row = {.source = p->source,
                                  .first_channel = s->first,
                                  .n = s->n,
                                  .t_ns = p->t_ns,
                                  .values = p->values};

    ipw_trust_row(l->trust, &row);
}

/* A dead counter may have been replaced by its device's gauge (values above 0), also while the
 * device slept (0).  Whether a machine is less than its parts is judged by the run alone: joined
 * runs have channels of several machines. */
static enum allowed allows(const struct ipw_trust_verdict *v)
{
    switch (v->doubt) {
    case IPW_DOUBT_FROZEN: return v->slept ? ANY_FIGURE : NOT_ZERO;
    case IPW_DOUBT_STUCK: return v->slept ? ANY_FIGURE : NO_FIGURE;
    case IPW_DOUBT_LEAST:
    case IPW_DOUBT_GAUGE: return NO_FIGURE;
    default: return ANY_FIGURE;
    }
}

void ipw_still_begin(struct ipw_still_list *l, const struct ipw_power_reader *p)
{
    ipw_trust_free(l->trust);
    l->trust = ipw_trust_new(p->channels, p->n_channels);
}

/* Keeps the channels that leave their domain without a value in this session. */
void ipw_still_end(struct ipw_still_list *l, const struct ipw_power_reader *p)
{
    for (size_t i = 0; i < p->n_channels; i++) {
        struct ipw_trust_verdict v = ipw_trust_verdict(l->trust, i);
        enum allowed what = p->channels[i].in_sum ? allows(&v) : ANY_FIGURE;

        if (what == ANY_FIGURE) continue;
        IPW_GROW(l->items, l->cap, l->n + 1);
        l->items[l->n] = (struct ipw_still){
            .segment = p->segment, .domain = p->channels[i].domain, .what = what};
        snprintf(l->items[l->n].name, sizeof l->items[l->n].name, "%s", p->channels[i].name);
        snprintf(l->items[l->n].words, sizeof l->items[l->n].words, "%s", v.words);
        l->n++;
    }
}

/* No figure rests on a sensor that is not believed. */
int ipw_still_check(const struct ipw_still_list *l, const struct ipw_json *query,
                    struct ipw_err *err)
{
    const struct ipw_json *energy = ipw_json_get(query, "energy");
    int64_t segment = ipw_json_int(ipw_json_get(query, "segment"), 0);

    for (size_t i = 0; i < l->n; i++) {
        const struct ipw_still *s = &l->items[i];
        const char *domain = ipw_domain_name(s->domain);
        double joules = ipw_json_num(ipw_json_get(ipw_json_get(energy, domain), "joules"), NAN);

        if (s->segment != segment || isnan(joules)) continue;
        if (s->what == NOT_ZERO && joules > 0) continue;
        return ipw_fail(err, IPW_EPARSE, "energy.%s.joules: %.12g, but by power.jsonl '%s' %s",
                        domain, joules, s->name, s->words);
    }
    return 0;
}

void ipw_still_release(struct ipw_still_list *l)
{
    free(l->items);
    ipw_trust_free(l->trust);
    *l = (struct ipw_still_list){0};
}
