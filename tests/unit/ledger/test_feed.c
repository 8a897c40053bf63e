/* The feed's queries in flight: found by number, whatever their order, and forgotten when
 * booked. */
#include <string.h>

#include "base/mem.h"
#include "ledger/feed.h"

#include "sim/ask.h"
#include "unit/energy/energy_test.h"
#include "unit/unit.h"

#define QUERIES 300

static const struct ipw_ledger_rules here = {.lm_remote = false};

static void tell(struct ipw_feed *f, enum ipw_event_kind kind, int32_t query, int64_t t_ns)
{
    struct ipw_event e = {.kind = kind, .query = query, .t_ns = t_ns};

    ipw_feed_event(f, &e);
}

static int64_t book(struct ipw_feed *f, int32_t query, int64_t t0_ns, int64_t t1_ns)
{
    struct ipw_query_trace trace = {.index = query, .start_ns = t0_ns, .end_ns = t1_ns};
    struct ipw_figure figure;

    ipw_feed_finish(f, &trace);
    figure = trace.energy[IPW_DOMAIN_CPU];
    assert_true(figure.known);
    ipw_query_trace_release(&trace);
    return (int64_t)(figure.j * 1e6 + 0.5);
}

/* Numbers come in any order (7 and QUERIES have no common factor), and are booked in another
 * one. */
static void test_any_order(void **state)
{
    struct ipw_channel c = test_counter("package-0", IPW_DOMAIN_CPU, 0, 400);
    struct ipw_ledger *l = ipw_ledger_new(&c, 1);
    struct ipw_feed *f = ipw_feed_new(l);
    int64_t v = 0, sum = 0, total;

    (void)state;
    ipw_feed_describe(f, &c, 1, &here);
    for (int i = 0; i <= 100; i++, v += J(1)) ipw_feed_row(f, 0, 1, S(1) + i * S(0.01), &v);
    for (int32_t i = 0; i < QUERIES; i++)
        tell(f, IPW_EV_QUERY_START, i * 7 % QUERIES, S(1.1) + i * 1000);
    tell(f, IPW_EV_QUERY_START, 5, S(1.2)); /* a damaged record: it is in flight already */
    for (int32_t i = 0; i < QUERIES; i++) assert_int_equal(ipw_feed_ordinal(f, i * 7 % QUERIES), i);
    assert_int_equal(ipw_feed_ordinal(f, QUERIES), -1);
    assert_int_equal(ipw_feed_ordinal(f, -1), -1);
    for (int32_t i = 0; i < QUERIES; i++)
        tell(f, IPW_EV_QUERY_END, i * 11 % QUERIES, S(1.5) + i * 1000);
    tell(f, IPW_EV_QUERY_END, 5, S(1.6)); /* it has left */
    for (int i = 101; i <= 120; i++, v += J(1)) ipw_feed_row(f, 0, 1, S(1) + i * S(0.01), &v);
    for (int32_t i = 0; i < QUERIES; i++) {
        int32_t query = i * 11 % QUERIES;
        int64_t begun = ipw_feed_ordinal(f, query);

        sum += book(f, query, S(1.1) + begun * 1000, S(1.5) + i * 1000);
        assert_int_equal(ipw_feed_ordinal(f, query), -1);
    }
    total = (int64_t)(ipw_ledger_figure(l, ask_total(IPW_DOMAIN_CPU, S(1), S(2.2))).j * 1e6 + 0.5);
    total -= (int64_t)(ipw_ledger_figure(l, ask_idle(IPW_DOMAIN_CPU, S(1), S(2.2))).j * 1e6 + 0.5);
    assert_int_equal(sum, total);
    ipw_feed_free(f);
    ipw_ledger_free(l);
}

/* A damaged record whose clock goes back, and a run that is cut: what is in flight leaves. */
static void test_back_in_time_and_cut(void **state)
{
    struct ipw_channel c = test_counter("package-0", IPW_DOMAIN_CPU, 0, 400);
    struct ipw_ledger *l = ipw_ledger_new(&c, 1);
    struct ipw_feed *f = ipw_feed_new(l);
    int64_t v = 0;

    (void)state;
    ipw_feed_describe(f, &c, 1, &here);
    for (int i = 0; i <= 100; i++, v += J(1)) ipw_feed_row(f, 0, 1, S(1) + i * S(0.01), &v);
    tell(f, IPW_EV_QUERY_START, 3, S(1.5));
    tell(f, IPW_EV_QUERY_START, 1, S(1.2));
    tell(f, IPW_EV_QUERY_START, 2, S(1.4));
    tell(f, IPW_EV_QUERY_END, 2, S(1.7));
    ipw_feed_cut(f, S(1.9));
    for (int32_t query = 1; query <= 3; query++)
        assert_true(book(f, query, S(1.5), query == 2 ? S(1.7) : S(1.9)) > 0);
    ipw_feed_free(f);
    ipw_ledger_free(l);
}

/* A sub-model on another machine: its call has no joules here, those of the run's model keep
 * theirs, and the query as a whole says that a part of it was elsewhere. */
static void test_the_machine_belongs_to_the_call(void **state)
{
    const struct ipw_ledger_rules rules = {.sub_remote = "http://far:1/v1"};
    const char *asked[] = {"http://127.0.0.1:1/v1", "http://far:1/v1"};

    (void)state;
    for (size_t far = 0; far < 2; far++) { /* which of the two calls goes there */
        struct ipw_channel c = test_counter("package-0", IPW_DOMAIN_CPU, 0, 400);
        struct ipw_query_trace trace = {.index = 0, .start_ns = S(1.1), .end_ns = S(1.5)};
        struct ipw_ledger *l = ipw_ledger_new(&c, 1);
        struct ipw_feed *f = ipw_feed_new(l);
        int64_t v = 0;

        ipw_feed_describe(f, &c, 1, &rules);
        for (int i = 0; i <= 100; i++, v += J(1)) ipw_feed_row(f, 0, 1, S(1) + i * S(0.01), &v);
        tell(f, IPW_EV_QUERY_START, 0, S(1.1));
        tell(f, IPW_EV_QUERY_END, 0, S(1.5));
        trace.n_turns = 2;
        trace.turns = ipw_calloc(2, sizeof *trace.turns);
        for (size_t i = 0; i < 2; i++) {
            struct ipw_turn *turn = &trace.turns[i];

            turn->start_ns = S(1.1) + (int64_t)i * S(0.2);
            turn->end_ns = turn->start_ns + S(0.2);
            turn->endpoint = asked[i == far];
            turn->n_spans = 1;
            turn->spans = ipw_calloc(1, sizeof *turn->spans);
            turn->spans[0] = (struct ipw_span){
                .kind = IPW_SPAN_LM, .start_ns = turn->start_ns, .end_ns = turn->end_ns};
            ipw_turn_span_figures(turn);
            turn->energy = ipw_turn_figures();
        }
        trace.before.energy = ipw_turn_figures();
        ipw_feed_finish(f, &trace);
        for (size_t i = 0; i < 2; i++) {
            const struct ipw_figure *figure = &trace.turns[i].spans[0].energy[IPW_DOMAIN_CPU];

            assert_true(figure->known == (i != far));
            if (i == far) assert_string_equal(figure->reason, "remote");
        }
        assert_true(trace.energy[IPW_DOMAIN_CPU].known); /* of this machine */
        assert_int_equal(ipw_turn_lm_domains(&trace), 0);
        ipw_query_trace_release(&trace);
        ipw_feed_free(f);
        ipw_ledger_free(l);
    }
}

UNIT(feed)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_any_order),
        cmocka_unit_test(test_back_in_time_and_cut),
        cmocka_unit_test(test_the_machine_belongs_to_the_call),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
