/* llm/pricing.h: prices of models, and the cost of a model call.
 *
 * Pure: the caller reads the file.  Owns the texts of a table.  A table is one JSON object:
 *
 *     {"as_of": "2026-09", "source": "where the figures are from",
 *      "models": {"gpt-4o": {"input": 2.5, "output": 10, "provider": "openai"},
 *                 "my-*":   {"input": 1, "output": 2, "cached_read": 0.1, "cached_write": 1.25}}}
 *
 * Prices are in USD per million tokens.  A name matches the same name, the name with a date
 * (gpt-4o-2024-08-06), and the name after its provider (openai/gpt-4o).  A name with * and ? is a
 * pattern.  Nothing else matches, because a wrong price is worse than no price.  Of several matches
 * the exact name wins, then the longest.  An unknown cost is NAN, never 0. */
#ifndef IPW_LLM_PRICING_H
#define IPW_LLM_PRICING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct ipw_price { /* USD per million tokens; cached prices NAN if unknown */
    double input, output, cached_read, cached_write;
};

struct ipw_prices;

/* `name`: the file's name for messages, which also name the model and field at fault. */
int ipw_prices_parse(struct ipw_prices **out, const char *json, size_t n, const char *name,
                     struct ipw_err *err);
void ipw_prices_free(struct ipw_prices *prices);                /* NULL is fine */
const char *ipw_prices_as_of(const struct ipw_prices *prices);  /* or "" */
const char *ipw_prices_source(const struct ipw_prices *prices); /* or "" */
/* NULL if no entry matches; `prices` and `model` may be NULL. */
const struct ipw_price *ipw_prices_find(const struct ipw_prices *prices, const char *model);

struct ipw_price_usage {  /* tokens; -1: unknown */
    int64_t input;        /* including cached tokens */
    int64_t output;       /* including reasoning */
    int64_t cached_read;  /* part of `input`; unknown counts as 0 */
    int64_t cached_write; /* the same */
};
/* USD of one model call; NAN if a count or price that it needs is unknown. */
double ipw_price_cost(const struct ipw_price *price, const struct ipw_price_usage *usage);
/* The highest possible cost, for limits: cached tokens without a price cost as much as others. */
double ipw_price_cost_at_most(const struct ipw_price *price, const struct ipw_price_usage *usage);

#endif
