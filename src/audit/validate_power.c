#include "audit/validate_power.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"

#define STILL_NS IPW_NS_PER_S /* a working counter has moved by then */
enum { STILL_READS = 5 };

/* The values that a domain may have, given a counter of its sum. */
enum allowed { ANY_FIGURE, NOT_ZERO, NO_FIGURE };

struct ipw_still { /* a counter that never moved in a session */
    int segment;
    enum ipw_domain domain;
    enum allowed what;
    char name[64];
};

/* The readings of a channel in a session. */
struct ipw_channel_seen {
    int64_t value, least, first_ns, last_ns, reads;
    bool moved;
};

void ipw_still_row(struct ipw_still_list *l, const struct ipw_power_reader *p)
{
    const struct ipw_power_source *s = &p->sources[p->source];

    for (size_t i = 0; i < s->n; i++) {
        struct ipw_channel_seen *c = &l->seen[s->first + i];
        int64_t value = p->values[i];

        if (value == IPW_NO_VALUE) continue;
        if (!c->reads++) *c = (struct ipw_channel_seen){value, value, p->t_ns, p->t_ns, 1, false};
        c->moved |= value != c->value;
        c->value = value;
        if (value < c->least) c->least = value;
        c->last_ns = p->t_ns;
    }
}

/* A counter that never moved measures nothing.  A gauge of its device may replace it (values above
 * 0), or say that the device sleeps (0 W, which only a suspended one has). */
static enum allowed allows(const struct ipw_power_reader *p, const struct ipw_channel_seen *seen,
                           size_t source, size_t channel)
{
    const struct ipw_power_source *s = &p->sources[source];
    const struct ipw_channel *c = &p->channels[channel];
    enum allowed found = NO_FIGURE;

    if (c->kind != IPW_CHANNEL_COUNTER || !c->in_sum || seen[channel].moved ||
        seen[channel].reads < STILL_READS ||
        seen[channel].last_ns - seen[channel].first_ns < STILL_NS)
        return ANY_FIGURE;
    for (size_t i = s->first; i < s->first + s->n; i++) {
        const struct ipw_channel *g = &p->channels[i];

        if (g->kind != IPW_CHANNEL_GAUGE || g->domain != c->domain || !g->device[0] ||
            strcmp(g->device, c->device) || !seen[i].reads)
            continue;
        if (seen[i].least == 0) return ANY_FIGURE;
        found = NOT_ZERO;
    }
    return found;
}

void ipw_still_begin(struct ipw_still_list *l, const struct ipw_power_reader *p)
{
    free(l->seen);
    l->seen = ipw_calloc(p->n_channels + 1, sizeof *l->seen);
}

/* Keeps the channels that leave their domain without a value in this session. */
void ipw_still_end(struct ipw_still_list *l, const struct ipw_power_reader *p)
{
    for (size_t k = 0; k < p->n_sources; k++) {
        for (size_t i = p->sources[k].first; i < p->sources[k].first + p->sources[k].n; i++) {
            enum allowed what = allows(p, l->seen, k, i);

            if (what == ANY_FIGURE) continue;
            IPW_GROW(l->items, l->cap, l->n + 1);
            l->items[l->n] = (struct ipw_still){
                .segment = p->segment, .domain = p->channels[i].domain, .what = what};
            snprintf(l->items[l->n].name, sizeof l->items[l->n].name, "%s", p->channels[i].name);
            l->n++;
        }
    }
}

/* No figure rests on a counter that never moved. */
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
        return ipw_fail(err, IPW_EPARSE,
                        "energy.%s.joules: %.12g, but the readings of '%s' in power.jsonl never "
                        "change: it is not known",
                        domain, joules, s->name);
    }
    return 0;
}

void ipw_still_release(struct ipw_still_list *l)
{
    free(l->items);
    free(l->seen);
    *l = (struct ipw_still_list){0};
}
