/* Devices that go while the sampler reads them. */
#include <stdatomic.h>

#include "energy/sampler.h"

#include "unit/energy/energy_test.h"
#include "unit/unit.h"

/* A clock that jumps to where somebody waits for. */
static int64_t clock_now(void *clock) { return atomic_fetch_add((atomic_llong *)clock, 1); }

static void clock_sleep(void *clock, int64_t t_ns)
{
    if (t_ns > atomic_load((atomic_llong *)clock)) atomic_store((atomic_llong *)clock, t_ns);
}

/* Gone in the readings 3 to 5 and from 8 on; in the reading 6 it is there and has no value. */
struct losing {
    struct ipw_source source;
    struct ipw_channel channels[2];
    bool lost[2];
    int64_t reads;
};

static void losing_read(struct ipw_source *self, int64_t *values)
{
    struct losing *f = (struct losing *)self;
    int64_t i = f->reads++;
    bool lost = (i >= 3 && i <= 5) || i >= 8;

    f->lost[1] = lost;
    values[0] = i;
    values[1] = lost || i == 6 ? IPW_NO_VALUE : 100 + i;
}

struct told {
    char text[200];
    int64_t rows;
};

static void on_loss(void *ud, const struct ipw_sampler_loss *loss)
{
    struct told *told = ud;
    size_t used = strlen(told->text);

    assert_int_equal(loss->source, 0);
    assert_int_equal(loss->channel, 1);
    snprintf(told->text + used, sizeof told->text - used, "%s %lld; ", loss->back ? "back" : "lost",
             (long long)told->rows);
}

static void see_losing(void *ud, const struct ipw_sampler_row *row)
{
    struct told *told = ud;
    int64_t i = told->rows++;

    assert_int_equal(row->values[0], i);
    assert_true(row->values[1] == 100 + i || row->values[1] == IPW_NO_VALUE);
}

/* Case 13: each loss and each return is told once, before the row that shows it. */
static void test_13_losses_are_told(void **state)
{
    struct losing f = {
        .source = {.name = "nvml", .read = losing_read, .n_channels = 2, .period_ns = 1}};
    atomic_llong clock = S(100);
    struct ipw_source_set set = {.n = 1};
    struct ipw_sampler *s;
    struct told told = {0};
    struct ipw_sampler_options o = {.interval_ns = S(0.02),
                                    .loss = on_loss,
                                    .ud = &told,
                                    .now = clock_now,
                                    .sleep_until = clock_sleep,
                                    .clock = &clock};
    int64_t give_up = ipw_now_ns() + S(100);

    (void)state;
    f.source.channels = f.channels;
    f.source.lost = f.lost;
    set.sources[0] = &f.source;
    assert_int_equal(ipw_sampler_start(&s, &set, &o, NULL), 0);
    while (told.rows < 12 && ipw_now_ns() < give_up) ipw_sampler_drain(s, see_losing, &told);
    ipw_sampler_stop(s);
    ipw_sampler_drain(s, see_losing, &told);
    assert_true(told.rows >= 12);
    assert_string_equal(told.text, "lost 3; back 7; lost 8; ");
    ipw_sampler_free(s);
}

UNIT(sampler_loss)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_13_losses_are_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
