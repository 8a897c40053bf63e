/* energy/quiet.h: what /proc shows of the processes of this machine.
 *
 * Two looks a moment apart tell whether other programs use the machine; lua/ipw/quiet.lua judges
 * them. */
#ifndef IPW_ENERGY_QUIET_H
#define IPW_ENERGY_QUIET_H

#include <stdbool.h>

#include "json/write.h"

/* Writes a look as an object: {processes: [their stat files], sockets: [[inode, process]], stat,
 * tcp, tcp6}, the last two texts of net/; `sockets` false: without these three.  A file that cannot
 * be read is "".  proc NULL: /proc. */
void ipw_quiet_look(struct ipw_jw *w, const char *proc, bool sockets);

#endif
