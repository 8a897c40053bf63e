#include "run/baseline.h"

#include <math.h>
#include <stdlib.h>

enum { SLOTS = 30 };
#define SLOT_LEAST_NS (100 * IPW_NS_PER_MS)

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

/* The median power of equal slots: a single burst does not count. */
static double median_w(const struct ipw_ledger *ledger, enum ipw_domain d, size_t device,
                       int64_t t0_ns, int64_t t1_ns)
{
    int64_t slot_ns = (t1_ns - t0_ns) / SLOTS;
    double watts[SLOTS];
    size_t n = 0;

    if (slot_ns < SLOT_LEAST_NS) slot_ns = SLOT_LEAST_NS;
    for (int64_t t = t0_ns; t + slot_ns <= t1_ns && n < SLOTS; t += slot_ns) {
        struct ipw_ledger_question q = {IPW_LEDGER_ANY,  d, device, t, t + slot_ns,
                                        IPW_LEDGER_TOTAL};
        struct ipw_figure f = ipw_ledger_figure(ledger, q);

        if (f.known) watts[n++] = f.j / ipw_ns_to_s(slot_ns);
    }
    if (!n) return NAN;
    qsort(watts, n, sizeof *watts, by_value);
    return (watts[(n - 1) / 2] + watts[n / 2]) / 2;
}

/* The baseline of a domain: the sum over its devices, each measured by itself, because a machine
 * can have different ones.  The devices' watts go to devices[IPW_RULE_DEVICES] and their number is
 * returned; 0 if there is only one, or if one is unknown. */
static size_t domain_w(const struct ipw_ledger *ledger, enum ipw_domain d, int64_t t0_ns,
                       int64_t t1_ns, double *sum, double *devices)
{
    size_t n = ipw_ledger_devices(ledger, d);

    *sum = n ? 0 : NAN;
    for (size_t i = 0; i < n; i++) {
        double watts = median_w(ledger, d, i, t0_ns, t1_ns);

        if (i < IPW_RULE_DEVICES) devices[i] = watts;
        *sum += watts;
    }
    return n > 1 && n <= IPW_RULE_DEVICES && !isnan(*sum) ? n : 0;
}

/* Waits for the time to pass, and for readings past its end. */
static void measure(struct ipw_sensors *s, struct ipw_ledger_rules *out)
{
    int64_t t0_ns = ipw_now_ns(), t1_ns = t0_ns + s->o->baseline_ns;
    int64_t give_up_ns = t1_ns + 3 * IPW_NS_PER_S;

    ipw_sensors_pass(s, t1_ns);
    while (ipw_ledger_covered_ns(s->ledger) < t1_ns && ipw_now_ns() < give_up_ns) {
        if (s->sampler) ipw_sampler_kick(s->sampler);
        ipw_sensors_pass(s, ipw_now_ns() + IPW_NS_PER_MS);
    }
    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) {
        out->n_device_baselines[d] = domain_w(s->ledger, (enum ipw_domain)d, t0_ns, t1_ns,
                                              &out->baseline_w[d], out->device_baseline_w[d]);
    }
}

void ipw_baseline_before(struct ipw_baseline *out, struct ipw_sensors *s)
{
    for (int d = 0; d < IPW_DOMAIN_COUNT; d++)
        out->domain[d] = (struct ipw_baseline_watts){NAN, NAN};
    if (!s->o->baseline_ns || !s->sampler) return;
    measure(s, &s->rules);
    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) out->domain[d].before_w = s->rules.baseline_w[d];
    ipw_ledger_rules_baseline(&s->rules, s->ledger);
}

void ipw_baseline_after(struct ipw_baseline *out, struct ipw_sensors *s)
{
    struct ipw_ledger_rules after = IPW_LEDGER_RULES_NONE;

    if (!s->o->baseline_ns || !s->sampler) return;
    measure(s, &after);
    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) out->domain[d].after_w = after.baseline_w[d];
}
