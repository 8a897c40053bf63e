/* Which Host, Origin and Content-Type a local server answers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "io/visitor.h"
#include "unit/unit.h"

static const char *const added[] = {"box.lan", "[fd00::1]", NULL};

static void hosts(void **state)
{
    static const struct ipw_visitor_rules near = {.names = added, .own_name = "gpu.lab.example"};
    static const struct ipw_visitor_rules exposed = {.exposed = true,
                                                     .own_name = "gpu.lab.example"};
    static const struct {
        const char *host;
        bool near, exposed;
    } cases[] = {
        {"localhost", true, true},
        {"LocalHost:80", true, true},
        {"localhost.", true, true},
        {"127.0.0.1:9440", true, true},
        {"127.255.3.9", true, true},
        {"[::1]", true, true},
        {"[::1]:8765", true, true},
        {"box.lan:1", true, false},
        {"BOX.lan", true, false},
        {"[fd00::1]:80", true, true},
        {"10.0.0.5:9440", false, true},
        {"[2001:db8::1]:9440", false, true},
        {"gpu", false, true},
        {"gpu.lab.example:9440", false, true},
        {"gpu.lab.example.evil.example", false, false},
        {"gpu.lab", false, false},
        {"evil.example", false, false},
        {"localhost.evil.example", false, false},
        {"127.0.0.1.evil.example", false, false},
        {"evil.example:127", false, false},
        {"a@localhost", false, false},
        {"localhost/", false, false},
        {"localhost:80:80", false, false},
        {"localhost:x", false, false},
        {"", false, false},
        {":80", false, false},
        {"[::1", false, false},
        {"[::1]x", false, false},
        {"[]", false, false},
        {"[localhost]", false, false},
        {"::1", false, false},
        {"2130706433", false, false},
        {"0x7f.1", false, false},
        {"127.1", false, false},
    };
    char far[600];

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (ipw_visitor_host(&near, cases[i].host) != cases[i].near)
            fail_msg("near: %s", cases[i].host);
        if (ipw_visitor_host(&exposed, cases[i].host) != cases[i].exposed)
            fail_msg("exposed: %s", cases[i].host);
    }
    assert_true(ipw_visitor_host(&near, NULL));
    memset(far, 'a', sizeof far - 1);
    far[sizeof far - 1] = '\0';
    assert_false(ipw_visitor_host(&near, far));
}

static void posts(void **state)
{
    static const struct ipw_visitor_rules rules = {.names = added};
    static const struct {
        const char *origin, *type;
        bool taken;
    } cases[] = {
        {NULL, NULL, true}, /* no browser */
        {NULL, "text/plain", true},
        {"http://evil.example", "application/json", true}, /* the browser has asked, in vain */
        {"http://evil.example", "text/plain", false},
        {"http://evil.example", "Text/Plain;charset=UTF-8", false},
        {"http://evil.example", " application/x-www-form-urlencoded", false},
        {"http://evil.example", "multipart/form-data; boundary=x", false},
        {"http://evil.example", "", false},
        {"http://evil.example", NULL, false},
        {"null", "text/plain", false},
        {"", "text/plain", false},
        {"http://localhost:3000", "text/plain", true},
        {"https://127.0.0.1", NULL, true},
        {"http://[::1]:5173", NULL, true},
        {"http://box.lan", NULL, true},
        {"http://localhost.evil.example", NULL, false},
        {"http://localhost@evil.example", NULL, false},
        {"http://evil.example://localhost", NULL, false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (ipw_visitor_post(&rules, cases[i].origin, cases[i].type) != cases[i].taken)
            fail_msg("%s, %s", cases[i].origin, cases[i].type);
}

static void words(void **state)
{
    char text[256];

    (void)state;
    ipw_visitor_say_host(text, sizeof text, "evil\x1b[2J.example");
    assert_null(strchr(text, '\x1b'));
    assert_non_null(strstr(text, "--allow-host"));
}

UNIT(visitor)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hosts),
        cmocka_unit_test(posts),
        cmocka_unit_test(words),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
