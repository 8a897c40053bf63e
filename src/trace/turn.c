#include "trace/turn.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"

/* The end of a span whose end event has not come yet. */
#define OPEN INT64_MIN

struct ipw_turn_builder {
    struct ipw_query_trace trace;
    bool any;           /* any event was seen */
    bool ended;         /* query_end was seen; later events do not belong to the query */
    bool silent;        /* it ended before its query_end: what was open then is over as well */
    bool retry_pending; /* the last attempt failed and announced another */
    int64_t last_ns;
    int64_t trimmed_bytes; /* left out of the request that comes next */
};

struct ipw_turn_builder *ipw_turn_builder_new(void)
{
    struct ipw_turn_builder *b = ipw_calloc(1, sizeof *b);

    b->trace.agent_before_s = 0;
    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) {
        b->trace.power_mean_w[d] = NAN;
        b->trace.account[d] = (struct ipw_query_account){NAN, NAN, NAN, NAN};
        b->trace.power[d] = (struct ipw_power_stats){NAN, NAN, NAN, NAN};
    }
    return b;
}

void ipw_turn_builder_free(struct ipw_turn_builder *b)
{
    if (!b) return;
    ipw_query_trace_release(&b->trace);
    free(b);
}

static const char *keep(struct ipw_turn_builder *b, const char *text)
{
    return ipw_texts_keep(&b->trace.texts, text);
}

static struct ipw_turn *open_turn(struct ipw_turn_builder *b, int64_t t_ns)
{
    struct ipw_query_trace *q = &b->trace;
    struct ipw_turn *turn;

    IPW_GROW(q->turns, q->cap_turns, q->n_turns + 1);
    turn = &q->turns[q->n_turns];
    *turn = (struct ipw_turn){
        .index = (int)q->n_turns,
        .start_ns = t_ns,
        .end_ns = OPEN,
        .input_tokens = -1,
        .output_tokens = -1,
        .cached_tokens = -1,
        .reasoning_tokens = -1,
        .inference_s = NAN,
        .ttft_s = NAN,
        .decode_s = NAN,
        .times = {.ttfo_s = NAN,
                  .ttst_s = NAN,
                  .itl_mean_s = NAN,
                  .gap_p50_s = NAN,
                  .gap_p90_s = NAN,
                  .gap_p99_s = NAN,
                  .latency_content_s = NAN,
                  .latency_close_s = NAN,
                  .headers_s = NAN,
                  .connect_s = NAN,
                  .server_queue_s = NAN,
                  .server_prefill_s = NAN,
                  .server_decode_s = NAN},
        .cost_usd = NAN,
        .context_trimmed_bytes = b->trimmed_bytes,
    };
    b->trimmed_bytes = 0;
    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) {
        turn->power_mean_w[d] = NAN;
        turn->power_peak_w[d] = NAN;
    }
    if (q->n_turns) q->turns[q->n_turns - 1].end_ns = t_ns;
    q->n_turns++;
    return turn;
}

/* The name stays the caller's. */
static struct ipw_span *add_span(struct ipw_turn *turn, enum ipw_span_kind kind, const char *name,
                                 int32_t id, int64_t start_ns)
{
    struct ipw_span *span;

    IPW_GROW(turn->spans, turn->cap_spans, turn->n_spans < 4 ? 4 : turn->n_spans + 1);
    span = &turn->spans[turn->n_spans++];
    *span = (struct ipw_span){
        .kind = kind,
        .name = name,
        .id = id,
        .start_ns = start_ns,
        .end_ns = OPEN,
        .result_bytes = -1,
        .child_cpu_s = NAN,
    };
    return span;
}

static struct ipw_span *find_open_in(struct ipw_turn *turn, enum ipw_span_kind kind, int32_t id,
                                     const char *name)
{
    struct ipw_span *found = NULL;

    for (size_t k = turn->n_spans; k-- > 0;) {
        struct ipw_span *span = &turn->spans[k];

        if (span->kind != kind || span->end_ns != OPEN) continue;
        if (id ? span->id != id : name && span->name && strcmp(span->name, name) != 0) continue;
        found = span;
        if (id) break;
    }
    return found;
}

/* Finds the open span that an end event belongs to, by its number.  An event without a number (from
 * other software) closes the oldest open span of its kind and name.  So two concurrent calls of one
 * tool are not taken for nested ones. */
static struct ipw_span *find_open(struct ipw_turn_builder *b, enum ipw_span_kind kind, int32_t id,
                                  const char *name, struct ipw_turn **in_turn)
{
    struct ipw_query_trace *q = &b->trace;
    struct ipw_span *found = NULL;

    for (size_t i = q->n_turns; i-- > 0;) {
        struct ipw_span *span = find_open_in(&q->turns[i], kind, id, name);

        if (!span) continue;
        found = span;
        *in_turn = &q->turns[i];
        if (id) return found;
    }
    if (!found) {
        found = find_open_in(&q->before, kind, id, name);
        *in_turn = &q->before;
    }
    return found;
}

static bool has_lm(const struct ipw_turn *turn)
{
    for (size_t k = 0; k < turn->n_spans; k++) {
        if (turn->spans[k].kind == IPW_SPAN_LM) return true;
    }
    return false;
}

static struct ipw_turn *last_turn(struct ipw_turn_builder *b)
{
    return b->trace.n_turns ? &b->trace.turns[b->trace.n_turns - 1] : NULL;
}

static struct ipw_span *start_lm(struct ipw_turn_builder *b, const struct ipw_event *e)
{
    struct ipw_turn *turn = last_turn(b);
    struct ipw_span *span;
    bool again =
        turn && has_lm(turn) && (e->lm.attempt > 1 || (e->lm.attempt < 1 && b->retry_pending));

    b->retry_pending = false;
    if (!again && turn) turn->held_ns = e->lm.held_ns;
    if (!again) turn = open_turn(b, e->t_ns);
    turn->attempts++;
    span = add_span(turn, IPW_SPAN_LM, keep(b, e->lm.model), e->span, e->t_ns);
    span->attempt = e->lm.attempt > 0 ? e->lm.attempt : turn->attempts;
    span->inside = e->inside;
    return span;
}

static void take_tokens(struct ipw_turn *turn, const struct ipw_lm_facts *f)
{
    /* Use the values of the successful attempt; those of a failed one only if nothing better is
     * known. */
    bool ok = f->outcome == IPW_LM_OK;

    if (ok || turn->input_tokens < 0) turn->input_tokens = f->input_tokens;
    if (ok || turn->output_tokens < 0) {
        turn->output_tokens = f->output_tokens;
        turn->tokens_estimated = f->tokens_estimated;
    }
    if (ok || turn->cached_tokens < 0) turn->cached_tokens = f->cached_tokens;
    if (ok || turn->cache_write_tokens == 0) {
        turn->cache_write_tokens = f->cache_write_tokens;
        turn->cache_write_1h_tokens = f->cache_write_1h_tokens;
    }
    if (ok || turn->reasoning_tokens < 0) turn->reasoning_tokens = f->reasoning_tokens;
    if (f->outcome != IPW_LM_CONTEXT_FULL) return;
    /* Known to be 0: the server refused the request without an inference. */
    if (turn->input_tokens < 0) turn->input_tokens = 0;
    if (turn->output_tokens < 0) turn->output_tokens = 0;
}

/* Adds an attempt's known cost, also of a failed attempt.  A failed attempt of unknown cost changes
 * nothing; a successful one makes the sum unknown. */
static void take_cost(struct ipw_turn *turn, const struct ipw_lm_facts *f)
{
    if (f->cost.known)
        turn->cost_usd = isnan(turn->cost_usd) ? f->cost.usd : turn->cost_usd + f->cost.usd;
    else if (f->outcome == IPW_LM_OK)
        turn->cost_usd = NAN;
}

/* Seconds from the request's start to a stamp; NAN if the stamp is unknown. */
static double from_start(int64_t sent_ns, int64_t t_ns)
{
    return t_ns && t_ns >= sent_ns ? ipw_ns_to_s(t_ns - sent_ns) : NAN;
}

static double duration(int64_t ns) { return ns > 0 ? ipw_ns_to_s(ns) : NAN; }

static double between(int64_t from_ns, int64_t to_ns) { return ipw_ns_to_s(to_ns - from_ns); }

static void take_times(struct ipw_turn_times *out, const struct ipw_lm_times *t,
                       int64_t output_tokens, int64_t sent_ns, int64_t close_ns)
{
    int64_t output_ns = t->first_text_ns;
    bool streamed = t->first_token_ns >= sent_ns && t->last_token_ns > t->first_token_ns;

    if (t->first_call_ns && (!output_ns || t->first_call_ns < output_ns))
        output_ns = t->first_call_ns;
    *out = (struct ipw_turn_times){
        .ttfo_s = from_start(sent_ns, output_ns),
        .ttst_s = t->second_token_ns && t->first_token_ns
                      ? between(t->first_token_ns, t->second_token_ns)
                      : NAN,
        .itl_mean_s =
            streamed && output_tokens >= 2
                ? between(t->first_token_ns, t->last_token_ns) / (double)(output_tokens - 1)
                : NAN,
        .gap_p50_s = t->gaps > 0 ? ipw_ns_to_s(t->gap_p50_ns) : NAN,
        .gap_p90_s = t->gaps > 0 ? ipw_ns_to_s(t->gap_p90_ns) : NAN,
        .gap_p99_s = t->gaps > 0 ? ipw_ns_to_s(t->gap_p99_ns) : NAN,
        .latency_content_s = from_start(sent_ns, t->last_token_ns),
        .latency_close_s = from_start(sent_ns, close_ns),
        .headers_s = from_start(sent_ns, t->headers_ns),
        .connect_s = duration(t->dns_ns + t->connect_ns + t->tls_ns),
        .server_queue_s = duration(t->server_queue_ns),
        .server_prefill_s = duration(t->server_prefill_ns),
        .server_decode_s = duration(t->server_decode_ns),
    };
}

/* Adds prefill or decode of the successful attempt.  This may move the turn's spans. */
static void add_phase(struct ipw_turn *turn, enum ipw_span_kind kind, int attempt, int64_t from_ns,
                      int64_t to_ns)
{
    struct ipw_span *phase = add_span(turn, kind, turn->model, 0, from_ns);

    phase->end_ns = to_ns;
    phase->attempt = attempt;
    phase->outcome = "ok";
}

static void add_phases(struct ipw_turn *turn, const struct ipw_lm_times *t, int attempt,
                       int64_t sent_ns)
{
    if (t->first_token_ns < sent_ns) return;
    add_phase(turn, IPW_SPAN_PREFILL, attempt, sent_ns, t->first_token_ns);
    turn->ttft_s = between(sent_ns, t->first_token_ns);
    if (t->last_token_ns < t->first_token_ns) return;
    add_phase(turn, IPW_SPAN_DECODE, attempt, t->first_token_ns, t->last_token_ns);
    turn->decode_s = between(t->first_token_ns, t->last_token_ns);
}

static void end_lm(struct ipw_turn_builder *b, const struct ipw_event *e)
{
    const struct ipw_lm_facts *f = &e->lm;
    struct ipw_turn *turn = NULL;
    struct ipw_span *span = find_open(b, IPW_SPAN_LM, e->span, NULL, &turn);
    int64_t sent_ns;

    if (!span) { /* an end without a start is listed anyway, without duration */
        span = start_lm(b, e);
        turn = last_turn(b);
    }
    span->end_ns = e->t_ns > span->start_ns ? e->t_ns : span->start_ns;
    if (f->attempt > 0) span->attempt = f->attempt;
    span->outcome = ipw_lm_outcome_name(f->outcome);
    span->error = keep(b, f->error);
    turn->asked = f->model && span->name && !strcmp(f->model, span->name) ? NULL : span->name;
    if (f->model) span->name = turn->model = keep(b, f->model);
    take_tokens(turn, f);
    take_cost(turn, f);
    b->retry_pending = f->will_retry;
    if (f->outcome != IPW_LM_OK) {
        turn->error = span->error ? span->error : span->outcome;
        return;
    }
    turn->error = NULL;
    turn->finish_reason = keep(b, f->finish_reason);
    sent_ns = f->times.sent_ns ? f->times.sent_ns : span->start_ns;
    take_times(&turn->times, &f->times, f->output_tokens, sent_ns, span->end_ns);
    turn->endpoint = keep(b, f->endpoint);
    add_phases(turn, &f->times, span->attempt, sent_ns);
}

static struct ipw_span *start_tool(struct ipw_turn_builder *b, const struct ipw_event *e)
{
    struct ipw_turn *turn = last_turn(b);
    struct ipw_span *span;

    if (!turn) { /* a tool that runs before any model call opens its own turn */
        turn = open_turn(b, e->t_ns);
        turn->input_tokens = 0; /* known to be 0, because no model was called */
        turn->output_tokens = 0;
    }
    b->trace.n_tool_calls++;
    span = add_span(turn, IPW_SPAN_TOOL, keep(b, e->tool.name), e->span, e->t_ns);
    span->inside = e->inside;
    return span;
}

/* The tool of that number, open or not; `in_turn`: of NULL. */
static struct ipw_span *find_tool(struct ipw_turn_builder *b, int32_t id)
{
    struct ipw_query_trace *q = &b->trace;

    for (size_t i = id ? q->n_turns : 0; i-- > 0;)
        for (size_t k = q->turns[i].n_spans; k-- > 0;) {
            struct ipw_span *span = &q->turns[i].spans[k];

            if (span->kind == IPW_SPAN_TOOL && span->id == id) return span;
        }
    return NULL;
}

/* One that no reply called belongs to the turn in which it began. */
static struct ipw_span *add_told(struct ipw_turn_builder *b, const struct ipw_event *e)
{
    struct ipw_query_trace *q = &b->trace;
    size_t i = q->n_turns;

    if (!i) return start_tool(b, e);
    while (i > 1 && q->turns[i - 1].start_ns > e->tool.from_ns) i--;
    q->n_tool_calls++;
    return add_span(&q->turns[i - 1], IPW_SPAN_TOOL, keep(b, e->tool.name), e->span, 0);
}

static void tell_tool(struct ipw_turn_builder *b, const struct ipw_event *e)
{
    int64_t from_ns = e->tool.from_ns, to_ns = e->tool.to_ns;
    struct ipw_span *span = find_tool(b, e->span);

    if (from_ns < b->trace.start_ns || to_ns < from_ns || to_ns > e->t_ns) return;
    if (!span) span = add_told(b, e);
    span->told = true;
    span->start_ns = from_ns;
    span->end_ns = to_ns;
    if (!span->outcome) span->outcome = e->tool.ok ? "ok" : "error";
}

static void end_span(struct ipw_turn_builder *b, struct ipw_span *span, const struct ipw_event *e)
{
    const struct ipw_tool_facts *f = &e->tool;

    if (!span->told) span->end_ns = e->t_ns > span->start_ns ? e->t_ns : span->start_ns;
    span->outcome = f->outcome ? keep(b, f->outcome) : f->ok ? "ok" : "error";
    span->error = keep(b, f->error);
    span->result_bytes = f->result_bytes;
    span->cut_bytes = f->cut_bytes;
    span->child_cpu_s = duration(f->child_cpu_ns);
    span->child_peak_bytes = f->child_peak_bytes;
    span->child_provenance = keep(b, f->child_provenance);
}

static void end_tool(struct ipw_turn_builder *b, const struct ipw_event *e)
{
    struct ipw_turn *turn = NULL;
    struct ipw_span *told = find_tool(b, e->span);
    struct ipw_span *span =
        told && told->told ? told : find_open(b, IPW_SPAN_TOOL, e->span, e->tool.name, &turn);

    end_span(b, span ? span : start_tool(b, e), e);
}

static enum ipw_span_kind own_kind(const struct ipw_event *e)
{
    const char *kind = e->tool.kind ? e->tool.kind : "";

    return !strcmp(kind, "http")    ? IPW_SPAN_HTTP
           : !strcmp(kind, "agent") ? IPW_SPAN_AGENT
                                    : IPW_SPAN_EVENT;
}

static struct ipw_span *start_own(struct ipw_turn_builder *b, const struct ipw_event *e)
{
    struct ipw_turn *turn = last_turn(b);
    struct ipw_span *span = add_span(turn ? turn : &b->trace.before, own_kind(e),
                                     keep(b, e->tool.name), e->span, e->t_ns);

    span->inside = e->inside;
    return span;
}

static void end_own(struct ipw_turn_builder *b, const struct ipw_event *e)
{
    struct ipw_turn *turn = NULL;
    struct ipw_span *span = find_open(b, own_kind(e), e->span, e->tool.name, &turn);

    end_span(b, span ? span : start_own(b, e), e);
}

static void take_note(struct ipw_turn_builder *b, const struct ipw_event *e)
{
    if (!strcmp(e->tool.name, "malformed")) last_turn(b)->malformed = true;
    if (!strcmp(e->tool.name, "context_trimmed")) b->trimmed_bytes = e->tool.result_bytes;
}

static void add(struct ipw_turn_builder *b, const struct ipw_event *e)
{
    struct ipw_query_trace *q = &b->trace;

    if (e->kind == IPW_EV_RUN_START || e->kind == IPW_EV_RUN_END) return;
    if (!b->any) {
        q->start_ns = e->t_ns;
        q->index = e->query;
        b->any = true;
    }
    if (!b->ended && e->kind != IPW_EV_QUERY_END && e->kind != IPW_EV_TOOL_SPAN &&
        e->t_ns > b->last_ns)
        b->last_ns = e->t_ns;
    if (b->ended && e->kind != IPW_EV_QUERY_START) return;
    switch (e->kind) {
    case IPW_EV_QUERY_START:
        q->id = keep(b, e->q.id);
        q->start_ns = e->t_ns;
        q->scheduled_ns = e->q.scheduled_ns;
        q->index = e->query;
        break;
    case IPW_EV_LM_START: start_lm(b, e); break;
    case IPW_EV_LM_END: end_lm(b, e); break;
    case IPW_EV_TOOL_START: start_tool(b, e)->argument_bytes = e->tool.argument_bytes; break;
    case IPW_EV_TOOL_END: end_tool(b, e); break;
    case IPW_EV_TOOL_SPAN: tell_tool(b, e); break;
    case IPW_EV_SPAN_START: start_own(b, e); break;
    case IPW_EV_SPAN_END: end_own(b, e); break;
    case IPW_EV_QUERY_END:
        b->ended = true;
        b->silent = ipw_event_end_ns(e) < e->t_ns;
        q->end_ns = ipw_event_end_ns(e);
        if (e->t_ns > b->last_ns && q->end_ns < b->last_ns) q->end_ns = b->last_ns;
        if (!q->id) q->id = keep(b, e->q.id);
        q->outcome = keep(b, e->q.outcome);
        q->error = keep(b, e->q.error);
        q->completed = e->q.completed;
        break;
    case IPW_EV_NOTE:
        if (q->n_turns && e->tool.name) take_note(b, e);
        break;
    default: break; /* not of a query */
    }
}

void ipw_turn_builder_add(struct ipw_turn_builder *b, const struct ipw_event *event)
{
    struct ipw_event e = *event;

    ipw_event_cut(&e);
    add(b, &e);
}

static void not_after(int64_t *t_ns, int64_t end_ns)
{
    if (*t_ns > end_ns) *t_ns = end_ns;
}

static void cut_turn(struct ipw_turn *turn, int64_t end_ns)
{
    not_after(&turn->start_ns, end_ns);
    not_after(&turn->end_ns, end_ns); /* OPEN stays */
    for (size_t k = 0; k < turn->n_spans; k++) {
        not_after(&turn->spans[k].start_ns, end_ns);
        not_after(&turn->spans[k].end_ns, end_ns);
    }
}

void ipw_turn_builder_cut(struct ipw_turn_builder *b, int64_t end_ns)
{
    struct ipw_query_trace *q = &b->trace;

    not_after(&q->start_ns, end_ns);
    if (b->ended) {
        not_after(&q->end_ns, end_ns);
    } else {
        b->last_ns = end_ns;
    }
    cut_turn(&q->before, end_ns);
    for (size_t i = 0; i < q->n_turns; i++) cut_turn(&q->turns[i], end_ns);
}

/* ---- finishing ---- */

struct interval {
    int64_t from, to;
};

static int by_start(const void *a, const void *b)
{
    const struct interval *x = a, *y = b;

    return x->from < y->from ? -1 : x->from > y->from;
}

/* Insertion sort: stable, and the spans are nearly sorted already. */
static void sort_spans(struct ipw_turn *turn)
{
    for (size_t i = 1; i < turn->n_spans; i++) {
        struct ipw_span span = turn->spans[i];
        size_t k = i;

        for (; k > 0 && turn->spans[k - 1].start_ns > span.start_ns; k--) {
            turn->spans[k] = turn->spans[k - 1];
        }
        turn->spans[k] = span;
    }
}

static void close_spans(struct ipw_turn *turn, int64_t query_end_ns, bool silent)
{
    double inference_s = 0;

    for (size_t k = 0; k < turn->n_spans; k++) {
        struct ipw_span *span = &turn->spans[k];

        if (span->end_ns == OPEN) {
            span->end_ns = query_end_ns > span->start_ns ? query_end_ns : span->start_ns;
            span->outcome = silent && span->kind != IPW_SPAN_LM ? "ok" : "unfinished";
            if (span->kind == IPW_SPAN_LM) turn->error = "unfinished";
        }
        if (span->kind == IPW_SPAN_LM) inference_s += ipw_ns_to_s(span->end_ns - span->start_ns);
    }
    if (turn->attempts) turn->inference_s = inference_s;
    sort_spans(turn);
}

static size_t add_wait(struct ipw_turn *turn, struct interval wait, struct interval **busy,
                       size_t *cap, size_t n)
{
    turn->retry_wait_s += ipw_ns_to_s(wait.to - wait.from);
    IPW_GROW(*busy, *cap, n + 1);
    (*busy)[n++] = wait;
    return n;
}

/* Adds to `busy` the waits between the attempts of a turn, which are in order of time, and the wait
 * at its end for the in-flight limit.  They are not agent time either. */
static size_t add_waits(struct ipw_turn *turn, struct interval **busy, size_t *cap, size_t n)
{
    int64_t end_ns = OPEN, held_from_ns = turn->end_ns - turn->held_ns;

    for (size_t k = 0; k < turn->n_spans; k++) {
        const struct ipw_span *span = &turn->spans[k];

        if (span->kind != IPW_SPAN_LM) continue;
        if (end_ns != OPEN && span->start_ns > end_ns)
            n = add_wait(turn, (struct interval){end_ns, span->start_ns}, busy, cap, n);
        if (span->end_ns > end_ns) end_ns = span->end_ns;
    }
    if (held_from_ns < turn->start_ns) held_from_ns = turn->start_ns;
    if (turn->end_ns > held_from_ns)
        n = add_wait(turn, (struct interval){held_from_ns, turn->end_ns}, busy, cap, n);
    return n;
}

/* Agent time is the part of each turn that is neither inference nor tool.  A span may reach into a
 * later turn (a tool that the agent did not wait for), so the busy time is the union over the whole
 * query. */
static void fill_agent_time(struct ipw_query_trace *q)
{
    struct interval *busy = NULL;
    size_t n = 0, cap = 0, merged = 0, first = 0;

    for (size_t i = 0; i < q->n_turns; i++) {
        for (size_t k = 0; k < q->turns[i].n_spans; k++) {
            const struct ipw_span *span = &q->turns[i].spans[k];

            if (span->kind != IPW_SPAN_LM && span->kind != IPW_SPAN_TOOL) continue;
            IPW_GROW(busy, cap, n + 1);
            busy[n++] = (struct interval){span->start_ns, span->end_ns};
        }
        n = add_waits(&q->turns[i], &busy, &cap, n);
    }
    if (n) qsort(busy, n, sizeof *busy, by_start);
    for (size_t i = 0; i < n; i++) {
        if (merged && busy[i].from <= busy[merged - 1].to) {
            if (busy[i].to > busy[merged - 1].to) busy[merged - 1].to = busy[i].to;
        } else {
            busy[merged++] = busy[i];
        }
    }
    for (size_t i = 0; i < q->n_turns; i++) {
        struct ipw_turn *turn = &q->turns[i];
        int64_t rest = turn->end_ns - turn->start_ns;

        while (first < merged && busy[first].to <= turn->start_ns) first++;
        for (size_t k = first; k < merged && busy[k].from < turn->end_ns; k++) {
            int64_t from = busy[k].from > turn->start_ns ? busy[k].from : turn->start_ns;
            int64_t to = busy[k].to < turn->end_ns ? busy[k].to : turn->end_ns;

            if (to > from) rest -= to - from;
        }
        turn->agent_s = ipw_ns_to_s(rest);
    }
    free(busy);
}

static void make_figures(struct ipw_turn *turn)
{
    turn->energy = ipw_turn_figures();
    ipw_turn_span_figures(turn);
}

/* Unknown (-1) if a part is unknown, or if the sum overflows. */
static void add_tokens(int64_t *sum, int64_t more)
{
    if (*sum < 0 || more < 0 || __builtin_add_overflow(*sum, more, sum)) *sum = -1;
}

void ipw_turn_builder_finish(struct ipw_turn_builder *b, struct ipw_query_trace *out)
{
    struct ipw_query_trace *q = &b->trace;

    if (!b->ended) {
        q->end_ns = b->last_ns > q->start_ns ? b->last_ns : q->start_ns;
        q->outcome = "unfinished";
    }
    if (!q->id) q->id = "";
    if (!q->outcome) q->outcome = "unknown";
    q->timed_out = !strcmp(q->outcome, "timeout");
    for (size_t i = 0; i < q->n_turns; i++) {
        struct ipw_turn *turn = &q->turns[i];

        if (i + 1 == q->n_turns) turn->end_ns = q->end_ns;
        if (turn->end_ns < turn->start_ns) turn->end_ns = turn->start_ns;
        close_spans(turn, q->end_ns, b->silent);
        make_figures(turn);
        add_tokens(&q->input_tokens, turn->input_tokens);
        add_tokens(&q->output_tokens, turn->output_tokens);
    }
    close_spans(&q->before, q->end_ns, b->silent);
    make_figures(&q->before);
    fill_agent_time(q);
    q->agent_before_s = ipw_ns_to_s((q->n_turns ? q->turns[0].start_ns : q->end_ns) - q->start_ns);
    *out = *q;
    free(b);
}
