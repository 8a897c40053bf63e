#include "run/progress.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/terminal.h"
#include "report/format.h"

#define REDRAW_NS (200 * IPW_NS_PER_MS)
#define PLAIN_NS  (5 * IPW_NS_PER_S)

struct ipw_progress {
    struct ipw_loop *loop;
    struct ipw_timer *timer;
    bool terminal, drawn, changed;
    struct ipw_progress_state state;
    int64_t start_ns, next_try_ns; /* next_try_ns: of the latest announced wait */
    ipw_progress_energy_fn *energy;
    void *energy_ud;
    void (*say_standstill)(void *ud, char *out, size_t size);
    void *standstill_ud;
};

static void put(const char *text, size_t n) { ipw_log_write(text, n, 0); }

/* ---- the line ---- */

enum { FIELDS = 9, FIELD = 96 };

/* The most important fields come first: a narrow terminal has no room for the last ones. */
static size_t fields_of(char fields[FIELDS][FIELD], const struct ipw_progress_state *s)
{
    char number[32];
    size_t n = 0;

    snprintf(fields[n++], FIELD, "%zu/%zu done",
             s->n_done > s->stopped ? s->n_done - s->stopped : 0, s->n_queries);
    snprintf(fields[n++], FIELD, "%zu correct  %zu wrong  %zu failed", s->ok, s->wrong, s->failed);
    if (s->stopped) snprintf(fields[n++], FIELD, "%zu interrupted", s->stopped);
    if (!isnan(s->joules))
        snprintf(fields[n++], FIELD, "%s", ipw_format_si(number, s->joules, " J"));
    if (!isnan(s->joules) && s->energy_s > 0)
        snprintf(fields[n++], FIELD, "%s", ipw_format_si(number, s->joules / s->energy_s, " W"));
    snprintf(fields[n++], FIELD, "%.0f s", s->seconds);
    if (s->standstill[0])
        snprintf(fields[n++], FIELD, "%s", s->standstill);
    else if (s->wait_s > 1)
        snprintf(fields[n++], FIELD, "next try in %.0f s", s->wait_s);
    snprintf(fields[n++], FIELD, "%zu turn%s", s->turns, s->turns == 1 ? "" : "s");
    snprintf(fields[n++], FIELD, "%zu tool call%s", s->tools, s->tools == 1 ? "" : "s");
    return n;
}

/* The first field is written at any width; the bar only if all fields have room. */
size_t ipw_progress_line(char *out, size_t size, const struct ipw_progress_state *s, unsigned width)
{
    enum { BAR = 20, LEAST = 6, AROUND = 3 }; /* brackets and a blank */
    char fields[FIELDS][FIELD], text[FIELDS * FIELD], bar[BAR + 1];
    size_t n = fields_of(fields, s), len = 0, filled, room = width, k = 0;

    for (; k < n; k++) {
        size_t more = strlen(fields[k]) + (k ? 2 : 0);

        if (k && len + more > room) break;
        len += (size_t)snprintf(text + len, sizeof text - len, "%s%s", k ? "  " : "", fields[k]);
    }
    room = width > len + AROUND ? width - len - AROUND : 0;
    if (room > BAR) room = BAR;
    if (k < n || room < LEAST) return (size_t)snprintf(out, size, "%s", text);
    filled = s->n_queries ? s->n_done * room / s->n_queries : 0;
    for (size_t i = 0; i < room; i++) bar[i] = i < filled ? '#' : '.';
    bar[room] = '\0';
    return (size_t)snprintf(out, size, "[%s] %s", bar, text);
}

static void look(struct ipw_progress *p)
{
    struct ipw_progress_state *s = &p->state;
    int64_t now_ns = ipw_now_ns();

    s->seconds = ipw_ns_to_s(now_ns - p->start_ns);
    s->wait_s = ipw_ns_to_s(p->next_try_ns - now_ns);
    s->joules = s->energy_s = NAN;
    s->standstill[0] = '\0';
    if (p->say_standstill) p->say_standstill(p->standstill_ud, s->standstill, sizeof s->standstill);
    if (p->energy) p->energy(p->energy_ud, &s->joules, &s->energy_s);
}

void ipw_progress_clear(struct ipw_progress *p)
{
    if (!p || !p->drawn) return;
    put("\r\x1b[K", 4);
    p->drawn = false;
}

/* A terminal shows ^C at the cursor: with room for two of them the line does not break. */
enum { SPARE = 5, WIDTH_UNKNOWN = 80 };

static void draw(struct ipw_progress *p)
{
    char line[600];
    unsigned width = ipw_terminal_width(STDERR_FILENO);

    if (!width) width = WIDTH_UNKNOWN;
    look(p);
    put("\r", 1);
    put(line, ipw_progress_line(line, sizeof line, &p->state, width > SPARE ? width - SPARE : 1));
    put("\x1b[K", 3);
    p->drawn = true;
}

static void tick(void *ud)
{
    struct ipw_progress *p = ud;

    if (p->terminal) {
        draw(p);
    } else if (p->changed) {
        char fields[FIELDS][FIELD], line[600];
        size_t len;

        look(p);
        len = (size_t)snprintf(line, sizeof line, "ipw-agent: ");
        for (size_t n = fields_of(fields, &p->state), i = 0; i < n; i++)
            len +=
                (size_t)snprintf(line + len, sizeof line - len, "%s%s", i ? "  " : "", fields[i]);
        line[len++] = '\n';
        put(line, len);
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
    p->state.n_queries = n_queries;
    p->terminal = isatty(STDERR_FILENO) && !(ci && ci[0]);
    p->start_ns = ipw_now_ns();
    if (quiet) return p;
    p->timer = ipw_timer_start(loop, p->terminal ? REDRAW_NS : PLAIN_NS, tick, p);
    ipw_log_set_hook(before_line, p);
    return p;
}

void ipw_progress_free(struct ipw_progress *p)
{
    if (!p) return;
    ipw_progress_clear(p);
    ipw_log_set_hook(NULL, NULL);
    ipw_timer_cancel(p->timer);
    free(p);
}

void ipw_progress_measure(struct ipw_progress *p, ipw_progress_energy_fn *energy, void *ud)
{
    p->energy = energy;
    p->energy_ud = ud;
}

void ipw_progress_event(struct ipw_progress *p, const struct ipw_event *event)
{
    if (event->kind == IPW_EV_LM_END && !event->lm.will_retry) p->state.turns++;
    if (event->kind == IPW_EV_TOOL_END) p->state.tools++;
    if (event->kind == IPW_EV_LM_END && event->lm.will_retry) {
        int64_t next_ns = event->t_ns + event->lm.retry_wait_ns;
        if (next_ns > p->next_try_ns) p->next_try_ns = next_ns;
    }
    p->changed = true;
}

void ipw_progress_query(struct ipw_progress *p, const struct ipw_query_trace *trace,
                        const struct ipw_query_details *details)
{
    if (!trace->completed && ipw_outcome_is_stop(trace->outcome))
        p->state.stopped++;
    else if (!trace->completed)
        p->state.failed++;
    else if (details->is_resolved == 1)
        p->state.ok++;
    else if (details->is_resolved == 0)
        p->state.wrong++;
    p->changed = true;
}

void ipw_progress_standstill(struct ipw_progress *p, void (*say)(void *ud, char *out, size_t size),
                             void *ud)
{
    p->say_standstill = say;
    p->standstill_ud = ud;
}

void ipw_progress_done(struct ipw_progress *p, size_t n_done)
{
    p->state.n_done = n_done;
    p->changed = true;
}
