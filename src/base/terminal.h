/* base/terminal.h: what a terminal can show.
 *
 * Asked by everything that lays text out for a person.  Owns nothing. */
#ifndef IPW_BASE_TERMINAL_H
#define IPW_BASE_TERMINAL_H

#include <stdbool.h>

/* Whether to colour what goes to this descriptor: a terminal, no NO_COLOR, TERM not "dumb". */
bool ipw_use_colour(int fd);
/* Columns of the terminal behind fd; 0 when it is none. */
unsigned ipw_terminal_width(int fd);

#endif
