#include "replay/divergences.h"

#include <stdlib.h>

#include "base/mem.h"

enum { MOST = 20 };

void ipw_divergences_add(struct ipw_divergences *d, const char *id, int32_t index, int turn,
                         const char *text)
{
    if (d->n == MOST) {
        d->n_more++;
        return;
    }
    IPW_GROW(d->all, d->cap, d->n + 1);
    d->all[d->n++] = (struct ipw_divergence){
        .id = ipw_strdup(id), .text = ipw_strdup(text), .index = index, .turn = turn};
}

void ipw_divergences_write(struct ipw_jw *w, const struct ipw_divergences *d)
{
    ipw_jw_key(w, "divergences");
    ipw_jw_arr(w);
    for (size_t i = 0; i < d->n; i++) {
        const struct ipw_divergence *one = &d->all[i];

        ipw_jw_obj(w);
        ipw_jw_kstr(w, "query_id", one->id);
        ipw_jw_kint(w, "query_index", one->index);
        ipw_jw_kstr(w, "text", one->text);
        ipw_jw_kcount(w, "turn", one->turn > 0 ? one->turn : -1);
        ipw_jw_obj_end(w);
    }
    ipw_jw_arr_end(w);
    ipw_jw_kint(w, "divergences_left_out", (int64_t)d->n_more);
}

void ipw_divergences_release(struct ipw_divergences *d)
{
    for (size_t i = 0; i < d->n; i++) {
        free(d->all[i].id);
        free(d->all[i].text);
    }
    free(d->all);
    *d = (struct ipw_divergences){0};
}
