/* What a look at a /proc tree holds; lua.quiet judges it. */
#include "energy/quiet.h"

#include <unistd.h>

#include "unit/energy/tree.h"
#include "unit/unit.h"

static void look(char *out, size_t size, const char *proc, bool sockets)
{
    struct ipw_buf text = IPW_BUF(64 * IPW_MIB);
    struct ipw_jw w;

    ipw_jw_init(&w, &text);
    ipw_quiet_look(&w, proc, sockets);
    snprintf(out, size, "%s", ipw_buf_str(&text));
    ipw_buf_release(&text);
}

static void test_a_look(void **state)
{
    char said[4096];

    (void)state;
    put("stat", "cpu  1 2\n");
    put("400/stat", "400 (a b) S\n");
    put("401/fd/0", ""); /* has gone: a folder without its file */
    assert_int_equal(symlink("socket:[4242]", tree_path("401/fd/7")), 0);
    put("self/stat", "no number");
    put("net/tcp", "a line\n");
    look(said, sizeof said, tree_root, false);
    assert_non_null(strstr(said, "\"400 (a b) S\\n\""));
    assert_non_null(strstr(said, "],\"stat\":\"cpu  1 2\\n\"}"));
    assert_null(strstr(said, "no number"));
    look(said, sizeof said, tree_root, true);
    assert_non_null(strstr(said,
                           "\"sockets\":[[4242,401]],\"stat\":\"cpu  1 2\\n\",\"tcp\":\"a line\\n\""
                           ",\"tcp6\":\"\"}"));
    look(said, sizeof said, "/nonexistent", true);
    assert_string_equal(
        said, "{\"processes\":[],\"sockets\":[],\"stat\":\"\",\"tcp\":\"\",\"tcp6\":\"\"}");
}

/* Without another folder it looks at this machine, and finds the test. */
static void test_this_machine(void **state)
{
    static char said[16 * IPW_MIB];
    char pid[32];

    (void)state;
    look(said, sizeof said, NULL, false);
    snprintf(pid, sizeof pid, "\"%d (", getpid());
    assert_non_null(strstr(said, pid));
    assert_non_null(strstr(said, "\"stat\":\"cpu "));
}

UNIT(quiet)
{
    const struct CMUnitTest tests[] = {
        WITH_TREE(test_a_look),
        cmocka_unit_test(test_this_machine),
    };

    return cmocka_run_group_tests(tests, note_fds, check_fds);
}
