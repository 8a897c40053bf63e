/* ledger/ledger_priv.h: the inside of the ledger.  Internal to ledger.c (input), ledger_phase.c
 * (the line between samples), ledger_share.c (shares of a cell), ledger_figures.c (answers) and
 * their parts.
 *
 * Each device has its own sums; a device is a channel in a sum.  A domain's figure is the sum of
 * its devices' figures.  Time is cut at every edge: a query starts or ends or, under the rules that
 * need it, a phase changes.  Between two edges lies a cell with n queries in flight.  For each
 * device a mark holds the sums up to an edge.  Each query in flight has a slice: its own sum at
 * each edge since its start. Marks and slices are final for an edge once the device's series is
 * settled there and its line is bent up to there.
 *
 * `share` is the energy, in 2^-32 microjoules, that a query in flight since the beginning would
 * have by equal slices.  A window that names no query gets the difference of `share` between its
 * ends. */
#ifndef IPW_LEDGER_LEDGER_PRIV_H
#define IPW_LEDGER_LEDGER_PRIV_H

#include "ledger/lag.h"
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

struct ledger_edge {
    int64_t t_ns;
    int64_t in_flight;  /* number of queries from here on */
    int64_t crowded_ns; /* time before the edge with more than one query in flight */
};

/* A query's energy on one device. */
struct ledger_slice {
    int64_t *uj; /* its sums at the edges from `from` on */
    size_t n, cap;
    int64_t from;   /* number of an edge: see ipw_ledger.edge_base */
    double deficit; /* microjoules due but not handed out yet; a few at most */
};

struct ledger_phase {
    int64_t t0_ns, t1_ns; /* t1_ns INT64_MAX: the phase is open */
    enum ipw_phase phase;
};

struct ledger_tokens {
    int64_t t0_ns, t1_ns;
    double prefilled, decoded;
};

struct ledger_query {
    int64_t t0_ns, t1_ns; /* t1_ns INT64_MAX: in flight */
    struct ledger_phase *phases;
    size_t n_phases, cap_phases;
    struct ledger_tokens *tokens;
    size_t n_tokens, cap_tokens;
    bool tokens_overlap;         /* some tokens begin before earlier ones end */
    struct ledger_slice *slices; /* one for each device */
};

/* One device: the line of its series, the fits of its power, and its sums. */
struct ledger_line {
    struct ipw_series *series;      /* borrowed from the ledger */
    const struct ipw_series *gauge; /* gauge of the same device, or NULL */
    size_t gauge_channel;
    size_t channel;
    struct ipw_phase_fit
        alone;     /* fit of steps with at most one model call: the power of each phase by itself */
    double peak_w; /* highest power of a step of 40 ms or more */
    /* Energy shared among several queries so far; its part by equal slices because the fit did not
     * know the phases. */
    double crowded_j, equal_j;
    struct ipw_lag lag;        /* the fit of the phases' power, and its delay */
    bool idle_by_fit;          /* without a given baseline the fit supplies the idle part */
    double baseline_w;         /* NAN: not given */
    int64_t done_ns;           /* the sample up to which the line is bent; INT64_MIN: none yet */
    int64_t handed_over_ns;    /* since when `gauge` is read instead; INT64_MIN: it is not */
    int64_t lost_ns;           /* end of its silence: it is not waited for; INT64_MIN: not lost */
    struct ledger_mark *marks; /* sums at the ledger's edges [0, settled) */
    size_t settled, cap;
    size_t next_end;   /* index in ipw_ledger.ends: the line is bent up to the end before it */
    int64_t closed_ns; /* the line is bent up to here */
    int64_t until_ns;  /* settled up to here at the last look */
    int64_t *active;   /* queries in flight in the cell after the last mark */
    size_t n_active, cap_active;
    int64_t next_query; /* the first query that has not started there yet */
};

struct ledger_domain {
    size_t first, n; /* range in ipw_ledger.lines: the channels in the sum */
    const char *reason;
};

struct ipw_ledger {
    struct ipw_series **series; /* one for each channel; NULL for an unused one */
    /* A model's energy of a domain without a sensor: middle, least, most. */
    struct ipw_series *model[IPW_DOMAIN_COUNT][3];
    bool *summed;                         /* is the channel in a sum? */
    enum ipw_channel_kind *channel_kinds; /* as the caller gave them */
    size_t n_channels;
    struct ledger_line *lines; /* in order of domain */
    size_t n_lines;
    struct ledger_domain domains[IPW_DOMAIN_COUNT];
    int64_t first_row_ns, newest_row_ns; /* INT64_MIN: no row yet */
    bool has_gauges, told;               /* told: an event came since the last settling */
    struct ledger_edge *edges;           /* without the trimmed ones: see ipw_ledger_trim() */
    size_t n_edges, cap_edges;
    int64_t edge_base;     /* the number of edges[0]: how many were trimmed */
    int64_t first_edge_ns; /* of all edges, including trimmed ones */
    int64_t last_query_ns; /* when a query last started or ended */
    int64_t trimmed_ns;    /* time of the edge before the first live one; INT64_MIN: none */

    struct ledger_query **queries; /* by ordinal, from query_base on; NULL: forgotten */
    size_t n_queries, cap_queries;
    int64_t query_base, oldest; /* `oldest`: no query before it is in flight */
    int64_t *ends;              /* when queries ended, in order */
    size_t n_ends, cap_ends;
    struct ipw_phase_line line;
    enum ipw_share share;
    double alpha;
    int64_t complete_ns; /* see ipw_ledger_complete_ns() */
};

/* ledger_phase.c: closes steps and settles marks on every device, as far as possible. */
void ipw_ledger_settle(struct ipw_ledger *l);
/* The same up to t, regardless of what may still come. */
void ipw_ledger_settle_all(struct ipw_ledger *l, int64_t t_ns);
/* complete_ns: up to here no model phase is open under the token rule, so all tokens are known;
 * INT64_MAX: no model phase is open.  Call it when a phase begins or ends. */
void ipw_ledger_find_complete(struct ipw_ledger *l);
/* Up to where the device's energy is final. */
int64_t ipw_ledger_settled_ns(const struct ledger_line *line);

/* ledger_share.c: fixes the marks and slices of all edges at or before `until`. */
void ipw_ledger_share_until(struct ipw_ledger *l, struct ledger_line *line, int64_t until_ns);
/* The state of a device at an instant, computed from the nearest settled edge. */
struct ledger_mark ipw_ledger_mark_at(const struct ipw_ledger *l, const struct ledger_line *line,
                                      int64_t t_ns);
/* The query's part of the device's energy up to an instant, in microjoules. */
int64_t ipw_ledger_due_at(const struct ipw_ledger *l, const struct ledger_query *q,
                          const struct ledger_line *line, int64_t t_ns);
/* The part of a cell's energy that the device would have used with no query in flight. */
int64_t ipw_ledger_idle_part(const struct ledger_line *line, int64_t uj, int64_t length_ns);
/* Tokens of a query between two instants, weighted by the ledger's alpha. */
double ipw_ledger_token_weight(const struct ipw_ledger *l, const struct ledger_query *q,
                               int64_t t0_ns, int64_t t1_ns);

/* ledger_estimate.c: adds an estimate to an unknown figure. */
struct ipw_figure ipw_ledger_estimate(const struct ipw_ledger *l, const struct ledger_query *q,
                                      const struct ledger_line *line, int64_t t0_ns, int64_t t1_ns,
                                      struct ipw_figure unknown);

/* ledger_split.c: splits energy among several windows of a query. */
struct ledger_split {
    const struct ipw_ledger *l;
    const struct ledger_query *q; /* or NULL */
    const struct ledger_line *line;
    const int64_t *t; /* windows [t[i], t[i + 1]], i < n */
    size_t n;
    bool *open; /* the windows that share */
    int64_t rest, done_ns, open_ns;
    double idle, weight, done_weight; /* weight 0: split all by wall clock */
};
void ipw_ledger_split_begin(struct ledger_split *s, int64_t rest_uj);
/* The energy of the open windows up to window i; call it for each open window in turn. */
int64_t ipw_ledger_split_upto(struct ledger_split *s, size_t i);

/* ledger.c: the last edge at or before t; SIZE_MAX if t lies before all live edges. */
size_t ipw_ledger_edge_at(const struct ipw_ledger *l, int64_t t_ns);
struct ledger_query *ipw_ledger_query(const struct ipw_ledger *l, int64_t query);
void ipw_ledger_free_query(const struct ipw_ledger *l, struct ledger_query *q); /* NULL is fine */

/* ledger_figures.c: the devices that the question names. */
const struct ledger_line *ipw_ledger_lines(const struct ipw_ledger *l,
                                           const struct ipw_ledger_question *q, size_t *n);
/* The whole energy of those devices, as their series have it. */
struct ipw_figure ipw_ledger_gather(const struct ipw_ledger *l, const struct ipw_ledger_question *q,
                                    int64_t slack_ns);
/* ledger_method.c */
struct ipw_figure ipw_ledger_by_lines(const struct ipw_ledger *l,
                                      const struct ipw_ledger_question *q);
struct ipw_figure ipw_ledger_by_samples(const struct ipw_ledger *l,
                                        const struct ipw_ledger_question *q);
/* Adds a model's estimate to a domain's figure that is unknown and has no estimate. */
struct ipw_figure ipw_ledger_by_model(const struct ipw_ledger *l, enum ipw_domain domain,
                                      int64_t t0_ns, int64_t t1_ns, struct ipw_figure f);
#define IPW_LEDGER_WINDOW_SLACK_NS 2000000 /* 2 ms */
bool ipw_ledger_answerable(const struct ipw_ledger *l, int64_t t_ns);

#endif
