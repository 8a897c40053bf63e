#include "unit/base/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/table.h"
#include "unit/unit.h"

static bool is_text(const void *ud, uint32_t number, const void *thing)
{
    const char *const *texts = ud;

    return strcmp(texts[number], thing) == 0;
}

static void an_empty_table_has_nothing(void **state)
{
    struct ipw_table t = {0};

    (void)state;
    assert_int_equal(ipw_table_get(&t, 7, NULL), IPW_TABLE_NONE);
    ipw_table_remove(&t, 7, NULL);
    assert_int_equal(*ipw_table_at(&t, 7, NULL), IPW_TABLE_NONE);
    ipw_table_release(&t);
    assert_int_equal(ipw_table_get(&t, 7, NULL), IPW_TABLE_NONE);
    ipw_table_release(&t);
}

/* The hash is the same for all: only the texts tell them apart. */
static void texts_of_one_hash_stay_apart(void **state)
{
    static const char *const texts[] = {"a", "b", "", "a longer one"};
    struct ipw_table t = {.same = is_text, .ud = texts};

    (void)state;
    for (uint32_t i = 0; i < 4; i++) *ipw_table_at(&t, 5, texts[i]) = i;
    for (uint32_t i = 0; i < 4; i++) assert_int_equal(ipw_table_get(&t, 5, texts[i]), i);
    assert_int_equal(ipw_table_get(&t, 5, "c"), IPW_TABLE_NONE);
    ipw_table_remove(&t, 5, "b");
    assert_int_equal(ipw_table_get(&t, 5, "b"), IPW_TABLE_NONE);
    assert_int_equal(ipw_table_get(&t, 5, ""), 2);
    assert_int_equal(ipw_table_get(&t, 5, "a longer one"), 3);
    ipw_table_release(&t);
}

static void a_text_has_another_key_with_another_seed(void **state)
{
    (void)state;
    assert_true(ipw_table_text_key("q1", 0) == ipw_table_text_key("q1", 0));
    assert_true(ipw_table_text_key("q1", 0) != ipw_table_text_key("q1", 1));
    assert_true(ipw_table_text_key("q1", 0) != ipw_table_text_key("q2", 0));
}

/* Numbers in a row, and numbers that are equal in their lower bits: what is put, is found; what is
 * taken away, is not; the rest stays where its own search finds it. */
static void many_keys_come_and_go(void **state)
{
    enum { N = 20000 };
    static const unsigned shifts[] = {0, 32, 48};
    bool *there = ipw_calloc(N, sizeof *there);

    (void)state;
    for (size_t s = 0; s < 3; s++) {
        struct ipw_table t = {0};
        uint32_t random = 1;
        size_t n = 0;

        memset(there, 0, N * sizeof *there);
        for (size_t step = 0; step < 8 * N; step++) {
            uint32_t i;

            random = random * 1664525 + 1013904223;
            i = (random >> 8) % N;
            if (there[i]) {
                assert_int_equal(ipw_table_get(&t, (uint64_t)i << shifts[s], NULL), i);
                ipw_table_remove(&t, (uint64_t)i << shifts[s], NULL);
                n--;
            } else {
                uint32_t *at = ipw_table_at(&t, (uint64_t)i << shifts[s], NULL);

                assert_int_equal(*at, IPW_TABLE_NONE);
                *at = i;
                n++;
            }
            there[i] = !there[i];
            assert_int_equal(t.n, n);
        }
        for (uint32_t i = 0; i < N; i++)
            assert_int_equal(ipw_table_get(&t, (uint64_t)i << shifts[s], NULL),
                             there[i] ? i : IPW_TABLE_NONE);
        ipw_table_release(&t);
    }
    free(there);
}

static bool is_number(const void *ud, uint32_t number, const void *thing)
{
    (void)ud;
    return number == *(const uint32_t *)thing;
}

static void keys_of_one_hash_come_and_go(void **state)
{
    enum { KEYS = 3000 };
    static bool there[KEYS];
    struct ipw_table t = {.same = is_number};
    uint64_t random = 20;
    size_t n = 0;

    (void)state;
    for (int i = 0; i < 100000; i++) {
        uint32_t key, got, *at;
        uint64_t hash;

        random = random * 6364136223846793005ULL + 1442695040888963407ULL;
        key = (uint32_t)(random >> 33) % KEYS;
        hash = key / 3 * 64; /* many meet in one place */
        got = ipw_table_get(&t, hash, &key);
        assert_int_equal(got, there[key] ? key : IPW_TABLE_NONE);
        if (random >> 63) {
            at = ipw_table_at(&t, hash, &key);
            assert_int_equal(*at, got);
            *at = key;
            n += !there[key];
            there[key] = true;
        } else {
            ipw_table_remove(&t, hash, &key);
            n -= there[key];
            there[key] = false;
        }
        assert_int_equal(t.n, n);
    }
    ipw_table_release(&t);
}

static void a_number_can_be_replaced(void **state)
{
    struct ipw_table t = {0};

    (void)state;
    *ipw_table_at(&t, 0, NULL) = 3;
    *ipw_table_at(&t, 0, NULL) = 4;
    assert_int_equal(ipw_table_get(&t, 0, NULL), 4);
    assert_int_equal(t.n, 1);
    ipw_table_release(&t);
}

UNIT(table)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_table_has_nothing),
        cmocka_unit_test(texts_of_one_hash_stay_apart),
        cmocka_unit_test(a_text_has_another_key_with_another_seed),
        cmocka_unit_test(many_keys_come_and_go),
        cmocka_unit_test(keys_of_one_hash_come_and_go),
        cmocka_unit_test(a_number_can_be_replaced),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
