/* A folder of a test's own with an events.jsonl in it, which the test writes. */
#ifndef IPW_TESTS_UNIT_TRACE_FOLDER_H
#define IPW_TESTS_UNIT_TRACE_FOLDER_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char dir[] = "/tmp/ipw-record.XXXXXX";

static inline int make_dir(void **state)
{
    (void)state;
    return mkdtemp(dir) ? 0 : -1;
}

static inline int remove_dir(void **state)
{
    char path[64];

    (void)state;
    snprintf(path, sizeof path, "%s/events.jsonl", dir);
    unlink(path);
    return rmdir(dir);
}

#endif
