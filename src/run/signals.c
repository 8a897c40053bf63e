#include "run/signals.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
enum { N_SIGNALS = sizeof signals / sizeof *signals };

static struct {
    struct ipw_watch *wakeup;
    void (*stop)(void *ud, int signum);
    void *ud;
    volatile sig_atomic_t first;   /* number of the first signal; 0: none */
    volatile sig_atomic_t watched; /* the loop is told of it */
    /* The last line.  One of two texts, which are complete before a handler reads them. */
    char words[2][PATH_MAX + 128];
    volatile sig_atomic_t n_words[2], which;
    bool told;
    bool ours[N_SIGNALS];
} state;

/* In signal context.  The loop may be busy, or wait for a disk that does not answer, so the second
 * signal does not depend on it.  Child processes end with this one.  The next session cuts
 * half-written lines. */
static void on_signal(int signum)
{
    int errnum = errno;

    if (state.first || !state.watched) {
        static const char line[] = "\nipw-agent: stopped at once\n";

        if (write(STDERR_FILENO, line, sizeof line - 1) < 0) errno = 0;
        if (write(STDERR_FILENO, state.words[state.which], (size_t)state.n_words[state.which]) < 0)
            errno = 0;
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

static void take_over(void)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART}, before;

    sigemptyset(&action.sa_mask);
    for (int i = 0; i < N_SIGNALS; i++) {
        state.ours[i] = sigaction(signals[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN;
        if (state.ours[i]) sigaction(signals[i], &action, NULL);
    }
}

static void give_back(void)
{
    for (int i = 0; i < N_SIGNALS; i++) {
        if (state.ours[i]) signal(signals[i], SIG_DFL);
    }
}

void ipw_signals_words(const char *words, const char *other_words)
{
    const char *texts[] = {words, other_words};

    if (!words) {
        if (state.n_words[0]) give_back();
        state.n_words[0] = state.n_words[1] = 0;
        return;
    }
    state.which = 0;
    for (int i = 0; i < 2; i++) {
        size_t n = strlen(texts[i]);

        if (n >= sizeof state.words[i]) return; /* no path is that long */
        memcpy(state.words[i], texts[i], n);
        state.n_words[i] = (sig_atomic_t)n;
    }
    take_over();
}

void ipw_signals_other_words(void) { state.which = 1; }

void ipw_signals_start(struct ipw_loop *loop, void (*stop)(void *ud, int signum), void *ud)
{
    state.stop = stop;
    state.ud = ud;
    state.first = 0;
    state.told = false;
    state.wakeup = ipw_wakeup_start(loop, on_wakeup, NULL);
    state.watched = true;
    take_over();
}

/* From here on signals end the program as at its start, after the last words if there are any. */
void ipw_signals_end(void)
{
    state.watched = false;
    if (!state.n_words[0]) give_back();
    ipw_watch_cancel(state.wakeup);
    state.wakeup = NULL;
}
