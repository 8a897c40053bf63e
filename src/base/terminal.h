/* base/terminal.h: what a terminal can show.
 *
 * All code that lays out text for a person asks here.  Owns nothing. */
#ifndef IPW_BASE_TERMINAL_H
#define IPW_BASE_TERMINAL_H

#include <stdbool.h>

/* Use colour on this descriptor?  Yes for a terminal, without NO_COLOR, and TERM not "dumb". */
bool ipw_use_colour(int fd);
/* Columns of the terminal behind fd; 0 if it is not a terminal. */
unsigned ipw_terminal_width(int fd);

#endif
