#include "sim/crowd.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"

enum { ORDERS = 200 };

/* What happens on a lane at an instant. */
struct mark {
    double t, demand_w; /* the lane's from here on */
    size_t lane;
    enum ipw_phase phase;
};

static int by_time(const void *a, const void *b)
{
    double x = ((const struct mark *)a)->t, y = ((const struct mark *)b)->t;

    return x < y ? -1 : x > y;
}

static double drawn(const struct crowd *c, double demand_w)
{
    switch (c->law) {
    case CROWD_SMOOTH: return c->cap_w * (1 - exp(-demand_w / c->cap_w));
    case CROWD_HARD: return demand_w < c->cap_w ? demand_w : c->cap_w;
    case CROWD_SQUARE: return demand_w * c->cap_w / (demand_w + c->cap_w);
    }
    return 0;
}

/* All marks of all lanes in order of time; three a turn. */
static struct mark *marks_of(const struct crowd *c, size_t *n)
{
    struct mark *marks = ipw_calloc(c->lanes * c->turns * 3, sizeof *marks);

    *n = 0;
    for (size_t lane = 0; lane < c->lanes; lane++) {
        const struct crowd_kind *kind = &c->kinds[lane % c->n_kinds];

        for (size_t i = 0; i < c->turns; i++) {
            const struct sim_turn *turn = &c->turn[lane * c->turns + i];
            double factor = c->factor[lane * c->turns + i];

            marks[(*n)++] =
                (struct mark){turn->t0, kind->prefill_w * factor, lane, IPW_PHASE_PREFILL};
            marks[(*n)++] =
                (struct mark){turn->first_token, kind->decode_w * factor, lane, IPW_PHASE_DECODE};
            marks[(*n)++] =
                (struct mark){turn->lm_end, kind->tool_w * factor, lane, IPW_PHASE_TOOL};
        }
    }
    qsort(marks, *n, sizeof *marks, by_time);
    return marks;
}

void crowd_make(struct crowd *c)
{
    double demand[CROWD_LANES] = {0}, sum = 0;
    struct mark *marks;
    size_t n;

    c->turn = ipw_calloc(c->lanes * c->turns, sizeof *c->turn);
    c->factor = ipw_calloc(c->lanes * c->turns, sizeof *c->factor);
    c->n_turns = ipw_calloc(c->lanes, sizeof *c->n_turns);
    c->end_s = INFINITY;
    for (size_t lane = 0; lane < c->lanes; lane++) {
        const struct crowd_kind *kind = &c->kinds[lane % c->n_kinds];
        uint64_t seed = c->seed * 1000 + lane * 17 + 1;
        double t = c->start_s;

        for (size_t i = 0; i < c->turns; i++) {
            struct sim_turn *turn = &c->turn[lane * c->turns + i];
            double lm = kind->lm_s * sim_uniform(&seed, 0.8, 1.2);

            turn->t0 = t;
            turn->first_token = t + lm * kind->prefill_part;
            turn->lm_end = t + lm;
            turn->t1 = turn->lm_end + kind->tool_s * sim_uniform(&seed, 0.5, 1.5);
            c->factor[lane * c->turns + i] = exp(c->spread * sim_normal(&seed));
            t = turn->t1;
        }
        if (t < c->end_s) c->end_s = t;
    }
    for (size_t lane = 0; lane < c->lanes; lane++) {
        while (c->n_turns[lane] < c->turns &&
               c->turn[lane * c->turns + c->n_turns[lane]].t1 <= c->end_s)
            c->n_turns[lane]++;
    }
    marks = marks_of(c, &n);
    sim_curve_add(&c->curve, c->start_s - 2, c->idle_w, 0);
    for (size_t i = 0; i < n; i++) {
        if (marks[i].t > c->end_s) break;
        sum += marks[i].demand_w - demand[marks[i].lane];
        demand[marks[i].lane] = marks[i].demand_w;
        if (i + 1 < n && marks[i + 1].t == marks[i].t) continue;
        sim_curve_add(&c->curve, marks[i].t, c->idle_w + drawn(c, sum > 0 ? sum : 0), c->tau);
    }
    sim_curve_add(&c->curve, c->end_s, c->idle_w, c->tau);
    free(marks);
}

void crowd_release(struct crowd *c)
{
    sim_curve_release(&c->curve);
    free(c->turn);
    free(c->factor);
    free(c->n_turns);
}

/* parts[lane]: its share of what all draw above idle. */
static void share(const struct crowd *c, const double *demand, double *parts, uint64_t *seed)
{
    size_t order[CROWD_LANES];
    double whole = 0;

    for (size_t i = 0; i < c->lanes; i++) {
        order[i] = i;
        parts[i] = 0;
    }
    for (int k = 0; k < ORDERS; k++) {
        double sum = 0, before = 0;

        for (size_t i = c->lanes; i-- > 1;) {
            size_t with = (size_t)sim_uniform(seed, 0, (double)(i + 1)), x = order[i];
            order[i] = order[with];
            order[with] = x;
        }
        for (size_t i = 0; i < c->lanes; i++) {
            double now = drawn(c, sum += demand[order[i]]);

            parts[order[i]] += now - before;
            before = now;
        }
    }
    for (size_t i = 0; i < c->lanes; i++) whole += parts[i];
    for (size_t i = 0; i < c->lanes; i++)
        parts[i] = whole > 0 ? parts[i] / whole : 1.0 / (double)c->lanes;
}

void crowd_shapley(const struct crowd *c, double *joules)
{
    double demand[CROWD_LANES] = {0}, parts[CROWD_LANES];
    uint64_t seed = c->seed + 5;
    struct mark *marks;
    size_t n;

    for (size_t i = 0; i < c->lanes; i++) joules[i] = 0;
    marks = marks_of(c, &n);
    for (size_t i = 0; i < n && marks[i].t < c->end_s; i++) {
        double to = i + 1 < n && marks[i + 1].t < c->end_s ? marks[i + 1].t : c->end_s, j, idle;

        demand[marks[i].lane] = marks[i].demand_w;
        if (to <= marks[i].t) continue;
        j = sim_curve_j(&c->curve, to) - sim_curve_j(&c->curve, marks[i].t);
        idle = c->idle_w * (to - marks[i].t);
        if (idle > j) idle = j;
        share(c, demand, parts, &seed);
        for (size_t k = 0; k < c->lanes; k++)
            joules[k] += idle / (double)c->lanes + (j - idle) * parts[k];
    }
    free(marks);
}

void crowd_feed(const struct crowd *c, struct ipw_ledger *l, struct sim_sensor *sensor,
                sim_next_read next, void *ud, int64_t *queries, size_t *reads)
{
    struct mark *marks;
    size_t n, told = 0;
    bool begun = false, ended = false;
    int64_t v = 0;

    marks = marks_of(c, &n);
    for (double t = c->start_s - 1.5; t < c->end_s + 1.2; t = next(ud, t, &v), ++*reads) {
        if (!begun && t >= c->start_s) {
            begun = true;
            for (size_t i = 0; i < c->lanes; i++)
                queries[i] = ipw_ledger_query_begin(l, sim_ns(c->start_s));
        }
        for (; told < n && marks[told].t <= t && marks[told].t < c->end_s; told++)
            ipw_ledger_phase(l, queries[marks[told].lane], marks[told].phase,
                             sim_ns(marks[told].t));
        if (!ended && t >= c->end_s) {
            ended = true;
            for (size_t i = 0; i < c->lanes; i++)
                ipw_ledger_query_end(l, queries[i], sim_ns(c->end_s));
        }
        v = sim_sensor_read(sensor, t);
        ipw_ledger_row(l, 0, 1, sim_ns(t), &v);
    }
    free(marks);
}
