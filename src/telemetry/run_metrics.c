#include "telemetry/run_metrics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "run/limits.h"
#include "telemetry/metrics_text.h"
#include "trace/turn.h"

/* How a query ended, for a label with few values: an agent can give any reason of its own. */
enum ended { ANSWERED, MAX_TURNS, NO_ANSWER, ERROR, LIMIT, INTERRUPTED, OTHER, ENDINGS };
static const char *const ended_words[ENDINGS] = {"answered", "max_turns",   "no_answer", "error",
                                                 "limit",    "interrupted", "other"};

enum { NAME_MAX_BYTES = 200, POINTS = 8 };

/* What a page shows. */
struct counts {
    char agent[NAME_MAX_BYTES], model[NAME_MAX_BYTES], dataset[NAME_MAX_BYTES];
    double start_s; /* since 1970; 0: it has not begun */
    uint64_t planned, started, ended[ENDINGS];
    uint64_t input_tokens, output_tokens, calls_unknown, failed_attempts, failed_tools;
    double joules[IPW_DOMAIN_COUNT], watts[IPW_DOMAIN_COUNT]; /* NAN: unknown */
    struct ipw_metrics_histogram query_s, call_s, first_token_s, tool_s;
};

struct open { /* a query (span 0) or a tool call that has begun */
    int32_t query, span;
    int64_t t_ns;
};

struct ipw_run_metrics {
    struct counts now;
    struct open *open;
    size_t n_open, cap_open;
    struct ipw_observed_energy points[POINTS]; /* the newest first */
    size_t n_points;
};

struct ipw_run_metrics *ipw_run_metrics_new(void)
{
    struct ipw_run_metrics *m = ipw_calloc(1, sizeof *m);

    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) m->now.joules[d] = m->now.watts[d] = NAN;
    return m;
}

void ipw_run_metrics_free(struct ipw_run_metrics *m)
{
    if (!m) return;
    free(m->open);
    free(m);
}

/* ---- counting ---- */

static void copy_name(char out[NAME_MAX_BYTES], const char *name)
{
    size_t n = name ? strlen(name) : 0;

    if (n >= NAME_MAX_BYTES) n = NAME_MAX_BYTES - 1;
    while (n && name[n] != '\0' && ((unsigned char)name[n] & 0xc0) == 0x80) n--; /* whole letters */
    if (n) memcpy(out, name, n);
    out[n] = '\0';
}

void ipw_run_metrics_begun(struct ipw_run_metrics *m, const struct ipw_observed_run *run)
{
    copy_name(m->now.agent, run->agent);
    copy_name(m->now.model, run->model);
    copy_name(m->now.dataset, run->dataset);
    m->now.planned = run->planned;
    m->now.start_s = ipw_ns_to_s(run->wall_ns);
}

static void begin(struct ipw_run_metrics *m, const struct ipw_event *e)
{
    IPW_GROW(m->open, m->cap_open, m->n_open + 1);
    m->open[m->n_open++] = (struct open){e->query, e->span, e->t_ns};
}

/* Its seconds; NAN: its begin was not seen. */
static double end(struct ipw_run_metrics *m, const struct ipw_event *e)
{
    for (size_t i = 0; i < m->n_open; i++) {
        struct open o = m->open[i];

        if (o.query != e->query || o.span != e->span) continue;
        m->open[i] = m->open[--m->n_open];
        return ipw_ns_to_s(e->t_ns - o.t_ns);
    }
    return NAN;
}

static void observe(struct ipw_metrics_histogram *h, double seconds)
{
    if (seconds >= 0) ipw_metrics_histogram_add(h, seconds);
}

static enum ended ended_of(const struct ipw_query_facts *q)
{
    if (q->completed) return ANSWERED;
    if (!q->outcome) return OTHER;
    if (ipw_outcome_is_stop(q->outcome)) return INTERRUPTED;
    for (int l = IPW_LIMIT_NONE + 1; l < IPW_LIMITS; l++)
        if (!strcmp(q->outcome, ipw_limit_outcome((enum ipw_limit)l, false))) return LIMIT;
    for (int i = 0; i < OTHER; i++)
        if (!strcmp(q->outcome, ended_words[i])) return (enum ended)i;
    return OTHER;
}

static void query_ended(struct ipw_run_metrics *m, const struct ipw_event *e)
{
    struct ipw_event whole = {.query = e->query, .t_ns = e->t_ns};

    observe(&m->now.query_s, end(m, &whole));
    m->now.ended[ended_of(&e->q)]++;
    for (size_t i = m->n_open; i-- > 0;) /* its tools that were cancelled */
        if (m->open[i].query == e->query) m->open[i] = m->open[--m->n_open];
}

static void call_ended(struct counts *now, const struct ipw_event *e)
{
    const struct ipw_lm_facts *lm = &e->lm;

    if (lm->outcome != IPW_LM_OK) {
        now->failed_attempts++;
        return;
    }
    if (lm->input_tokens >= 0) now->input_tokens += (uint64_t)lm->input_tokens;
    if (lm->output_tokens >= 0) now->output_tokens += (uint64_t)lm->output_tokens;
    now->calls_unknown += lm->input_tokens < 0 || lm->output_tokens < 0;
    if (!lm->times.sent_ns) return;
    observe(&now->call_s, ipw_ns_to_s(e->t_ns - lm->times.sent_ns));
    if (lm->times.first_token_ns)
        observe(&now->first_token_s, ipw_ns_to_s(lm->times.first_token_ns - lm->times.sent_ns));
}

void ipw_run_metrics_event(struct ipw_run_metrics *m, const struct ipw_event *e)
{
    switch (e->kind) {
    case IPW_EV_QUERY_START:
        m->now.started++;
        begin(m, &(struct ipw_event){.query = e->query, .t_ns = e->t_ns});
        break;
    case IPW_EV_TOOL_START: begin(m, e); break;
    case IPW_EV_TOOL_END:
        m->now.failed_tools += !e->tool.ok;
        observe(&m->now.tool_s, end(m, e));
        break;
    case IPW_EV_LM_END: call_ended(&m->now, e); break;
    case IPW_EV_QUERY_END: query_ended(m, e); break;
    default: break;
    }
}

/* The mean over the last second, or as long as the points reach. */
static double watts(const struct ipw_run_metrics *m, int d)
{
    const struct ipw_observed_energy *newest = &m->points[0], *before = NULL;

    for (size_t i = 1; i < m->n_points; i++) {
        before = &m->points[i];
        if (newest->until_ns - before->until_ns >= IPW_NS_PER_S) break;
    }
    if (!before || newest->until_ns <= before->until_ns) return NAN;
    return (newest->joules[d] - before->joules[d]) /
           ipw_ns_to_s(newest->until_ns - before->until_ns);
}

void ipw_run_metrics_energy(struct ipw_run_metrics *m, const struct ipw_observed_energy *energy)
{
    if (m->n_points && energy->until_ns <= m->points[0].until_ns) return; /* nothing new was read */
    memmove(m->points + 1, m->points, (POINTS - 1) * sizeof *m->points);
    m->points[0] = *energy;
    if (m->n_points < POINTS) m->n_points++;
    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) {
        double w = watts(m, d);

        /* A counter does not fall: what the ledger learns later may lower its figure a little. */
        if (!(energy->joules[d] < m->now.joules[d])) m->now.joules[d] = energy->joules[d];
        m->now.watts[d] = w < 0 ? 0 : w;
    }
}

/* ---- the page ---- */

static void put(struct ipw_buf *out, const char *name, const char *type, const char *help,
                double value)
{
    ipw_metrics_family(out, name, type, help);
    ipw_metrics_begin(out, name);
    ipw_metrics_end(out, value);
}

static void put_count(struct ipw_buf *out, const char *name, const char *help, uint64_t value)
{
    put(out, name, "counter", help, (double)value);
}

static void put_domains(struct ipw_buf *out, const char *name, const char *type, const char *help,
                        const double values[IPW_DOMAIN_COUNT])
{
    ipw_metrics_family(out, name, type, help);
    for (size_t i = 0; i < IPW_DOMAIN_COUNT; i++) {
        enum ipw_domain d = ipw_domains_by_name[i];

        if (isnan(values[d])) continue; /* an unknown value is absent, never 0 */
        ipw_metrics_begin(out, name);
        ipw_metrics_label(out, "domain", ipw_domain_name(d));
        ipw_metrics_end(out, values[d]);
    }
}

static void put_info(struct ipw_buf *out, const struct counts *c)
{
    if (!c->start_s) return;
    ipw_metrics_family(out, "ipw_run_info", "gauge", "The run: its agent, model and dataset.");
    ipw_metrics_begin(out, "ipw_run_info");
    ipw_metrics_label(out, "agent", c->agent);
    ipw_metrics_label(out, "dataset", c->dataset);
    ipw_metrics_label(out, "model", c->model);
    ipw_metrics_end(out, 1);
    put(out, "ipw_run_start_time_seconds", "gauge", "When this session began, since 1970.",
        c->start_s);
    put(out, "ipw_run_planned_queries", "gauge", "Queries of the run, earlier sessions included.",
        (double)c->planned);
}

static void put_queries(struct ipw_buf *out, const struct counts *c)
{
    uint64_t ended = 0;

    put_count(out, "ipw_run_queries_started_total",
              "Queries that began in this session, warm-up included.", c->started);
    ipw_metrics_family(out, "ipw_run_queries_ended_total", "counter",
                       "Queries that ended in this session, by outcome.");
    for (int i = 0; i < ENDINGS; i++) {
        ended += c->ended[i];
        ipw_metrics_begin(out, "ipw_run_queries_ended_total");
        ipw_metrics_label(out, "outcome", ended_words[i]);
        ipw_metrics_end(out, (double)c->ended[i]);
    }
    put(out, "ipw_run_queries_in_flight", "gauge", "Queries that began and have not ended.",
        (double)(c->started - ended));
    ipw_metrics_histogram_write(out, &c->query_s, "ipw_run_query_duration_seconds",
                                "Duration of the queries that ended.");
}

static void put_calls(struct ipw_buf *out, const struct counts *c)
{
    put_count(out, "ipw_run_input_tokens_total", "Prompt tokens of model calls, where known.",
              c->input_tokens);
    put_count(out, "ipw_run_output_tokens_total", "Generated tokens of model calls, where known.",
              c->output_tokens);
    put_count(out, "ipw_run_calls_unknown_tokens_total",
              "Model calls whose tokens are not known: in neither sum.", c->calls_unknown);
    put_count(out, "ipw_run_failed_attempts_total",
              "Attempts of model calls that failed, those that were tried again included.",
              c->failed_attempts);
    ipw_metrics_histogram_write(out, &c->call_s, "ipw_run_call_duration_seconds",
                                "Duration of model calls that succeeded.");
    ipw_metrics_histogram_write(out, &c->first_token_s, "ipw_run_first_token_seconds",
                                "Time from a model call's request to its first token.");
    put_count(out, "ipw_run_failed_tool_calls_total", "Tool calls that failed.", c->failed_tools);
    ipw_metrics_histogram_write(out, &c->tool_s, "ipw_run_tool_call_duration_seconds",
                                "Duration of tool calls.");
}

void ipw_run_metrics_write(struct ipw_buf *page, void *metrics)
{
    const struct counts *c = &((struct ipw_run_metrics *)metrics)->now;

    put_info(page, c);
    put_queries(page, c);
    put_calls(page, c);
    put_domains(page, "ipw_run_energy_joules_total", "counter",
                "Energy of the devices since this session began, idle time included.", c->joules);
    put_domains(page, "ipw_run_power_watts", "gauge", "Power over the last second.", c->watts);
}
