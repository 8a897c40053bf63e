#include "ledger/power_steps.h"

#include <stdlib.h>

#include "base/mem.h"

void ipw_power_steps_add(struct ipw_power_steps *s, double w, double seconds)
{
    IPW_GROW(s->all, s->cap, s->n + 1);
    s->all[s->n++] = (struct ipw_power_step){w, seconds};
    s->seconds += seconds;
}

static int by_power(const void *a, const void *b)
{
    const struct ipw_power_step *x = a, *y = b;

    return x->w < y->w ? -1 : x->w > y->w;
}

double ipw_power_steps_median(struct ipw_power_steps *s)
{
    double upto = 0;

    qsort(s->all, s->n, sizeof *s->all, by_power);
    for (size_t i = 0; i < s->n; i++) {
        upto += s->all[i].seconds;
        if (upto > s->seconds / 2) return s->all[i].w;
        if (upto == s->seconds / 2 && i + 1 < s->n) return (s->all[i].w + s->all[i + 1].w) / 2;
    }
    return s->all[s->n - 1].w;
}

void ipw_power_steps_release(struct ipw_power_steps *s)
{
    free(s->all);
    *s = (struct ipw_power_steps){0};
}
