/* base/clock.h: the program's clock.
 *
 * Every duration and every window is measured with CLOCK_MONOTONIC, in nanoseconds, as int64_t (292
 * years).  The wall clock is only a label.  One anchor, taken when a run starts, maps monotonic
 * instants to dates, so a clock step during a run changes no value.  0 means "unknown" in every
 * time stamp of the program. */
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
    int64_t boot_ns; /* CLOCK_BOOTTIME: also counts while the machine sleeps */
};

int64_t ipw_now_ns(void);        /* CLOCK_MONOTONIC */
int64_t ipw_cpu_self_ns(void);   /* CPU time of all threads of this process, without its children */
int64_t ipw_cpu_thread_ns(void); /* CPU time of the calling thread */
void ipw_anchor_take(struct ipw_anchor *anchor);
int64_t ipw_anchor_wall_ns(const struct ipw_anchor *anchor, int64_t mono_ns);

/* Writes "2026-11-21T02:31:07.123Z" into at least 32 bytes; returns `out`. */
char *ipw_clock_iso8601(char *out, size_t size, int64_t wall_ns);
/* Writes "20261121-023107" in UTC, for folder names. */
char *ipw_clock_compact(char *out, size_t size, int64_t wall_ns);

static inline double ipw_ns_to_s(int64_t ns) { return (double)ns / 1e9; }
/* Rounds; a value beyond int64 becomes the nearest int64, NaN becomes 0. */
static inline int64_t ipw_s_to_ns(double s)
{
    double ns = s * 1e9 + (s < 0 ? -0.5 : 0.5);

    if (ns >= 0x1p63) return INT64_MAX;
    if (ns < -0x1p63) return INT64_MIN;
    return ns == ns ? (int64_t)ns : 0;
}

#endif
