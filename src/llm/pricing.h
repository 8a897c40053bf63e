/* llm/pricing.h: prices of models, and the cost of a model call.
 *
 * Pure: the caller reads the file.  Owns the texts of a table.  docs/costs.md describes the file:
 *
 *     {"as_of": "2026-09", "source": "where the prices are from",
 *      "models": {"gpt-4o": {"input": 2.5, "output": 10, "provider": "openai"},
 *                 "my-*":   [{"from": "2026-01-01", "input": 2, "output": 4},
 *                            {"from": "2026-07-01", "input": 1, "output": 2, "cache_read": 0.1}]}}
 *
 * Prices are in USD per million tokens.  A name matches the same name, the name with a date
 * (gpt-4o-2024-08-06), and the name after its provider (openai/gpt-4o).  A name with * and ? is a
 * pattern.  Nothing else matches, because a wrong price is worse than no price.  Of several matches
 * the exact name wins, then the longest name, then the newest row.  An unknown cost is NAN, never
 * 0. */
#ifndef IPW_LLM_PRICING_H
#define IPW_LLM_PRICING_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum { IPW_PRICE_TIERS = 4 };

struct ipw_price_rates { /* USD per million tokens; NAN: not known */
    double input, output;
    double cache_read, cache_write, cache_write_1h; /* write: kept for 5 minutes, for 1 hour */
    double reasoning;                               /* NAN: as `output` */
};

/* What one model's calls cost from a day on.  The table owns the texts. */
struct ipw_price {
    const char *model, *provider, *from, *source, *read; /* "" if not given; days: YYYY-MM-DD */
    double per_call;                                     /* USD for each call besides its tokens */
    struct ipw_price_rates base;
    /* Calls with a prompt above so many tokens, the smallest first: the tier prices all tokens. */
    struct ipw_price_tier {
        int64_t prompt_tokens;
        struct ipw_price_rates rates;
    } tiers[IPW_PRICE_TIERS];
    int n_tiers;
};

struct ipw_prices;

/* `name`: the file's name for messages, which also name the model and field at fault. */
int ipw_prices_parse(struct ipw_prices **out, const char *json, size_t n, const char *name,
                     struct ipw_err *err);
void ipw_prices_free(struct ipw_prices *prices);                /* NULL is fine */
const char *ipw_prices_as_of(const struct ipw_prices *prices);  /* or "" */
const char *ipw_prices_source(const struct ipw_prices *prices); /* or "" */
/* The row for calls of that day (YYYY-MM-DD, UTC).  NULL if no entry matches or none is valid yet;
 * `prices` and `model` may be NULL. */
const struct ipw_price *ipw_prices_find(const struct ipw_prices *prices, const char *model,
                                        const char *day);

struct ipw_price_usage {     /* tokens; -1: unknown */
    int64_t input;           /* the whole prompt, cached tokens included */
    int64_t output;          /* reasoning included */
    int64_t cached_read;     /* part of `input`; unknown counts as 0 */
    int64_t cached_write;    /* the same */
    int64_t cached_write_1h; /* part of `cached_write`; the same */
    int64_t reasoning;       /* part of `output`; the same */
};
/* USD of one model call; NAN if a count or price that it needs is unknown. */
double ipw_price_cost(const struct ipw_price *price, const struct ipw_price_usage *usage);
/* The highest possible cost, for limits: a cached token without a price costs as much as the
 * dearest other token of the prompt. */
double ipw_price_cost_at_most(const struct ipw_price *price, const struct ipw_price_usage *usage);

#endif
