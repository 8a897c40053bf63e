/* export/mooncake.h: what a run asked of its model, as lines without a word of its text.
 *
 * One line a request in the Mooncake line format: timestamp (ms),
 * input_length, output_length, hash_ids; requests of one query share a session_id and have a delay
 * (ms after the reply before).  hash_ids number the blocks of 512 tokens of the prompt in the order
 * in which they were first seen, so that equal beginnings have equal ids and nothing else is told;
 * where a block ends in the text is reckoned with the run's mean bytes a token. */
#ifndef IPW_EXPORT_MOONCAKE_H
#define IPW_EXPORT_MOONCAKE_H

#include <stdio.h>

#include "base/err.h"

/* *guessed: requests whose lengths no server told. */
int ipw_export_mooncake(const char *run, FILE *out, size_t *guessed, struct ipw_err *err);

#endif
