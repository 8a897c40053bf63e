#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "export/export_jsonl.h"

#define A "{\"query_id\":\"q0000\", \"turns\":[] }"
#define B "{\"query_id\":\"q0001\"}"

static char root[64];

static int enter(void **state)
{
    (void)state;
    strcpy(root, "/tmp/ipw-export-XXXXXX");
    return mkdtemp(root) && chdir(root) == 0 && mkdir("run", 0700) == 0 ? 0 : -1;
}

static int leave(void **state)
{
    char command[100];

    (void)state;
    snprintf(command, sizeof command, "rm -rf %s", root);
    return chdir("/") == 0 ? system(command) : -1;
}

static void lines_are_checked_and_copied(void **state)
{
    static const struct {
        const char *traces, *out;
        int rc, torn;
        const char *message;
    } cases[] = {
        {"", "", 0, 0, NULL},
        {A "\n" B "\n", A "\n" B "\n", 0, 0, NULL},
        {A "\n\n" B "\r\n", A "\n" B "\n", 0, 0, NULL},
        {A "\n{\"query_id\":\"q00", A "\n", 0, 1, NULL},
        {A "\n{\"query_id\":\n" B "\n", A "\n", IPW_EPARSE, 0, "run/traces.jsonl:2: "},
        {A "\n{\"turns\":[]}\n", A "\n", IPW_EPARSE, 0, "query_id"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        FILE *f = fopen("run/traces.jsonl", "w");
        char *text = NULL;
        size_t n = 0;
        struct ipw_err err = {0};
        int torn = -1;

        assert_non_null(f);
        fputs(cases[i].traces, f);
        fclose(f);
        f = open_memstream(&text, &n);
        assert_non_null(f);
        assert_int_equal(ipw_export_jsonl("run", f, &torn, &err), cases[i].rc);
        fclose(f);
        assert_string_equal(text, cases[i].out);
        assert_int_equal(torn, cases[i].torn);
        if (cases[i].message && !strstr(err.text, cases[i].message)) fail_msg("%s", err.text);
        free(text);
    }
}

static void a_full_disk_is_an_error(void **state)
{
    FILE *f = fopen("run/traces.jsonl", "w"), *full = fopen("/dev/full", "w");
    struct ipw_err err = {0};

    (void)state;
    assert_non_null(f);
    fputs(A "\n", f);
    fclose(f);
    if (!full) skip();
    assert_true(ipw_export_jsonl("run/traces.jsonl", full, NULL, &err) < 0);
    assert_non_null(strstr(err.text, "cannot be written"));
    fclose(full);
    assert_int_equal(ipw_export_jsonl("gone", stdout, NULL, &err), IPW_ENOTFOUND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_are_checked_and_copied),
        cmocka_unit_test(a_full_disk_is_an_error),
    };

    return cmocka_run_group_tests(tests, enter, leave);
}
