/* The idle machine before and after the run, and whose devices are measured. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "io/url.h"
#include "run/run.h"

enum { SLOTS = 30 };
#define SLOT_LEAST_NS (100 * IPW_NS_PER_MS)

static void stop_loop(void *loop) { ipw_loop_stop(loop); }

/* Lets the sensors run; nothing else is in flight. */
static void wait_until(struct ipw_run *run, int64_t t_ns)
{
    while (ipw_now_ns() < t_ns) {
        int64_t left_ns = t_ns - ipw_now_ns();

        ipw_timer_start(run->loop, left_ns > 20 * IPW_NS_PER_MS ? 20 * IPW_NS_PER_MS : left_ns + 1,
                        stop_loop, run->loop);
        ipw_loop_run(run->loop);
        ipw_run_sampled(run);
    }
}

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

/* Of a domain: the sum of its devices', each by itself: a rack holds boards of many kinds.  What the
 * devices draw goes to devices[IPW_RULE_DEVICES] and their number is returned: 0 when there is but
 * one, or one of them is not known. */
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

/* Waits the time out, and until the samples have passed its end. */
static void measure(struct ipw_run *run, struct ipw_ledger_rules *out)
{
    int64_t t0_ns = ipw_now_ns(), t1_ns = t0_ns + run->o->baseline_ns;
    int64_t give_up_ns = t1_ns + 3 * IPW_NS_PER_S;

    wait_until(run, t1_ns);
    while (ipw_ledger_covered_ns(run->ledger) < t1_ns && ipw_now_ns() < give_up_ns) {
        if (run->sampler) ipw_sampler_kick(run->sampler);
        wait_until(run, ipw_now_ns() + IPW_NS_PER_MS);
    }
    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) {
        out->n_device_baselines[d] = domain_w(run->ledger, (enum ipw_domain)d, t0_ns, t1_ns,
                                              &out->baseline_w[d], out->device_baseline_w[d]);
    }
}

void ipw_run_baseline_before(struct ipw_run *run)
{
    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) {
        run->baseline[d] = (struct ipw_baseline_watts){NAN, NAN};
    }
    if (!run->o->baseline_ns || !run->sampler) return;
    measure(run, &run->ledger_facts);
    for (int d = 0; d < IPW_DOMAIN_COUNT; d++)
        run->baseline[d].before_w = run->ledger_facts.baseline_w[d];
    ipw_ledger_rules_baseline(&run->ledger_facts, run->ledger);
}

void ipw_run_baseline_after(struct ipw_run *run)
{
    struct ipw_ledger_rules after = IPW_LEDGER_RULES_NONE;

    if (!run->o->baseline_ns || !run->sampler || run->interrupted || run->err.code) return;
    measure(run, &after);
    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) run->baseline[d].after_w = after.baseline_w[d];
}

int ipw_run_share(enum ipw_share *out, const struct ipw_run *run, struct ipw_err *err)
{
    const struct ipw_json *config = ipw_json_get(run->history.manifest, "config");
    const char *begun = ipw_json_str(ipw_json_get(config, "share"), "phase");

    return ipw_share_parse(out, run->o->share ? run->o->share : begun, err);
}

int ipw_run_where(bool *lm_remote, const struct ipw_run *run, struct ipw_err *err)
{
    const char *word = run->o->energy;

    if (!strcmp(word, "auto")) {
        *lm_remote = !run->demo && run->base_url && !ipw_url_is_local(run->base_url);
        for (size_t i = 1; !run->demo && run->llm && i < ipw_llm_n_urls(run->llm); i++) {
            *lm_remote |= !ipw_url_is_local(ipw_llm_url_at(run->llm, i));
        }
        return 0;
    }
    *lm_remote = !strcmp(word, "remote");
    if (*lm_remote || !strcmp(word, "local")) return 0;
    return ipw_fail(err, IPW_EINVAL, "--model-host %.40s: expected auto, local or remote", word);
}
