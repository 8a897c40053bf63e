#include "io/proc.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "io/proc_output.h"
#include "io/proc_priv.h"

enum { DEFAULT_SECONDS = 60, OPEN_FILES = 256, READS_A_ROUND = 4 };
#define MEMORY_LOOK_NS (250 * IPW_NS_PER_MS) /* between two looks at its memory, at least */

enum phase {
    RUNNING,
    TERMINATING, /* TERM was sent; when the timer fires, KILL follows */
    KILLING,     /* KILL was sent; when the timer fires, give up */
    LINGERING,   /* the leader has ended; the timer limits the wait for the end of its output */
};

struct ipw_proc {
    struct ipw_child child; /* must be first: child.c's callbacks get a pointer to it */
    struct ipw_loop *loop;
    enum phase phase;
    struct ipw_timer timer; /* the wall limit, then the limit of each phase */
    struct ipw_timer look;  /* at the memory of its processes; not armed in a control group */
    size_t memory_bytes;    /* the limit of them all */
    struct ipw_watch
        *window; /* of a program with our terminal: only our session is told its size */
    struct ipw_pipe *in, *out, *err;
    struct ipw_output out_kept, err_kept;
    char *input;
    size_t input_len, input_sent;
    void (*on_output)(void *ud, const char *bytes, size_t n); /* of a child that stays; or NULL */
    bool timed_out, cancelled, output_rests;
    bool holds; /* the loop */
    int64_t start_ns;
    ipw_proc_fn on_done;
    void *ud;
};

static void arm_timer(struct ipw_timer *timer, int64_t delay_ns)
{
    int64_t now = ipw_now_ns();

    ipw_timer_arm(timer, delay_ns > INT64_MAX - now ? INT64_MAX : now + delay_ns);
}

static void arm(struct ipw_proc *proc, int64_t delay_ns) { arm_timer(&proc->timer, delay_ns); }

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

/* --- the end --------------------------------------------------------------------------------- */

static void drain(struct ipw_proc *proc, struct ipw_pipe *pipe, struct ipw_output *kept);

static void finish(struct ipw_proc *proc)
{
    struct ipw_child_end end;
    struct ipw_proc_result result;

    ipw_child_end(&proc->child, &end);
    /* The kernel forgets what the processes of a sandbox used whose first one was killed. */
    if (proc->timed_out && proc->child.in_sandbox) end.usage = (struct ipw_child_usage){-1, 0};
    ipw_watch_cancel(proc->window);
    if (!proc->cancelled) drain(proc, proc->out, &proc->out_kept);
    if (!proc->cancelled) drain(proc, proc->err, &proc->err_kept);
    ipw_pipe_close(&proc->in);
    ipw_pipe_close(&proc->out);
    ipw_pipe_close(&proc->err);
    ipw_timer_disarm(&proc->timer);
    ipw_timer_disarm(&proc->look);
    hold(proc, false);
    if (!proc->cancelled) {
        proc->loop->leftovers--;
        result = (struct ipw_proc_result){
            .exec_errno = end.exec_errno,
            .no_sandbox = end.no_sandbox && !proc->timed_out,
            .exit_code = end.exec_errno ? -1 : end.exit_code,
            .term_signal = end.term_signal,
            .timed_out = proc->timed_out,
            .out_dropped = proc->out_kept.dropped,
            .err_dropped = proc->err_kept.dropped,
            .start_ns = proc->start_ns,
            .end_ns = ipw_now_ns(),
            .cpu_ns = end.usage.cpu_ns,
            .peak_bytes = end.usage.peak_bytes,
        };
        result.out = ipw_output_text(&proc->out_kept, &result.out_len);
        result.err = ipw_output_text(&proc->err_kept, &result.err_len);
        proc->on_done(proc->ud, &result);
    }
    ipw_output_release(&proc->out_kept);
    ipw_output_release(&proc->err_kept);
    free(proc->input);
    free(proc);
}

static void on_exit_(struct ipw_child *child)
{
    struct ipw_proc *proc = (struct ipw_proc *)child;

    proc->phase = LINGERING;
    if (proc->cancelled || (!proc->out && !proc->err))
        finish(proc);
    else
        arm(proc, PROC_LINGER_MS * IPW_NS_PER_MS);
}

static void on_loop_free(struct ipw_child *child)
{
    if (!((struct ipw_proc *)child)->cancelled)
        IPW_BUG("the event loop is freed with a child process still in use");
    finish((struct ipw_proc *)child);
}

static void on_timer(void *ud)
{
    struct ipw_proc *proc = ud;

    switch (proc->phase) {
    case RUNNING:
        proc->timed_out = true;
        proc->phase = TERMINATING;
        ipw_child_signal(&proc->child, SIGTERM);
        arm(proc, PROC_GRACE_S * IPW_NS_PER_S);
        break;
    case TERMINATING:
        proc->phase = KILLING;
        ipw_child_signal(&proc->child, SIGKILL);
        arm(proc, PROC_GRACE_S * IPW_NS_PER_S);
        break;
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
    if (ipw_child_memory_over(proc->child.pid, proc->memory_bytes)) {
        char line[120];
        int n = snprintf(line, sizeof line,
                         "ended: its processes together need more than %zu MiB of memory\n",
                         proc->memory_bytes / IPW_MIB);

        ipw_output_add(&proc->err_kept, line, (size_t)n);
        proc->phase = KILLING;
        ipw_child_signal(&proc->child, SIGKILL);
        arm(proc, PROC_GRACE_S * IPW_NS_PER_S);
        return;
    }
    rest_ns = 50 * (ipw_now_ns() - start_ns);
    arm_timer(&proc->look, rest_ns > MEMORY_LOOK_NS ? rest_ns : MEMORY_LOOK_NS);
}

/* --- pipes ----------------------------------------------------------------------------------- */

/* False at the end of the file, or on an error that means the same. */
static bool read_some(struct ipw_proc *proc, struct ipw_pipe *pipe, struct ipw_output *kept)
{
    bool live = proc->on_output && kept == &proc->out_kept;

    static char block[64 * 1024]; /* for the loop's thread only; read and copied at once */

    for (int i = 0; i < READS_A_ROUND; i++) {
        ssize_t n = read(pipe->fd, block, sizeof block);
        if (n <= 0) return n < 0 && (errno == EAGAIN || errno == EINTR);
        if (live)
            proc->on_output(proc->ud, block, (size_t)n);
        else
            ipw_output_add(kept, block, (size_t)n);
        if (live && (proc->cancelled || proc->output_rests)) return true;
    }
    return true;
}

static void drain(struct ipw_proc *proc, struct ipw_pipe *pipe, struct ipw_output *kept)
{
    if (pipe) read_some(proc, pipe, kept);
}

static void on_readable(struct ipw_proc *proc, struct ipw_pipe **pipe, struct ipw_output *kept)
{
    if (read_some(proc, *pipe, kept)) return;
    ipw_pipe_close(pipe);
    if (proc->phase == LINGERING && !proc->out && !proc->err) finish(proc);
}

static void on_out(void *ud)
{
    struct ipw_proc *proc = ud;

    on_readable(proc, &proc->out, &proc->out_kept);
}

static void on_err(void *ud)
{
    struct ipw_proc *proc = ud;

    on_readable(proc, &proc->err, &proc->err_kept);
}

static void on_in(void *ud)
{
    struct ipw_proc *proc = ud;
    ssize_t n =
        write(proc->in->fd, proc->input + proc->input_sent, proc->input_len - proc->input_sent);

    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (n > 0) proc->input_sent += (size_t)n;
    /* EPIPE: the child does not read its input, which is allowed. */
    if (n < 0 || (!proc->on_output && proc->input_sent == proc->input_len))
        ipw_pipe_close(&proc->in);
    else if (proc->input_sent == proc->input_len)
        ipw_pipe_rest(proc->in);
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
    if (!left) ipw_pipe_go_on(proc->in, UV_WRITABLE);
    return 0;
}

void ipw_proc_rest_output(struct ipw_proc *proc, bool rests)
{
    if (rests == proc->output_rests) return;
    proc->output_rests = rests;
    if (!proc->out) return;
    if (rests)
        ipw_pipe_rest(proc->out);
    else
        ipw_pipe_go_on(proc->out, UV_READABLE);
}

/* --- starting -------------------------------------------------------------------------------- */

static void close_all(int *fds, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (fds[i] >= 0) close(fds[i]);
    }
}

static void set_limits(struct ipw_child_spec *spec, const struct ipw_proc *proc,
                       const struct ipw_proc_request *request)
{
    spec->cpu_s = request->cpu_s > 0 ? request->cpu_s : DEFAULT_SECONDS;
    spec->memory_bytes = proc->memory_bytes;
    spec->file_bytes = request->file_bytes ? request->file_bytes : 1024 * IPW_MIB;
    spec->open_files = OPEN_FILES;
    spec->reads = request->reads;
    spec->apart = spec->measured = true;
    if (request->sandbox) spec->sandbox = request->cwd ? request->cwd : "";
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
    for (const char *at = path ? path : PROC_PATH; *name && *at;) {
        size_t n = strcspn(at, ":");
        char *file = ipw_asprintf("%.*s/%s", n ? (int)n : 1, n ? at : ".", name);

        if (is_program(file)) return file;
        free(file);
        at += n + (at[n] == ':');
    }
    return NULL;
}

static void on_window(void *ud) { ipw_child_signal(&((struct ipw_proc *)ud)->child, SIGWINCH); }

/* The user's own program has our descriptors, so nothing comes through us. */
static int start_users(struct ipw_proc *proc, struct ipw_child_spec *spec, struct ipw_err *err)
{
    char *file = ipw_proc_find(spec->argv[0]);
    const char **words;
    size_t n = 0;
    int rc;

    if (!file)
        return ipw_fail(err, IPW_ENOTFOUND, "%.200s: there is no such program%s", spec->argv[0],
                        strchr(spec->argv[0], '/') ? "" : " in $PATH");
    while (spec->argv[n]) n++;
    words = ipw_calloc(n + 1, sizeof *words);
    memcpy(words, spec->argv, n * sizeof *words);
    words[0] = file;
    spec->argv = words;
    spec->inherit_env = spec->own = spec->measured = true;
    for (int fd = 0; fd <= STDERR_FILENO; fd++) spec->fds[fd] = fd;
    rc = ipw_child_start(&proc->child, proc->loop, spec, err);
    if (!rc) proc->window = ipw_signal_start(proc->loop, SIGWINCH, on_window, proc);
    free(words);
    free(file);
    return rc;
}

static int start_child(struct ipw_proc *proc, const struct ipw_proc_request *request,
                       struct ipw_err *err)
{
    /* The child's ends are at 0, 3 and 5; they are closed here in any case. */
    int fds[6] = {-1, -1, -1, -1, -1, -1};
    struct ipw_child_spec spec = {.argv = request->argv, .cwd = request->cwd, .env = request->env};
    bool ours = request->whose == IPW_PROC_OURS;
    int rc = 0;

    if (request->whose == IPW_PROC_USERS) return start_users(proc, &spec, err);
    if (ours)
        spec.inherit_env = true;
    else
        set_limits(&spec, proc, request);
    if (proc->input_len || (proc->on_output && !ours)) {
        rc = ipw_child_pipe(fds, 1, err);
    } else {
        fds[0] = ipw_child_null(err);
        if (fds[0] < 0) rc = fds[0];
    }
    if (!rc) rc = ipw_child_pipe(fds + 2, 0, err);
    if (!rc && !ours) rc = ipw_child_pipe(fds + 4, 0, err);
    if (!rc) {
        spec.fds[0] = fds[0];
        spec.fds[1] = fds[3];
        spec.fds[2] = ours ? STDERR_FILENO : fds[5];
        rc = ipw_child_start(&proc->child, proc->loop, &spec, err);
    }
    if (rc) {
        close_all(fds, 6);
        return rc;
    }
    close(fds[0]);
    close(fds[3]);
    if (fds[5] >= 0) close(fds[5]);
    if (fds[1] >= 0) proc->in = ipw_pipe_watch(proc->loop, fds[1], UV_WRITABLE, on_in, proc);
    if (proc->in && !proc->input_len) ipw_pipe_rest(proc->in);
    proc->out = ipw_pipe_watch(proc->loop, fds[2], UV_READABLE, on_out, proc);
    if (fds[4] >= 0) proc->err = ipw_pipe_watch(proc->loop, fds[4], UV_READABLE, on_err, proc);
    return 0;
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
    proc->child.on_exit = on_exit_;
    proc->child.on_loop_free = on_loop_free;
    proc->timer = (struct ipw_timer){.loop = loop, .fn = on_timer, .ud = proc};
    proc->look = (struct ipw_timer){.loop = loop, .fn = look_at_memory, .ud = proc};
    proc->memory_bytes = request->memory_bytes ? request->memory_bytes : 2048 * IPW_MIB;
    proc->on_output = request->on_output;
    proc->on_done = on_done;
    proc->ud = ud;
    proc->start_ns = ipw_now_ns();
    ipw_output_init(&proc->out_kept, output_max);
    ipw_output_init(&proc->err_kept, output_max);
    if (request->input_len) {
        proc->input = ipw_memdup(request->input, request->input_len);
        proc->input_len = request->input_len;
    }
    rc = start_child(proc, request, err);
    if (rc) {
        free(proc->input);
        free(proc);
        return rc;
    }
    hold(proc, true);
    loop->leftovers++;
    *out = proc;
    if (request->whose != IPW_PROC_TOOL) return 0;
    arm(proc, request->wall_ns > 0 ? request->wall_ns : DEFAULT_SECONDS * IPW_NS_PER_S);
    if (!proc->child.cgroup && proc->memory_bytes < machine_memory())
        arm_timer(&proc->look, MEMORY_LOOK_NS);
    return 0;
}

uint64_t ipw_proc_removed_bytes(const struct ipw_proc *proc, const char *folder)
{
    return ipw_child_removed_bytes(proc->child.pid, folder);
}

void ipw_proc_cancel(struct ipw_proc *proc)
{
    if (proc->cancelled) IPW_BUG("a child process is cancelled twice");
    proc->cancelled = true;
    hold(proc, true);
    proc->loop->leftovers--;
    ipw_watch_cancel(proc->window);
    proc->window = NULL;
    ipw_pipe_close(&proc->in);
    ipw_pipe_close(&proc->out);
    ipw_pipe_close(&proc->err);
    if (proc->phase == RUNNING) {
        proc->phase = TERMINATING;
        ipw_child_signal(&proc->child, SIGTERM);
        arm(proc, PROC_GRACE_S * IPW_NS_PER_S);
    } else if (proc->phase == LINGERING) {
        arm(proc, 0);
    }
}

void ipw_proc_signal(struct ipw_proc *proc, int signum) { ipw_child_signal(&proc->child, signum); }

int ipw_proc_own_file(char *out, size_t size, struct ipw_err *err)
{
    ssize_t n = readlink("/proc/self/exe", out, size - 1);

    if (n < 0) return ipw_fail_errno(err, errno, "/proc/self/exe (is /proc mounted?)");
    out[n] = '\0';
    return 0;
}
