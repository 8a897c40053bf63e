/* The processes below one: what they used, by their rusage; what they hold, by /proc. */
#include <dirent.h>
#include <linux/magic.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "io/proc_priv.h"

enum { MOST_PIDS = 10000 };

void ipw_usage_add(struct ipw_usage *to, const struct rusage *of)
{
    int64_t peak = (int64_t)of->ru_maxrss * 1024; /* the kernel counts KiB */

    if (to->cpu_ns < 0) to->cpu_ns = 0;
    to->cpu_ns += (of->ru_utime.tv_sec + of->ru_stime.tv_sec) * IPW_NS_PER_S +
                  (of->ru_utime.tv_usec + of->ru_stime.tv_usec) * 1000;
    if (peak > to->peak_bytes) to->peak_bytes = peak;
}

/* The value of a line "NAME VALUE kB" of a file of /proc/PID, in bytes; -1: it is not there. */
static int64_t kib_line(pid_t pid, const char *file, const char *format)
{
    char path[64], line[256];
    long long kib = -1;
    FILE *f;

    snprintf(path, sizeof path, "/proc/%ld/%s", (long)pid, file);
    f = fopen(path, "re");
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, format, &kib) == 1) break;
    if (f) fclose(f);
    return kib < 0 ? -1 : kib * 1024;
}

/* Each thread has children of its own. */
void ipw_pids_add_children(struct ipw_pids *to, pid_t pid)
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
        while (f && fscanf(f, "%ld", &below) == 1) {
            IPW_GROW(to->list, to->cap, to->n + 1);
            to->list[to->n++] = (pid_t)below;
        }
        if (f) fclose(f);
    }
    if (threads) closedir(threads);
}

/* All processes below one.  The caller frees the list. */
static struct ipw_pids all_below(pid_t pid)
{
    struct ipw_pids all = {0};

    ipw_pids_add_children(&all, pid);
    for (size_t i = 0; i < all.n && all.n < MOST_PIDS; i++)
        ipw_pids_add_children(&all, all.list[i]);
    return all;
}

bool ipw_pids_kill_below(pid_t pid)
{
    struct ipw_pids all = all_below(pid);
    bool any = all.n > 0;

    for (size_t i = 0; i < all.n; i++) kill(all.list[i], SIGKILL);
    free(all.list);
    return any;
}

/* ---- files that were removed ---- */

struct removed {
    struct file {
        dev_t dev;
        ino_t ino;
    } * list; /* several processes may hold one */
    size_t n, cap;
    uint64_t bytes;
};

static void add_removed(struct removed *to, const struct stat *st)
{
    for (size_t i = 0; i < to->n; i++)
        if (to->list[i].ino == st->st_ino && to->list[i].dev == st->st_dev) return;
    IPW_GROW(to->list, to->cap, to->n + 1);
    to->list[to->n++] = (struct file){st->st_dev, st->st_ino};
    to->bytes += (uint64_t)st->st_blocks * 512;
}

/* Of the file system of `on`, or (NULL) of any in memory. */
static void add_removed_of(struct removed *to, pid_t pid, const struct stat *on)
{
    char path[64], of[sizeof path + 256];
    struct dirent *entry;
    DIR *fds;

    snprintf(path, sizeof path, "/proc/%ld/fd", (long)pid);
    fds = opendir(path);
    while (fds && (entry = readdir(fds))) {
        struct statfs fs;
        struct stat st;

        snprintf(of, sizeof of, "%s/%.255s", path, entry->d_name);
        if (stat(of, &st) || !S_ISREG(st.st_mode) || st.st_nlink) continue;
        if (on ? st.st_dev == on->st_dev : !statfs(of, &fs) && fs.f_type == TMPFS_MAGIC)
            add_removed(to, &st);
    }
    if (fds) closedir(fds);
}

static uint64_t removed_bytes(const struct ipw_pids *all, const struct stat *on)
{
    struct removed sum = {0};

    for (size_t i = 0; i < all->n; i++) add_removed_of(&sum, all->list[i], on);
    free(sum.list);
    return sum.bytes;
}

uint64_t ipw_pids_removed_bytes(pid_t pid, const char *folder)
{
    struct stat st;
    struct ipw_pids all;
    uint64_t bytes;

    if (stat(folder, &st)) return 0; /* who counts the folder finds that out, and says it */
    all = all_below(pid);
    bytes = removed_bytes(&all, &st);
    free(all.list);
    return bytes;
}

/* Resident memory counts a page once for each process that shares it.  The exact share is slow to
 * read, so it is read only where the quick sum is over the limit.
 *
 * Files in memory without a name (memfd) may be in no process's memory.  Where one is, it counts
 * once: so their bytes take the place of the shared memory, if they are more. */
bool ipw_pids_memory_over(pid_t pid, size_t limit)
{
    struct ipw_pids all = all_below(pid);
    uint64_t resident = 0, share = 0, shared = 0, removed = removed_bytes(&all, NULL);

    for (size_t i = 0; i < all.n; i++) {
        int64_t bytes = kib_line(all.list[i], "status", "VmRSS: %lld");

        if (bytes > 0) resident += (uint64_t)bytes;
    }
    for (size_t i = 0; i < all.n && resident + removed > limit; i++) {
        int64_t bytes = kib_line(all.list[i], "smaps_rollup", "Pss: %lld");
        int64_t shmem = kib_line(all.list[i], "smaps_rollup", "Pss_Shmem: %lld");

        if (bytes < 0) bytes = kib_line(all.list[i], "status", "VmRSS: %lld");
        if (bytes > 0) share += (uint64_t)bytes;
        if (bytes > 0 && shmem > 0) shared += (uint64_t)(shmem < bytes ? shmem : bytes);
    }
    free(all.list);
    return share - shared + (removed > shared ? removed : shared) > limit;
}
