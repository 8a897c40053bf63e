/* The parts of a query (struct ipw_query_part): the table, its writer and its reader. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "trace/schema_priv.h"
#include "trace/spec_rows.h"

/* Known joules of each domain; `of`: an array of IPW_DOMAIN_COUNT. */
static void put_joules(struct ipw_jw *w, const struct ipw_spec *s, const void *const *of)
{
    const double *j = of[0];

    if (isfinite(j[s->at])) ipw_jw_kmicro(w, s->key, j[s->at]);
}

static const struct ipw_spec joules[] = {DOMAINS(JU, put_joules, NULL), END};

static void put_part_joules(struct ipw_jw *w, const struct ipw_spec *s, const void *const *of)
{
    const struct ipw_query_part *part = of[0];

    ipw_jw_key(w, s->key);
    ipw_spec_write(w, joules, (const void *const[]){part->j});
}

static void put_part_bounds(struct ipw_jw *w, const struct ipw_spec *s, const void *const *of)
{
    const struct ipw_query_part *part = of[0];

    ipw_jw_key(w, s->key);
    ipw_bounds_write_domains(w, part->bounds);
}

/* Absent: nothing of the part was wasted, or it is not known. */
static void put_part_waste(struct ipw_jw *w, const struct ipw_spec *s, const void *const *of)
{
    const struct ipw_query_part *part = of[0];
    bool any = false;

    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) any |= ipw_figure_j(part->waste_j[d]) > 0;
    if (!any) return;
    ipw_jw_key(w, s->key);
    ipw_spec_write(w, joules, (const void *const[]){part->waste_j});
}

/* clang-format off */
#define PART(name, kinds, member) HELD(name, kinds, 0, struct ipw_query_part, member)
const struct ipw_spec ipw_spec_part[] = {
    PUT_OF("bounds", O | OPT, put_part_bounds, NULL),
    PART("calls", C, calls),
    PUT_OF("joules", O, put_part_joules, joules),
    PART("name", T | OPT | OPEN, name),
    {NAME("part"), .kind = T, .words = ipw_part_kind_words, .hold = IPW_HOLD_WORD,
     .at = offsetof(struct ipw_query_part, kind)},
    PART("seconds", S, seconds),
    PUT_OF("waste_joules", O | OPT, put_part_waste, joules),
    END,
};
/* clang-format on */

void ipw_schema_put_parts(struct ipw_jw *w, const struct ipw_spec *s, const void *const *of)
{
    const struct ipw_query_trace *q = of[0];

    if (!q->n_parts) return;
    ipw_jw_key(w, s->key);
    ipw_jw_arr(w);
    for (size_t i = 0; i < q->n_parts; i++)
        ipw_spec_write(w, s->of, (const void *const[]){&q->parts[i]});
    ipw_jw_arr_end(w);
}

static void read_joules(double *out, const struct ipw_json *object, double otherwise)
{
    for (int d = 0; d < IPW_DOMAIN_COUNT; d++)
        out[d] = object ? ipw_json_get_num(object, ipw_domain_name((enum ipw_domain)d)) : otherwise;
}

static void read_bounds(struct ipw_bounds *out, const struct ipw_json *object)
{
    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) {
        const struct ipw_json *b = ipw_json_get(object, ipw_domain_name((enum ipw_domain)d));

        out[d] = (struct ipw_bounds){ipw_json_get_num(b, "lo"), ipw_json_get_num(b, "hi"),
                                     ipw_json_get_num(b, "u")};
    }
}

void ipw_schema_read_parts(struct ipw_query_trace *q, const struct ipw_json *line)
{
    const struct ipw_json *parts = ipw_json_get(line, "parts");
    size_t cap = 0;

    for (const struct ipw_json *p = ipw_json_first(parts); p; p = ipw_json_next(p)) {
        const char *word = ipw_json_str(ipw_json_get(p, "part"), "");
        struct ipw_query_part *part;
        int kind = 0;

        while (ipw_part_kind_words[kind] && strcmp(ipw_part_kind_words[kind], word)) kind++;
        if (!ipw_part_kind_words[kind]) continue; /* of a later version */
        IPW_GROW(q->parts, cap, q->n_parts + 1);
        part = &q->parts[q->n_parts++];
        *part = (struct ipw_query_part){.kind = (enum ipw_part_kind)kind};
        ipw_spec_read(p, ipw_spec_part, (void *const[]){part});
        read_joules(part->j, ipw_json_get(p, "joules"), NAN);
        read_bounds(part->bounds, ipw_json_get(p, "bounds"));
        read_joules(part->waste_j, ipw_json_get(p, "waste_joules"), 0);
        for (int d = 0; d < IPW_DOMAIN_COUNT; d++)
            if (isnan(part->j[d])) part->waste_j[d] = NAN;
    }
}
