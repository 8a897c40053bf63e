#include <arpa/inet.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "io/http_guard.h"
#include "unit/unit.h"

static bool is_public(const char *text)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};

    if (inet_pton(AF_INET, text, &v4.sin_addr) == 1)
        return ipw_address_is_public((const struct sockaddr *)&v4);
    if (inet_pton(AF_INET6, text, &v6.sin6_addr) != 1) fail_msg("%s is no address", text);
    return ipw_address_is_public((const struct sockaddr *)&v6);
}

static void public_addresses(void **state)
{
    static const char *const all[] = {
        "1.1.1.1",         "8.8.8.8",        "9.255.255.255",   "11.0.0.0",
        "100.63.255.255",  "100.128.0.0",    "126.255.255.255", "128.0.0.1",
        "169.253.255.255", "172.15.255.255", "172.32.0.0",      "192.167.255.255",
        "192.169.0.0",     "198.17.255.255", "198.20.0.0",      "223.255.255.255",
        "2606:4700::1111", "2a00:1450::1",   "::ffff:8.8.8.8",  "64:ff9b::8.8.8.8",
        "2002:808:808::1", "2001:200::1",    "2001:d00::1",     "2001:dc0::1",
        "3ffe::1",         "3f01::1",        "2003::1"};

    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (!is_public(all[i])) fail_msg("%s is refused", all[i]);
}

/* S-3 */
static void addresses_that_lead_inside(void **state)
{
    static const char *const all[] = {
        "0.0.0.0",
        "0.1.2.3",
        "10.0.0.1",
        "10.255.255.255",
        "100.64.0.1",
        "127.0.0.1",
        "127.255.255.254",
        "169.254.169.254",
        "172.16.0.1",
        "172.31.255.255",
        "192.0.0.1",
        "192.0.2.1",
        "192.88.99.1",
        "192.168.0.1",
        "198.18.0.1",
        "198.51.100.1",
        "203.0.113.1",
        "224.0.0.1",
        "240.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "::7f00:1",
        "::ffff:127.0.0.1",
        "::ffff:10.0.0.1",
        "64:ff9b::10.0.0.1",
        "2002:7f00:1::1",
        "2001::1",
        "2001:db8::1",
        "fc00::1",
        "fd12::1",
        "fe80::1",
        "fec0::1",
        "ff02::1",
        "100::1",
        "64:ff9b:1::1",
        "4000::1",
        "3fff::1",
    };
    struct sockaddr other = {.sa_family = AF_UNIX};

    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (is_public(all[i])) fail_msg("%s is let through", all[i]);
    assert_false(ipw_address_is_public(&other));
}

UNIT(http_guard)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(public_addresses),
        cmocka_unit_test(addresses_that_lead_inside),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
