#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include "base/clock.h"
#include "io/loop_priv.h"
#include "unit/unit.h"
#include "with_loop.h"

#define MS IPW_NS_PER_MS

static char order[256];

static int set_up(void **state)
{
    order[0] = '\0';
    return make_loop(state);
}

static void note(void *ud)
{
    size_t n = strlen(order);

    assert_true(n + 1 < sizeof order);
    order[n] = *(const char *)ud;
    order[n + 1] = '\0';
}

static void stop(void *ud)
{
    (void)ud;
    ipw_loop_stop(loop);
}

static void test_empty(void **state)
{
    (void)state;
    ipw_loop_run(loop); /* nothing can call back: it returns */
}

static void test_timers(void **state)
{
    int64_t start = ipw_now_ns();

    (void)state;
    ipw_timer_start(loop, 30 * MS, note, "b");
    ipw_timer_start(loop, 0, note, "a");
    ipw_timer_start(loop, -5, note, "a");
    assert_int_equal(ipw_loop_leftovers(loop), 3);
    assert_string_equal(order, "");
    ipw_loop_run(loop);
    assert_string_equal(order, "aab");
    assert_true(ipw_now_ns() - start >= 30 * MS);
}

struct stamp {
    int64_t due, seen;
};

static void take_stamp(void *ud) { ((struct stamp *)ud)->seen = ipw_now_ns(); }

static void test_timers_are_never_early(void **state)
{
    struct stamp stamps[200];

    (void)state;
    for (int i = 0; i < 200; i++) {
        int64_t delay = (i * 7919 % 200) * (MS / 13);
        stamps[i].due = ipw_now_ns() + delay;
        ipw_timer_start(loop, delay, take_stamp, &stamps[i]);
    }
    ipw_loop_run(loop);
    for (int i = 0; i < 200; i++) assert_true(stamps[i].seen >= stamps[i].due);
}

/* By instants: those that are past at once, in their order; the others not before theirs.  One that
 * is set anew after the clock has fired is not lost. */
static void rearm(void *ud)
{
    ipw_timer_start_at(loop, *(int64_t *)ud, note, "d");
    ipw_timer_start_at(loop, 1, note, "c");
}

static void test_timers_at(void **state)
{
    int64_t start = ipw_now_ns(), later = start + 3 * MS + 1;

    (void)state;
    ipw_timer_start_at(loop, start + 2 * MS, rearm, &later);
    ipw_timer_start_at(loop, start - 1, note, "b");
    ipw_timer_start_at(loop, INT64_MIN, note, "a");
    ipw_timer_cancel(ipw_timer_start_at(loop, INT64_MAX, note, "!"));
    ipw_loop_run(loop);
    assert_string_equal(order, "abcd");
    assert_true(ipw_now_ns() >= later);
}

/* The heap against a plain model: arm, move and disarm at random, then fire what is left.  Instants
 * are absolute here, so that the order does not hang on how long the arming takes. */
enum { N_MODEL = 500 };

static struct modelled {
    struct ipw_timer timer;
    int armed_as; /* equal instants fire in the order in which they were armed */
    int fired;
} model[N_MODEL];
static const struct modelled *last_fired;
static int left_to_fire;

static void fire_modelled(void *ud)
{
    struct modelled *m = ud;

    if (last_fired) {
        assert_true(m->timer.due_ns >= last_fired->timer.due_ns);
        if (m->timer.due_ns == last_fired->timer.due_ns)
            assert_true(m->armed_as > last_fired->armed_as);
    }
    last_fired = m;
    m->fired++;
    if (--left_to_fire == 0) ipw_loop_stop(loop);
}

static void test_heap(void **state)
{
    int64_t base = ipw_now_ns();
    unsigned random = 12345;

    (void)state;
    memset(model, 0, sizeof model);
    last_fired = NULL;
    left_to_fire = 0;
    for (int i = 0; i < N_MODEL; i++)
        model[i].timer = (struct ipw_timer){.loop = loop, .fn = fire_modelled, .ud = &model[i]};
    for (int i = 0; i < 10000; i++) {
        struct modelled *m;
        random = random * 1103515245 + 12345;
        m = &model[(random >> 8) % N_MODEL];
        if (m->timer.pos && i % 3) {
            ipw_timer_disarm(&m->timer);
        } else {
            m->armed_as = i;
            ipw_timer_arm(&m->timer, base + (int64_t)((random >> 16) % 64) * MS);
        }
        assert_true(loop->n_heap <= N_MODEL);
    }
    for (int i = 0; i < N_MODEL; i++) left_to_fire += model[i].timer.pos != 0;
    assert_true(left_to_fire > 50);
    assert_int_equal(loop->n_heap, left_to_fire);
    ipw_loop_hold(loop); /* embedded timers do not */
    ipw_loop_run(loop);
    ipw_loop_unhold(loop);
    assert_int_equal(left_to_fire, 0);
    for (int i = 0; i < N_MODEL; i++) assert_true(model[i].fired <= 1 && !model[i].timer.pos);
}

static struct ipw_timer *victim;

static void cancel_victim(void *ud)
{
    note(ud);
    ipw_timer_cancel(victim);
}

static void start_another(void *ud)
{
    note(ud);
    ipw_timer_start(loop, 0, note, "z");
}

static void test_timer_from_timer(void **state)
{
    (void)state;
    ipw_timer_start(loop, 0, cancel_victim, "a");
    victim = ipw_timer_start(loop, 0, note, "!");
    ipw_timer_start(loop, 0, start_another, "b");
    ipw_timer_start(loop, 0, note, "c");
    ipw_timer_cancel(NULL);
    ipw_loop_run(loop);
    assert_string_equal(order, "abcz");
}

static void defer_more(void *ud)
{
    note(ud);
    ipw_defer_start(loop, note, "x");
}

static struct ipw_defer *deferred;

static void cancel_deferred(void *ud)
{
    note(ud);
    ipw_defer_cancel(deferred);
}

static void test_defer(void **state)
{
    struct ipw_defer *never;

    (void)state;
    ipw_defer_start(loop, note, "a");
    ipw_defer_start(loop, defer_more, "b");
    never = ipw_defer_start(loop, note, "!");
    ipw_defer_start(loop, cancel_deferred, "c");
    deferred = ipw_defer_start(loop, note, "!");
    ipw_defer_start(loop, note, "d");
    assert_int_equal(ipw_loop_leftovers(loop), 6);
    ipw_defer_cancel(never);
    ipw_defer_cancel(NULL);
    assert_string_equal(order, "");
    ipw_loop_run(loop);
    assert_string_equal(order, "abcdx");
}

/* A chain of defers does not keep timers from their turn. */
static int chain;
static bool timer_fired;

static void chain_on(void *ud)
{
    (void)ud;
    chain++;
    if (!timer_fired) ipw_defer_start(loop, chain_on, NULL);
}

static void set_fired(void *ud)
{
    (void)ud;
    timer_fired = true;
}

static void test_defer_chain(void **state)
{
    (void)state;
    timer_fired = false;
    chain = 0;
    ipw_defer_start(loop, chain_on, NULL);
    ipw_timer_start(loop, 5 * MS, set_fired, NULL);
    ipw_loop_run(loop);
    assert_true(timer_fired && chain > 1);
}

static int sleeps;

static void count_sleep(void *ud)
{
    (void)ud;
    /* What the hook defers runs although the loop was about to sleep. */
    if (sleeps++ == 0) ipw_defer_start(loop, note, "h");
}

static void test_before_sleep(void **state)
{
    (void)state;
    sleeps = 0;
    ipw_loop_before_sleep(loop, count_sleep, NULL);
    ipw_timer_start(loop, 5 * MS, note, "t");
    ipw_loop_run(loop);
    assert_true(sleeps >= 2);
    assert_string_equal(order, "ht");
    ipw_loop_before_sleep(loop, NULL, NULL);
}

static void link_of_40(void *ud)
{
    (void)ud;
    if (++chain < 40) ipw_defer_start(loop, link_of_40, NULL);
}

/* A round that does not wait leaves the hook to the next one, but a long chain does not keep it. */
static void test_hook_in_a_chain(void **state)
{
    (void)state;
    sleeps = chain = 0;
    ipw_loop_before_sleep(loop, count_sleep, NULL);
    ipw_defer_start(loop, link_of_40, NULL);
    ipw_loop_run(loop);
    assert_int_equal(chain, 40);
    assert_in_range(sleeps, 4, 10);
    assert_string_equal(order, "h");
    ipw_loop_before_sleep(loop, NULL, NULL);
}

static void test_stop(void **state)
{
    (void)state;
    ipw_timer_start(loop, 0, stop, NULL);
    victim = ipw_timer_start(loop, 3600 * IPW_NS_PER_S, note, "!");
    ipw_loop_run(loop);
    assert_int_equal(ipw_loop_leftovers(loop), 1);
    ipw_timer_cancel(victim);
    ipw_loop_run(loop);
}

static void test_signal(void **state)
{
    struct ipw_watch *usr1 = ipw_signal_start(loop, SIGUSR1, note, "s");

    (void)state;
    ipw_loop_run(loop); /* a signal does not keep the loop alive */
    victim = ipw_timer_start(loop, 3600 * IPW_NS_PER_S, note, "!");
    raise(SIGUSR1);
    while (!order[0]) {
        ipw_defer_start(loop, stop, NULL);
        ipw_loop_run(loop);
    }
    assert_string_equal(order, "s");
    ipw_timer_cancel(victim);
    ipw_watch_cancel(usr1);
    ipw_watch_cancel(NULL);
}

static struct ipw_watch *wakeup;
static struct ipw_timer *guard;

static void *send_from_thread(void *ud)
{
    (void)ud;
    ipw_wakeup_send(wakeup);
    return NULL;
}

static void woken(void *ud)
{
    note(ud);
    ipw_timer_cancel(guard);
}

static void test_wakeup(void **state)
{
    pthread_t thread;

    (void)state;
    wakeup = ipw_wakeup_start(loop, woken, "w");
    ipw_loop_run(loop); /* nor does a wake-up */
    guard = ipw_timer_start(loop, 3600 * IPW_NS_PER_S, note, "!");
    assert_int_equal(pthread_create(&thread, NULL, send_from_thread, NULL), 0);
    ipw_loop_run(loop);
    pthread_join(thread, NULL);
    assert_string_equal(order, "w");
    ipw_watch_cancel(wakeup);
    ipw_watch_cancel(NULL);
}

UNIT(loop)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, free_loop)
    const struct CMUnitTest tests[] = {
        CASE(test_empty),
        CASE(test_timers),
        CASE(test_timers_are_never_early),
        CASE(test_timers_at),
        CASE(test_heap),
        CASE(test_timer_from_timer),
        CASE(test_defer),
        CASE(test_defer_chain),
        CASE(test_before_sleep),
        CASE(test_stop),
        CASE(test_signal),
        CASE(test_wakeup),
        CASE(test_hook_in_a_chain),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
