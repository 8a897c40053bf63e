/* energy/sources/exec.h: a command that prints the readings of a meter.
 *
 * `sh -c COMMAND` runs as a child in its own process group as long as the source is open, and
 * prints readings, one on each line, or rows under a heading that names a column of times
 * (energy/meter.h).  sources/meter_feed.h says which times they get, and when a silence is one.
 * Lines that do not parse or have the other kind are counted, and the note quotes the first of
 * them.  The note also reports the end of the command and its last line on stderr.
 *
 * Closing sends SIGTERM to the group, SIGKILL half a second later, and waits for the child. */
#ifndef IPW_ENERGY_SOURCES_EXEC_H
#define IPW_ENERGY_SOURCES_EXEC_H

#include "energy/source.h"

/* Waits up to five seconds for the first line that is a reading.  IPW_EUNSUPPORTED if the command
 * ended or stayed silent: the message has its status and its last words. */
int ipw_exec_open(struct ipw_source **out, const struct ipw_source_place *place,
                  const char *command, struct ipw_err *err);

#endif
