/* report/compare.h: two runs beside each other, query by query and turn by turn.
 *
 * Queries are paired by id (repeats of one id in the order in which they were begun), turns by their
 * place in the query.  Each metric is compared over the pairs in which both sides know it: the two
 * means, and the mean of the differences with its 95 % interval, all over tasks: repeats of an id are
 * averaged first, so are the turns of a query, so that the difference is that of the two means
 * (report/repeats.h says how the interval is made).  A difference is significant when that interval
 * does not hold 0.  Joules have besides the bounds that the counters' readings give (lo, hi); the two
 * say different things: the interval what another sample of tasks could show, the bounds what another
 * division of the same readings could. */
#ifndef IPW_REPORT_COMPARE_H
#define IPW_REPORT_COMPARE_H

#include "json/write.h"
#include "report/repeats.h"
#include "trace/schema.h"

enum ipw_compare_metric {
    IPW_COMPARE_ACCURACY,
    IPW_COMPARE_JOULES, /* over the devices that both runs measured */
    IPW_COMPARE_GPU_J,
    IPW_COMPARE_CPU_J,
    IPW_COMPARE_DRAM_J,
    IPW_COMPARE_MACHINE_J,
    IPW_COMPARE_OUTPUT_J, /* joules of a query by its output tokens */
    IPW_COMPARE_TOKEN_J,  /* by its input and output tokens */
    IPW_COMPARE_SECONDS,
    IPW_COMPARE_INPUT,
    IPW_COMPARE_OUTPUT,
    IPW_COMPARE_TURNS,
    IPW_COMPARE_TURN_J, /* of paired turns */
    IPW_COMPARE_TURN_S,
    IPW_COMPARE_TURN_OUTPUT,
    IPW_COMPARE_METRICS,
};

struct ipw_compare_turn {
    struct ipw_figure energy[IPW_DOMAIN_COUNT]; /* without reasons */
    double seconds;
    int64_t input_tokens, output_tokens; /* -1: not known */
};

struct ipw_compare_query {
    char *id;
    int epoch;
    int32_t index;
    size_t nth; /* of its id */
    int resolved;
    struct ipw_figure energy[IPW_DOMAIN_COUNT];
    double seconds;
    int64_t input_tokens, output_tokens;
    struct ipw_compare_turn *turns;
    size_t n_turns;
};

/* What a run was made with, of its manifest; NULL: not known. */
enum ipw_compare_setting {
    IPW_COMPARE_AGENT,
    IPW_COMPARE_MODEL,
    IPW_COMPARE_DATASET,
    IPW_COMPARE_CONCURRENCY,
    IPW_COMPARE_SETTINGS,
};

struct ipw_compare_run { /* one of the two */
    struct ipw_compare_query *queries;
    size_t n, cap;
    unsigned not_lm; /* domains that are not the model's machine, bits 1 << domain */
    char *settings[IPW_COMPARE_SETTINGS];
    char *versions[IPW_COMPARE_SETTINGS]; /* SHA-256 of the file, where there is one */
};
void ipw_compare_add(struct ipw_compare_run *run, const struct ipw_query_loaded *query);
/* The text of manifest.json; one that cannot be read leaves the settings unknown. */
void ipw_compare_manifest(struct ipw_compare_run *run, const char *json, size_t n);
void ipw_compare_release(struct ipw_compare_run *run);

struct ipw_compare_row {
    size_t pairs, tasks;
    double a, b;       /* means over the tasks; NAN: none */
    double a_lo, a_hi; /* their bounds; NAN: not known, or no joules */
    double b_lo, b_hi;
    double difference_lo, difference_hi; /* of b - a, by the bounds of the readings */
    struct ipw_interval difference;      /* of b - a */
    const char *verdict; /* "higher", "lower" (b than a), "same" (equal throughout), "not_shown",
                            "too_few", "unknown" */
};

struct ipw_compare {
    const struct ipw_compare_run *runs[2];
    const struct ipw_compare_query **pairs[2]; /* the i-th of each belong together */
    size_t n, n_turns, only[2];                /* only: queries without a partner */
    unsigned basis;                            /* domains of IPW_COMPARE_JOULES; 0: none */
    struct ipw_compare_row rows[IPW_COMPARE_METRICS];
};
/* Sorts the runs' queries. */
void ipw_compare_make(struct ipw_compare *out, struct ipw_compare_run *a,
                      struct ipw_compare_run *b);
void ipw_compare_free(struct ipw_compare *compare);

/* Whether the two are known to differ in a setting.  *version: only in the version of the file. */
bool ipw_compare_differ(const struct ipw_compare *compare, int setting, bool *version);

/* Joules over `basis` and their bounds; NAN where not known. */
double ipw_compare_joules(const struct ipw_figure *energy, unsigned basis, double *lo, double *hi);

/* A JSON object; `pairs` too, each with its turns.  a, b: what the runs are called. */
void ipw_compare_write(struct ipw_buf *out, const struct ipw_compare *compare, const char *a,
                       const char *b);
/* For a terminal; `turns`: every pair of turns besides. */
void ipw_compare_print(struct ipw_buf *out, const struct ipw_compare *compare, const char *a,
                       const char *b, bool turns, bool colour);

#endif
