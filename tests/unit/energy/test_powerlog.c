#include "energy/sources/powerlog.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "energy/sources/powerlog_feed.h"
#include "unit/energy/energy_test.h"
#include "unit/unit.h"

static char folder[] = "/tmp/ipw-powerlog-XXXXXX";
static char path[64];

static int make_folder(void **state)
{
    (void)state;
    if (!mkdtemp(folder)) return -1;
    snprintf(path, sizeof path, "%s/meter.csv", folder);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    unlink(path);
    return rmdir(folder); /* fails when something is left */
}

static void write_log(const char *mode, const char *text)
{
    FILE *f = fopen(path, mode);

    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
}

static struct ipw_source *open_log(const char *text)
{
    struct ipw_source *s;
    struct ipw_err err = {0};

    write_log("we", text);
    if (ipw_powerlog_open(&s, path, &err) < 0) fail_msg("%s", err.text);
    return s;
}

static int64_t read_one(struct ipw_source *s)
{
    int64_t values[16];

    s->read(s, values);
    return values[0];
}

static void test_rows_arrive(void **state)
{
    struct ipw_source *s = open_log("time,id,pm1,pm2,sum\n1,1,60,40,100\n");
    int64_t v[3];

    (void)state;
    assert_string_equal(s->name, "log");
    assert_int_equal(s->n_channels, 3);
    assert_string_equal(s->channels[2].name, "meter.csv:sum");
    assert_int_equal(s->channels[2].domain, IPW_DOMAIN_MACHINE);
    assert_int_equal(s->channels[2].scope, IPW_SCOPE_MACHINE);
    assert_int_equal(s->channels[2].kind, IPW_CHANNEL_GAUGE);
    assert_true(s->channels[2].in_sum);
    assert_false(s->channels[0].in_sum || s->channels[1].in_sum);
    /* A row just written is what the meter says now. */
    s->read(s, v);
    assert_int_equal(v[0], 60000);
    assert_int_equal(v[2], 100000);
    /* Rows that came at once are averaged; then the last one is held. */
    write_log("ae", "2,2,70,50,120\n3,3,80,52,132\n4,4,9");
    s->read(s, v);
    assert_int_equal(v[0], 75000);
    assert_int_equal(v[2], 126000);
    s->read(s, v);
    assert_int_equal(v[2], 132000);
    /* The rest of a row that was being written. */
    write_log("ae", "0,1,91\n");
    s->read(s, v);
    assert_int_equal(v[0], 90000);
    assert_int_equal(v[1], 1000);
    assert_string_equal(s->note, "");
    s->close(s);
}

static void test_damaged_rows_are_named(void **state)
{
    struct ipw_source *s = open_log("time,w\n");

    (void)state;
    assert_true(read_one(s) == IPW_NO_VALUE);
    write_log("ae", "1,5\n2,oops\n3\n4,7\n");
    assert_int_equal(read_one(s), 6000);
    assert_string_equal(s->note, "meter.csv:3: 'oops' in column w is not a number");
    s->close(s);
}

static void test_rows_of_several_devices_give_no_value(void **state)
{
    struct ipw_source *s = open_log("timestamp,index,power.draw [W]\n");
    struct ipw_err err = {0};

    (void)state;
    write_log("ae", "1,0,100\n1.1,1,300\n2,0,100\n2.1,1,300\n");
    assert_true(read_one(s) == IPW_NO_VALUE);
    assert_non_null(strstr(s->note, "meter.csv:4: the log mixes several devices"));
    s->close(s);
    assert_int_equal(ipw_powerlog_open(&s, path, &err), IPW_EUNSUPPORTED);
    assert_non_null(strstr(err.text, "the log mixes several devices ('0' and others)"));
}

static void test_counters(void **state)
{
    struct ipw_source *s = open_log("time;energy (Wh);power (W)\n");
    int64_t v[2];

    (void)state;
    assert_int_equal(s->channels[0].kind, IPW_CHANNEL_COUNTER);
    assert_true(s->channels[0].in_sum);
    assert_false(s->channels[1].in_sum);
    write_log("ae", "1;0,5;100\n2;0,75;100\n");
    s->read(s, v);
    assert_int_equal(v[0], INT64_C(2700000000)); /* the newest, not the mean */
    assert_int_equal(v[1], 100000);
    s->close(s);
}

static void test_a_cut_or_replaced_log_begins_anew(void **state)
{
    struct ipw_source *s = open_log("time,w\n1,5\n2,6\n");
    char moved[80];

    (void)state;
    read_one(s);
    write_log("we", "time,w\n");
    read_one(s);
    write_log("ae", "1,50\n");
    assert_int_equal(read_one(s), 50000);
    snprintf(moved, sizeof moved, "%s.1", path);
    assert_int_equal(rename(path, moved), 0);
    write_log("we", "time,w\n1,70\n");
    read_one(s);
    assert_int_equal(read_one(s), 70000);
    assert_string_equal(s->note, "");
    /* Emptied under its writer, who writes no second heading. */
    write_log("we", "9,80\n");
    read_one(s);
    assert_int_equal(read_one(s), 80000);
    assert_string_equal(s->note, "");
    /* Other columns are not taken for the old ones. */
    assert_int_equal(rename(path, moved), 0); /* not removed: the inode would come again */
    write_log("we", "time,volts,w\n1,230,80\n");
    read_one(s);
    read_one(s);
    write_log("we", "time,joules\n1,8\n");
    read_one(s);
    read_one(s);
    assert_string_equal(s->note, "meter.csv:1: the columns have changed");
    s->close(s);
    unlink(moved);
}

/* As programs of Windows begin a file. */
static void test_a_mark_before_the_first_line(void **state)
{
    char named[96];
    struct ipw_source *s = open_log("\xEF\xBB\xBF# meter 1\r\ntime,w\r\n1,5\r\n");

    (void)state;
    assert_int_equal(read_one(s), 5000);
    s->close(s);
    write_log("we", "\xEF\xBB\xBFwatts,time\n6,1\n");
    snprintf(named, sizeof named, "%s#watts", path);
    assert_int_equal(ipw_powerlog_open(&s, named, NULL), 0);
    assert_int_equal(read_one(s), 6000);
    s->close(s);
}

static void test_one_column_of_many(void **state)
{
    struct ipw_source *s;
    struct ipw_err err = {0};
    char named[96];

    (void)state;
    write_log("we", "time,apower,w\n1,5,6\n");
    snprintf(named, sizeof named, "%s#apower", path);
    assert_int_equal(ipw_powerlog_open(&s, named, &err), 0);
    assert_int_equal(s->n_channels, 1);
    assert_int_equal(read_one(s), 5000);
    s->close(s);
    snprintf(named, sizeof named, "%s#none", path);
    assert_int_equal(ipw_powerlog_open(&s, named, &err), IPW_ENOTFOUND);
    assert_null(s);
}

static void test_what_is_no_log(void **state)
{
    struct ipw_source *s;
    struct ipw_err err = {0};

    (void)state;
    unlink(path);
    assert_int_equal(ipw_powerlog_open(&s, path, &err), IPW_ENOTFOUND);
    assert_non_null(strstr(err.text, path));
    write_log("we", "");
    assert_int_equal(ipw_powerlog_open(&s, path, &err), IPW_EUNSUPPORTED);
    write_log("we", "time,volts\n");
    assert_int_equal(ipw_powerlog_open(&s, path, &err), IPW_EPARSE);
    assert_int_equal(ipw_powerlog_open(&s, folder, &err), IPW_EINVAL);
}

/* A reading is held for five of its distances and at least 10 s; not forever. */
static void test_a_held_reading_goes_stale(void **state)
{
    struct ipw_powerlog_held h = {0};

    (void)state;
    assert_true(ipw_powerlog_held_take(&h, IPW_METER_WATTS, S(1)) == IPW_NO_VALUE);
    ipw_powerlog_held_push(&h, 5, S(1));
    assert_int_equal(ipw_powerlog_held_take(&h, IPW_METER_WATTS, S(11)), 5000);
    assert_true(ipw_powerlog_held_take(&h, IPW_METER_WATTS, S(11.1)) == IPW_NO_VALUE);
    ipw_powerlog_held_push(&h, 7, S(21)); /* 20 s apart */
    assert_int_equal(ipw_powerlog_held_take(&h, IPW_METER_WATTS, S(121)), 7000);
    assert_true(ipw_powerlog_held_take(&h, IPW_METER_WATTS, S(121.1)) == IPW_NO_VALUE);
    ipw_powerlog_held_push(&h, 1e12, S(122));
    assert_int_equal(ipw_powerlog_held_take(&h, IPW_METER_WATTS, S(122)),
                     INT64_C(1000000000000000));
}

static int64_t tick_ns;
static int64_t tick(void) { return tick_ns; }

/* The same by the source's own clock: a log that stands still is not what the meter says now. */
static void test_a_silent_log_goes_stale(void **state)
{
    struct ipw_source *s = open_log("time,watts\n1,60\n");

    (void)state;
    s->now = tick;
    tick_ns = ipw_now_ns();
    assert_int_equal(read_one(s), 60000);
    tick_ns += 9 * IPW_NS_PER_S;
    assert_int_equal(read_one(s), 60000);
    tick_ns += 2 * IPW_NS_PER_S;
    assert_true(read_one(s) == IPW_NO_VALUE);
    write_log("ae", "2,70\n");
    assert_int_equal(read_one(s), 70000);
    s->close(s);
}

static size_t lines_seen;
static size_t longest;

static void see_line(void *ud, const char *line, size_t n, int64_t number)
{
    (void)ud;
    (void)line;
    lines_seen++;
    assert_int_equal(number, lines_seen);
    if (n > longest) longest = n;
}

static void test_lines_in_pieces(void **state)
{
    struct ipw_powerlog_lines f = {0};
    char *flood = malloc(100000);

    (void)state;
    ipw_powerlog_lines_push(&f, "ab", 2, see_line, NULL);
    assert_int_equal(lines_seen, 0);
    ipw_powerlog_lines_push(&f, "c\r\n\nd", 5, see_line, NULL);
    assert_int_equal(lines_seen, 2);
    assert_int_equal(longest, 3);
    memset(flood, 'x', 100000);
    ipw_powerlog_lines_push(&f, flood, 100000, see_line, NULL);
    ipw_powerlog_lines_push(&f, "\n", 1, see_line, NULL);
    assert_int_equal(lines_seen, 3);
    assert_int_equal(longest, sizeof f.text);
    ipw_powerlog_lines_end(&f, see_line, NULL);
    assert_int_equal(lines_seen, 3);
    free(flood);
}

static int refused_path(const char *p, struct ipw_err *err)
{
    struct ipw_source *s;
    int rc = ipw_powerlog_open(&s, p, err);

    assert_null(s);
    return rc;
}

/* What is no log of a meter is refused with its name and the remedy. */
static void test_refused_files(void **state)
{
    struct ipw_err err = {0};
    char name[5000];

    (void)state;
    unlink(path);
    assert_int_not_equal(refused_path(path, &err), 0);
    assert_non_null(strstr(err.text, "meter.csv"));
    assert_int_equal(refused_path(folder, &err), IPW_EINVAL);
    assert_non_null(strstr(err.text, "not a regular file"));
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    assert_int_equal(refused_path(name, &err), IPW_EINVAL);
    assert_string_equal(err.text, "the path is too long");
    write_log("we", " \t\n# a remark\n\n");
    assert_int_equal(refused_path(path, &err), IPW_EUNSUPPORTED);
    assert_non_null(strstr(err.text, "no heading yet"));
    write_log("we", "name,place\na,b\n");
    assert_int_not_equal(refused_path(path, &err), 0);
    assert_non_null(strstr(err.text, "meter.csv: "));
}

/* A byte order mark, remarks and blank lines are no rows. */
static void test_marks_and_remarks(void **state)
{
    struct ipw_source *s = open_log("\xEF\xBB\xBFtime,w\n");

    (void)state;
    write_log("ae", "\t\n# a remark\n \n1,5\n");
    assert_int_equal(read_one(s), 5000);
    assert_string_equal(s->note, "");
    s->close(s);
}

/* A successor with other columns is not taken for the first: no value, and a note with file and
 * line. */
static void test_other_columns(void **state)
{
    static const char *const others[] = {"time,v_w,u_w\n1,5,6\n", "time,other_watts\n1,5\n",
                                         "time,w_joules\n1,5\n"};

    (void)state;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        struct ipw_source *s = open_log("time,w\n1,70000\n2,70000\n3,70000\n4,70000\n5,70000\n");

        read_one(s);
        write_log("we", others[i]);
        read_one(s); /* sees that the file was cut */
        read_one(s);
        if (!strstr(s->note, "meter.csv:1: the columns have changed"))
            fail_msg("%zu: %s", i, s->note);
        s->close(s);
    }
}

/* A log that is moved away and comes back as a folder, or not at all, gives the last row as long as
 * a row holds; a new file is read from its start. */
static void test_moved_away(void **state)
{
    struct ipw_source *s = open_log("time,w\n1,5\n");

    (void)state;
    assert_int_equal(read_one(s), 5000);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(read_one(s), 5000);
    assert_int_equal(mkdir(path, 0755), 0);
    assert_int_equal(read_one(s), 5000);
    assert_int_equal(read_one(s), 5000);
    assert_int_equal(rmdir(path), 0);
    write_log("we", "time,w\n2,9\n");
    read_one(s);
    assert_int_equal(read_one(s), 9000);
    s->close(s);
}

/* One column of several, by the option or behind the path's '#'. */
static void test_one_column(void **state)
{
    struct ipw_source *s;
    struct ipw_err err = {0};
    char named[80];

    (void)state;
    write_log("we", "time,a_w,b_w\n1,5,7\n");
    snprintf(named, sizeof named, "%s#b_w", path);
    assert_int_equal(ipw_powerlog_open(&s, named, &err), 0);
    assert_int_equal(s->n_channels, 1);
    assert_int_equal(read_one(s), 7000);
    s->close(s);
    snprintf(named, sizeof named, "%s#a_w", path);
    assert_int_equal(ipw_powerlog_open(&s, named, &err), 0);
    assert_int_equal(read_one(s), 5000);
    s->close(s);
    snprintf(named, sizeof named, "%s#c_w", path);
    assert_int_not_equal(ipw_powerlog_open(&s, named, &err), 0);
    assert_non_null(strstr(err.text, "c_w"));
}

UNIT(powerlog)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows_arrive),
        cmocka_unit_test(test_damaged_rows_are_named),
        cmocka_unit_test(test_rows_of_several_devices_give_no_value),
        cmocka_unit_test(test_counters),
        cmocka_unit_test(test_a_cut_or_replaced_log_begins_anew),
        cmocka_unit_test(test_a_mark_before_the_first_line),
        cmocka_unit_test(test_one_column_of_many),
        cmocka_unit_test(test_what_is_no_log),
        cmocka_unit_test(test_a_held_reading_goes_stale),
        cmocka_unit_test(test_a_silent_log_goes_stale),
        cmocka_unit_test(test_lines_in_pieces),
        cmocka_unit_test(test_refused_files),
        cmocka_unit_test(test_marks_and_remarks),
        cmocka_unit_test(test_other_columns),
        cmocka_unit_test(test_moved_away),
        cmocka_unit_test(test_one_column),
    };

    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
