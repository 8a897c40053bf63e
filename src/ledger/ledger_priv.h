/* ledger/ledger_priv.h: the inside of the ledger: the books of its devices, and its queries.
 * Internal to ledger.c (what is told), ledger_figures.c (answers) and their parts.
 *
 * A device is a channel in a domain's sum.  It has one book (ledger/book.h) or, where shards used
 * it at several times, one for each of these times.  A query has an account in each book that it
 * was told to.  A domain's figure is the sum of its devices'. */
#ifndef IPW_LEDGER_LEDGER_PRIV_H
#define IPW_LEDGER_LEDGER_PRIV_H

#include "ledger/book.h"
#include "ledger/ledger.h"

struct ledger_query {
    int64_t ordinal, t0_ns;
    bool forgotten;                    /* its figures were taken */
    struct ipw_book_account *accounts; /* one for each book */
};

struct ledger_domain {
    size_t first, n; /* range in ipw_ledger.devices */
    const char *reason;
};

struct ipw_ledger {
    struct ipw_channel *channels;
    size_t n_channels;
    size_t clock_channel; /* it says how far the times of its row may be off; SIZE_MAX: none */
    size_t *devices;      /* channels in a sum, in order of domain */
    struct ledger_domain domains[IPW_DOMAIN_COUNT];
    struct ipw_book **books; /* in order of device; those of models last */
    size_t n_books, cap_books;
    struct ledger_scopes *scopes;  /* NULL: every query is told to all books */
    struct ledger_query **queries; /* in order of their ordinals, without the dropped ones */
    size_t n_queries, cap_queries;
    int64_t next_query;
    int64_t newest_row_ns; /* INT64_MIN: no row yet */
};

/* ledger.c: a book of a channel, without readings; a model's channel has the two that follow it. */
struct ipw_book *ipw_ledger_add_book(struct ipw_ledger *l, size_t channel);
void ipw_ledger_drop_books(struct ipw_ledger *l);
/* The query of this ordinal; NULL: it was dropped. */
struct ledger_query *ipw_ledger_query(const struct ipw_ledger *l, int64_t query);

/* ledger_scopes.c: is a query of this scope told to the book? */
bool ipw_ledger_in_scope(const struct ledger_scopes *s, size_t scope, const struct ipw_book *b);
void ipw_ledger_scopes_free(struct ledger_scopes *s);

/* ledger_estimate.c: adds an estimate to an unknown figure. */
struct ipw_figure ipw_ledger_estimate(const struct ipw_book *b, const struct ipw_book_account *a,
                                      int64_t t0_ns, int64_t t1_ns, struct ipw_figure unknown);
/* Adds a model's estimate to a domain's figure that is unknown and has no estimate. */
struct ipw_figure ipw_ledger_by_model(const struct ipw_book *b, const struct ipw_book_account *a,
                                      int64_t t0_ns, int64_t t1_ns, struct ipw_figure unknown);

/* The books that a question is about, one after the other. */
struct ledger_asked {
    const struct ipw_ledger *l;
    const struct ipw_ledger_question *q;
    const struct ledger_query *query; /* NULL: none is named, or the ledger does not have it */
    bool models;                      /* only the books of models, instead of the others */
    size_t next;
    const struct ipw_book *book;
    const struct ipw_book_account *account; /* of the query in it; NULL: as `query` */
    int64_t t0_ns, t1_ns; /* the window; of totals the part of it in which the device was read */
};
struct ledger_asked ipw_ledger_asks(const struct ipw_ledger *l,
                                    const struct ipw_ledger_question *q);
bool ipw_ledger_next(struct ledger_asked *a);

#endif
