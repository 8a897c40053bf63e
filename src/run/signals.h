/* run/signals.h: the signals that stop a run: INT, TERM and HUP, unless they were ignored at the
 * start (nohup).
 *
 * The first signal calls `stop` in the loop.  The second ends the program at once, regardless of
 * the loop.  Owns the handlers and the last words, which belong to the whole process. */
#ifndef IPW_RUN_SIGNALS_H
#define IPW_RUN_SIGNALS_H

#include "io/loop.h"

void ipw_signals_start(struct ipw_loop *loop, void (*stop)(void *ud, int signum), void *ud);
void ipw_signals_end(void); /* signals end the program again, as at its start */
/* From now on each signal is answered, with or without a loop.  The text is the line that is
 * written if a signal ends the program at once.  NULL: as at the start again. */
void ipw_signals_words(const char *words, const char *other_words);
void ipw_signals_other_words(void); /* the other text is the line now */

#endif
