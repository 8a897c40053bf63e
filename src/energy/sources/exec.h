/* energy/sources/exec.h: a command that prints the readings of a meter.
 *
 * `sh -c COMMAND` runs as a child in its own process group as long as the source is open, and
 * prints one reading per line: "123.4 W" (a bare number is watts), "5.2 J" (cumulative), other
 * multiples, Wh, {"watts": 123.4} or {"joules": 5.2}.  The first line decides whether the channel
 * is a gauge or a counter of the whole machine.  A reading is the mean of the watts since the last
 * reading, or the newest joules; a line's time is its arrival.  Lines that do not parse or have the
 * other kind are counted, and the note quotes the first of them.  The note also reports the end of
 * the command and its last line on stderr.  After its end, or after 10 s (and five times the usual
 * distance) without a line, readings are IPW_NO_VALUE.
 *
 * Closing sends SIGTERM to the group, SIGKILL half a second later, and waits for the child. */
#ifndef IPW_ENERGY_SOURCES_EXEC_H
#define IPW_ENERGY_SOURCES_EXEC_H

#include "energy/source.h"

/* Waits up to five seconds for the first line that is a reading.  IPW_EUNSUPPORTED if the command
 * ended or stayed silent: the message has its status and its last words. */
int ipw_exec_open(struct ipw_source **out, const char *command, struct ipw_err *err);

#endif
