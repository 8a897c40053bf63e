#include "report/rank.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "trace/rundir.h"
#include "trace/schema.h"

struct entry {
    size_t place; /* in the file */
    double machine, devices, cost;
};

struct list {
    struct entry *entries;
    size_t n, cap;
    enum ipw_rank_by by;
    bool any_machine;
};

int ipw_rank_parse(enum ipw_rank_by *out, const char *text, struct ipw_err *err)
{
    static const char *const words[] = {"energy", "time", "tokens", NULL};
    const char *near;

    *out = IPW_RANK_NOT;
    if (!text) return 0;
    for (int i = 0; words[i]; i++)
        if (strcmp(text, words[i]) == 0) {
            *out = (enum ipw_rank_by)(IPW_RANK_ENERGY + i);
            return 0;
        }
    near = ipw_nearest(text, words);
    return ipw_fail(err, IPW_EINVAL, "--sort: energy, time or tokens, not '%.40s'%s%s%s", text,
                    near ? " (did you mean '" : "", near ? near : "", near ? "'?)" : "");
}

static void take_energy(struct entry *e, const struct ipw_figure *energy)
{
    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) {
        if (!energy[d].known) continue;
        if (d == IPW_DOMAIN_MACHINE)
            e->machine = energy[d].j;
        else
            e->devices = (isnan(e->devices) ? 0 : e->devices) + energy[d].j;
    }
}

static int take(void *ud, struct ipw_query_loaded *query, struct ipw_err *err)
{
    const struct ipw_query_trace *q = &query->trace;
    struct list *list = ud;
    struct entry *e;

    (void)err;
    IPW_GROW(list->entries, list->cap, list->n + 1);
    e = &list->entries[list->n];
    *e = (struct entry){.place = list->n++, .machine = NAN, .devices = NAN, .cost = NAN};
    take_energy(e, q->energy);
    list->any_machine |= !isnan(e->machine);
    if (list->by == IPW_RANK_TIME) e->cost = ipw_ns_to_s(q->end_ns - q->start_ns);
    if (list->by == IPW_RANK_TOKENS && q->input_tokens >= 0 && q->output_tokens >= 0)
        e->cost = (double)(q->input_tokens + q->output_tokens);
    return 0;
}

static int dearest_first(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;

    if (isnan(x->cost) != isnan(y->cost)) return isnan(x->cost) ? 1 : -1;
    if (!isnan(x->cost) && x->cost != y->cost) return x->cost > y->cost ? -1 : 1;
    return (x->place > y->place) - (x->place < y->place);
}

int ipw_rank_queries(struct ipw_ranks *out, const char *run, enum ipw_rank_by by, size_t limit,
                     struct ipw_err *err)
{
    struct list list = {.by = by};
    int rc = ipw_rundir_each_query(run, take, &list, NULL, err);

    *out = (struct ipw_ranks){.n = list.n};
    if (!rc && list.n) {
        for (size_t i = 0; by == IPW_RANK_ENERGY && i < list.n; i++)
            list.entries[i].cost =
                list.any_machine ? list.entries[i].machine : list.entries[i].devices;
        qsort(list.entries, list.n, sizeof *list.entries, dearest_first);
        out->n_ranked = limit && limit < list.n ? limit : list.n;
        out->of = ipw_calloc(list.n, sizeof *out->of);
        for (size_t i = 0; i < list.n; i++)
            out->of[list.entries[i].place] = i < out->n_ranked ? i : IPW_RANK_NONE;
    }
    free(list.entries);
    return rc;
}

void ipw_ranks_release(struct ipw_ranks *ranks)
{
    free(ranks->of);
    *ranks = (struct ipw_ranks){0};
}
