/* The seccomp filter of a worker (io/confined.h): the system calls needed to compute, to manage
 * memory and to talk over open descriptors.  All other calls fail with EPERM. */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "io/confined.h"

#if defined(__x86_64__)
#define OUR_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define OUR_ARCH AUDIT_ARCH_AARCH64
#endif

#ifdef OUR_ARCH

static const int allowed[] = {
    SYS_read,
    SYS_write,
    SYS_readv,
    SYS_writev,
    SYS_sendto,
    SYS_close,
    SYS_fstat,
    SYS_ppoll,
    SYS_epoll_pwait,
    SYS_epoll_ctl,
#ifdef SYS_poll /* the old names, which newer machines lack */
    SYS_poll,
    SYS_epoll_wait,
#endif
    SYS_mmap,
    SYS_munmap,
    SYS_mremap,
    SYS_mprotect,
    SYS_madvise,
    SYS_brk,
    SYS_futex,
    SYS_rt_sigaction,
    SYS_rt_sigprocmask,
    SYS_rt_sigreturn,
    SYS_sigaltstack,
    SYS_restart_syscall,
    SYS_timer_create,
    SYS_timer_settime,
    SYS_timer_delete,
    SYS_clock_gettime,
    SYS_clock_nanosleep,
    SYS_gettimeofday,
    SYS_getpid,
    SYS_gettid,
    SYS_tgkill, /* abort() */
    SYS_timerfd_settime,
    SYS_sched_yield,
    SYS_getrandom,
    SYS_getrusage,
    SYS_exit,
    SYS_exit_group,
};
enum { N_ALLOWED = sizeof allowed / sizeof *allowed };

static struct sock_filter load(size_t offset)
{
    return (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (__u32)offset);
}

int ipw_confined_enter(struct ipw_err *err)
{
    struct sock_filter code[N_ALLOWED + 6];
    struct sock_fprog program = {.filter = code};
    unsigned n = 0;

    code[n++] = load(offsetof(struct seccomp_data, arch));
    code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, OUR_ARCH, 1, 0);
    code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    code[n++] = load(offsetof(struct seccomp_data, nr));
    for (unsigned i = 0; i < N_ALLOWED; i++)
        code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (__u32)allowed[i],
                                                 (__u8)(N_ALLOWED - i), 0);
    code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
    code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    program.len = (unsigned short)n;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0))
        return ipw_fail_errno(err, errno, "this kernel does not confine a worker");
    return 0;
}

#else

int ipw_confined_enter(struct ipw_err *err)
{
    return ipw_fail(err, IPW_EUNSUPPORTED, "workers are not confined on this kind of machine");
}

#endif
