#include "sim/truth.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "energy/poll_rate.h"
#include "sim/ask.h"

#define GPU    IPW_DOMAIN_GPU
#define TURNS  TRUTH_TURNS
#define MOST_W (700 * 13 / 10)
#define WAIT_S 3 /* after a query's end, as long as a run waits for a reading past it */

#define COUNTER(publish, period, jit, modulus, unit)                                               \
    {                                                                                              \
        .publish_s = publish, .phase_s = 0.0371, .jitter = jit, .quantum = unit,                   \
        .offset_uj = INT64_C(12345000000),                                                         \
        .channel = {.name = "gpu0",                                                                \
                    .domain = IPW_DOMAIN_GPU,                                                      \
                    .kind = IPW_CHANNEL_COUNTER,                                                   \
                    .modulus_uj = modulus,                                                         \
                    .max_w = MOST_W,                                                               \
                    .period_ns = period,                                                           \
                    .in_sum = true},                                                               \
    }
#define MS       1000000
#define RANGE_UJ INT64_C(262143328911)

/* window_ns 1: of an instant. */
#define GAUGE(publish, window, told_window)                                                        \
    {                                                                                              \
        .publish_s = publish, .phase_s = 0.0371, .jitter = 0.05, .quantum = 1, .window_s = window, \
        .channel = {.name = "gpu0",                                                                \
                    .domain = IPW_DOMAIN_GPU,                                                      \
                    .kind = IPW_CHANNEL_GAUGE,                                                     \
                    .max_w = MOST_W,                                                               \
                    .period_ns = (int64_t)(publish * 1000) * MS,                                   \
                    .window_ns = told_window,                                                      \
                    .in_sum = true},                                                               \
    }

static const struct sim_sensor nvml = COUNTER(0.1, 100 * MS, 0.05, 0, 1000);

struct even {
    double every, slop;
    uint64_t seed;
    double due;
};

static double next_even(void *ud, double t, const int64_t *values)
{
    struct even *e = ud;

    (void)values;
    if (e->due <= 0) e->due = t;
    e->due += e->every;
    return e->due + sim_uniform(&e->seed, 0, e->slop) * e->every;
}

/* By the pace that the program keeps, as a source of one channel. */
struct paced {
    struct ipw_source source;
    struct ipw_poll_rate pace;
    uint64_t seed;
};

static void paced_init(struct paced *p, const struct ipw_channel *channel, uint64_t seed)
{
    *p = (struct paced){.source = {.name = "sim", .channels = channel, .n_channels = 1}};
    p->source.period_ns = 20 * IPW_NS_PER_MS;
    p->seed = seed;
    ipw_poll_rate_init(&p->pace, &p->source, 50 * IPW_NS_PER_MS, true, sim_ns(98.5));
}

static double next_paced(void *ud, double t, const int64_t *values)
{
    struct paced *p = ud;
    int64_t at;

    ipw_poll_rate_push(&p->pace, sim_ns(t), values);
    at = ipw_poll_rate_next(&p->pace, sim_ns(t) + 50000);
    return (double)at / 1e9 + sim_uniform(&p->seed, 0.00005, 0.0003); /* a thread wakes late */
}

static struct sim_script h100(double lm_s, double tau, uint64_t seed)
{
    return (struct sim_script){.lm_s = lm_s,
                               .prefill_part = 0.2,
                               .tool_s = 0.5,
                               .base_w = 75,
                               .prefill_w = 620,
                               .decode_w = 430,
                               .tool_w = 78,
                               .spread = 0.15,
                               .tau = tau,
                               .turns = TURNS,
                               .start_s = 100,
                               .seed = seed};
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

double truth_at(struct truth_tally *t, double part)
{
    if (!t->n) return NAN;
    qsort(t->e, t->n, sizeof *t->e, by_value);
    return t->e[(size_t)((double)(t->n - 1) * part)];
}

double truth_bias(const struct truth_tally *t) { return t->n ? t->sum / (double)t->n : NAN; }

/* No device draws more than it is said to: where the simulated one does, in a turn of much power,
 * its bound is no bound. */
static void add(struct truth_tally *t, struct ipw_figure f, double truth, double most_j, bool is_lm)
{
    if (!f.known) {
        t->unknown++;
        return;
    }
    t->figures++;
    if (f.hi_j > 0 && truth <= most_j && (truth < f.lo_j - 2e-6 || truth > f.hi_j + 2e-6))
        t->outside++;
    t->far += fabs(f.j - truth) > 2 * f.u_j;
    if (!is_lm || t->n == TRUTH_MOST) return;
    t->e[t->n++] = fabs(f.j - truth) / truth * 100;
    t->sum += (f.j - truth) / truth * 100;
}

/* Between two events as the client saw them, against the truth between the power's edges. */
static void add_span(struct truth_tally *t, const struct ipw_ledger *l, int64_t q,
                     const struct sim_curve *curve, const double *edges, const double *events,
                     double part, bool is_lm)
{
    double truth = sim_curve_j(curve, edges[1]) - sim_curve_j(curve, edges[0]);

    add(t, ipw_ledger_figure(l, ask_span(q, GPU, sim_ns(events[0]), sim_ns(events[1]))),
        truth * part, MOST_W * (edges[1] - edges[0]) * part, is_lm);
}

static void tally_turns(struct truth_tally *t, const struct ipw_ledger *l, int64_t q,
                        const struct sim_curve *curve, const struct sim_turn *turns,
                        const struct sim_turn *seen, size_t n, double part)
{
    for (size_t i = 0; i < n; i++) {
        const struct sim_turn *x = &turns[i], *y = &seen[i];

        add_span(t, l, q, curve, (double[]){x->t0, x->lm_end}, (double[]){y->t0, y->lm_end}, part,
                 true);
        add_span(t, l, q, curve, (double[]){x->t0, x->first_token},
                 (double[]){y->t0, y->first_token}, part, false);
        add_span(t, l, q, curve, (double[]){x->lm_end, x->t1}, (double[]){y->lm_end, y->t1}, part,
                 false);
        add_span(t, l, q, curve, (double[]){x->t0, x->t1}, (double[]){y->t0, y->t1}, part, false);
    }
}

/* What the client sees of the turns: each event late by a time of its own, in order. */
static void see(struct sim_turn *seen, const struct sim_turn *turns, double late_s, uint64_t seed)
{
    double before = 0;

    for (size_t i = 0; i < TURNS; i++) {
        double *at[] = {&seen[i].t0, &seen[i].first_token, &seen[i].lm_end, &seen[i].t1};

        seen[i] = turns[i];
        for (size_t k = 0; k < 4; k++) {
            *at[k] = fmax(*at[k] + sim_uniform(&seed, 0, late_s), before);
            before = *at[k];
        }
        if (i) seen[i - 1].t1 = seen[i].t0;
    }
}

void truth_run(struct truth_tally *t, const struct truth_row *row, double length, uint64_t seeds)
{
    static struct sim_turn turns[TURNS], seen[TURNS];

    memset(t, 0, sizeof *t);
    for (uint64_t seed = 1; seed <= seeds; seed++) {
        struct sim_script script = h100(length, row->tau, seed);
        struct sim_curve curve = {0};
        struct sim_sensor sensor = row->sensor;
        struct even even = {.every = row->every, .slop = row->slop, .seed = seed};
        struct ipw_ledger *l;
        struct paced paced;
        double end = sim_run(&script, turns, &curve), until = end + WAIT_S;
        struct sim_reads how;
        int64_t q;

        l = ipw_ledger_new(&sensor.channel, 1);
        see(seen, turns, row->late_s, seed);
        sensor.curve = &curve;
        sensor.seed = seed * 31;
        sensor.phase_s += 0.0123 * (double)seed;
        paced_init(&paced, &sensor.channel, seed);
        how = (struct sim_reads){row->every > 0 ? next_even : next_paced,
                                 row->every > 0 ? (void *)&even : (void *)&paced,
                                 row->hole_every_s,
                                 row->hole_s,
                                 row->marks,
                                 0};
        q = sim_feed_by(l, &sensor, 1, 98.5, until, &how, seen, TURNS);
        t->reads += how.n;
        t->seconds += until - 98.5;
        tally_turns(t, l, q, &curve, turns, seen, TURNS, 1);
        ipw_ledger_free(l);
        sim_curve_release(&curve);
    }
}

const struct truth_row *truth_behaved(void)
{
    static const struct truth_row rows[] = {
        {.name = "NVML, by its pace", .sensor = COUNTER(0.1, 100 * MS, 0.05, 0, 1000)},
        {.name = "the same, a device that settles in 6 ms",
         .sensor = COUNTER(0.1, 100 * MS, 0.05, 0, 1000),
         .tau = 0.006},
        {.name = "the same, events up to 20 ms late",
         .sensor = COUNTER(0.1, 100 * MS, 0.05, 0, 1000),
         .late_s = 0.02},
        {.name = "NVML, 10 ms",
         .sensor = COUNTER(0.1, 100 * MS, 0.05, 0, 1000),
         .every = 0.01,
         .slop = 0.1},
        {.name = "NVML, 20 ms",
         .sensor = COUNTER(0.1, 100 * MS, 0.05, 0, 1000),
         .every = 0.02,
         .slop = 0.05},
        {.name = "RAPL 61 uJ, 50 ms",
         .sensor = COUNTER(0.001, MS, 0.2, RANGE_UJ, 61),
         .every = 0.05,
         .slop = 0.05},
        {.name = "RAPL 61 uJ, 50 ms and marks",
         .sensor = COUNTER(0.001, MS, 0.2, RANGE_UJ, 61),
         .every = 0.05,
         .slop = 0.05,
         .marks = true},
        {.name = NULL},
    };

    return rows;
}

static struct truth_row row_of(const char *name, struct sim_sensor sensor, double every)
{
    return (struct truth_row){
        .name = name, .sensor = sensor, .every = every, .slop = every > 0 ? 0.05 : 0};
}

const struct truth_row *truth_adverse(void)
{
    static struct truth_row rows[16];
    const struct sim_sensor rapl = COUNTER(0.001, MS, 0.2, RANGE_UJ, 61);
    size_t n = 0;

    if (rows[0].name) return rows;
    rows[n] = row_of("publication jitters by 25 ms", nvml, 0);
    rows[n++].sensor.jitter = 0.5;
    rows[n] = row_of("200 ms instead of 100", nvml, 0);
    rows[n++].sensor.publish_s = 0.2;
    rows[n] = row_of("1 s instead of 100 ms", nvml, 0);
    rows[n++].sensor.publish_s = 1;
    rows[n] = row_of("stands still 3 s of 15, NVML", nvml, 0);
    rows[n].sensor.stall_every_s = 15;
    rows[n++].sensor.stall_s = 3;
    rows[n] = row_of("the same, RAPL", rapl, 0.05);
    rows[n].marks = true;
    rows[n].sensor.stall_every_s = 15;
    rows[n++].sensor.stall_s = 3;
    rows[n] = row_of("is not read for 3 s of 15", nvml, 0);
    rows[n].hole_every_s = 15;
    rows[n++].hole_s = 3;
    rows[n] = row_of("virtual RAPL, every 100 ms", rapl, 0.05);
    rows[n].marks = true;
    rows[n].sensor.publish_s = 0.1;
    rows[n++].sensor.jitter = 0.05;
    rows[n] = row_of("virtual RAPL, every 2 s", rapl, 0.05);
    rows[n].marks = true;
    rows[n].sensor.publish_s = 2;
    rows[n++].sensor.jitter = 0.05;
    /* The look around before a run has found its period. */
    rows[n] = row_of("RAPL that moves every 10 ms", rapl, 0.05);
    rows[n].marks = true;
    rows[n].sensor.publish_s = 0.01;
    rows[n++].sensor.channel.period_ns = 10 * MS;
    rows[n] = row_of("value 30 ms old (calibration)", nvml, 0);
    rows[n].is_calibration = true;
    rows[n++].sensor.lag_s = 0.03;
    rows[n] = row_of("told 500 W, draws 700", nvml, 0);
    rows[n++].sensor.channel.max_w = 500;
    rows[n++] = row_of("NVML at 50 ms", nvml, 0.05);
    rows[n++] = row_of("NVML at 100 ms", nvml, 0.1);
    rows[n] = row_of("fed by 25 of 100 ms (calibration)", nvml, 0);
    rows[n].is_calibration = true;
    rows[n++].sensor.duty_s = 0.025;
    rows[n] = row_of("gain + 5 % (calibration)", nvml, 0);
    rows[n].is_calibration = true;
    rows[n++].sensor.gain = 1.05;
    return rows;
}

const struct truth_row *truth_gauges(void)
{
    static const struct truth_row rows[] = {
        {.name = "gauge, instant every 100 ms", .sensor = GAUGE(0.1, 0, 1)},
        {.name = "gauge, 25 of 100 ms", .sensor = GAUGE(0.1, 0.025, 25 * MS)},
        {.name = "gauge, 100 ms mean", .sensor = GAUGE(0.1, 0.1, 100 * MS)},
        {.name = "gauge, 1 s mean every 100 ms", .sensor = GAUGE(0.1, 1, 1000 * MS)},
        {.name = "plug meter, 1 Hz", .sensor = GAUGE(1, 1, 1000 * MS), .every = 0.1, .slop = 0.05},
        {.name = NULL},
    };

    return rows;
}

static struct crowd alike(size_t lanes, double lm_s, uint64_t seed)
{
    return (struct crowd){.lanes = lanes,
                          .turns = lanes > 8 ? 60 : 120,
                          .kinds = {{lm_s, 0.2, 0.5, 545, 355, 3}},
                          .n_kinds = 1,
                          .law = CROWD_SMOOTH,
                          .idle_w = 75,
                          .cap_w = 600,
                          .spread = 0.15,
                          .tau = 0.006,
                          .start_s = 100,
                          .seed = seed};
}

void truth_crowded(struct truth_tally *t, size_t lanes, double lm_s, uint64_t seeds)
{
    memset(t, 0, sizeof *t);
    for (uint64_t seed = 1; seed <= seeds; seed++) {
        struct crowd c = alike(lanes, lm_s, seed);
        struct sim_sensor s = nvml;
        struct ipw_ledger *l = ipw_ledger_new(&s.channel, 1);
        struct paced paced;
        int64_t q[CROWD_LANES];

        crowd_make(&c);
        s.curve = &c.curve;
        s.seed = seed;
        ipw_ledger_set_share(l, IPW_SHARE_EQUAL);
        paced_init(&paced, &s.channel, seed);
        crowd_feed(&c, l, &s, next_paced, &paced, q, &t->reads);
        t->seconds += c.end_s - c.start_s + 2.7;
        for (size_t i = 0; i < lanes; i++)
            tally_turns(t, l, q[i], &c.curve, c.turn + i * c.turns, c.turn + i * c.turns,
                        c.n_turns[i], 1 / (double)lanes);
        ipw_ledger_free(l);
        crowd_release(&c);
    }
}

const char *truth_mix_name(enum truth_mix mix)
{
    static const char *const names[] = {"alike", "mixed lengths", "half wait for tools",
                                        "prompts against answers"};

    return names[mix];
}

struct truth_share truth_shares(enum truth_mix mix, enum crowd_law law, size_t lanes,
                                enum ipw_share rule)
{
    static const struct crowd_kind kinds[TRUTH_MIXES][2] = {
        {{1, 0.2, 0.5, 545, 355, 3}, {1, 0.2, 0.5, 545, 355, 3}},
        {{1.5, 0.1, 0.5, 545, 355, 3}, {0.6, 0.4, 0.8, 545, 355, 3}},
        {{1.5, 0.2, 0.1, 545, 355, 3}, {0.5, 0.2, 4, 545, 355, 3}},
        {{1, 0.85, 0.3, 545, 355, 3}, {1, 0.05, 0.3, 545, 355, 3}},
    };
    struct crowd c = alike(lanes, 1, 7);
    struct sim_sensor s = nvml;
    struct ipw_ledger *l = ipw_ledger_new(&s.channel, 1);
    struct truth_share out = {0};
    double truth[CROWD_LANES];
    struct paced paced;
    int64_t q[CROWD_LANES];
    size_t reads = 0;

    c.law = law;
    c.turns = 30;
    c.n_kinds = 2;
    c.kinds[0] = kinds[mix][0];
    c.kinds[1] = kinds[mix][1];
    crowd_make(&c);
    crowd_shapley(&c, truth);
    s.curve = &c.curve;
    s.seed = c.seed;
    ipw_ledger_set_share(l, rule);
    paced_init(&paced, &s.channel, c.seed);
    crowd_feed(&c, l, &s, next_paced, &paced, q, &reads);
    for (size_t i = 0; i < c.lanes; i++) {
        struct ipw_figure f =
            ipw_ledger_figure(l, ask_query(q[i], GPU, sim_ns(c.start_s), sim_ns(c.end_s)));
        double e = fabs(f.j - truth[i]) / truth[i] * 100;

        out.mean += e / (double)c.lanes;
        if (e > out.most) out.most = e;
    }
    ipw_ledger_free(l);
    crowd_release(&c);
    return out;
}
