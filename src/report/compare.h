/* report/compare.h: compares two runs, query by query and turn by turn.
 *
 * Queries are paired by id (repeats of one id in the order in which they began), turns by their
 * place in the query.  Each metric is compared over the pairs whose values are known on both sides:
 * the two means, and the mean of the differences with its 95 % interval.  All means are over tasks:
 * repeats of an id, and the turns of a query, are averaged first, so that the difference is that of
 * the two means (report/repeats.h describes the interval).  A difference is significant if its
 * interval does not contain 0.  Joules also have the bounds (lo, hi) of the sensors' readings.  The
 * interval shows what another sample of tasks could give; the bounds show what another division of
 * the same readings could give. */
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
    IPW_COMPARE_OUTPUT_J, /* joules of a query / its output tokens */
    IPW_COMPARE_TOKEN_J,  /* joules / input and output tokens */
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
    size_t nth; /* number among the queries with this id */
    int resolved;
    struct ipw_figure energy[IPW_DOMAIN_COUNT];
    double seconds;
    int64_t input_tokens, output_tokens;
    struct ipw_compare_turn *turns;
    size_t n_turns;
};

/* The settings of a run, from its manifest; NULL: unknown. */
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
    char *versions[IPW_COMPARE_SETTINGS]; /* SHA-256 of the file, if there is one */
};
void ipw_compare_add(struct ipw_compare_run *run, const struct ipw_query_loaded *query);
/* Takes the text of manifest.json; if it cannot be read, the settings stay unknown. */
void ipw_compare_manifest(struct ipw_compare_run *run, const char *json, size_t n);
void ipw_compare_release(struct ipw_compare_run *run);

struct ipw_compare_row {
    size_t pairs, tasks;
    double a, b;       /* means over the tasks; NAN: none */
    double a_lo, a_hi; /* their bounds; NAN: not known, or no joules */
    double b_lo, b_hi;
    double difference_lo, difference_hi; /* of b - a, from the bounds of the readings */
    struct ipw_interval difference;      /* of b - a */
    const char *verdict; /* "higher", "lower" (b than a), "same" (equal throughout), "not_shown",
                            "too_few", "unknown" */
};

struct ipw_compare {
    const struct ipw_compare_run *runs[2];
    const struct ipw_compare_query **pairs[2]; /* the i-th of each are a pair */
    size_t n, n_turns, only[2];                /* only: queries without a partner */
    unsigned basis;                            /* domains of IPW_COMPARE_JOULES; 0: none */
    struct ipw_compare_row rows[IPW_COMPARE_METRICS];
};
/* Sorts the runs' queries. */
void ipw_compare_make(struct ipw_compare *out, struct ipw_compare_run *a,
                      struct ipw_compare_run *b);
void ipw_compare_free(struct ipw_compare *compare);

/* Whether the two are known to differ in a setting.  *version: only the content of the file
 * differs. */
bool ipw_compare_differ(const struct ipw_compare *compare, int setting, bool *version);

/* Joules over `basis` and their bounds; NAN: unknown. */
double ipw_compare_joules(const struct ipw_figure *energy, unsigned basis, double *lo, double *hi);

/* Writes a JSON object; with `pairs` also each pair and its turns.  a, b: names of the runs. */
void ipw_compare_write(struct ipw_buf *out, const struct ipw_compare *compare, const char *a,
                       const char *b);
/* Prints the table; with `turns` also every pair of turns. */
void ipw_compare_print(struct ipw_buf *out, const struct ipw_compare *compare, const char *a,
                       const char *b, bool turns, bool colour);

#endif
