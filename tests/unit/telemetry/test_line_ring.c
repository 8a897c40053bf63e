/* Readers of a ring of lines: whole lines in order, what is lost is told, and memory is bounded. */
#include "telemetry/line_ring.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "unit/unit.h"

static void put(struct ipw_line_ring *ring, int n)
{
    char line[64];

    for (int i = 0; i < n; i++) {
        int k = snprintf(line, sizeof line, "line %06llu\n",
                         (unsigned long long)ipw_line_ring_next(ring));
        ipw_line_ring_put(ring, line, (size_t)k); /* 12 bytes */
    }
}

static void takes(struct ipw_line_reader *reader, struct ipw_line_ring *ring, size_t most,
                  uint64_t lost, uint64_t first, size_t n)
{
    struct ipw_buf out = IPW_BUF(IPW_MIB);
    uint64_t at = 99;

    assert_int_equal(ipw_line_reader_take(reader, ring, &out, most, &at), lost);
    assert_int_equal(at, first);
    assert_int_equal(out.len, 12 * n);
    for (size_t i = 0; i < n; i++) {
        char line[64];

        snprintf(line, sizeof line, "line %06llu\n", (unsigned long long)(first + i));
        assert_memory_equal(out.data + 12 * i, line, 12);
    }
    ipw_buf_release(&out);
}

static void readers_have_their_own_places(void **state)
{
    struct ipw_line_ring *ring = ipw_line_ring_new(1000); /* 83 lines */
    struct ipw_line_reader a, b;

    (void)state;
    ipw_line_reader_end(&a, ring);
    takes(&a, ring, 100, 0, 0, 0);
    put(ring, 20);
    ipw_line_reader_end(&b, ring);
    takes(&a, ring, 100, 0, 0, 8); /* whole lines only */
    takes(&a, ring, 5, 0, 8, 1);   /* one at least */
    put(ring, 3);
    takes(&a, ring, 1000, 0, 9, 14);
    takes(&b, ring, 1000, 0, 20, 3);
    takes(&b, ring, 1000, 0, 23, 0);
    ipw_line_ring_free(ring);
}

static void slow_reader_is_told(void **state)
{
    struct ipw_line_ring *ring = ipw_line_ring_new(1000);
    struct ipw_line_reader a;

    (void)state;
    put(ring, 10);
    ipw_line_reader_after(&a, ring, 4);
    put(ring, 1000);
    takes(&a, ring, 120, 1010 - 83 - 5, 927, 10);
    takes(&a, ring, 100000, 0, 937, 73);
    for (int i = 0; i < 500; i++) { /* lines begin everywhere in the ring */
        put(ring, 7);
        takes(&a, ring, 100000, 0, 1010 + 7 * (uint64_t)i, 7);
    }
    ipw_line_ring_free(ring);
}

static void going_on(void **state)
{
    struct ipw_line_ring *ring = ipw_line_ring_new(1000);
    struct ipw_line_reader a;

    (void)state;
    put(ring, 200); /* 117 to 199 are kept */
    ipw_line_reader_after(&a, ring, 197);
    takes(&a, ring, 1000, 0, 198, 2);
    ipw_line_reader_after(&a, ring, 199);
    takes(&a, ring, 1000, 0, 200, 0);
    ipw_line_reader_after(&a, ring, UINT64_MAX);
    takes(&a, ring, 1000, 0, 200, 0);
    ipw_line_reader_after(&a, ring, 116);
    takes(&a, ring, 24, 0, 117, 2);
    ipw_line_reader_after(&a, ring, 115);
    takes(&a, ring, 24, 1, 117, 2);
    ipw_line_reader_after(&a, ring, 0);
    takes(&a, ring, 24, 116, 117, 2);
    ipw_line_ring_free(ring);
    ipw_line_ring_free(NULL);
}

UNIT(line_ring)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(readers_have_their_own_places),
        cmocka_unit_test(slow_reader_is_told),
        cmocka_unit_test(going_on),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
