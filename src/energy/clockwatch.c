#include "energy/clockwatch.h"

#define STEP_NS    IPW_NS_PER_MS
#define SUSPEND_NS (10 * IPW_NS_PER_MS)
#define ATOMIC_NS  INT64_C(50000) /* all three clocks were read within this time */
#define TRIES      5

bool ipw_clockwatch_look(struct ipw_clockwatch *w, const struct ipw_anchor *now,
                         struct ipw_clock_moves *out)
{
    int64_t step, sleep;

    *out = (struct ipw_clock_moves){.from_ns = w->last.mono_ns, .to_ns = now->mono_ns};
    if (!w->seen) {
        w->seen = true;
        w->last = *now;
        return false;
    }
    sleep = (now->boot_ns - now->mono_ns) - (w->last.boot_ns - w->last.mono_ns);
    /* Realtime also runs while the machine sleeps; that alone is not a step. */
    step = (now->wall_ns - now->boot_ns) - (w->last.wall_ns - w->last.boot_ns);
    w->last = *now;
    if (sleep > SUSPEND_NS) out->suspend_ns = sleep;
    if (step > STEP_NS || step < -STEP_NS) out->step_ns = step;
    return out->step_ns || out->suspend_ns;
}

bool ipw_clockwatch_take(struct ipw_anchor *now)
{
    for (int i = 0; i < TRIES; i++) {
        int64_t before = ipw_now_ns();

        ipw_anchor_take(now);
        if (ipw_now_ns() - before <= ATOMIC_NS) return true;
    }
    return false;
}
