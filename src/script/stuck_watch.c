#include "script/stuck_watch.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/mem.h"
#include "script/host.h"
#include "script/vm_priv.h"

enum { LOOKS_BEFORE_WARNING = 8, ANSWER_MS = 200 };
#define LONGEST_PERIOD_NS (4 * IPW_NS_PER_S)

struct ipw_stuck_watch {
    struct ipw_stuck_watch_options options;
    pthread_t thread, watched;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool stopping;
};

/* Filled by the signal handler in the stuck thread. */
static char place[160];
static atomic_bool place_known;

/* Lua is inside a C function, so its stack does not change: it can be read while that thread is
 * stuck. */
static void on_question(int signum)
{
    int saved = errno;
    struct ipw_vm *vm = ipw_budget_active();
    lua_State *L = vm ? vm->running : NULL;
    lua_Debug ar;

    (void)signum;
    place[0] = '\0';
    for (int level = 0; L && level < 20 && lua_getstack(L, level, &ar); level++) {
        if (!lua_getinfo(L, "Sl", &ar) || ar.currentline < 0) continue;
        snprintf(place, sizeof place, "%s:%d", ar.short_src, ar.currentline);
        break;
    }
    atomic_store(&place_known, true);
    errno = saved;
}

static void ask_where(const struct ipw_stuck_watch *w)
{
    const struct timespec ms = {0, 1000000};

    atomic_store(&place_known, false);
    if (pthread_kill(w->watched, SIGRTMIN + 4)) return;
    for (int i = 0; i < ANSWER_MS && !atomic_load(&place_known); i++) nanosleep(&ms, NULL);
}

static void tell(const struct ipw_stuck_watch *w, int64_t ns,
                 void (*to)(void *ud, const struct ipw_stuck_watch_stall *stall))
{
    const char *who = ipw_budget_who();

    ask_where(w);
    to(w->options.ud,
       &(struct ipw_stuck_watch_stall){.who = who ? who : "",
                                       .where = atomic_load(&place_known) ? place : "",
                                       .seconds = ipw_ns_to_s(ns)});
}

static void *watch(void *ud)
{
    struct ipw_stuck_watch *w = ud;
    int64_t period_ns = w->options.warn_ns / LOOKS_BEFORE_WARNING, stuck_ns = 0;
    unsigned long seen = ipw_budget_turn();
    bool warned = false;

    if (period_ns > LONGEST_PERIOD_NS) period_ns = LONGEST_PERIOD_NS;
    pthread_mutex_lock(&w->lock);
    while (!w->stopping) {
        int64_t until_ns = ipw_now_ns() + period_ns;
        struct timespec until = {until_ns / IPW_NS_PER_S, until_ns % IPW_NS_PER_S};
        unsigned long turn;

        if (pthread_cond_timedwait(&w->changed, &w->lock, &until) != ETIMEDOUT) continue;
        turn = ipw_budget_turn();
        if (turn != seen || turn % 2 == 0) { /* it is outside of Lua, or was meanwhile */
            seen = turn;
            stuck_ns = 0;
            warned = false;
            continue;
        }
        stuck_ns += period_ns;
        if (!warned && stuck_ns >= w->options.warn_ns) {
            warned = true;
            tell(w, stuck_ns, w->options.on_warn);
        }
        if (stuck_ns >= w->options.give_up_ns) {
            tell(w, stuck_ns, w->options.on_give_up);
            stuck_ns = 0; /* the callback may not have ended the process */
        }
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

int ipw_stuck_watch_start(struct ipw_stuck_watch **out,
                          const struct ipw_stuck_watch_options *options, struct ipw_err *err)
{
    struct sigaction action = {.sa_handler = on_question, .sa_flags = SA_RESTART};
    struct ipw_stuck_watch *w = ipw_calloc(1, sizeof *w);
    pthread_condattr_t attr;
    sigset_t all, before;
    int errnum;

    w->options = *options;
    w->watched = pthread_self();
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->changed, &attr);
    pthread_condattr_destroy(&attr);
    sigemptyset(&action.sa_mask);
    sigaction(SIGRTMIN + 4, &action, NULL);
    sigfillset(&all); /* signals are for the other threads */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    errnum = pthread_create(&w->thread, NULL, watch, w);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (errnum) {
        pthread_cond_destroy(&w->changed);
        pthread_mutex_destroy(&w->lock);
        free(w);
        return ipw_fail_errno(err, errnum, "cannot start the watch over scripts");
    }
    *out = w;
    return 0;
}

void ipw_stuck_watch_stop(struct ipw_stuck_watch *w)
{
    if (!w) return;
    pthread_mutex_lock(&w->lock);
    w->stopping = true;
    pthread_cond_signal(&w->changed);
    pthread_mutex_unlock(&w->lock);
    pthread_join(w->thread, NULL);
    pthread_cond_destroy(&w->changed);
    pthread_mutex_destroy(&w->lock);
    free(w);
}
