/* trace/power.h: the header of power.jsonl (docs/trace-format.md).
 *
 * Names the sources and channels and what each domain's sum is made of; the rows that follow are
 * trace/power_rows.h's.  Pure: appends a whole line to a buffer, and makes the rows start afresh. */
#ifndef IPW_TRACE_POWER_H
#define IPW_TRACE_POWER_H

#include "base/buf.h"
#include "energy/source.h"
#include "trace/power_rows.h"

/* `segment`: the session of the run whose rows follow.  `rows` (initialised) forgets its sources and takes those of the set. */
void ipw_power_header_write(struct ipw_buf *out, struct ipw_power_rows *rows,
                            const struct ipw_source_set *set, int64_t interval_ns, int segment);

#endif
