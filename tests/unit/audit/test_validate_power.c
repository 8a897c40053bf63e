/* What the readings of a run allow its figures to say: a counter that never moved has measured
 * nothing, unless the gauge of its device stands in for it, or says that the device sleeps. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "audit/validate_power.h"
#include "base/clock.h"
#include "unit/unit.h"

/* A board: its counter in the sum, and its gauge beside it. */
static struct ipw_channel channels[2];
static struct ipw_power_source source = {.n = 2, .name = "nvml"};
static int64_t values[2];

static struct ipw_power_reader power(bool with_gauge)
{
    channels[0] = (struct ipw_channel){.name = "gpu0", .device = "GPU-1", .in_sum = true};
    channels[1] = (struct ipw_channel){.name = "gpu0/power", .device = "GPU-1"};
    channels[0].kind = IPW_CHANNEL_COUNTER;
    channels[1].kind = with_gauge ? IPW_CHANNEL_GAUGE : IPW_CHANNEL_METRIC;
    return (struct ipw_power_reader){.channels = channels,
                                     .n_channels = 2,
                                     .sources = &source,
                                     .n_sources = 1,
                                     .values = values};
}

static void read_session(struct ipw_still_list *l, struct ipw_power_reader *p, int rows,
                         int64_t step_uj, int64_t gauge_mw)
{
    ipw_still_begin(l, p);
    for (int i = 0; i < rows; i++) {
        p->t_ns = (10 + i) * 100 * IPW_NS_PER_MS;
        values[0] = i == 3 ? IPW_NO_VALUE : 5000 + i * step_uj; /* one that failed */
        values[1] = gauge_mw;
        ipw_still_row(l, p);
    }
    ipw_still_end(l, p);
}

static int check(const struct ipw_still_list *l, const char *text, struct ipw_err *err)
{
    struct ipw_json *doc;
    int rc;

    assert_int_equal(ipw_json_parse(&doc, text, strlen(text), NULL, err), 0);
    rc = ipw_still_check(l, doc, err);
    ipw_json_free(doc);
    return rc;
}

static void what_may_be_known(void **state)
{
    static const char zero[] = "{\"segment\":0,\"energy\":{\"gpu\":{\"joules\":0.0}}}";
    static const char some[] = "{\"segment\":0,\"energy\":{\"gpu\":{\"joules\":12.5}}}";
    static const char none[] = "{\"segment\":0,\"energy\":{\"gpu\":{\"joules\":null}}}";
    static const char later[] = "{\"segment\":1,\"energy\":{\"gpu\":{\"joules\":12.5}}}";
    static const char other[] = "{\"segment\":0,\"energy\":{\"cpu\":{\"joules\":12.5}}}";
    static const struct {
        int rows;
        int64_t step_uj;
        bool gauge;
        int64_t gauge_mw;
        bool zero, some;
    } rows[] = {
        {30, 3000000, false, 0, true, true},      /* it moves */
        {30, 3000000, true, 60000, false, false}, /* its gauge says twice as much */
        {30, 100, false, 0, false, false},        /* 1 mW */
        {30, 0, false, 0, false, false},          /* it does not */
        {30, 0, true, 207000, false, true},       /* the gauge stands in */
        {30, 0, true, 0, true, true},             /* it sleeps */
        {30, 0, true, IPW_NO_VALUE, false, false},
        {5, 0, false, 0, true, true}, /* too short to tell */
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct ipw_power_reader p = power(rows[i].gauge);
        struct ipw_still_list l = {0};
        struct ipw_err err = {0};

        read_session(&l, &p, rows[i].rows, rows[i].step_uj, rows[i].gauge_mw);
        p.segment = 1; /* of another session it moves */
        read_session(&l, &p, 30, 3000000, 0);
        assert_int_equal(check(&l, zero, &err), rows[i].zero ? 0 : IPW_EPARSE);
        assert_int_equal(check(&l, some, &err), rows[i].some ? 0 : IPW_EPARSE);
        if (!rows[i].some)
            assert_non_null(
                strstr(err.text, "energy.gpu.joules: 12.5, but by power.jsonl 'gpu0' "));
        if (!rows[i].some) assert_non_null(strstr(err.text, ": not believed"));
        assert_int_equal(check(&l, none, &err), 0);
        assert_int_equal(check(&l, later, &err), 0);
        assert_int_equal(check(&l, other, &err), 0);
        ipw_still_release(&l);
    }
}

UNIT(validate_power)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_may_be_known)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
