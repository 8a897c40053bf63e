/* base/library.h: shared libraries that are loaded when one of their functions is first called.
 *
 * libcurl and what it needs are 32 libraries; to load them takes longer than most commands that
 * send nothing.  A unit that calls such a library defines the functions that it uses itself: each
 * asks here for the real one and calls it.  So callers include the library's own header and see no
 * difference.  A library that is missing ends the program, as it does when the linker needs it.
 * Any thread may ask. */
#ifndef IPW_BASE_LIBRARY_H
#define IPW_BASE_LIBRARY_H

#include <pthread.h>

struct ipw_library {
    const char *file; /* "libcurl.so.4" */
    pthread_mutex_t lock;
    void *handle; /* NULL: not loaded */
};

#define IPW_LIBRARY(name)                                                                          \
    {                                                                                              \
        .file = (name), .lock = PTHREAD_MUTEX_INITIALIZER                                          \
    }

/* The function's address. */
void *ipw_library_function(struct ipw_library *library, const char *name);

/* Defines the function `name` of a library: `params` with names, `args` those names. */
#define IPW_LIBRARY_FUNCTION(library, type, name, params, args)                                    \
    type name params                                                                               \
    {                                                                                              \
        static type(*_Atomic known) params;                                                        \
                                                                                                   \
        if (!known) known = (type(*) params)ipw_library_function(library, #name);                  \
        return known args;                                                                         \
    }

#endif
