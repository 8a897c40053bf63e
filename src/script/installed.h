/* script/installed.h: the program's own files in the share/ folder of an installation.
 *
 * `cmake --install` copies lua/, agents/, datasets/ and prices/ to share/ipw-agent,
 * beside the folder of the program's own file, with a stamp of the files that the binary has inside
 * (`stamp`).  An edited or added file there is used in place of the binary's.  A copy that is equal
 * to the binary's is not used, so that such a file is "builtin:" wherever it was installed.  A
 * folder with another stamp belongs to another build: its files are not used, and a line says so.
 *
 * $XDG_DATA_HOME/ipw-agent is the user's folder and, with the prefix ~/.local, an installation's as
 * well.  Its copies of the program's files are told from the user's own by the same stamp.
 *
 * A file is read only if it belongs to root, to this user or to the owner of the program's file,
 * and not everybody can write it.  No folder is walked to find one file. */
#ifndef IPW_SCRIPT_INSTALLED_H
#define IPW_SCRIPT_INSTALLED_H

#include <stdbool.h>
#include <stddef.h>

struct ipw_embedded_file;

/* The installation's edited or added file in place of `path` ("agents/react.lua"); false: there is
 * none, so the one inside the binary counts. */
bool ipw_installed_file(char *out, size_t size, const char *path);
/* What the program uses as `path`: the installation's file, else the one inside the binary; NULL:
 * neither.  A file that was read is noted (script/file_hashes.h) and kept for the process. */
const struct ipw_embedded_file *ipw_installed_find(const char *path);
/* The installation's folder; NULL: there is none to be used. */
const char *ipw_installed_folder(void);
/* Is FOLDER/... `file` a copy of the program's own files, which must not replace them?  False in a
 * folder without a stamp. */
bool ipw_installed_is_copy(const char *folder, const char *file);

#endif
