/* Books of devices that only some of the queries could use: see ipw_ledger_set_scopes(). */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "ledger/ledger_priv.h"

/* Readings around a book's time: of the session before it opens its sensors, and while the ledger
 * waits for a last reading (LOST_NS in book.c). */
#define BEFORE_NS (10 * IPW_NS_PER_S)
#define AFTER_NS  (60 * IPW_NS_PER_S)
/* A pause of the readings up to this length belongs to the time of a book, and is idle. */
#define PAUSE_NS (2 * IPW_NS_PER_S)

struct ledger_scopes {
    size_t n;
    bool *has; /* has[book * n + scope] */
};

/* The time that begins with the first scope after `after_ns` that has the channel, and goes on as
 * long as a scope has it; marks these scopes. */
static bool next_time(bool *has, int64_t *start_ns, int64_t *end_ns,
                      const struct ipw_ledger_scope *scopes, size_t n, size_t channel,
                      int64_t after_ns)
{
    bool grows = true;

    *start_ns = INT64_MAX;
    for (size_t i = 0; i < n; i++)
        if (scopes[i].channels[channel] && scopes[i].start_ns > after_ns &&
            scopes[i].start_ns < *start_ns)
            *start_ns = scopes[i].start_ns;
    *end_ns = *start_ns;
    if (*start_ns == INT64_MAX) return false;
    while (grows) {
        grows = false;
        for (size_t i = 0; i < n; i++) {
            if (!scopes[i].channels[channel] || has[i] || scopes[i].start_ns < *start_ns ||
                scopes[i].start_ns > *end_ns + PAUSE_NS)
                continue;
            has[i] = grows = true;
            if (scopes[i].end_ns > *end_ns) *end_ns = scopes[i].end_ns;
        }
    }
    return true;
}

/* The readings in the pause between two books of one device: to the nearer one. */
static void part(struct ipw_book *before, struct ipw_book *after)
{
    int64_t middle_ns = before->time.end_ns + (after->time.start_ns - before->time.end_ns) / 2;

    if (before->time.to_ns > middle_ns) before->time.to_ns = middle_ns;
    if (after->time.from_ns < middle_ns) after->time.from_ns = middle_ns;
}

/* What a device's stamps and those of its queries may differ by. */
static int64_t clock_error(const bool *has, const struct ipw_ledger_scope *scopes, size_t n)
{
    const char *clock = NULL;
    int64_t most = 0;
    bool several = false;

    for (size_t i = 0; i < n; i++) {
        const char *own = scopes[i].clock ? scopes[i].clock : "";

        if (!has[i]) continue;
        several |= clock && strcmp(clock, own) != 0;
        clock = own;
        if (scopes[i].clock_error_ns > most) most = scopes[i].clock_error_ns;
    }
    return several ? most : 0;
}

/* The books of the channel of an earlier one. */
static void add_books(struct ipw_ledger *l, const struct ipw_book *earlier,
                      const struct ipw_ledger_scope *scopes)
{
    struct ledger_scopes *s = l->scopes;
    struct ipw_book *before = NULL;
    int64_t start_ns, end_ns = INT64_MIN;

    for (;;) {
        struct ipw_book *b;
        bool *has;

        s->has = ipw_realloc(s->has, (l->n_books + 1) * s->n * sizeof *s->has);
        has = s->has + l->n_books * s->n;
        memset(has, 0, s->n * sizeof *has);
        if (!next_time(has, &start_ns, &end_ns, scopes, s->n, earlier->channel, end_ns)) return;
        b = ipw_ledger_add_book(l, earlier->channel);
        b->share = earlier->share;
        b->baseline_w = earlier->baseline_w;
        b->time.start_ns = start_ns;
        b->time.end_ns = end_ns;
        b->time.from_ns = start_ns - BEFORE_NS;
        b->time.to_ns = end_ns + AFTER_NS;
        b->clock_error_ns = clock_error(has, scopes, s->n);
        if (before) part(before, b);
        before = b;
    }
}

void ipw_ledger_set_scopes(struct ipw_ledger *l, const struct ipw_ledger_scope *scopes, size_t n)
{
    struct ipw_ledger earlier = *l;

    l->books = NULL;
    l->n_books = l->cap_books = 0;
    l->scopes = ipw_calloc(1, sizeof *l->scopes);
    l->scopes->n = n;
    for (size_t i = 0; i < earlier.n_books; i++) add_books(l, earlier.books[i], scopes);
    ipw_ledger_drop_books(&earlier);
    free(earlier.books);
}

bool ipw_ledger_in_scope(const struct ledger_scopes *s, size_t scope, const struct ipw_book *b)
{
    return scope >= s->n || s->has[b->index * s->n + scope];
}

void ipw_ledger_scopes_free(struct ledger_scopes *s)
{
    if (!s) return;
    free(s->has);
    free(s);
}
