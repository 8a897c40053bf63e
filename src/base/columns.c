#include "base/columns.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

void ipw_columns_init(struct ipw_columns *c, size_t width)
{
    *c = (struct ipw_columns){.width = width, .of = ipw_calloc(width, sizeof *c->of)};
}

void ipw_columns_release(struct ipw_columns *c)
{
    for (size_t k = 0; k < c->width; k++) free(c->of[k].values);
    free(c->of);
    *c = (struct ipw_columns){0};
}

void ipw_columns_add(struct ipw_columns *c, const double *row)
{
    for (size_t k = 0; k < c->width; k++) {
        struct ipw_column *of = &c->of[k];
        size_t known;

        if (!c->n) of->first = row[k];
        /* By their bytes: NAN is the same as NAN, and -0 is not 0. */
        if (!of->values && !memcmp(&of->first, &row[k], sizeof row[k])) continue;
        known = of->values ? c->n : 0;
        IPW_GROW(of->values, of->cap, c->n + 1);
        for (size_t i = known; i < c->n; i++) of->values[i] = of->first;
        of->values[c->n] = row[k];
    }
    c->n++;
}
