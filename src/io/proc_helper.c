/* The other side of ipw_proc_start().  Runs as a new process of this binary, in its own session
 * with default signals (posix_spawn sets both), applies the limits and becomes the program.
 *
 *   ipw-agent __exec [own=1] [parent=PID] [measured=1|2] [cgroup=DIR] [cpu=S] [memory=BYTES]
 *                    [file=BYTES] [files=N] [processes=N] [apart=1] [cwd=DIR]
 *                    [sandbox=WORKSPACE [read=PATH]...] [inside=1] -- PROGRAM ARG...
 *
 * With measured= (2: the program is in a sandbox) the process forks: its child becomes the
 * program, and itself stays outside of all limits and walls, says what the program used, and ends
 * as the program ended.
 *
 * Descriptor 3 is a pipe: an errno written there says why the program was not started.  With
 * sandbox= the process becomes bubblewrap (bubblewrap.h), which starts the helper again inside,
 * with inside=1.  That one first writes a 0, which says that the sandbox stands. */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/landlock.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/text.h"
#include "io/bubblewrap.h"
#include "io/cgroup.h"
#include "io/proc.h"
#include "io/proc_priv.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1 /* their shadow memory alone exceeds any sensible RLIMIT_AS */
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

enum { REST_LOOKS = 2000, REST_PAUSE_US = 500 };

static _Noreturn void give_up(int errnum)
{
    ssize_t n = write(PROC_STATUS_FD, &errnum, sizeof errnum);

    _exit(n == (ssize_t)sizeof errnum ? 127 : 126);
}

static void limit(__rlimit_resource_t what, rlim_t soft, rlim_t hard)
{
    struct rlimit old;

    if (getrlimit(what, &old)) give_up(errno);
    if (old.rlim_max != RLIM_INFINITY && hard > old.rlim_max) hard = old.rlim_max;
    if (soft > hard) soft = hard;
    if (setrlimit(what, &(struct rlimit){.rlim_cur = soft, .rlim_max = hard})) give_up(errno);
}

/* Ends as the program ended. */
static _Noreturn void end_like(int status)
{
    sigset_t all;

    if (WIFEXITED(status)) _exit(WEXITSTATUS(status));
    sigfillset(&all);
    signal(WTERMSIG(status), SIG_DFL);
    sigprocmask(SIG_UNBLOCK, &all, NULL);
    raise(WTERMSIG(status));
    _exit(128 + WTERMSIG(status));
}

/* bubblewrap does not wait for the first process of its sandbox, which ends a little later, with
 * all others.  Processes that a program without a sandbox has left may stay; the runner looks after
 * them. */
static void measure_rest(struct ipw_usage *to, bool all_end)
{
    struct rusage usage;
    pid_t pid = 1;

    for (int n = 0; n < REST_LOOKS && (pid > 0 || (pid == 0 && all_end)); n += pid == 0) {
        pid = wait4(-1, NULL, WNOHANG, &usage);
        if (pid > 0) ipw_usage_add(to, &usage);
        if (pid == 0 && all_end) usleep(REST_PAUSE_US);
    }
}

static pid_t runner;

/* The signal of the runner's death.  The runner itself also sends it, to end the program.
 *
 * The whole group ends, not only the program: bubblewrap's first process inside asks for a death
 * signal of its own only after a handshake, and would wait for a dead partner for ever.  And all
 * below, because a server may start a browser in a session of its own.  This process does nothing
 * but wait meanwhile, so the handler may take memory and read folders. */
static void on_term(int signum)
{
    (void)signum;
    if (getppid() == runner) return;
    for (int n = 0; n < REST_LOOKS && ipw_pids_kill_below(getpid()); n++) {
        while (waitpid(-1, NULL, WNOHANG) > 0) continue;
        usleep(REST_PAUSE_US);
    }
    kill(0, SIGKILL);
}

/* The parent never returns.  Other signals than TERM are blocked in it, so that only KILL or the
 * runner's death ends it before its program; its death kills the program. */
static void stay_and_measure(bool in_sandbox)
{
    struct ipw_usage_report report;
    struct rusage usage;
    sigset_t all, old, term;
    pid_t parent = getpid(), pid;
    int status;

    memset(&report, 0, sizeof report);
    report.mark = PROC_REPORT;
    report.usage.cpu_ns = -1;
    sigfillset(&all);
    sigemptyset(&term);
    sigaddset(&term, SIGTERM);
    sigprocmask(SIG_BLOCK, &all, &old);
    /* Before the fork: from now on the runner's death waits as a blocked TERM. */
    sigaction(SIGTERM, &(struct sigaction){.sa_handler = on_term}, NULL);
    if (prctl(PR_SET_PDEATHSIG, SIGTERM, 0, 0, 0)) give_up(errno);
    pid = fork();
    if (pid < 0) give_up(errno);
    if (pid == 0) {
        if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) || getppid() != parent) _exit(126);
        signal(SIGTERM, SIG_DFL);
        sigprocmask(SIG_SETMASK, &old, NULL);
        return;
    }
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    for (int fd = 0; fd < PROC_STATUS_FD; fd++) close(fd); /* they are the program's alone */
    sigprocmask(SIG_UNBLOCK, &term, NULL);
    while (wait4(pid, &status, 0, &usage) != pid)
        if (errno != EINTR) _exit(126);
    ipw_usage_add(&report.usage, &usage);
    measure_rest(&report.usage, in_sandbox);
    if (write(PROC_STATUS_FD, &report, sizeof report) != (ssize_t)sizeof report) _exit(126);
    end_like(status);
}

static void close_others(void)
{
    if (fcntl(PROC_STATUS_FD, F_SETFD, FD_CLOEXEC)) _exit(126); /* the runner did not start us */
    if (close_range(PROC_STATUS_FD + 1, ~0U, 0) == 0) return;
    for (int fd = PROC_STATUS_FD + 1, end = (int)sysconf(_SC_OPEN_MAX); fd < end; fd++) close(fd);
}

/* ---- apart ---- */

/* Root needs no permission.  Without capabilities its programs may only touch files that belong to
 * root.  PR_SET_NO_NEW_PRIVS, which is set, keeps an exec from restoring them.  Removing them from
 * the bounding set as well would itself need a capability. */
static void drop_capabilities(void)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[2] = {{0}, {0}};

    for (unsigned long cap = 0; prctl(PR_CAPBSET_READ, cap, 0, 0, 0) >= 0; cap++)
        prctl(PR_CAPBSET_DROP, cap, 0, 0, 0);
    if (syscall(SYS_capset, &head, none)) give_up(errno);
}

/* Our own struct, because the installed kernel header may be older than the kernel. */
struct landlock_rules {
    __u64 fs, net, scoped;
};
#define LANDLOCK_MAKE_BLOCK   (1ULL << 11)
#define LANDLOCK_REFER        (1ULL << 13)
#define LANDLOCK_SCOPE_SIGNAL (1ULL << 1)
enum { LANDLOCK_REFER_ABI = 2, LANDLOCK_SCOPE_ABI = 6 };

/* Beneath "/" files may be renamed and linked between folders, as without Landlock. */
static int allow_refer(int rules)
{
    struct landlock_path_beneath_attr all = {.allowed_access = LANDLOCK_REFER};
    int rc;

    all.parent_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (all.parent_fd < 0) return -1;
    rc = (int)syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &all, 0);
    close(all.parent_fd);
    return rc;
}

/* A process in a Landlock domain may not trace a process outside it.  Nor may it read that
 * process's memory, environment or descriptors in /proc.  This protects the runner, the shell that
 * started it, and the user's other programs.  The rules themselves forbid as little as possible.
 * Rules about files (older kernels need one: making block devices) also forbid mounting.  In a
 * sandbox that is useful, because a program could mount in its own namespace.  A kernel without
 * Landlock gives no such protection. */
static void leave_others(bool inside)
{
    long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
    struct landlock_rules rules = {0};
    size_t size = sizeof rules.fs;
    int fd;

    if (abi < 1) return;
    if (abi >= LANDLOCK_SCOPE_ABI) {
        rules.scoped = LANDLOCK_SCOPE_SIGNAL;
        size = sizeof rules;
    }
    if (abi < LANDLOCK_SCOPE_ABI || inside) {
        rules.fs = LANDLOCK_MAKE_BLOCK | (abi >= LANDLOCK_REFER_ABI ? LANDLOCK_REFER : 0);
    }
    fd = (int)syscall(SYS_landlock_create_ruleset, &rules, size, 0);
    if (fd < 0) give_up(errno);
    if (((rules.fs & LANDLOCK_REFER) && allow_refer(fd)) ||
        syscall(SYS_landlock_restrict_self, fd, 0))
        give_up(errno);
    close(fd);
}

/* The options other than limits. */
struct orders {
    bool apart, inside;
    /* Workspace of the sandbox to enter; "": without a workspace; NULL: no sandbox. */
    const char *workspace;
    const char **reads;
    size_t n_reads, cap_reads;
};

static void say_inside(void)
{
    const int stands = 0;

    if (write(PROC_STATUS_FD, &stands, sizeof stands) != (ssize_t)sizeof stands) _exit(126);
}

static void apply(const char *option, struct orders *o)
{
    const char *value = strchr(option, '=');
    int64_t n = 0;

    if (!value++) give_up(EINVAL);
    if (strncmp(option, "cwd=", 4) == 0) {
        if (chdir(value)) give_up(errno);
        return;
    }
    if (strncmp(option, "sandbox=", 8) == 0) {
        o->workspace = value;
        return;
    }
    if (strncmp(option, "cgroup=", 7) == 0) {
        int errnum = ipw_cgroup_enter(value);

        if (errnum) give_up(errnum);
        return;
    }
    if (strncmp(option, "read=", 5) == 0) {
        IPW_GROW(o->reads, o->cap_reads, o->n_reads + 1);
        o->reads[o->n_reads++] = value;
        return;
    }
    if (ipw_parse_int(&n, value, 1, INT64_MAX - 1, NULL)) give_up(EINVAL);
    if (strncmp(option, "parent=", 7) == 0) {
        /* The runner may have ended before the death signal was requested. */
        runner = (pid_t)n;
        if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) || getppid() != runner) _exit(126);
    } else if (strncmp(option, "measured=", 9) == 0) {
        stay_and_measure(n == 2);
    } else if (strncmp(option, "cpu=", 4) == 0) {
        limit(RLIMIT_CPU, (rlim_t)n, (rlim_t)n + 1);
    } else if (strncmp(option, "memory=", 7) == 0) {
        if (!SANITIZED) limit(RLIMIT_AS, (rlim_t)n, (rlim_t)n);
    } else if (strncmp(option, "file=", 5) == 0) {
        limit(RLIMIT_FSIZE, (rlim_t)n, (rlim_t)n);
    } else if (strncmp(option, "files=", 6) == 0) {
        limit(RLIMIT_NOFILE, (rlim_t)n, (rlim_t)n);
    } else if (strncmp(option, "processes=", 10) == 0) {
        limit(RLIMIT_NPROC, (rlim_t)n, (rlim_t)n);
    } else if (strncmp(option, "inside=", 7) == 0) {
        say_inside();
        o->inside = true;
    } else if (strncmp(option, "apart=", 6) == 0) {
        o->apart = true;
    } else {
        give_up(EINVAL);
    }
}

/* Like execvp(3), but only along the fixed path, and without a shell for scripts that name no
 * interpreter. */
static int execute(char **argv)
{
    static const char *const dirs[] = {"/usr/local/bin", "/usr/bin", "/bin"};
    int best = ENOENT;

    if (strchr(argv[0], '/')) {
        execv(argv[0], argv);
        return errno;
    }
    if (!argv[0][0]) return ENOENT;
    for (size_t i = 0; i < sizeof dirs / sizeof *dirs; i++) {
        char *path = ipw_asprintf("%s/%s", dirs[i], argv[0]);
        execv(path, argv);
        if (errno != ENOENT && errno != ENOTDIR) best = errno;
        free(path);
        if (best != ENOENT && best != EACCES) break;
    }
    return best;
}

/* The runner has a large stack for Lua (main.c); a program's threads would inherit its size. */
static void usual_stack(void)
{
    const rlim_t usual = 8 << 20;
    struct rlimit old;

    if (getrlimit(RLIMIT_STACK, &old) == 0 && old.rlim_cur == 64 << 20)
        limit(RLIMIT_STACK, usual, old.rlim_max);
}

int ipw_proc_helper_main(int argc, char **argv)
{
    struct orders o = {0};
    bool own = argc > 2 && strcmp(argv[2], "own=1") == 0;
    int i = own ? 3 : 2;

    close_others();
    if (!own) {
        umask(077);
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) give_up(errno);
        limit(RLIMIT_CORE, 0, 0);
    }
    usual_stack();
    for (; i < argc && strcmp(argv[i], "--") != 0; i++) apply(argv[i], &o);
    if (i + 1 >= argc) give_up(EINVAL);
    if (o.workspace) {
        struct ipw_bubblewrap sandbox = {.workspace = o.workspace[0] ? o.workspace : NULL,
                                         .reads = o.reads,
                                         .n_reads = o.n_reads,
                                         .tmp_bytes = IPW_BUBBLEWRAP_TMP_BYTES};

        /* Keep it open for the helper inside. */
        if (fcntl(PROC_STATUS_FD, F_SETFD, 0)) give_up(errno);
        give_up(ipw_bubblewrap_enter(&sandbox, argv + i + 1));
    }
    if (o.apart) { /* last: entering a folder may need the capabilities */
        drop_capabilities();
        leave_others(o.inside);
    }
    give_up(execute(argv + i + 1));
}
