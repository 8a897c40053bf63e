/* app/gnuplot.h: runs gnuplot as a child.
 *
 * Owns nothing.  gnuplot is an optional program: without it a message names the package. */
#ifndef IPW_APP_GNUPLOT_H
#define IPW_APP_GNUPLOT_H

#include "base/err.h"

/* Runs figure.gp of a folder, in that folder and without the user's own settings. */
int ipw_gnuplot_run(const char *folder, struct ipw_err *err);

#endif
