/* Child processes: their start, their pipes and their end, and the orphans that they leave.
 *
 * Children belong to the process, not to a loop.  A leader that has ended stays a zombie until
 * reap(), so its process group's number cannot be reused while we may still send signals to it.
 * Orphaned processes of children become our children, because the runner is a child subreaper. */
#include "io/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/spawn.h"
#include "io/bubblewrap.h"
#include "io/cgroup.h"
#include "io/loop_priv.h"
#include "io/proc_priv.h"

#define MARKER    "IPW_TOOL_ID" /* in a tool's environment: names the runner and the call */
#define PATHS     "/usr/local/bin:/usr/bin:/bin"
#define SELF      "/proc/self/exe"
#define LINGER_NS (200 * IPW_NS_PER_MS)
#define GRACE_NS  (2 * IPW_NS_PER_S)    /* between TERM and KILL */
#define LOOK_NS   (250 * IPW_NS_PER_MS) /* between two looks at its memory, at least */

enum { DEFAULT_SECONDS = 60, OPEN_FILES = 256, READS_A_ROUND = 4, WAIT_MS = 500, MARK_MAX = 80 };

enum phase {
    RUNNING,
    TERMINATING, /* TERM was sent; when the timer fires, KILL follows */
    KILLING,     /* KILL was sent; when the timer fires, give up */
    LINGERING,   /* the leader has ended; the timer limits the wait for the end of its output */
};

/* Our end of a pipe, watched. */
struct pipe {
    uv_poll_t uv; /* must be first: the close callback frees the whole struct */
    int fd;
    struct ipw_proc *proc;
};

/* What is kept of a stream: all until half of the limit is full, then the last half, in a ring
 * that grows with use. */
struct output {
    struct ipw_buf head, tail; /* `tail` is a ring once it is full */
    size_t tail_start, dropped;
};

struct stream {
    struct pipe *pipe; /* NULL: it has ended */
    struct output kept;
};

struct ipw_proc {
    struct ipw_proc *next; /* in the list of all children of this process */
    struct ipw_loop *loop;
    pid_t pid; /* also its process group and session */
    unsigned long id;
    int status_fd;
    char *cgroup; /* its control group's folder (cgroup.h), or NULL */
    bool in_sandbox, measured;
    bool exited; /* it is a zombie now */
    enum phase phase;
    struct ipw_timer timer; /* the wall limit, then the limit of each phase */
    struct ipw_timer look;  /* at the memory of its processes; not armed in a control group */
    size_t memory_bytes;    /* the limit of them all */
    /* A program with our terminal: the kernel tells only our session when its size changes. */
    struct ipw_watch *window;
    struct pipe *in;
    struct stream out, err;
    char *input;
    size_t input_len, input_sent;
    void (*on_output)(void *ud, const char *bytes, size_t n); /* of a child that stays; or NULL */
    bool timed_out, cancelled, output_rests;
    bool holds; /* the loop */
    int64_t start_ns;
    ipw_proc_fn on_done;
    void *ud;
};

static struct ipw_proc *children; /* used by the loop's thread only */
static unsigned long last_id;
static char *helper_path;
static struct stat helper_file; /* the file that helper_path led to */

static void finish(struct ipw_proc *proc);

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
    FILE *f;
    size_t n;

    snprintf(path, sizeof path, "/proc/%ld/%s", pid, name);
    f = fopen(path, "re");
    n = f ? fread(out, 1, size - 1, f) : 0;
    if (f) fclose(f);
    out[n] = '\0';
    return n;
}

/* The call that a process belongs to, by its environment; 0: that names none. */
static unsigned long owner_of(long pid)
{
    static char env[256 * 1024]; /* for the loop's thread only */
    char want[64];
    size_t n = read_proc_file(env, sizeof env, pid, "environ");
    size_t want_len = (size_t)snprintf(want, sizeof want, MARKER "=%ld.", (long)getpid());

    for (size_t i = 0; i < n; i += strlen(env + i) + 1) {
        if (strncmp(env + i, want, want_len) == 0) return strtoul(env + i + want_len, NULL, 10);
    }
    return 0;
}

static bool has_running_owner(long pid, long session)
{
    unsigned long owner = owner_of(pid);

    for (struct ipw_proc *c = children; c; c = c->next) {
        if (c->id == owner || c->pid == session) return true;
    }
    /* The process wiped its environment and left its session.  While other calls run, it may belong
     * to them. */
    return owner == 0 && children != NULL;
}

/* A child that we did not start may be the orphan of a tool, in another session than ours.  A child
 * in our own session was forked by other code in this process; leave it alone.  Returns whether it
 * was an orphan that has to end. */
static bool look_at(pid_t pid)
{
    char stat[1024], state = 0;
    const char *after_name;
    long session = 0;

    for (struct ipw_proc *c = children; c; c = c->next)
        if (c->pid == pid) return false;
    read_proc_file(stat, sizeof stat, pid, "stat");
    after_name = strrchr(stat, ')');
    if (!after_name || sscanf(after_name + 1, " %c %*d %*d %ld", &state, &session) != 2)
        return false;
    if (session == getsid(0)) return false;
    if (state != 'Z' && has_running_owner(pid, session)) return false;
    if (state != 'Z') kill(pid, SIGKILL);
    waitpid(pid, NULL, WNOHANG);
    return true;
}

static bool look_at_orphans(void)
{
    struct ipw_pids ours = {0};
    bool any = false;

    ipw_pids_add_children(&ours, getpid());
    for (size_t i = 0; i < ours.n; i++) any |= look_at(ours.list[i]);
    free(ours.list);
    return any;
}

/* --- SIGCHLD --------------------------------------------------------------------------------- */

struct reaper {
    uv_signal_t uv; /* must be first: the close callback frees the whole struct */
    struct ipw_loop *loop;
};

static void arm(struct ipw_timer *timer, int64_t delay_ns)
{
    int64_t now = ipw_now_ns();

    ipw_timer_arm(timer, delay_ns > INT64_MAX - now ? INT64_MAX : now + delay_ns);
}

static void on_exit_(struct ipw_proc *proc)
{
    proc->phase = LINGERING;
    if (proc->cancelled || (!proc->out.pipe && !proc->err.pipe))
        finish(proc);
    else
        arm(&proc->timer, LINGER_NS);
}

/* Whether the leader has ended.  It stays a zombie. */
static bool see_exit(struct ipw_proc *proc)
{
    siginfo_t info = {0};

    if (waitid(P_PID, (id_t)proc->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid)
        proc->exited = true;
    return proc->exited;
}

static void on_sigchld(uv_signal_t *uv, int signum)
{
    const struct reaper *reaper = (struct reaper *)uv;
    struct ipw_proc *c = children;

    (void)signum;
    while (c) {
        if (c->exited || c->loop != reaper->loop || !see_exit(c)) {
            c = c->next;
            continue;
        }
        on_exit_(c);
        c = children; /* it may have started and ended other children */
    }
    look_at_orphans();
}

static void free_handle(uv_handle_t *handle) { free(handle); }

static void free_reaper(void *ud)
{
    struct reaper *reaper = ud;

    for (struct ipw_proc *c = children, *next; c; c = next) {
        next = c->next;
        if (c->loop != reaper->loop) continue;
        if (!c->cancelled) IPW_BUG("the event loop is freed with a child process still in use");
        ipw_proc_signal(c, SIGKILL);
        /* Not for ever: KILL does not end a process that hangs in the kernel. */
        for (int ms = 0; ms < WAIT_MS && !see_exit(c); ms++) usleep(1000);
        finish(c);
    }
    /* Whatever they left outside of their groups is ours when they have ended. */
    for (int ms = 0; ms < WAIT_MS && look_at_orphans(); ms++) usleep(1000);
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

/* --- what is kept of its output --------------------------------------------------------------- */

static void output_init(struct output *output, size_t max_bytes)
{
    *output = (struct output){0};
    ipw_buf_init(&output->head, max_bytes - max_bytes / 2);
    ipw_buf_init(&output->tail, max_bytes / 2);
}

static void output_release(struct output *output)
{
    ipw_buf_release(&output->head);
    ipw_buf_release(&output->tail);
}

static void output_add(struct output *output, const char *bytes, size_t n)
{
    struct ipw_buf *head = &output->head, *tail = &output->tail;
    size_t room = head->max - head->len, k = n < room ? n : room;

    ipw_buf_add(head, bytes, k);
    bytes += k;
    n -= k;
    room = tail->max - tail->len;
    k = n < room ? n : room;
    ipw_buf_add(tail, bytes, k);
    bytes += k;
    n -= k;
    output->dropped += n; /* each further byte pushes one out, in the end itself */
    if (n > tail->max) {
        bytes += n - tail->max;
        n = tail->max;
    }
    while (n) {
        k = tail->max - output->tail_start;
        if (k > n) k = n;
        memcpy(tail->data + output->tail_start, bytes, k);
        output->tail_start = (output->tail_start + k) % tail->max;
        bytes += k;
        n -= k;
    }
}

/* Beginning and end in one text that lives as long as `output`.  If bytes were left out, a line
 * between them says how many.  Nothing is added afterwards. */
static const char *output_text(struct output *output, size_t *len)
{
    struct ipw_buf *head = &output->head;
    const struct ipw_buf *tail = &output->tail;

    head->max += tail->len + MARK_MAX;
    if (output->dropped) ipw_buf_addf(head, "\n[... %zu bytes left out ...]\n", output->dropped);
    ipw_buf_add(head, ipw_buf_str(tail) + output->tail_start, tail->len - output->tail_start);
    ipw_buf_add(head, ipw_buf_str(tail), output->tail_start);
    *len = head->len;
    return ipw_buf_str(head);
}

/* --- pipes ----------------------------------------------------------------------------------- */

static void go_on(struct pipe *pipe, int uv_events, uv_poll_cb fn)
{
    if (uv_poll_start(&pipe->uv, uv_events, fn)) IPW_BUG("a pipe cannot be watched");
}

static struct pipe *watch(struct ipw_proc *proc, int fd)
{
    struct pipe *pipe = ipw_calloc(1, sizeof *pipe);

    pipe->fd = fd;
    pipe->proc = proc;
    if (uv_poll_init(&proc->loop->uv, &pipe->uv, fd)) IPW_BUG("a pipe cannot be watched");
    uv_unref((uv_handle_t *)&pipe->uv);
    return pipe;
}

static void close_pipe(struct pipe **pipe)
{
    if (!*pipe) return;
    uv_close((uv_handle_t *)&(*pipe)->uv, free_handle);
    close((*pipe)->fd);
    *pipe = NULL;
}

static void close_pipes(struct ipw_proc *proc)
{
    close_pipe(&proc->in);
    close_pipe(&proc->out.pipe);
    close_pipe(&proc->err.pipe);
}

/* False at the end of the file, or on an error that means the same. */
static bool read_some(struct ipw_proc *proc, struct stream *from)
{
    static char block[64 * 1024]; /* for the loop's thread only; read and copied at once */
    bool live = proc->on_output && from == &proc->out;

    for (int i = 0; i < READS_A_ROUND; i++) {
        ssize_t n = read(from->pipe->fd, block, sizeof block);
        if (n <= 0) return n < 0 && (errno == EAGAIN || errno == EINTR);
        if (live)
            proc->on_output(proc->ud, block, (size_t)n);
        else
            output_add(&from->kept, block, (size_t)n);
        if (live && (proc->cancelled || proc->output_rests)) return true;
    }
    return true;
}

/* In these two the next read or write returns the error, if there is one. */
static void on_readable(uv_poll_t *uv, int status, int events)
{
    const struct pipe *pipe = (struct pipe *)uv;
    struct ipw_proc *proc = pipe->proc;
    struct stream *from = pipe == proc->out.pipe ? &proc->out : &proc->err;

    (void)status, (void)events;
    if (read_some(proc, from)) return;
    close_pipe(&from->pipe);
    if (proc->phase == LINGERING && !proc->out.pipe && !proc->err.pipe) finish(proc);
}

static void on_writable(uv_poll_t *uv, int status, int events)
{
    struct ipw_proc *proc = ((struct pipe *)uv)->proc;
    ssize_t n =
        write(proc->in->fd, proc->input + proc->input_sent, proc->input_len - proc->input_sent);

    (void)status, (void)events;
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (n > 0) proc->input_sent += (size_t)n;
    /* EPIPE: the child does not read its input, which is allowed. */
    if (n < 0 || (!proc->on_output && proc->input_sent == proc->input_len))
        close_pipe(&proc->in);
    else if (proc->input_sent == proc->input_len)
        uv_poll_stop(uv);
}

int ipw_proc_write(struct ipw_proc *proc, const char *bytes, size_t n, struct ipw_err *err)
{
    size_t left = proc->input_len - proc->input_sent;

    if (!proc->in || !n) return 0;
    if (n > IPW_PROC_UNREAD_BYTES || left > IPW_PROC_UNREAD_BYTES - n)
        return ipw_fail(err, IPW_ELIMIT, "it does not read: more than %zu bytes wait for it",
                        IPW_PROC_UNREAD_BYTES);
    if (left) memmove(proc->input, proc->input + proc->input_sent, left);
    proc->input = ipw_realloc(proc->input, left + n);
    memcpy(proc->input + left, bytes, n);
    proc->input_len = left + n;
    proc->input_sent = 0;
    if (!left) go_on(proc->in, UV_WRITABLE, on_writable);
    return 0;
}

void ipw_proc_rest_output(struct ipw_proc *proc, bool rests)
{
    if (rests == proc->output_rests) return;
    proc->output_rests = rests;
    if (!proc->out.pipe) return;
    if (rests)
        uv_poll_stop(&proc->out.pipe->uv);
    else
        go_on(proc->out.pipe, UV_READABLE, on_readable);
}

/* --- the end --------------------------------------------------------------------------------- */

static void hold(struct ipw_proc *proc, bool on)
{
    if (on == proc->holds) return;
    proc->holds = on;
    if (on)
        ipw_loop_hold(proc->loop);
    else
        ipw_loop_unhold(proc->loop);
}

void ipw_proc_background(struct ipw_proc *proc) { hold(proc, false); }

/* Reads an errno; false: none was written.  A report follows the errnos. */
static bool read_errnum(const struct ipw_proc *proc, int *errnum, struct ipw_usage *usage)
{
    struct ipw_usage_report report;
    char *rest = (char *)&report + sizeof report.mark;
    size_t n = sizeof report - sizeof report.mark;

    if (read(proc->status_fd, &report.mark, sizeof report.mark) != (ssize_t)sizeof report.mark)
        return false;
    *errnum = report.mark;
    if (report.mark != PROC_REPORT) return true;
    if (read(proc->status_fd, rest, n) == (ssize_t)n) *usage = report.usage;
    return false;
}

/* Kills the rest of the group, reaps the leader if it has exited, and takes the child from the
 * list.  Then kills orphans without a running owner. */
static void reap(struct ipw_proc *proc, struct ipw_proc_result *end)
{
    struct ipw_usage used = {-1, 0};
    struct rusage usage;
    int status, errnum = 0;

    end->exit_code = -1;
    kill(-proc->pid, SIGKILL);
    /* In a sandbox the helper first writes a 0 when it runs inside. */
    end->no_sandbox = proc->in_sandbox && !(read_errnum(proc, &errnum, &used) && errnum == 0);
    if (errnum > 0 || (!end->no_sandbox && read_errnum(proc, &errnum, &used)))
        end->exec_errno = errnum;
    while (read_errnum(proc, &errnum, &used)) continue;
    close(proc->status_fd);
    end->term_signal = SIGKILL;
    /* A process that has not exited hangs in the kernel.  It is reaped as an orphan when it
     * ends. */
    if (proc->exited && wait4(proc->pid, &status, 0, &usage) == proc->pid) {
        int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
        /* For a program that a signal ended, bubblewrap returns the exit code of a shell. */
        bool by_signal = proc->in_sandbox && code > 128 && code <= 128 + SIGRTMAX;

        end->term_signal = by_signal ? code - 128 : WIFSIGNALED(status) ? WTERMSIG(status) : 0;
        end->exit_code = by_signal || end->exec_errno ? -1 : code;
        if (!proc->measured) ipw_usage_add(&used, &usage);
    }
    /* The kernel forgets what the processes of a sandbox used whose first one was killed. */
    if (proc->timed_out && proc->in_sandbox) used = (struct ipw_usage){-1, 0};
    end->cpu_ns = used.cpu_ns;
    end->peak_bytes = used.peak_bytes;
    ipw_cgroup_end(proc->cgroup);
    for (struct ipw_proc **c = &children; *c; c = &(*c)->next) {
        if (*c != proc) continue;
        *c = proc->next;
        break;
    }
    look_at_orphans();
}

static void finish(struct ipw_proc *proc)
{
    struct ipw_proc_result result = {.timed_out = proc->timed_out, .start_ns = proc->start_ns};

    reap(proc, &result);
    result.no_sandbox = result.no_sandbox && !proc->timed_out;
    ipw_watch_cancel(proc->window);
    if (!proc->cancelled && proc->out.pipe) read_some(proc, &proc->out);
    if (!proc->cancelled && proc->err.pipe) read_some(proc, &proc->err);
    close_pipes(proc);
    ipw_timer_disarm(&proc->timer);
    ipw_timer_disarm(&proc->look);
    hold(proc, false);
    if (!proc->cancelled) {
        proc->loop->leftovers--;
        result.out_dropped = proc->out.kept.dropped;
        result.err_dropped = proc->err.kept.dropped;
        result.out = output_text(&proc->out.kept, &result.out_len);
        result.err = output_text(&proc->err.kept, &result.err_len);
        result.end_ns = ipw_now_ns();
        proc->on_done(proc->ud, &result);
    }
    output_release(&proc->out.kept);
    output_release(&proc->err.kept);
    free(proc->input);
    free(proc);
}

/* The next step towards its end: TERM, then KILL. */
static void end_group(struct ipw_proc *proc, enum phase phase)
{
    proc->phase = phase;
    ipw_proc_signal(proc, phase == TERMINATING ? SIGTERM : SIGKILL);
    arm(&proc->timer, GRACE_NS);
}

static void on_timer(void *ud)
{
    struct ipw_proc *proc = ud;

    switch (proc->phase) {
    case RUNNING:
        proc->timed_out = true;
        end_group(proc, TERMINATING);
        break;
    case TERMINATING: end_group(proc, KILLING); break;
    case KILLING: /* KILL does not end a process that hangs in the kernel */
    case LINGERING: finish(proc); break;
    }
}

/* RLIMIT_AS limits each process alone.  The kernel ends a control group whose processes need too
 * much together; without one, this does.  Looking takes at most a fiftieth of the time. */
static void look_at_memory(void *ud)
{
    struct ipw_proc *proc = ud;
    int64_t start_ns = ipw_now_ns(), rest_ns;

    if (proc->phase != RUNNING) return;
    if (ipw_pids_memory_over(proc->pid, proc->memory_bytes)) {
        char line[120];
        int n = snprintf(line, sizeof line,
                         "ended: its processes together need more than %zu MiB of memory\n",
                         proc->memory_bytes / IPW_MIB);

        output_add(&proc->err.kept, line, (size_t)n);
        end_group(proc, KILLING);
        return;
    }
    rest_ns = 50 * (ipw_now_ns() - start_ns);
    arm(&proc->look, rest_ns > LOOK_NS ? rest_ns : LOOK_NS);
}

void ipw_proc_cancel(struct ipw_proc *proc)
{
    if (proc->cancelled) IPW_BUG("a child process is cancelled twice");
    proc->cancelled = true;
    hold(proc, true);
    proc->loop->leftovers--;
    ipw_watch_cancel(proc->window);
    proc->window = NULL;
    close_pipes(proc);
    if (proc->phase == RUNNING)
        end_group(proc, TERMINATING);
    else if (proc->phase == LINGERING)
        arm(&proc->timer, 0);
}

void ipw_proc_signal(struct ipw_proc *proc, int signum) { kill(-proc->pid, signum); }

uint64_t ipw_proc_removed_bytes(const struct ipw_proc *proc, const char *folder)
{
    return ipw_pids_removed_bytes(proc->pid, folder);
}

/* --- its words and its environment ----------------------------------------------------------- */

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

/* A tool gets an allow-list; others our whole environment, which holds no keys (base/keyring.h). */
static void build_env(struct strings *env, const struct ipw_proc_request *request, unsigned long id)
{
    static const char *const allowed[] = {"HOME", "LANG", "TZ", "TMPDIR"};

    if (request->whose != IPW_PROC_TOOL) {
        for (char **e = environ; *e; e++) add_string(env, ipw_strdup(*e));
    } else {
        add_string(env, ipw_strdup("PATH=" PATHS));
        for (size_t i = 0; i < sizeof allowed / sizeof *allowed; i++) {
            const char *value = getenv(allowed[i]);
            if (value) add_string(env, ipw_asprintf("%s=%s", allowed[i], value));
        }
    }
    for (const char *const *e = request->env; e && *e; e++) set_env(env, ipw_strdup(*e));
    set_env(env, ipw_asprintf(MARKER "=%ld.%lu", (long)getpid(), id));
    add_string(env, NULL);
}

static void add_limits(struct strings *argv, const struct ipw_proc *proc,
                       const struct ipw_proc_request *r)
{
    add_string(argv,
               ipw_asprintf("cpu=%lld", (long long)(r->cpu_s > 0 ? r->cpu_s : DEFAULT_SECONDS)));
    add_string(argv, ipw_asprintf("memory=%zu", proc->memory_bytes));
    add_string(argv, ipw_asprintf("file=%zu", r->file_bytes ? r->file_bytes : 1024 * IPW_MIB));
    add_string(argv, ipw_asprintf("files=%d", OPEN_FILES));
    if (r->sandbox) add_string(argv, ipw_asprintf("sandbox=%s", r->cwd ? r->cwd : ""));
    for (const char *const *path = r->sandbox ? r->reads : NULL; path && *path; path++)
        add_string(argv, ipw_asprintf("read=%s", *path));
    add_string(argv, ipw_strdup("apart=1"));
}

/* The helper's options (proc_helper.c), then the program's words; `file` takes the first one's
 * place.  A program that is not measured is our own child: what the kernel then says of its memory
 * begins at ours, because posix_spawn shares it. */
static void build_argv(struct strings *argv, const struct ipw_proc *proc,
                       const struct ipw_proc_request *request, const char *file)
{
    add_string(argv, ipw_strdup("ipw-agent"));
    add_string(argv, ipw_strdup("__exec"));
    if (request->whose == IPW_PROC_USERS) add_string(argv, ipw_strdup("own=1"));
    add_string(argv, ipw_asprintf("parent=%ld", (long)getpid()));
    if (proc->measured) add_string(argv, ipw_asprintf("measured=%d", proc->in_sandbox ? 2 : 1));
    if (proc->cgroup) add_string(argv, ipw_asprintf("cgroup=%s", proc->cgroup));
    if (request->whose == IPW_PROC_TOOL) add_limits(argv, proc, request);
    if (request->cwd) add_string(argv, ipw_asprintf("cwd=%s", request->cwd));
    add_string(argv, ipw_strdup("--"));
    add_string(argv, ipw_strdup(file));
    for (const char *const *a = request->argv + 1; *a; a++) add_string(argv, ipw_strdup(*a));
    add_string(argv, NULL);
}

static bool is_program(const char *file)
{
    struct stat st;

    return access(file, X_OK) == 0 && stat(file, &st) == 0 && S_ISREG(st.st_mode);
}

char *ipw_proc_find(const char *name)
{
    const char *path = getenv("PATH");

    if (strchr(name, '/')) return is_program(name) ? ipw_strdup(name) : NULL;
    for (const char *at = path ? path : PATHS; *name && *at;) {
        size_t n = strcspn(at, ":");
        char *file = ipw_asprintf("%.*s/%s", n ? (int)n : 1, n ? at : ".", name);

        if (is_program(file)) return file;
        free(file);
        at += n + (at[n] == ':');
    }
    return NULL;
}

int ipw_proc_own_file(char *out, size_t size, struct ipw_err *err)
{
    ssize_t n = readlink(SELF, out, size - 1);

    if (n < 0) return ipw_fail_errno(err, errno, SELF " (is /proc mounted?)");
    out[n] = '\0';
    return 0;
}

/* --- starting -------------------------------------------------------------------------------- */

/* The descriptors of a start, by number: 0, 1, 2, and the helper's status.  -1: none, or one that
 * the child shares with us.  Ours do not block; the child's are closed in any case. */
struct ends {
    int ours[4], childs[4];
};

/* Above 9, so that it does not collide with the child's 0..3. */
static int lift(int fd)
{
    int high;

    if (fd < 0 || fd > 9) return fd;
    high = fcntl(fd, F_DUPFD_CLOEXEC, 10);
    close(fd);
    return high;
}

static int make_pipe(struct ends *ends, int which, struct ipw_err *err)
{
    int fds[2], ours = which == 0;

    if (pipe2(fds, O_CLOEXEC)) return ipw_fail_errno(err, errno, "cannot create a pipe");
    ends->ours[which] = lift(fds[ours]);
    ends->childs[which] = lift(fds[!ours]);
    if (ends->ours[which] >= 0 && ends->childs[which] >= 0 &&
        fcntl(ends->ours[which], F_SETFL, O_NONBLOCK) == 0)
        return 0;
    return ipw_fail_errno(err, errno, "cannot create a pipe");
}

static int make_ends(struct ends *ends, const struct ipw_proc_request *request, struct ipw_err *err)
{
    bool talks = request->input_len || (request->on_output && request->whose == IPW_PROC_TOOL);
    int rc = 0;

    memset(ends, -1, sizeof *ends);
    if (request->whose != IPW_PROC_USERS) { /* that has our descriptors */
        if (talks) {
            rc = make_pipe(ends, 0, err);
        } else {
            ends->childs[0] = lift(open("/dev/null", O_RDWR | O_CLOEXEC));
            if (ends->childs[0] < 0) rc = ipw_fail_errno(err, errno, "cannot open /dev/null");
        }
        if (!rc) rc = make_pipe(ends, 1, err);
        if (!rc && request->whose == IPW_PROC_TOOL) rc = make_pipe(ends, 2, err);
    }
    return rc ? rc : make_pipe(ends, PROC_STATUS_FD, err);
}

static void close_all(const int *fds)
{
    for (size_t i = 0; i < 4; i++)
        if (fds[i] >= 0) close(fds[i]);
}

static int spawn(struct ipw_proc *proc, const struct ipw_proc_request *request, const char *file,
                 const struct ends *ends, struct ipw_err *err)
{
    struct strings argv = {0}, env = {0};
    struct ipw_spawn how = {.file = helper(), .place = IPW_SPAWN_SESSION};
    int e;

    need_reaper(proc->loop);
    proc->id = ++last_id;
    build_argv(&argv, proc, request, file);
    build_env(&env, request, proc->id);
    how.argv = (const char *const *)argv.list;
    how.env = env.list;
    for (int fd = 0; fd < 4; fd++) how.fds[fd] = ends->childs[fd] < 0 ? fd : ends->childs[fd];
    e = ipw_spawn(&proc->pid, &how);
    free_strings(&argv);
    free_strings(&env);
    return e ? ipw_fail_errno(err, e, "cannot start the helper for %s", file) : 0;
}

static int start_child(struct ipw_proc *proc, const struct ipw_proc_request *request,
                       const char *file, struct ipw_err *err)
{
    struct ends ends;
    int rc = make_ends(&ends, request, err);

    /* What a program in a sandbox writes to /tmp is memory, too. */
    if (!rc && proc->in_sandbox)
        rc = ipw_cgroup_make(&proc->cgroup, proc->memory_bytes + IPW_BUBBLEWRAP_TMP_BYTES, err);
    if (!rc) rc = spawn(proc, request, file, &ends, err);
    close_all(ends.childs);
    if (rc) {
        close_all(ends.ours);
        ipw_cgroup_end(proc->cgroup);
        return rc;
    }
    proc->status_fd = ends.ours[PROC_STATUS_FD];
    proc->next = children;
    children = proc;
    if (ends.ours[0] >= 0) proc->in = watch(proc, ends.ours[0]);
    if (ends.ours[1] >= 0) proc->out.pipe = watch(proc, ends.ours[1]);
    if (ends.ours[2] >= 0) proc->err.pipe = watch(proc, ends.ours[2]);
    if (proc->in && proc->input_len) go_on(proc->in, UV_WRITABLE, on_writable);
    if (proc->out.pipe) go_on(proc->out.pipe, UV_READABLE, on_readable);
    if (proc->err.pipe) go_on(proc->err.pipe, UV_READABLE, on_readable);
    return 0;
}

static void on_window(void *ud) { ipw_proc_signal(ud, SIGWINCH); }

/* The user's own program has our descriptors, so nothing comes through us. */
static int start_users(struct ipw_proc *proc, const struct ipw_proc_request *request,
                       struct ipw_err *err)
{
    const char *name = request->argv[0];
    char *file = ipw_proc_find(name);
    int rc = file ? start_child(proc, request, file, err)
                  : ipw_fail(err, IPW_ENOTFOUND, "%.200s: there is no such program%s", name,
                             strchr(name, '/') ? "" : " in $PATH");

    free(file);
    if (!rc) proc->window = ipw_signal_start(proc->loop, SIGWINCH, on_window, proc);
    return rc;
}

/* Servers of tools have a limit above it. */
static size_t machine_memory(void)
{
    return (size_t)sysconf(_SC_PHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE);
}

int ipw_proc_start(struct ipw_proc **out, struct ipw_loop *loop,
                   const struct ipw_proc_request *request, ipw_proc_fn on_done, void *ud,
                   struct ipw_err *err)
{
    size_t output_max = request->output_max_bytes ? request->output_max_bytes : IPW_MIB;
    struct ipw_proc *proc;
    int rc;

    if (!request->argv || !request->argv[0] || !request->argv[0][0])
        return ipw_fail(err, IPW_EINVAL, "no program was named");
    for (const char *const *e = request->env; e && *e; e++) {
        if (**e == '=' || !strchr(*e, '='))
            return ipw_fail(err, IPW_EINVAL, "'%s' is not NAME=value", *e);
    }
    proc = ipw_calloc(1, sizeof *proc);
    proc->loop = loop;
    proc->measured = request->whose != IPW_PROC_OURS;
    proc->in_sandbox = request->sandbox && request->whose == IPW_PROC_TOOL;
    proc->timer = (struct ipw_timer){.loop = loop, .fn = on_timer, .ud = proc};
    proc->look = (struct ipw_timer){.loop = loop, .fn = look_at_memory, .ud = proc};
    proc->memory_bytes = request->memory_bytes ? request->memory_bytes : 2048 * IPW_MIB;
    proc->on_output = request->on_output;
    proc->on_done = on_done;
    proc->ud = ud;
    proc->start_ns = ipw_now_ns();
    output_init(&proc->out.kept, output_max);
    output_init(&proc->err.kept, output_max);
    if (request->input_len) {
        proc->input = ipw_memdup(request->input, request->input_len);
        proc->input_len = request->input_len;
    }
    rc = request->whose == IPW_PROC_USERS ? start_users(proc, request, err)
                                          : start_child(proc, request, request->argv[0], err);
    if (rc) {
        free(proc->input);
        free(proc);
        return rc;
    }
    hold(proc, true);
    loop->leftovers++;
    *out = proc;
    if (request->whose != IPW_PROC_TOOL) return 0;
    arm(&proc->timer, request->wall_ns > 0 ? request->wall_ns : DEFAULT_SECONDS * IPW_NS_PER_S);
    if (!proc->cgroup && proc->memory_bytes < machine_memory()) arm(&proc->look, LOOK_NS);
    return 0;
}
