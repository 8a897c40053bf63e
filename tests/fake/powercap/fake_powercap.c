/* fake_powercap: a powercap tree whose counters run.
 *
 *   fake_powercap DIR [--watts-package W] [--watts-dram W] [--watts-second W] [--watts-psys W]
 *                 [--interval-ms N] [--start-uj N] [--seconds S] [--still-while FILE] [--lose]
 *
 * Makes DIR/intel-rapl:0 (package-0) and DIR/intel-rapl:0:0 (dram), with --watts-second and
 * --watts-psys DIR/intel-rapl:1 (package-1) and DIR/intel-rapl:2 (psys) too, prints "ready" on
 * stdout, and then every N ms (default 1) rewrites both energy_uj with what so many watts (default
 * 100 and 20) have made since the start by CLOCK_MONOTONIC, from --start-uj (default 1000000) on,
 * wrapping at the register's range as hardware does.  The files keep their inodes and their length
 * (digits with leading zeros), so a descriptor that was opened once goes on reading.  A zone of 0 W
 * is a counter that never moves.  While there is a FILE (--still-while) package-0 stands still, and
 * then shows what it would have come to, or goes on from where it stood (--lose).  Ends when it is
 * killed, when its parent dies, or after S seconds; leaves the tree where it is. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define RANGE_UJ   262143328850LL
#define MODULUS_UJ (RANGE_UJ + 61) /* one step of the register more */

static long long now_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (long long)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static void die(const char *what)
{
    fprintf(stderr, "fake_powercap: %s: %s\n", what, strerror(errno));
    exit(1);
}

static void make_dir(const char *path)
{
    if (mkdir(path, 0755) && errno != EEXIST) die(path);
}

static void write_file(const char *dir, const char *file, const char *text)
{
    char path[4096];
    FILE *f;

    snprintf(path, sizeof path, "%s/%s", dir, file);
    f = fopen(path, "w");
    if (!f || fputs(text, f) < 0 || fclose(f)) die(path);
}

static void put(int fd, long long uj)
{
    char text[32];
    int n = snprintf(text, sizeof text, "%015lld\n", uj % MODULUS_UJ);

    if (pwrite(fd, text, (size_t)n, 0) != n) die("energy_uj");
}

static int make_zone(const char *root, const char *id, const char *name, long long start_uj)
{
    char dir[2048], path[2100], text[64];
    int fd;

    snprintf(dir, sizeof dir, "%s/%s", root, id);
    make_dir(dir);
    snprintf(text, sizeof text, "%s\n", name);
    write_file(dir, "name", text);
    write_file(dir, "enabled", "1\n");
    snprintf(text, sizeof text, "%lld\n", RANGE_UJ);
    write_file(dir, "max_energy_range_uj", text);
    snprintf(path, sizeof path, "%s/energy_uj", dir);
    fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0) die(path);
    put(fd, start_uj);
    return fd;
}

static double number(const char *option, const char *text)
{
    char *end;
    double v = text ? strtod(text, &end) : 0;

    if (!text || end == text || *end || v < 0) {
        fprintf(stderr, "fake_powercap: %s wants a number\n", option);
        exit(2);
    }
    return v;
}

int main(int argc, char **argv)
{
    double package_w = 100, dram_w = 20, interval_ms = 1, seconds = 0, start_uj = 1000000;
    double second_w = -1, psys_w = -1; /* there are no such zones */
    const char *root = NULL, *still_while = NULL;
    pid_t parent = getppid();
    int package, dram, second = -1, psys = -1;
    long long start, lost = 0, before = 0; /* lost: the time that package-0 does not count */
    bool lose = false;

    for (int i = 1; i < argc; i++) {
        const char *a = argv[i];
        double *to = !strcmp(a, "--watts-package")  ? &package_w
                     : !strcmp(a, "--watts-dram")   ? &dram_w
                     : !strcmp(a, "--watts-second") ? &second_w
                     : !strcmp(a, "--watts-psys")   ? &psys_w
                     : !strcmp(a, "--interval-ms")  ? &interval_ms
                     : !strcmp(a, "--start-uj")     ? &start_uj
                     : !strcmp(a, "--seconds")      ? &seconds
                                                    : NULL;
        if (to) {
            *to = number(a, argv[++i]);
        } else if (!strcmp(a, "--lose")) {
            lose = true;
        } else if (!strcmp(a, "--still-while")) {
            still_while = argv[++i];
        } else {
            root = a;
        }
    }
    if (!root || root[0] == '-' || interval_ms <= 0) {
        fprintf(stderr, "usage: fake_powercap DIR [--watts-package W] [--watts-dram W] "
                        "[--watts-second W] [--watts-psys W] [--interval-ms N] [--start-uj N] "
                        "[--seconds S] [--still-while FILE] [--lose]\n");
        return 2;
    }
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) return 0; /* it died before we asked */
    make_dir(root);
    package = make_zone(root, "intel-rapl:0", "package-0", (long long)start_uj);
    dram = make_zone(root, "intel-rapl:0:0", "dram", (long long)start_uj);
    if (second_w >= 0) second = make_zone(root, "intel-rapl:1", "package-1", (long long)start_uj);
    if (psys_w >= 0) psys = make_zone(root, "intel-rapl:2", "psys", (long long)start_uj);
    puts("ready");
    fflush(stdout);
    start = now_ns();
    for (long long tick = 1;; tick++) {
        long long due = start + (long long)((double)tick * interval_ms * 1e6), t;
        struct timespec ts = {due / 1000000000, due % 1000000000};

        while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL) == EINTR) continue;
        t = now_ns() - start;
        if (!still_while || access(still_while, F_OK))
            put(package, (long long)start_uj + (long long)(package_w * (double)(t - lost) / 1e3));
        else if (lose)
            lost += t - before;
        before = t;
        if (second >= 0) /* registers of two packages never show the same */
            put(second, (long long)start_uj + 7000000 + (long long)(second_w * (double)t / 1e3));
        if (psys >= 0) put(psys, (long long)start_uj + (long long)(psys_w * (double)t / 1e3));
        put(dram, (long long)start_uj + (long long)(dram_w * (double)t / 1e3));
        if (seconds > 0 && (double)t >= seconds * 1e9) return 0;
    }
}
