/* script/embedded.h: the files that travel inside the binary (lua/, agents/, datasets/).
 *
 * The table is written by cmake/embed.cmake; its last entry has path NULL.  A file on disk
 * overrides the embedded one (script/vm.h says where it is looked for). */
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
