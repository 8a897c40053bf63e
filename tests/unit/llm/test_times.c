/* Stamps, gap quantiles and what servers tell about their own times. */
#include <stdlib.h>

#include "llm_support.h"

#include "base/clock.h"
#include "llm/client_priv.h"
#include "llm/times.h"
#include "unit/unit.h"

static void near_ns(int64_t got, int64_t want)
{
    int64_t off = got > want ? got - want : want - got;

    if (off > want / 32 + 1000) fail_msg("%lld instead of %lld", (long long)got, (long long)want);
}

static void quantiles_are_near(void **state)
{
    static struct ipw_llm_gaps g;

    (void)state;
    assert_int_equal(ipw_llm_gaps_quantile(&g, 0.5), 0);
    for (int64_t ms = 1; ms <= 1000; ms++) ipw_llm_gaps_add(&g, ms * IPW_NS_PER_MS);
    near_ns(ipw_llm_gaps_quantile(&g, 0.5), 500 * IPW_NS_PER_MS);
    near_ns(ipw_llm_gaps_quantile(&g, 0.9), 900 * IPW_NS_PER_MS);
    near_ns(ipw_llm_gaps_quantile(&g, 0.99), 990 * IPW_NS_PER_MS);
    near_ns(ipw_llm_gaps_quantile(&g, 1), 1000 * IPW_NS_PER_MS);
    assert_true(ipw_llm_gaps_quantile(&g, 1) <= g.max_ns);
    free(g.count);
}

static void every_size_has_a_bucket(void **state)
{
    (void)state;
    for (int64_t ns = 1; ns < INT64_C(4000) * IPW_NS_PER_S; ns += ns / 7 + 1) {
        struct ipw_llm_gaps g = {0};

        ipw_llm_gaps_add(&g, ns);
        if (ns >= 16000 && ns < INT64_C(4000) * IPW_NS_PER_S)
            near_ns(ipw_llm_gaps_quantile(&g, 0.5), ns);
        assert_true(ipw_llm_gaps_quantile(&g, 0.5) <= ns);
        free(g.count);
    }
    {
        struct ipw_llm_gaps g = {0};

        ipw_llm_gaps_add(&g, INT64_MAX);
        ipw_llm_gaps_add(&g, -5);
        assert_int_equal(g.n, 2);
        assert_int_equal(ipw_llm_gaps_quantile(&g, 0.5), 0); /* one read: no gap at all */
        free(g.count);
    }
}

/* Few gaps are kept in another way than many; each gap ten times over has the same quantiles. */
static void few_gaps_are_like_many(void **state)
{
    uint64_t random = 7;

    (void)state;
    for (int n = 1; n <= IPW_LLM_GAPS_FEW + 2; n++) {
        struct ipw_llm_gaps few = {0}, many = {0};

        for (int i = 0; i < n; i++) {
            int64_t ns;

            random = random * 6364136223846793005u + 1442695040888963407u;
            ns = (int64_t)(random >> (30 + 30 * (i % 2)));
            ipw_llm_gaps_add(&few, ns);
            for (int k = 0; k < 10 * IPW_LLM_GAPS_FEW; k++) ipw_llm_gaps_add(&many, ns);
        }
        assert_int_equal(few.count != NULL, n > IPW_LLM_GAPS_FEW);
        for (int q = 0; q <= 64; q++) /* of a size that rounds nothing */
            assert_int_equal(ipw_llm_gaps_quantile(&few, q / 64.0),
                             ipw_llm_gaps_quantile(&many, q / 64.0));
        free(few.count);
        free(many.count);
    }
}

static void stamps_are_of_the_first(void **state)
{
    struct ipw_llm_times t = {0};

    (void)state;
    ipw_llm_times_event(&t, 10, 0); /* a role is no token */
    ipw_llm_times_event(&t, 20, IPW_SEEN_REASONING);
    ipw_llm_times_event(&t, 30, IPW_SEEN_REASONING);
    ipw_llm_times_event(&t, 40, IPW_SEEN_TEXT);
    ipw_llm_times_event(&t, 50, IPW_SEEN_CALL | IPW_SEEN_FINISH);
    ipw_llm_times_event(&t, 60, IPW_SEEN_USAGE);
    assert_int_equal(t.first_event_ns, 10);
    assert_int_equal(t.first_token_ns, 20);
    assert_int_equal(t.second_token_ns, 30);
    assert_int_equal(t.first_reasoning_ns, 20);
    assert_int_equal(t.first_text_ns, 40);
    assert_int_equal(t.first_call_ns, 50);
    assert_int_equal(t.last_token_ns, 50);
    assert_int_equal(t.gaps.n, 3);
    ipw_llm_times_release(&t);
    assert_null(t.gaps.count);
    assert_int_equal(t.first_event_ns, 0);
}

static void servers_own_times(void **state)
{
    static const struct {
        const char *text;
        int64_t queue, prefill, decode;
    } rows[] = {
        {NULL, 0, 0, 0},
        {"{}", 0, 0, 0},
        {"[1]", 0, 0, 0},
        {"{\"prompt_ms\":12.5,\"predicted_ms\":100}", 0, 12500000, 100000000},
        {"{\"queue_time_ms\":3,\"time_to_first_token_ms\":4,\"generation_time_ms\":5}", 3000000,
         4000000, 5000000},
        {"{\"prompt_ms\":-1,\"predicted_ms\":null,\"queue_time_ms\":1e99}", 0, 0, 0},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct ipw_llm_server_times t;

        ipw_llm_server_times(&t, rows[i].text);
        assert_int_equal(t.queue_ns, rows[i].queue);
        assert_int_equal(t.prefill_ns, rows[i].prefill);
        assert_int_equal(t.decode_ns, rows[i].decode);
    }
}

/* N-5: what a server may write.  Retry-After is the answer; the resets serve without it. */
static void n5_waits_that_are_told(void **state)
{
    static const struct {
        const char *text;
        int64_t ms;
    } resets[] = {{"1s", 1000}, {"6m0s", 360000}, {"20ms", 20},    {"1h2m3.5s", 3723500},
                  {"7", 7000},  {"0s", 0},        {"", -1},        {"soon", -1},
                  {"-1s", -1},  {"1x", -1},       {"1s junk", -1}, {"1e300s", 1000000000000}};
    static const struct {
        struct ipw_llm_told told;
        int64_t ms;
    } rows[] = {
        {{"", "", "", ""}, -1},
        {{"2", "", "", ""}, 2000},
        {{"2", "2500", "", ""}, 2500},
        {{"2", "500", "3s", "20ms"}, 2000},
        {{"1", "", "", "6m0s"}, 1000},
        {{"", "500", "3s", "6m0s"}, 500},
        {{"0", "", "1s", ""}, 0},
        {{"soon", "", "3s", "20ms"}, 3000},
        {{"", "", "3s", "6m0s"}, 120000}, /* the whole allowance: never a reason to give up */
        {{"1000000000", "", "", ""}, 1000000000000},
        {{"-1", "garbage", "x", NULL}, -1},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(resets); i++) {
        int64_t ns = ipw_llm_reset_after(resets[i].text);

        assert_int_equal(ns < 0 ? ns : ns / IPW_NS_PER_MS, resets[i].ms);
    }
    for (size_t i = 0; i < COUNT(rows); i++) {
        int64_t ns = ipw_llm_told_wait(&rows[i].told, 0);

        assert_int_equal(ns < 0 ? ns : ns / IPW_NS_PER_MS, rows[i].ms);
    }
}

UNIT(times)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quantiles_are_near),     cmocka_unit_test(every_size_has_a_bucket),
        cmocka_unit_test(few_gaps_are_like_many), cmocka_unit_test(stamps_are_of_the_first),
        cmocka_unit_test(servers_own_times),      cmocka_unit_test(n5_waits_that_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
