/* The list of our child processes, SIGCHLD, and orphans. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/spawn.h"
#include "io/bubblewrap.h"
#include "io/cgroup.h"
#include "io/proc_priv.h"

/* Children belong to the process, not to a loop: one list, used by the loop's thread only. */
static struct ipw_child *children;
static unsigned long last_id;
#define SELF "/proc/self/exe"

static char *helper_path;
static struct stat helper_file; /* the file that helper_path led to */

void ipw_proc_set_helper(const char *path)
{
    free(helper_path);
    helper_path = ipw_strdup(path);
    if (stat(path, &helper_file)) helper_file = (struct stat){0};
}

/* The program may be rebuilt, upgraded or removed during a long run.  Its path then leads to
 * another file or nowhere, but the kernel still has the running one. */
static const char *helper(void)
{
    struct stat now;
    bool same = helper_path && stat(helper_path, &now) == 0 && now.st_ino == helper_file.st_ino &&
                now.st_dev == helper_file.st_dev;

    return same ? helper_path : SELF;
}

/* --- orphans --------------------------------------------------------------------------------- */

static size_t read_proc_file(char *out, size_t size, long pid, const char *name)
{
    char path[64];
    ssize_t n = -1;
    int fd;

    snprintf(path, sizeof path, "/proc/%ld/%s", pid, name);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        n = read(fd, out, size - 1);
        close(fd);
    }
    if (n < 0) n = 0;
    out[n] = '\0';
    return (size_t)n;
}

/* The call that a process belongs to, by its environment; 0 if the environment does not name
 * one. */
static unsigned long owner_of(long pid)
{
    static char env[256 * 1024]; /* for the loop's thread only */
    char want[64];
    size_t n = read_proc_file(env, sizeof env, pid, "environ");
    size_t want_len = (size_t)snprintf(want, sizeof want, PROC_MARKER "=%ld.", (long)getpid());

    for (size_t i = 0; i < n; i += strlen(env + i) + 1) {
        if (strncmp(env + i, want, want_len) == 0) return strtoul(env + i + want_len, NULL, 10);
    }
    return 0;
}

static bool has_running_owner(long pid, long session)
{
    unsigned long owner = owner_of(pid);

    for (struct ipw_child *c = children; c; c = c->next) {
        if (c->id == owner || c->pid == session) return true;
    }
    /* The process wiped its environment and left its session.  While other calls run, it may belong
     * to them. */
    return owner == 0 && children != NULL;
}

static bool is_known(long pid)
{
    for (struct ipw_child *c = children; c; c = c->next) {
        if (c->pid == pid) return true;
    }
    return false;
}

/* A child that we did not start may be the orphan of a tool, in another session than ours.  A child
 * in our own session was forked by other code in this process; leave it alone.  Returns whether it
 * was an orphan that has to end. */
static bool look_at(long pid)
{
    char stat[1024], state = 0;
    const char *after_name;
    long session = 0;

    if (is_known(pid)) return false;
    read_proc_file(stat, sizeof stat, pid, "stat");
    after_name = strrchr(stat, ')');
    if (!after_name || sscanf(after_name + 1, " %c %*d %*d %ld", &state, &session) != 2)
        return false;
    if (session == getsid(0)) return false;
    if (state != 'Z' && has_running_owner(pid, session)) return false;
    if (state != 'Z') kill((pid_t)pid, SIGKILL);
    waitpid((pid_t)pid, NULL, WNOHANG);
    return true;
}

static bool look_at_orphans(void)
{
    DIR *tasks = opendir("/proc/self/task");
    struct dirent *task;
    bool any = false;

    if (!tasks) return false;
    while ((task = readdir(tasks))) {
        char path[sizeof task->d_name + 40];
        long pid;
        FILE *f;
        if (task->d_name[0] == '.') continue;
        snprintf(path, sizeof path, "/proc/self/task/%s/children", task->d_name);
        f = fopen(path, "re");
        if (!f) continue;
        while (fscanf(f, "%ld", &pid) == 1) any |= look_at(pid);
        fclose(f);
    }
    closedir(tasks);
    return any;
}

/* --- SIGCHLD --------------------------------------------------------------------------------- */

struct reaper {
    uv_signal_t uv; /* must be first: the close callback frees the whole struct */
    struct ipw_loop *loop;
};

static void on_sigchld(uv_signal_t *uv, int signum)
{
    struct reaper *reaper = (struct reaper *)uv;
    bool again = true;

    (void)signum;
    while (again) {
        again = false;
        for (struct ipw_child *c = children; c; c = c->next) {
            siginfo_t info = {0};
            if (c->exited || c->loop != reaper->loop) continue;
            if (waitid(P_PID, (id_t)c->pid, &info, WEXITED | WNOHANG | WNOWAIT) || !info.si_pid)
                continue;
            c->exited = true;
            c->on_exit(c); /* it may start and end other children, so begin the list again */
            again = true;
            break;
        }
    }
    look_at_orphans();
}

static void free_handle(uv_handle_t *handle) { free(handle); }

/* Wait only for a limited time: KILL does not end a process that hangs in the kernel. */
static void kill_and_wait(struct ipw_child *c)
{
    ipw_child_signal(c, SIGKILL);
    for (int ms = 0; ms < 500 && !c->exited; ms++) {
        siginfo_t info = {0};
        if (ms) usleep(1000);
        c->exited =
            waitid(P_PID, (id_t)c->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid;
    }
}

static void free_reaper(void *ud)
{
    struct reaper *reaper = ud;
    struct ipw_child *c = children;

    while (c) {
        if (c->loop == reaper->loop) {
            kill_and_wait(c);
            c->on_loop_free(c);
            c = children;
        } else {
            c = c->next;
        }
    }
    /* Whatever they left outside of their groups is ours when they have ended. */
    for (int ms = 0; ms < 500 && look_at_orphans(); ms++) usleep(1000);
    ipw_cgroup_end_all();
    uv_close((uv_handle_t *)&reaper->uv, free_handle);
}

static void need_reaper(struct ipw_loop *loop)
{
    struct reaper *reaper;

    if (loop->reaper) return;
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    reaper = ipw_calloc(1, sizeof *reaper);
    reaper->loop = loop;
    uv_signal_init(&loop->uv, &reaper->uv);
    if (uv_signal_start(&reaper->uv, on_sigchld, SIGCHLD)) IPW_BUG("SIGCHLD cannot be watched");
    uv_unref((uv_handle_t *)&reaper->uv);
    loop->reaper = reaper;
    loop->reaper_free = free_reaper;
}

/* --- descriptors ----------------------------------------------------------------------------- */

static int lift(int fd)
{
    int high;

    if (fd < 0 || fd > 9) return fd;
    high = fcntl(fd, F_DUPFD_CLOEXEC, 10);
    close(fd);
    return high;
}

/* Moves a new pair of descriptors out of the way of the child's 0..3; `failed`: the pair was not
 * made. */
static int lift_both(int ends[2], bool failed, int ours, struct ipw_err *err)
{
    int e;

    if (failed) {
        e = errno;
        ends[0] = ends[1] = -1;
        return ipw_fail_errno(err, e, "cannot create a pipe");
    }
    ends[0] = lift(ends[0]);
    ends[1] = lift(ends[1]);
    if (ends[0] >= 0 && ends[1] >= 0 && fcntl(ends[ours], F_SETFL, O_NONBLOCK) == 0) return 0;
    e = errno;
    if (ends[0] >= 0) close(ends[0]);
    if (ends[1] >= 0) close(ends[1]);
    ends[0] = ends[1] = -1;
    return ipw_fail_errno(err, e, "cannot create a pipe");
}

int ipw_child_pipe(int ends[2], int ours, struct ipw_err *err)
{
    return lift_both(ends, pipe2(ends, O_CLOEXEC) != 0, ours, err);
}

int ipw_child_null(struct ipw_err *err)
{
    int fd = lift(open("/dev/null", O_RDWR | O_CLOEXEC));

    return fd >= 0 ? fd : ipw_fail_errno(err, errno, "cannot open /dev/null");
}

static void on_pipe(uv_poll_t *uv, int status, int events)
{
    struct ipw_pipe *pipe = (struct ipw_pipe *)uv;

    (void)status, (void)events; /* the next read or write returns the error */
    pipe->on_ready(pipe->ud);
}

struct ipw_pipe *ipw_pipe_watch(struct ipw_loop *loop, int fd, int uv_events,
                                void (*on_ready)(void *ud), void *ud)
{
    struct ipw_pipe *pipe = ipw_calloc(1, sizeof *pipe);

    pipe->fd = fd;
    pipe->on_ready = on_ready;
    pipe->ud = ud;
    if (uv_poll_init(&loop->uv, &pipe->uv, fd) || uv_poll_start(&pipe->uv, uv_events, on_pipe))
        IPW_BUG("a pipe cannot be watched");
    uv_unref((uv_handle_t *)&pipe->uv);
    return pipe;
}

void ipw_pipe_rest(struct ipw_pipe *pipe) { uv_poll_stop(&pipe->uv); }

void ipw_pipe_go_on(struct ipw_pipe *pipe, int uv_events)
{
    if (uv_poll_start(&pipe->uv, uv_events, on_pipe)) IPW_BUG("a pipe cannot be watched");
}

void ipw_pipe_close(struct ipw_pipe **pipe)
{
    if (!*pipe) return;
    uv_close((uv_handle_t *)&(*pipe)->uv, free_handle);
    close((*pipe)->fd);
    *pipe = NULL;
}

/* --- starting -------------------------------------------------------------------------------- */

struct strings {
    char **list;
    size_t n, cap;
};

static void add_string(struct strings *s, char *owned)
{
    IPW_GROW(s->list, s->cap, s->n + 1);
    s->list[s->n++] = owned;
}

static void free_strings(struct strings *s)
{
    for (size_t i = 0; i < s->n; i++) free(s->list[i]);
    free(s->list);
}

/* A later NAME=value replaces an earlier one. */
static void set_env(struct strings *env, char *owned)
{
    size_t name = strcspn(owned, "=");

    for (size_t i = 0; i < env->n; i++) {
        if (strncmp(env->list[i], owned, name + 1) == 0) {
            free(env->list[i]);
            env->list[i] = owned;
            return;
        }
    }
    add_string(env, owned);
}

static void build_env(struct strings *env, const struct ipw_child_spec *spec, unsigned long id)
{
    static const char *const allowed[] = {"HOME", "LANG", "TZ", "TMPDIR"};

    if (spec->inherit_env) {
        for (char **e = environ; *e; e++) add_string(env, ipw_strdup(*e));
    } else {
        add_string(env, ipw_strdup("PATH=" PROC_PATH));
        for (size_t i = 0; i < sizeof allowed / sizeof *allowed; i++) {
            const char *value = getenv(allowed[i]);
            if (value) add_string(env, ipw_asprintf("%s=%s", allowed[i], value));
        }
    }
    for (const char *const *e = spec->env; e && *e; e++) set_env(env, ipw_strdup(*e));
    set_env(env, ipw_asprintf(PROC_MARKER "=%ld.%lu", (long)getpid(), id));
    add_string(env, NULL);
}

static void build_argv(struct strings *argv, const struct ipw_child_spec *spec, const char *cgroup)
{
    add_string(argv, ipw_strdup("ipw-agent"));
    add_string(argv, ipw_strdup("__exec"));
    if (spec->own) add_string(argv, ipw_strdup("own=1"));
    add_string(argv, ipw_asprintf("parent=%ld", (long)getpid()));
    if (spec->measured) add_string(argv, ipw_strdup(spec->sandbox ? "measured=2" : "measured=1"));
    if (cgroup) add_string(argv, ipw_asprintf("cgroup=%s", cgroup));
    if (spec->cpu_s > 0) add_string(argv, ipw_asprintf("cpu=%lld", (long long)spec->cpu_s));
    if (spec->memory_bytes) add_string(argv, ipw_asprintf("memory=%zu", spec->memory_bytes));
    if (spec->file_bytes) add_string(argv, ipw_asprintf("file=%zu", spec->file_bytes));
    if (spec->open_files) add_string(argv, ipw_asprintf("files=%zu", spec->open_files));
    if (spec->sandbox) {
        add_string(argv, ipw_asprintf("sandbox=%s", spec->sandbox));
        for (const char *const *r = spec->reads; r && *r; r++)
            add_string(argv, ipw_asprintf("read=%s", *r));
    }
    if (spec->apart) add_string(argv, ipw_strdup("apart=1"));
    if (spec->cwd) add_string(argv, ipw_asprintf("cwd=%s", spec->cwd));
    add_string(argv, ipw_strdup("--"));
    for (const char *const *a = spec->argv; *a; a++) add_string(argv, ipw_strdup(*a));
    add_string(argv, NULL);
}

int ipw_child_start(struct ipw_child *child, struct ipw_loop *loop,
                    const struct ipw_child_spec *spec, struct ipw_err *err)
{
    struct strings argv = {0}, env = {0};
    int status[2], e, rc;

    child->cgroup = NULL;
    if (spec->sandbox) { /* what it writes to /tmp is memory, too */
        rc = ipw_cgroup_make(&child->cgroup, spec->memory_bytes + IPW_BUBBLEWRAP_TMP_BYTES, err);
        if (rc) return rc;
    }
    rc = ipw_child_pipe(status, 0, err);
    if (rc) {
        ipw_cgroup_end(child->cgroup);
        return rc;
    }
    need_reaper(loop);
    child->id = ++last_id;
    build_argv(&argv, spec, child->cgroup);
    build_env(&env, spec, child->id);
    e = ipw_spawn(&child->pid,
                  &(struct ipw_spawn){.file = helper(),
                                      .argv = (const char *const *)argv.list,
                                      .env = env.list,
                                      .fds = {spec->fds[0], spec->fds[1], spec->fds[2], status[1]},
                                      .place = IPW_SPAWN_SESSION});
    free_strings(&argv);
    free_strings(&env);
    close(status[1]);
    if (e) {
        close(status[0]);
        ipw_cgroup_end(child->cgroup);
        child->pid = 0;
        return ipw_fail_errno(err, e, "cannot start the helper for %s", spec->argv[0]);
    }
    child->status_fd = status[0];
    child->loop = loop;
    child->exited = false;
    child->usage = (struct ipw_child_usage){-1, 0};
    child->in_sandbox = spec->sandbox != NULL;
    child->measured = spec->measured;
    child->next = children;
    children = child;
    return 0;
}

void ipw_child_signal(struct ipw_child *child, int signum) { kill(-child->pid, signum); }

/* Reads an errno; false: none was written.  A report follows the errnos. */
static bool read_errnum(struct ipw_child *child, int *errnum)
{
    struct ipw_child_report report;
    char *rest = (char *)&report + sizeof report.mark;
    size_t n = sizeof report - sizeof report.mark;

    if (read(child->status_fd, &report.mark, sizeof report.mark) != (ssize_t)sizeof report.mark)
        return false;
    *errnum = report.mark;
    if (report.mark != PROC_REPORT) return true;
    if (read(child->status_fd, rest, n) == (ssize_t)n) child->usage = report.usage;
    return false;
}

/* For a program that a signal ended, bubblewrap returns the exit code of a shell: 128 plus the
 * signal's number. */
static void signal_of_code(struct ipw_child_end *end)
{
    if (end->exit_code <= 128 || end->exit_code > 128 + SIGRTMAX) return;
    end->term_signal = end->exit_code - 128;
    end->exit_code = -1;
}

void ipw_child_end(struct ipw_child *child, struct ipw_child_end *end)
{
    struct rusage usage;
    int status, errnum = 0;

    *end = (struct ipw_child_end){.exit_code = -1};
    kill(-child->pid, SIGKILL);
    /* In a sandbox the helper first writes a 0 when it runs inside. */
    end->no_sandbox = child->in_sandbox && !(read_errnum(child, &errnum) && errnum == 0);
    if (errnum > 0 || (!end->no_sandbox && read_errnum(child, &errnum))) end->exec_errno = errnum;
    while (read_errnum(child, &errnum)) continue;
    close(child->status_fd);
    /* A process that has not exited hangs in the kernel.  It is reaped as an orphan when it
     * ends. */
    if (child->exited && wait4(child->pid, &status, 0, &usage) == child->pid) {
        if (WIFEXITED(status)) end->exit_code = WEXITSTATUS(status);
        if (WIFSIGNALED(status)) end->term_signal = WTERMSIG(status);
        if (child->in_sandbox) signal_of_code(end);
        if (!child->measured) ipw_child_usage_add(&child->usage, &usage);
    } else {
        end->term_signal = SIGKILL;
    }
    end->usage = child->usage;
    ipw_cgroup_end(child->cgroup);
    child->cgroup = NULL;
    for (struct ipw_child **c = &children; *c; c = &(*c)->next) {
        if (*c != child) continue;
        *c = child->next;
        break;
    }
    look_at_orphans();
}
