/* The energy of a query, its turns and spans: see ledger/query_energy.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "ledger/query_energy_priv.h"

/* The windows before, turn 1, turn 2, ... tile the query.  The query's joules are therefore their
 * sum, not a second answer that was rounded separately.  The rest of the figure describes the whole
 * window. */
static struct ipw_figure whole(struct ipw_figure all, const struct ipw_figure *parts, size_t n)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++) {
        if (!parts[i].known) return all;
        sum = ipw_figure_add_j(sum, parts[i].j);
    }
    if (all.known) all.j = sum;
    return all;
}

/* The figures of one domain, or of one of its devices, at each place of a trace. */
struct column {
    struct ipw_ledger_question ask;
    size_t device; /* index of the trace's device; IPW_LEDGER_ALL: the domain */
};

static struct ipw_figure *cell(const struct column *c, struct ipw_figure *domains,
                               struct ipw_figure *devices)
{
    return c->device == IPW_LEDGER_ALL ? &domains[c->ask.domain] : &devices[c->device];
}

bool ipw_query_energy_two_phases(const struct ipw_turn *turn)
{
    bool at_once = turn->decode_s == 0 || 2 * turn->decode_s < turn->times.server_decode_s;

    return turn->output_tokens == 1 || !at_once;
}

/* A phase whose window does not hold what it is named for has no energy of its own. */
static bool is_no_phase(const struct ipw_turn *turn, const struct ipw_span *span)
{
    if (span->kind == IPW_SPAN_DECODE && span->end_ns == span->start_ns) return true;
    return (span->kind == IPW_SPAN_PREFILL || span->kind == IPW_SPAN_DECODE) &&
           !ipw_query_energy_two_phases(turn);
}

/* A domain only: who asks for one device's part in a span can ask the ledger. */
static void fill_spans(const struct ipw_query_trace *q, struct ipw_turn *turn,
                       const struct ipw_ledger *ledger, const struct column *c)
{
    for (size_t k = 0; c->device == IPW_LEDGER_ALL && k < turn->n_spans; k++) {
        struct ipw_span *span = &turn->spans[k];
        struct ipw_figure *f = &span->energy[c->ask.domain];
        struct ipw_ledger_question ask = c->ask;

        if (turn->remote && !ipw_query_energy_of_model(q, ask.domain) &&
            span->kind <= IPW_SPAN_DECODE) {
            /* The client's own devices do not tell what a remote model costs. */
            *f = (struct ipw_figure){.reason = "remote"};
            continue;
        }
        ask.what = IPW_LEDGER_SPAN;
        ask.t0_ns = span->start_ns;
        ask.t1_ns = span->end_ns;
        *f = ipw_ledger_figure(ledger, ask);
        if (f->known && is_no_phase(turn, span)) *f = (struct ipw_figure){.reason = "one_event"};
    }
}

static void fill_column(struct ipw_query_trace *q, const struct ipw_ledger *ledger,
                        struct column *c, const int64_t *edges, struct ipw_figure *parts)
{
    size_t n = q->n_turns + 1;

    c->ask.t0_ns = q->start_ns;
    c->ask.t1_ns = q->end_ns;
    ipw_ledger_figures(ledger, c->ask, edges, n, parts);
    *cell(c, q->energy, q->device_energy) = whole(ipw_ledger_figure(ledger, c->ask), parts, n);
    *cell(c, q->energy_before, q->device_before) = parts[0];
    fill_spans(q, &q->before, ledger, c);
    for (size_t i = 0; i < q->n_turns; i++) {
        struct ipw_turn *turn = &q->turns[i];

        *cell(c, turn->energy, turn->devices) = parts[i + 1];
        fill_spans(q, turn, ledger, c);
    }
}

static void fill_power(struct ipw_query_trace *q, const struct ipw_ledger *ledger, int64_t query,
                       enum ipw_domain d)
{
    struct ipw_ledger_question ask = {query, d, .device = IPW_LEDGER_ALL, q->start_ns, q->end_ns};

    ipw_ledger_power(ledger, ask, &q->power[d]);
    q->power_mean_w[d] = q->power[d].avg_w;
    for (size_t i = 0; i < q->n_turns; i++) {
        struct ipw_turn *turn = &q->turns[i];

        ask.t0_ns = turn->start_ns;
        ask.t1_ns = turn->end_ns;
        ipw_ledger_mean_power(ledger, ask, &turn->power_mean_w[d], &turn->power_peak_w[d]);
    }
}

/* ---- each device separately, where a domain has several ---- */

static int by_name(const void *a, const void *b)
{
    const struct ipw_device *x = a, *y = b;

    return x->domain != y->domain ? (x->domain > y->domain ? 1 : -1) : strcmp(x->name, y->name);
}

static void list_devices(struct ipw_query_trace *q, const struct ipw_ledger *ledger, int64_t query)
{
    size_t cap = 0;

    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) {
        size_t n = ipw_ledger_devices(ledger, (enum ipw_domain)d);

        for (size_t i = 0; n > 1 && i < n; i++) {
            if (!ipw_ledger_query_sees(ledger, query, (enum ipw_domain)d, i)) continue;
            IPW_GROW(q->devices, cap, q->n_devices + 1);
            q->devices[q->n_devices++] = (struct ipw_device){
                ipw_strdup(ipw_ledger_device_name(ledger, (enum ipw_domain)d, i)),
                (enum ipw_domain)d};
        }
    }
    if (q->n_devices) qsort(q->devices, q->n_devices, sizeof *q->devices, by_name);
}

static void add_devices(struct ipw_query_trace *q)
{
    q->device_energy = ipw_calloc(q->n_devices, sizeof *q->device_energy);
    q->device_before = ipw_calloc(q->n_devices, sizeof *q->device_before);
    for (size_t i = 0; i < q->n_turns; i++)
        q->turns[i].devices = ipw_calloc(q->n_devices, sizeof *q->turns[i].devices);
}

size_t ipw_query_energy_device(const struct ipw_ledger *ledger, const struct ipw_device *device)
{
    size_t i = 0;

    while (strcmp(ipw_ledger_device_name(ledger, device->domain, i), device->name)) i++;
    return i;
}

bool ipw_query_energy_of_model(const struct ipw_query_trace *trace, enum ipw_domain domain)
{
    return !trace->lm_remote || (trace->lm_domains >> domain & 1);
}

void ipw_query_energy_fill(struct ipw_query_trace *trace, const struct ipw_ledger *ledger,
                           int64_t query)
{
    size_t n = trace->n_turns;
    int64_t *edges = ipw_calloc(n + 2, sizeof *edges);
    struct ipw_figure *parts = ipw_calloc(n + 1, sizeof *parts);
    struct ipw_query_tiles tiles;

    edges[0] = trace->start_ns;
    for (size_t i = 0; i < n; i++) edges[i + 1] = trace->turns[i].start_ns;
    edges[n + 1] = trace->end_ns;
    ipw_ledger_remember(ledger, true);
    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) {
        struct column c = {{query, (enum ipw_domain)d, .device = IPW_LEDGER_ALL}, IPW_LEDGER_ALL};

        fill_column(trace, ledger, &c, edges, parts);
        fill_power(trace, ledger, query, (enum ipw_domain)d);
    }
    list_devices(trace, ledger, query);
    if (trace->n_devices) add_devices(trace);
    for (size_t k = 0; k < trace->n_devices; k++) {
        const struct ipw_device *device = &trace->devices[k];
        struct column c = {
            {query, device->domain, .device = ipw_query_energy_device(ledger, device)}, k};

        fill_column(trace, ledger, &c, edges, parts);
    }
    ipw_query_tiles_make(&tiles, trace);
    ipw_query_energy_accounts(trace, ledger, query, &tiles);
    ipw_query_energy_parts(trace, ledger, query, &tiles);
    ipw_query_tiles_free(&tiles);
    ipw_query_trace_round(trace);
    ipw_ledger_remember(ledger, false);
    free(edges);
    free(parts);
}
