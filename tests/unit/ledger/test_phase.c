/* The phases over time, and the watts that a fit finds for them. */
#include <math.h>

#include "ledger/phase.h"
#include "unit/energy/energy_test.h"
#include "unit/unit.h"

static void counts_over_time(void **state)
{
    struct ipw_phase_line line = {0};

    (void)state;
    assert_true(ipw_phase_line_find(&line, S(1)) == SIZE_MAX);
    ipw_phase_line_add(&line, IPW_PHASE_DECODE, S(1), S(3), 1);
    ipw_phase_line_add(&line, IPW_PHASE_TOOL, S(2), INT64_MAX, 1);
    ipw_phase_line_add(&line, IPW_PHASE_DECODE, S(2.5), S(4), 1);
    ipw_phase_line_add(&line, IPW_PHASE_TOOL, S(3.5), INT64_MAX, -1);
    ipw_phase_line_add(&line, IPW_PHASE_TOOL, S(3), S(3), 1);    /* of no length */
    ipw_phase_line_add(&line, IPW_PHASE_COUNT, S(3), S(3.2), 1); /* none of the phases */
    assert_int_equal(line.n, 6);
    assert_true(ipw_phase_line_find(&line, S(0.9)) == SIZE_MAX);
    assert_int_equal(ipw_phase_line_find(&line, S(1)), 0);
    assert_int_equal(ipw_phase_line_find(&line, S(2.49)), 1);
    assert_int_equal(ipw_phase_line_find(&line, S(2.5)), 2);
    assert_int_equal(ipw_phase_line_find(&line, S(9)), 5);
    for (size_t i = 0; i < 6; i++) {
        static const int32_t decode[] = {1, 1, 2, 1, 1, 0}, tool[] = {0, 1, 1, 1, 0, 0};

        assert_int_equal(line.points[i].count[IPW_PHASE_DECODE], decode[i]);
        assert_int_equal(line.points[i].count[IPW_PHASE_TOOL], tool[i]);
    }
    ipw_phase_line_trim(&line, S(9)); /* too few to move */
    assert_int_equal(line.n, 6);
    for (int i = 0; i < 200; i++)
        ipw_phase_line_add(&line, IPW_PHASE_WAIT, S(10 + i), S(10.5 + i), 1);
    ipw_phase_line_trim(&line, S(150.2));
    assert_true(line.n < 200 && line.points[0].t_ns <= S(150.2) && line.points[1].t_ns > S(150.2));
    assert_int_equal(line.points[0].count[IPW_PHASE_WAIT], 1);
    ipw_phase_line_release(&line);
    assert_true(line.n == 0 && !line.points);
}

/* Steps of 0.1 s in turn without a query, in prefill, in decode, and with a tool: 50, 400, 300 and
 * 80 W. */
static void watts_of_phases(void **state)
{
    static const int32_t one_decode[IPW_PHASE_COUNT] = {[IPW_PHASE_DECODE] = 1};
    static const int32_t four_calls[IPW_PHASE_COUNT] = {
        [IPW_PHASE_DECODE] = 3, [IPW_PHASE_PREFILL] = 1};
    static const int watts[] = {50, 400, 300, 80};
    static const enum ipw_phase phases[] = {IPW_PHASE_COUNT, IPW_PHASE_PREFILL, IPW_PHASE_DECODE,
                                            IPW_PHASE_TOOL};
    struct ipw_phase_fit fit = {.most_w = 350};
    struct ipw_phase_line line = {0};
    struct ipw_phase_point crowd = {.count = {[IPW_PHASE_TOOL] = 99}};

    (void)state;
    for (int i = 0; i < 400; i++)
        if (i % 4) ipw_phase_line_add(&line, phases[i % 4], S(i * 0.1), S(i * 0.1 + 0.1), 1);
    assert_false(ipw_phase_fit_knows(&fit));
    for (int i = 0; i < 400; i++)
        ipw_phase_fit_add(&fit, &line, S(i * 0.1), S(i * 0.1 + 0.1), watts[i % 4] * J(0.1));
    ipw_phase_fit_add(&fit, &line, S(7), S(7), J(1)); /* of no length */
    assert_int_equal(fit.steps, 400);
    ipw_phase_fit_solve(&fit);
    assert_near(ipw_phase_fit_base_w(&fit), 50, 10);
    assert_near(ipw_phase_fit_w(&fit, NULL), ipw_phase_fit_base_w(&fit), 0);
    for (int k = 1; k < 4; k++)
        assert_near(ipw_phase_fit_w(&fit, &line.points[ipw_phase_line_find(&line, S(k * 0.1))]),
                    fmin(watts[k], 350), 25);
    assert_true(ipw_phase_fit_w(&fit, &crowd) == 350); /* no more than the device can draw */
    assert_near(ipw_phase_fit_part_w(&fit, IPW_PHASE_DECODE, one_decode) +
                    ipw_phase_fit_base_w(&fit),
                300, 10);
    /* What any call draws is one part for all calls. */
    assert_near(ipw_phase_fit_part_w(&fit, IPW_PHASE_DECODE, one_decode) -
                    ipw_phase_fit_part_w(&fit, IPW_PHASE_DECODE, four_calls),
                0.75 * fit.w[1], 1e-9);
    assert_near(ipw_phase_fit_part_w(&fit, IPW_PHASE_TOOL, four_calls),
                ipw_phase_fit_part_w(&fit, IPW_PHASE_TOOL, one_decode), 0);
    ipw_phase_line_release(&line);
}

/* As many steps as terms: a base, and each phase that was seen; not one less. */
static void when_a_fit_knows(void **state)
{
    struct ipw_phase_fit fit = {.most_w = 900};
    struct ipw_phase_line line = {0};

    (void)state;
    ipw_phase_line_add(&line, IPW_PHASE_DECODE, S(0), S(10), 1);
    ipw_phase_line_add(&line, IPW_PHASE_TOOL, S(0), S(10), 1);
    for (int i = 0; i < 3; i++) {
        assert_false(ipw_phase_fit_knows(&fit));
        ipw_phase_fit_add(&fit, &line, S(i), S(i + 1), J(200));
    }
    assert_true(ipw_phase_fit_knows(&fit));
    ipw_phase_line_release(&line);
}

/* Two minutes later a step weighs a third: the fit follows a device that warms up. */
static void old_steps_fade(void **state)
{
    struct ipw_phase_fit fit = {.most_w = 900};
    struct ipw_phase_line line = {0};

    (void)state;
    ipw_phase_line_add(&line, IPW_PHASE_TOOL, S(0), S(0.1), 1);
    for (int i = 0; i < 600; i++)
        ipw_phase_fit_add(&fit, &line, S(i), S(i + 1), i < 300 ? J(100) : J(200));
    ipw_phase_fit_solve(&fit);
    assert_true(ipw_phase_fit_base_w(&fit) > 185 && ipw_phase_fit_base_w(&fit) < 200);
    ipw_phase_line_release(&line);
}

UNIT(phase)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_over_time),
        cmocka_unit_test(watts_of_phases),
        cmocka_unit_test(when_a_fit_knows),
        cmocka_unit_test(old_steps_fade),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
