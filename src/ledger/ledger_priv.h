/* ledger/ledger_priv.h: the inside of the ledger.  Internal to ledger.c (input), ledger_phase.c
 * (the line between samples), ledger_share.c (shares of a cell), ledger_due.c (the energy of a
 * query), ledger_stamp.c (its stamps and bounds), ledger_figures.c (answers) and their parts.
 *
 * Each device has its own sums; a device is a channel in a sum.  A domain's figure is the sum of
 * its devices' figures.  Time is cut at every edge: a query starts or ends or, under the rules that
 * need it, a phase changes.  Between two edges lies a cell with n queries in flight.  For each
 * device a mark holds the sums up to an edge.  Marks are final for an edge once the device's series
 * is settled there and its line is bent up to there.
 *
 * In a cell, queries of the same kind have the same energy due.  There is one kind for all queries
 * (equal), or one for each phase (phase).  So the marks hold a running sum for each kind, not for
 * each query.
 * A query has pieces: between two of its own changes its energy is the difference of one running
 * sum.  Memory and work grow with the number of edges, not with that times the number of queries in
 * flight.
 *
 * Sums are whole numbers of 2^-32 microjoules.  The remainder of a division goes into the next
 * cell, so all pieces sum to the energy of all cells.  A query gets whole microjoules when it ends;
 * the rounding goes to the next query that ends.
 *
 * A query also has stamps: at each instant that was told of it, its energy so far and how far the
 * edges before may have moved it.  Windows between such instants are answered from stamps alone, so
 * marks and sums are needed only at the newest edges (ipw_ledger_keep_told()).
 *
 * `share` is the energy, in 2^-32 microjoules, that a query in flight since the beginning would
 * have by equal slices.  A window that names no query gets the difference of `share` between its
 * ends.
 *
 * Where queries could use different devices (ipw_ledger_set_scopes()), all this is kept apart for
 * each group of devices that the same scopes have: a group is a ledger of its own, and the ledger
 * hands on what it is told, and adds up the answers (ledger_scopes.c). */
#ifndef IPW_LEDGER_LEDGER_PRIV_H
#define IPW_LEDGER_LEDGER_PRIV_H

#include "ledger/ledger.h"

struct ledger_mark {
    int64_t t_ns;
    int64_t uj;           /* cumulative energy of the device */
    int64_t idle;         /* energy of cells with no query in flight */
    int64_t alone;        /* energy of cells with one query in flight */
    int64_t below, above; /* the true energy is within [uj - below, uj + above] */
    __int128 share;       /* in 2^-32 microjoules */
    __int128 base;        /* likewise for the idle baseline; it may exceed the device's energy */
};

/* The energy due to a query of one kind since the first edge.  Sums wrap around; only differences
 * count. */
struct ledger_sum {
    unsigned __int128 due; /* in 2^-32 microjoules */
    /* How far the uncertain energy of each edge may move `due` up or down, in microjoules.  Final
     * one edge later, when the share after the edge is known. */
    double up, down;
};

struct ledger_edge {
    int64_t t_ns;
    int64_t in_flight;  /* number of queries from here on */
    int64_t crowded_ns; /* time before the edge with more than one query in flight */
    double parted_ns;   /* integral of 1 / n over the time before it (n = 0: of 1) */
};

/* The time of a query on a device from one of its changes to the next. */
struct ledger_piece {
    int64_t from;             /* number of an edge: see ipw_ledger.edge_base */
    enum ipw_phase kind;      /* its phase; 0 under IPW_SHARE_EQUAL */
    unsigned __int128 offset; /* added to its running sum: the energy due since the query started */
    double up, down;          /* added to those of its running sum: of all edges of the query */
};

/* A query on a device at an instant that was told of it. */
struct ledger_stamp {
    int64_t t_ns, uj;        /* its energy up to there */
    double up, down;         /* what its edges before the instant may move that by */
    double own_up, own_down; /* likewise an edge at the instant itself */
    double before, after;    /* its share of the device's energy there, before and after */
};

struct ledger_stamps {
    struct ledger_stamp *all; /* in order of time */
    size_t n, cap;
};

/* A query's energy on one device. */
struct ledger_slice {
    struct ledger_piece *pieces;
    size_t n, cap;
    bool left;
    int64_t to; /* after its end: the number of the end's edge, and the energy given */
    int64_t uj;
    struct ledger_stamps stamps;
    struct ledger_alone { /* the marks at its start and, after it left, at its end */
        int64_t alone;
        __int128 base;
    } first, last;
};

/* The integrals of ledger_edge up to an instant that was told of a query. */
struct ledger_instant {
    int64_t t_ns, crowded_ns;
    double parted_ns;
};

/* A query may change its kind at t, or a window of it may start or end there. */
struct ledger_look {
    int64_t t_ns, query;
};

struct ledger_ordinals {
    int64_t *all;
    size_t n, cap;
};

struct ledger_phase {
    int64_t t0_ns, t1_ns; /* t1_ns INT64_MAX: the phase is open */
    enum ipw_phase phase;
};

struct ledger_query {
    int64_t ordinal;
    int64_t t0_ns, t1_ns; /* t1_ns INT64_MAX: in flight */
    int64_t told_ns;      /* its end as told; t1_ns is later if that came too late for the sums */
    struct ledger_phase *phases;
    size_t n_phases, cap_phases;
    bool forgotten;                  /* its figures were taken */
    struct ledger_slice *slices;     /* one for each device */
    struct ledger_instant *instants; /* in order of time */
    size_t n_instants, cap_instants;
};

/* The energy of the gaps in which no query was in flight, from the first query to the newest. */
struct ledger_gaps {
    bool unknown;    /* of one of them */
    int64_t from_ns; /* where the present gap began; INT64_MIN: a query is in flight */
    double j, lo_j, hi_j, ends_j2; /* ends_j2: the square of what their ends add to u */
};

/* One device: the line of its series, the fit of its power, and its sums. */
struct ledger_line {
    struct ipw_series *series;      /* borrowed from the ledger */
    const struct ipw_series *gauge; /* gauge of the same device, or NULL */
    size_t gauge_channel;
    size_t channel;
    struct ipw_phase_fit fit; /* the power of the phases */
    /* Energy shared among several queries so far; its part by equal slices because the fit did not
     * know the phases. */
    double crowded_j, equal_j;
    bool idle_by_fit;       /* without a given baseline the fit supplies the idle part */
    double baseline_w;      /* NAN: not given */
    int64_t done_ns;        /* the sample up to which the line is bent; INT64_MIN: none yet */
    int64_t handed_over_ns; /* since when `gauge` is read instead; INT64_MIN: it is not */
    int64_t lost_ns;        /* end of its silence: it is not waited for; INT64_MIN: not lost */
    struct ledger_gaps gaps;
    struct ledger_mark *marks; /* sums at the ledger's edges [first, settled) */
    size_t first, settled, cap;
    struct ledger_sum *sums; /* ipw_ledger_kinds() sums for each mark */
    size_t cap_sums;
    size_t kept_knots; /* corners of the series after the last time that some were dropped */
    size_t next_end;   /* index in ipw_ledger.ends: the line is bent up to the end before it */
    int64_t closed_ns; /* the line is bent up to here */
    size_t next_leave; /* index in ipw_ledger.ends: the first query that has not ended there */
    size_t next_look;  /* index in ipw_ledger.looks; and queries with a look before that index: */
    struct ledger_ordinals late;
    struct ledger_ordinals fresh;   /* of these, with a piece from the newest shared cell on */
    size_t next_stamp;              /* index in ipw_ledger.looks: no stamp yet */
    int64_t n_active;               /* queries in flight after the last mark; of them: */
    int32_t count[IPW_PHASE_COUNT]; /* of each kind */
    double parts[IPW_PHASE_COUNT];  /* of the newest shared cell, for each running sum */
    unsigned __int128 rest;         /* of the cells, not shared yet: 2^-32 microjoules */
    int64_t owed;                   /* 2^-32 microjoules by which those who left were given less */
};

struct ledger_domain {
    size_t first, n; /* range in ipw_ledger.lines: the channels in the sum */
    const char *reason;
};

struct ledger_scopes;

struct ledger_channel {
    enum ipw_channel_kind kind; /* as the caller gave it */
    bool summed;
    bool is_clock; /* it says how far the times of its row may be off */
};

struct ipw_ledger {
    struct ledger_scopes *scopes; /* NULL: every query has all devices */
    int64_t clock_error_ns;       /* of the stamps of queries, against those of readings */
    struct ipw_series **series;   /* one for each channel; NULL for an unused one */
    /* A model's energy of a domain without a sensor: middle, least, most. */
    struct ipw_series *model[IPW_DOMAIN_COUNT][3];
    struct ledger_channel *channels;
    size_t n_channels;
    struct ledger_line *lines; /* in order of domain */
    size_t n_lines;
    struct ledger_domain domains[IPW_DOMAIN_COUNT];
    int64_t first_row_ns, newest_row_ns; /* INT64_MIN: no row yet */
    bool has_gauges;
    struct ledger_edge *edges; /* without the trimmed ones: see ipw_ledger_trim() */
    size_t n_edges, cap_edges;
    int64_t edge_base;     /* the number of edges[0]: how many were trimmed */
    int64_t first_edge_ns; /* of all edges, including trimmed ones */
    int64_t last_query_ns; /* when a query last started or ended */
    int64_t trimmed_ns;    /* time of the edge before the first live one; INT64_MIN: none */

    struct ledger_query **queries; /* in order of their ordinals, without the dropped ones */
    size_t n_queries, cap_queries;
    int64_t next_query;
    bool keeps_told;          /* ipw_ledger_keep_told() */
    struct ledger_look *ends; /* queries that ended, in order */
    size_t n_ends, cap_ends;
    struct ledger_look *looks; /* in order of time */
    size_t n_looks, cap_looks;
    struct ipw_phase_line line;
    enum ipw_share share;
};

/* ledger_phase.c: closes steps and settles marks on every device, as far as possible. */
void ipw_ledger_settle(struct ipw_ledger *l);
/* The same up to t, regardless of what may still come. */
void ipw_ledger_settle_all(struct ipw_ledger *l, int64_t t_ns);
/* Up to where the device's energy is final. */
int64_t ipw_ledger_settled_ns(const struct ledger_line *line);

/* The line's mark at edge i, which it has. */
static inline struct ledger_mark *ipw_ledger_mark(const struct ledger_line *line, size_t i)
{
    return &line->marks[i - line->first];
}

/* ledger_share.c: fixes the marks and sums of all edges at or before `until`. */
void ipw_ledger_share_until(struct ipw_ledger *l, struct ledger_line *line, int64_t until_ns);
/* The number of kinds of queries under the rule. */
static inline size_t ipw_ledger_kinds(const struct ipw_ledger *l)
{
    return l->share == IPW_SHARE_PHASE ? IPW_PHASE_COUNT : 1;
}
/* The state of a device at an instant, computed from the nearest settled edge. */
struct ledger_mark ipw_ledger_mark_at(const struct ipw_ledger *l, const struct ledger_line *line,
                                      int64_t t_ns);

/* ledger_due.c: see struct ledger_look. */
void ipw_ledger_look(struct ipw_ledger *l, int64_t query, int64_t t_ns);
/* Brings the device's queries to the cell that begins at edge i. */
void ipw_ledger_bring_up(const struct ipw_ledger *l, struct ledger_line *line, size_t i);
/* Gives the queries that ended up to the last settled edge their energy. */
void ipw_ledger_let_go(const struct ipw_ledger *l, struct ledger_line *line);
/* The query's part of the device's energy up to an instant, in microjoules. */
int64_t ipw_ledger_due_at(const struct ipw_ledger *l, const struct ledger_query *q,
                          const struct ledger_line *line, int64_t t_ns);
/* A running sum at edge i. */
static inline struct ledger_sum *
ipw_ledger_sum_of(const struct ipw_ledger *l, const struct ledger_line *line, size_t i, size_t kind)
{
    return &line->sums[(i - line->first) * ipw_ledger_kinds(l) + kind];
}
/* The query's piece in the cell that begins at edge i; NULL: it has none, or the cell is not
 * settled. */
const struct ledger_piece *ipw_ledger_piece_in(const struct ipw_ledger *l,
                                               const struct ledger_line *line,
                                               const struct ledger_slice *s, size_t i);
/* The energy due to the query up to t, with its piece p; edge i is the last at or before t. */
unsigned __int128 ipw_ledger_due_of(const struct ipw_ledger *l, const struct ledger_line *line,
                                    const struct ledger_piece *p, size_t i, int64_t t_ns);

/* ledger_stamp.c */
/* The cell that edge i begins is shared: adds what the edge may move the running sums by.  For each
 * edge in turn, while the queries are still those of the cell. */
void ipw_ledger_widen(const struct ipw_ledger *l, struct ledger_line *line, size_t i);
/* The cell that edge i begins is shared and widened: stamps for the instants in it. */
void ipw_ledger_stamp(const struct ipw_ledger *l, struct ledger_line *line, size_t i);
/* How far the uncertain energy at the edges of [t0, t1] may move the query's energy up and down, in
 * microjoules, with its share of each cell as given.  `q` may be NULL: an equal share.  False: t0
 * lies before all edges. */
struct ledger_reach {
    double up, down;
};
bool ipw_ledger_reach(const struct ipw_ledger *l, const struct ledger_query *q,
                      const struct ledger_line *line, int64_t t0_ns, int64_t t1_ns,
                      const struct ipw_series_ends *ends, struct ledger_reach *out);
/* The instant was told after its cell was shared. */
void ipw_ledger_stamp_late(const struct ipw_ledger *l, const struct ledger_line *line,
                           int64_t query, int64_t t_ns);
/* The query left at edge i. */
void ipw_ledger_stamp_end(const struct ipw_ledger *l, const struct ledger_line *line,
                          struct ledger_query *q, size_t i);
/* The last stamp at or before t; NULL: none. */
const struct ledger_stamp *ipw_ledger_stamp_upto(const struct ledger_stamps *s, int64_t t_ns);
/* The energy up to an instant before all marks, after this stamp and before the next. */
int64_t ipw_ledger_after_stamp(const struct ipw_ledger *l, const struct ledger_line *line,
                               const struct ledger_slice *s, const struct ledger_stamp *stamp,
                               int64_t t_ns);
/* Does the line have the mark of the last edge at or before t? */
bool ipw_ledger_has_mark(const struct ipw_ledger *l, const struct ledger_line *line, int64_t t_ns);

/* ledger_together.c: the cell that edge i begins is settled. */
void ipw_ledger_note_gap(const struct ipw_ledger *l, struct ledger_line *line, size_t i);
/* Samples from here on are needed for the gap that may go on. */
int64_t ipw_ledger_gap_ns(const struct ipw_ledger *l, const struct ledger_line *line);
/* IPW_LEDGER_QUERIES. */
struct ipw_figure ipw_ledger_together(const struct ipw_ledger *l, const struct ledger_line *line);
/* Bounds of the idle energy of a window that has all queries. */
void ipw_ledger_bound_idle(const struct ipw_ledger *l, const struct ledger_line *line,
                           int64_t t0_ns, int64_t t1_ns, struct ipw_figure *idle);
#define IPW_LEDGER_TOTAL_SLACK_NS                                                                  \
    (50 * IPW_NS_PER_MS) /* a run starts and ends a little outside its readings */

/* ledger_estimate.c: adds an estimate to an unknown figure. */
struct ipw_figure ipw_ledger_estimate(const struct ipw_ledger *l, const struct ledger_query *q,
                                      const struct ledger_line *line, int64_t t0_ns, int64_t t1_ns,
                                      struct ipw_figure unknown);

/* ledger.c: the last edge at or before t; SIZE_MAX if t lies before all live edges. */
size_t ipw_ledger_edge_at(const struct ipw_ledger *l, int64_t t_ns);

/* ledger_trim.c: the query of this ordinal; NULL: it was dropped. */
struct ledger_query *ipw_ledger_query(const struct ipw_ledger *l, int64_t query);
void ipw_ledger_free_query(const struct ipw_ledger *l, struct ledger_query *q);

/* ledger_figures.c */
/* Adds a model's estimate to a domain's figure that is unknown and has no estimate. */
struct ipw_figure ipw_ledger_by_model(const struct ipw_ledger *l,
                                      const struct ipw_ledger_question *window,
                                      struct ipw_figure f);
#define IPW_LEDGER_WINDOW_SLACK_NS 2000000 /* 2 ms */
bool ipw_ledger_answerable(const struct ipw_ledger *l, const struct ledger_query *q,
                           const struct ledger_line *line, int64_t t_ns);
/* The integrals of the edges up to t; `q` may be NULL. */
struct ledger_instant ipw_ledger_integrals(const struct ipw_ledger *l, const struct ledger_query *q,
                                           int64_t t_ns);
/* ipw_series_bounds(), whose bounds are widened by the error of the clock. */
int64_t ipw_ledger_bounds(const struct ipw_ledger *l, const struct ledger_line *line, int64_t t_ns,
                          int64_t *below_uj, int64_t *above_uj);

/* The ledgers that a call is for: the ledger itself or, with scopes, that of each group of devices
 * which the query could use. */
struct ledger_each {
    const struct ipw_ledger *all;
    int64_t query; /* IPW_LEDGER_ANY: none */
    bool timed;    /* only those that take readings at `at_ns` */
    int64_t at_ns;
    struct ipw_ledger *l; /* the ledger, and the query's ordinal in it */
    int64_t own;
    int64_t start_ns, end_ns; /* of the group's devices */
    size_t next;
};
bool ipw_ledger_each_group(struct ledger_each *e);
/* for (struct ledger_each e = {.all = l, .query = query}; ipw_ledger_each(&e);) */
static inline bool ipw_ledger_each(struct ledger_each *e)
{
    if (e->all->scopes) return ipw_ledger_each_group(e);
    e->l = (struct ipw_ledger *)e->all;
    e->own = e->query;
    e->start_ns = INT64_MIN;
    e->end_ns = INT64_MAX;
    return e->next++ == 0;
}

/* The devices that a question names, one after the other, each with the ledger that books it. */
struct ledger_asked {
    const struct ipw_ledger_question *q;
    struct ledger_each each;
    const struct ipw_ledger *l; /* = each.l */
    const struct ledger_line *line;
    const struct ledger_query
        *query; /* NULL: none is named, or (missing) the ledger does not have it */
    bool missing;
    int64_t t0_ns, t1_ns; /* the window; of totals the part of it in which the device was read */
    size_t left;          /* devices that follow in this ledger */
};
static inline struct ledger_asked ipw_ledger_asks(const struct ipw_ledger *l,
                                                  const struct ipw_ledger_question *q)
{
    return (struct ledger_asked){.q = q, .each = {.all = l, .query = q->query}};
}
bool ipw_ledger_next(struct ledger_asked *a);

/* ledger_scopes.c */
void ipw_ledger_scopes_free(struct ledger_scopes *s);
/* Drops the queries that no group has any more. */
void ipw_ledger_scopes_trim(struct ledger_scopes *s);
int64_t ipw_ledger_scopes_read_ns(const struct ipw_ledger *l);

#endif
