/* energy/sources/powerlog.h: the log of a power meter, read while it is written.
 *
 * Follows a file that another program appends rows to (energy/meter.h describes the formats).  Each
 * column of watts becomes a gauge, each column of joules or watt-hours a counter.  All belong to
 * the whole machine unless the column's name says GPU, CPU or DRAM.  sources/meter_feed.h says
 * which times the rows get, and when a log that does not grow has no value.  (To attribute energy
 * by the meter's clock, use `ipw-agent meter` after the run.)  A damaged row is skipped and
 * counted, and the note names its file and line.  A file that was truncated or replaced is read
 * from its start again.
 *
 * Among several columns of one kind and domain, a column called sum or total replaces the others; a
 * counter replaces the gauges. */
#ifndef IPW_ENERGY_SOURCES_POWERLOG_H
#define IPW_ENERGY_SOURCES_POWERLOG_H

#include "energy/source.h"

/* `path` may also name the column: "FILE#COLUMN".  The file must exist and have its heading (or a
 * first row of numbers); its existing rows only tell the format.  Errors name file and line. */
int ipw_powerlog_open(struct ipw_source **out, const struct ipw_source_place *place,
                      const char *path, struct ipw_err *err);

#endif
