/* What the outcomes of queries have in common. */
#include <string.h>

#include "trace/turn.h"

bool ipw_outcome_is_stop(const char *outcome)
{
    static const char *const stops[] = {"interrupted", "server_lost", "unfinished", NULL};
    const char *const *stop = stops;

    if (!outcome) return false;
    while (*stop && strcmp(*stop, outcome)) stop++;
    return *stop || strncmp(outcome, "run_", 4) == 0;
}
