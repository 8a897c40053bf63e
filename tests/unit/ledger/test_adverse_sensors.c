/* Sensors that are dead, wrong or half wrong, one a row: each is read as a run reads it, by the
 * books and by energy/trust.h, whose verdict the books obey.  A row may give no figure; it may
 * never give one whose bounds leave the truth out, nor one that is 10 % wrong with bounds that do
 * not say so. */
#include "energy/trust.h"
#include "ledger/feed.h"

#include "unit/energy/energy_test.h"
#include "unit/unit.h"

#define RUN_S   20.0
#define BEGIN_S 2.0
#define ENDS_S  18.0 /* of the query */

enum kind { COUNTER, GAUGE, BOTH, PACKAGES, PSYS, WALL };
/* What a row must come to, beyond the rule of all rows. */
enum want { NULL_OR_BOUNDS, IS_NULL, IS_RIGHT, IS_WIDE };

/* The device's watts: 90, and 300 in every other second. */
static double truth_w(double s) { return (int)s % 2 ? 300 : 90; }

static double truth_j(double s)
{
    int whole = (int)s;

    return whole / 2 * 390.0 + (whole % 2 ? 90 : 0) + (s - whole) * truth_w(s);
}

static double held(double t, double from, double to) { return t > from && t < to ? from : t; }

/* Joules of the counter of interest at t.  NAN: a failed read. */
static double sound(double t) { return truth_j(t); }
static double still(double t) { return t * 0; }
static double stops(double t) { return truth_j(held(t, 6, 99)); }
static double stalls(double t) { return truth_j(held(t, 6, 8.5)); }
static double loses_stall(double t)
{
    return t < 6 ? truth_j(t) : t < 8.5 ? truth_j(6) : truth_j(6) + truth_j(t) - truth_j(8.5);
}
static double half(double t) { return truth_j(t) / 2; }
static double twice(double t) { return truth_j(t) * 2; }
static double thousandth(double t) { return truth_j(t) / 1000; }
static double watts_002(double t) { return 0.02 * t; }
static double watts_03(double t) { return 0.3 * t; }
static double half_later(double t) { return t < 9 ? truth_j(t) : (truth_j(t) + truth_j(9)) / 2; }
static double jumps(double t) { return truth_j(t) + (t > 9 ? 1e6 : 0); }
static double jumps_once(double t) { return truth_j(t) + (t > 9 && t < 9.005 ? 1e6 : 0); }
static double back_5mj(double t) { return truth_j(t) - (t > 9 && t < 9.005 ? 5 : 0); }
static double back_and_right(double t) { return truth_j(t) - (t > 9 && t < 9.35 ? 100 : 0); }
static double reset(double t) { return t < 9 ? truth_j(t) : truth_j(t) - truth_j(9); }
static double fails(double t) { return t * NAN; }
static double fails_later(double t) { return t < 9 ? truth_j(t) : (double)NAN; }
static double fails_awhile(double t) { return t > 9 && t < 11 ? (double)NAN : truth_j(t); }
static double appears(double t) { return t < 9 ? (double)NAN : truth_j(t); }
static double negative(double t) { return -truth_j(t) - 1; }
static double huge(double t) { return truth_j(t) + (t > 9 ? 9e12 : 0); }

/* Watts of the gauge. */
static double right_w(double t) { return truth_w(t); }
static double zero_w(double t) { return t * 0; }
static double held_71(double t) { return 71 + t * 0; }
static double held_300(double t) { return t < 6 ? truth_w(t) : 300; }
static double twice_w(double t) { return truth_w(t) * 2; }
static double no_w(double t) { return t * NAN; }
static double no_w_later(double t) { return t < 9 ? truth_w(t) : (double)NAN; }
static double spike(double t) { return t > 8.95 && t < 9.05 ? 25000 : truth_w(t); }
static double constant_95(double t) { return 95.5 + t * 0; }
static double five_w(double t) { return 5 + t * 0; }

static const struct row {
    const char *name;
    enum kind kind;
    double (*joules)(double t); /* of the counter, or of the first package */
    double (*watts)(double t);  /* of the gauge, of the machine */
    enum want want;
} rows[] = {
    {"a sound NVML counter", COUNTER, sound, NULL, IS_RIGHT},
    {"a sound counter and gauge", BOTH, sound, right_w, IS_RIGHT},
    {"a sound package", PACKAGES, sound, NULL, IS_RIGHT},
    {"a still counter", COUNTER, still, NULL, IS_NULL},
    {"a still package", PACKAGES, still, NULL, IS_NULL},
    {"a counter that stops", COUNTER, stops, NULL, IS_NULL},
    {"a package that stops", PACKAGES, stops, NULL, IS_NULL},
    {"a counter that stalls and catches up", COUNTER, stalls, NULL, IS_RIGHT},
    {"a package that stalls and catches up", PACKAGES, stalls, NULL, IS_RIGHT},
    {"a counter that loses a stall", COUNTER, loses_stall, NULL, IS_NULL},
    {"a package that loses a stall", PACKAGES, loses_stall, NULL, IS_NULL},
    {"a counter at half of its gauge", BOTH, half, right_w, IS_NULL},
    {"a counter at twice its gauge", BOTH, twice, right_w, IS_NULL},
    {"a counter at 1/1000 of its gauge", BOTH, thousandth, right_w, IS_NULL},
    {"a counter of 0.3 W beside its gauge", BOTH, watts_03, right_w, IS_NULL},
    {"a counter at half from the middle on", BOTH, half_later, right_w, IS_NULL},
    {"a counter of 0.3 W alone", COUNTER, watts_03, NULL, IS_NULL},
    {"a counter at 1/1000 alone", COUNTER, thousandth, NULL, IS_NULL},
    {"a package of 0.02 W", PACKAGES, watts_002, NULL, IS_NULL},
    {"a package at 1/1000", PACKAGES, thousandth, NULL, IS_NULL},
    {"a counter that jumps and stays", COUNTER, jumps, NULL, IS_NULL},
    {"a package that jumps and stays", PACKAGES, jumps, NULL, IS_NULL},
    {"a counter that jumps once", COUNTER, jumps_once, NULL, IS_RIGHT},
    {"a package that jumps once", PACKAGES, jumps_once, NULL, IS_RIGHT},
    {"a package 5 J back once", PACKAGES, back_5mj, NULL, IS_RIGHT},
    {"a counter that steps back and returns", COUNTER, back_and_right, NULL, IS_NULL},
    {"a package that steps back and returns", PACKAGES, back_and_right, NULL, IS_NULL},
    {"a counter that is reset", COUNTER, reset, NULL, IS_NULL},
    {"a package that is reset", PACKAGES, reset, NULL, IS_NULL},
    {"a counter that never answers", COUNTER, fails, NULL, IS_NULL},
    {"a counter whose permission goes", COUNTER, fails_later, NULL, IS_NULL},
    {"a package whose permission goes", PACKAGES, fails_later, NULL, IS_NULL},
    {"a counter that fails for 2 s", COUNTER, fails_awhile, NULL, IS_RIGHT},
    {"a counter that appears", COUNTER, appears, NULL, IS_NULL},
    {"a negative counter", COUNTER, negative, NULL, IS_NULL},
    {"a counter of huge values", COUNTER, huge, NULL, IS_NULL},
    {"a package of huge values", PACKAGES, huge, NULL, IS_NULL},
    {"a right counter, a gauge at twice", BOTH, sound, twice_w, IS_NULL},
    {"a right counter, a gauge that holds", BOTH, sound, held_300, NULL_OR_BOUNDS},
    {"a right counter, a gauge without values", BOTH, sound, no_w, IS_RIGHT},
    {"a gauge", GAUGE, NULL, right_w, NULL_OR_BOUNDS},
    {"a gauge at 0 W", GAUGE, NULL, zero_w, NULL_OR_BOUNDS},
    {"a gauge that holds from the start", GAUGE, NULL, held_71, IS_WIDE},
    {"a gauge that holds in the middle", GAUGE, NULL, held_300, IS_WIDE},
    {"a gauge without values", GAUGE, NULL, no_w, IS_NULL},
    {"a gauge that falls silent", GAUGE, NULL, no_w_later, IS_NULL},
    {"a platform below its package", PSYS, sound, five_w, IS_NULL},
    {"a dead platform", PSYS, sound, zero_w, IS_NULL},
    {"a platform that includes its package", PSYS, sound, twice_w, IS_RIGHT},
    {"a wall meter below its package", WALL, sound, five_w, IS_NULL},
    {"a wall meter that holds 95.5 W", WALL, sound, constant_95, IS_NULL},
    {"a wall meter that reads 25 kW once", WALL, sound, spike, IS_RIGHT},
    {"a wall meter that holds", WALL, sound, held_300, NULL_OR_BOUNDS},
};
enum { ROWS = sizeof rows / sizeof *rows, WANTED = 53 };

struct world {
    struct ipw_channel channels[2];
    size_t n;
    double period_s, every_s; /* of the slowest channel */
    enum ipw_domain domain;   /* of the figure that is looked at */
    double own_part;          /* its truth, relative to the device's */
};

static struct ipw_channel gauge_of(const char *name, enum ipw_domain domain, enum ipw_scope scope,
                                   double period_s, int64_t max_w)
{
    struct ipw_channel c = test_gauge(name, max_w);

    c.domain = domain;
    c.scope = scope;
    c.period_ns = S(period_s);
    c.window_ns = S(period_s);
    return c;
}

static void make(struct world *w, const struct row *r)
{
    struct ipw_channel *c = w->channels;

    *w = (struct world){.n = 2, .every_s = 0.01, .domain = IPW_DOMAIN_GPU, .own_part = 1};
    c[0] = test_counter("gpu0", IPW_DOMAIN_GPU, 0, 700);
    c[0].period_ns = S(0.1);
    c[1] = gauge_of("gpu0/power", IPW_DOMAIN_GPU, IPW_SCOPE_DEVICE, 0.1, 700);
    c[1].in_sum = r->kind == GAUGE;
    for (int i = 0; i < 2; i++) snprintf(c[i].device, sizeof c[i].device, "GPU-1");
    if (r->kind == COUNTER) w->n = 1;
    if (r->kind == GAUGE) c[0].in_sum = false;
    if (r->kind < PACKAGES) return;
    c[0] = test_counter("package-0", IPW_DOMAIN_CPU, RANGE_61 + 61, 500);
    c[0].period_ns = S(0.001);
    c[0].scope = IPW_SCOPE_PACKAGE;
    w->domain = r->kind == PACKAGES ? IPW_DOMAIN_CPU : IPW_DOMAIN_MACHINE;
    w->n = r->kind == PACKAGES ? 1 : 2;
    c[1] = r->kind == PSYS ? gauge_of("psys", IPW_DOMAIN_MACHINE, IPW_SCOPE_PLATFORM, 0.01, 4000)
                           : gauge_of("wall", IPW_DOMAIN_MACHINE, IPW_SCOPE_MACHINE, 0.1, 30000);
    /* The right platform of these rows draws twice its package; a right wall meter reads it. */
    if (r->kind == PSYS) w->own_part = 2;
}

/* The counters count what the kernel and NVML count: microjoules of a millisecond, or millijoules
 * that are published every 100 ms. */
static int64_t value_of(const struct world *w, const struct row *r, size_t i, double t)
{
    bool gauge = w->channels[i].kind == IPW_CHANNEL_GAUGE;
    double period = ipw_ns_to_s(w->channels[i].period_ns), x;

    t = (double)(int64_t)(t / period + 1e-6) * period;
    if (!gauge && !r->joules) return IPW_NO_VALUE;
    x = gauge ? r->watts(t) * 1e3 : r->joules(t) * 1e6 + 1e9;
    return isnan(x) ? IPW_NO_VALUE : (int64_t)x;
}

struct outcome {
    struct ipw_figure query, total;
};

/* As a run does it: the verdict is an event of the session, so the books know it for all of it. */
static struct outcome run_row(const struct row *r)
{
    struct world w;
    struct ipw_trust *trust;
    struct ipw_ledger *l;
    struct ipw_ledger_question q = {.device = IPW_LEDGER_ALL};
    struct outcome out;
    bool begun = false, ended = false;
    double t = 0;

    make(&w, r);
    trust = ipw_trust_new(w.channels, w.n);
    l = ipw_ledger_new(w.channels, w.n);
    for (int i = 0; t < RUN_S; i++) {
        int64_t values[2];
        struct ipw_sampler_row row = {.n = w.n, .t_ns = S(100 + t), .values = values};

        for (size_t k = 0; k < w.n; k++) values[k] = value_of(&w, r, k, t);
        if (!begun && t >= BEGIN_S) q.query = ipw_ledger_query_begin(l, S(100 + BEGIN_S));
        begun |= t >= BEGIN_S;
        if (!ended && t >= ENDS_S) ipw_ledger_query_end(l, q.query, S(100 + ENDS_S));
        ended |= t >= ENDS_S;
        ipw_ledger_row(l, 0, w.n, row.t_ns, values);
        ipw_trust_row(trust, &row);
        t = i * 0.0101; /* it does not keep step with the power */
    }
    for (size_t k = 0; k < w.n; k++) {
        if (ipw_trust_is_broken(trust, k))
            ipw_ledger_doubt(l, k, ipw_trust_verdict(trust, k).reason);
    }
    ipw_ledger_close(l, S(100 + RUN_S));
    q.domain = w.domain;
    q.t0_ns = S(100 + BEGIN_S);
    q.t1_ns = S(100 + ENDS_S);
    out.query = ipw_ledger_figure(l, q);
    q.what = IPW_LEDGER_TOTAL;
    out.total = ipw_ledger_figure(l, q);
    ipw_ledger_free(l);
    ipw_trust_free(trust);
    return out;
}

static int n_bad;
#define bad(...) (print_error(__VA_ARGS__), print_error("\n"), n_bad++)

/* The criterion of all rows. */
static void judge(const struct row *r, const struct ipw_figure *f, const char *what)
{
    struct world w;
    double truth, off;

    make(&w, r);
    truth = w.own_part * (truth_j(ENDS_S) - truth_j(BEGIN_S));
    if (r->want == IS_NULL && f->known)
        bad("%s: the %s is %.6g J [%.6g, %.6g], truth %.6g", r->name, what, f->j, f->lo_j, f->hi_j,
            truth);
    if (r->want == IS_RIGHT && !f->known)
        bad("%s: the %s is not known: %s", r->name, what, f->reason);
    if (!f->known) return;
    off = fabs(f->j - truth);
    if (r->want == IS_RIGHT && off > 0.02 * truth)
        bad("%s: the %s is %.6g J, truth %.6g", r->name, what, f->j, truth);
    if (f->lo_j > truth * 1.0001 || f->hi_j < truth * 0.9999)
        bad("%s: the %s is %.6g J [%.6g, %.6g], truth %.6g", r->name, what, f->j, f->lo_j, f->hi_j,
            truth);
    if ((r->want == IS_WIDE || off > 0.1 * truth) && f->hi_j - f->lo_j < 0.1 * f->j)
        bad("%s: the %s is %.6g J, truth %.6g, and its bounds do not say so", r->name, what, f->j,
            truth);
}

static void test_no_figure_without_the_truth(void **state)
{
    (void)state;
    assert_int_equal(ROWS, WANTED);
    for (size_t i = 0; i < ROWS; i++) {
        struct outcome out = run_row(&rows[i]);

        judge(&rows[i], &out.query, "query");
        judge(&rows[i], &out.total, "total");
    }
    assert_int_equal(n_bad, 0);
}

UNIT(adverse_sensors)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_no_figure_without_the_truth)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
