/* script/file_hashes.h: which files this process has taken scripts and modules from.
 *
 * Noted when a file is read to be run, with the SHA-256 of what was read then; once a path, for the
 * process (a script is compiled once).  What travels inside the binary is not noted: the program's
 * version says it.  For the loop's thread. */
#ifndef IPW_SCRIPT_FILE_HASHES_H
#define IPW_SCRIPT_FILE_HASHES_H

#include <stddef.h>

#include "base/err.h"

struct ipw_file_hash {
    char *path;
    char sha256[65];
};

void ipw_file_hashes_note(const char *path, const char *bytes, size_t n);
/* The same of a file that somebody else read: native code. */
void ipw_file_hashes_note_file(const char *path);
size_t ipw_file_hashes_count(void);
const struct ipw_file_hash *
ipw_file_hashes_at(size_t i); /* in the order in which they were first read */
/* Of the file as it is now. */
int ipw_file_hashes_now(char hex[65], const char *path, struct ipw_err *err);

#endif
