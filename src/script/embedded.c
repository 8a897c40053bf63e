#include "script/embedded.h"

#include <string.h>

const struct ipw_embedded_file *ipw_embedded_find(const char *path)
{
    for (const struct ipw_embedded_file *f = ipw_embedded_files; f->path; f++)
        if (strcmp(f->path, path) == 0) return f;
    return NULL;
}
