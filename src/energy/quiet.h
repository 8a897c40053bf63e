/* energy/quiet.h: do other programs use this machine?
 *
 * The energy of other programs is counted as our queries', so a run warns beforehand if the machine
 * is not quiet.  Two looks at /proc a moment apart give the CPU time of foreign processes.
 * Ourselves, our children, and the model's server with its children are not foreign.  The server is
 * the process that listens on the port that we talk to. */
#ifndef IPW_ENERGY_QUIET_H
#define IPW_ENERGY_QUIET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct ipw_quiet_process {
    pid_t pid, parent;
    int64_t ticks; /* user and system */
    char name[16];
};

struct ipw_quiet_look {
    int64_t busy_ticks; /* ticks of all processors */
    int64_t cpus;
    struct ipw_quiet_process *processes;
    size_t n, cap;
};

/* `proc` NULL: /proc.  False if /proc/stat cannot be read.  The caller releases the look. */
bool ipw_quiet_look(struct ipw_quiet_look *look, const char *proc);
void ipw_quiet_release(struct ipw_quiet_look *look);
/* The process that listens on a local TCP port; 0 if it cannot be found. */
pid_t ipw_quiet_listener(const char *proc, int port);
/* The name of a process; NULL: there is no such process. */
const char *ipw_quiet_name(const struct ipw_quiet_look *look, pid_t pid);
/* Is the process one of `ours`, or a descendant of one? */
bool ipw_quiet_is_ours(const struct ipw_quiet_look *look, pid_t pid, const pid_t *ours, size_t n);

struct ipw_quiet_load {
    double foreign_cpus; /* number of processors that foreign processes kept busy */
    double cpus;
    char busiest[16]; /* name of the busiest foreign process; "" if none stands out */
    pid_t busiest_pid;
};
/* Pure. `ours`: roots of process trees that are not foreign. */
void ipw_quiet_judge(struct ipw_quiet_load *out, const struct ipw_quiet_look *before,
                     const struct ipw_quiet_look *after, double seconds, double ticks_per_s,
                     const pid_t *ours, size_t n);
/* Do foreign processes use more than a tenth of the machine, or a whole processor? */
bool ipw_quiet_is_loud(const struct ipw_quiet_load *load);

#endif
