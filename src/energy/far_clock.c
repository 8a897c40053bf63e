#include "energy/far_clock.h"

#include <stdlib.h>
#include <string.h>

/* Clocks and offsets are below 2^61 ns (73 years), so that no sum overflows. */
#define MOST_NS (INT64_C(1) << 61)

static int64_t drift_ns(int64_t apart_ns)
{
    return llabs(apart_ns) / (1000000 / IPW_FAR_CLOCK_PPM) + 1;
}

/* The bounds that all round trips give together at a far instant; false: they contradict. */
static bool bounds_at(const struct ipw_far_clock *c, int64_t far_ns, int64_t *lo, int64_t *hi)
{
    *lo = INT64_MIN;
    *hi = INT64_MAX;
    for (size_t i = 0; i < c->n; i++) {
        int64_t widen = drift_ns(far_ns - c->trips[i].far_ns);

        if (c->trips[i].lo_ns - widen > *lo) *lo = c->trips[i].lo_ns - widen;
        if (c->trips[i].hi_ns + widen < *hi) *hi = c->trips[i].hi_ns + widen;
    }
    return *lo <= *hi;
}

bool ipw_far_clock_add(struct ipw_far_clock *c, int64_t sent_ns, int64_t far_ns, int64_t back_ns)
{
    int64_t lo, hi, middle;

    if (back_ns < sent_ns || sent_ns < 0 || far_ns < 0 || back_ns > MOST_NS || far_ns > MOST_NS)
        return false;
    if (c->n == IPW_FAR_CLOCK_TRIPS) {
        memmove(c->trips, c->trips + 1, (IPW_FAR_CLOCK_TRIPS - 1) * sizeof *c->trips);
        c->n--;
    }
    c->trips[c->n].far_ns = far_ns;
    c->trips[c->n].lo_ns = sent_ns - far_ns;
    c->trips[c->n++].hi_ns = back_ns - far_ns;
    if (!bounds_at(c, far_ns, &lo, &hi)) {
        c->trips[0] = c->trips[c->n - 1];
        c->n = 1;
        c->steps++;
        bounds_at(c, far_ns, &lo, &hi);
    }
    middle = lo + (hi - lo) / 2;
    /* Moves slowly towards the middle, so that neighbouring readings keep their distance. */
    if (c->n == 1) c->offset_ns = middle;
    c->offset_ns += (middle - c->offset_ns) / 8;
    if (c->offset_ns < lo) c->offset_ns = lo;
    if (c->offset_ns > hi) c->offset_ns = hi;
    return true;
}

bool ipw_far_clock_at(const struct ipw_far_clock *c, int64_t far_ns, int64_t *here_ns,
                      int64_t *half_ns)
{
    int64_t lo, hi, offset = c->offset_ns;

    if (!c->n || far_ns < 0 || far_ns > MOST_NS) return false;
    if (!bounds_at(c, far_ns, &lo, &hi)) return false;
    if (offset < lo) offset = lo;
    if (offset > hi) offset = hi;
    *here_ns = far_ns + offset;
    *half_ns = hi - offset > offset - lo ? hi - offset : offset - lo;
    return true;
}
