/* The rows of a summary: where they lie, and what of them stays in memory. */
#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

#include "report/summary.h"
#include "report/write_summary.h"
#include "unit/report/fixture.h"
#include "unit/unit.h"

static void add_one(struct ipw_summary *s, const char *id, int index, const char *text)
{
    double j = 0.1 * (index % 7);
    struct ipw_query_trace q = {.id = id, .index = index, .outcome = "error", .error = text};
    struct ipw_query_details r = {
        .answer = text, .is_resolved = -1, .cost_usd = NAN, .metadata = "{\"level\":3}"};

    q.energy[IPW_DOMAIN_CPU] =
        (struct ipw_figure){.estimated = true, .estimate_j = j, .lo_j = j / 2, .hi_j = j + 1};
    q.account[IPW_DOMAIN_CPU].waste_j = j;
    ipw_summary_add(s, &q, &r);
    ipw_query_trace_release(&q);
}

/* However many queries there were, what stays in memory is the same.  Texts and the bounds of
 * estimates are kept of the queries that the table has room for, whichever order they come in, and
 * of the first one without an answer, whose error is told when every query fails. */
static void keeps_nothing_of_a_query(void **state)
{
    enum { N = 50000, SOME = 5000 };
    char text[401], id[40];
    struct ipw_summary s;
    struct ipw_totals t;
    size_t some = 0, all;
    double sum_j = 0;

    (void)state;
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    ipw_summary_init(&s);
    s.place.folder = "/tmp";
    for (int i = N - 1; i >= 0; i--) {
        struct mallinfo2 now = mallinfo2();

        if (i == N - SOME) some = now.uordblks + now.hblkhd;
        snprintf(id, sizeof id, "%08d-2530-4b1d-ad13-2cded6237b2e", i);
        add_one(&s, id, i, text);
        sum_j += 0.1 * (i % 7);
    }
    all = mallinfo2().uordblks + mallinfo2().hblkhd;
    if (all > some + 2 * IPW_SPILL_BYTES)
        fail_msg("%zu bytes after %d, %zu after %d", some, SOME, all, N);
    assert_int_equal(s.n_shown, IPW_SUMMARY_SHOWN);
    for (size_t i = 0; i < s.n_shown; i++) {
        const struct ipw_summary_shown *shown = &s.shown[i];

        assert_in_range(shown->index, 0, IPW_SUMMARY_SHOWN - 1);
        assert_int_equal(shown->row, N - 1 - shown->index);
        assert_string_equal(shown->answer, text);
        assert_string_equal(shown->error, text);
        assert_string_equal(shown->level, "3");
        assert_true(shown->hi_j[IPW_DOMAIN_CPU] ==
                    ipw_summary_row(&s, shown->row)->energy[IPW_DOMAIN_CPU].j + 1);
    }
    assert_string_equal(s.unanswered.id, "00049999-2530-4b1d-ad13-2cded6237b2e");
    assert_string_equal(s.unanswered.error, text);
    assert_string_equal(ipw_summary_row(&s, N - 1)->task, "00000000-2530-4b1d-ad13-2cded6237b2e");
    ipw_summary_totals(&t, &s);
    assert_true(t.estimated[IPW_DOMAIN_CPU].total == sum_j); /* added in the same order */
    assert_true(t.waste[IPW_DOMAIN_CPU].total == sum_j);
    assert_true(isnan(t.energy[IPW_DOMAIN_CPU].total));
    assert_int_equal(t.failed, N);
    ipw_summary_release(&s);
}

/* Tasks are told apart by the whole id, however long, and a long one is no shorter one's. */
static void tells_long_ids_apart(void **state)
{
    static const size_t lengths[] = {62, 63, 64, 65, 20000, 20001};
    enum { N = sizeof lengths / sizeof *lengths };
    struct ipw_summary s;

    (void)state;
    ipw_summary_init(&s);
    for (int i = 0; i < 2 * N; i++) { /* each twice */
        char id[20002];

        memset(id, 'a', lengths[i % N]);
        id[lengths[i % N]] = '\0';
        add_one(&s, id, i, "x");
        assert_string_equal(s.shown[i].id, id);
        for (int k = 0; k < i; k++) {
            char task[64];

            memcpy(task, ipw_summary_row(&s, (size_t)k)->task, sizeof task);
            assert_true((strcmp(task, ipw_summary_row(&s, (size_t)i)->task) == 0) == (k + N == i));
        }
    }
    ipw_summary_release(&s);
}

/* The same queries, once in memory and once in a file: the same summary.json, to the byte. */
static void a_file_changes_no_figure(void **state)
{
    enum { N = 3 * IPW_SPILL_BYTES / sizeof(struct ipw_summary_row) + 7 };
    static const char *const outcomes[] = {"answered", "error", "timeout", "interrupted"};
    struct ipw_summary_run run = IPW_SUMMARY_RUN_UNKNOWN;
    struct ipw_buf texts[2] = {IPW_BUF(IPW_MIB), IPW_BUF(IPW_MIB)};

    (void)state;
    for (int file = 0; file < 2; file++) {
        struct ipw_summary s;

        ipw_summary_init(&s);
        s.place.folder = file ? "/tmp" : NULL;
        for (unsigned i = 0; i < N; i++) {
            char id[16];
            int x = (int)(i * 2654435761u >> 8);
            struct made m = {id,
                             "a",
                             outcomes[x % 97 ? 0 : x % 4],
                             NULL,
                             NULL,
                             x % 3 - 1,
                             x % 5,
                             x % 4,
                             x % 50 ? x % 999 : -1,
                             x % 77,
                             0.001 * (x % 1013),
                             x % 31 ? 0.1 * (x % 503) : NAN,
                             0.3 * (x % 211),
                             IPW_PROV_MEASURED};

            snprintf(id, sizeof id, "q%u", x % 301);
            add_made(&s, &m, (int)i);
        }
        assert_int_equal(ipw_summary_write(&texts[file], &s, &run, NULL), 0);
        assert_int_equal(s.rows.in_file > 0, file);
        ipw_summary_release(&s);
    }
    assert_false(texts[0].failed);
    assert_string_equal(ipw_buf_str(&texts[0]), ipw_buf_str(&texts[1]));
    ipw_buf_release(&texts[0]);
    ipw_buf_release(&texts[1]);
}

/* Rows that cannot be read back are an error, and never a summary. */
static void unreadable_rows_are_an_error(void **state)
{
    struct ipw_summary_run run = IPW_SUMMARY_RUN_UNKNOWN;
    struct ipw_buf text = IPW_BUF(IPW_MIB);
    struct ipw_err err = {0};
    struct ipw_summary s;

    (void)state;
    ipw_summary_init(&s);
    s.place.folder = "/tmp";
    for (int i = 0; i < 3000; i++) add_one(&s, "q", i, "x");
    assert_true(s.rows.in_file > 0);
    assert_int_equal(ftruncate(s.rows.fd, 1000), 0);
    assert_int_equal(ipw_summary_write(&text, &s, &run, &err), IPW_EIO);
    assert_non_null(strstr(err.text, "/tmp: the temporary file of the queries' figures cannot be "
                                     "read: Input/output error"));
    ipw_buf_release(&text);
    ipw_summary_release(&s);
}

UNIT(summary_rows)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keeps_nothing_of_a_query),
        cmocka_unit_test(tells_long_ids_apart),
        cmocka_unit_test(a_file_changes_no_figure),
        cmocka_unit_test(unreadable_rows_are_an_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
