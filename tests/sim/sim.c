#include "sim/sim.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

static uint32_t random_bits(uint64_t *seed)
{
    *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(*seed >> 33);
}

double sim_uniform(uint64_t *seed, double lo, double hi)
{
    return lo + (hi - lo) * (double)random_bits(seed) / 2147483648.0;
}

double sim_normal(uint64_t *seed)
{
    double sum = 0;

    for (int i = 0; i < 12; i++) sum += sim_uniform(seed, 0, 1);
    return sum - 6;
}

int64_t sim_ns(double seconds) { return (int64_t)(seconds * 1e9 + 0.5); }

static double piece_w(const struct sim_piece *p, double t)
{
    if (p->tau <= 0) return p->target_w;
    return p->target_w + (p->from_w - p->target_w) * exp(-(t - p->t) / p->tau);
}

static double piece_j(const struct sim_piece *p, double t)
{
    double j = p->from_j + p->target_w * (t - p->t);

    if (p->tau > 0) j += (p->from_w - p->target_w) * p->tau * (1 - exp(-(t - p->t) / p->tau));
    return j;
}

void sim_curve_add(struct sim_curve *c, double t, double target_w, double tau)
{
    struct sim_piece p = {.t = t, .target_w = target_w, .tau = tau, .from_w = target_w};

    if (c->n) {
        p.from_w = piece_w(&c->pieces[c->n - 1], t);
        p.from_j = piece_j(&c->pieces[c->n - 1], t);
    }
    IPW_GROW(c->pieces, c->cap, c->n + 1);
    c->pieces[c->n++] = p;
}

void sim_curve_release(struct sim_curve *c)
{
    free(c->pieces);
    *c = (struct sim_curve){0};
}

static const struct sim_piece *piece_at(const struct sim_curve *c, double t)
{
    size_t lo = 0, hi = c->n;

    while (hi - lo > 1) {
        size_t mid = lo + (hi - lo) / 2;
        if (c->pieces[mid].t <= t) {
            lo = mid;
        } else {
            hi = mid;
        }
    }
    return &c->pieces[lo];
}

double sim_curve_w(const struct sim_curve *c, double t) { return piece_w(piece_at(c, t), t); }

double sim_curve_j(const struct sim_curve *c, double t)
{
    const struct sim_piece *p = piece_at(c, t);

    return t < p->t ? p->target_w * (t - p->t) : piece_j(p, t);
}

/* When publication k takes place. */
static double publication(const struct sim_sensor *s, double k)
{
    uint64_t seed = s->seed + (uint64_t)(int64_t)k * UINT64_C(0x9e3779b97f4a7c15);

    random_bits(&seed);
    return (k + s->jitter * sim_uniform(&seed, -0.5, 0.5)) * s->publish_s + s->phase_s;
}

double sim_sensor_published(const struct sim_sensor *s, double t)
{
    double k;

    if (s->publish_s <= 0) return t;
    k = floor((t - s->phase_s) / s->publish_s) + 1;
    while (publication(s, k) > t) k--;
    return publication(s, k);
}

/* The instant by which what it shows at t was published: it may stand still. */
static double shown(const struct sim_sensor *s, double t)
{
    double since;

    if (s->dead_s > 0 && t > s->dead_s) t = s->dead_s;
    if (s->stall_every_s > 0) {
        since = fmod(t, s->stall_every_s);
        if (since < s->stall_s) t -= since;
    }
    return sim_sensor_published(s, t);
}

/* What a counter has counted by publication at `at`: the energy, or the power of a moment before
 * each publication, as if it had been drawn since the one before. */
static double counted_j(struct sim_sensor *s, double at)
{
    if (s->duty_s <= 0) return sim_curve_j(s->curve, at);
    if (s->duty_from <= 0) s->duty_from = at;
    while (s->duty_from + s->publish_s / 2 < at) {
        double before = s->duty_from, x;

        for (x = before + s->publish_s; sim_sensor_published(s, x) <= before;) x += 0.001;
        s->duty_from = sim_sensor_published(s, x);
        s->duty_j += (sim_curve_j(s->curve, s->duty_from) -
                      sim_curve_j(s->curve, s->duty_from - s->duty_s)) /
                     s->duty_s * (s->duty_from - before);
    }
    return s->duty_j;
}

int64_t sim_sensor_read(struct sim_sensor *s, double t)
{
    double at = shown(s, t) - s->lag_s, gain = s->gain > 0 ? s->gain : 1;
    int64_t quantum = s->quantum > 0 ? s->quantum : 1, v;
    uint32_t dice;

    if (!s->dice) s->dice = s->seed;
    dice = random_bits(&s->dice) % 1000;
    if (dice < s->fail_per_1000) return IPW_NO_VALUE;
    if (s->channel.kind == IPW_CHANNEL_GAUGE) {
        double w = sim_curve_w(s->curve, at);
        if (s->window_s > 0) {
            w = (sim_curve_j(s->curve, at) - sim_curve_j(s->curve, at - s->window_s)) / s->window_s;
        }
        return (int64_t)(w * gain * 1e3) / quantum * quantum;
    }
    if (dice < s->fail_per_1000 + s->glitch_per_1000) return 0;
    v = s->offset_uj + (int64_t)floor(counted_j(s, at) * gain * 1e6);
    v = v / quantum * quantum;
    return s->channel.modulus_uj > 0 ? v % s->channel.modulus_uj : v;
}

/* One phase from t to end: in pieces, when power varies within it. */
static void add_phase(const struct sim_script *x, struct sim_curve *curve, uint64_t *seed, double t,
                      double end, double watts)
{
    double begin = t;

    if (x->ramp <= 0 && x->noise <= 0 && x->burst <= 0) {
        sim_curve_add(curve, t, watts, x->tau);
        return;
    }
    while (t < end) {
        double rise = x->ramp * ((t - begin) / (end - begin) - 0.5), w;

        w = watts * (1 + rise + x->noise * sim_normal(seed));
        if (sim_uniform(seed, 0, 1) < 0.125) w += watts * x->burst;
        sim_curve_add(curve, t, w > 1 ? w : 1, x->tau);
        t += sim_uniform(seed, 0.005, 0.025);
    }
}

double sim_run(const struct sim_script *x, struct sim_turn *turns, struct sim_curve *curve)
{
    uint64_t seed = x->seed, inner = x->seed * 3 + 1; /* turns are the same without variation */
    double t = x->start_s;

    if (!curve->n) sim_curve_add(curve, t - 2, x->base_w, 0);
    for (size_t i = 0; i < x->turns; i++) {
        double power = exp(x->spread * sim_normal(&seed)),
               lm = x->lm_s * sim_uniform(&seed, 0.8, 1.2);
        struct sim_turn *turn = &turns[i];

        turn->t0 = t;
        turn->first_token = t + lm * x->prefill_part;
        turn->lm_end = t + lm;
        turn->t1 = turn->lm_end + x->tool_s * sim_uniform(&seed, 0.5, 1.5);
        add_phase(x, curve, &inner, t, turn->first_token,
                  x->base_w + (x->prefill_w - x->base_w) * power);
        add_phase(x, curve, &inner, turn->first_token, turn->lm_end,
                  x->base_w + (x->decode_w - x->base_w) * power);
        if (turn->t1 > turn->lm_end)
            add_phase(x, curve, &inner, turn->lm_end, turn->t1,
                      x->tool_w * exp(x->spread * sim_normal(&seed)));
        t = turn->t1;
    }
    sim_curve_add(curve, t, x->base_w, x->tau);
    return t;
}

/* Tells what happened up to t. */
static size_t tell(struct ipw_ledger *l, int64_t query, double t, const struct sim_turn *turns,
                   size_t n_turns, size_t told)
{
    for (; told < 3 * n_turns; told++) {
        const struct sim_turn *turn = &turns[told / 3];
        double at = told % 3 == 0 ? turn->t0 : told % 3 == 1 ? turn->first_token : turn->lm_end;

        if (at > t) break;
        ipw_ledger_phase(l, query,
                         told % 3 == 0   ? IPW_PHASE_PREFILL
                         : told % 3 == 1 ? IPW_PHASE_DECODE
                                         : IPW_PHASE_TOOL,
                         sim_ns(at));
    }
    return told;
}

/* One query's way into a ledger. */
struct feed {
    struct ipw_ledger *l;
    struct sim_sensor *sensors;
    size_t n;
    const struct sim_turn *turns;
    size_t n_turns, told;
    bool phases, ended;
    int64_t query, values[16];
};

static void feed_row(struct feed *f, double t)
{
    double begin = f->turns[0].t0, end = f->turns[f->n_turns - 1].t1;

    if (f->query < 0 && t >= begin) f->query = ipw_ledger_query_begin(f->l, sim_ns(begin));
    if (f->query >= 0 && f->phases)
        f->told = tell(f->l, f->query, t, f->turns, f->n_turns, f->told);
    if (!f->ended && t >= end) {
        ipw_ledger_query_end(f->l, f->query, sim_ns(end));
        f->ended = true;
    }
    for (size_t k = 0; k < f->n && k < 16; k++) f->values[k] = sim_sensor_read(&f->sensors[k], t);
    ipw_ledger_row(f->l, 0, f->n, sim_ns(t), f->values);
}

int64_t sim_feed(struct ipw_ledger *l, struct sim_sensor *sensors, size_t n, double t0, double t1,
                 double every, double slop, const struct sim_turn *turns, size_t n_turns,
                 bool phases)
{
    struct feed f = {.l = l,
                     .sensors = sensors,
                     .n = n,
                     .turns = turns,
                     .n_turns = n_turns,
                     .phases = phases,
                     .query = -1};
    uint64_t seed = sensors[0].seed + 77;

    for (int64_t i = 0;; i++) {
        double t = t0 + (double)i * every + sim_uniform(&seed, 0, slop) * every;

        if (t > t1) break;
        feed_row(&f, t);
    }
    return f.query;
}

/* The next change of phase after the ones that were told. */
static double next_mark(const struct feed *f)
{
    const struct sim_turn *turn = &f->turns[f->told / 3];

    if (f->told >= 3 * f->n_turns) return INFINITY;
    return f->told % 3 == 0 ? turn->t0 : f->told % 3 == 1 ? turn->first_token : turn->lm_end;
}

int64_t sim_feed_by(struct ipw_ledger *l, struct sim_sensor *sensors, size_t n, double t0,
                    double t1, struct sim_reads *reads, const struct sim_turn *turns,
                    size_t n_turns)
{
    struct feed f = {.l = l,
                     .sensors = sensors,
                     .n = n,
                     .turns = turns,
                     .n_turns = n_turns,
                     .phases = true,
                     .query = -1};
    uint64_t seed = sensors[0].seed + 78;

    for (double t = t0; t <= t1; t = reads->next(reads->ud, t, f.values), reads->n++) {
        if (reads->hole_every_s > 0 && fmod(t, reads->hole_every_s) < reads->hole_s)
            t = floor(t / reads->hole_every_s) * reads->hole_every_s + reads->hole_s;
        for (double mark; reads->marks && (mark = next_mark(&f)) < t - 0.001; reads->n++)
            feed_row(&f, mark + sim_uniform(&seed, 0.00002, 0.0002));
        feed_row(&f, t);
    }
    return f.query;
}
