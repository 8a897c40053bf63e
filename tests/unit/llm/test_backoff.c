/* How long a server asks to be left alone: dates, seconds, Go's durations, and what is none of
 * them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "llm/client_priv.h"
#include "unit/unit.h"

#define S IPW_NS_PER_S

/* 2026-11-21T02:54:00Z */
static const int64_t now_ns = INT64_C(1795229640) * S;

static void dates_and_seconds(void **state)
{
    static const struct {
        const char *text;
        int64_t want_ns;
    } cases[] = {
        {NULL, -1},
        {"", -1},
        {"5", 5 * S},
        {"0", 0},
        {"1.5", 3 * S / 2},
        {"-1", -1},
        {"1e12", INT64_C(1000000000) * S},
        {"soon", -1},
        {"Sat, 21 Nov 2026 02:54:08 GMT", 8 * S},
        {"Sat, 21 Nov 2026 02:53:00 GMT", 0}, /* it is over */
        {"Sat, 21 Nov 2026 02:54:08", -1},
        {"Sat, 21 Nov 2026 02:54:08 CET", -1},
        {"Sat, 21 Nob 2026 02:54:08 GMT", -1},
        {"Sat, 21 ovD 2026 02:54:08 GMT", -1}, /* letters that stand in a row of months */
        {"Sat, 21 No 2026 02:54:08 GMT", -1},
        {"Sat, 21 Nov 1969 02:54:08 GMT", -1},
        {"Sat, 21 Nov 9999 02:54:08 GMT", INT64_C(1000000000) * S},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (ipw_llm_retry_after(cases[i].text, now_ns) != cases[i].want_ns)
            fail_msg("%s: %lld", cases[i].text,
                     (long long)ipw_llm_retry_after(cases[i].text, now_ns));
    }
}

static void durations(void **state)
{
    static const struct {
        const char *text;
        int64_t want_ns;
    } cases[] = {
        {NULL, -1},
        {"", -1},
        {"1s", S},
        {"6m0s", 360 * S},
        {"20ms", S / 50},
        {"90us", 90000},
        {"7ns", 7},
        {"12", 12 * S},
        {"1h2m3.5s", 3723 * S + S / 2},
        {"s", -1},
        {"-1s", -1},
        {"1x", -1},
        {"1s and more", -1},
        {"1s-1s", -1},
        {"1h2m3", 3723 * S},
        {"9999999999h", INT64_C(1000000000) * S},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (ipw_llm_reset_after(cases[i].text) != cases[i].want_ns)
            fail_msg("%s: %lld", cases[i].text, (long long)ipw_llm_reset_after(cases[i].text));
    }
}

/* "When" goes before what is told of the allowance; the longer of two goes. */
static void the_longest_counts(void **state)
{
    struct ipw_llm_told told = {.reset_requests = "2s", .reset_tokens = "6m0s"};

    (void)state;
    assert_int_equal(ipw_llm_told_wait(&told, now_ns),
                     IPW_LLM_MOST_WAIT_NS < 360 * S ? IPW_LLM_MOST_WAIT_NS : 360 * S);
    told.reset_tokens = "900ms";
    assert_int_equal(ipw_llm_told_wait(&told, now_ns), 2 * S);
    told.retry_after = "1";
    assert_int_equal(ipw_llm_told_wait(&told, now_ns), S);
    told.retry_after_ms = "250";
    assert_int_equal(ipw_llm_told_wait(&told, now_ns), S);
    told.retry_after_ms = "1250";
    assert_int_equal(ipw_llm_told_wait(&told, now_ns), S + S / 4);
    told.retry_after_ms = "1e15";
    assert_int_equal(ipw_llm_told_wait(&told, now_ns), INT64_C(1000000000) * S);
    told = (struct ipw_llm_told){.retry_after_ms = "-3"};
    assert_int_equal(ipw_llm_told_wait(&told, now_ns), -1);
    told.retry_after_ms = "a while";
    assert_int_equal(ipw_llm_told_wait(&told, now_ns), -1);
    told.retry_after_ms = "";
    assert_int_equal(ipw_llm_told_wait(&told, now_ns), -1);
}

/* Twice as long each time, never beyond eight seconds, never nothing. */
static void our_own_waits_have_ends(void **state)
{
    static const struct {
        int64_t base_ns, most_ns;
        int n;
    } cases[] = {{S, S, 0},           {S, 2 * S, 1}, {S, 8 * S, 9}, {3 * S, 8 * S, 2},
                 {100 * S, 8 * S, 0}, {0, 1, 3},     {-5, 1, 0}};
    uint64_t random = 1;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int k = 0; k < 200; k++)
            assert_in_range(ipw_llm_backoff(&random, cases[i].base_ns, cases[i].n), 1,
                            cases[i].most_ns);
}

UNIT(backoff)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dates_and_seconds),
        cmocka_unit_test(durations),
        cmocka_unit_test(the_longest_counts),
        cmocka_unit_test(our_own_waits_have_ends),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
