/* The book of a device: records of what was told, answers in between, and what it keeps. */
#include "ledger/book.h"

#include "ledger/ledger.h"
#include "ledger/ledger_priv.h"
#include "sim/ask.h"
#include "unit/energy/energy_test.h"
#include "unit/unit.h"

#define GPU IPW_DOMAIN_GPU

/* 100 W, read every 10 ms from t0 on; returns the last instant. */
static double read_on(struct ipw_ledger *l, double t0, double t1)
{
    double t = t0;

    for (; t <= t1; t += 0.01) {
        int64_t v = J(100 * t);

        ipw_ledger_row(l, 0, 1, S(t), &v);
    }
    return t;
}

static struct ipw_ledger *board(void)
{
    struct ipw_channel c = test_counter("gpu0", GPU, 0, 400);

    return ipw_ledger_new(&c, 1);
}

/* Two queries side by side for 2 s, 200 J, with 20 W idle power: by each rule. */
static void test_rules(void **state)
{
    static const struct {
        enum ipw_share share;
        enum ipw_phase a, b;
        double a_j;
    } cases[] = {
        {IPW_SHARE_EQUAL, IPW_PHASE_DECODE, IPW_PHASE_TOOL, 100},
        {IPW_SHARE_MODEL_TIME, IPW_PHASE_DECODE, IPW_PHASE_TOOL, 180},
        {IPW_SHARE_MODEL_TIME, IPW_PHASE_AGENT, IPW_PHASE_PREFILL, 20},
        {IPW_SHARE_MODEL_TIME, IPW_PHASE_PREFILL, IPW_PHASE_DECODE, 100},
        {IPW_SHARE_MODEL_TIME, IPW_PHASE_TOOL, IPW_PHASE_AGENT, 100},
        {IPW_SHARE_MODEL_TIME, IPW_PHASE_LM, IPW_PHASE_WAIT, 180},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ipw_ledger *l = board();
        int64_t a, b;

        ipw_ledger_set_share(l, cases[i].share);
        ipw_ledger_set_baseline(l, GPU, 20);
        read_on(l, 1, 3);
        a = ipw_ledger_query_begin(l, S(4));
        b = ipw_ledger_query_begin(l, S(4));
        ipw_ledger_phase(l, a, cases[i].a, S(4));
        ipw_ledger_phase(l, b, cases[i].b, S(4));
        ipw_ledger_query_end(l, a, S(6));
        ipw_ledger_query_end(l, b, S(6));
        read_on(l, 3.01, 8);
        assert_near(ipw_ledger_figure(l, ask_query(a, GPU, S(4), S(6))).j, cases[i].a_j, 0.01);
        assert_near(ipw_ledger_figure(l, ask_query(b, GPU, S(4), S(6))).j, 200 - cases[i].a_j,
                    0.01);
        ipw_ledger_free(l);
    }
}

/* A window's end that was not told is exact in the cells next to what was told.  Alone, then two
 * at a time from 6 to 8 s. */
static void test_between_what_was_told(void **state)
{
    static const struct {
        double t0, t1, j;
    } cases[] = {
        {4, 5, 100},   {4.5, 5.5, 100}, {5, 6, 100},     {6, 8, 100},   {6.5, 7, 25},
        {7.5, 9, 125}, {5.5, 6.5, 75},  {8.5, 9.5, 100}, {9.5, 10, 50}, {4, 10, 500},
    };
    struct ipw_ledger *l = board();
    int64_t a, b;

    (void)state;
    read_on(l, 1, 3);
    a = ipw_ledger_query_begin(l, S(4));
    b = ipw_ledger_query_begin(l, S(6));
    ipw_ledger_instant(l, a, S(7));
    ipw_ledger_query_end(l, b, S(8));
    read_on(l, 3.01, 9);
    ipw_ledger_query_end(l, a, S(10));
    read_on(l, 9.01, 12);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_near(ipw_ledger_figure(l, ask_query(a, GPU, S(cases[i].t0), S(cases[i].t1))).j,
                    cases[i].j, 0.01);
    ipw_ledger_free(l);
}

/* An end that comes after its time was shared: the query has its share up to there, and the books
 * balance. */
static void test_told_late(void **state)
{
    struct ipw_ledger *l = board();
    struct ipw_figure x, y;
    int64_t a, b;

    (void)state;
    read_on(l, 1, 3);
    a = ipw_ledger_query_begin(l, S(4));
    b = ipw_ledger_query_begin(l, S(4));
    ipw_ledger_query_end(l, b, S(6));
    read_on(l, 3.01, 8);
    ipw_ledger_query_end(l, a, S(5)); /* shared up to 6 */
    assert_true(ipw_ledger_query_covered_ns(l, a) >= S(5));
    x = ipw_ledger_figure(l, ask_query(a, GPU, S(4), S(5)));
    y = ipw_ledger_figure(l, ask_query(b, GPU, S(4), S(6)));
    assert_near(x.j, 100, 0.01);
    assert_near(x.j + y.j + ipw_ledger_figure(l, ask_idle(GPU, S(1), S(8))).j, 700, 1e-6);
    ipw_ledger_free(l);
}

/* Only a damaged file goes back in time: the query ends with the newest that was told of it. */
static void test_back_in_time(void **state)
{
    struct ipw_ledger *l = board();
    int64_t q;

    (void)state;
    read_on(l, 1, 3);
    q = ipw_ledger_query_begin(l, S(4));
    ipw_ledger_phase(l, q, IPW_PHASE_DECODE, S(9));
    ipw_ledger_instant(l, q, S(10));
    ipw_ledger_query_end(l, q, S(6));
    ipw_ledger_phase(l, q, IPW_PHASE_TOOL, S(5)); /* after its end */
    ipw_ledger_instant(l, q, S(5));
    read_on(l, 3.01, 12);
    assert_near(ipw_ledger_figure(l, ask_query(q, GPU, S(4), S(6))).j, 600, 1e-3);
    ipw_ledger_forget(l, q);
    read_on(l, 12.01, 13);
    assert_near(ipw_ledger_figure(l, ask_idle(GPU, S(1), S(13))).j, 600, 1e-3);
    ipw_ledger_free(l);
}

/* The end of a call tells that its first token was not seen: its phase is told again. */
static void test_phase_told_again(void **state)
{
    struct ipw_ledger *l = board();
    const struct ipw_phase_line *line = &l->books[0]->steps.line;
    int64_t q;

    (void)state;
    read_on(l, 1, 3);
    q = ipw_ledger_query_begin(l, S(4));
    ipw_ledger_phase(l, q, IPW_PHASE_AGENT, S(4));
    ipw_ledger_phase(l, q, IPW_PHASE_PREFILL, S(5));
    ipw_ledger_phase(l, q, IPW_PHASE_LM, S(5));
    ipw_ledger_phase(l, q, IPW_PHASE_AGENT, S(6));
    for (int p = 0; p < IPW_PHASE_COUNT; p++)
        assert_int_equal(line->points[ipw_phase_line_find(line, S(5.5))].count[p],
                         p == IPW_PHASE_LM);
    ipw_ledger_query_end(l, q, S(7));
    read_on(l, 3.01, 8);
    assert_near(ipw_ledger_figure(l, ask_query(q, GPU, S(5), S(6))).j, 100, 1e-3);
    ipw_ledger_free(l);
}

/* One call of an hour beside short queries: what is kept of the hour is its readings. */
static void test_a_call_of_an_hour(void **state)
{
    struct ipw_ledger *l = board();
    int64_t hour = ipw_ledger_query_begin(l, S(1)), q = -1;
    double at_the_end = 0;
    size_t most = 0;

    (void)state;
    ipw_ledger_phase(l, hour, IPW_PHASE_PREFILL, S(1));
    for (double t = 1; t < 3600; t += 0.5) {
        int64_t v = J(100 * t);

        ipw_ledger_row(l, 0, 1, S(t), &v);
        if (q >= 0) {
            ipw_ledger_query_end(l, q, S(t - 0.01));
            at_the_end += ipw_ledger_figure(l, ask_query(q, GPU, S(t - 0.4), S(t - 0.01))).j;
            ipw_ledger_forget(l, q);
        }
        q = ipw_ledger_query_begin(l, S(t + 0.1));
        ipw_ledger_phase(l, q, IPW_PHASE_DECODE, S(t + 0.1));
        if (l->books[0]->queue.n > most) most = l->books[0]->queue.n;
        if (l->n_queries > most) most = l->n_queries;
        if (l->books[0]->steps.line.n > most) most = l->books[0]->steps.line.n;
    }
    assert_true(most < 200);
    assert_true(ipw_ledger_query(l, hour)->accounts[0].n < 10);
    assert_true(at_the_end > 100000);
    ipw_ledger_free(l);
}

UNIT(book)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rules),
        cmocka_unit_test(test_between_what_was_told),
        cmocka_unit_test(test_told_late),
        cmocka_unit_test(test_back_in_time),
        cmocka_unit_test(test_phase_told_again),
        cmocka_unit_test(test_a_call_of_an_hour),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
