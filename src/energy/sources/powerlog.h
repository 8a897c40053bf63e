/* energy/sources/powerlog.h: the log of a power meter, read while it is written.
 *
 * Follows a file of rows that another program appends to (energy/meter.h says which formats are
 * understood): one channel a column of watts (gauge) or of joules or watt-hours (counter), all of
 * them of the whole machine unless the column's name says GPU, CPU or DRAM.  A reading is the mean
 * of the rows that have arrived since the last one, or the last row again when none has; rows are
 * stamped by their arrival, so the meter's own clock does not matter (the log's delay does: to book
 * by the meter's clock, use `ipw-agent meter` after the run).  A log that has stopped growing gives
 * IPW_NO_VALUE after five of its usual distances and at least 10 s.  A row that is damaged is
 * skipped, counted, and named by file and line in the note.  A file that was cut or replaced is
 * read from its start again.
 *
 * Of several columns of one kind and domain, one called sum or total stands for them all; a counter
 * stands for the gauges. */
#ifndef IPW_ENERGY_SOURCES_POWERLOG_H
#define IPW_ENERGY_SOURCES_POWERLOG_H

#include "energy/source.h"

struct ipw_powerlog_options {
    const char *column; /* only this one; NULL: all that are watts or joules */
};

/* `path` may name the column, too: "FILE#COLUMN".  The file must exist and have its heading (or a first row of numbers); rows that it has already
 * only tell the format.  `options` may be NULL.  Errors name file and line. */
int ipw_powerlog_open(struct ipw_source **out, const char *path,
                      const struct ipw_powerlog_options *options, struct ipw_err *err);

#endif
