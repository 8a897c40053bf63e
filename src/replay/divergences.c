#include "replay/divergences.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"

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

/* Texts of a saved run are made harmless before they are printed. */
static void print_lines(FILE *to, const char *s)
{
    while (*s) {
        size_t n = strcspn(s, "\n");
        struct ipw_buf clean = IPW_BUF(IPW_MIB);

        ipw_text_printable(&clean, s, n, 4000);
        fprintf(to, "%s\n", ipw_buf_str(&clean));
        ipw_buf_release(&clean);
        s += n + (s[n] == '\n');
    }
}

void ipw_divergences_print(const struct ipw_divergences *d)
{
    for (size_t i = 0; i < d->n; i++) {
        const struct ipw_divergence *one = &d->all[i];
        char turn[40] = "", *all;

        if (one->turn > 0) snprintf(turn, sizeof turn, ", turn %d", one->turn);
        all = ipw_asprintf("query %s (%d)%s: %s", one->id, (int)one->index, turn, one->text);
        print_lines(stderr, all);
        free(all);
    }
    if (d->n_more) ipw_say("and %zu more (replay.json counts them)", d->n_more);
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
