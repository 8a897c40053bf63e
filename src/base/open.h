/* base/open.h: opening files that a user names, or that lie in a folder anybody may have filled.
 *
 * Something else may stand in a file's place.  A named pipe would hold up the program until somebody
 * writes into it, a device may never end, a link leads to another file, and a file with a second
 * name is a file outside of the folder as well.  These open without waiting, look at what they got,
 * and say by name what they refuse.  Interrupted calls are repeated. */
#ifndef IPW_BASE_OPEN_H
#define IPW_BASE_OPEN_H

#include <stddef.h>

#include "base/err.h"

/* A descriptor to read from, or a negative code.  Also a pipe that the program was started with
 * (/dev/stdin, /dev/fd/3: what a shell makes of `<(command)`); then reading waits for the writer. */
int ipw_open_read(const char *path, struct ipw_err *err);
/* A descriptor to write to, or a negative code: a regular file with one name, no link.  `flags` are
 * O_WRONLY or O_RDWR, and O_CREAT (mode 0600), O_EXCL, O_APPEND.  With O_APPEND a character device
 * (/dev/full) is taken, too. */
int ipw_open_write(const char *path, int flags, struct ipw_err *err);
/* All of the bytes, or -1 and errno: ENOSPC too for a device that takes nothing. */
int ipw_write_all(int fd, const char *bytes, size_t n);

#endif
