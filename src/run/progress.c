#include "run/progress.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/secret.h"
#include "base/terminal.h"
#include "base/text.h"
#include "report/format.h"

#define REDRAW_NS (200 * IPW_NS_PER_MS)
#define PLAIN_NS  (5 * IPW_NS_PER_S)

enum { POINTS = 8 }; /* more than a second of them */
struct point {       /* the energy so far, and its time */
    double joules, seconds;
};

struct ipw_progress {
    struct ipw_loop *loop;
    struct ipw_timer *timer;
    bool quiet, terminal, drawn, changed;
    struct ipw_progress_state state;
    size_t n_before;             /* queries of earlier sessions */
    struct point points[POINTS]; /* the newest first; the last one is the start: 0 J, 0 s */
    int64_t start_ns, plain_ns;  /* plain_ns: of the last plain line */
    int64_t next_try_ns;         /* of the latest announced wait */
    ipw_progress_energy_fn *energy;
    void *energy_ud;
    void (*say_standstill)(void *ud, char *out, size_t size);
    void *standstill_ud;
};

static void put(const char *text, size_t n) { ipw_log_write(text, n, 0); }

/* ---- the line ---- */

enum { FIELDS = 10, FIELD = 96 };

static size_t finished(const struct ipw_progress_state *s)
{
    return s->n_done > s->stopped ? s->n_done - s->stopped : 0;
}

/* The most important fields come first: a narrow terminal has no room for the last ones. */
static size_t fields_of(char fields[FIELDS][FIELD], const struct ipw_progress_state *s)
{
    char number[32];
    size_t n = 0;

    snprintf(fields[n++], FIELD, "%zu/%zu done", finished(s), s->n_queries);
    snprintf(fields[n++], FIELD, "%zu correct  %zu wrong  %zu failed", s->ok, s->wrong, s->failed);
    if (s->stopped) snprintf(fields[n++], FIELD, "%zu interrupted", s->stopped);
    if (!isnan(s->joules))
        snprintf(fields[n++], FIELD, "%s", ipw_format_si(number, s->joules, " J"));
    if (!isnan(s->watts)) snprintf(fields[n++], FIELD, "%s", ipw_format_si(number, s->watts, " W"));
    snprintf(fields[n++], FIELD, "%.0f s", s->seconds);
    if (!isnan(s->left_s))
        snprintf(fields[n++], FIELD, "%s left", ipw_format_seconds(number, s->left_s));
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

/* The mean over the last second, or as long as the points reach. */
static double watts_now(struct ipw_progress *p, double joules, double seconds)
{
    struct point *newest = &p->points[0];
    size_t i = 1;

    if (isnan(joules)) return NAN;
    if (seconds > newest->seconds) {
        memmove(p->points + 1, p->points, (POINTS - 1) * sizeof *p->points);
        *newest = (struct point){joules, seconds};
    }
    while (i + 1 < POINTS && newest->seconds - p->points[i].seconds < 1) i++;
    if (!(newest->seconds > p->points[i].seconds)) return NAN;
    /* What the ledger learns later may lower its figure a little. */
    return fmax(0, newest->joules - p->points[i].joules) / (newest->seconds - p->points[i].seconds);
}

static double left_s(const struct ipw_progress *p)
{
    const struct ipw_progress_state *s = &p->state;
    double done = (double)s->n_done - (double)p->n_before;

    if (!(done > 0) || s->n_done > s->n_queries) return NAN;
    return s->seconds / done * (double)(s->n_queries - s->n_done);
}

static void look(struct ipw_progress *p)
{
    struct ipw_progress_state *s = &p->state;
    int64_t now_ns = ipw_now_ns();
    double energy_s = NAN;

    s->seconds = ipw_ns_to_s(now_ns - p->start_ns);
    s->wait_s = ipw_ns_to_s(p->next_try_ns - now_ns);
    s->left_s = left_s(p);
    s->joules = NAN;
    s->standstill[0] = '\0';
    if (p->say_standstill) p->say_standstill(p->standstill_ud, s->standstill, sizeof s->standstill);
    if (p->energy) p->energy(p->energy_ud, &s->joules, &energy_s);
    s->watts = watts_now(p, s->joules, energy_s);
}

void ipw_progress_clear(struct ipw_progress *p)
{
    if (!p || !p->drawn) return;
    put("\r\x1b[K", 4);
    p->drawn = false;
}

/* A terminal shows ^C at the cursor: with room for two of them the line does not break. */
enum { SPARE = 5, WIDTH_UNKNOWN = 80 };

static unsigned terminal_width(void)
{
    unsigned width = ipw_terminal_width(STDERR_FILENO);

    return width ? width : WIDTH_UNKNOWN;
}

static void draw(struct ipw_progress *p)
{
    char line[600];
    unsigned width = terminal_width();

    put("\r", 1);
    put(line, ipw_progress_line(line, sizeof line, &p->state, width > SPARE ? width - SPARE : 1));
    put("\x1b[K", 3);
    p->drawn = true;
}

static void plain(struct ipw_progress *p)
{
    char fields[FIELDS][FIELD], line[FIELDS * FIELD];
    size_t len = (size_t)snprintf(line, sizeof line, "ipw-agent: ");

    if (!p->changed || p->state.seconds < ipw_ns_to_s(p->plain_ns)) return;
    p->plain_ns = ipw_now_ns() - p->start_ns + PLAIN_NS;
    for (size_t n = fields_of(fields, &p->state), i = 0; i < n; i++)
        len += (size_t)snprintf(line + len, sizeof line - len, "%s%s", i ? "  " : "", fields[i]);
    line[len++] = '\n';
    put(line, len);
    p->changed = false;
}

static void tick(void *ud)
{
    struct ipw_progress *p = ud;

    look(p);
    if (p->terminal)
        draw(p);
    else
        plain(p);
    p->timer = ipw_timer_start(p->loop, p->terminal ? REDRAW_NS : PLAIN_NS, tick, p);
}

static void before_line(void *ud) { ipw_progress_clear(ud); }

struct ipw_progress *ipw_progress_new(struct ipw_loop *loop, size_t n_queries, size_t n_done,
                                      bool quiet)
{
    struct ipw_progress *p = ipw_calloc(1, sizeof *p);
    const char *ci = getenv("CI");

    p->loop = loop;
    p->quiet = quiet;
    p->state.n_queries = n_queries;
    p->state.n_done = p->n_before = n_done;
    p->terminal = isatty(STDERR_FILENO) && !(ci && ci[0]);
    p->start_ns = ipw_now_ns();
    p->plain_ns = PLAIN_NS;
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

static void count(struct ipw_progress *p, bool completed, bool stopped, int resolved)
{
    if (!completed && stopped)
        p->state.stopped++;
    else if (!completed)
        p->state.failed++;
    else if (resolved == 1)
        p->state.ok++;
    else if (resolved == 0)
        p->state.wrong++;
}

/* ---- a query's row ---- */

enum { ROW_ID = 14 };

/* The end of an id tells queries of one data set apart. */
static void put_id(struct ipw_buf *out, const char *id)
{
    struct ipw_buf shown = IPW_BUF(IPW_KIB);
    size_t n = strlen(id);

    if (ipw_text_columns(id, n) > ROW_ID) {
        ipw_buf_adds(&shown, "\xE2\x80\xA6"); /* an ellipsis */
        while (n && ipw_text_columns(id, n) > ROW_ID - 1) {
            do id++, n--;
            while (n && ((unsigned char)*id & 0xC0) == 0x80);
        }
    }
    ipw_buf_adds(&shown, id);
    ipw_format_cell(out, ipw_buf_str(&shown), ROW_ID, IPW_ALIGN_LEFT);
    ipw_buf_release(&shown);
}

/* A machine's own meter, else the sum of the devices; NAN: none was read. */
static double joules_of(const struct ipw_figure *energy)
{
    double sum = NAN;

    if (energy[IPW_DOMAIN_MACHINE].known) return energy[IPW_DOMAIN_MACHINE].j;
    for (int d = 0; d < IPW_DOMAIN_COUNT; d++)
        if (energy[d].known) sum = isnan(sum) ? energy[d].j : sum + energy[d].j;
    return sum;
}

static void put_count(struct ipw_buf *out, int64_t n, const char *what)
{
    char text[32];

    if (n < 0)
        snprintf(text, sizeof text, "%s", IPW_UNKNOWN_TEXT);
    else
        snprintf(text, sizeof text, "%lld", (long long)n);
    ipw_buf_addc(out, ' ');
    ipw_format_cell(out, text, 6, IPW_ALIGN_RIGHT);
    ipw_buf_addf(out, " %s", what);
}

/* Right, wrong, not scored; failed, stopped with the run. */
static void put_mark(struct ipw_buf *out, const struct ipw_query_trace *trace, int resolved,
                     bool colour)
{
    enum ipw_style style = resolved == 1 ? IPW_GREEN : resolved == 0 ? IPW_RED : IPW_DIM;
    const char *mark = resolved == 1 ? "\xE2\x9C\x93" : resolved == 0 ? "\xE2\x9C\x97" : "\xC2\xB7";

    if (!trace->completed) {
        bool stopped = ipw_outcome_is_stop(trace->outcome);

        style = stopped ? IPW_DIM : IPW_YELLOW;
        mark = stopped ? IPW_UNKNOWN_TEXT : "!";
    }
    ipw_buf_addf(out, " %s%s%s ", ipw_style(style, colour), mark, ipw_style(IPW_PLAIN, colour));
}

void ipw_progress_row(struct ipw_buf *out, const struct ipw_query_trace *trace,
                      const struct ipw_query_details *details, unsigned width, bool colour)
{
    double joules = joules_of(trace->energy);
    const char *last = trace->completed ? details->answer : trace->error;
    bool tokens = trace->input_tokens >= 0 && trace->output_tokens >= 0;
    char text[32];
    size_t used;

    put_mark(out, trace, details->is_resolved, colour);
    put_id(out, trace->id);
    put_count(out, (int64_t)trace->n_turns, trace->n_turns == 1 ? "turn " : "turns");
    put_count(out, tokens ? trace->input_tokens + trace->output_tokens : -1, "tokens");
    ipw_buf_addc(out, ' ');
    ipw_format_cell(out, ipw_format_seconds(text, ipw_ns_to_s(trace->end_ns - trace->start_ns)), 7,
                    IPW_ALIGN_RIGHT);
    ipw_buf_addc(out, ' ');
    if (!isnan(joules)) ipw_format_cell(out, ipw_format_si(text, joules, " J"), 8, IPW_ALIGN_RIGHT);
    if (!last) last = trace->completed ? "" : trace->outcome;
    used = ipw_text_columns(ipw_buf_str(out), out->len) + 2;
    if (!*last || used + 8 > width) return;
    ipw_buf_adds(out, "  ");
    ipw_format_cell(out, last, width - used, IPW_ALIGN_NONE);
}

/* Above the progress line, which is drawn again below it. */
static void pass_row(struct ipw_progress *p, const struct ipw_query_trace *trace,
                     const struct ipw_query_details *details)
{
    struct ipw_buf row = IPW_BUF(PIPE_BUF);

    ipw_progress_row(&row, trace, details, terminal_width(), ipw_use_colour(STDERR_FILENO));
    ipw_secret_clean(&row, 0);
    ipw_buf_addc(&row, '\n');
    ipw_progress_clear(p);
    ipw_log_write(ipw_buf_str(&row), row.len, 0);
    ipw_buf_release(&row);
}

void ipw_progress_query(struct ipw_progress *p, const struct ipw_query_trace *trace,
                        const struct ipw_query_details *details)
{
    count(p, trace->completed, ipw_outcome_is_stop(trace->outcome), details->is_resolved);
    if (ipw_progress_shows_rows(p)) pass_row(p, trace, details);
    p->changed = true;
}

void ipw_progress_earlier(struct ipw_progress *p, const struct ipw_summary *earlier)
{
    p->state.ok += earlier->correct;
    p->state.wrong += earlier->wrong;
    p->state.failed += earlier->failed;
    p->state.stopped += earlier->stopped;
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

bool ipw_progress_shows_rows(const struct ipw_progress *p) { return !p->quiet && p->terminal; }
