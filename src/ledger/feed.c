#include "ledger/feed.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/upto.h"
#include "json/write.h"
#include "ledger/metrics.h"

struct feed_query { /* a query in flight, or one that ended and has no figures yet */
    int64_t query;  /* its number */
    int64_t ordinal, start_ns;
    int lm, tools;           /* calls in progress */
    int64_t lm_ns, token_ns; /* start of the calls, and their first token; 0: none yet */
    bool waiting;            /* waits for the next attempt */
    bool over;
};

struct ipw_feed {
    struct ipw_ledger *ledger;
    struct ipw_metrics *metrics;
    char *sources[IPW_DOMAIN_COUNT];
    struct ipw_channel *channels;
    size_t n_channels;
    bool lm_remote;
    char sub_remote[512];
    /* With lm_remote: the domains that have a remote channel in their sum. */
    unsigned lm_domains;
    struct feed_query *open; /* by number */
    size_t n, cap, n_over;
};

/* The names of a domain's summed channels as a JSON array; NULL if there are none. */
static char *sources_of(const struct ipw_channel *channels, size_t n, enum ipw_domain domain)
{
    struct ipw_buf out = IPW_BUF(IPW_MIB);
    struct ipw_jw w;
    char *text;
    bool any = false;

    ipw_jw_init(&w, &out);
    ipw_jw_arr(&w);
    for (size_t i = 0; i < n; i++) {
        if (!channels[i].in_sum || channels[i].domain != domain) continue;
        ipw_jw_str(&w, channels[i].name);
        any = true;
    }
    ipw_jw_arr_end(&w);
    text = any && !out.failed ? ipw_memdup(out.data, out.len) : NULL;
    ipw_buf_release(&out);
    return text;
}

struct ipw_feed *ipw_feed_new(struct ipw_ledger *ledger)
{
    struct ipw_feed *f = ipw_calloc(1, sizeof *f);

    f->ledger = ledger;
    f->metrics = ipw_metrics_new(NULL, 0);
    return f;
}

void ipw_feed_describe(struct ipw_feed *f, const struct ipw_channel *channels, size_t n_channels,
                       const struct ipw_ledger_rules *rules)
{
    f->lm_remote = rules->lm_remote;
    snprintf(f->sub_remote, sizeof f->sub_remote, "%s", rules->sub_remote);
    f->lm_domains = 0;
    for (size_t i = 0; i < n_channels; i++) {
        if (channels[i].in_sum && channels[i].remote) f->lm_domains |= 1u << channels[i].domain;
    }
    free(f->channels);
    f->channels = ipw_calloc(n_channels + 1, sizeof *f->channels);
    for (size_t i = 0; i < n_channels; i++) f->channels[i] = channels[i];
    f->n_channels = n_channels;
    ipw_metrics_free(f->metrics);
    f->metrics = ipw_metrics_new(channels, n_channels);
    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) {
        free(f->sources[d]);
        f->sources[d] = sources_of(channels, n_channels, (enum ipw_domain)d);
    }
}

unsigned ipw_feed_lm_domains(const struct ipw_feed *f)
{
    return f->lm_remote ? f->lm_domains : (1u << IPW_DOMAIN_COUNT) - 1;
}

void ipw_feed_free(struct ipw_feed *f)
{
    if (!f) return;
    ipw_metrics_free(f->metrics);
    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) free(f->sources[d]);
    free(f->channels);
    free(f->open);
    free(f);
}

void ipw_feed_row(struct ipw_feed *f, size_t first, size_t n, int64_t t_ns, const int64_t *values)
{
    ipw_ledger_row(f->ledger, first, n, t_ns, values);
    if (f->n) ipw_metrics_row(f->metrics, first, n, t_ns, values);
}

/* The place behind the query, or where it belongs. */
static size_t upto(const struct ipw_feed *f, int64_t query)
{
    return f->n ? ipw_upto(&f->open->query, f->n, sizeof *f->open, query) : 0;
}

static struct feed_query *find(const struct ipw_feed *f, int64_t query)
{
    size_t i = upto(f, query);

    return i && f->open[i - 1].query == query ? &f->open[i - 1] : NULL;
}

static struct feed_query *add(struct ipw_feed *f, int64_t query, int64_t start_ns)
{
    size_t i = upto(f, query);

    IPW_GROW(f->open, f->cap, f->n + 1);
    memmove(f->open + i + 1, f->open + i, (f->n++ - i) * sizeof *f->open);
    f->open[i] = (struct feed_query){.query = query, .start_ns = start_ns};
    return &f->open[i];
}

static void forget(struct ipw_feed *f, struct feed_query *q)
{
    f->n_over -= q->over;
    memmove(q, q + 1, (size_t)(f->open + --f->n - q) * sizeof *q);
}

static void leave(struct ipw_feed *f, struct feed_query *q, int64_t t_ns)
{
    q->over = true;
    f->n_over++;
    ipw_ledger_query_end(f->ledger, q->ordinal, t_ns);
}

int64_t ipw_feed_ordinal(const struct ipw_feed *f, int32_t query)
{
    const struct feed_query *q = find(f, query);

    return q ? q->ordinal : -1;
}

size_t ipw_feed_in_flight(const struct ipw_feed *f) { return f->n - f->n_over; }

/* ---- phases: a query is in one phase at a time; a model call takes precedence ---- */

/* A call without a token yet is in prefill, because most calls are streamed. */
static void enter(struct ipw_feed *f, const struct feed_query *q, int64_t t_ns)
{
    enum ipw_phase phase = q->lm > 0 && q->token_ns ? IPW_PHASE_DECODE
                           : q->lm > 0              ? IPW_PHASE_PREFILL
                           : q->tools > 0           ? IPW_PHASE_TOOL
                           : q->waiting             ? IPW_PHASE_WAIT
                                                    : IPW_PHASE_AGENT;

    ipw_ledger_phase(f->ledger, q->ordinal, phase, t_ns);
}

/* Only the end of a call tells that its first token was not seen. */
static void end_call(struct ipw_feed *f, const struct feed_query *q)
{
    if (q->lm == 0 && !q->token_ns) ipw_ledger_phase(f->ledger, q->ordinal, IPW_PHASE_LM, q->lm_ns);
}

static void query_start(struct ipw_feed *f, const struct ipw_event *e)
{
    struct feed_query *q = add(f, e->query, e->t_ns);

    q->ordinal = ipw_ledger_query_begin_in(f->ledger, (size_t)e->q.scope - 1, e->t_ns);
    enter(f, q, e->t_ns);
}

void ipw_feed_event(struct ipw_feed *f, const struct ipw_event *e)
{
    struct feed_query *q = find(f, e->query);

    if (e->kind == IPW_EV_QUERY_START && !q) query_start(f, e);
    if (e->kind == IPW_EV_NOTE && e->query < 0 && e->tool.name &&
        !strcmp(e->tool.name, "suspend")) {
        ipw_ledger_break(f->ledger, "suspended");
    }
    if (!q || q->over) return; /* not in flight: the file is damaged */
    switch (e->kind) {
    case IPW_EV_LM_START:
        if (q->lm++ == 0) {
            q->lm_ns = e->t_ns;
            q->token_ns = 0;
        }
        q->waiting = false;
        break;
    case IPW_EV_LM_END:
        if (q->lm > 0) q->lm--;
        q->waiting = e->lm.will_retry;
        if (e->lm.times.sent_ns) ipw_ledger_instant(f->ledger, q->ordinal, e->lm.times.sent_ns);
        end_call(f, q);
        break;
    case IPW_EV_NOTE:
        if (!e->tool.name || strcmp(e->tool.name, IPW_NOTE_FIRST_TOKEN)) return;
        if (q->lm == 0) return;
        if (!q->token_ns) q->token_ns = e->t_ns;
        break;
    case IPW_EV_TOOL_START: q->tools++; break;
    case IPW_EV_TOOL_END:
        if (q->tools > 0) q->tools--;
        break;
    case IPW_EV_TOOL_SPAN:
        ipw_ledger_instant(f->ledger, q->ordinal, e->tool.from_ns);
        ipw_ledger_instant(f->ledger, q->ordinal, e->tool.to_ns);
        return;
    case IPW_EV_SPAN_START:
    case IPW_EV_SPAN_END: ipw_ledger_instant(f->ledger, q->ordinal, e->t_ns); return;
    case IPW_EV_QUERY_END: leave(f, q, ipw_event_end_ns(e)); return;
    default: return;
    }
    enter(f, q, e->t_ns);
}

const char *ipw_feed_loss_reason(enum ipw_domain domain)
{
    return domain == IPW_DOMAIN_GPU ? "gpu_lost" : "lost";
}

void ipw_feed_device_lost(struct ipw_feed *f, const char *channel)
{
    for (size_t i = 0; i < f->n_channels; i++) {
        if (!strcmp(f->channels[i].name, channel))
            ipw_ledger_lose(f->ledger, i, ipw_feed_loss_reason(f->channels[i].domain));
    }
}

void ipw_feed_doubt(struct ipw_feed *f, const char *channel, const char *reason)
{
    for (size_t i = 0; i < f->n_channels; i++) {
        if (!strcmp(f->channels[i].name, channel)) ipw_ledger_doubt(f->ledger, i, reason);
    }
}

void ipw_feed_cut(struct ipw_feed *f, int64_t t_ns)
{
    for (size_t i = 0; i < f->n; i++)
        if (!f->open[i].over) leave(f, &f->open[i], t_ns);
    ipw_ledger_close(f->ledger, t_ns);
}

/* Drops the readings of other metrics that no query needs: none in flight, none that ended and has
 * no figures yet. */
static void trim(struct ipw_feed *f, int64_t before_ns)
{
    for (size_t i = 0; i < f->n; i++)
        if (f->open[i].start_ns < before_ns) before_ns = f->open[i].start_ns;
    ipw_metrics_trim(f->metrics, before_ns);
}

/* Which calls went to another machine: a query that made one has a part that is not measured
 * here. */
static void find_remote_calls(const struct ipw_feed *f, struct ipw_query_trace *trace)
{
    trace->lm_remote = f->lm_remote;
    trace->lm_domains = f->lm_remote ? f->lm_domains : 0;
    for (size_t i = 0; i < trace->n_turns; i++) {
        struct ipw_turn *turn = &trace->turns[i];

        turn->remote = f->lm_remote || (f->sub_remote[0] && turn->endpoint &&
                                        !strcmp(turn->endpoint, f->sub_remote));
        trace->lm_remote |= turn->remote;
    }
}

void ipw_feed_finish(struct ipw_feed *f, struct ipw_query_trace *trace)
{
    struct feed_query *q = find(f, trace->index);

    find_remote_calls(f, trace);
    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) trace->sources[d] = ipw_strdup(f->sources[d]);
    ipw_query_energy_fill(trace, f->ledger, q ? q->ordinal : IPW_LEDGER_ANY);
    ipw_metrics_fill(f->metrics, trace);
    if (q) ipw_ledger_forget(f->ledger, q->ordinal);
    if (q) forget(f, q);
    trim(f, trace->end_ns);
}
