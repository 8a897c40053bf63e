/* llm/pricing.h: what tokens cost.
 *
 * Pure: the text of a price table in, USD out; the caller reads the file.  A table is one JSON
 * object,
 *
 *     {"as_of": "2026-09", "source": "where the figures are from",
 *      "models": {"gpt-4o": {"input": 2.5, "output": 10, "provider": "openai"},
 *                 "my-*":   {"input": 1, "output": 2, "cached_read": 0.1, "cached_write": 1.25}}}
 *
 * in USD per million tokens.  A name stands for itself, for itself with a date behind it
 * (gpt-4o-2024-08-06), and behind its provider's name (openai/gpt-4o); with * and ? in it, for
 * what they match.  Nothing else: a price that might be another model's is no price.  Of several
 * that match, the name itself wins, then the longest.
 *
 * What is not known costs NAN, never 0.  A table owns its texts. */
#ifndef IPW_LLM_PRICING_H
#define IPW_LLM_PRICING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct ipw_price { /* USD per million tokens; cached ones NAN when not told */
    double input, output, cached_read, cached_write;
};

struct ipw_prices;

/* `name`: of the file, for messages, which also name the model and field at fault. */
int ipw_prices_parse(struct ipw_prices **out, const char *json, size_t n, const char *name,
                     struct ipw_err *err);
void ipw_prices_free(struct ipw_prices *prices);                /* NULL is fine */
const char *ipw_prices_as_of(const struct ipw_prices *prices);  /* or "" */
const char *ipw_prices_source(const struct ipw_prices *prices); /* or "" */
/* NULL when there is none; `prices` and `model` may be NULL. */
const struct ipw_price *ipw_prices_find(const struct ipw_prices *prices, const char *model);

struct ipw_price_usage {  /* tokens; -1: not known */
    int64_t input;        /* all of them, cached ones included */
    int64_t output;       /* reasoning included */
    int64_t cached_read;  /* part of the input; not known counts as none */
    int64_t cached_write; /* likewise */
};
/* USD of one inference; NAN when a count or a price that matters is not known. */
double ipw_price_cost(const struct ipw_price *price, const struct ipw_price_usage *usage);
/* The same, but cached tokens without a price of their own count in full: the most that it can have
 * cost, for limits. */
double ipw_price_cost_at_most(const struct ipw_price *price, const struct ipw_price_usage *usage);

#endif
