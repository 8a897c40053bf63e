/* Signals that stop a run. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "app/run.h"

static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
enum { N_SIGNALS = sizeof signals / sizeof *signals };

static struct {
    struct ipw_wakeup *wakeup;
    void (*stop)(void *ud, int signum);
    void *ud;
    volatile sig_atomic_t first; /* the number of the first that came; 0: none */
    bool told;
    bool ours[N_SIGNALS];
} state;

/* In signal context.  The loop may be busy, or wait for a disk that does not answer: the second
 * signal does not depend on it.  Children die with us; what is half written is cut back by the next
 * session. */
static void on_signal(int signum)
{
    int errnum = errno;

    if (state.first) {
        static const char line[] = "\nipw-agent: stopped at once\n";

        if (write(STDERR_FILENO, line, sizeof line - 1) < 0) errno = 0;
        _exit(128 + signum);
    }
    state.first = signum;
    ipw_wakeup_send(state.wakeup);
    errno = errnum;
}

static void on_wakeup(void *ud)
{
    (void)ud;
    if (state.told || !state.first) return;
    state.told = true;
    state.stop(state.ud, state.first);
}

void ipw_signals_start(struct ipw_loop *loop, void (*stop)(void *ud, int signum), void *ud)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART}, before;

    state.stop = stop;
    state.ud = ud;
    state.first = 0;
    state.told = false;
    state.wakeup = ipw_wakeup_start(loop, on_wakeup, NULL);
    sigemptyset(&action.sa_mask);
    for (int i = 0; i < N_SIGNALS; i++) {
        state.ours[i] = sigaction(signals[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN;
        if (state.ours[i]) sigaction(signals[i], &action, NULL);
    }
}

void ipw_signals_end(void)
{
    for (int i = 0; i < N_SIGNALS; i++) {
        if (state.ours[i]) signal(signals[i], SIG_DFL);
    }
    ipw_wakeup_cancel(state.wakeup);
    state.wakeup = NULL;
}
