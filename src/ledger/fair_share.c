#include "ledger/fair_share.h"

/* Gauss-Legendre quadrature of eight points on [-1, 1]; the other four are their negatives. */
static const double nodes[4] = {0.1834346424956498, 0.5255324099163290, 0.7966664774136267,
                                0.9602898564975363};
static const double node_weights[4] = {0.3626837833783620, 0.3137066458778873, 0.2223810344533745,
                                       0.1012285362903763};

/* Beyond this share of the way the product is below e^-37, which adds nothing. */
#define FAR 37.0

static double power(double x, int32_t n)
{
    double y = 1;

    for (; n > 0; n >>= 1, x *= x) {
        if (n & 1) y *= x;
    }
    return y;
}

/* Adds each phase's part of the integral over [from, to]. */
static void add_panel(const double *r, const int32_t *count, double from, double to, double *sums)
{
    for (int k = 0; k < 8; k++) {
        double x = k < 4 ? nodes[k] : -nodes[k - 4];
        double u = (from + to) / 2 + (to - from) / 2 * x;
        double all = node_weights[k % 4] * (to - from) / 2;

        for (int p = 0; p < IPW_PHASE_COUNT; p++) all *= power(1 - u * r[p], count[p]);
        for (int p = 0; p < IPW_PHASE_COUNT; p++) {
            if (count[p] > 0) sums[p] += all / (1 - u * r[p]);
        }
    }
}

void ipw_fair_weights(const struct ipw_fair *fair, const int32_t count[IPW_PHASE_COUNT],
                      double weights[IPW_PHASE_COUNT])
{
    double r[IPW_PHASE_COUNT], load = 0, end;

    for (int p = 0; p < IPW_PHASE_COUNT; p++) {
        weights[p] = 0;
        r[p] = fair->cap_w > 0 ? fair->single_w[p] / fair->cap_w : 0;
        if (r[p] > 0.999) r[p] = 0.999;
        load += r[p] * count[p];
    }
    /* With many queries in flight most of the integral lies near 0. */
    end = load > FAR ? FAR / load : 1;
    add_panel(r, count, 0, end / 8, weights);
    add_panel(r, count, end / 8, end, weights);
    for (int p = 0; p < IPW_PHASE_COUNT; p++) weights[p] *= fair->single_w[p];
}
