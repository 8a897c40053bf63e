/* script/embedded.h: the files inside the binary (lua/, agents/, datasets/).
 *
 * cmake/embed.cmake writes the table; its last entry has path NULL.  A file on disk replaces the
 * embedded one: script/search.h has the order, script/installed.h the copies of an installation. */
#ifndef IPW_SCRIPT_EMBEDDED_H
#define IPW_SCRIPT_EMBEDDED_H

#include <stddef.h>

struct ipw_embedded_file {
    const char *path;  /* as in the repository: "lua/ipw/tools.lua" */
    const char *bytes; /* a NUL follows */
    size_t n;
};

extern const struct ipw_embedded_file ipw_embedded_files[];
/* "VERSION SHA256\n" of them all: the stamp of the copies that are installed with this binary. */
extern const char ipw_embedded_stamp[];

const struct ipw_embedded_file *ipw_embedded_find(const char *path); /* or NULL */

#endif
