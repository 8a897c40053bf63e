/* The ledger against exact truth, held to its goals: tests/sim/truth.h.  bench/energy_truth prints
 * the same rows over more seeds. */
#include "sim/ask.h"
#include "sim/truth.h"
#include "unit/energy/energy_test.h"
#include "unit/unit.h"

static struct truth_tally t;

/* A counter of 100 ms by the program's own pace, with at most 50 readings a second.  Without the
 * power of the whole steps next to a piece, p95 would be six times as large. */
static void test_lm_spans(void **state)
{
    static const struct {
        double lm_s, p95, bias;
    } goals[] = {{0.2, 1.4, 0.4}, {0.5, 0.5, 0.2}, {1, 0.25, 0.1}, {5, 0.05, 0.05}};

    (void)state;
    for (size_t i = 0; i < sizeof goals / sizeof *goals; i++) {
        truth_run(&t, &truth_behaved()[0], goals[i].lm_s, 2);
        print_message("LM %.1f s: p95 %.2f %%, bias %+.2f %%, %.1f reads/s\n", goals[i].lm_s,
                      truth_at(&t, 0.95), truth_bias(&t), (double)t.reads / t.seconds);
        assert_true(truth_at(&t, 0.95) <= goals[i].p95);
        assert_true(fabs(truth_bias(&t)) <= goals[i].bias);
        assert_true((double)t.reads / t.seconds <= 50);
        assert_int_equal(t.outside, 0);
        assert_int_equal(t.unknown, 0);
    }
}

static void test_lm_spans_side_by_side(void **state)
{
    static const struct {
        double lm_s, p95;
    } goals[] = {{0.2, 5}, {0.5, 2.5}, {1, 1.3}, {5, 0.3}};

    (void)state;
    for (size_t i = 0; i < sizeof goals / sizeof *goals; i++) {
        for (size_t lanes = 4; lanes <= 32; lanes *= 8) {
            truth_crowded(&t, lanes, goals[i].lm_s, 1);
            assert_true(truth_at(&t, 0.95) <= goals[i].p95);
            assert_int_equal(t.outside, 0);
        }
    }
}

static void hold(const struct truth_row *row, double lm_s, uint64_t seeds)
{
    truth_run(&t, row, lm_s, seeds);
    if ((double)t.outside > 0.001 * (double)t.figures)
        fail_msg("%s, LM of %.1f s: %zu of %zu outside their bounds", row->name, lm_s, t.outside,
                 t.figures);
    if (t.far * 20 > t.figures)
        fail_msg("%s, LM of %.1f s: %zu of %zu over two standard uncertainties away", row->name,
                 lm_s, t.far, t.figures);
}

/* At most one in a thousand outside its bounds, and one in twenty over 2 u away, whatever the
 * sensor does; but for what no bound can know: a device that counts wrong. */
static void test_bounds_of_adverse_counters(void **state)
{
    (void)state;
    for (const struct truth_row *row = truth_adverse(); row->name; row++) {
        if (row->is_calibration) { /* u has the stated error */
            truth_run(&t, row, 2, 1);
            assert_true(t.far * 10 <= t.figures);
            continue;
        }
        hold(row, 0.5, 2);
        hold(row, 2, 1);
        assert_true(t.unknown * 100 <= t.figures);
    }
}

static void test_bounds_of_gauges(void **state)
{
    (void)state;
    for (const struct truth_row *row = truth_gauges(); row->name; row++) {
        hold(row, 0.5, 1);
        hold(row, 2, 1);
        hold(row, 5, 1);
    }
    /* A mean of a second says nothing of turns of a second: they have no figure. */
    truth_run(&t, &truth_gauges()[3], 0.5, 1);
    assert_int_equal(t.figures, 0);
}

/* Four mixes, three laws of saturation, 2 to 32 in flight: within 10 % of the Shapley value on
 * average, where equal slices are off by up to 160 %. */
static void test_34_shares(void **state)
{
    static const size_t lanes[] = {2, 4, 8, 32};

    (void)state;
    for (int law = CROWD_SMOOTH; law <= CROWD_SQUARE; law++) {
        for (int mix = 0; mix < TRUTH_MIXES; mix++) {
            for (size_t i = 0; i < sizeof lanes / sizeof *lanes; i++) {
                struct truth_share s = truth_shares((enum truth_mix)mix, (enum crowd_law)law,
                                                    lanes[i], IPW_SHARE_PHASE);

                if (s.mean > 10 || s.most > 15)
                    fail_msg("%s, %zu in flight: %.1f %%, at most %.1f %%",
                             truth_mix_name((enum truth_mix)mix), lanes[i], s.mean, s.most);
            }
        }
    }
}

static double every_20_ms(void *ud, double at, const int64_t *values)
{
    int64_t *last = ud;

    *last = *values;
    return at + 0.02;
}

/* Queries and idle are the raw counter's own difference between its first and its last reading: to
 * the microjoule, whatever the rule shares and the phases split. */
static void test_books_are_the_counter(void **state)
{
    static const enum ipw_share rules[] = {IPW_SHARE_EQUAL, IPW_SHARE_PHASE};

    (void)state;
    for (size_t r = 0; r < 2; r++) {
        struct crowd c = {.lanes = 9,
                          .turns = 12,
                          .kinds = {{0.7, 0.2, 0.4, 545, 355, 3}, {0.3, 0.4, 1, 545, 355, 3}},
                          .n_kinds = 2,
                          .law = CROWD_SMOOTH,
                          .idle_w = 75,
                          .cap_w = 600,
                          .spread = 0.15,
                          .tau = 0.006,
                          .start_s = 100,
                          .seed = 3 + r};
        struct sim_sensor s = truth_behaved()[0].sensor;
        struct ipw_ledger *l = ipw_ledger_new(&s.channel, 1);
        int64_t q[CROWD_LANES], last = 0, sum, first;
        struct ipw_figure idle;
        size_t reads = 0;

        crowd_make(&c);
        s.curve = &c.curve;
        s.seed = 5;
        ipw_ledger_set_share(l, rules[r]);
        first = sim_sensor_read(&s, c.start_s - 1.5);
        crowd_feed(&c, l, &s, every_20_ms, &last, q, &reads);
        idle =
            ipw_ledger_figure(l, ask_idle(IPW_DOMAIN_GPU, S(c.start_s - 1.5), S(c.end_s + 1.15)));
        assert_true(idle.known);
        sum = (int64_t)(idle.j * 1e6 + 0.5);
        for (size_t i = 0; i < c.lanes; i++)
            sum += (int64_t)(ipw_ledger_figure(
                                 l, ask_query(q[i], IPW_DOMAIN_GPU, S(c.start_s), S(c.end_s)))
                                     .j *
                                 1e6 +
                             0.5);
        assert_int_equal(sum, last - first);
        ipw_ledger_free(l);
        crowd_release(&c);
    }
}

UNIT(truth)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lm_spans),
        cmocka_unit_test(test_lm_spans_side_by_side),
        cmocka_unit_test(test_bounds_of_adverse_counters),
        cmocka_unit_test(test_bounds_of_gauges),
        cmocka_unit_test(test_34_shares),
        cmocka_unit_test(test_books_are_the_counter),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
