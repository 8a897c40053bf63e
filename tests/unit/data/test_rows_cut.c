/* Data files that end too soon: every beginning of good ones, from the heap without a byte behind,
 * so that a sanitizer sees a byte too far.  Each is read, or refused with a message that names the
 * file; no row is made up. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "data/rows.h"
#include "unit/unit.h"

static const struct {
    const char *name, *text;
} files[] = {
    {"x.jsonl",
     "\xEF\xBB\xBF{\"a\":1,\"b\":[1,{\"c\":\"}\\\"\"}]}\r\n\r\n \t{\"a\":\"\\u00e9\\n\"}\n{}\n"},
    {"x.json", "[ {\"a\":1 , \"b\":[1,[2,{\"c\":\"]\\\"\"}]]} ,\n{\"a\":\"\\\\\"}\t, {} ]\r\n "},
    {"x.json", "{ \"name\" : \"set\", \"n\":[1,2], \"data\" : [ {\"a\":true}, {\"a\":null} ], "
               "\"end\" : {\"x\":-1.5e3} }\n"},
    {"x.json", "{\"rows\":[{\"row\":{\"a\":1}},{\"row\":{\"a\":2}}],\"total\":2}"},
    {"x.csv", "\xEF\xBB\xBF"
              "a,b , \"c\"\r\n1,\"two \"\"2\"\"\", 3 \r\n\r\n\"x\ny\",\"\", z\n4,5,6"},
    {"x.tsv", "a\tb\n1\t\"two\tthree\"\n  4 \t 5\n"},
};

static void every_beginning(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof files / sizeof *files; k++) {
        size_t whole = strlen(files[k].text), most = 0;

        for (size_t n = 0; n <= whole; n++) {
            char *bytes = malloc(n ? n : 1);
            struct ipw_rows rows;
            struct ipw_err err = {0};
            int rc;

            assert_non_null(bytes);
            memcpy(bytes, files[k].text, n);
            rc = ipw_rows_parse(&rows, files[k].name, bytes, n, &err);
            if (rc) {
                assert_int_equal(rc, err.code);
                if (strncmp(err.text, files[k].name, strlen(files[k].name)) != 0)
                    fail_msg("%s, %zu bytes: \"%s\" does not name the file", files[k].name, n,
                             err.text);
                assert_int_equal(rows.n, 0);
            } else {
                for (size_t i = 0; i < rows.n; i++)
                    assert_int_equal(strlen(rows.rows[i].json), rows.rows[i].n);
                if (rows.n > most) most = rows.n;
            }
            if (n == whole) { /* a beginning has no more rows than the whole */
                if (rc) fail_msg("%s: %s", files[k].name, err.text);
                assert_int_equal(rows.n, most);
            }
            ipw_rows_release(&rows);
            free(bytes);
        }
    }
}

UNIT(rows_cut)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_beginning)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
