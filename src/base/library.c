#include "base/library.h"

#include <dlfcn.h>
#include <stdlib.h>

#include "base/exit.h"
#include "base/log.h"

void *ipw_library_function(struct ipw_library *library, const char *name)
{
    void *address = NULL;

    pthread_mutex_lock(&library->lock);
    if (!library->handle) library->handle = dlopen(library->file, RTLD_NOW | RTLD_LOCAL);
    if (library->handle) address = dlsym(library->handle, name);
    pthread_mutex_unlock(&library->lock);
    if (address) return address;
    ipw_say("%s. Install the library.", dlerror());
    exit(IPW_EXIT_FAILED);
}
