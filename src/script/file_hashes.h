/* script/file_hashes.h: the script and module files that this process has read.
 *
 * A file is noted when it is read to be run, with the SHA-256 of what was read, once for each path
 * of the process (a script is compiled once).  Embedded files are not noted: the program's version
 * identifies them.  For the loop's thread. */
#ifndef IPW_SCRIPT_FILE_HASHES_H
#define IPW_SCRIPT_FILE_HASHES_H

#include <stdbool.h>
#include <stddef.h>

struct ipw_file_hash {
    char *path;
    char sha256[65];
};

void ipw_file_hashes_note(const char *path, const char *bytes, size_t n);
/* Notes a file that another reader loads: native code. */
void ipw_file_hashes_note_file(const char *path);
size_t ipw_file_hashes_count(void);
const struct ipw_file_hash *
ipw_file_hashes_at(size_t i); /* in the order in which they were first read */
/* The hash of the file as it is now.  False: it cannot be read. */
bool ipw_file_hashes_now(char hex[65], const char *path);

#endif
