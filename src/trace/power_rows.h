/* trace/power_rows.h: the rows of power.jsonl, packed (docs/trace-format.md has the rules).
 *
 * A source's first row, every 128th and the first after 10 s is plain: [t_ns, source, v1, v2, ...].
 * The rows between say only by how much they differ from what the rows before lead to expect, as
 * base64-VLQ digits in one string: ["AgBkQ"].  So a reading costs 3 to 5 bytes a channel instead of
 * 15, the integers come back exactly, and a damaged line costs no more than the rows up to the next
 * plain one.  The same struct serves the writer and the reader.  Pure: text in, text out. */
#ifndef IPW_TRACE_POWER_ROWS_H
#define IPW_TRACE_POWER_ROWS_H

#include "base/buf.h"
#include "energy/sampler.h"

enum { IPW_POWER_FORMAT = 2 }; /* 1: plain rows only; such files are read as well */

struct ipw_power_rows {
    struct ipw_power_stream *streams; /* one a source */
    size_t n, cap;
    struct ipw_power_past *channels; /* of all sources, one after another */
    size_t n_channels, cap_channels;
};

void ipw_power_rows_init(struct ipw_power_rows *r);
void ipw_power_rows_release(struct ipw_power_rows *r);
/* The next source of the header. */
void ipw_power_rows_add(struct ipw_power_rows *r, const struct ipw_channel *channels, size_t n);
/* Forgets what was before: the next row of every source is (or has to be) plain. */
void ipw_power_rows_reset(struct ipw_power_rows *r);

/* Appends a line. */
void ipw_power_row_write(struct ipw_power_rows *r, struct ipw_buf *out,
                         const struct ipw_sampler_row *row);

enum ipw_power_read {
    IPW_POWER_ROW,
    IPW_POWER_DAMAGED, /* not a row of these sources; what is packed after it is lost as well */
    IPW_POWER_LOST,    /* a packed row whose plain one was not seen */
};
/* `line` without newline, a NUL after it.  values: room for the channels of any source. */
enum ipw_power_read ipw_power_row_read(struct ipw_power_rows *r, const char *line, int64_t *t_ns,
                                       size_t *source, int64_t *values);

#endif
