/* Price tables: any bytes give a table or one line that names the file.  No price and no cost is
 * negative, what is not known is NAN, and the most that something can have cost is never less than
 * what it cost.  The input is a table, and behind a NUL names of models, a line each. */
#include <math.h>

#include "check.h"
#include "llm/pricing.h"

static bool is_price(double usd) { return isnan(usd) || (isfinite(usd) && usd >= 0); }

static void check_costs(const struct ipw_price *price, const uint8_t *data, size_t size)
{
    const struct ipw_price_usage usages[] = {
        {0, 0, 0, 0, 0, 0},
        {1000, 10, -1, -1, -1, -1},
        {1000, 10, 400, 300, 100, 5},
        {-1, 5, -1, -1, -1, -1},
        {5, -1, 2, -1, -1, -1},
        {10, 1, 20, 20, 20, 20},
        {INT64_MAX, 1, 1, 1, 1, 1},
        {1, 1, INT64_MAX, 1, INT64_MAX, 9},
        {(int64_t)size, data[0], data[size / 2], -1, -1, data[size / 3]},
    };

    check(is_price(price->base.input) && is_price(price->base.output) &&
              is_price(price->base.cache_read) && is_price(price->per_call),
          "not a price");
    for (int i = 1; i < price->n_tiers; i++)
        check(price->tiers[i - 1].prompt_tokens < price->tiers[i].prompt_tokens, "tiers in order");
    for (size_t i = 0; i < sizeof usages / sizeof *usages; i++) {
        double usd = ipw_price_cost(price, &usages[i]);
        double most = ipw_price_cost_at_most(price, &usages[i]);

        check(isnan(usd) || usd >= 0, "a negative cost");
        check(isnan(most) || most >= 0, "a negative ceiling");
        check(isnan(usd) || most >= usd * (1 - 1e-9), "a ceiling below the cost");
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = exact_text(data, size), *names = NULL, *name;
    size_t n = strlen(text);
    struct ipw_prices *prices = NULL;
    struct ipw_err err = {0};
    int rc;

    if (n < size) names = text + n + 1;
    rc = ipw_prices_parse(&prices, text, n, "prices.json", &err);
    if (rc) {
        check_error(&err, rc);
        check(strncmp(err.text, "prices.json", 11) == 0, "an error that does not name the file");
    } else {
        check(ipw_prices_as_of(prices) && ipw_prices_source(prices), "a table without words");
        while ((name = next_line(&names))) {
            const struct ipw_price *price = ipw_prices_find(prices, name, "2026-07-15");

            if (price) check_costs(price, data, size);
        }
        check(!ipw_prices_find(prices, NULL, "2026"), "a price of no model");
        ipw_prices_free(prices);
    }
    free(text);
    return 0;
}
