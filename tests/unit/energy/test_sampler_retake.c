#include "energy/sampler.h"

#include <stdatomic.h>

#include "unit/energy/energy_test.h"
#include "unit/unit.h"

/* A clock that jumps to where somebody waits for. */
struct jump {
    atomic_llong t;
};

static int64_t jump_now(void *clock) { return atomic_fetch_add(&((struct jump *)clock)->t, 1); }

static void jump_sleep(void *clock, int64_t t_ns)
{
    struct jump *j = clock;

    if (atomic_load(&j->t) < t_ns) atomic_store(&j->t, t_ns);
}

/* A reading that is interrupted (the clock jumps within it) is taken again, and the row has the
 * time and the value of the one that was not; one that always takes so long is believed. */
struct hurdle {
    struct ipw_source source;
    struct ipw_channel channel;
    struct jump *jump;
    atomic_llong reads;
    int64_t at, n, pause; /* reads [at, at + n) are interrupted for so long */
};

static void hurdle_read(struct ipw_source *self, int64_t *values)
{
    struct hurdle *h = (struct hurdle *)self;
    int64_t read = atomic_fetch_add(&h->reads, 1);

    atomic_fetch_add(&h->jump->t, S(0.00001));
    if (read >= h->at && read < h->at + h->n) atomic_fetch_add(&h->jump->t, h->pause);
    values[0] = read;
}

struct hurdles {
    int64_t rows, retaken, widest_ns, last_value, skipped;
};

static void see_hurdles(void *ud, const struct ipw_sampler_row *row)
{
    struct hurdles *seen = ud;

    seen->rows++;
    if (row->half_ns > seen->widest_ns) seen->widest_ns = row->half_ns;
    seen->skipped += row->values[0] - seen->last_value - 1;
    seen->retaken += row->values[0] != seen->last_value + 1;
    seen->last_value = row->values[0];
}

static struct hurdles jump_hurdles(int64_t at, int64_t n, int64_t pause, bool retake)
{
    struct jump jump = {.t = S(100)};
    struct hurdle h = {
        .source = {.name = "rapl", .read = hurdle_read, .n_channels = 1, .period_ns = 1},
        .jump = &jump,
        .at = at,
        .n = n,
        .pause = pause};
    struct ipw_source_set set = {.n = 1, .sources = {&h.source}};
    struct ipw_sampler_options o = {.interval_ns = S(0.01),
                                    .retake = retake,
                                    .now = jump_now,
                                    .sleep_until = jump_sleep,
                                    .clock = &jump};
    struct hurdles seen = {.last_value = -1};
    int64_t give_up = ipw_now_ns() + S(60);
    struct ipw_sampler *s;

    h.source.channels = &h.channel;
    assert_int_equal(ipw_sampler_start(&s, &set, &o, NULL), 0);
    while (seen.rows < 500 && ipw_now_ns() < give_up) ipw_sampler_drain(s, see_hurdles, &seen);
    assert_true(seen.rows >= 500);
    ipw_sampler_stop(s);
    ipw_sampler_free(s);
    return seen;
}

static void test_interrupted_readings_are_taken_again(void **state)
{
    struct hurdles seen = jump_hurdles(100, 1, S(0.03), true);

    (void)state;
    assert_int_equal(seen.skipped, 1);
    assert_int_equal(seen.retaken, 1);
    assert_true(seen.widest_ns >= S(0.015)); /* what it took in all is still told */
    seen = jump_hurdles(100, 2, S(0.03), true);
    assert_int_equal(seen.skipped, 2);
    assert_int_equal(seen.retaken, 1);
    /* Slow for good: two tries too many each time, until the new duration is known. */
    seen = jump_hurdles(100, INT64_C(1) << 40, S(0.001), true);
    assert_true(seen.retaken > 0 && seen.retaken < 100);
    assert_int_equal(seen.skipped, 2 * seen.retaken);
    seen = jump_hurdles(100, 1, S(0.03), false);
    assert_int_equal(seen.skipped, 0);
}

UNIT(sampler_retake)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_interrupted_readings_are_taken_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
