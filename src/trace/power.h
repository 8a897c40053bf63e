/* trace/power.h: the lines of power.jsonl (docs/trace-format.md).
 *
 * The header names the sensors (sources), their channels, and the channels of each domain's sum.
 * Each further line is one reading of one sensor: [t_ns, source, v1, v2, ...], with null for a
 * value that could not be read.  Pure: writes whole lines to a buffer, and reads rows from text. */
#ifndef IPW_TRACE_POWER_H
#define IPW_TRACE_POWER_H

#include "base/buf.h"
#include "energy/sampler.h"
#include "energy/source.h"

enum { IPW_POWER_FORMAT = 1 }; /* 2: rows packed as base64-VLQ digits; no longer written or read */

/* `segment`: the session of the run that the next rows belong to. */
void ipw_power_header_write(struct ipw_buf *out, const struct ipw_source_set *set,
                            int64_t interval_ns, int segment);
/* Appends a line. */
void ipw_power_row_write(struct ipw_buf *out, const struct ipw_sampler_row *row);
/* Reads `line` (no newline, a NUL after it) into t_ns, source and n of the row, and its values into
 * `values`, which has room for `most`.  False: it is not a row, or has more values. */
bool ipw_power_row_read(const char *line, struct ipw_sampler_row *row, int64_t *values,
                        size_t most);

#endif
