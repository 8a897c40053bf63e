/* A temporary folder for the tests of one file, which is also the current folder.
 *
 * Pass both functions to cmocka_run_group_tests(), or call them from a test's own set-up. */
#ifndef IPW_TESTS_UNIT_BASE_TEMP_FOLDER_H
#define IPW_TESTS_UNIT_BASE_TEMP_FOLDER_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char temp_folder[] = "/tmp/ipw-unit-XXXXXX";

static inline int enter_temp_folder(void **state)
{
    (void)state;
    return mkdtemp(temp_folder) && chdir(temp_folder) == 0 ? 0 : -1;
}

static inline int leave_temp_folder(void **state)
{
    char command[64];

    (void)state;
    snprintf(command, sizeof command, "rm -rf %s", temp_folder);
    return chdir("/") == 0 ? system(command) : -1;
}

#endif
