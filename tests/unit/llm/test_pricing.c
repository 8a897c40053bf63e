/* The price table: what is read, which name a model's price stands under, and what tokens cost. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "json/jsonl.h"
#include "llm/pricing.h"
#include "unit/unit.h"

static const char table[] =
    "{\"as_of\":\"2026-09\",\"source\":\"test\",\"models\":{"
    "\"gpt-4\":{\"input\":30,\"output\":60,\"provider\":\"openai\"},"
    "\"gpt-4o\":{\"input\":2.5,\"output\":10,\"provider\":\"openai\",\"cache_read\":1.25},"
    "\"gpt-4o-mini\":{\"input\":0.15,\"output\":0.6,\"provider\":\"OpenAI\"},"
    "\"claude-sonnet-4\":{\"input\":3,\"output\":15},"
    "\"my-*\":{\"input\":1,\"output\":2},"
    "\"my-b?g-*\":{\"input\":7,\"output\":8},"
    "\"tiers\":{\"input\":2,\"output\":10,\"cache_read\":0.2,\"cache_write\":2.5,"
    "\"cache_write_1h\":4,\"reasoning\":20,\"per_call\":0.01,\"above\":["
    "{\"prompt_tokens\":1000,\"input\":4,\"output\":15,\"cache_read\":0.4},"
    "{\"prompt_tokens\":2000,\"input\":5,\"output\":16}]},"
    "\"days\":[{\"from\":\"2026-07-01\",\"input\":1,\"output\":1},"
    "{\"input\":3,\"output\":1},{\"from\":\"2027\",\"input\":9,\"output\":1}],"
    "\"later\":{\"from\":\"2027-01\",\"input\":9,\"output\":1},"
    "\"my-own\":{\"input\":5,\"output\":6,\"cache_read\":0.5,\"cache_write\":6.25}}}";

static struct ipw_prices *parse(const char *json)
{
    struct ipw_prices *p = NULL;
    struct ipw_err err = {0};

    if (ipw_prices_parse(&p, json, strlen(json), "t.json", &err)) fail_msg("%s", err.text);
    return p;
}

static void test_find(void **state)
{
    static const struct {
        const char *model;
        double input; /* 0: there must be no price */
    } cases[] = {
        {"gpt-4o", 2.5},
        {"gpt-4o-2024-08-06", 2.5},
        {"gpt-4o-mini", 0.15},
        {"gpt-4o-mini-2024-07-18", 0.15},
        {"gpt-4-0613", 30},
        {"openai/gpt-4o", 2.5},
        {"OpenAI/gpt-4o-mini", 0.15},
        {"openai/gpt-4o-mini", 0.15},
        {"gpt-4-32k", 0},
        {"gpt-4.1", 0},
        {"gpt-4-turbo", 0},
        {"gpt-4o-audio-preview", 0},
        {"gpt-4o-2024-", 0},
        {"gpt-4o-2024-08-06x", 0},
        {"someone/gpt-4o", 0},
        {"GPT-4o", 0},
        {"claude-sonnet-4-20250514", 3},
        {"claude-sonnet-4@20250514", 3},
        {"claude-sonnet-4-5", 0},
        {"claude-sonnet-4-5-20250929", 0},
        {"my-model", 1},
        {"my-", 1},
        {"my-big-one", 7},
        {"my-own", 5},
        {"days", 1},
        {"later", 0},
        {"my-own-2026", 5},
        {"my-owner", 1},
        {"x-my-own", 0},
        {"", 0},
    };
    struct ipw_prices *p = parse(table);

    (void)state;
    assert_string_equal(ipw_prices_as_of(p), "2026-09");
    assert_string_equal(ipw_prices_source(p), "test");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct ipw_price *price = ipw_prices_find(p, cases[i].model, "2026-11-28");
        double input = price ? price->base.input : 0;

        if (input != cases[i].input)
            fail_msg("%s: %g instead of %g", cases[i].model, input, cases[i].input);
    }
    assert_true(ipw_prices_find(p, "days", "2026-06-30")->base.input == 3);
    assert_true(ipw_prices_find(p, "days", "2027-01-01")->base.input == 9);
    assert_null(ipw_prices_find(p, NULL, "2026-11-28"));
    assert_null(ipw_prices_find(NULL, "gpt-4o", "2026-11-28"));
    ipw_prices_free(p);
    ipw_prices_free(NULL);
}

static void test_cost(void **state)
{
    static const struct {
        const char *model;
        struct ipw_price_usage usage;
        double usd, at_most; /* NAN: not known */
    } cases[] = {
        {"gpt-4", {1000, 100, -1, -1}, 0.036, 0.036},
        {"gpt-4", {0, 0, -1, -1}, 0, 0},
        {"gpt-4", {1000, 100, 0, 0}, 0.036, 0.036},
        {"gpt-4", {1000, 100, 600, -1}, NAN, 0.036},
        {"gpt-4", {-1, 100, -1, -1}, NAN, NAN},
        {"gpt-4", {1000, -1, -1, -1}, NAN, NAN},
        {"gpt-4o", {1000000, 0, 400000, -1}, 2.0, 2.0},
        {"gpt-4o", {100, 0, 400, -1}, 0.000125, 0.000125}, /* more cached than there were */
        {"my-own", {1000000, 1000000, 200000, 100000}, 3.5 + 0.1 + 0.625 + 6, 10.225},
        /* 1,000 tokens are not above 1,000; reasoning is part of the output */
        {"tiers", {1000, 100, 200, 300, 100, 40}, 0.01 + 0.00334, 0.01334},
        /* the tier prices everything, and has no price of a write */
        {"tiers", {1001, 100, 200, 300, -1, 40}, NAN, 0.01 + 0.004784},
        {"tiers", {1001, 100, 200, -1, -1, 40}, 0.01 + 0.004784, 0.01 + 0.004784},
        {"tiers", {3000, 100, -1, -1, -1, -1}, 0.01 + 0.0166, 0.0266},
    };
    struct ipw_prices *p = parse(table);

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct ipw_price *price = ipw_prices_find(p, cases[i].model, "2026-11-28");
        double usd = ipw_price_cost(price, &cases[i].usage);
        double most = ipw_price_cost_at_most(price, &cases[i].usage);

        if (isnan(cases[i].usd) ? !isnan(usd) : !(fabs(usd - cases[i].usd) <= 1e-12))
            fail_msg("case %zu: %.15g", i, usd);
        if (isnan(cases[i].at_most) ? !isnan(most) : !(fabs(most - cases[i].at_most) <= 1e-12))
            fail_msg("case %zu: at most %.15g", i, most);
    }
    ipw_prices_free(p);
}

static void test_refused(void **state)
{
    static const struct {
        const char *json, *message;
    } cases[] = {
        {"", "t.json: "},
        {"[]", "models: expected an object"},
        {"{\"models\":[]}", "models: expected an object"},
        {"{\"model\":{}}", "models: expected an object"},
        {"{\"models\":{},\"asof\":1}", "unknown field 'asof' (did you mean 'as_of'?)"},
        {"{\"models\":{\"a\":3}}", "model 'a': expected an object"},
        {"{\"models\":{\"a\":{\"input\":1}}}", "model 'a': output: expected USD"},
        {"{\"models\":{\"a\":{\"input\":\"1\",\"output\":1}}}", "model 'a': input: expected USD"},
        {"{\"models\":{\"a\":{\"input\":-1,\"output\":1}}}", "model 'a': input: expected USD"},
        {"{\"models\":{\"a\":{\"input\":1e999,\"output\":1}}}", "model 'a': input: expected USD"},
        {"{\"models\":{\"a\":{\"input\":1,\"output\":1,\"cache_reed\":1}}}",
         "(did you mean 'cache_read'?)"},
        {"{\"models\":{\"a\":{\"input\":1,\"output\":1,\"cache_read\":true}}}", "cache_read"},
        {"{\"models\":{\"a\":[3]}}", "model 'a': expected an object"},
        {"{\"models\":{\"a\":{\"input\":1,\"output\":1,\"from\":\"July\"}}}",
         "from: expected a day such as 2026-07-01"},
        {"{\"models\":{\"a\":{\"input\":1,\"output\":1,\"from\":20260701}}}",
         "from: expected a day such as 2026-07-01"},
        {"{\"models\":{\"a\":{\"input\":1,\"output\":1,\"per_call\":-1}}}",
         "per_call: expected USD"},
        {"{\"models\":{\"a\":{\"input\":1,\"output\":1,\"above\":{}}}}", "above: expected a list"},
        {"{\"models\":{\"a\":{\"input\":1,\"output\":1,\"above\":[{\"prompt_tokens\":5,"
         "\"input\":2}]}}}",
         "model 'a': output: expected USD per million tokens"},
        {"{\"models\":{\"a\":{\"input\":1,\"output\":1,\"above\":[{\"input\":2,"
         "\"output\":2}]}}}",
         "prompt_tokens: expected a number"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ipw_prices *p = NULL;
        struct ipw_err err = {0};

        assert_int_equal(ipw_prices_parse(&p, cases[i].json, strlen(cases[i].json), "t.json", &err),
                         IPW_EPARSE);
        assert_null(p);
        if (!strstr(err.text, cases[i].message)) fail_msg("case %zu: %s", i, err.text);
    }
}

/* The table that comes along can be read, and says when its figures are from. */
static void test_own_table(void **state)
{
    struct ipw_buf text = IPW_BUF(IPW_MIB);
    struct ipw_price_usage usage = {.reasoning = -1};
    struct ipw_err err = {0};
    struct ipw_prices *p;
    /* Prices as the providers' pages have them, and the dollars of a call worked out by hand. */
    static const struct {
        const char *model;
        double input, output, cache_read;
        int64_t in, cached, out;
        double usd;
    } known[] = {
        {"gpt-4o-mini-2024-07-18", 0.15, 0.6, 0.075, 1204, 1024, 12, 0.000111},
        {"gpt-4o", 2.5, 10, 1.25, 10000, 6000, 500, 0.0225},
        {"gpt-4.1-nano", 0.1, 0.4, 0.025, 1000000, 0, 1000000, 0.5},
        {"openai/gpt-5.1", 1.25, 10, 0.125, 1000000, 1000000, 0, 0.125},
        {"claude-haiku-4-5-20251001", 1, 5, 0.1, 10000, 0, 2000, 0.02},
        {"anthropic/claude-sonnet-4-5", 3, 15, 0.3, 50000, 40000, 15000, 0.267},
        {"claude-opus-4-5", 5, 25, 0.5, 50000, 40000, 15000, 0.445},
        {"gemini-2.5-pro", 1.25, 10, 0.125, 300000, 0, 1000, 0.765}, /* the dearer tier */
        {"gemini-2.5-flash", 0.3, 2.5, 0.03, 1000000, 0, 1000000, 2.8},
        {"deepseek-chat", 0.28, 0.42, 0.028, 1000000, 500000, 1000000, 0.574},
    };

    (void)state;
    if (ipw_file_read(&text, IPW_SOURCE_DIR "/prices/prices.json", &err)) fail_msg("%s", err.text);
    p = parse(text.data);
    assert_true(strlen(ipw_prices_as_of(p)) >= 7);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        const struct ipw_price *price = ipw_prices_find(p, known[i].model, "2026-11-28");

        if (!price) fail_msg("%s: no price", known[i].model);
        if (price->base.input != known[i].input || price->base.output != known[i].output ||
            price->base.cache_read != known[i].cache_read)
            fail_msg("%s: another price", known[i].model);
        usage.input = known[i].in;
        usage.cached_read = known[i].cached;
        usage.output = known[i].out;
        if (fabs(ipw_price_cost(price, &usage) - known[i].usd) > 1e-12)
            fail_msg("%s: %.12g USD", known[i].model, ipw_price_cost(price, &usage));
    }
    assert_null(ipw_prices_find(p, "llama3.2:1b", "2026-11-28"));
    ipw_prices_free(p);
    ipw_buf_release(&text);
}

UNIT(pricing)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_find),
        cmocka_unit_test(test_cost),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_own_table),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
