#include "ledger/ledger.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "ledger/ledger_priv.h"

/* ---- the books ---- */

/* A gauge beside a counter of the same device. */
static bool is_beside(const struct ipw_channel *gauge, const struct ipw_channel *counter)
{
    return gauge->kind == IPW_CHANNEL_GAUGE && !gauge->in_sum && counter->in_sum &&
           counter->kind == IPW_CHANNEL_COUNTER && gauge->domain == counter->domain &&
           gauge->device[0] && !strcmp(gauge->device, counter->device);
}

/* A model's value is right at every reading.  Its period says how often we ask, not how often it
 * changes, so no time before the newest reading is flat. */
static struct ipw_channel as_counter(struct ipw_channel channel)
{
    channel.kind = IPW_CHANNEL_COUNTER;
    channel.period_ns = 1;
    return channel;
}

static bool is_model(const struct ipw_channel *channel)
{
    return channel->kind == IPW_CHANNEL_ESTIMATE;
}

/* The n-th channel of a model, counted from 0, for this domain. */
static size_t find_model(const struct ipw_ledger *l, enum ipw_domain domain, size_t n)
{
    for (size_t i = 0; i < l->n_channels; i++)
        if (is_model(&l->channels[i]) && l->channels[i].domain == domain && n-- == 0) return i;
    return IPW_BOOK_NO_CHANNEL;
}

static void add_gauge(struct ipw_book *b, const struct ipw_ledger *l)
{
    for (size_t k = 0; k < l->n_channels; k++) {
        if (!is_beside(&l->channels[k], &l->channels[b->channel])) continue;
        ipw_series_init(&b->gauge, &l->channels[k]);
        b->gauge_channel = k;
        return;
    }
}

struct ipw_book *ipw_ledger_add_book(struct ipw_ledger *l, size_t channel)
{
    struct ipw_channel own = l->channels[channel];
    struct ipw_book *b = ipw_malloc(sizeof *b);

    if (is_model(&own)) own = as_counter(own);
    ipw_book_init(b, &own);
    b->channel = channel;
    b->index = l->n_books;
    b->is_model = is_model(&l->channels[channel]);
    if (!b->is_model) add_gauge(b, l);
    for (size_t n = 1; b->is_model && n < 3; n++) {
        size_t c = find_model(l, b->domain, n);

        *(n == 1 ? &b->gauge_channel : &b->most_channel) = c;
        if (c == IPW_BOOK_NO_CHANNEL) continue;
        own = as_counter(l->channels[c]);
        ipw_series_init(n == 1 ? &b->gauge : &b->most, &own);
    }
    IPW_GROW(l->books, l->cap_books, l->n_books + 1);
    l->books[l->n_books++] = b;
    return b;
}

void ipw_ledger_drop_books(struct ipw_ledger *l)
{
    for (size_t i = 0; i < l->n_books; i++) {
        ipw_book_release(l->books[i]);
        free(l->books[i]);
    }
    l->n_books = 0;
}

struct ipw_ledger *ipw_ledger_new(const struct ipw_channel *channels, size_t n_channels)
{
    struct ipw_ledger *l = ipw_calloc(1, sizeof *l);
    size_t n = 0;

    l->n_channels = n_channels;
    l->newest_row_ns = INT64_MIN;
    l->clock_channel = SIZE_MAX;
    l->channels = ipw_calloc(n_channels + 1, sizeof *l->channels);
    l->devices = ipw_calloc(n_channels + 1, sizeof *l->devices);
    for (size_t i = 0; i < n_channels; i++) {
        l->channels[i] = channels[i];
        if (channels[i].kind == IPW_CHANNEL_METRIC && !strcmp(channels[i].unit, IPW_UNIT_CLOCK))
            l->clock_channel = i;
    }
    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) {
        l->domains[d] = (struct ledger_domain){.first = n, .reason = "no_sensor"};
        for (size_t i = 0; i < n_channels; i++) {
            if (!channels[i].in_sum || channels[i].domain != (enum ipw_domain)d) continue;
            l->devices[n++] = i;
            ipw_ledger_add_book(l, i);
        }
        l->domains[d].n = n - l->domains[d].first;
    }
    for (int d = 0; d < IPW_DOMAIN_COUNT; d++)
        if (find_model(l, (enum ipw_domain)d, 0) != IPW_BOOK_NO_CHANNEL)
            ipw_ledger_add_book(l, find_model(l, (enum ipw_domain)d, 0));
    return l;
}

static void free_query(const struct ipw_ledger *l, struct ledger_query *q)
{
    for (size_t i = 0; i < l->n_books; i++) ipw_book_account_release(&q->accounts[i]);
    free(q->accounts);
    free(q);
}

void ipw_ledger_free(struct ipw_ledger *l)
{
    if (!l) return;
    for (size_t i = 0; i < l->n_queries; i++) free_query(l, l->queries[i]);
    ipw_ledger_drop_books(l);
    ipw_ledger_scopes_free(l->scopes);
    free(l->books);
    free(l->queries);
    free(l->devices);
    free(l->channels);
    free(l);
}

size_t ipw_ledger_devices(const struct ipw_ledger *l, enum ipw_domain domain)
{
    return l->domains[domain].n;
}

const char *ipw_ledger_device_name(const struct ipw_ledger *l, enum ipw_domain domain, size_t i)
{
    return l->channels[l->devices[l->domains[domain].first + i]].name;
}

void ipw_ledger_set_reason(struct ipw_ledger *l, enum ipw_domain domain, const char *reason)
{
    l->domains[domain].reason = reason;
}

void ipw_ledger_set_share(struct ipw_ledger *l, enum ipw_share share)
{
    for (size_t i = 0; i < l->n_books; i++) l->books[i]->share = share;
}

void ipw_ledger_set_baseline(struct ipw_ledger *l, enum ipw_domain domain, double watts)
{
    size_t n = l->domains[domain].n;

    for (size_t i = 0; i < n; i++) ipw_ledger_set_device_baseline(l, domain, i, watts / (double)n);
}

void ipw_ledger_set_device_baseline(struct ipw_ledger *l, enum ipw_domain domain, size_t device,
                                    double watts)
{
    size_t channel = l->devices[l->domains[domain].first + device];

    for (size_t i = 0; i < l->n_books; i++)
        if (l->books[i]->channel == channel) l->books[i]->baseline_w = watts;
}

/* ---- readings ---- */

void ipw_ledger_row(struct ipw_ledger *l, size_t first, size_t n, int64_t t_ns,
                    const int64_t *values)
{
    bool timed = l->clock_channel >= first && l->clock_channel < first + n;
    int64_t clock_ns = timed ? values[l->clock_channel - first] : -1;

    if (t_ns > l->newest_row_ns) l->newest_row_ns = t_ns;
    /* Rows of other devices, too: they show that time passes. */
    for (size_t i = 0; i < l->n_books; i++)
        ipw_book_row(l->books[i], first, n, t_ns, values, clock_ns);
}

static bool reads_now(const struct ipw_ledger *l, const struct ipw_book *b)
{
    return l->newest_row_ns >= b->time.from_ns && l->newest_row_ns <= b->time.to_ns;
}

void ipw_ledger_break(struct ipw_ledger *l, const char *reason)
{
    for (size_t i = 0; i < l->n_books; i++) {
        struct ipw_book *b = l->books[i];

        if (!reads_now(l, b)) continue;
        ipw_series_cut(&b->series, reason);
        if (b->gauge_channel != IPW_BOOK_NO_CHANNEL) ipw_series_cut(&b->gauge, reason);
        if (b->most_channel != IPW_BOOK_NO_CHANNEL) ipw_series_cut(&b->most, reason);
    }
}

void ipw_ledger_lose(struct ipw_ledger *l, size_t channel, const char *reason)
{
    for (size_t i = 0; i < l->n_books; i++) {
        struct ipw_book *b = l->books[i];

        if (!reads_now(l, b)) continue;
        if (b->channel == channel) ipw_series_lose(&b->series, reason);
        if (b->gauge_channel == channel) ipw_series_lose(&b->gauge, reason);
    }
}

void ipw_ledger_doubt(struct ipw_ledger *l, size_t channel, const char *reason)
{
    for (size_t i = 0; i < l->n_books; i++) {
        if (l->books[i]->channel == channel) l->books[i]->series.doubt = reason;
        if (l->books[i]->gauge_channel == channel) l->books[i]->gauge.doubt = reason;
    }
}

void ipw_ledger_close(struct ipw_ledger *l, int64_t t_ns)
{
    for (size_t i = 0; i < l->n_books; i++) ipw_book_close(l->books[i], t_ns);
}

/* ---- queries ---- */

struct ledger_query *ipw_ledger_query(const struct ipw_ledger *l, int64_t query)
{
    int64_t n = (int64_t)l->n_queries, lo = n - (l->next_query - query), hi = n - 1;

    if (query < 0 || query >= l->next_query || !n) return NULL;
    if (lo < 0) lo = 0;
    /* The usual case: none after it was dropped. */
    if (l->queries[lo]->ordinal == query) return l->queries[lo];
    while (lo < hi) {
        int64_t mid = lo + (hi - lo + 1) / 2;

        if (l->queries[mid]->ordinal <= query) {
            lo = mid;
        } else {
            hi = mid - 1;
        }
    }
    return l->queries[lo]->ordinal == query ? l->queries[lo] : NULL;
}

int64_t ipw_ledger_query_begin(struct ipw_ledger *l, int64_t t_ns)
{
    return ipw_ledger_query_begin_in(l, SIZE_MAX, t_ns);
}

int64_t ipw_ledger_query_begin_in(struct ipw_ledger *l, size_t scope, int64_t t_ns)
{
    struct ledger_query *q = ipw_calloc(1, sizeof *q);

    *q = (struct ledger_query){l->next_query++, t_ns,
                               .accounts = ipw_calloc(l->n_books + 1, sizeof *q->accounts)};
    IPW_GROW(l->queries, l->cap_queries, l->n_queries + 1);
    l->queries[l->n_queries++] = q;
    for (size_t i = 0; i < l->n_books; i++)
        if (!l->scopes || ipw_ledger_in_scope(l->scopes, scope, l->books[i]))
            ipw_book_begin(l->books[i], &q->accounts[i], t_ns);
    return q->ordinal;
}

void ipw_ledger_query_end(struct ipw_ledger *l, int64_t query, int64_t t_ns)
{
    struct ledger_query *q = ipw_ledger_query(l, query);

    if (!q) IPW_BUG("a query left the ledger that had not entered it");
    for (size_t i = 0; i < l->n_books; i++) {
        if (!q->accounts[i].seen) continue;
        if (q->accounts[i].t1_ns != INT64_MAX) IPW_BUG("a query left the ledger twice");
        ipw_book_end(l->books[i], &q->accounts[i], t_ns);
    }
}

void ipw_ledger_phase(struct ipw_ledger *l, int64_t query, enum ipw_phase phase, int64_t t_ns)
{
    struct ledger_query *q = ipw_ledger_query(l, query);

    for (size_t i = 0; q && phase < IPW_PHASE_COUNT && i < l->n_books; i++)
        if (q->accounts[i].seen) ipw_book_phase(l->books[i], &q->accounts[i], phase, t_ns);
}

void ipw_ledger_instant(struct ipw_ledger *l, int64_t query, int64_t t_ns)
{
    struct ledger_query *q = ipw_ledger_query(l, query);

    for (size_t i = 0; q && i < l->n_books; i++)
        if (q->accounts[i].seen) ipw_book_stay(l->books[i], &q->accounts[i], t_ns);
}

/* Is the query in the queue of a book, or in flight in it? */
static bool is_in_books(const struct ipw_ledger *l, const struct ledger_query *q)
{
    for (size_t i = 0; i < l->n_books; i++)
        if (q->accounts[i].seen && !q->accounts[i].left) return true;
    return false;
}

void ipw_ledger_forget(struct ipw_ledger *l, int64_t query)
{
    struct ledger_query *q = ipw_ledger_query(l, query);
    int64_t before_ns = INT64_MAX;
    size_t kept = 0;

    if (!q) return;
    q->forgotten = true;
    for (size_t i = 0; i < l->n_queries; i++) {
        struct ledger_query *x = l->queries[i];

        if (!x->forgotten && x->t0_ns < before_ns) before_ns = x->t0_ns;
        if (x->forgotten && !is_in_books(l, x))
            free_query(l, x);
        else
            l->queries[kept++] = x;
    }
    l->n_queries = kept;
    for (size_t i = 0; i < l->n_books; i++) ipw_book_trim(l->books[i], before_ns);
}

bool ipw_ledger_query_sees(const struct ipw_ledger *l, int64_t query, enum ipw_domain domain,
                           size_t device)
{
    struct ipw_ledger_question q = {.query = query, .domain = domain, .device = device};
    struct ledger_asked a = ipw_ledger_asks(l, &q);

    return ipw_ledger_next(&a);
}

/* ---- how far the devices are known ---- */

static const struct ipw_book *book_of(const struct ipw_ledger *l, size_t channel)
{
    for (size_t i = 0; i < l->n_books; i++)
        if (l->books[i]->channel == channel) return l->books[i];
    return NULL;
}

int64_t ipw_ledger_silence_ns(const struct ipw_ledger *l, size_t channel)
{
    const struct ipw_book *b = book_of(l, channel);

    return b && !b->is_model && b->handed_over_ns == INT64_MIN ? ipw_series_silence_ns(&b->series)
                                                               : 0;
}

int64_t ipw_ledger_handed_over_ns(const struct ipw_ledger *l, size_t channel)
{
    const struct ipw_book *b = book_of(l, channel);

    return b ? b->handed_over_ns : INT64_MIN;
}

/* Of a query, too, whose end was told late: it waits until it is covered up to where it left. */
int64_t ipw_ledger_query_covered_ns(const struct ipw_ledger *l, int64_t query)
{
    const struct ledger_query *q = ipw_ledger_query(l, query);
    int64_t least = INT64_MAX;
    bool silent_model = false, any = false;

    for (size_t i = 0; i < l->n_books; i++) {
        const struct ipw_book *b = l->books[i];
        const struct ipw_book_account *a = q ? &q->accounts[i] : NULL;
        int64_t t;

        if (a && !a->seen) continue;
        /* A model needs two readings before it says anything; afterwards it continues at its last
         * power. */
        silent_model |= b->most_channel != IPW_BOOK_NO_CHANNEL && b->most.n < 2;
        if (b->is_model) continue;
        any = true;
        t = ipw_book_covered_ns(b);
        if (a && a->told_ns <= t && t < a->t1_ns) t = a->told_ns - 1;
        if (t < least) least = t;
    }
    return silent_model && !any ? INT64_MIN : least;
}

int64_t ipw_ledger_covered_ns(const struct ipw_ledger *l)
{
    return ipw_ledger_query_covered_ns(l, IPW_LEDGER_ANY);
}

/* Devices that no scope had at the end were read up to the end of their own time. */
int64_t ipw_ledger_read_ns(const struct ipw_ledger *l)
{
    int64_t read = INT64_MAX, given_up = INT64_MAX, newest = INT64_MIN;

    for (size_t i = 0; i < l->n_books; i++) {
        const struct ipw_book *b = l->books[i];
        int64_t t = b->series.n ? b->series.last.t_ns : INT64_MIN;

        if (b->is_model) continue;
        if (t > newest) newest = t;
        if (b->time.to_ns < l->newest_row_ns || t >= b->time.end_ns) continue;
        if (ipw_book_is_given_up(b)) {
            if (t < given_up) given_up = t;
        } else if (t < read) {
            read = t;
        }
    }
    if (read < INT64_MAX) return read;
    return given_up < INT64_MAX || newest == INT64_MIN ? given_up : newest;
}
