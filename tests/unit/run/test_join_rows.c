/* The readings of several sessions as those of one: who leads, who goes on, and how counters with
 * another zero go on. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "json/jsonl.h"
#include "run/merge/join_rows.h"
#include "unit/unit.h"

static char folder[64];

static int set_up(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/ipw-join-rows.XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static int tear_down(void **state)
{
    char command[128];

    (void)state;
    snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command);
}

/* A session with a sensor of one channel and another one; rows: "t value" words; "-": the reading
 * failed; "o": a reading of the other one. */
static void write_session(char *path, size_t size, int number, const char *channel,
                          const char *rows)
{
    struct ipw_buf text = IPW_BUF(IPW_MIB);
    char command[128], *file = NULL;
    struct ipw_err err;
    long long t;
    char value[24];
    int n;

    snprintf(path, size, "%s/%d", folder, number);
    snprintf(command, sizeof command, "mkdir -p %s", path);
    assert_int_equal(system(command), 0);
    ipw_buf_addf(&text,
                 "{\"format\":1,\"segment\":0,\"sources\":[{\"channels\":[{\"device\":\"d\","
                 "\"domain\":\"cpu\",\"in_sum\":true,\"max_w\":100,\"modulus_uj\":0,\"name\":\"c\","
                 "\"unit\":\"uJ\",%s}],\"name\":\"s\"},{\"channels\":[{\"device\":\"o\","
                 "\"domain\":\"dram\",\"in_sum\":true,\"kind\":\"gauge\",\"max_w\":100,"
                 "\"modulus_uj\":0,\"name\":\"o\",\"unit\":\"mW\"}],\"name\":\"other\"}]}\n",
                 channel);
    for (; sscanf(rows, "%lld %23s%n", &t, value, &n) == 2; rows += n)
        if (strcmp(value, "o") == 0)
            ipw_buf_addf(&text, "[%lld,1,7]\n", t);
        else
            ipw_buf_addf(&text, "[%lld,0,%s%s]\n", t, strcmp(value, "-") != 0 ? value : "null",
                         strstr(channel, "clock_us") ? ",9" : "");
    assert_true(asprintf(&file, "%s/power.jsonl", path) > 0);
    assert_int_equal(ipw_file_write_atomic(file, ipw_buf_str(&text), text.len, &err), 0);
    ipw_buf_release(&text);
    free(file);
}

static void take(void *ud, const struct ipw_join_row *row)
{
    if (row->source) return;
    assert_in_range(row->n, 1, 2); /* with the clock of a stream */
    ipw_buf_addf(ud, "%lld ", (long long)row->t_ns);
    if (row->values[0] == IPW_NO_VALUE)
        ipw_buf_adds(ud, "- ");
    else
        ipw_buf_addf(ud, "%lld ", (long long)row->values[0]);
}

#define COUNTER  "\"kind\":\"counter\""
#define OWN_ZERO "\"kind\":\"counter\",\"own_zero\":true"
#define GAUGE    "\"kind\":\"gauge\""
#define STREAM                                                                                     \
    "\"kind\":\"counter\"},{\"device\":\"clock of h\",\"domain\":\"machine\",\"in_sum\":false,"    \
    "\"kind\":\"metric\",\"max_w\":0,\"modulus_uj\":0,\"name\":\"clock\",\"unit\":\"clock_us\""

static const struct {
    const char *name, *channel;
    int64_t end_ns[3];
    const char *sessions[3], *joined;
} cases[] = {
    {"only the leader's readings count",
     COUNTER,
     {40, 30},
     {"10 100 20 200 30 300 40 400", "15 150 25 250"},
     "10 100 20 200 30 300 40 400 "},
    {"the leader's last reading is also another's: it counts once",
     COUNTER,
     {30, 40},
     {"10 100 20 200 30 300", "20 200 30 300 40 400"},
     "10 100 20 200 30 300 40 400 "},
    {"another session goes on when the leader ends",
     COUNTER,
     {20, 40},
     {"10 100 20 200", "15 150 25 250 35 350"},
     "10 100 20 200 25 250 35 350 "},
    {"a counter with another zero goes on where the leader's ended",
     COUNTER,
     {20, 40},
     {"10 100 20 200", "15 1050 25 1150 35 1250"},
     "10 100 20 200 25 250 35 350 "},
    {"a counter that begins with its process: only the leader's readings",
     OWN_ZERO,
     {20, 40},
     {"10 100 20 200", "11 110 15 150 25 250 35 350"},
     "10 100 20 200 25 250 35 350 "},
    {"a counter with another zero: the leader goes on with another sensor, and later ends",
     COUNTER,
     {24, 40},
     {"10 100 20 200 24 o", "15 1050 22 1120 25 1150 35 1250"},
     "10 100 20 200 25 250 35 350 "},
    {"the same for longer than two readings",
     COUNTER,
     {34, 50},
     {"10 100 20 200 34 o", "15 1050 22 1120 25 1150 30 1200 35 1250 45 1350"},
     "10 100 20 200 35 350 45 450 "},
    {"the leader's last readings failed: its counter goes on from the last that did not",
     COUNTER,
     {40, 60},
     {"10 100 20 200 30 - 40 -", "15 1050 25 1150 35 1250 45 1350 55 1450"},
     "10 100 20 200 30 - 40 - 45 450 55 550 "},
    {"the new leader's first reading fails: its counter goes on with the next",
     COUNTER,
     {20, 60},
     {"10 100 20 200", "15 1050 25 - 35 1250 45 1350"},
     "10 100 20 200 25 - 35 350 45 450 "},
    {"a new leader that had not read before the last one: its counter has the same zero",
     COUNTER,
     {20, 60},
     {"10 100 20 200", "25 250 35 350"},
     "10 100 20 200 25 250 35 350 "},
    {"the longest of those that have begun leads next",
     COUNTER,
     {20, 30, 60},
     {"10 100 20 200", "15 150 25 250 30 300", "18 180 28 280 38 380 48 480 58 580"},
     "10 100 20 200 28 280 38 380 48 480 58 580 "},
    {"a session that begins after a gap keeps its counter",
     COUNTER,
     {20, 50},
     {"10 100 20 200", "40 7 50 107"},
     "10 100 20 200 40 7 50 107 "},
    {"a counter that wraps is no other zero",
     COUNTER,
     {20, 40},
     {"10 100 20 200", "15 150 25 20 35 120"},
     "10 100 20 200 25 20 35 120 "},
    {"readings of a stream are those of the leader: another session has the same",
     STREAM,
     {40, 30},
     {"10 100 20 200 30 300 40 400", "11 100 19 200 29 300"},
     "10 100 20 200 30 300 40 400 "},
    {"a stream whose new leader's clock is late: a reading that was had counts once",
     STREAM,
     {20, 60},
     {"10 100 20 200", "15 100 25 200 35 300 45 400"},
     "10 100 20 200 35 300 45 400 "},
    {"later by more than a reading: its counter is not moved, or joules would count twice",
     STREAM,
     {30, 80},
     {"10 100 20 200 30 300", "35 100 45 200 55 300 65 400 75 500"},
     "10 100 20 200 30 300 65 400 75 500 "},
    {"early by more than a reading: no joules are lost",
     STREAM,
     {30, 40},
     {"10 100 20 200 30 300", "11 200 15 300 25 400 35 500"},
     "10 100 20 200 30 300 35 500 "},
    {"a stream whose far process began anew: its counter keeps its own zero",
     STREAM,
     {20, 30},
     {"10 100 20 200", "20000000030 7 20000000040 107"},
     "10 100 20 200 20000000030 7 20000000040 107 "},
    {"of a gauge, too",
     GAUGE,
     {30, 40},
     {"10 5 20 6 30 7", "15 100 25 1 40 2"},
     "10 5 20 6 30 7 40 2 "},
};

static void readings_are_joined(void **state)
{
    (void)state;
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        struct ipw_join_from from[3];
        struct ipw_buf got = IPW_BUF(IPW_MIB), header = IPW_BUF(IPW_MIB);
        struct ipw_join_rows *rows;
        struct ipw_err err = {0};
        char paths[3][128];
        size_t n = 0, at;

        for (; n < 3 && cases[c].sessions[n]; n++) {
            write_session(paths[n], sizeof paths[n], (int)n, cases[c].channel,
                          cases[c].sessions[n]);
            from[n] = (struct ipw_join_from){paths[n], 0, cases[c].end_ns[n]};
        }
        assert_int_equal(ipw_join_rows_open(&rows, from, n, false, &at, &err), 0);
        while (ipw_join_rows_next_ns(rows) != INT64_MAX)
            assert_int_equal(ipw_join_rows_take(rows, take, &got, &at, &err), 0);
        if (strcmp(ipw_buf_str(&got), cases[c].joined) != 0)
            fail_msg("%s: %s instead of %s", cases[c].name, ipw_buf_str(&got), cases[c].joined);
        ipw_join_rows_header(rows, 7, &header);
        assert_non_null(strstr(ipw_buf_str(&header), "\"segment\":7"));
        ipw_join_rows_close(rows);
        ipw_buf_release(&got);
        ipw_buf_release(&header);
    }
}

static void a_damaged_file_is_named(void **state)
{
    struct ipw_join_rows *rows;
    struct ipw_err err = {0};
    struct ipw_join_from from[2];
    char paths[2][128];
    size_t at = 9;

    (void)state;
    write_session(paths[0], sizeof paths[0], 0, COUNTER, "10 100 20 200");
    write_session(paths[1], sizeof paths[1], 1, COUNTER, "15 150 12 120");
    for (int i = 0; i < 2; i++) from[i] = (struct ipw_join_from){paths[i], 0, 30};
    assert_int_equal(ipw_join_rows_open(&rows, from, 2, false, &at, &err), 0);
    while (!err.code && ipw_join_rows_next_ns(rows) != INT64_MAX) {
        struct ipw_buf got = IPW_BUF(IPW_MIB);

        ipw_join_rows_take(rows, take, &got, &at, &err);
        ipw_buf_release(&got);
    }
    assert_int_equal(at, 1);
    assert_non_null(strstr(err.text, "goes back"));
    ipw_join_rows_close(rows);
}

UNIT(join_rows)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(readings_are_joined),
        cmocka_unit_test(a_damaged_file_is_named),
    };

    return cmocka_run_group_tests_name("join_rows", tests, set_up, tear_down);
}
