#include "run/plan.h"

#include <stdlib.h>

#include "base/mem.h"

void ipw_plan_init(struct ipw_plan *p, size_t n_cases, int64_t warmup, int64_t epochs)
{
    *p = (struct ipw_plan){
        .n_cases = n_cases, .n_warmup = (size_t)warmup, .n_epochs = (size_t)epochs};
}

void ipw_plan_release(struct ipw_plan *p)
{
    free(p->done);
    p->done = NULL;
}

size_t ipw_plan_counted(const struct ipw_plan *p)
{
    return p->endless ? p->next : p->n_cases * p->n_epochs;
}

size_t ipw_plan_total(const struct ipw_plan *p) { return p->n_warmup + ipw_plan_counted(p); }

struct ipw_place ipw_plan_place(const struct ipw_plan *p, size_t index)
{
    if (p->endless) return (struct ipw_place){.index = 0};
    if (index < p->n_warmup) return (struct ipw_place){.index = index % p->n_cases, .warmup = true};
    index -= p->n_warmup;
    return (struct ipw_place){.index = index % p->n_cases, .epoch = (int)(index / p->n_cases)};
}

bool ipw_plan_more(struct ipw_plan *p)
{
    if (p->endless) return true;
    while (p->next < ipw_plan_total(p) && p->done && p->done[p->next]) p->next++;
    return p->next < ipw_plan_total(p);
}

void ipw_plan_resume(struct ipw_plan *p)
{
    p->done = ipw_calloc(ipw_plan_total(p) + 1, sizeof *p->done);
}

bool ipw_plan_mark(struct ipw_plan *p, size_t index_of_case, int epoch)
{
    bool *done = &p->done[p->n_warmup + (size_t)epoch * p->n_cases + index_of_case];
    bool before = *done;

    *done = true;
    return !before;
}

void ipw_plan_skip_warmup(struct ipw_plan *p)
{
    for (size_t i = 0; i < p->n_warmup; i++) p->done[i] = true;
}
