/* io/proc_output.h: what is kept of a child's output.
 *
 * The first half of the ceiling is kept as it comes, of the rest the last half, in a ring that
 * grows with use.  Pure: no descriptor, no clock. */
#ifndef IPW_IO_PROC_OUTPUT_H
#define IPW_IO_PROC_OUTPUT_H

#include <stddef.h>

#include "base/buf.h"

struct ipw_output {
    struct ipw_buf head, tail; /* `tail` is a ring once it is full */
    size_t tail_start, dropped;
};

void ipw_output_init(struct ipw_output *output, size_t max_bytes);
void ipw_output_add(struct ipw_output *output, const char *bytes, size_t n);
/* Head and tail in one text that lives as long as `output`, with a line between them that says how
 * much is left out, if anything is.  Nothing may be added afterwards. */
const char *ipw_output_text(struct ipw_output *output, size_t *len);
void ipw_output_release(struct ipw_output *output);

#endif
