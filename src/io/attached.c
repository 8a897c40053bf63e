#include "io/attached.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "io/proc_priv.h"

struct ipw_attached {
    struct ipw_child child; /* must be first: child.c's callbacks get a pointer to it */
    struct ipw_loop *loop;
    struct ipw_timer timer; /* after a cancel: until the next step of the ladder */
    uv_signal_t window;     /* the terminal changed its size, which only our session is told */
    bool cancelled, killed;
    void (*on_end)(void *ud, const struct ipw_attached_end *end);
    void *ud;
};

char *ipw_attached_find(const char *name)
{
    const char *path = getenv("PATH");
    struct stat st;

    if (strchr(name, '/'))
        return access(name, X_OK) == 0 && stat(name, &st) == 0 && S_ISREG(st.st_mode)
                   ? ipw_strdup(name)
                   : NULL;
    for (const char *at = path ? path : PROC_PATH; *name && *at;) {
        size_t n = strcspn(at, ":");
        char *file = ipw_asprintf("%.*s/%s", n ? (int)n : 1, n ? at : ".", name);

        if (access(file, X_OK) == 0 && stat(file, &st) == 0 && S_ISREG(st.st_mode)) return file;
        free(file);
        at += n + (at[n] == ':');
    }
    return NULL;
}

static void free_closed(uv_handle_t *handle) { free(handle->data); }

static void finish(struct ipw_attached *a)
{
    struct ipw_child_end end;
    struct ipw_attached_end told;

    ipw_child_end(&a->child, &end);
    ipw_timer_disarm(&a->timer);
    ipw_loop_unhold(a->loop);
    if (!a->cancelled) {
        a->loop->leftovers--;
        told = (struct ipw_attached_end){.exec_errno = end.exec_errno,
                                         .exit_code = end.exec_errno ? -1 : end.exit_code,
                                         .term_signal = end.term_signal,
                                         .cpu_ns = end.usage.cpu_ns,
                                         .peak_bytes = end.usage.peak_bytes};
        a->on_end(a->ud, &told);
    }
    uv_close((uv_handle_t *)&a->window, free_closed);
}

static void on_exit_(struct ipw_child *child) { finish((struct ipw_attached *)child); }

static void on_loop_free(struct ipw_child *child)
{
    if (!((struct ipw_attached *)child)->cancelled)
        IPW_BUG("the event loop is freed with an attached program still in use");
    finish((struct ipw_attached *)child);
}

static void on_timer(void *ud)
{
    struct ipw_attached *a = ud;

    if (a->killed) {
        finish(a);
        return;
    }
    a->killed = true;
    ipw_child_signal(&a->child, SIGKILL);
    ipw_timer_arm(&a->timer, ipw_now_ns() + PROC_GRACE_S * IPW_NS_PER_S);
}

static void on_window(uv_signal_t *uv, int signum)
{
    ipw_child_signal(&((struct ipw_attached *)uv->data)->child, signum);
}

int ipw_attached_start(struct ipw_attached **out, struct ipw_loop *loop, const char *const *argv,
                       const char *const *env,
                       void (*on_end)(void *ud, const struct ipw_attached_end *end), void *ud,
                       struct ipw_err *err)
{
    char *file = ipw_attached_find(argv[0]);
    const char **words;
    struct ipw_attached *a;
    size_t n = 0;
    int rc;

    if (!file)
        return ipw_fail(err, IPW_ENOTFOUND, "%.200s: there is no such program%s", argv[0],
                        strchr(argv[0], '/') ? "" : " in $PATH");
    while (argv[n]) n++;
    words = ipw_calloc(n + 1, sizeof *words);
    memcpy(words, argv, n * sizeof *words);
    words[0] = file;
    a = ipw_calloc(1, sizeof *a);
    a->loop = loop;
    a->child.on_exit = on_exit_;
    a->child.on_loop_free = on_loop_free;
    a->timer = (struct ipw_timer){.loop = loop, .fn = on_timer, .ud = a};
    a->on_end = on_end;
    a->ud = ud;
    rc = ipw_child_start(
        &a->child, loop,
        &(struct ipw_child_spec){.argv = words,
                                 .env = env,
                                 .inherit_env = true,
                                 .own = true,
                                 .measured = true,
                                 .fds = {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}},
        err);
    free(words);
    free(file);
    if (rc) {
        free(a);
        return rc;
    }
    uv_signal_init(&loop->uv, &a->window);
    a->window.data = a;
    uv_signal_start(&a->window, on_window, SIGWINCH);
    uv_unref((uv_handle_t *)&a->window);
    ipw_loop_hold(loop);
    loop->leftovers++;
    *out = a;
    return 0;
}

void ipw_attached_signal(struct ipw_attached *a, int signum)
{
    ipw_child_signal(&a->child, signum);
}

void ipw_attached_cancel(struct ipw_attached *a)
{
    if (a->cancelled) IPW_BUG("an attached program is cancelled twice");
    a->cancelled = true;
    a->loop->leftovers--;
    ipw_child_signal(&a->child, SIGTERM);
    ipw_timer_arm(&a->timer, ipw_now_ns() + PROC_GRACE_S * IPW_NS_PER_S);
}
