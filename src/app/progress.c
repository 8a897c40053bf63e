#include "app/progress.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"

#define REDRAW_NS (200 * IPW_NS_PER_MS)
#define PLAIN_NS  (5 * IPW_NS_PER_S)

struct ipw_progress {
    struct ipw_loop *loop;
    struct ipw_timer *timer;
    bool terminal, drawn, changed;
    size_t n_queries, n_done, ok, wrong, failed, turns, tools;
    double joules;                 /* of the GPUs and CPUs, as far as known */
    int64_t start_ns, next_try_ns; /* next_try_ns: of the latest announced wait */
};

bool ipw_use_colour(int fd)
{
    const char *no = getenv("NO_COLOR"), *term = getenv("TERM"), *force = getenv("CLICOLOR_FORCE");

    if (no && no[0]) return false;
    if (force && force[0] && strcmp(force, "0")) return true;
    return isatty(fd) && term && strcmp(term, "dumb");
}

unsigned ipw_terminal_width(int fd)
{
    struct winsize size;

    return ioctl(fd, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

static void put(const char *text, size_t n) { ipw_log_write(text, n, 0); }

/* What matters most comes first: a narrow terminal cuts the end. */
static int describe(const struct ipw_progress *p, char *out, size_t size)
{
    double s = ipw_ns_to_s(ipw_now_ns() - p->start_ns);
    char joules[32] = "", wait[48] = "";
    int64_t wait_ns = p->next_try_ns - ipw_now_ns();

    if (p->joules > 0) snprintf(joules, sizeof joules, "  %.0f J", p->joules);
    if (wait_ns > IPW_NS_PER_S)
        snprintf(wait, sizeof wait, "  next try in %.0f s", ipw_ns_to_s(wait_ns));
    return snprintf(out, size,
                    "%zu/%zu done  %zu right  %zu wrong  %zu failed%s  %.0f s%s  %zu turns"
                    "  %zu tool calls",
                    p->n_done, p->n_queries, p->ok, p->wrong, p->failed, joules, s, wait, p->turns,
                    p->tools);
}

void ipw_progress_clear(struct ipw_progress *p)
{
    if (!p || !p->drawn) return;
    put("\r\x1b[K", 4);
    p->drawn = false;
}

static void draw(struct ipw_progress *p)
{
    char text[512], line[600];
    unsigned width = ipw_terminal_width(STDERR_FILENO);
    enum { BAR = 20, LEAST = 6, AROUND = 4 }; /* brackets, a blank, and the last column */
    char bar[BAR + 1];
    size_t taken = (size_t)describe(p, text, sizeof text) + AROUND, room = BAR, filled;
    int n;

    if (width && width < taken + BAR) room = width > taken ? width - taken : 0;
    filled = p->n_queries ? p->n_done * room / p->n_queries : 0;
    for (size_t i = 0; i < room; i++) bar[i] = i < filled ? '#' : '.';
    bar[room] = '\0';
    if (room < LEAST)
        n = snprintf(line, sizeof line, "\r%s", text);
    else
        n = snprintf(line, sizeof line, "\r[%s] %s", bar, text);
    if (width && n > (int)width) n = (int)width;
    put(line, (size_t)n);
    put("\x1b[K", 3);
    p->drawn = true;
}

static void tick(void *ud)
{
    struct ipw_progress *p = ud;

    if (p->terminal) {
        draw(p);
    } else if (p->changed) {
        char text[512], line[600];
        int n;

        describe(p, text, sizeof text);
        n = snprintf(line, sizeof line, "ipw-agent: %s\n", text);
        put(line, (size_t)n);
    }
    p->changed = false;
    p->timer = ipw_timer_start(p->loop, p->terminal ? REDRAW_NS : PLAIN_NS, tick, p);
}

static void before_line(void *ud) { ipw_progress_clear(ud); }

struct ipw_progress *ipw_progress_new(struct ipw_loop *loop, size_t n_queries, bool quiet)
{
    struct ipw_progress *p = ipw_calloc(1, sizeof *p);
    const char *ci = getenv("CI");

    p->loop = loop;
    p->n_queries = n_queries;
    p->terminal = isatty(STDERR_FILENO) && !(ci && ci[0]);
    p->start_ns = ipw_now_ns();
    if (quiet) return p;
    p->timer = ipw_timer_start(loop, p->terminal ? REDRAW_NS : PLAIN_NS, tick, p);
    ipw_log_set_hooks(before_line, NULL, p);
    return p;
}

void ipw_progress_free(struct ipw_progress *p)
{
    if (!p) return;
    ipw_progress_clear(p);
    ipw_log_set_hooks(NULL, NULL, NULL);
    ipw_timer_cancel(p->timer);
    free(p);
}

void ipw_progress_event(struct ipw_progress *p, const struct ipw_event *event)
{
    if (event->kind == IPW_EV_LM_END && !event->lm.will_retry) p->turns++;
    if (event->kind == IPW_EV_TOOL_END) p->tools++;
    if (event->kind == IPW_EV_LM_END && event->lm.will_retry) {
        int64_t next_ns = event->t_ns + event->lm.retry_wait_ns;
        if (next_ns > p->next_try_ns) p->next_try_ns = next_ns;
    }
    p->changed = true;
}

void ipw_progress_query(struct ipw_progress *p, const struct ipw_query_trace *trace,
                        const struct ipw_query_record *record)
{
    if (!trace->completed)
        p->failed++;
    else if (record->is_resolved == 1)
        p->ok++;
    else if (record->is_resolved == 0)
        p->wrong++;
    for (int d = 0; d <= IPW_DOMAIN_CPU; d++)
        if (trace->energy[d].known) p->joules += trace->energy[d].j;
    p->changed = true;
}

void ipw_progress_done(struct ipw_progress *p, size_t n_done)
{
    p->n_done = n_done;
    p->changed = true;
}
