/* run/signals.h: the signals that stop a run: INT, TERM and HUP, unless they were ignored at the
 * start (nohup).
 *
 * The first calls `stop` in the loop; the second ends the program there and then, whatever the loop
 * is doing.  Owns the handlers and the last words, which are of the whole process. */
#ifndef IPW_RUN_SIGNALS_H
#define IPW_RUN_SIGNALS_H

#include "io/loop.h"

void ipw_signals_start(struct ipw_loop *loop, void (*stop)(void *ud, int signum), void *ud);
void ipw_signals_end(void); /* they end the program again, as at its start */
/* From now on each signal is answered, with or without a loop; the line that is written where one
 * ends the program at once.  NULL: as at the start again. */
void ipw_signals_words(const char *words, const char *other_words);
void ipw_signals_other_words(void); /* they are the line now */

#endif
