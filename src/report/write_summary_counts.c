/* Counts of queries by outcome and by model; what the queries did. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "json/write.h"
#include "report/write_summary_priv.h"

static int by_outcome(const void *a, const void *b)
{
    return strcmp((*(const struct ipw_summary_outcome *const *)a)->name,
                  (*(const struct ipw_summary_outcome *const *)b)->name);
}

void ipw_summary_put_outcomes(struct ipw_jw *w, const char *key, const struct ipw_summary *s,
                              bool stopped)
{
    const struct ipw_summary_outcome **order = ipw_calloc(s->n_outcomes + 1, sizeof *order);

    for (size_t i = 0; i < s->n_outcomes; i++) order[i] = &s->outcomes[i];
    qsort(order, s->n_outcomes, sizeof *order, by_outcome);
    ipw_jw_key(w, key);
    ipw_jw_obj(w);
    for (size_t i = 0; i < s->n_outcomes; i++) {
        size_t n = stopped ? order[i]->stopped : order[i]->failed;

        if (!n) continue;
        ipw_jw_key_any(w, order[i]->name, strlen(order[i]->name));
        ipw_jw_int(w, (int64_t)n);
    }
    ipw_jw_obj_end(w);
    free(order);
}

static int by_name(const void *a, const void *b)
{
    return strcmp((*(const struct ipw_summary_model *const *)a)->name,
                  (*(const struct ipw_summary_model *const *)b)->name);
}

/* Only if several models answered; `run` has the name of the requested model. */
void ipw_summary_put_models(struct ipw_jw *w, const struct ipw_summary *s)
{
    const struct ipw_summary_model **order = ipw_calloc(s->n_models + 1, sizeof *order);

    for (size_t i = 0; i < s->n_models; i++) order[i] = &s->models[i];
    qsort(order, s->n_models, sizeof *order, by_name);
    ipw_jw_key(w, "models");
    if (s->n_models < 2) {
        ipw_jw_null(w);
    } else {
        ipw_jw_obj(w);
        for (size_t i = 0; i < s->n_models; i++) {
            ipw_jw_key_any(w, order[i]->name, strlen(order[i]->name));
            ipw_jw_obj(w);
            ipw_jw_kint(w, "queries", (int64_t)order[i]->queries);
            ipw_jw_kint(w, "turns", (int64_t)order[i]->turns);
            ipw_jw_obj_end(w);
        }
        ipw_jw_obj_end(w);
    }
    free(order);
}

static int by_part(const void *a, const void *b)
{
    const struct ipw_summary_part *x = *(const struct ipw_summary_part *const *)a;
    const struct ipw_summary_part *y = *(const struct ipw_summary_part *const *)b;

    if (x->kind != y->kind) return x->kind < y->kind ? -1 : 1;
    return x->name ? strcmp(x->name, y->name) : 0;
}

static void put_joules(struct ipw_jw *w, const char *key, const double *j)
{
    ipw_jw_key(w, key);
    ipw_jw_obj(w);
    for (int i = 0; i < IPW_DOMAIN_COUNT; i++)
        ipw_jw_kmicro(w, ipw_domain_name(ipw_domains_by_name[i]), j[ipw_domains_by_name[i]]);
    ipw_jw_obj_end(w);
}

void ipw_summary_put_parts(struct ipw_jw *w, const struct ipw_summary *s)
{
    const struct ipw_summary_part **order = ipw_calloc(s->n_parts + 1, sizeof *order);

    for (size_t i = 0; i < s->n_parts; i++) order[i] = &s->parts[i];
    qsort(order, s->n_parts, sizeof *order, by_part);
    ipw_jw_key(w, "parts");
    ipw_jw_arr(w);
    for (size_t i = 0; i < s->n_parts; i++) {
        ipw_jw_obj(w);
        ipw_jw_key(w, "bounds");
        ipw_bounds_write_domains(w, order[i]->bounds);
        ipw_jw_kint(w, "calls", order[i]->calls);
        put_joules(w, "joules", order[i]->j);
        ipw_jw_kstr(w, "name", order[i]->name);
        ipw_jw_kstr(w, "part", ipw_part_kind_words[order[i]->kind]);
        ipw_jw_kint(w, "queries", (int64_t)order[i]->queries);
        ipw_jw_knum(w, "seconds", order[i]->seconds);
        put_joules(w, "waste_joules", order[i]->waste_j);
        ipw_jw_obj_end(w);
    }
    ipw_jw_arr_end(w);
    free(order);
}

const struct ipw_summary_part *ipw_summary_tool_part(const struct ipw_summary *s, const char *name)
{
    for (size_t i = 0; i < s->n_parts; i++)
        if (s->parts[i].kind == IPW_PART_TOOL && strcmp(s->parts[i].name, name) == 0)
            return &s->parts[i];
    return NULL;
}

static int by_tool(const void *a, const void *b)
{
    return strcmp((*(const struct ipw_tool_sum *const *)a)->name,
                  (*(const struct ipw_tool_sum *const *)b)->name);
}

static int by_outcome_name(const void *a, const void *b)
{
    return strcmp(((const struct ipw_tool_outcome *)a)->name,
                  ((const struct ipw_tool_outcome *)b)->name);
}

static void put_count(struct ipw_jw *w, const char *key, int64_t n, bool known)
{
    if (known)
        ipw_jw_kint(w, key, n);
    else
        ipw_jw_knull(w, key);
}

static void put_outcomes(struct ipw_jw *w, const struct ipw_tool_sum *tool)
{
    size_t n = tool->n_outcomes;
    struct ipw_tool_outcome *order = ipw_calloc(n, sizeof *order);

    memcpy(order, tool->outcomes, n * sizeof *order);
    qsort(order, n, sizeof *order, by_outcome_name);
    ipw_jw_key(w, "outcomes");
    ipw_jw_obj(w);
    for (size_t i = 0; i < n; i++) {
        ipw_jw_key_any(w, order[i].name, strlen(order[i].name));
        ipw_jw_int(w, order[i].calls);
    }
    ipw_jw_obj_end(w);
    free(order);
}

static void put_tool(struct ipw_jw *w, const struct ipw_summary *s, const struct ipw_tool_sum *tool)
{
    static const double unknown[IPW_DOMAIN_COUNT] = {NAN, NAN, NAN, NAN};
    const struct ipw_summary_part *part = ipw_summary_tool_part(s, tool->name);

    ipw_jw_obj(w);
    put_count(w, "argument_bytes", tool->argument_bytes, tool->argument_bytes >= 0);
    ipw_jw_key(w, "bounds");
    ipw_bounds_write_domains(w, tool->bounds);
    ipw_jw_kint(w, "calls", tool->calls);
    ipw_jw_kint(w, "child_calls", tool->child_calls);
    ipw_jw_knum(w, "child_cpu_s", tool->child_calls ? tool->child_cpu_s : (double)NAN);
    put_count(w, "child_peak_bytes", tool->child_peak_bytes, tool->child_peak_bytes > 0);
    put_count(w, "cut_bytes", tool->cut_bytes, tool->cut_bytes >= 0);
    put_joules(w, "idle_tax_joules", part ? part->j : unknown);
    put_joules(w, "joules", tool->j);
    ipw_jw_kstr(w, "name", tool->name);
    put_outcomes(w, tool);
    put_count(w, "result_bytes", tool->result_bytes, tool->result_bytes >= 0);
    ipw_jw_knum(w, "seconds", tool->seconds);
    ipw_jw_obj_end(w);
}

void ipw_summary_put_tools(struct ipw_jw *w, const struct ipw_summary *s)
{
    const struct ipw_tool_sum **order = ipw_calloc(s->tools.n + 1, sizeof *order);

    for (size_t i = 0; i < s->tools.n; i++) order[i] = &s->tools.list[i];
    qsort(order, s->tools.n, sizeof *order, by_tool);
    ipw_jw_key(w, "tools");
    ipw_jw_arr(w);
    for (size_t i = 0; i < s->tools.n; i++) put_tool(w, s, order[i]);
    ipw_jw_arr_end(w);
    free(order);
}
