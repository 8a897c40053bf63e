/* The wall clock, two seconds early from the moment there is a file named by $IPW_CLOCK_STEP: what
 * a program sees whose machine is set by NTP or by hand.  CLOCK_MONOTONIC and CLOCK_BOOTTIME do not
 * move.  Loaded with LD_PRELOAD. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define STEP_S 2

int clock_gettime(clockid_t clock, struct timespec *ts)
{
    static int (*real)(clockid_t, struct timespec *);
    const char *path = getenv("IPW_CLOCK_STEP");

    if (!real) {
        void *symbol = dlsym(RTLD_NEXT, "clock_gettime");
        memcpy(&real, &symbol, sizeof real);
    }
    if (real(clock, ts)) return -1;
    if (clock == CLOCK_REALTIME && path && !access(path, F_OK)) ts->tv_sec -= STEP_S;
    return 0;
}
