/* energy/quiet.h: is anybody else working on this machine?
 *
 * Joules that other programs cost are booked to our queries, so a run says beforehand when the
 * machine is not quiet.  Two looks at /proc a moment apart give the CPU time that was used by
 * everybody but ourselves, our children, and the model's server (the process that listens on the
 * port we talk to, with its children): that one works for us. */
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
    int64_t busy_ticks; /* of all processors */
    int64_t cpus;
    struct ipw_quiet_process *processes;
    size_t n, cap;
};

/* `proc` NULL: /proc.  False when /proc/stat cannot be read.  Released by the caller. */
bool ipw_quiet_look(struct ipw_quiet_look *look, const char *proc);
void ipw_quiet_release(struct ipw_quiet_look *look);
/* Who listens on a local TCP port: 0 when that cannot be found out. */
pid_t ipw_quiet_listener(const char *proc, int port);
/* What a process is called; NULL: it is not there. */
const char *ipw_quiet_name(const struct ipw_quiet_look *look, pid_t pid);
/* Is the process one of `ours`, or a descendant of one? */
bool ipw_quiet_is_ours(const struct ipw_quiet_look *look, pid_t pid, const pid_t *ours, size_t n);

struct ipw_quiet_load {
    double foreign_cpus; /* processors that others kept busy */
    double cpus;
    char busiest[16]; /* the name of who used most; "" when none stands out */
    pid_t busiest_pid;
};
/* Pure. `ours`: roots of process trees that are not foreign. */
void ipw_quiet_judge(struct ipw_quiet_load *out, const struct ipw_quiet_look *before,
                     const struct ipw_quiet_look *after, double seconds, double ticks_per_s,
                     const pid_t *ours, size_t n);
/* More than a tenth of the machine, or a whole processor. */
bool ipw_quiet_is_loud(const struct ipw_quiet_load *load);

#endif
