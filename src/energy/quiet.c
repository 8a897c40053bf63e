#include "energy/quiet.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"

enum { MAX_DEPTH = 64, TCP_LISTEN = 0x0a };

static FILE *open_below(const char *proc, const char *file)
{
    char path[512];

    if (snprintf(path, sizeof path, "%s/%s", proc ? proc : "/proc", file) >= (int)sizeof path)
        return NULL;
    return fopen(path, "re");
}

static bool read_stat(struct ipw_quiet_look *look, const char *proc)
{
    FILE *f = open_below(proc, "stat");
    char line[512];
    long long user, nice, sys, idle, wait, irq, soft;
    bool got = false;

    if (!f) return false;
    while (fgets(line, sizeof line, f)) {
        if (!strncmp(line, "cpu ", 4) &&
            sscanf(line, "cpu %lld %lld %lld %lld %lld %lld %lld", &user, &nice, &sys, &idle, &wait,
                   &irq, &soft) == 7) {
            look->busy_ticks = user + nice + sys + irq + soft;
            got = true;
        } else if (!strncmp(line, "cpu", 3)) {
            look->cpus++;
        }
    }
    fclose(f);
    return got;
}

/* The name may contain blanks and brackets, so count fields from the last ')'. */
static bool read_process(struct ipw_quiet_process *p, const char *proc, const char *pid)
{
    char file[64], line[1024], *open, *close;
    long long user, sys;
    int parent;
    bool got;
    FILE *f;

    snprintf(file, sizeof file, "%.20s/stat", pid);
    f = open_below(proc, file);
    if (!f) return false;
    got = fgets(line, sizeof line, f) != NULL;
    fclose(f);
    open = got ? strchr(line, '(') : NULL;
    close = got ? strrchr(line, ')') : NULL;
    if (!open || !close || close < open) return false;
    *close = '\0';
    if (sscanf(close + 1, " %*c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lld %lld", &parent, &user,
               &sys) != 3)
        return false;
    p->pid = (pid_t)atol(pid);
    p->parent = parent;
    p->ticks = user + sys;
    snprintf(p->name, sizeof p->name, "%.15s", open + 1);
    return true;
}

static DIR *open_proc(const char *proc) { return opendir(proc ? proc : "/proc"); }

/* The next process's folder, by the name of its number; NULL: there is none left. */
static const char *next_process(DIR *d)
{
    struct dirent *e;

    while (d && (e = readdir(d)))
        if (strspn(e->d_name, "0123456789") == strlen(e->d_name)) return e->d_name;
    if (d) closedir(d);
    return NULL;
}

bool ipw_quiet_look(struct ipw_quiet_look *look, const char *proc)
{
    const char *pid;
    DIR *d;

    *look = (struct ipw_quiet_look){0};
    if (!read_stat(look, proc)) return false;
    d = open_proc(proc);
    while ((pid = next_process(d))) {
        struct ipw_quiet_process p;

        if (!read_process(&p, proc, pid)) continue; /* it ended, or is not visible to us */
        IPW_GROW(look->processes, look->cap, look->n + 1);
        look->processes[look->n++] = p;
    }
    return true;
}

void ipw_quiet_release(struct ipw_quiet_look *look)
{
    free(look->processes);
    *look = (struct ipw_quiet_look){0};
}

/* ---- listening processes ---- */

static long find_inode(const char *proc, const char *file, int port)
{
    FILE *f = open_below(proc, file);
    char line[512];
    long found = 0;

    while (f && !found && fgets(line, sizeof line, f)) {
        char local[64];
        unsigned state, at;
        long inode;

        if (sscanf(line, " %*d: %63s %*s %x %*s %*s %*s %*d %*d %ld", local, &state, &inode) != 3)
            continue;
        if (state != TCP_LISTEN || !strrchr(local, ':')) continue;
        if (sscanf(strrchr(local, ':') + 1, "%x", &at) == 1 && (int)at == port) found = inode;
    }
    if (f) fclose(f);
    return found;
}

static bool holds_socket(const char *proc, const char *pid, long inode)
{
    char dir[512], want[48], path[600], link[64];
    struct dirent *e;
    bool found = false;
    DIR *d;

    snprintf(want, sizeof want, "socket:[%ld]", inode);
    snprintf(dir, sizeof dir, "%.400s/%.20s/fd", proc ? proc : "/proc", pid);
    d = opendir(dir);
    if (!d) return false;
    while (!found && (e = readdir(d))) {
        ssize_t n;

        snprintf(path, sizeof path, "%s/%.40s", dir, e->d_name);
        n = readlink(path, link, sizeof link - 1);
        if (n <= 0) continue;
        link[n] = '\0';
        found = !strcmp(link, want);
    }
    closedir(d);
    return found;
}

pid_t ipw_quiet_listener(const char *proc, int port)
{
    long inode = find_inode(proc, "net/tcp", port);
    const char *pid;
    pid_t found = 0;
    DIR *d;

    if (!inode) inode = find_inode(proc, "net/tcp6", port);
    if (!inode) return 0;
    d = open_proc(proc);
    while ((pid = next_process(d)))
        if (!found && holds_socket(proc, pid, inode)) found = (pid_t)atol(pid);
    return found;
}

/* ---- judging ---- */

static const struct ipw_quiet_process *find(const struct ipw_quiet_look *look, pid_t pid)
{
    for (size_t i = 0; i < look->n; i++)
        if (look->processes[i].pid == pid) return &look->processes[i];
    return NULL;
}

const char *ipw_quiet_name(const struct ipw_quiet_look *look, pid_t pid)
{
    const struct ipw_quiet_process *p = find(look, pid);

    return p ? p->name : NULL;
}

bool ipw_quiet_is_ours(const struct ipw_quiet_look *look, pid_t pid, const pid_t *ours, size_t n)
{
    for (int depth = 0; pid > 0 && depth < MAX_DEPTH; depth++) {
        const struct ipw_quiet_process *p = find(look, pid);

        for (size_t i = 0; i < n; i++)
            if (pid == ours[i]) return true;
        pid = p ? p->parent : 0;
    }
    return false;
}

void ipw_quiet_judge(struct ipw_quiet_load *out, const struct ipw_quiet_look *before,
                     const struct ipw_quiet_look *after, double seconds, double ticks_per_s,
                     const pid_t *ours, size_t n)
{
    int64_t busy = after->busy_ticks - before->busy_ticks, most = 0;

    *out = (struct ipw_quiet_load){.cpus = (double)after->cpus};
    for (size_t i = 0; i < after->n; i++) {
        const struct ipw_quiet_process *p = &after->processes[i], *was = find(before, p->pid);
        int64_t used = p->ticks - (was ? was->ticks : 0);

        if (used <= 0) continue;
        if (ipw_quiet_is_ours(after, p->pid, ours, n)) {
            busy -= used;
        } else if (used > most) {
            most = used;
            out->busiest_pid = p->pid;
            snprintf(out->busiest, sizeof out->busiest, "%s", p->name);
        }
    }
    if (busy > 0 && seconds > 0) out->foreign_cpus = (double)busy / ticks_per_s / seconds;
}

bool ipw_quiet_is_loud(const struct ipw_quiet_load *load)
{
    return load->foreign_cpus > 0.1 * load->cpus || load->foreign_cpus > 1;
}
