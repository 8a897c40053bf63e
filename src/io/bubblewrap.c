#include "io/bubblewrap.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/spawn.h"

#define INSIDE "/ipw-agent"
enum { SELF_FD = 9, REFUSED_FD = 10, MOST_PROCESSES = 512 };

static const char *const places[] = {"/usr/bin/bwrap", "/usr/local/bin/bwrap", "/bin/bwrap"};
enum { N_PLACES = sizeof places / sizeof *places };

bool ipw_bubblewrap_found(void)
{
    for (size_t i = 0; i < N_PLACES; i++) {
        if (access(places[i], X_OK) == 0) return true;
    }
    return false;
}

static bool makes_sandbox(const char *program)
{
    static const char *const argv[] = {"bwrap",
                                       "--unshare-user",
                                       "--unshare-ipc",
                                       "--unshare-pid",
                                       "--unshare-net",
                                       "--unshare-uts",
                                       "--ro-bind",
                                       "/",
                                       "/",
                                       "--proc",
                                       "/proc",
                                       "--dev",
                                       "/dev",
                                       "--",
                                       "true",
                                       NULL};
    const struct ipw_spawn spawn = {.file = program,
                                    .argv = argv,
                                    .fds = {IPW_FD_NULL, IPW_FD_NULL, IPW_FD_NULL},
                                    .place = IPW_SPAWN_SESSION};
    int status = -1;
    pid_t pid;

    /* bubblewrap leaves its first process inside to us.  In a session of its own it is looked after
     * like the orphan of a tool (proc.c). */
    if (ipw_spawn(&pid, &spawn) == 0)
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR) continue;
    return status == 0;
}

bool ipw_bubblewrap_works(void)
{
    static enum { UNKNOWN, WORKS, FAILS } known;

    for (size_t i = 0; known == UNKNOWN && i < N_PLACES; i++) {
        if (access(places[i], X_OK) == 0) known = makes_sandbox(places[i]) ? WORKS : FAILS;
    }
    return known == WORKS;
}

/* ---- refused calls ---- */

#if defined(__x86_64__)
#define OWN_ARCH AUDIT_ARCH_X86_64
#define X32_CALL 0x40000000U /* numbers from here are those of another interface */
#elif defined(__aarch64__)
#define OWN_ARCH AUDIT_ARCH_AARCH64
#endif

#ifdef OWN_ARCH
/* Calls that no namespace divides: the keys of the user's session, io_uring, which runs other calls
 * past a filter, the way from a virtual machine to its host, and namespaces of users, in which a
 * program has all capabilities again.  And calls that only the kernel's settings keep from showing
 * the machine (its log, its counters, its functions), which people who measure often loosen. */
static const struct refused {
    unsigned call, errnum;
    enum { ALWAYS, WITH_FLAG, WITH_VALUE } when; /* of the first argument */
    unsigned argument;
} refused[] = {
    {SYS_keyctl, EPERM, ALWAYS, 0},
    {SYS_add_key, EPERM, ALWAYS, 0},
    {SYS_request_key, EPERM, ALWAYS, 0},
    {SYS_io_uring_setup, ENOSYS, ALWAYS, 0},
    {SYS_io_uring_enter, ENOSYS, ALWAYS, 0},
    {SYS_io_uring_register, ENOSYS, ALWAYS, 0},
    {SYS_unshare, EPERM, WITH_FLAG, CLONE_NEWUSER},
    {SYS_clone, EPERM, WITH_FLAG, CLONE_NEWUSER},
    {SYS_clone3, ENOSYS, ALWAYS, 0}, /* its flags are in memory; the C library then uses clone */
    {SYS_socket, EPERM, WITH_VALUE, AF_VSOCK},
    {SYS_bpf, EPERM, ALWAYS, 0},
    {SYS_perf_event_open, EPERM, ALWAYS, 0},
    {SYS_syslog, EPERM, ALWAYS, 0},
    {SYS_userfaultfd, EPERM, ALWAYS, 0},
};
enum { N_REFUSED = sizeof refused / sizeof *refused };

#define LOAD(field)                 BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define ANSWER(action)              BPF_STMT(BPF_RET | BPF_K, (action))
#define SKIP_UNLESS(test, value, n) BPF_JUMP(BPF_JMP | (test) | BPF_K, (value), 0, (n))

/* Writes the filter; returns how many steps it has. */
static size_t build_filter(struct sock_filter *f)
{
    size_t n = 0;

    /* A program of another architecture has other numbers for its calls. */
    f[n++] = (struct sock_filter)LOAD(arch);
    f[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, OWN_ARCH, 1, 0);
    f[n++] = (struct sock_filter)ANSWER(SECCOMP_RET_KILL_PROCESS);
    f[n++] = (struct sock_filter)LOAD(nr);
#ifdef X32_CALL
    f[n++] = (struct sock_filter)SKIP_UNLESS(BPF_JGE, X32_CALL, 1);
    f[n++] = (struct sock_filter)ANSWER(SECCOMP_RET_ERRNO | ENOSYS);
#endif
    for (const struct refused *r = refused; r < refused + N_REFUSED; r++) {
        f[n++] = (struct sock_filter)SKIP_UNLESS(BPF_JEQ, r->call, r->when == ALWAYS ? 1 : 4);
        if (r->when != ALWAYS) {
            f[n++] = (struct sock_filter)LOAD(args[0]); /* the lower half; both are little-endian */
            f[n++] = (struct sock_filter)SKIP_UNLESS(r->when == WITH_FLAG ? BPF_JSET : BPF_JEQ,
                                                     r->argument, 1);
        }
        f[n++] = (struct sock_filter)ANSWER(SECCOMP_RET_ERRNO | r->errnum);
        if (r->when != ALWAYS) f[n++] = (struct sock_filter)ANSWER(SECCOMP_RET_ALLOW);
    }
    f[n++] = (struct sock_filter)ANSWER(SECCOMP_RET_ALLOW);
    return n;
}

/* The filter is a file at REFUSED_FD.  Returns 0, or an errno; ENOSYS: there are no filters. */
static int open_filter(void)
{
    struct sock_filter filter[8 + 5 * N_REFUSED];
    const unsigned needed = SECCOMP_RET_ERRNO;
    size_t n = build_filter(filter) * sizeof *filter;
    int fd;

    if (syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &needed)) return ENOSYS;
    fd = memfd_create("refused calls", 0);
    if (fd < 0 || (fd != REFUSED_FD && dup2(fd, REFUSED_FD) < 0)) return errno;
    if (fd != REFUSED_FD) close(fd);
    if (write(REFUSED_FD, filter, n) != (ssize_t)n || lseek(REFUSED_FD, 0, SEEK_SET)) return EIO;
    return 0;
}
#else
static int open_filter(void) { return ENOSYS; }
#endif

/* ---- the words of its command ---- */

struct words {
    const char **list;
    size_t n, cap;
};

static void add(struct words *w, const char *word)
{
    IPW_GROW(w->list, w->cap, w->n + 1);
    w->list[w->n++] = word;
}

static void add3(struct words *w, const char *option, const char *a, const char *b)
{
    add(w, option);
    add(w, a);
    add(w, b);
}

/* /bin and similar folders are links into /usr on most systems, and folders on some. */
static void add_system(struct words *w)
{
    static const char *const roots[] = {"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"};
    /* Files that programs need to start and to know the time; not /etc/shadow, not keys of
     * servers. */
    static const char *const shown[] = {
        "/etc/alternatives", "/etc/fonts",         "/etc/group",       "/etc/ld.so.cache",
        "/etc/ld.so.conf",   "/etc/ld.so.conf.d",  "/etc/libreoffice", "/etc/localtime",
        "/etc/mime.types",   "/etc/nsswitch.conf", "/etc/passwd",      "/opt"};

    add3(w, "--ro-bind", "/usr", "/usr");
    for (size_t i = 0; i < sizeof roots / sizeof *roots; i++) {
        char target[PATH_MAX];
        ssize_t n = readlink(roots[i], target, sizeof target - 1);

        if (n > 0) {
            target[n] = '\0';
            /* Not freed: the process is about to end. */
            add3(w, "--symlink", ipw_strdup(target), roots[i]);
        } else {
            add3(w, "--ro-bind-try", roots[i], roots[i]);
        }
    }
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++)
        add3(w, "--ro-bind-try", shown[i], shown[i]);
}

static void add_small_folder(struct words *w, const char *bytes, const char *path)
{
    add(w, "--size");
    add(w, bytes);
    add(w, "--tmpfs");
    add(w, path);
}

static void add_folders(struct words *w, const struct ipw_bubblewrap *s)
{
    const char *bytes = ipw_asprintf("%zu", s->tmp_bytes);

    add(w, "--proc");
    add(w, "/proc");
    /* Lists the keys of the user's session.  A device cannot be opened at a place like this one. */
    if (access("/proc/keys", F_OK) == 0) add3(w, "--ro-bind", "/dev/null", "/proc/keys");
    add(w, "--dev");
    add(w, "/dev");
    add_small_folder(w, bytes, "/dev/shm");
    add_small_folder(w, bytes, "/tmp");
    for (size_t i = 0; i < s->n_reads; i++) add3(w, "--ro-bind-try", s->reads[i], s->reads[i]);
    if (s->workspace) add3(w, "--bind", s->workspace, s->workspace);
}

/* A program outside the system's folders is named by its path; that file then becomes visible,
 * too. */
static void add_program(struct words *w, const char *program)
{
    if (program[0] == '/') add3(w, "--ro-bind-try", program, program);
}

/* The helper is the file of this process, wherever it now is.  A file that was replaced or removed
 * cannot be bound, so bubblewrap copies it. */
static int add_helper(struct words *w)
{
    int fd = open("/proc/self/exe", O_RDONLY);
    struct stat file;

    if (fd < 0 || (fd != SELF_FD && dup2(fd, SELF_FD) < 0)) return errno;
    if (fd != SELF_FD) close(fd);
    if (fstat(SELF_FD, &file) == 0 && file.st_nlink == 0) {
        add3(w, "--perms", "0555", "--ro-bind-data");
        add(w, ipw_asprintf("%d", SELF_FD));
        add(w, INSIDE);
        return 0;
    }
    add3(w, "--ro-bind", ipw_asprintf("/proc/self/fd/%d", SELF_FD), INSIDE);
    return 0;
}

int ipw_bubblewrap_enter(const struct ipw_bubblewrap *sandbox, char *const *argv)
{
    static const char *const apart[] = {
        "bwrap",         "--unshare-user",    "--unshare-ipc",        "--unshare-pid",
        "--unshare-net", "--unshare-uts",     "--unshare-cgroup-try", "--hostname",
        "sandbox",       "--die-with-parent", "--cap-drop",           "ALL"};
    static const char *const sealed[] = {"/proc", "/dev", "/"};
    const char *home = sandbox->workspace ? sandbox->workspace : "/tmp";
    struct words w = {0};
    int e;

    for (size_t i = 0; i < sizeof apart / sizeof *apart; i++) add(&w, apart[i]);
    add_system(&w);
    add_program(&w, argv[0]);
    add_folders(&w, sandbox);
    e = add_helper(&w);
    if (e) return e;
    e = open_filter();
    if (e && e != ENOSYS) return e;
    if (!e) {
        add(&w, "--seccomp");
        add(&w, ipw_asprintf("%d", REFUSED_FD));
    }
    add3(&w, "--setenv", "HOME", home);
    add3(&w, "--setenv", "TMPDIR", "/tmp");
    /* Programs of root may write the kernel's settings in /proc without any capability. */
    for (size_t i = 0; i < sizeof sealed / sizeof *sealed; i++) {
        add(&w, "--remount-ro");
        add(&w, sealed[i]);
    }
    add(&w, "--chdir");
    add(&w, home);
    add3(&w, "--", INSIDE, "__exec");
    add(&w, "inside=1");
    add(&w, ipw_asprintf("processes=%d", MOST_PROCESSES));
    add(&w, "apart=1");
    add(&w, "--");
    for (; *argv; argv++) add(&w, *argv);
    add(&w, NULL);
    for (size_t i = 0; i < N_PLACES; i++) execv(places[i], (char *const *)w.list);
    return errno;
}
