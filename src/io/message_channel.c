#include "io/message_channel.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "io/loop_priv.h"

enum { HEAD = 4, BLOCK = 64 * 1024 };

struct ipw_message_channel {
    uv_poll_t uv; /* must be first: the close callback frees the whole struct */
    struct ipw_loop *loop;
    int fd;
    size_t max;
    struct ipw_message_channel_callbacks callbacks;
    struct ipw_buf in, out;
    size_t in_at, out_at;  /* bytes of `in` and `out` that are done */
    struct ipw_defer full; /* armed if too much waits for the other side */
    bool writing;          /* the loop watches for room */
    bool over, closed, calling;
};

static void free_channel(uv_handle_t *handle)
{
    struct ipw_message_channel *ch = (struct ipw_message_channel *)handle;

    ipw_buf_release(&ch->in);
    ipw_buf_release(&ch->out);
    free(ch);
}

void ipw_message_channel_close(struct ipw_message_channel *ch)
{
    if (!ch || ch->closed) return;
    ch->closed = ch->over = true;
    uv_poll_stop(&ch->uv);
    ipw_defer_disarm(&ch->full);
    close(ch->fd);
    ch->loop->leftovers--;
    ipw_loop_unhold(ch->loop);
    if (!ch->calling) uv_close((uv_handle_t *)&ch->uv, free_channel);
}

static void end(struct ipw_message_channel *ch, const char *why)
{
    ch->over = true;
    uv_poll_stop(&ch->uv);
    ch->callbacks.on_close(ch->callbacks.ud, why);
}

/* Takes whole messages out of the bytes that were read. */
static void take_messages(struct ipw_message_channel *ch)
{
    while (!ch->over && ch->in.len - ch->in_at >= HEAD) {
        const unsigned char *head = (const unsigned char *)ch->in.data + ch->in_at;
        size_t n = head[0] | (size_t)head[1] << 8 | (size_t)head[2] << 16 | (size_t)head[3] << 24;

        if (n > ch->max) {
            end(ch, "a message was too long");
            return;
        }
        if (ch->in.len - ch->in_at - HEAD < n) break;
        ch->in_at += HEAD + n;
        ch->callbacks.on_message(ch->callbacks.ud, ch->in.data + ch->in_at - n, n);
    }
    if (ch->in_at == ch->in.len) {
        ipw_buf_clear(&ch->in);
        ch->in_at = 0;
    } else if (ch->in_at > BLOCK) {
        ipw_buf_drop_front(&ch->in, ch->in_at);
        ch->in_at = 0;
    }
}

static void read_some(struct ipw_message_channel *ch)
{
    char *room = ipw_buf_room(&ch->in, BLOCK);
    ssize_t n;

    if (!room) {
        end(ch, "a message was too long");
        return;
    }
    n = read(ch->fd, room, BLOCK);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (n <= 0) {
        end(ch, "the other side has closed it");
        return;
    }
    ipw_buf_added(&ch->in, (size_t)n);
    take_messages(ch);
}

static void write_some(struct ipw_message_channel *ch)
{
    while (!ch->over && ch->out_at < ch->out.len) {
        ssize_t n = send(ch->fd, ch->out.data + ch->out_at, ch->out.len - ch->out_at, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR) continue;
        /* The socket has no room; or the peer closed it, and reading will find out. */
        if (n < 0) return;
        ch->out_at += (size_t)n;
    }
    if (ch->out_at == ch->out.len) {
        ipw_buf_clear(&ch->out);
        ch->out_at = 0;
    }
}

static void on_ready(uv_poll_t *uv, int status, int events);

static void watch(struct ipw_message_channel *ch)
{
    bool wants = ch->out_at < ch->out.len;

    if (ch->over || wants == ch->writing) return;
    ch->writing = wants;
    uv_poll_start(&ch->uv, UV_READABLE | (wants ? UV_WRITABLE : 0), on_ready);
}

/* The struct lives until the outermost call ends, whatever its callbacks close. */
static void serve(struct ipw_message_channel *ch, bool readable, bool writable)
{
    bool outermost = !ch->calling;

    ch->calling = true;
    if (writable) write_some(ch);
    if (ch->out.failed && !ch->over) end(ch, "the other side does not read");
    if (readable && !ch->over) read_some(ch);
    watch(ch);
    if (!outermost) return;
    ch->calling = false;
    if (ch->closed) uv_close((uv_handle_t *)&ch->uv, free_channel);
}

static void on_ready(uv_poll_t *uv, int status, int events)
{
    serve((struct ipw_message_channel *)uv, status < 0 || events & UV_READABLE,
          events & UV_WRITABLE);
}

static void on_full(void *ud) { serve(ud, false, false); }

struct ipw_message_channel *
ipw_message_channel_open(struct ipw_loop *loop, int fd, size_t max_bytes,
                         const struct ipw_message_channel_callbacks *callbacks)
{
    struct ipw_message_channel *ch = ipw_calloc(1, sizeof *ch);

    ch->loop = loop;
    ch->fd = fd;
    ch->max = max_bytes;
    ch->callbacks = *callbacks;
    ch->full = (struct ipw_defer){.loop = loop, .fn = on_full, .ud = ch};
    ipw_buf_init(&ch->in, max_bytes + 4 * BLOCK);
    ipw_buf_init(&ch->out, 4 * max_bytes);
    if (fcntl(fd, F_SETFL, O_NONBLOCK) || uv_poll_init(&loop->uv, &ch->uv, fd) ||
        uv_poll_start(&ch->uv, UV_READABLE, on_ready))
        IPW_BUG("a socket cannot be watched");
    uv_unref((uv_handle_t *)&ch->uv);
    ipw_loop_hold(loop);
    loop->leftovers++;
    return ch;
}

void ipw_message_channel_send(struct ipw_message_channel *ch, const char *bytes, size_t n)
{
    char head[HEAD] = {(char)(n & 255), (char)(n >> 8 & 255), (char)(n >> 16 & 255),
                       (char)(n >> 24 & 255)};

    if (ch->over) return;
    ipw_buf_add(&ch->out, head, HEAD);
    ipw_buf_add(&ch->out, bytes, n);
    if (ch->out
            .failed) { /* report it from the loop, not here: the socket may never be ready again */
        ipw_defer_arm(&ch->full);
        return;
    }
    write_some(ch);
    watch(ch);
}

bool ipw_message_channel_wait(struct ipw_message_channel *ch)
{
    struct pollfd fd = {.fd = ch->fd};

    if (ch->over) return false;
    if (ch->out.failed) {
        on_full(ch);
        return false;
    }
    fd.events = (short)(POLLIN | (ch->out_at < ch->out.len ? POLLOUT : 0));
    if (poll(&fd, 1, -1) < 0) return errno == EINTR;
    serve(ch, fd.revents & (POLLIN | POLLHUP | POLLERR), fd.revents & POLLOUT);
    return !ch->over;
}

void ipw_message_channel_flush(struct ipw_message_channel *ch)
{
    while (!ch->over && ch->out_at < ch->out.len) {
        struct pollfd fd = {.fd = ch->fd, .events = POLLOUT};
        if (poll(&fd, 1, -1) < 0 && errno != EINTR) return;
        if (fd.revents & (POLLERR | POLLHUP)) return;
        write_some(ch);
    }
}
