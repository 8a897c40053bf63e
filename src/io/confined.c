#include "io/confined.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "io/proc_priv.h"

enum { MAX_OPEN_FILES = 32 };

struct ipw_confined {
    struct ipw_child child; /* must be first: child.c's callbacks get a pointer to it */
    struct ipw_loop *loop;
    struct ipw_message_channel *channel;
    struct ipw_confined_options options;
    bool exited, killed, said;
};

/* The process has ended and its last message was read. */
static void finish(struct ipw_confined *w)
{
    struct ipw_child_end end;

    ipw_message_channel_close(w->channel);
    w->channel = NULL;
    ipw_child_end(&w->child, &end);
    if (w->killed) {
        ipw_loop_unhold(w->loop);
    } else {
        w->loop->leftovers--;
        w->options.on_exit(w->options.ud, end.exec_errno ? 127 : end.exit_code, end.term_signal,
                           end.usage.cpu_ns);
    }
    free(w);
}

static void on_message(void *ud, const char *bytes, size_t n)
{
    struct ipw_confined *w = ud;

    if (!w->killed) w->options.on_message(w->options.ud, bytes, n);
}

/* The child closed its end or broke the rules.  Either way it has no further use, so end it. */
static void on_close(void *ud, const char *why)
{
    struct ipw_confined *w = ud;

    (void)why;
    w->said = true;
    if (w->exited)
        finish(w);
    else
        ipw_child_signal(&w->child, SIGKILL);
}

static void on_exit_(struct ipw_child *child)
{
    struct ipw_confined *w = (struct ipw_confined *)child;

    w->exited = true;
    if (w->killed || w->said) finish(w); /* otherwise the end of the channel calls finish() */
}

static void on_loop_free(struct ipw_child *child)
{
    struct ipw_confined *w = (struct ipw_confined *)child;

    if (!w->killed) IPW_BUG("the event loop is freed with a worker still in use");
    finish(w);
}

int ipw_confined_start(struct ipw_confined **out, struct ipw_loop *loop,
                       const struct ipw_confined_options *options, struct ipw_err *err)
{
    static const char *const argv[] = {"/proc/self/exe", "__lua", NULL};
    struct ipw_confined *w;
    int ends[2], null, rc;

    null = ipw_child_null(err);
    if (null < 0) return null;
    rc = ipw_child_socket(ends, err);
    if (rc) {
        close(null);
        return rc;
    }
    w = ipw_calloc(1, sizeof *w);
    w->loop = loop;
    w->options = *options;
    w->child.on_exit = on_exit_;
    w->child.on_loop_free = on_loop_free;
    rc = ipw_child_start(&w->child, loop,
                         &(struct ipw_child_spec){.argv = argv,
                                                  .cpu_s = options->cpu_s,
                                                  .memory_bytes = options->memory_bytes,
                                                  .open_files = MAX_OPEN_FILES,
                                                  .apart = true,
                                                  .fds = {ends[1], null, null}},
                         err);
    close(null);
    close(ends[1]);
    if (rc) {
        close(ends[0]);
        free(w);
        return rc;
    }
    w->channel =
        ipw_message_channel_open(loop, ends[0], options->message_max_bytes,
                                 &(struct ipw_message_channel_callbacks){on_message, on_close, w});
    loop->leftovers++;
    *out = w;
    return 0;
}

void ipw_confined_send(struct ipw_confined *w, const char *bytes, size_t n)
{
    if (w->channel) ipw_message_channel_send(w->channel, bytes, n);
}

void ipw_confined_kill(struct ipw_confined *w)
{
    if (!w || w->killed) return;
    w->killed = true;
    w->loop->leftovers--;
    ipw_loop_hold(w->loop);
    ipw_message_channel_close(w->channel);
    w->channel = NULL;
    ipw_child_signal(&w->child, SIGKILL);
}
