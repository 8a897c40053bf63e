/* A child of our own that runs until it is stopped: no limits, our environment, our stderr.  After
 * its first line, its output lines go to the log. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "io/proc_priv.h"

enum { LINE_MAX_BYTES = 4096 };

struct ipw_service {
    struct ipw_child child; /* must be first: child.c's callbacks get a pointer to it */
    struct ipw_loop *loop;
    struct ipw_pipe *out;
    struct ipw_buf line; /* the line being read */
    struct ipw_timer timer;
    bool has_line, stopped, killed, holds;
    void (*on_line)(void *ud, const char *line);
    void (*on_exit)(void *ud, int exit_code, int term_signal);
    void *ud;
};

/* Keeps the loop running until the first line, and while the service is being stopped. */
static void hold(struct ipw_service *service, bool on)
{
    if (on == service->holds) return;
    service->holds = on;
    if (on)
        ipw_loop_hold(service->loop);
    else
        ipw_loop_unhold(service->loop);
}

static void take_line(struct ipw_service *service)
{
    const char *line = ipw_buf_str(&service->line);

    if (service->has_line) {
        ipw_log(IPW_LOG_INFO, "%s", line);
    } else {
        service->has_line = true;
        hold(service, false);
        if (service->on_line) service->on_line(service->ud, line);
    }
    ipw_buf_clear(&service->line);
}

static void on_out(void *ud)
{
    struct ipw_service *service = ud;
    char block[LINE_MAX_BYTES];
    ssize_t n = read(service->out->fd, block, sizeof block);

    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (n <= 0) {
        ipw_pipe_close(&service->out);
        return;
    }
    for (const char *from = block, *end = block + n; from < end && !service->stopped;) {
        const char *stop = memchr(from, '\n', (size_t)(end - from));
        size_t part = (size_t)((stop ? stop : end) - from);
        size_t room = service->line.max - service->line.len;
        if (part > room) { /* a longer line counts as several lines */
            stop = NULL;
            part = room;
        }
        ipw_buf_add(&service->line, from, part);
        from += part + (stop != NULL);
        if (stop || service->line.len == service->line.max) take_line(service);
    }
}

static void finish(struct ipw_service *service)
{
    struct ipw_child_end end;

    ipw_child_end(&service->child, &end);
    ipw_pipe_close(&service->out);
    ipw_timer_disarm(&service->timer);
    hold(service, false);
    if (!service->stopped) {
        service->loop->leftovers--;
        if (service->on_exit) service->on_exit(service->ud, end.exit_code, end.term_signal);
    }
    ipw_buf_release(&service->line);
    free(service);
}

static void on_exit_(struct ipw_child *child)
{
    struct ipw_service *service = (struct ipw_service *)child;

    /* Its first line may still be in the pipe. */
    if (!service->stopped && service->out && !service->has_line) on_out(service);
    finish(service);
}

static void on_loop_free(struct ipw_child *child)
{
    if (!((struct ipw_service *)child)->stopped)
        IPW_BUG("the event loop is freed with a service still in use");
    finish((struct ipw_service *)child);
}

static void on_timer(void *ud)
{
    struct ipw_service *service = ud;

    if (service->killed) {
        finish(service);
        return;
    }
    service->killed = true;
    ipw_child_signal(&service->child, SIGKILL);
    ipw_timer_arm(&service->timer, ipw_now_ns() + PROC_GRACE_S * IPW_NS_PER_S);
}

int ipw_service_start(struct ipw_service **out, struct ipw_loop *loop, const char *const *argv,
                      void (*on_line)(void *ud, const char *line),
                      void (*on_exit)(void *ud, int exit_code, int term_signal), void *ud,
                      struct ipw_err *err)
{
    struct ipw_service *service;
    int null, ends[2], rc;

    if (!argv || !argv[0] || !argv[0][0])
        return ipw_fail(err, IPW_EINVAL, "no program to run was named");
    null = ipw_child_null(err);
    if (null < 0) return null;
    rc = ipw_child_pipe(ends, 0, err);
    if (rc) {
        close(null);
        return rc;
    }
    service = ipw_calloc(1, sizeof *service);
    service->loop = loop;
    service->child.on_exit = on_exit_;
    service->child.on_loop_free = on_loop_free;
    service->timer = (struct ipw_timer){.loop = loop, .fn = on_timer, .ud = service};
    service->on_line = on_line;
    service->on_exit = on_exit;
    service->ud = ud;
    ipw_buf_init(&service->line, LINE_MAX_BYTES);
    rc = ipw_child_start(&service->child, loop,
                         &(struct ipw_child_spec){.argv = argv,
                                                  .inherit_env = true,
                                                  .fds = {null, ends[1], STDERR_FILENO}},
                         err);
    close(null);
    close(ends[1]);
    if (rc) {
        close(ends[0]);
        free(service);
        return rc;
    }
    service->out = ipw_pipe_watch(loop, ends[0], UV_READABLE, on_out, service);
    hold(service, true);
    loop->leftovers++;
    *out = service;
    return 0;
}

void ipw_service_stop(struct ipw_service *service)
{
    if (!service) return;
    if (service->stopped) IPW_BUG("a service is stopped twice");
    service->stopped = true;
    service->loop->leftovers--;
    ipw_pipe_close(&service->out);
    hold(service, true);
    ipw_child_signal(&service->child, SIGTERM);
    ipw_timer_arm(&service->timer, ipw_now_ns() + PROC_GRACE_S * IPW_NS_PER_S);
}
