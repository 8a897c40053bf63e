/* base/clock.h: the one clock.
 *
 * Every duration and every window is cut with CLOCK_MONOTONIC, in nanoseconds, as int64_t (292
 * years).  The wall clock is only a label: one anchor, taken when a run starts, maps monotonic
 * instants to dates, so that a clock step during a run changes no figure.  0 stands for "not
 * known" in every time stamp field of the program. */
#ifndef IPW_BASE_CLOCK_H
#define IPW_BASE_CLOCK_H

#include <stddef.h>
#include <stdint.h>

#define IPW_NS_PER_S  INT64_C(1000000000)
#define IPW_NS_PER_MS INT64_C(1000000)
#define IPW_NS_PER_US INT64_C(1000)

struct ipw_anchor {
    int64_t mono_ns; /* CLOCK_MONOTONIC */
    int64_t wall_ns; /* CLOCK_REALTIME, since 1970 */
    int64_t boot_ns; /* CLOCK_BOOTTIME: runs on while the machine sleeps */
};

int64_t ipw_now_ns(void);        /* CLOCK_MONOTONIC */
int64_t ipw_cpu_self_ns(void);   /* CPU time of this process, all threads, children not included */
int64_t ipw_cpu_thread_ns(void); /* CPU time of the calling thread */
void ipw_anchor_take(struct ipw_anchor *anchor);
int64_t ipw_anchor_wall_ns(const struct ipw_anchor *anchor, int64_t mono_ns);

/* "2026-11-21T02:31:07.123Z" into at least 32 bytes; returns `out`. */
char *ipw_clock_iso8601(char *out, size_t size, int64_t wall_ns);
/* "20261121-023107", UTC, for folder names. */
char *ipw_clock_compact(char *out, size_t size, int64_t wall_ns);

static inline double ipw_ns_to_s(int64_t ns) { return (double)ns / 1e9; }
/* Rounded; beyond int64 its nearest end, and 0 for NaN. */
static inline int64_t ipw_s_to_ns(double s)
{
    double ns = s * 1e9 + (s < 0 ? -0.5 : 0.5);

    if (ns >= 0x1p63) return INT64_MAX;
    if (ns < -0x1p63) return INT64_MIN;
    return ns == ns ? (int64_t)ns : 0;
}

#endif
