/* unit/json/failing.h: the calls on files, made to fail one at a time.
 *
 * The linker puts these functions in the place of the C library's (floor.cmake lists the calls).
 * Between failing_at() and failing_end() the calls are counted, and the one with the given number
 * goes wrong in the given way; all others, and everything outside, are the real ones.  So a test
 * can walk over each call of an operation, whichever these are, and ask every time what the caller
 * was told and what is on the disk. */
#ifndef IPW_UNIT_JSON_FAILING_H
#define IPW_UNIT_JSON_FAILING_H

#include <stdbool.h>
#include <stddef.h>

enum failing_how {
    FAILING_EIO,   /* the call fails; a close has closed all the same */
    FAILING_EINTR, /* a signal came in between: to be called again */
    /* Reads and writes of no byte: an end of the file, a device that takes nothing. */
    FAILING_NOTHING,
    FAILING_SHORT, /* reads and writes of half of the bytes */
    FAILING_FULL, /* writes half and then no more: a full disk; cutting a file back fails as well */
    FAILING_EACCES, /* the call fails: a right is missing */
    FAILING_ENODEV, /* ... or the device is gone */
};

/* The n-th call from now on (from 0). */
void failing_at(int n, enum failing_how how);
/* The call that went wrong ("write"), or NULL: fewer calls were made than that. */
const char *failing_end(void);

/* Open descriptors of this process. */
size_t failing_descriptors(void);

void failing_put(const char *path, const char *text);
/* "" if there is no file; the last four texts stay valid. */
const char *failing_contents(const char *path);

#endif
