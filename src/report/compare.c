#include "report/compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "json/json.h"

/* ---- the two runs ---- */

static void copy_energy(struct ipw_figure *to, const struct ipw_figure *from)
{
    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) {
        to[d] = from[d];
        to[d].reason = NULL;
    }
}

void ipw_compare_add(struct ipw_compare_run *run, const struct ipw_query_loaded *loaded)
{
    const struct ipw_query_trace *t = &loaded->trace;
    struct ipw_compare_query *q;

    IPW_GROW(run->queries, run->cap, run->n + 1);
    q = &run->queries[run->n++];
    *q = (struct ipw_compare_query){.id = ipw_strdup(t->id),
                                    .epoch = loaded->details.epoch,
                                    .index = t->index,
                                    .resolved = loaded->details.is_resolved,
                                    .seconds = ipw_ns_to_s(t->end_ns - t->start_ns),
                                    .input_tokens = t->input_tokens,
                                    .output_tokens = t->output_tokens,
                                    .n_turns = t->n_turns};
    copy_energy(q->energy, t->energy);
    q->turns = ipw_calloc(t->n_turns + 1, sizeof *q->turns);
    for (size_t i = 0; i < t->n_turns; i++) {
        const struct ipw_turn *turn = &t->turns[i];

        copy_energy(q->turns[i].energy, turn->energy);
        q->turns[i].seconds = ipw_ns_to_s(turn->end_ns - turn->start_ns);
        q->turns[i].input_tokens = turn->input_tokens;
        q->turns[i].output_tokens = turn->output_tokens;
    }
    run->not_lm |= ~ipw_turn_lm_domains(t);
}

void ipw_compare_release(struct ipw_compare_run *run)
{
    for (size_t i = 0; i < run->n; i++) {
        free(run->queries[i].id);
        free(run->queries[i].turns);
    }
    for (int i = 0; i < IPW_COMPARE_SETTINGS; i++) {
        free(run->settings[i]);
        free(run->versions[i]);
    }
    free(run->queries);
    *run = (struct ipw_compare_run){0};
}

/* ---- configuration ---- */

void ipw_compare_manifest(struct ipw_compare_run *run, const char *json, size_t n)
{
    static const struct {
        const char *key, *version;
    } keys[IPW_COMPARE_SETTINGS] = {
        [IPW_COMPARE_AGENT] = {"agent", "agent_sha256"},
        [IPW_COMPARE_MODEL] = {"model", NULL},
        [IPW_COMPARE_DATASET] = {"dataset", "dataset_sha256"},
        [IPW_COMPARE_CONCURRENCY] = {"concurrency", NULL},
    };
    struct ipw_json *doc = NULL;
    const struct ipw_json *config;

    if (ipw_json_parse(&doc, json, n, NULL, NULL)) return;
    config = ipw_json_get(doc, "config");
    for (int i = 0; i < IPW_COMPARE_SETTINGS; i++) {
        const struct ipw_json *value = ipw_json_get(config, keys[i].key);

        if (ipw_json_kind(value) == IPW_JSON_INT)
            run->settings[i] = ipw_asprintf("%lld", (long long)ipw_json_int(value, 0));
        else
            run->settings[i] = ipw_strdup(ipw_json_str(value, NULL));
        if (keys[i].version)
            run->versions[i] =
                ipw_strdup(ipw_json_str(ipw_json_get(config, keys[i].version), NULL));
    }
    ipw_json_free(doc);
}

static bool differ(const char *a, const char *b) { return a && b && strcmp(a, b) != 0; }

bool ipw_compare_differ(const struct ipw_compare *c, int i, bool *version)
{
    const struct ipw_compare_run *a = c->runs[0], *b = c->runs[1];
    bool name = differ(a->settings[i], b->settings[i]);

    *version = !name && differ(a->versions[i], b->versions[i]);
    return name || *version;
}

/* ---- pairs ---- */

static int by_name(const struct ipw_compare_query *x, const struct ipw_compare_query *y)
{
    int order = strcmp(x->id, y->id);

    return order ? order : (x->nth > y->nth) - (x->nth < y->nth);
}

static int by_place(const void *a, const void *b)
{
    const struct ipw_compare_query *x = a, *y = b;
    int order = strcmp(x->id, y->id);

    if (!order) order = (x->epoch > y->epoch) - (x->epoch < y->epoch);
    return order ? order : (x->index > y->index) - (x->index < y->index);
}

static void number(struct ipw_compare_run *run)
{
    if (run->n) qsort(run->queries, run->n, sizeof *run->queries, by_place);
    for (size_t i = 1; i < run->n; i++)
        if (strcmp(run->queries[i].id, run->queries[i - 1].id) == 0)
            run->queries[i].nth = run->queries[i - 1].nth + 1;
}

static void pair(struct ipw_compare *c, const struct ipw_compare_run *a,
                 const struct ipw_compare_run *b)
{
    size_t i = 0, k = 0;

    for (int side = 0; side < 2; side++)
        c->pairs[side] = ipw_calloc(a->n + b->n + 1, sizeof *c->pairs[side]);
    while (i < a->n && k < b->n) {
        int order = by_name(&a->queries[i], &b->queries[k]);

        if (order == 0) {
            size_t x = a->queries[i].n_turns, y = b->queries[k].n_turns;

            c->n_turns += x < y ? x : y;
            c->pairs[0][c->n] = &a->queries[i++];
            c->pairs[1][c->n++] = &b->queries[k++];
        } else if (order < 0) {
            i++;
        } else {
            k++;
        }
    }
    c->only[0] = a->n - c->n;
    c->only[1] = b->n - c->n;
}

/* The machine's meter if both runs have it; else the devices that both runs measured.  As for one
 * run (ipw_summary_basis), never memory alone, and no domain that is 0 J throughout. */
static unsigned shared_basis(const struct ipw_compare *c)
{
    unsigned known[2] = {0, 0}, both;

    for (int side = 0; side < 2; side++) {
        for (size_t i = 0; i < c->n; i++) {
            for (unsigned d = 0; d < IPW_DOMAIN_COUNT; d++) {
                const struct ipw_figure *f = &c->pairs[side][i]->energy[d];

                known[side] |= (unsigned)(f->known && f->j > 0) << d;
            }
        }
    }
    both = known[0] & known[1] & ~c->runs[0]->not_lm & ~c->runs[1]->not_lm;
    if (both >> IPW_DOMAIN_MACHINE & 1) return 1u << IPW_DOMAIN_MACHINE;
    return both & (1u << IPW_DOMAIN_GPU | 1u << IPW_DOMAIN_CPU) ? both : 0;
}

double ipw_compare_joules(const struct ipw_figure *energy, unsigned basis, double *lo, double *hi)
{
    double sum = basis ? 0 : NAN;

    *lo = *hi = sum;
    for (unsigned d = 0; d < IPW_DOMAIN_COUNT; d++) {
        const struct ipw_figure *f = &energy[d];
        bool bounded = f->known && (f->lo_j != 0 || f->hi_j != 0);

        if (!(basis >> d & 1)) continue;
        sum += f->known ? f->j : (double)NAN;
        *lo += bounded ? f->lo_j : (double)NAN;
        *hi += bounded ? f->hi_j : (double)NAN;
    }
    return sum;
}

/* ---- one metric ---- */

struct value {
    double x, lo, hi;
};

static double count(int64_t n) { return n < 0 ? (double)NAN : (double)n; }

static struct value joules(const struct ipw_figure *energy, unsigned basis)
{
    struct value v;

    v.x = ipw_compare_joules(energy, basis, &v.lo, &v.hi);
    return v;
}

/* Joules per token, without bounds: the joules have the bounds. */
static struct value by_tokens(const struct ipw_compare_query *q, bool input, unsigned basis)
{
    double lo, hi, j = ipw_compare_joules(q->energy, basis, &lo, &hi);
    double n = count(q->output_tokens) + (input ? count(q->input_tokens) : 0);

    return (struct value){n > 0 ? j / n : NAN, NAN, NAN};
}

static struct value of_query(const struct ipw_compare_query *q, int metric, unsigned basis)
{
    struct value v = {NAN, NAN, NAN};

    switch (metric) {
    case IPW_COMPARE_ACCURACY: v.x = count(q->resolved); break;
    case IPW_COMPARE_JOULES: return joules(q->energy, basis);
    case IPW_COMPARE_GPU_J: return joules(q->energy, 1u << IPW_DOMAIN_GPU);
    case IPW_COMPARE_CPU_J: return joules(q->energy, 1u << IPW_DOMAIN_CPU);
    case IPW_COMPARE_DRAM_J: return joules(q->energy, 1u << IPW_DOMAIN_DRAM);
    case IPW_COMPARE_MACHINE_J: return joules(q->energy, 1u << IPW_DOMAIN_MACHINE);
    case IPW_COMPARE_OUTPUT_J: return by_tokens(q, false, basis);
    case IPW_COMPARE_TOKEN_J: return by_tokens(q, true, basis);
    case IPW_COMPARE_SECONDS: v.x = q->seconds; break;
    case IPW_COMPARE_INPUT: v.x = count(q->input_tokens); break;
    case IPW_COMPARE_OUTPUT: v.x = count(q->output_tokens); break;
    case IPW_COMPARE_TURNS: v.x = (double)q->n_turns; break;
    default: break;
    }
    return v;
}

static struct value of_turn(const struct ipw_compare_turn *t, int metric, unsigned basis)
{
    struct value v = {NAN, NAN, NAN};

    if (metric == IPW_COMPARE_TURN_J) return joules(t->energy, basis);
    v.x = metric == IPW_COMPARE_TURN_S ? t->seconds : count(t->output_tokens);
    return v;
}

struct sums {
    size_t n;
    double a, b, a_lo, a_hi, b_lo, b_hi;
};

static void add(struct sums *s, struct value a, struct value b)
{
    if (isnan(a.x) || isnan(b.x)) return;
    s->n++;
    s->a += a.x;
    s->b += b.x;
    s->a_lo += a.lo;
    s->a_hi += a.hi;
    s->b_lo += b.lo;
    s->b_hi += b.hi;
}

static void add_pair(struct sums *s, const struct ipw_compare *c, size_t i, int metric)
{
    const struct ipw_compare_query *a = c->pairs[0][i], *b = c->pairs[1][i];

    if (metric < IPW_COMPARE_TURN_J) {
        add(s, of_query(a, metric, c->basis), of_query(b, metric, c->basis));
        return;
    }
    for (size_t k = 0; k < a->n_turns && k < b->n_turns; k++)
        add(s, of_turn(&a->turns[k], metric, c->basis), of_turn(&b->turns[k], metric, c->basis));
}

static const char *verdict(const struct ipw_interval *d)
{
    if (!d->n) return "unknown";
    if (d->n < 3) return "too_few";
    if (d->min == 0 && d->max == 0) return "same";
    if (isnan(d->lo)) return "unknown";
    return d->lo > 0 ? "higher" : d->hi < 0 ? "lower" : "not_shown";
}

/* Adds a task's means, so that each task counts once, regardless of its number of pairs. */
static void add_task(struct sums *all, const struct sums *task)
{
    double n = (double)task->n;

    all->n++;
    all->a += task->a / n;
    all->b += task->b / n;
    all->a_lo += task->a_lo / n;
    all->a_hi += task->a_hi / n;
    all->b_lo += task->b_lo / n;
    all->b_hi += task->b_hi / n;
}

static double within(double x) { return isnan(x) ? x : fmin(1, fmax(-1, x)); }

static void make_row(struct ipw_compare_row *row, const struct ipw_compare *c, int metric)
{
    double *differences = ipw_calloc(c->n + 1, sizeof *differences), n;
    struct sums all = {0};

    *row = (struct ipw_compare_row){0};
    for (size_t i = 0; i < c->n;) {
        struct sums task = {0};
        const char *id = c->pairs[0][i]->id;

        for (; i < c->n && strcmp(c->pairs[0][i]->id, id) == 0; i++) add_pair(&task, c, i, metric);
        if (!task.n) continue;
        differences[row->tasks++] = (task.b - task.a) / (double)task.n;
        row->pairs += task.n;
        add_task(&all, &task);
    }
    n = all.n ? (double)all.n : (double)NAN;
    row->a = all.a / n;
    row->b = all.b / n;
    row->a_lo = all.a_lo / n;
    row->a_hi = all.a_hi / n;
    row->b_lo = all.b_lo / n;
    row->b_hi = all.b_hi / n;
    row->difference_lo = row->b_lo - row->a_hi;
    row->difference_hi = row->b_hi - row->a_lo;
    row->difference = ipw_interval_of(differences, row->tasks);
    if (metric == IPW_COMPARE_ACCURACY) { /* of two proportions: the difference is at most 1 */
        row->difference.lo = within(row->difference.lo);
        row->difference.hi = within(row->difference.hi);
    }
    row->verdict = verdict(&row->difference);
    free(differences);
}

void ipw_compare_make(struct ipw_compare *out, struct ipw_compare_run *a, struct ipw_compare_run *b)
{
    *out = (struct ipw_compare){.runs = {a, b}};
    number(a);
    number(b);
    pair(out, a, b);
    out->basis = shared_basis(out);
    for (int m = 0; m < IPW_COMPARE_METRICS; m++) make_row(&out->rows[m], out, m);
}

void ipw_compare_free(struct ipw_compare *c)
{
    free(c->pairs[0]);
    free(c->pairs[1]);
    *c = (struct ipw_compare){0};
}
