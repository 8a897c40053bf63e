/* io/http_guard.h: which addresses a script's web request may reach.
 *
 * Public ones: not this machine, not the networks that are private to a house or a firm, not what is
 * reserved; mapped and translated IPv4 inside IPv6 counts as what it stands for. */
#ifndef IPW_IO_HTTP_GUARD_H
#define IPW_IO_HTTP_GUARD_H

#include <stdbool.h>
#include <sys/socket.h>

bool ipw_address_is_public(const struct sockaddr *address);

#endif
