/* Chains of more than a thousand fields in a source text (ipw_source_check_fails): found however
 * they are written, and not seen where there are none. */
#include "unit/script/world.h"

#include "base/buf.h"
#include "script/source_check.h"
#include "unit/unit.h"

static bool is_too_long(const char *before, const char *link, size_t times, const char *after)
{
    struct ipw_buf text = IPW_BUF(IPW_MIB);
    bool found;

    ipw_buf_adds(&text, before);
    for (size_t i = 0; i < times; i++) ipw_buf_adds(&text, link);
    ipw_buf_adds(&text, after);
    found = ipw_source_check_fails(ipw_buf_str(&text), text.len);
    ipw_buf_release(&text);
    return found;
}

static void chains(void **state)
{
    static const char *const links[] = {
        ".x",           "['x']",     "[ [[x]] ]", " . x",      "\n.\tx",
        "[1]",          "[(1)]",     "--c\n.x",   "--[[c]].x", "--[==[ ]=] ]]\n]==].x",
        "[\"a\\\"b\"]", "--[=c\n.x", "--[\n.x",   "[{}]",
    };

    (void)state;
    for (size_t i = 0; i < sizeof links / sizeof *links; i++) {
        if (!is_too_long("return a", links[i], 1001, "")) fail_msg("not seen: %s", links[i]);
        if (is_too_long("return a", links[i], 1000, "")) fail_msg("seen: %s", links[i]);
        /* brackets do not hide it */
        if (!is_too_long("return (a", links[i], 1001, ")"))
            fail_msg("not seen in brackets: %s", links[i]);
    }
    /* parts on both sides of a bracket are one chain */
    assert_true(is_too_long("return (a.x)", ".x", 1000, ""));
    assert_false(is_too_long("return (a.x)", ".x", 999, ""));
}

static void no_chains(void **state)
{
    static const char *const links[] = {
        "a.x ",
        "a.x;",
        "'.x.x' ",
        "\".x.x\" ",
        "--.x.x\n",
        "[[.x.x]] ",
        "[==[.x.x]] .x]==] ",
        "--[[.x.x\n]] ",
        "a .. b ",
        "...",
        "'\\'.x.x' ",
        "'.x.x\n",
        "(a.x) ",
        "{a.x},",
        "] ) } ",
        "- ",
        "x = y ",
    };

    (void)state;
    for (size_t i = 0; i < sizeof links / sizeof *links; i++)
        if (is_too_long("", links[i], 2000, "")) fail_msg("seen: %s", links[i]);
}

/* Texts that end within a word, a text, a comment or a bracket: Lua says so, the look at them only
 * ends. */
static void texts_that_break_off(void **state)
{
    static const char *const ends[] = {
        "[",  "[=", "[==[", "[==[ ]", "[==[ ]=", "--", "--[", "--[=", "--[[ ]",   "-",  ".",
        "..", "'",  "'\\",  "\"\\\"", "a",       "a.", "(",   "\n",   "--[[ ]= ", "--x"};
    char deep[300];

    (void)state;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (is_too_long("", "local x ", 400, ends[i])) fail_msg("seen: %s", ends[i]);
    memset(deep, '(', sizeof deep - 1); /* Lua itself refuses this many brackets */
    deep[sizeof deep - 1] = '\0';
    assert_false(is_too_long(deep, ".x", 2000, ""));
    assert_false(is_too_long("", "x", 10, ""));
}

UNIT(source_check)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chains),
        cmocka_unit_test(no_chains),
        cmocka_unit_test(texts_that_break_off),
    };

    return cmocka_run_group_tests_name("chain", tests, NULL, NULL);
}
