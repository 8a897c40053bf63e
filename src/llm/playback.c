/* Pairs the events of the query with the lines of the saved run. */
#include "llm/playback.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/secret.h"
#include "json/diff.h"
#include "json/jsonl.h"
#include "llm/playback_priv.h"

struct ipw_playback *ipw_playback_new(const struct ipw_playback_options *options)
{
    struct ipw_playback *r = ipw_calloc(1, sizeof *r);

    r->o = *options;
    r->emitted_tail = &r->emitted;
    ipw_buf_init(&r->text, IPW_LINE_MAX);
    r->llm = ipw_calloc(1, sizeof *r->llm);
    r->llm->loop = options->loop;
    r->llm->back = &ipw_playback_back;
    r->llm->back_ud = r;
    r->llm->onward = options->servers;
    r->llm->over = ipw_strdup(options->over);
    r->llm->force_tokens = options->force_tokens;
    r->llm->use_max_completion_tokens = options->use_max_completion_tokens;
    return r;
}

static struct ipw_event_line *pop_emitted(struct ipw_playback *r)
{
    struct ipw_event_line *e = r->emitted;

    r->emitted = e->next;
    if (!r->emitted) r->emitted_tail = &r->emitted;
    return e;
}

void ipw_playback_free(struct ipw_playback *r)
{
    if (!r) return;
    while (r->emitted) ipw_event_line_free(pop_emitted(r));
    while (r->waits) ipw_playback_wait_remove(r, r->waits);
    ipw_buf_release(&r->text);
    ipw_llm_free(r->llm);
    free(r->now_spans);
    free(r->pairs);
    free(r);
}

struct ipw_llm *ipw_playback_llm(struct ipw_playback *r) { return r->llm; }
int ipw_playback_turns(const struct ipw_playback *r) { return r->turn; }

bool ipw_playback_answers(const struct ipw_playback *r)
{
    return r && r->o.mode == IPW_PLAYBACK_EXACT && !r->live;
}

/* ---- waits ---- */

struct ipw_playback_wait *ipw_playback_wait_add(struct ipw_playback *r, enum ipw_wait_kind kind,
                                                int64_t id)
{
    struct ipw_playback_wait **at = &r->waits, *w = ipw_calloc(1, sizeof *w);

    while (*at) at = &(*at)->next;
    w->kind = kind;
    w->id = id;
    *at = w;
    return w;
}

void ipw_playback_wait_remove(struct ipw_playback *r, struct ipw_playback_wait *wait)
{
    struct ipw_playback_wait **at = &r->waits;

    while (*at != wait) at = &(*at)->next;
    *at = wait->next;
    free(wait);
}

void ipw_playback_wait(struct ipw_playback *r, int64_t id, ipw_playback_fn fn, void *ud)
{
    struct ipw_playback_wait *w = ipw_playback_wait_add(r, WAIT_WORLD, id);

    w->fn = fn;
    w->ud = ud;
    r->o.stir(r->o.ud);
}

void ipw_playback_forget(struct ipw_playback *r, const void *ud)
{
    struct ipw_playback_wait *w = r->waits;

    while (w && (w->ud != ud || !w->fn)) w = w->next;
    if (w) ipw_playback_wait_remove(r, w);
}

struct ipw_playback_wait *ipw_playback_wait_find(const struct ipw_playback *r,
                                                 enum ipw_wait_kind kind, int64_t id)
{
    struct ipw_playback_wait *w = r->waits;

    while (w && (w->kind != kind || w->id != id)) w = w->next;
    return w;
}

static bool deliver(struct ipw_playback *r, int64_t id, const struct ipw_event_line *line)
{
    struct ipw_playback_wait *w = ipw_playback_wait_find(r, WAIT_WORLD, id);
    ipw_playback_fn fn;
    void *ud;

    if (!w) return false;
    fn = w->fn;
    ud = w->ud;
    ipw_playback_wait_remove(r, w);
    fn(ud, line);
    return true;
}

/* ---- divergence ---- */

void ipw_playback_diverge(struct ipw_playback *r, const char *fmt, ...)
{
    struct ipw_buf text = IPW_BUF(IPW_MIB);
    va_list ap;

    if (r->diverged) return;
    r->diverged = true;
    va_start(ap, fmt);
    ipw_buf_vaddf(&text, fmt, ap);
    va_end(ap);
    r->live = r->o.servers != NULL && r->o.mode == IPW_PLAYBACK_EXACT;
    r->o.diverged(r->o.ud, ipw_buf_str(&text));
    ipw_buf_release(&text);
}

void ipw_playback_go_live(struct ipw_playback *r)
{
    if (!r->live) return;
    while (r->emitted) {
        struct ipw_event_line *e = pop_emitted(r);

        r->o.write(r->o.ud, &e->event, NULL);
        ipw_event_line_free(e);
    }
    while (r->waits) {
        struct ipw_playback_wait w = *r->waits;

        ipw_playback_wait_remove(r, r->waits);
        if (w.call)
            ipw_playback_chat_live(r, w.call, w.kind == WAIT_REPLY);
        else
            w.fn(w.ud, NULL);
    }
}

/* The event as a line of its own.  One that cannot be read again (it is nested too deep) keeps
 * nothing but its kind and span, so it differs from every saved line. */
static struct ipw_event_line *line_of(const struct ipw_event *event)
{
    struct ipw_buf text = IPW_BUF(IPW_LINE_MAX);
    struct ipw_event_line *line;
    size_t n;
    char *s;

    ipw_event_write(&text, event);
    ipw_secret_clean(&text, 0);
    s = ipw_buf_take(&text, &n);
    line = ipw_event_line_new(s, n ? n - 1 : 0, NULL); /* without its newline */
    if (line) {
        ipw_event_take_payload(&line->event, line->text, line->n);
        return line;
    }
    line = ipw_calloc(1, sizeof *line);
    line->event = (struct ipw_event){.kind = event->kind, .span = event->span};
    return line;
}

static void say_mismatch(struct ipw_playback *r, const struct ipw_event *event,
                         const struct ipw_event_line *line)
{
    struct ipw_buf out = IPW_BUF(IPW_MIB);
    const struct ipw_event *l = &line->event;
    struct ipw_event_line *now = line_of(event);
    bool same_kind = event->kind == l->kind && event->span == l->span;

    if (same_kind && (event->kind == IPW_EV_TOOL_START || event->kind == IPW_EV_TOOL_END))
        same_kind =
            strcmp(event->tool.name ? event->tool.name : "", l->tool.name ? l->tool.name : "") == 0;
    if (same_kind) {
        ipw_playback_say_difference(&out, r, line, now);
    } else {
        ipw_buf_adds(&out, "the agent does something else\n    saved   ");
        ipw_playback_say_line(&out, line);
        ipw_buf_adds(&out, "\n    now     ");
        ipw_playback_say_line(&out, now);
    }
    ipw_playback_diverge(r, "%s", ipw_buf_str(&out));
    ipw_event_line_free(now);
    ipw_buf_release(&out);
}

static void say_wait(struct ipw_buf *out, const struct ipw_playback_wait *w)
{
    if (!w)
        ipw_buf_adds(out, "the saved run has nothing that the agent waits for");
    else if (w->kind == WAIT_SEND)
        ipw_buf_adds(out, "the agent sends a request (lm_inference_start)");
    else if (w->kind == WAIT_REPEAT)
        ipw_buf_addf(out, "attempt %d of a request is due (lm_inference_start)",
                     w->call->number + 1);
    else if (w->kind == WAIT_REPLY)
        ipw_buf_addf(out, "the agent waits for a reply (lm_inference_end of span %lld)",
                     (long long)w->id);
    else if (w->id > 0)
        ipw_buf_addf(out, "the agent waits for the end of span %lld", (long long)w->id);
    else
        ipw_buf_addf(out, "the agent waits for effect %lld", (long long)-w->id);
}

void ipw_playback_stalled(struct ipw_playback *r, const struct ipw_event_line *line)
{
    struct ipw_buf out = IPW_BUF(IPW_MIB);

    ipw_buf_adds(&out, "an event is missing from the saved run\n    saved   ");
    if (line)
        ipw_playback_say_line(&out, line);
    else
        ipw_buf_adds(&out, "ends here");
    ipw_buf_adds(&out, "\n    now     ");
    say_wait(&out, r->waits);
    ipw_playback_diverge(r, "%s", ipw_buf_str(&out));
    ipw_buf_release(&out);
}

void ipw_playback_ended(struct ipw_playback *r, const struct ipw_event_line *line,
                        const char *outcome)
{
    struct ipw_buf was = IPW_BUF(IPW_MIB);

    ipw_playback_say_line(&was, line);
    ipw_playback_diverge(
        r,
        "the agent ended, but the saved run continues\n    saved   %s\n    now     "
        "the agent is over (%s)",
        ipw_buf_str(&was), outcome ? outcome : "no outcome");
    ipw_buf_release(&was);
}

/* ---- pairing ---- */

/* What was measured or seen of a saved call: in a replay no child runs and no wall is met. */
static void take_saved(struct ipw_tool_facts *tool, const struct ipw_tool_facts *saved)
{
    tool->argument_bytes = saved->argument_bytes;
    tool->cut_bytes = saved->cut_bytes;
    tool->child_cpu_ns = saved->child_cpu_ns;
    tool->child_peak_bytes = saved->child_peak_bytes;
    tool->child_provenance = saved->child_provenance;
    if (saved->outcome && !strcmp(saved->outcome, "refused") && !strcmp(tool->outcome, "error"))
        tool->outcome = saved->outcome;
}

/* Gives the event the line's times and compares the two. */
static bool pairs(struct ipw_playback *r, struct ipw_event *event,
                  const struct ipw_event_line *line)
{
    const struct ipw_event *l = &line->event;
    size_t n;

    event->t_ns = l->t_ns;
    event->rows = l->rows;
    event->query = l->query;
    if (event->kind == IPW_EV_LM_START) event->lm.held_ns = l->lm.held_ns;
    if (event->kind == l->kind &&
        (event->kind == IPW_EV_TOOL_START || event->kind == IPW_EV_TOOL_END))
        take_saved(&event->tool, &l->tool);
    ipw_buf_clear(&r->text);
    ipw_event_write(&r->text, event);
    ipw_secret_clean(&r->text, 0);
    n = r->text.len ? r->text.len - 1 : 0; /* without its newline */
    return n == line->n && memcmp(r->text.data, line->text, n) == 0;
}

static void settle(struct ipw_playback *r, struct ipw_event *event,
                   const struct ipw_event_line *line)
{
    if (pairs(r, event, line)) {
        r->last_line = line->number;
        r->o.write(r->o.ud, event, line);
    } else {
        say_mismatch(r, event, line);
        if (r->live) r->o.write(r->o.ud, event, NULL);
    }
}

static void queue(struct ipw_playback *r, const struct ipw_event *event)
{
    struct ipw_event_line *e = line_of(event);

    *r->emitted_tail = e;
    r->emitted_tail = &e->next;
}

/* ---- IPW_PLAYBACK_DECISIONS ---- */

static void emit_real(struct ipw_playback *r, const struct ipw_event *event)
{
    struct ipw_event copy = *event;

    if (event->kind == IPW_EV_TOOL_START) {
        IPW_GROW(r->now_spans, r->cap_now, r->n_now + 1);
        r->now_spans[r->n_now++] = event->span;
    }
    if (event->kind == IPW_EV_TOOL_START || event->kind == IPW_EV_TOOL_END) queue(r, event);
    r->o.write(r->o.ud, &copy, NULL);
    r->o.stir(r->o.ud);
}

static struct ipw_event_line *take_emitted(struct ipw_playback *r, enum ipw_event_kind kind,
                                           int32_t span)
{
    struct ipw_event_line **at = &r->emitted, *e;

    while (*at && ((*at)->event.kind != kind || (*at)->event.span != span)) at = &(*at)->next;
    e = *at;
    if (!e) return NULL;
    *at = e->next;
    if (!*at) r->emitted_tail = at;
    return e;
}

static bool same_call(const struct ipw_event_line *a, const struct ipw_event_line *b)
{
    struct ipw_buf where = IPW_BUF(4096);
    struct ipw_json_difference d;
    bool same = strcmp(a->event.tool.name, b->event.tool.name) == 0 &&
                !ipw_json_differ(&where, &d, ipw_json_get(a->data, "arguments"),
                                 ipw_json_get(b->data, "arguments"));

    ipw_buf_release(&where);
    return same;
}

/* The n-th tool call of the agent pairs with the n-th of the saved run. */
static bool pair_tool_start(struct ipw_playback *r, const struct ipw_event_line *line)
{
    struct ipw_event_line *e;

    if (r->n_pairs >= r->n_now) return false;
    e = take_emitted(r, IPW_EV_TOOL_START, r->now_spans[r->n_pairs]);
    if (!e) IPW_BUG("a tool call that began was lost");
    if (!same_call(e, line)) say_mismatch(r, &e->event, line);
    IPW_GROW(r->pairs, r->cap_pairs, r->n_pairs + 1);
    r->pairs[r->n_pairs] = (struct ipw_playback_pair){line->event.span, r->now_spans[r->n_pairs]};
    r->n_pairs++;
    ipw_event_line_free(e);
    return true;
}

static bool pair_tool_end(struct ipw_playback *r, const struct ipw_event_line *line)
{
    struct ipw_event_line *e = NULL;

    for (size_t i = 0; i < r->n_pairs && !e; i++)
        if (r->pairs[i].then == line->event.span)
            e = take_emitted(r, IPW_EV_TOOL_END, r->pairs[i].now);
    if (!e) return false;
    r->o.tool(r->o.ud, e, line);
    ipw_event_line_free(e);
    return true;
}

static enum ipw_playback_step step_decisions(struct ipw_playback *r,
                                             const struct ipw_event_line *line)
{
    const struct ipw_event *e = &line->event;
    bool done = true;

    switch (e->kind) {
    case IPW_EV_LM_START:
        if (e->lm.attempt == 1)
            done = ipw_playback_send(r, line);
        else
            ipw_playback_pass_start(r, line);
        break;
    case IPW_EV_LM_END:
        if (!e->lm.will_retry)
            done = ipw_playback_reply(r, line);
        else
            ipw_playback_pass_end(r, line);
        break;
    case IPW_EV_TOOL_START: done = pair_tool_start(r, line); break;
    case IPW_EV_TOOL_END: done = pair_tool_end(r, line); break;
    case IPW_EV_QUERY_END: done = false; break;
    default: break;
    }
    return done ? IPW_PLAYBACK_TAKEN : IPW_PLAYBACK_PENDING;
}

/* ---- emit and step ---- */

void ipw_playback_emit(struct ipw_playback *r, const struct ipw_event *event)
{
    struct ipw_event copy = *event;

    if (r->diverged && !r->live) return;
    if (r->live) {
        r->o.write(r->o.ud, &copy, NULL);
    } else if (r->o.mode == IPW_PLAYBACK_DECISIONS) {
        emit_real(r, event);
    } else if (r->at && (r->delivering || !r->emitted)) {
        const struct ipw_event_line *line = r->at;

        r->at = NULL;
        r->delivering = false;
        settle(r, &copy, line);
    } else {
        queue(r, event);
        r->o.stir(r->o.ud);
    }
}

/* Delivers the line to its waiter, which emits the paired event now or when the agent continues. */
static bool answer(struct ipw_playback *r, const struct ipw_event_line *line)
{
    switch (line->event.kind) {
    case IPW_EV_LM_START: return ipw_playback_send(r, line);
    case IPW_EV_LM_END: return ipw_playback_reply(r, line);
    case IPW_EV_TOOL_END: /* a cancelled call is cancelled again, and emits its own end */
    case IPW_EV_SPAN_END:
        return strcmp(line->event.tool.outcome ? line->event.tool.outcome : "", "cancelled") != 0 &&
               deliver(r, line->event.span, line);
    case IPW_EV_NOTE: return deliver(r, -ipw_playback_effect_id(line), line);
    default: return false;
    }
}

/* Whether the line can be answered before the events that still wait for their lines.  Tasks of one
 * query run in any order, so the end of a span can come before the start of another span, but not
 * before its own start. */
static bool may_overtake(const struct ipw_playback *r, const struct ipw_event_line *line)
{
    if (line->event.kind == IPW_EV_LM_START) return false;
    for (const struct ipw_event_line *e = r->emitted; e; e = e->next)
        if (e->event.span && e->event.span == line->event.span) return false;
    return true;
}

static void write_as_it_is(struct ipw_playback *r, const struct ipw_event_line *line)
{
    struct ipw_event event = line->event;

    ipw_event_take_payload(&event, line->text, line->n);
    r->o.write(r->o.ud, &event, line);
}

enum ipw_playback_step ipw_playback_step(struct ipw_playback *r, const struct ipw_event_line *line)
{
    struct ipw_event_line *e;

    if (r->o.mode == IPW_PLAYBACK_DECISIONS) return step_decisions(r, line);
    if (ipw_playback_is_own(line) || ipw_playback_is_inside(line)) {
        write_as_it_is(r, line);
        return IPW_PLAYBACK_TAKEN;
    }
    r->at = line;
    e = r->emitted;
    if (e && pairs(r, &e->event, line)) {
        r->at = NULL;
        r->last_line = line->number;
        pop_emitted(r);
        r->o.write(r->o.ud, &e->event, line);
        ipw_event_line_free(e);
        return IPW_PLAYBACK_TAKEN;
    }
    if (!e || may_overtake(r, line)) {
        r->delivering = true; /* the next event pairs with the line */
        if (answer(r, line)) e = NULL;
        r->delivering = false;
    }
    if (e) {
        r->at = NULL;
        pairs(r, &e->event, line); /* it gets the line's times, which do not differ then */
        say_mismatch(r, &e->event, line);
    }
    if (!r->at) return IPW_PLAYBACK_TAKEN;
    r->at = NULL;
    return IPW_PLAYBACK_PENDING;
}

/* ---- effects ---- */

int64_t ipw_playback_effect_id(const struct ipw_event_line *line)
{
    const struct ipw_json *name = ipw_json_get(line->data, "name");

    if (line->event.kind != IPW_EV_NOTE || line->event.tool.name) return 0;
    if (strcmp(ipw_json_str(name, ""), "effect") != 0) return 0;
    return ipw_json_int(ipw_json_get(line->data, "id"), 0);
}

bool ipw_playback_is_own(const struct ipw_event_line *line)
{
    const struct ipw_event *e = &line->event;

    if (e->kind != IPW_EV_NOTE) return false;
    if (e->tool.name)
        return !strcmp(e->tool.name, "booked") || !strcmp(e->tool.name, "first_token");
    return ipw_playback_effect_id(line) == 0;
}

bool ipw_playback_is_inside(const struct ipw_event_line *line)
{
    return line->event.span >= IPW_SPAN_INSIDE;
}

const struct ipw_event_line *ipw_playback_effect(struct ipw_playback *r, int64_t id,
                                                 const char *name)
{
    const struct ipw_event_line *line;

    for (size_t i = 0; (line = ipw_event_reader_peek(r->o.events, r->o.query, i, r->o.reach));
         i++) {
        if (ipw_playback_effect_id(line) != id) continue;
        if (strcmp(ipw_json_str(ipw_json_get(line->data, "of"), ""), name) == 0) return line;
        break;
    }
    ipw_playback_diverge(r,
                         "the saved run lacks what the agent asks for\n    saved   %s\n    "
                         "now     effect %lld: %s",
                         line ? ipw_json_str(ipw_json_get(line->data, "of"), "?")
                              : "no effect of that number comes next",
                         (long long)id, name);
    return NULL;
}
