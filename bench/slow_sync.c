/* bench/slow_sync.c: a disk that takes its time.  Preloaded, every fdatasync and fsync takes
 * SLOW_SYNC_MS milliseconds longer; for bench/sync_bench. */
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static void wait_a_little(void)
{
    const char *text = getenv("SLOW_SYNC_MS");
    long ms = text ? atol(text) : 0;
    struct timespec ts = {ms / 1000, ms % 1000 * 1000000};

    nanosleep(&ts, NULL);
}

int fdatasync(int fd)
{
    static int (*next)(int fd);

    if (!next) *(void **)&next = dlsym(RTLD_NEXT, "fdatasync");
    wait_a_little();
    return next(fd);
}
