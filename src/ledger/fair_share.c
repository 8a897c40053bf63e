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

struct load { /* of the phases that queries are in */
    int n, phase[IPW_PHASE_COUNT];
    int32_t count[IPW_PHASE_COUNT];
    double r[IPW_PHASE_COUNT];
};

/* Adds each phase's part of the integral over [from, to]. */
static void add_panel(const struct load *load, double from, double to, double *sums)
{
    for (int k = 0; k < 8; k++) {
        double x = k < 4 ? nodes[k] : -nodes[k - 4];
        double u = (from + to) / 2 + (to - from) / 2 * x;
        double all = node_weights[k % 4] * (to - from) / 2, left[IPW_PHASE_COUNT];

        for (int i = 0; i < load->n; i++) {
            left[i] = 1 - u * load->r[i];
            all *= power(left[i], load->count[i]);
        }
        for (int i = 0; i < load->n; i++) sums[load->phase[i]] += all / left[i];
    }
}

void ipw_fair_weights(const struct ipw_fair *fair, const int32_t count[IPW_PHASE_COUNT],
                      double weights[IPW_PHASE_COUNT])
{
    struct load load = {.n = 0};
    double sum = 0, end;

    for (int p = 0; p < IPW_PHASE_COUNT; p++) {
        double r = fair->cap_w > 0 ? fair->single_w[p] / fair->cap_w : 0;

        weights[p] = 0;
        if (count[p] <= 0) continue;
        if (r > 0.999) r = 0.999;
        sum += r * count[p];
        load.phase[load.n] = p;
        load.count[load.n] = count[p];
        load.r[load.n++] = r;
    }
    /* With many queries in flight most of the integral lies near 0. */
    end = sum > FAR ? FAR / sum : 1;
    add_panel(&load, 0, end / 8, weights);
    add_panel(&load, end / 8, end, weights);
    for (int p = 0; p < IPW_PHASE_COUNT; p++) weights[p] *= fair->single_w[p];
}
