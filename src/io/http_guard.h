/* io/http_guard.h: which addresses a script's web request may reach.
 *
 * Only public addresses: not this machine, not private networks, not reserved blocks.  IPv4
 * addresses that are mapped or translated into IPv6 are judged as IPv4. */
#ifndef IPW_IO_HTTP_GUARD_H
#define IPW_IO_HTTP_GUARD_H

#include <stdbool.h>
#include <sys/socket.h>

bool ipw_address_is_public(const struct sockaddr *address);

#endif
