/* run/shard.h: which part of a run's tasks this process takes (--shard).
 *
 * A task belongs to the shard that its id names: the first 60 bits of the id's SHA-256, modulo the
 * number of shards.  So the choice needs no other task, every epoch of a task is in one shard, and
 * each task is in exactly one.  `auto` takes the place from the variables that an engine sets for
 * its jobs.  Owns nothing. */
#ifndef IPW_RUN_SHARD_H
#define IPW_RUN_SHARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct ipw_shard {
    int64_t index, count; /* the index counts from 0; count 0: the run is not divided */
    char taken[160];      /* with auto: the variables, with their values; else "" */
};

/* "I/N", "auto", or "auto/N" where the engine does not tell how many there are.  `variable` returns
 * the value of an environment variable (getenv). */
int ipw_shard_parse(struct ipw_shard *out, const char *text, char *(*variable)(const char *),
                    struct ipw_err *err);
bool ipw_shard_has(const struct ipw_shard *shard, const char *id);
/* The folder of this shard of the run NAME: "NAME.shards/I-of-N"; NAME itself if it is this folder
 * already.  The folder of another shard is an error.  The caller frees *out in any case. */
int ipw_shard_folder(char **out, const struct ipw_shard *shard, const char *name,
                     struct ipw_err *err);

#endif
