#include "io/http_guard.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdint.h>
#include <string.h>

/* RFC 6890 and its successors: every address block that is not globally reachable. */
static bool is_public_v4(uint32_t a)
{
    static const struct {
        uint32_t net;
        int bits;
    } closed[] = {
        {0x00000000, 8},  {0x0A000000, 8},  {0x64400000, 10}, {0x7F000000, 8},  {0xA9FE0000, 16},
        {0xAC100000, 12}, {0xC0000000, 24}, {0xC0000200, 24}, {0xC0586300, 24}, {0xC0A80000, 16},
        {0xC6120000, 15}, {0xC6336400, 24}, {0xCB007100, 24}, {0xE0000000, 4},  {0xF0000000, 4},
    };

    for (size_t i = 0; i < sizeof closed / sizeof *closed; i++)
        if (((a ^ closed[i].net) >> (32 - closed[i].bits)) == 0) return false;
    return true;
}

static uint32_t v4_at(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static bool is_public_v6(const uint8_t *a)
{
    static const uint8_t zero[12], nat64[12] = {0, 0x64, 0xFF, 0x9B};

    if (memcmp(a, zero, 10) == 0 && a[10] == 0xFF && a[11] == 0xFF)
        return is_public_v4(v4_at(a + 12));
    if (memcmp(a, nat64, 12) == 0) return is_public_v4(v4_at(a + 12));
    if ((a[0] & 0xE0) != 0x20) return false; /* only 2000::/3 is assigned */
    /* 6to4: judge the IPv4 address inside. */
    if (a[0] == 0x20 && a[1] == 0x02) return is_public_v4(v4_at(a + 2));
    if (a[0] == 0x20 && a[1] == 0x01 && a[2] < 2) return false; /* 2001::/23: Teredo and others */
    if (a[0] == 0x20 && a[1] == 0x01 && a[2] == 0x0D && a[3] == 0xB8) return false;
    return !(a[0] == 0x3F && a[1] == 0xFF); /* 3fff::/20: documentation */
}

bool ipw_address_is_public(const struct sockaddr *address)
{
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;

    if (address->sa_family == AF_INET) {
        memcpy(&v4, address, sizeof v4);
        return is_public_v4(ntohl(v4.sin_addr.s_addr));
    }
    if (address->sa_family != AF_INET6) return false;
    memcpy(&v6, address, sizeof v6);
    return is_public_v6(v6.sin6_addr.s6_addr);
}
