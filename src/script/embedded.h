/* script/embedded.h: the files inside the binary (lua/, agents/, datasets/).
 *
 * cmake/embed.cmake writes the table; its last entry has path NULL.  A user's file of the same
 * name comes before the embedded one: script/search.h has the order. */
#ifndef IPW_SCRIPT_EMBEDDED_H
#define IPW_SCRIPT_EMBEDDED_H

#include <stddef.h>

struct ipw_embedded_file {
    const char *path;  /* as in the repository: "lua/ipw/tools.lua" */
    const char *bytes; /* a NUL follows */
    size_t n;
};

extern const struct ipw_embedded_file ipw_embedded_files[];

const struct ipw_embedded_file *ipw_embedded_find(const char *path); /* or NULL */

#endif
