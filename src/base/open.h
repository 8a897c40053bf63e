/* base/open.h: opens files that a user names, or that lie in a folder that others can write to.
 *
 * A path may lead to something unexpected.  A named pipe would block the program until a writer
 * comes.  A device may never end.  A link leads to another file.  A file with a second name also
 * exists outside its folder.  These functions open without waiting, check the kind of file, and
 * name the kind that they refuse.  Interrupted calls are repeated. */
#ifndef IPW_BASE_OPEN_H
#define IPW_BASE_OPEN_H

#include <stddef.h>

#include "base/err.h"

/* Returns a descriptor to read from, or a negative code.  Also opens a pipe that the program was
 * started with (/dev/stdin, /dev/fd/3: a shell's `<(command)`); reading then waits for the
 * writer. */
int ipw_open_read(const char *path, struct ipw_err *err);
/* Returns a descriptor to write to, or a negative code.  The file must be a regular file with one
 * name, and not a link.  `flags` are O_WRONLY or O_RDWR, with O_CREAT (mode 0600), O_EXCL,
 * O_APPEND.  With O_APPEND a character device (/dev/full) is allowed. */
int ipw_open_write(const char *path, int flags, struct ipw_err *err);
/* Makes the folders above `path` that are missing: of each file and folder that a user names for a
 * result. */
int ipw_make_parents(const char *path, struct ipw_err *err);
/* Writes all bytes; returns 0, or -1 and errno (ENOSPC also for a device that accepts no bytes). */
int ipw_write_all(int fd, const char *bytes, size_t n);

#endif
