/* energy/sources/exec.h: a command that prints what a meter reads.
 *
 * `sh -c COMMAND` runs as a child in a process group of its own as long as the source is open, and
 * prints one reading a line: "123.4 W" (a bare number is watts), "5.2 J" (cumulative), other
 * multiples and Wh likewise, {"watts": 123.4} or {"joules": 5.2}.  The first line decides which of
 * the two the channel is, a gauge or a counter of the whole machine.  A reading is the mean of the
 * watts that came since the last one, or the newest joules; lines are stamped by their arrival.
 * A line that does not parse, or is of the other kind, is counted and the first of them is in the
 * note; so is the end of the command, and what it last said on stderr.  After its end, or 10 s (and
 * five times the usual distance) without a line, readings are IPW_NO_VALUE.
 *
 * Closing sends SIGTERM to the group, SIGKILL half a second later, and waits for the child. */
#ifndef IPW_ENERGY_SOURCES_EXEC_H
#define IPW_ENERGY_SOURCES_EXEC_H

#include "energy/source.h"

/* Waits up to five seconds for the first line that is a reading.  IPW_EUNSUPPORTED when the command
 * ended or stayed silent instead: the message has its status and its last words. */
int ipw_exec_open(struct ipw_source **out, const char *command, struct ipw_err *err);

#endif
