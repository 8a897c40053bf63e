/* The limit of requests in flight: who waits, in which order, and what a cancelled one leaves. */
#include "client_world.h"
#include "unit/unit.h"

enum { CALLS = 7 };

struct party {
    struct world world;
    struct guest {
        struct party *party;
        struct ipw_llm_call *call;
        int held, done;
        int64_t waited_ns;
    } guests[CALLS];
    size_t in_flight, most_seen, over;
    int order[CALLS], n_order;
};

static void guest_held(void *ud, int64_t t_ns)
{
    struct guest *g = ud;

    assert_true(t_ns > 0);
    g->held++;
}

static void guest_attempt(void *ud, int attempt, int64_t t_ns, const char *body, size_t n)
{
    struct guest *g = ud;
    struct party *p = g->party;

    (void)t_ns, (void)body, (void)n;
    g->waited_ns = ipw_llm_held_ns(g->call);
    if (attempt == 1) p->order[p->n_order++] = (int)(g - p->guests);
    if (++p->in_flight > p->most_seen) p->most_seen = p->in_flight;
    assert_int_equal(p->in_flight, ipw_llm_in_flight(p->world.llm));
}

static void guest_end(void *ud, int64_t t_ns, const struct ipw_lm_facts *facts,
                      const struct ipw_chat_reply *reply, int64_t next_try_ns)
{
    (void)t_ns, (void)facts, (void)reply, (void)next_try_ns;
    ((struct guest *)ud)->party->in_flight--;
}

static void guest_done(void *ud, int code, struct ipw_chat_reply *reply, const struct ipw_err *err,
                       bool retryable)
{
    struct guest *g = ud;

    (void)reply, (void)err, (void)retryable;
    assert_int_equal(code, 0);
    g->done++;
    g->call = NULL;
    if (++g->party->over == CALLS) ipw_loop_stop(g->party->world.loop);
}

static void party_start(struct party *p, const struct script_line *script, size_t n, size_t most)
{
    struct ipw_chat_request request = {.model = "m",
                                       .messages = &MESSAGE,
                                       .n_messages = 1,
                                       .temperature = NAN,
                                       .top_p = NAN,
                                       .seed = INT64_MIN,
                                       .max_tokens = -1};

    *p = (struct party){0};
    world_open(&p->world, script, n, (struct ipw_llm_options){.max_retries = 2});
    ipw_llm_set_most(p->world.llm, most);
    for (int i = 0; i < CALLS; i++) {
        struct ipw_llm_callbacks on = {guest_attempt, guest_end, guest_done,
                                       &p->guests[i], NULL,      guest_held};
        p->guests[i].party = p;
        assert_int_equal(ipw_llm_start(&p->guests[i].call, p->world.llm, &request, &on, NULL), 0);
    }
    assert_int_equal(ipw_llm_calls(p->world.llm), CALLS);
}

static void party_end(struct party *p)
{
    assert_int_equal(ipw_llm_calls(p->world.llm), 0);
    assert_int_equal(ipw_llm_in_flight(p->world.llm), 0);
    world_close(&p->world);
}

/* Repeats pass the gate like first attempts; nobody overtakes. */
static void as_many_as_may_be(void **state)
{
    static const struct script_line script[] = {{ERROR("503 x", "busy"), THEN_CLOSE},
                                                {OK_STREAM, THEN_CLOSE}};
    static const size_t mosts[] = {1, 2, 3, CALLS, 0};

    (void)state;
    for (size_t m = 0; m < COUNT(mosts); m++) {
        size_t most = mosts[m] ? mosts[m] : CALLS;
        struct party p;

        party_start(&p, script, COUNT(script), mosts[m]);
        ipw_loop_run(p.world.loop);
        assert_int_equal(p.most_seen, most);
        for (int i = 0; i < CALLS; i++) {
            assert_int_equal(p.guests[i].done, 1);
            assert_int_equal(p.order[i], i);
            if ((size_t)i < most && mosts[m] != 1) continue;
            assert_true(mosts[m] == 0 || i == 0 || p.guests[i].held >= 1);
            assert_true(mosts[m] == 0 || i == 0 || p.guests[i].waited_ns > 0);
        }
        party_end(&p);
    }
}

static void stop(void *ud) { ipw_loop_stop(ud); }
static void let_more(void *ud) { ipw_llm_set_most(ud, 3); }

/* One who waits can leave, from any place in the line; the limit can grow meanwhile. */
static void who_waits_can_leave(void **state)
{
    static const struct script_line script[] = {{OK_STREAM, THEN_CLOSE}};
    static const int leavers[] = {6, 1, 3};
    struct party p;

    (void)state;
    party_start(&p, script, 1, 1);
    while (!p.guests[CALLS - 1].held) { /* all stand in the line */
        ipw_defer_start(p.world.loop, stop, p.world.loop);
        ipw_loop_run(p.world.loop);
    }
    for (size_t i = 0; i < COUNT(leavers); i++) {
        if (p.guests[leavers[i]].call) {
            ipw_llm_cancel(p.guests[leavers[i]].call);
            p.over++;
        }
    }
    ipw_defer_start(p.world.loop, let_more, p.world.llm);
    ipw_loop_run(p.world.loop);
    for (int i = 0; i < CALLS; i++) assert_int_equal(p.guests[i].done, i != 6 && i != 1 && i != 3);
    assert_true(p.most_seen <= 3);
    party_end(&p);
}

UNIT(client_in_flight)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_many_as_may_be),
        cmocka_unit_test(who_waits_can_leave),
    };
    return cmocka_run_group_tests(tests, global_init, global_release);
}
