/* run/limits.h: the limits of a query and of a run, and their spending.
 *
 * Pure: struct ipw_spending adds up events.  It answers what is left, whether a limit was passed,
 * and whether a new step may begin.  run/limit_actions.h acts on the answers.
 *
 * Tokens are input and output of every attempt, as the server reports them; if it does not, its
 * streamed events are counted (`guessed`).  Cost is the highest possible cost (llm/pricing.h).
 * Working time is wall time without waits between the attempts of a request and for the turn to
 * send one.  A query waits while all of its branches do, a run while all of its queries do. */
#ifndef IPW_RUN_LIMITS_H
#define IPW_RUN_LIMITS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/option.h"
#include "json/write.h"
#include "trace/event.h"

enum ipw_limit {
    IPW_LIMIT_NONE,
    IPW_LIMIT_TOKENS,
    IPW_LIMIT_TURNS,
    IPW_LIMIT_TIME,
    IPW_LIMIT_WORKING,
    IPW_LIMIT_COST,
    IPW_LIMIT_ENERGY,
    IPW_LIMITS,
};

struct ipw_limits { /* 0: no limit */
    int64_t tokens, turns, wall_ns, working_ns;
    double cost_usd, energy_j;
};

struct ipw_limit_options {
    struct ipw_limits query, run;
    const char *prices;             /* a file that overrides the built-in table, or NULL */
    bool free;                      /* --prices free: the model costs nothing */
    double kwh_price, gco2_per_kwh; /* USD and grams of CO2e for each kWh; NAN: not stated */
};

/* Rows of an option table, for a struct ipw_limit_options. */
extern const struct ipw_opt ipw_limit_option_rows[];

/* "token_limit", "turn_limit", "timeout", ...; for a limit of the run with run_ before it. */
const char *ipw_limit_outcome(enum ipw_limit limit, bool run);
/* The option's name, without dashes. */
const char *ipw_limit_option(enum ipw_limit limit, bool run);
/* Call it before the options are read; afterwards a zero and a missing option differ. */
void ipw_limits_init(struct ipw_limit_options *o);
/* Call it after the options are read: refuses a limit that is not greater than 0. */
int ipw_limits_check(struct ipw_limit_options *o, struct ipw_err *err);
/* Writes {"query": {...}, "run": {...}}; null: no limit. */
void ipw_limits_write(struct ipw_jw *w, const struct ipw_limit_options *o);

struct ipw_spending {
    int64_t start_ns;
    int64_t tokens, turns;
    int64_t waited_ns, wait_end_ns; /* of the waits so far; end of the last wait */
    double cost_usd;                /* highest possible cost */
    bool guessed;                   /* tokens were counted from events */
    bool cost_unknown;              /* an answer had no price */
    double energy_j;                /* set by the caller after each reading; NAN: unknown */
};

void ipw_spending_start(struct ipw_spending *m, int64_t t_ns);
/* `usd`: the highest possible cost of an inference that ended; NAN: unknown. */
void ipw_spending_event(struct ipw_spending *m, const struct ipw_event *event, double usd);
/* From one instant to the other there is only a wait; overlapping waits count once. */
void ipw_spending_wait(struct ipw_spending *m, int64_t from_ns, int64_t to_ns);
void ipw_spending_wait_over(struct ipw_spending *m, int64_t t_ns); /* ended early */
int64_t ipw_spending_working_ns(const struct ipw_spending *m, int64_t now_ns);
/* The first limit that was passed; or NONE. */
enum ipw_limit ipw_spending_passed(const struct ipw_spending *m, const struct ipw_limits *l,
                                   int64_t now_ns);
/* The first limit that is used up, so that no new step may begin. */
enum ipw_limit ipw_spending_used_up(const struct ipw_spending *m, const struct ipw_limits *l,
                                    int64_t now_ns);
/* "--token-limit 1000: 1250 used" */
void ipw_spending_describe(char *out, size_t size, const struct ipw_spending *m,
                           const struct ipw_limits *l, enum ipw_limit limit, bool run,
                           int64_t now_ns);

#endif
