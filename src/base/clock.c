#include "base/clock.h"

#include <stdio.h>
#include <time.h>

static int64_t read_clock_ns(clockid_t id)
{
    struct timespec ts;

    clock_gettime(id, &ts);
    return (int64_t)ts.tv_sec * IPW_NS_PER_S + ts.tv_nsec;
}

int64_t ipw_now_ns(void) { return read_clock_ns(CLOCK_MONOTONIC); }
int64_t ipw_cpu_self_ns(void) { return read_clock_ns(CLOCK_PROCESS_CPUTIME_ID); }
int64_t ipw_cpu_thread_ns(void) { return read_clock_ns(CLOCK_THREAD_CPUTIME_ID); }

void ipw_anchor_take(struct ipw_anchor *anchor)
{
    anchor->mono_ns = ipw_now_ns();
    anchor->wall_ns = read_clock_ns(CLOCK_REALTIME);
    anchor->boot_ns = read_clock_ns(CLOCK_BOOTTIME);
}

int64_t ipw_anchor_wall_ns(const struct ipw_anchor *anchor, int64_t mono_ns)
{
    __int128 wall = (__int128)anchor->wall_ns + mono_ns - anchor->mono_ns;

    /* Only a damaged file leads beyond 63 bits. */
    return wall > INT64_MAX ? INT64_MAX : wall < INT64_MIN ? INT64_MIN : (int64_t)wall;
}

/* Rounds down to whole seconds, also before 1970. */
static time_t wall_seconds(int64_t wall_ns)
{
    return (time_t)(wall_ns / IPW_NS_PER_S - (wall_ns % IPW_NS_PER_S < 0));
}

char *ipw_clock_iso8601(char *out, size_t size, int64_t wall_ns)
{
    time_t s = wall_seconds(wall_ns);
    int64_t rest_ns = wall_ns % IPW_NS_PER_S;
    struct tm tm;
    size_t n;

    if (rest_ns < 0) rest_ns += IPW_NS_PER_S;
    gmtime_r(&s, &tm);
    n = strftime(out, size, "%Y-%m-%dT%H:%M:%S", &tm);
    snprintf(out + n, size - n, ".%03dZ", (int)(rest_ns / IPW_NS_PER_MS));
    return out;
}

char *ipw_clock_compact(char *out, size_t size, int64_t wall_ns)
{
    time_t s = wall_seconds(wall_ns);
    struct tm tm;

    gmtime_r(&s, &tm);
    strftime(out, size, "%Y%m%d-%H%M%S", &tm);
    return out;
}
