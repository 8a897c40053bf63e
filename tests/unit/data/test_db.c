/* SQL of a model's on a file of the test's, and search in a folder: what may be asked, what an
 * answer holds, and where it ends. */
#include <errno.h>
#include <fcntl.h>
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

#include "base/clock.h"
#include "base/mem.h"
#include "data/db.h"
#include "unit/base/temp_folder.h"
#include "unit/unit.h"

static atomic_bool stop;
static struct ipw_db_limits limits;
static struct ipw_buf out;
static struct ipw_err err;

static int set_up(void **state)
{
    (void)state;
    atomic_store(&stop, false);
    limits = (struct ipw_db_limits){.stop = &stop, .max_rows = 100, .max_bytes = 10000};
    ipw_buf_init(&out, IPW_MIB);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    ipw_buf_release(&out);
    return 0;
}

static void put(const char *path, const char *text, size_t n)
{
    FILE *f = fopen(path, "w");

    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

static int query(const char *name, const char *sql, const struct ipw_db_value *values, size_t n,
                 struct ipw_err *why)
{
    int folder = open(".", O_PATH | O_DIRECTORY), rc;
    struct ipw_db *db = NULL;

    rc = ipw_db_open(&db, folder, name, why);
    if (!rc) rc = ipw_db_run(&out, db, sql, values, n, &limits, why);
    ipw_db_close(db);
    close(folder);
    return rc;
}

/* A file without a byte is an empty data base. */
static const char *ask(const char *sql, const struct ipw_db_value *values, size_t n)
{
    put("empty.db", "", 0);
    ipw_buf_clear(&out);
    if (query("empty.db", sql, values, n, &err)) fail_msg("%s: %s", sql, err.text);
    return ipw_buf_str(&out);
}

static void refused(const char *sql, int code, const char *part)
{
    put("empty.db", "", 0);
    ipw_buf_clear(&out);
    assert_int_equal(query("empty.db", sql, NULL, 0, &err), code);
    if (!strstr(err.text, part)) fail_msg("%s: %s", sql, err.text);
}

static void values_go_in_and_come_out(void **state)
{
    static char text[] = "caf\xC3\xA9\xFF";
    const struct ipw_db_value values[] = {{.type = IPW_DB_NULL},
                                          {.type = IPW_DB_INT, .integer = INT64_MIN},
                                          {.type = IPW_DB_NUM, .number = 1.5},
                                          {.type = IPW_DB_TEXT, .text = text, .n = 5}};

    (void)state;
    assert_string_equal(
        ask("SELECT ? AS a, ?, ?, ?, x'00ff'", values, 4),
        "{\"columns\":[\"a\",\"?\",\"?\",\"?\",\"x'00ff'\"],\"more\":false,"
        "\"rows\":[[null,-9223372036854775808,1.5,\"caf\xC3\xA9\",\"\xEF\xBF\xBD\xEF\xBF\xBD\"]]}");
    assert_string_equal(ask("SELECT x''", NULL, 0),
                        "{\"columns\":[\"x''\"],\"more\":false,\"rows\":[[\"\"]]}");
    assert_string_equal(ask("SELECT 1 WHERE 0; ", NULL, 0),
                        "{\"columns\":[\"1\"],\"more\":false,\"rows\":[]}");
    assert_int_equal(query("empty.db", "SELECT ?", values, 2, &err), IPW_EINVAL);
    assert_string_equal(err.text, "the statement takes 1 values but got 2");
}

static void only_reading_is_possible(void **state)
{
    (void)state;
    refused("CREATE TABLE t (a)", IPW_EPERM, "only SELECT is allowed");
    refused("ATTACH 'other.db' AS o", IPW_EPERM, "only SELECT");
    refused("PRAGMA journal_mode = DELETE", IPW_EPERM, "only SELECT");
    refused("PRAGMA table_list(a)", IPW_EPERM, "only SELECT");
    refused("PRAGMA index_info(a)", IPW_EPERM, "only SELECT");
    refused("SELECT load_extension('x.so')", IPW_EINVAL, "not authorized to use function");
    refused("SELECT fts3_tokenizer('x')", IPW_EINVAL, "function"); /* where there is one */
    refused("SELECT 1; SELECT 2", IPW_EINVAL, "one statement at a time");
    refused(" -- nothing", IPW_EINVAL, "the SQL text is empty");
    refused("SELEC 1", IPW_EINVAL, "syntax error");
    ask("PRAGMA table_list", NULL, 0);
    ask("PRAGMA table_info(sqlite_schema)", NULL, 0);
    ask("PRAGMA table_xinfo(sqlite_schema)", NULL, 0);
    ask("PRAGMA index_list(sqlite_schema)", NULL, 0);
    ask("PRAGMA data_version", NULL, 0);
    assert_int_equal(query("no/such.db", "SELECT 1", NULL, 0, &err), IPW_ENOTFOUND);
    assert_int_equal(query("no/such.db", "SELECT 1", NULL, 0, NULL), IPW_ENOTFOUND);
    /* The path was checked without links: one that has come since is not followed. */
    if (symlink("empty.db", "link.db")) assert_int_equal(errno, EEXIST);
    assert_int_equal(query("link.db", "SELECT 1", NULL, 0, &err), IPW_ENOTFOUND);
}

/* The folder that was opened is read, whatever stands in its place by then. */
static void the_opened_folder_is_read(void **state)
{
    struct ipw_db *db = NULL;
    int folder;

    (void)state;
    assert_int_equal(mkdir("before", 0700), 0);
    put("before/in.db", "", 0);
    folder = open("before", O_PATH | O_DIRECTORY);
    assert_int_equal(rename("before", "after"), 0);
    assert_int_equal(symlink("/nowhere", "before"), 0);
    assert_int_equal(ipw_db_open(&db, folder, "in.db", &err), 0);
    assert_int_equal(ipw_db_run(&out, db, "SELECT 1 FROM sqlite_schema", NULL, 0, &limits, &err),
                     0);
    ipw_db_close(db);
    close(folder);
}

#define COUNT "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n"

static void an_answer_has_ends(void **state)
{
    (void)state;
    limits.max_rows = 3;
    assert_string_equal(ask(COUNT, NULL, 0),
                        "{\"columns\":[\"i\"],\"more\":true,\"rows\":[[1],[2],[3]]}");
    limits.max_rows = SIZE_MAX;
    limits.max_bytes = 50;
    refused(COUNT, IPW_ELIMIT, "the answer is larger than 50 bytes");
    limits.max_bytes = 10000;
    refused("SELECT zeroblob(9000000)", IPW_EINVAL, "too big");
    refused("SELECT hex(zeroblob(1000000))", IPW_ELIMIT, "the answer is larger than 10000 bytes");
    /* a deadline that has passed, and a call that was given up */
    limits.deadline_ns = 1;
    refused("SELECT count(*) FROM (" COUNT ")", IPW_ETIMEOUT, "the query took too long");
    limits.deadline_ns = INT64_MAX;
    atomic_store(&stop, true);
    refused("SELECT count(*) FROM (" COUNT ")", IPW_ECANCELLED, "cancelled");
}

static int search(const char *folder, const char *words)
{
    int fd = open(folder, O_PATH | O_DIRECTORY), rc;

    ipw_buf_clear(&out);
    rc = ipw_db_search(&out, fd, folder, words, &limits, &err);
    close(fd);
    return rc;
}

static void found(const char *words, const char *path)
{
    if (search("texts", words)) fail_msg("%s: %s", words, err.text);
    if (path ? !strstr(ipw_buf_str(&out), path) : !strstr(ipw_buf_str(&out), "\"rows\":[]"))
        fail_msg("%s: %s", words, ipw_buf_str(&out));
}

static void a_folder_is_searched(void **state)
{
    (void)state;
    assert_int_equal(mkdir("texts", 0700), 0);
    assert_int_equal(mkdir("texts/below", 0700), 0);
    put("texts/a.txt", "the cats sat", 12);
    put("texts/below/b.md", "a dog slept", 11);
    put("texts/.hidden", "a bird", 6);
    put("texts/bytes.bin", "fish\0fish", 9);
    put("texts/latin.txt", "wolf \xE9", 6);
    put("texts/empty.txt", "", 0);
    assert_int_equal(symlink("/etc/passwd", "texts/link.txt"), 0);
    found("cat", "\"a.txt\"");
    found("dog \"zebra", "\"below/b.md\"");
    found("bird fish wolf root", NULL);
    found("NOT AND \" NEAR(", NULL); /* words, whatever they are to SQLite */
    assert_int_equal(search("texts", " \t\"\" "), IPW_EINVAL);
    assert_string_equal(err.text, "the search text is empty");
    assert_int_equal(search("nowhere", "cat"), IPW_EIO);
    assert_int_equal(strncmp(err.text, "nowhere: ", 9), 0);
    /* it has changed: it is read again */
    put("texts/a.txt", "no animals here now", 19);
    found("cat", NULL);
    found("animal", "\"a.txt\"");
}

/* Only so many folders are kept; one that was dropped is read again. */
static void many_folders_are_searched(void **state)
{
    char path[64];

    (void)state;
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 12; i++) {
            snprintf(path, sizeof path, "many%d", i);
            mkdir(path, 0700);
            snprintf(path, sizeof path, "many%d/f", i);
            if (round == 0) put(path, "word", 4);
            snprintf(path, sizeof path, "many%d", i);
            assert_int_equal(search(path, "word"), 0);
            assert_non_null(strstr(ipw_buf_str(&out), "\"f\""));
        }
    }
    put("many0/big", "", 0);
    assert_int_equal(truncate("many0/big", 5 * 1024 * 1024), 0); /* larger than a text may be */
    assert_int_equal(search("many0", "word"), 0);
    assert_non_null(strstr(ipw_buf_str(&out), "\"f\""));
}

UNIT(db)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        CASE(values_go_in_and_come_out), CASE(only_reading_is_possible),
        CASE(the_opened_folder_is_read), CASE(an_answer_has_ends),
        CASE(a_folder_is_searched),      CASE(many_folders_are_searched),
    };

    return cmocka_run_group_tests(tests, enter_temp_folder, leave_temp_folder);
}
