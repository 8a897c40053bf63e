/* The functions of libmicrohttpd that src/io/server.c calls.  The library is loaded with
 * the first of them: see base/library.h. */
#include <microhttpd.h>
#include <stdarg.h>

#include "base/library.h"

static struct ipw_library microhttpd = IPW_LIBRARY(IPW_MICROHTTPD_FILE);

#define MHD_FUNCTION(type, name, params, args)                                                     \
    IPW_LIBRARY_FUNCTION(&microhttpd, type, name, params, args)

MHD_FUNCTION(void, MHD_stop_daemon, (struct MHD_Daemon * daemon), (daemon))
MHD_FUNCTION(enum MHD_Result, MHD_run, (struct MHD_Daemon * daemon), (daemon))
MHD_FUNCTION(enum MHD_Result, MHD_get_timeout,
             (struct MHD_Daemon * daemon, MHD_UNSIGNED_LONG_LONG *timeout), (daemon, timeout))
MHD_FUNCTION(void, MHD_suspend_connection, (struct MHD_Connection * connection), (connection))
MHD_FUNCTION(void, MHD_resume_connection, (struct MHD_Connection * connection), (connection))
MHD_FUNCTION(const char *, MHD_lookup_connection_value,
             (struct MHD_Connection * connection, enum MHD_ValueKind kind, const char *key),
             (connection, kind, key))
MHD_FUNCTION(int, MHD_get_connection_values,
             (struct MHD_Connection * connection, enum MHD_ValueKind kind,
              MHD_KeyValueIterator iterator, void *ud),
             (connection, kind, iterator, ud))
MHD_FUNCTION(enum MHD_Result, MHD_queue_response,
             (struct MHD_Connection * connection, unsigned int status,
              struct MHD_Response *response),
             (connection, status, response))
MHD_FUNCTION(struct MHD_Response *, MHD_create_response_from_buffer,
             (size_t n, void *bytes, enum MHD_ResponseMemoryMode mode), (n, bytes, mode))
MHD_FUNCTION(struct MHD_Response *, MHD_create_response_from_callback,
             (uint64_t size, size_t block, MHD_ContentReaderCallback read, void *ud,
              MHD_ContentReaderFreeCallback release),
             (size, block, read, ud, release))
MHD_FUNCTION(void, MHD_destroy_response, (struct MHD_Response * response), (response))
MHD_FUNCTION(enum MHD_Result, MHD_add_response_header,
             (struct MHD_Response * response, const char *name, const char *value),
             (response, name, value))

typedef struct MHD_Daemon *(*start)(unsigned int flags, uint16_t port,
                                    MHD_AcceptPolicyCallback accept, void *accept_ud,
                                    MHD_AccessHandlerCallback handle, void *handle_ud,
                                    va_list options);
typedef const union MHD_ConnectionInfo *(*connection_info)(struct MHD_Connection *connection,
                                                           enum MHD_ConnectionInfoType type, ...);
typedef const union MHD_DaemonInfo *(*daemon_info)(struct MHD_Daemon *daemon,
                                                   enum MHD_DaemonInfoType type, ...);

struct MHD_Daemon *MHD_start_daemon(unsigned int flags, uint16_t port,
                                    MHD_AcceptPolicyCallback accept, void *accept_ud,
                                    MHD_AccessHandlerCallback handle, void *handle_ud, ...)
{
    start real = (start)ipw_library_function(&microhttpd, "MHD_start_daemon_va");
    struct MHD_Daemon *daemon;
    va_list options;

    va_start(options, handle_ud);
    daemon = real(flags, port, accept, accept_ud, handle, handle_ud, options);
    va_end(options);
    return daemon;
}

/* Those that our callers ask for take no third argument. */
const union MHD_ConnectionInfo *MHD_get_connection_info(struct MHD_Connection *connection,
                                                        enum MHD_ConnectionInfoType type, ...)
{
    static _Atomic(connection_info) known;

    if (!known)
        known = (connection_info)ipw_library_function(&microhttpd, "MHD_get_connection_info");
    return known(connection, type);
}

const union MHD_DaemonInfo *MHD_get_daemon_info(struct MHD_Daemon *daemon,
                                                enum MHD_DaemonInfoType type, ...)
{
    static _Atomic(daemon_info) known;

    if (!known) known = (daemon_info)ipw_library_function(&microhttpd, "MHD_get_daemon_info");
    return known(daemon, type);
}
