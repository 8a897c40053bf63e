/* The sensors of another machine over a link that is slow and breaks: joules stay within bounds,
 * and none is counted twice. */
#include "unit/energy/far_world.h"
#include "unit/unit.h"

/* 200 ms on either way, a clock that drifts by 100 ppm, a short and a long break. */
static void slow_drifting_and_cut(void **state)
{
    struct ipw_figure all;
    double truth;

    (void)state;
    for (int sign = -1; sign <= 1; sign += 2) {
        far_begins(100 * sign, 200 * MS, 40 * MS);
        w.cuts[0] = (struct cut){10, 12};
        w.cuts[1] = (struct cut){30, 50};
        assert_int_equal(begin(&me.err), 0);
        run_until(90);
        for (double t = 5; t < 85; t += 0.7) assert_true_within(IPW_DOMAIN_CPU, t, t + 1.5);
        for (double t = 5; t < 28; t += 0.7) assert_true_within(IPW_DOMAIN_GPU, t, t + 1.5);
        for (double t = 55; t < 85; t += 0.7) assert_true_within(IPW_DOMAIN_GPU, t, t + 1.5);
        /* The counter's joules of the long break are kept, the gauge's are unknown. */
        all = joules(IPW_DOMAIN_CPU, 5, 85);
        truth = sim_curve_j(&w.curve, 85) - sim_curve_j(&w.curve, 5);
        assert_near(all.j, truth, 2 * 400 * 0.25);
        assert_near(all.hi_j - all.lo_j, 0, 4 * 400 * 0.25);
        assert_int_equal(joules(IPW_DOMAIN_GPU, 5, 85).known, false);
        assert_string_equal(joules(IPW_DOMAIN_GPU, 35, 40).reason, "lost");
        assert_true(w.opens >= 3);
        end();
    }
}

/* A fast link: nothing is lost, and times are known to a millisecond or so. */
static void every_reading_comes_once(void **state)
{
    struct ipw_figure f;

    (void)state;
    far_begins(100, MS / 5, MS / 10);
    w.cuts[0] = (struct cut){4, 5.5};
    assert_int_equal(begin(&me.err), 0);
    run_until(20);
    assert_int_equal(me.marks, 0);
    assert_in_range(me.rows, w.n_rows - 12, w.n_rows);
    f = joules(IPW_DOMAIN_CPU, 2, 18);
    assert_near(f.j, sim_curve_j(&w.curve, 18) - sim_curve_j(&w.curve, 2), 400 * 0.004);
    assert_true(f.hi_j - f.lo_j < 4 * 400 * 0.004);
    assert_int_equal(f.provenance, IPW_PROV_MEASURED);
    end();
}

static void far_side_begins_anew(const char *boot, const char *instance)
{
    w.boot = boot;
    w.instance = instance;
    w.seq_zero = w.first_kept = w.n_rows;
    w.meter_zero = sim_curve_j(&w.curve, seconds(w.now));
    w.connected = false;
}

/* The kernel's counter goes on, the one of the process does not. */
static void far_process_restarts(void **state)
{
    (void)state;
    far_begins(100, 5 * MS, MS);
    assert_int_equal(begin(&me.err), 0);
    run_until(10);
    far_side_begins_anew("boot-1", "process-2");
    run_until(20);
    assert_true_within(IPW_DOMAIN_CPU, 5, 18);
    assert_string_equal(joules(IPW_DOMAIN_MACHINE, 5, 18).reason, "lost");
    assert_true_within(IPW_DOMAIN_MACHINE, 13, 18);
    end();
}

/* Its clock and all its counters begin anew: no jump is booked. */
static void far_machine_restarts(void **state)
{
    (void)state;
    far_begins(-100, 5 * MS, MS);
    assert_int_equal(begin(&me.err), 0);
    run_until(10);
    far_side_begins_anew("boot-2", "process-2");
    w.far_zero = S(3);
    w.far_from = w.now;
    w.sensors[PACKAGE].offset_uj = J(5000);
    run_until(20);
    assert_string_equal(joules(IPW_DOMAIN_CPU, 5, 18).reason, "lost");
    assert_true_within(IPW_DOMAIN_CPU, 13, 18);
    assert_true_within(IPW_DOMAIN_GPU, 13, 18);
    end();
}

/* Readings that nobody takes wait in a bounded queue, and then on the link. */
static void slow_reader(void **state)
{
    size_t reads, rows;

    (void)state;
    far_begins(0, MS, 0);
    assert_int_equal(begin(&me.err), 0);
    run_until(2);
    w.now += S(100);
    rows = me.rows;
    take(0);
    assert_in_range(me.rows - rows, IPW_STREAM_QUEUE / 2, IPW_STREAM_QUEUE);
    reads = w.reads; /* the other sensor's queue is full, so the link is left alone */
    take(0);
    assert_int_equal(w.reads, reads);
    run_until(105);
    assert_int_equal(me.marks, 0);
    assert_in_range(me.rows, w.n_rows - IPW_STREAM_QUEUE, w.n_rows);
    assert_true_within(IPW_DOMAIN_CPU, 1, 104);
    end();
}

/* The link never comes back: the readings fail, and the run goes on without the domain. */
static void dead_link(void **state)
{
    (void)state;
    far_begins(0, MS, 0);
    w.cuts[0] = (struct cut){8, 1e9};
    assert_int_equal(begin(&me.err), 0);
    run_until(60);
    assert_true_within(IPW_DOMAIN_CPU, 2, 7.5);
    assert_false(joules(IPW_DOMAIN_CPU, 7, 20).known);
    assert_true(ipw_ledger_covered_ns(me.ledger) == INT64_MAX ||
                ipw_ledger_covered_ns(me.ledger) > START + S(50));
    end();
}

static void addresses(void **state)
{
    static const char *const wrong[] = {
        "far:9440",       "https://far:9440",   "http://",
        "http:///stream", "http://me@far:9440", "http://far:9440/other"};
    struct ipw_source *s;
    struct ipw_err err;

    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        far_begins(0, MS, 0);
        assert_int_not_equal(
            ipw_stream_open(
                &s,
                &(struct ipw_source_place){.link = &far_link, .fetch = &far_fetch, .now = sim_now},
                wrong[i], &err),
            0);
        assert_true(err.code == IPW_EINVAL || err.code == IPW_EUNSUPPORTED); /* https */
        assert_null(s);
        end();
    }
}

UNIT(stream)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slow_drifting_and_cut),
        cmocka_unit_test(every_reading_comes_once),
        cmocka_unit_test(far_process_restarts),
        cmocka_unit_test(far_machine_restarts),
        cmocka_unit_test(slow_reader),
        cmocka_unit_test(dead_link),
        cmocka_unit_test(addresses),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
