/* Cancelling a call: in flight, between attempts, before the first, inside its callbacks. */
#include "client_world.h"
#include "unit/unit.h"

static void wake(void *ud) { ipw_wakeup_send(ud); }

static void cancel_now(void *ud)
{
    struct watch *w = ud;

    ipw_llm_cancel(w->call);
    ipw_loop_stop(w->loop);
}

static void cancelled_in_the_stream(void **state)
{
    static const struct script_line script[] = {{STREAM C("Hel"), THEN_HOLD}};
    struct world w;
    struct ipw_watch *wakeup;

    (void)state;
    world_open(&w, script, 1, (struct ipw_llm_options){0});
    wakeup = ipw_wakeup_start(w.loop, cancel_now, &w.watch);
    w.server.ud = wakeup; /* read by the server's thread only after a request */
    w.server.on_sent = wake;
    world_start(&w);
    ipw_loop_run(w.loop);
    assert_int_equal(w.watch.done, 0);
    assert_int_equal(w.watch.ended, 1);
    assert_int_equal(w.watch.facts[0].outcome, IPW_LM_CANCELLED);
    assert_int_equal(w.watch.next[0], 0);
    ipw_watch_cancel(wakeup);
    world_close(&w); /* the server stops only when the connection it holds is closed */
}

static void cancelled_in_callbacks(void **state)
{
    static const struct script_line ok[] = {{OK_STREAM, THEN_CLOSE}};
    static const struct script_line busy[] = {{ERROR("503 x", "busy"), THEN_CLOSE}};
    struct world w;

    (void)state;
    for (int where = 1; where <= 3; where++) {
        world_open(&w, ok, 1, (struct ipw_llm_options){0});
        w.watch.cancel_at = where;
        world_start(&w);
        ipw_loop_run(w.loop);
        assert_int_equal(w.watch.started, 1);
        assert_int_equal(w.watch.ended, 1);
        assert_int_equal(w.watch.done, where == 3);
        assert_int_equal(w.watch.facts[0].outcome, where == 1 ? IPW_LM_CANCELLED : IPW_LM_OK);
        world_close(&w);
    }
    world_open(&w, busy, 1, (struct ipw_llm_options){.max_retries = 3});
    w.watch.cancel_at = 2; /* while a repeat was announced */
    world_start(&w);
    ipw_loop_run(w.loop);
    assert_int_equal(w.watch.started, 1);
    assert_int_equal(w.watch.done, 0);
    world_close(&w);
}

static void stop(void *ud) { ipw_loop_stop(ud); }

static void cancelled_before_and_between(void **state)
{
    static const struct script_line busy[] = {
        {HEAD("503 x", "text/plain") "Retry-After: 100\r\n\r\nbusy", THEN_CLOSE}};
    struct world w;

    (void)state;
    world_open(&w, busy, 1, (struct ipw_llm_options){.max_retries = 3});
    world_start(&w);
    ipw_llm_cancel(w.watch.call); /* before the first attempt: nothing is called */
    assert_int_equal(w.watch.started, 0);
    world_start(&w);
    while (w.watch.ended == 0) { /* until it waits for its second attempt */
        ipw_timer_start(w.loop, IPW_NS_PER_MS, stop, w.loop);
        ipw_loop_run(w.loop);
    }
    assert_true(w.watch.next[0] >= 100 * IPW_NS_PER_S);
    ipw_llm_cancel(w.watch.call);
    assert_int_equal(w.watch.started, 1);
    assert_int_equal(w.watch.done, 0);
    world_close(&w);
}

UNIT(client_cancel)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cancelled_in_the_stream),
        cmocka_unit_test(cancelled_in_callbacks),
        cmocka_unit_test(cancelled_before_and_between),
    };
    return cmocka_run_group_tests(tests, global_init, global_release);
}
