/* export/mooncake.h: the requests of a run as lines without their texts.
 *
 * One line for each request, in the Mooncake line format: timestamp (ms), input_length,
 * output_length, hash_ids.  Requests of one query share a session_id and have a delay (ms after the
 * reply before). hash_ids number the blocks of 512 prompt tokens in the order in which they first
 * occur.  So equal beginnings have equal ids, and nothing else is revealed.  The run's mean bytes
 * per token decide where a block ends in the text. */
#ifndef IPW_EXPORT_MOONCAKE_H
#define IPW_EXPORT_MOONCAKE_H

#include <stdio.h>

#include "base/err.h"

/* *guessed: requests without lengths from a server. */
int ipw_export_mooncake(const char *run, FILE *out, size_t *guessed, struct ipw_err *err);

#endif
