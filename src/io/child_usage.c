/* What child processes use: by their rusage when they have ended, by /proc while they run. */
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "io/proc_priv.h"

enum { DEEPEST = 16 };

void ipw_child_usage_add(struct ipw_child_usage *to, const struct rusage *of)
{
    int64_t peak = (int64_t)of->ru_maxrss * 1024; /* the kernel counts KiB */

    if (to->cpu_ns < 0) to->cpu_ns = 0;
    to->cpu_ns += (of->ru_utime.tv_sec + of->ru_stime.tv_sec) * IPW_NS_PER_S +
                  (of->ru_utime.tv_usec + of->ru_stime.tv_usec) * 1000;
    if (peak > to->peak_bytes) to->peak_bytes = peak;
}

void ipw_child_usage_more(struct ipw_child_usage *to, const struct ipw_child_usage *of)
{
    if (of->cpu_ns > to->cpu_ns) to->cpu_ns = of->cpu_ns;
    if (of->peak_bytes > to->peak_bytes) to->peak_bytes = of->peak_bytes;
}

/* The time of a process itself, to the nanosecond, and of the children that it has reaped, to the
 * tick. */
static int64_t cpu_of(pid_t pid)
{
    char path[64], text[1024];
    unsigned long long user = 0, system = 0;
    const char *after_name;
    struct timespec own;
    clockid_t clock;
    size_t n;
    FILE *f;

    if (clock_getcpuclockid(pid, &clock) || clock_gettime(clock, &own)) return 0;
    snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
    f = fopen(path, "re");
    if (f) {
        n = fread(text, 1, sizeof text - 1, f);
        fclose(f);
        text[n] = '\0';
        after_name = strrchr(text, ')');
        if (!after_name ||
            sscanf(after_name + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %llu %llu",
                   &user, &system) != 2)
            user = system = 0;
    }
    return own.tv_sec * IPW_NS_PER_S + own.tv_nsec +
           (int64_t)(user + system) * (IPW_NS_PER_S / sysconf(_SC_CLK_TCK));
}

static int64_t peak_of(pid_t pid)
{
    char path[64], line[256];
    long long kib = 0;
    FILE *f;

    snprintf(path, sizeof path, "/proc/%ld/status", (long)pid);
    f = fopen(path, "re");
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "VmHWM: %lld", &kib) == 1) break;
    if (f) fclose(f);
    return kib * 1024;
}

static void add_below(struct ipw_child_usage *to, pid_t pid, int depth);

static void add_one(struct ipw_child_usage *to, pid_t pid, int depth)
{
    int64_t peak = peak_of(pid);

    if (to->cpu_ns < 0) to->cpu_ns = 0;
    to->cpu_ns += cpu_of(pid);
    if (peak > to->peak_bytes) to->peak_bytes = peak;
    if (depth < DEEPEST) add_below(to, pid, depth + 1);
}

/* Each thread has children of its own. */
static void add_below(struct ipw_child_usage *to, pid_t pid, int depth)
{
    struct dirent *thread;
    char path[64];
    DIR *threads;

    snprintf(path, sizeof path, "/proc/%ld/task", (long)pid);
    threads = opendir(path);
    while (threads && (thread = readdir(threads))) {
        char list[sizeof path + sizeof thread->d_name + 16];
        long below;
        FILE *f;

        if (thread->d_name[0] == '.') continue;
        snprintf(list, sizeof list, "%s/%s/children", path, thread->d_name);
        f = fopen(list, "re");
        while (f && fscanf(f, "%ld", &below) == 1) add_one(to, (pid_t)below, depth);
        if (f) fclose(f);
    }
    if (threads) closedir(threads);
}

void ipw_child_usage_below(struct ipw_child_usage *out, pid_t pid)
{
    *out = (struct ipw_child_usage){-1, 0};
    add_below(out, pid, 0);
}
