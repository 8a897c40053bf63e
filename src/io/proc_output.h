/* io/proc_output.h: keeps the beginning and the end of a child's output.
 *
 * Keeps the output until half of the limit is full, and then the last half of the limit, in a ring
 * that grows with use.  Pure: no descriptor, no clock. */
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
/* Returns beginning and end in one text that lives as long as `output`.  If bytes were left out, a
 * line between them says how many.  Add nothing afterwards. */
const char *ipw_output_text(struct ipw_output *output, size_t *len);
void ipw_output_release(struct ipw_output *output);

#endif
