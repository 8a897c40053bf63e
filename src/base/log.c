#include "base/log.h"

#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "base/secret.h"

static struct {
    enum ipw_log_level most;
    void (*before)(void *ud);
    void (*after)(void *ud);
    void *ud;
} sink = {.most = IPW_LOG_WARN};

void ipw_log_set_level(enum ipw_log_level most) { sink.most = most; }
enum ipw_log_level ipw_log_get_level(void) { return sink.most; }

void ipw_log_set_hooks(void (*before)(void *ud), void (*after)(void *ud), void *ud)
{
    sink.before = before;
    sink.after = after;
    sink.ud = ud;
}

bool ipw_log_write(const char *text, size_t n, int wait_ms)
{
    struct pollfd out = {.fd = STDERR_FILENO, .events = POLLOUT};

    /* A pipe that takes anything takes PIPE_BUF bytes, so what is no longer does not block.  A
     * reader that went away must not end the run either: the result is not looked at further. */
    if (n > PIPE_BUF) n = PIPE_BUF;
    return poll(&out, 1, wait_ms) == 1 && write(STDERR_FILENO, text, n) == (ssize_t)n;
}

/* One line, whole, without secrets. */
static void put_line(const char *mark, int wait_ms, const char *fmt, va_list ap)
{
    char line[2048];
    int n = snprintf(line, sizeof line, "ipw-agent: %s", mark);
    int m = vsnprintf(line + n, sizeof line - (size_t)n - 1, fmt, ap);
    size_t len;

    if (m < 0) return;
    n += m;
    if ((size_t)n > sizeof line - 2) n = (int)sizeof line - 2;
    len = (size_t)n;
    ipw_secret_clean_bytes(line, &len);
    line[len++] = '\n';
    if (sink.before) sink.before(sink.ud);
    ipw_log_write(line, len, wait_ms);
    if (sink.after) sink.after(sink.ud);
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
