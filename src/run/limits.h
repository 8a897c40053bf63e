/* run/limits.h: what a query, and a run, may spend.
 *
 * Pure: struct ipw_spending is fed events and adds them up; it is asked what is left, whether a limit
 * was passed, and whether anything may still be begun.  run/limit_actions.h acts on the answers.
 *
 * Tokens are input and output of every attempt, as reported; where a server does not tell them, its
 * streamed events count (`guessed` says so).  Cost is the most it can have been (llm/pricing.h).
 * Working time is wall time without the waits between the attempts of a request and for the turn to
 * send one.  A query waits when all of its branches do, a run when all of its queries do. */
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
    const char *prices; /* a file that overrides the built-in table, or NULL */
    bool free;          /* --prices free: the model costs nothing */
};

/* Rows of an option table, for a struct ipw_limit_options. */
extern const struct ipw_opt ipw_limit_option_rows[];

/* "token_limit", "turn_limit", "timeout", ...; with run_ before it for the run's. */
const char *ipw_limit_outcome(enum ipw_limit limit, bool run);
/* The option that set it, without dashes. */
const char *ipw_limit_option(enum ipw_limit limit, bool run);
/* Before the options are read: what is not given is told from a zero. */
void ipw_limits_init(struct ipw_limit_options *o);
/* After: refuses a limit of nothing, of less, or of no number. */
int ipw_limits_check(struct ipw_limit_options *o, struct ipw_err *err);
/* Writes {"query": {...}, "run": {...}}, null where there is none. */
void ipw_limits_write(struct ipw_jw *w, const struct ipw_limit_options *o);

struct ipw_spending {
    int64_t start_ns;
    int64_t tokens, turns;
    int64_t waited_ns, wait_end_ns; /* of the waits so far, and the end of the last */
    double cost_usd;                /* at most */
    bool guessed;                   /* tokens were counted by events */
    bool cost_unknown;              /* an answer had no price */
    double energy_j;                /* set by the caller as samples come; NAN: not known yet */
};

void ipw_spending_start(struct ipw_spending *m, int64_t t_ns);
/* `usd`: the most an inference that ended can have cost; NAN: nobody knows. */
void ipw_spending_event(struct ipw_spending *m, const struct ipw_event *event, double usd);
/* There is nothing to do from one instant to the other but wait; what overlaps counts once. */
void ipw_spending_wait(struct ipw_spending *m, int64_t from_ns, int64_t to_ns);
void ipw_spending_wait_over(struct ipw_spending *m, int64_t t_ns); /* sooner than was said */
int64_t ipw_spending_working_ns(const struct ipw_spending *m, int64_t now_ns);
/* The first limit that was passed; NONE. */
enum ipw_limit ipw_spending_passed(const struct ipw_spending *m, const struct ipw_limits *l,
                                   int64_t now_ns);
/* The first one under which nothing may be begun any more: what it allows is used up. */
enum ipw_limit ipw_spending_used_up(const struct ipw_spending *m, const struct ipw_limits *l,
                                    int64_t now_ns);
/* "--token-limit 1000: 1250 used" */
void ipw_spending_describe(char *out, size_t size, const struct ipw_spending *m,
                           const struct ipw_limits *l, enum ipw_limit limit, bool run,
                           int64_t now_ns);

#endif
