/* What the tests of the energy floor share: short names for cmocka's prelude, channels, figures. */
#ifndef IPW_TESTS_UNIT_ENERGY_H
#define IPW_TESTS_UNIT_ENERGY_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "ledger/series.h"

#define S(x) ((int64_t)((x)*1e9 + 0.5)) /* seconds to nanoseconds */
#define J(x) ((int64_t)((x)*1e6 + 0.5)) /* joules to microjoules */

#define RANGE_61 INT64_C(262143328850) /* what the kernel says for a 61.035 uJ unit */
#define RANGE_15 INT64_C(65532610987)  /* and for 15.258 uJ */

/* It counts all the time: what is read held when it was read. */
static inline struct ipw_channel test_counter(const char *name, enum ipw_domain domain,
                                              int64_t modulus_uj, int64_t max_w)
{
    struct ipw_channel c = {.domain = domain,
                            .kind = IPW_CHANNEL_COUNTER,
                            .modulus_uj = modulus_uj,
                            .max_w = max_w,
                            .period_ns = 1,
                            .in_sum = true};

    snprintf(c.name, sizeof c.name, "%s", name);
    return c;
}

static inline struct ipw_channel test_gauge(const char *name, int64_t max_w)
{
    struct ipw_channel c = test_counter(name, IPW_DOMAIN_GPU, 0, max_w);

    c.kind = IPW_CHANNEL_GAUGE;
    c.period_ns = 0;
    return c;
}

#define assert_near(a, b, tolerance)                                                               \
    do {                                                                                           \
        double near_a = (a), near_b = (b);                                                         \
        if (!(fabs(near_a - near_b) <= (tolerance)))                                               \
            fail_msg("%s is %.9g, not %.9g", #a, near_a, near_b);                                  \
    } while (0)

static inline void assert_figure(struct ipw_figure f, double j, enum ipw_provenance p)
{
    if (!f.known) fail_msg("not known: %s", f.reason);
    assert_near(f.j, j, 1.5e-6);
    assert_string_equal(ipw_provenance_name(f.provenance), ipw_provenance_name(p));
    assert_null(f.reason);
}

static inline void assert_unknown(struct ipw_figure f, const char *reason)
{
    if (f.known) fail_msg("known: %.9g J", f.j);
    assert_int_equal(f.provenance, IPW_PROV_NONE);
    assert_true(f.j == 0);
    assert_string_equal(f.reason, reason);
}

/* A small generator of its own, so that a seed means the same everywhere. */
static inline uint32_t test_random(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(*state >> 33);
}

static inline double test_uniform(uint64_t *state, double lo, double hi)
{
    return lo + (hi - lo) * (double)test_random(state) / 2147483648.0;
}

#endif
