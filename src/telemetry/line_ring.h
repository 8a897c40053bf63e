/* telemetry/line_ring.h: the newest lines of a stream, for any number of readers.
 *
 * One writer puts lines in; each reader has a place of its own and takes whole lines.  The memory
 * is bounded: a line that a slow reader has not taken gives way to new ones, and that reader is
 * told how many it lost.  So a reader slows neither the writer nor other readers.  Each line has a
 * number, from 0; the writer writes it into the line itself.  */
#ifndef IPW_TELEMETRY_LINE_RING_H
#define IPW_TELEMETRY_LINE_RING_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

struct ipw_line_ring;

struct ipw_line_reader {
    uint64_t seq; /* the next line to take */
    uint64_t pos; /* its first byte, of all that were ever written */
};

struct ipw_line_ring *ipw_line_ring_new(size_t bytes);
void ipw_line_ring_free(struct ipw_line_ring *ring); /* NULL is fine */
/* The number that the next line gets; for the writer. */
uint64_t ipw_line_ring_next(const struct ipw_line_ring *ring);
/* A whole line with its newline, at most half of the ring. */
void ipw_line_ring_put(struct ipw_line_ring *ring, const char *line, size_t n);
/* A reader at the end. */
void ipw_line_reader_end(struct ipw_line_reader *reader, const struct ipw_line_ring *ring);
/* A reader after line `seq`, or as close to it as lines are kept; at the end for a line that was
 * never written. */
void ipw_line_reader_after(struct ipw_line_reader *reader, const struct ipw_line_ring *ring,
                           uint64_t seq);
/* Appends whole lines, as many as there are up to `most` bytes (one at least).  Returns the number
 * of lines that were lost before them: the first one appended has then the number `*first`. */
uint64_t ipw_line_reader_take(struct ipw_line_reader *reader, const struct ipw_line_ring *ring,
                              struct ipw_buf *out, size_t most, uint64_t *first);

#endif
