/* ledger/book.h: the book of one device: its readings, and what each query used of them.
 * Internal to ledger.c, ledger_figures.c and their parts.
 *
 * A query that can use the device is told to its book: that it began, each instant at which it
 * changes its phase or at which a window of it may begin or end, and that it ended.  Instants stand
 * in one queue in order of time.  When the device's energy is final past a query's end, the steps
 * of its counter are closed (ledger/steps.h) and the queue is taken up to there: the energy of each
 * cell, the time from one instant to the next, is shared (ledger/share.h), and each query that told
 * an instant keeps a record of it.  A figure of a query is the difference of two of its records.
 *
 * In a cell, queries in the same phase get the same part, so the book adds up what a query in each
 * phase would have got so far; a query has the difference of that sum since it entered its phase.
 * Sums are whole numbers of 2^-32 microjoules, and the remainder of a division goes into the next
 * cell, so that all parts sum to the energy of all cells.  A query gets whole microjoules when it
 * ends; the rounding goes to the next query that ends.
 *
 * An instant is told when it happens.  One that comes late, at a time that was shared already,
 * counts from the newest shared instant on.
 *
 * A model of a device without a sensor has a book, too: it says how many queries were in flight. */
#ifndef IPW_LEDGER_BOOK_H
#define IPW_LEDGER_BOOK_H

#include "ledger/series.h"
#include "ledger/share.h"
#include "ledger/steps.h"

/* The device's energy up to an instant. */
struct ipw_book_sums {
    int64_t t_ns;
    int64_t uj;         /* all of it */
    int64_t idle;       /* while no query was in flight */
    int64_t alone;      /* while one was */
    int64_t crowded_ns; /* time with more than one query in flight */
    double parted_ns;   /* integral of 1 / n (n = 0: of 1) */
    /* By equal slices of a query in flight since the beginning, in 2^-32 microjoules: its energy,
     * and its idle power, which may be more than the energy of the device. */
    __int128 slice, base;
};

/* A query at an instant that was told of it. */
struct ipw_book_record {
    int64_t t_ns, uj;     /* its energy up to there */
    double before, after; /* its share of the device's energy there */
    /* The cells that end and begin here: since when it had `before`, and until when `after`. */
    int64_t before_ns, after_ns;
    /* How far the uncertain energy at the instants before, with shares as given, may move `uj` up
     * or down, in microjoules; and likewise with the instant itself. */
    double up, down, with_up, with_down;
    /* At an instant that was not told: how far its energy may be below and above `uj`, because its
     * shares there were not kept. */
    int64_t less, more;
    int64_t alone, crowded_ns; /* of the sums */
    double parted_ns;
    __int128 base;
};

/* A query in a book. */
struct ipw_book_account {
    bool seen;                  /* can the query use the device? */
    bool in, left;              /* it was taken from the queue: its beginning, its end */
    int64_t t0_ns, t1_ns;       /* t1_ns INT64_MAX: in flight */
    int64_t told_ns;            /* its end as told; t1_ns is later if that came too late */
    int64_t since_ns;           /* its newest phase as told */
    int64_t newest_ns;          /* the newest instant that was told */
    enum ipw_phase told, phase; /* as told, and where the queue was taken up to */
    unsigned __int128 offset;   /* added to the sum of its phase: the energy due to it */
    double up, down;            /* likewise, of its records */
    struct ipw_book_record *records;
    size_t n, cap;
};

/* The energy of the gaps in which no query was in flight, from the first query to the newest. */
struct ipw_book_gaps {
    bool unknown;    /* of one of them */
    int64_t from_ns; /* where the present gap began; INT64_MIN: a query is in flight */
    double j, lo_j, hi_j, ends_j2; /* ends_j2: the square of what their ends add to u */
};

struct ipw_book_instant {
    int64_t t_ns;
    struct ipw_book_account *account;
    enum ipw_book_change { IPW_BOOK_BEGIN, IPW_BOOK_STAY, IPW_BOOK_PHASE, IPW_BOOK_END } change;
    enum ipw_phase phase; /* of IPW_BOOK_PHASE */
};

#define IPW_BOOK_NO_CHANNEL SIZE_MAX

struct ipw_book {
    size_t index, channel; /* of the ledger's books, and of its channels */
    enum ipw_domain domain;
    bool is_model;
    struct ipw_series series;
    /* The device's gauge beside its counter; of a model, the least and the most. */
    struct ipw_series gauge, most;
    size_t gauge_channel, most_channel; /* IPW_BOOK_NO_CHANNEL: none */
    enum ipw_channel_kind kind;         /* as the caller gave it */
    struct ipw_book_time {
        int64_t from_ns, to_ns;   /* of the readings that the book takes */
        int64_t start_ns, end_ns; /* that counts into totals */
    } time;
    int64_t clock_error_ns;              /* of the stamps of queries, against those of readings */
    int64_t first_row_ns, newest_row_ns; /* INT64_MIN: no row yet */
    int64_t handed_over_ns; /* since when the gauge is read instead; INT64_MIN: it is not */
    int64_t lost_ns;        /* end of its silence: it is not waited for; INT64_MIN: not lost */
    enum ipw_share share;
    double baseline_w; /* NAN: not given */
    struct ipw_steps steps;

    struct ipw_book_queue {
        struct ipw_book_instant *all; /* from `next` on: not taken yet */
        size_t next, n, cap;
        size_t n_ends; /* of those not taken */
    } queue;
    int64_t first_ns, last_query_ns; /* the first begin; when a query last began or ended */

    struct ipw_book_sums now; /* at the newest instant that was taken; its t_ns INT64_MIN: none */
    int64_t below, above;     /* the bounds of now.uj */
    int64_t cell_ns;          /* where the newest cell begins, which ends at `now` */
    struct ipw_book_due {     /* of a query in this phase since the beginning */
        unsigned __int128 due;
        double up, down; /* of all instants before the newest */
        double part;     /* in the newest cell */
    } due[IPW_PHASE_COUNT];
    int32_t count[IPW_PHASE_COUNT]; /* queries in flight, by phase */
    int64_t n_active;
    unsigned __int128 rest;          /* of the cells, not shared yet: 2^-32 microjoules */
    int64_t owed;                    /* 2^-32 microjoules by which those who left were given less */
    struct ipw_book_account **fresh; /* queries whose newest record waits for the next cell */
    size_t n_fresh, cap_fresh;
    struct ipw_book_gaps gaps;
};

static inline bool ipw_book_has_gauge(const struct ipw_book *b)
{
    return !b->is_model && b->gauge_channel != IPW_BOOK_NO_CHANNEL;
}

void ipw_book_init(struct ipw_book *b, const struct ipw_channel *channel);
void ipw_book_release(struct ipw_book *b);
void ipw_book_account_release(struct ipw_book_account *a);

/* One row of readings of channels [first, first + n); clock_ns: how far its time may be off, or
 * -1. */
void ipw_book_row(struct ipw_book *b, size_t first, size_t n, int64_t t_ns, const int64_t *values,
                  int64_t clock_ns);
/* A query; *a is zero before its beginning. */
void ipw_book_begin(struct ipw_book *b, struct ipw_book_account *a, int64_t t_ns);
void ipw_book_end(struct ipw_book *b, struct ipw_book_account *a, int64_t t_ns);
void ipw_book_phase(struct ipw_book *b, struct ipw_book_account *a, enum ipw_phase phase,
                    int64_t t_ns);
void ipw_book_stay(struct ipw_book *b, struct ipw_book_account *a, int64_t t_ns);
/* No later row or query concerns the time before t: everything up to t is taken. */
void ipw_book_close(struct ipw_book *b, int64_t t_ns);
/* Drops readings and phases that only matter before `before_ns`. */
void ipw_book_trim(struct ipw_book *b, int64_t before_ns);

/* Up to where the device's energy is final, or later for a device that is not waited for. */
int64_t ipw_book_covered_ns(const struct ipw_book *b);
/* Have its reads been failing for so long that it is not waited for? */
bool ipw_book_is_given_up(const struct ipw_book *b);
/* The energy that the device may have used within the error of the clock around t. */
double ipw_book_clock_uj(const struct ipw_book *b, int64_t t_ns);
/* The sums at t, which is not before `now`.  Where the queue is not taken yet the slices are
 * equal.  *in_flight: the queries from there on. */
struct ipw_book_sums ipw_book_sums_at(const struct ipw_book *b, int64_t t_ns, int64_t *in_flight);
/* The query at an instant, also at one that was not told: exact in the cells next to one that was;
 * else its energy grows with that of the device, within bounds, and its share may be all.
 * Past all that was taken its slices are equal. */
struct ipw_book_record ipw_book_record_at(const struct ipw_book *b,
                                          const struct ipw_book_account *a, int64_t t_ns);

/* All queries together: what the device used from the first start to the last end, less the gaps
 * in which no query was in flight. */
struct ipw_figure ipw_book_together(const struct ipw_book *b);
/* Bounds of the idle energy of a window that has all queries. */
void ipw_book_bound_idle(const struct ipw_book *b, int64_t t0_ns, int64_t t1_ns,
                         struct ipw_figure *idle);
#define IPW_BOOK_WINDOW_SLACK_NS INT64_C(2000000)
/* A run starts and ends a little outside its readings. */
#define IPW_BOOK_TOTAL_SLACK_NS INT64_C(50000000)

#endif
