/* The ledger's part of a query's trace: what each piece cost. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "ledger/query_energy_priv.h"

/* The windows before, turn 1, turn 2, ... tile the query, so the query's joules are their sum and
 * not a second, separately rounded answer; the rest of the figure describes the whole window. */
static struct ipw_figure whole(struct ipw_figure all, const struct ipw_figure *parts, size_t n)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++) {
        if (!parts[i].known) return all;
        sum += parts[i].j;
    }
    if (all.known) all.j = sum;
    return all;
}

struct ipw_figure ipw_book_window(const struct ipw_ledger *ledger, int64_t query, enum ipw_domain d,
                                  int64_t t0_ns, int64_t t1_ns)
{
    return query < 0 ? ipw_ledger_window(ledger, d, t0_ns, t1_ns)
                     : ipw_ledger_query_window(ledger, query, d, t0_ns, t1_ns);
}

static void book_spans(const struct ipw_query_trace *q, struct ipw_turn *turn,
                       const struct ipw_ledger *ledger, int64_t query, enum ipw_domain d)
{
    for (size_t k = 0; k < turn->n_spans; k++) {
        struct ipw_span *span = &turn->spans[k];

        if (!ipw_book_of_model(q, d) && span->kind <= IPW_SPAN_DECODE) {
            /* What the client's own devices drew meanwhile is not what the model costs. */
            span->energy[d] = (struct ipw_figure){.reason = "remote"};
            continue;
        }
        span->energy[d] = ipw_ledger_query_span(ledger, query, d, span->start_ns, span->end_ns);
    }
}

static void book_power(struct ipw_turn *turn, const struct ipw_ledger *ledger, enum ipw_domain d)
{
    double mean, peak;

    if (ipw_ledger_power(ledger, d, turn->start_ns, turn->end_ns, &mean, &peak)) {
        turn->power_mean_w[d] = mean;
        turn->power_peak_w[d] = peak;
    } else {
        turn->power_mean_w[d] = NAN;
        turn->power_peak_w[d] = NAN;
    }
}

static void book_domain(struct ipw_query_trace *q, const struct ipw_ledger *ledger, int64_t query,
                        enum ipw_domain d, const int64_t *edges, struct ipw_figure *parts)
{
    size_t n = q->n_turns + 1;

    if (query < 0) {
        ipw_ledger_windows(ledger, d, edges, n, parts);
    } else {
        ipw_ledger_query_windows(ledger, query, d, edges, n, parts);
    }
    q->energy[d] = whole(ipw_book_window(ledger, query, d, q->start_ns, q->end_ns), parts, n);
    q->energy_before[d] = parts[0];
    book_spans(q, &q->before, ledger, query, d);
    ipw_ledger_power_stats(ledger, d, q->start_ns, q->end_ns, &q->power[d]);
    q->power_mean_w[d] = q->power[d].avg_w;
    for (size_t i = 0; i < q->n_turns; i++) {
        struct ipw_turn *turn = &q->turns[i];

        turn->energy[d] = parts[i + 1];
        book_power(turn, ledger, d);
        book_spans(q, turn, ledger, query, d);
    }
}

/* ---- each device by itself, where a domain has several ---- */

static int by_name(const void *a, const void *b)
{
    const struct ipw_device *x = a, *y = b;

    return x->domain != y->domain ? (x->domain > y->domain ? 1 : -1) : strcmp(x->name, y->name);
}

static void list_devices(struct ipw_query_trace *q, const struct ipw_ledger *ledger)
{
    size_t cap = 0;

    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) {
        size_t n = ipw_ledger_devices(ledger, (enum ipw_domain)d);

        for (size_t i = 0; n > 1 && i < n; i++) {
            IPW_GROW(q->devices, cap, q->n_devices + 1);
            q->devices[q->n_devices++] = (struct ipw_device){
                ipw_strdup(ipw_ledger_device_name(ledger, (enum ipw_domain)d, i)),
                (enum ipw_domain)d};
        }
    }
    if (q->n_devices) qsort(q->devices, q->n_devices, sizeof *q->devices, by_name);
}

size_t ipw_book_place(const struct ipw_ledger *ledger, const struct ipw_device *device)
{
    size_t i = 0;

    while (strcmp(ipw_ledger_device_name(ledger, device->domain, i), device->name)) i++;
    return i;
}

static void book_device_spans(const struct ipw_query_trace *q, struct ipw_turn *turn,
                              const struct ipw_ledger *ledger, int64_t query, size_t device,
                              size_t place)
{
    for (size_t k = 0; k < turn->n_spans; k++) {
        struct ipw_span *span = &turn->spans[k];

        if (!span->devices) span->devices = ipw_calloc(q->n_devices, sizeof *span->devices);
        if (!ipw_book_of_model(q, q->devices[device].domain) && span->kind <= IPW_SPAN_DECODE) {
            span->devices[device] = (struct ipw_figure){.reason = "remote"};
            continue;
        }
        span->devices[device] = ipw_ledger_device_span(ledger, query, q->devices[device].domain,
                                                       place, span->start_ns, span->end_ns);
    }
}

static void book_devices(struct ipw_query_trace *q, const struct ipw_ledger *ledger, int64_t query,
                         const int64_t *edges, struct ipw_figure *parts)
{
    list_devices(q, ledger);
    if (!q->n_devices) return;
    q->device_energy = ipw_calloc(q->n_devices, sizeof *q->device_energy);
    q->device_before = ipw_calloc(q->n_devices, sizeof *q->device_before);
    for (size_t k = 0; k < q->n_devices; k++) {
        enum ipw_domain d = q->devices[k].domain;
        size_t place = ipw_book_place(ledger, &q->devices[k]), n = q->n_turns + 1;

        ipw_ledger_device_windows(ledger, query, d, place, edges, n, parts);
        q->device_energy[k] = whole(
            ipw_ledger_device_window(ledger, query, d, place, q->start_ns, q->end_ns), parts, n);
        q->device_before[k] = parts[0];
        book_device_spans(q, &q->before, ledger, query, k, place);
        for (size_t i = 0; i < q->n_turns; i++) {
            struct ipw_turn *turn = &q->turns[i];

            if (!turn->devices) turn->devices = ipw_calloc(q->n_devices, sizeof *turn->devices);
            turn->devices[k] = parts[i + 1];
            book_device_spans(q, turn, ledger, query, k, place);
        }
    }
}

bool ipw_book_of_model(const struct ipw_query_trace *trace, enum ipw_domain domain)
{
    return !trace->lm_remote || (trace->lm_domains >> domain & 1);
}

void ipw_query_trace_book(struct ipw_query_trace *trace, const struct ipw_ledger *ledger,
                          int64_t query)
{
    size_t n = trace->n_turns;
    int64_t *edges = ipw_calloc(n + 2, sizeof *edges);
    struct ipw_figure *parts = ipw_calloc(n + 1, sizeof *parts);

    edges[0] = trace->start_ns;
    for (size_t i = 0; i < n; i++) edges[i + 1] = trace->turns[i].start_ns;
    edges[n + 1] = trace->end_ns;
    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) {
        book_domain(trace, ledger, query, (enum ipw_domain)d, edges, parts);
    }
    book_devices(trace, ledger, query, edges, parts);
    ipw_book_accounts(trace, ledger, query);
    free(edges);
    free(parts);
}
