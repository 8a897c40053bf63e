#include "base/log.h"

#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/secret.h"
#include "base/text.h"

static struct {
    enum ipw_log_level most;
    void (*before)(void *ud);
    void *ud;
} sink = {.most = IPW_LOG_WARN};

void ipw_log_set_level(enum ipw_log_level most) { sink.most = most; }
enum ipw_log_level ipw_log_get_level(void) { return sink.most; }

void ipw_log_set_hook(void (*before)(void *ud), void *ud)
{
    sink.before = before;
    sink.ud = ud;
}

bool ipw_log_write(const char *text, size_t n, int wait_ms)
{
    struct pollfd out = {.fd = STDERR_FILENO, .events = POLLOUT};

    /* A pipe that is ready for writing has room for PIPE_BUF bytes, so a write of at most that many
     * does not block.  A closed reader must not end the run, so callers may ignore the result. */
    if (n > PIPE_BUF) n = PIPE_BUF;
    return poll(&out, 1, wait_ms) == 1 && write(STDERR_FILENO, text, n) == (ssize_t)n;
}

/* Makes text harmless on a terminal, because messages quote servers, models and files.  Only our
 * own line breaks are kept: those in front of an indented line.  So quoted text cannot begin a
 * line. */
static void make_harmless(struct ipw_buf *out, const char *text)
{
    while (*text) {
        const char *end = strstr(text, "\n    ");
        size_t n = end ? (size_t)(end - text) : strlen(text);

        ipw_text_printable(out, text, n, 0);
        if (end) ipw_buf_addc(out, '\n');
        text += n + (end != NULL);
    }
    if (out->len > PIPE_BUF - 1) ipw_buf_truncate(out, PIPE_BUF - 1);
    ipw_buf_addc(out, '\n');
}

/* Wraps the line, because a terminal would cut inside words. */
static void wrap(struct ipw_buf *line)
{
    struct ipw_buf out = IPW_BUF(2 * PIPE_BUF);
    struct winsize size;

    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col < 20) return;
    ipw_text_wrapped(&out, ipw_buf_str(line), 0, 4, size.ws_col - 1u);
    if (out.failed || out.len > PIPE_BUF) {
        ipw_buf_release(&out);
        return;
    }
    ipw_buf_release(line);
    *line = out;
}

/* Writes one whole line, without secrets. */
static void put_line(const char *mark, int wait_ms, const char *fmt, va_list ap)
{
    char line[2048];
    struct ipw_buf out = IPW_BUF(16 * sizeof line);
    int n = snprintf(line, sizeof line, "ipw-agent: %s", mark);
    int m = vsnprintf(line + n, sizeof line - (size_t)n - 1, fmt, ap);
    size_t len;

    if (m < 0) return;
    n += m;
    if ((size_t)n > sizeof line - 2) n = (int)sizeof line - 2;
    len = (size_t)n;
    ipw_secret_clean_bytes(line, &len);
    line[len] = '\0';
    make_harmless(&out, line);
    wrap(&out);
    if (sink.before) sink.before(sink.ud);
    ipw_log_write(ipw_buf_str(&out), out.len, wait_ms);
    ipw_buf_release(&out);
}

void ipw_log(enum ipw_log_level level, const char *fmt, ...)
{
    static const char *const names[] = {"error: ", "warning: ", "", "debug: "};
    va_list ap;

    if (level > sink.most) return;
    va_start(ap, fmt);
    put_line(names[level], 0, fmt, ap);
    va_end(ap);
}

void ipw_say(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    put_line("", 1000, fmt, ap);
    va_end(ap);
}
