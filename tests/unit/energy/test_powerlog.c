#include "energy/source.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "energy/sources/meter_feed.h"
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
    if (ipw_powerlog_open(&s, NULL, path, &err) < 0) fail_msg("%s", err.text);
    return s;
}

static int64_t read_one(struct ipw_source *s)
{
    int64_t values[16];

    s->read(s, values);
    return values[0];
}

static int64_t tick_ns;
static int64_t tick(void) { return tick_ns; }

/* The next row, or a time of -1. */
static int64_t next_row(struct ipw_source *s, int64_t *values, int64_t *half_ns)
{
    int64_t t_ns = -1;

    return s->next(s, values, &t_ns, half_ns) > 0 ? t_ns : -1;
}

static void test_rows_arrive(void **state)
{
    struct ipw_source *s = open_log("time,id,pm1,pm2,sum\n1,1,60,40,100\n");
    int64_t v[4];

    (void)state;
    assert_string_equal(s->name, "log");
    assert_int_equal(s->n_channels, 4);
    assert_string_equal(s->channels[2].name, "meter.csv:sum");
    assert_int_equal(s->channels[2].domain, IPW_DOMAIN_MACHINE);
    assert_int_equal(s->channels[2].scope, IPW_SCOPE_MACHINE);
    assert_int_equal(s->channels[2].kind, IPW_CHANNEL_GAUGE);
    assert_true(s->channels[2].in_sum);
    assert_false(s->channels[0].in_sum || s->channels[1].in_sum);
    assert_string_equal(s->channels[3].unit, IPW_UNIT_CLOCK);
    /* A row just written is what the meter says now. */
    s->read(s, v);
    assert_int_equal(v[0], 60000);
    assert_int_equal(v[2], 100000);
    write_log("ae", "2,2,70,50,120\n3,3,80,52,132\n4,4,9");
    s->read(s, v);
    assert_int_equal(v[0], 80000);
    assert_int_equal(v[2], 132000);
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

/* Rows that come together were written before: by their own stamps, or evenly, and then their
 * times are no better known than the silence is long. */
static void test_times_of_a_burst(void **state)
{
    static const struct {
        const char *rows;
        int64_t t_ms[4], half_ms[4];
        size_t n;
    } table[] = {
        {"101,10\n", {12000}, {10}, 1},
        {"100.5,10\n101,20\n101.5,30\n", {11000, 11500, 12000}, {10, 10, 10}, 3},
        {"11:00:59,10\n11:01:00,20\n", {11000, 12000}, {10, 10}, 2},
        {"7,10\n7,20\n7,30\n7,40\n", {10500, 11000, 11500, 12000}, {2000, 2000, 2000, 10}, 4},
        {"90,10\n101,20\n", {12000}, {10}, 1}, /* the first is from before the last row */
    };

    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct ipw_source *s = open_log("time,w\n");
        int64_t v[2], half_ns;

        s->now = tick;
        tick_ns = S(10);
        assert_int_equal(next_row(s, v, &half_ns), S(10)); /* nothing yet: no value */
        assert_true(v[0] == IPW_NO_VALUE);
        write_log("ae", strchr(table[i].rows, ':') ? "10:59:00,5\n" : "1,5\n");
        tick_ns += S(0.01);
        assert_int_equal(next_row(s, v, &half_ns), S(10.01));
        assert_int_equal(v[0], 5000);
        tick_ns = S(11.99);
        assert_int_equal(next_row(s, v, &half_ns), -1);
        write_log("ae", table[i].rows);
        tick_ns = S(12);
        for (size_t k = 0; k < table[i].n; k++) {
            int64_t t_ns = next_row(s, v, &half_ns), off = t_ns / 1000000 - table[i].t_ms[k];

            if (off < -10 || off > 10 || llabs(half_ns / 1000000 - table[i].half_ms[k]) > 10)
                fail_msg("row %zu.%zu: %lld, half %lld", i, k, (long long)t_ns, (long long)half_ns);
            assert_int_equal(v[1], half_ns);
            if (table[i].n > 1) assert_int_equal(v[0], (int64_t)(k + 1) * 10000);
        }
        assert_int_equal(next_row(s, v, &half_ns), -1);
        s->close(s);
    }
}

/* One rule for every source: silent for three usual distances and a second is stale.  A meter that
 * is slower than every 2.5 s is held in between. */
static void test_staleness(void **state)
{
    struct ipw_meter_feed_pace p = {0};
    struct ipw_source *s;
    int64_t v[2], half_ns;

    (void)state;
    assert_true(ipw_meter_feed_pace_is_stale(&p, S(1)));
    ipw_meter_feed_pace_news(&p, S(1));
    assert_false(ipw_meter_feed_pace_is_stale(&p, S(11))); /* the distance is unknown */
    assert_true(ipw_meter_feed_pace_is_stale(&p, S(11.1)));
    ipw_meter_feed_pace_news(&p, S(1.1));
    assert_false(ipw_meter_feed_pace_is_stale(&p, S(2.1)));
    assert_true(ipw_meter_feed_pace_is_stale(&p, S(2.2)));
    p = (struct ipw_meter_feed_pace){.last_ns = S(1)};
    ipw_meter_feed_pace_news(&p, S(6));
    assert_false(ipw_meter_feed_pace_is_stale(&p, S(21)));
    assert_true(ipw_meter_feed_pace_is_stale(&p, S(21.1)));

    s = open_log("time,w\n");
    s->now = tick;
    tick_ns = S(10);
    next_row(s, v, &half_ns);
    write_log("ae", "1,5\n");
    tick_ns = S(15);
    assert_int_equal(next_row(s, v, &half_ns), S(15));
    write_log("ae", "6,6\n");
    tick_ns = S(20);
    assert_int_equal(next_row(s, v, &half_ns), S(20));
    tick_ns = S(22.4);
    assert_int_equal(next_row(s, v, &half_ns), -1);
    tick_ns = S(22.5);
    assert_int_equal(next_row(s, v, &half_ns), S(22.5));
    assert_int_equal(v[0], 6000);
    tick_ns = S(35.1); /* more than three distances of 5 s */
    assert_int_equal(next_row(s, v, &half_ns), S(35.1));
    assert_true(v[0] == IPW_NO_VALUE);
    assert_int_equal(next_row(s, v, &half_ns), -1); /* told twice a second */
    tick_ns = S(35.6);
    assert_int_equal(next_row(s, v, &half_ns), S(35.6));
    assert_true(v[0] == IPW_NO_VALUE);
    write_log("ae", "7,8\n");
    tick_ns = S(36);
    assert_int_equal(next_row(s, v, &half_ns), S(36));
    assert_int_equal(v[0], 8000);
    s->close(s);
}

static void test_damaged_rows_are_named(void **state)
{
    struct ipw_source *s = open_log("time,w\n");

    (void)state;
    assert_true(read_one(s) == IPW_NO_VALUE);
    write_log("ae", "1,5\n2,oops\n3\n4,7\n");
    assert_int_equal(read_one(s), 7000);
    assert_string_equal(s->note,
                        "2 lines are no reading; meter.csv:3: 'oops' in column w is not a number");
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
    assert_int_equal(ipw_powerlog_open(&s, NULL, path, &err), IPW_EUNSUPPORTED);
    assert_non_null(strstr(err.text, "the log mixes several devices ('0' and others)"));
}

static void test_counters(void **state)
{
    struct ipw_source *s = open_log("time;energy (Wh);power (W)\n");
    int64_t v[3];

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
    assert_string_equal(s->note, "1 line is no reading; meter.csv:1: the columns have changed");
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
    assert_int_equal(ipw_powerlog_open(&s, NULL, named, NULL), 0);
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
    assert_int_equal(ipw_powerlog_open(&s, NULL, named, &err), 0);
    assert_int_equal(s->n_channels, 2);
    assert_int_equal(read_one(s), 5000);
    s->close(s);
    snprintf(named, sizeof named, "%s#none", path);
    assert_int_equal(ipw_powerlog_open(&s, NULL, named, &err), IPW_ENOTFOUND);
    assert_null(s);
}

static void test_what_is_no_log(void **state)
{
    struct ipw_source *s;
    struct ipw_err err = {0};

    (void)state;
    unlink(path);
    assert_int_equal(ipw_powerlog_open(&s, NULL, path, &err), IPW_ENOTFOUND);
    assert_non_null(strstr(err.text, path));
    write_log("we", "");
    assert_int_equal(ipw_powerlog_open(&s, NULL, path, &err), IPW_EUNSUPPORTED);
    write_log("we", "time,volts\n");
    assert_int_equal(ipw_powerlog_open(&s, NULL, path, &err), IPW_EPARSE);
    assert_int_equal(ipw_powerlog_open(&s, NULL, folder, &err), IPW_EINVAL);
}

/* By the source's own clock: a log that stands still is not what the meter says now. */
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

static void no_pull(struct ipw_meter_feed *f) { (void)f; }
static void no_shut(struct ipw_meter_feed *f) { (void)f; }

/* However the bytes are cut, the lines are the same; a line without an end takes no room. */
static void test_lines_in_pieces(void **state)
{
    struct ipw_meter_feed f = {.pull = no_pull, .shut = no_shut, .patient = true};
    char *flood = malloc(100000);

    (void)state;
    ipw_meter_feed_init(&f, "x");
    ipw_meter_feed_bytes(&f, "5 ", 2);
    assert_int_equal(f.number, 0);
    ipw_meter_feed_bytes(&f, "W\r\n\n6", 5);
    assert_int_equal(f.number, 2);
    assert_int_equal(f.n_rows, 1);
    memset(flood, 'x', 100000);
    ipw_meter_feed_bytes(&f, flood, 100000);
    ipw_meter_feed_bytes(&f, "\n", 1);
    assert_int_equal(f.number, 3);
    assert_int_equal(f.bad, 1);
    ipw_meter_feed_bytes(&f, "7", 1);
    ipw_meter_feed_end_line(&f);
    ipw_meter_feed_end_line(&f);
    assert_int_equal(f.number, 4);
    assert_int_equal(f.n_rows, 2);
    for (int i = 0; i < 10000; i++) ipw_meter_feed_bytes(&f, "8\n", 2);
    assert_true(f.n_rows - f.taken <= 4096 && f.cap_rows < 20000);
    f.source.close(&f.source);
    free(flood);
}

static int refused_path(const char *p, struct ipw_err *err)
{
    struct ipw_source *s;
    int rc = ipw_powerlog_open(&s, NULL, p, err);

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
    assert_int_equal(ipw_powerlog_open(&s, NULL, named, &err), 0);
    assert_int_equal(s->n_channels, 2);
    assert_int_equal(read_one(s), 7000);
    s->close(s);
    snprintf(named, sizeof named, "%s#a_w", path);
    assert_int_equal(ipw_powerlog_open(&s, NULL, named, &err), 0);
    assert_int_equal(read_one(s), 5000);
    s->close(s);
    snprintf(named, sizeof named, "%s#c_w", path);
    assert_int_not_equal(ipw_powerlog_open(&s, NULL, named, &err), 0);
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
        cmocka_unit_test(test_times_of_a_burst),
        cmocka_unit_test(test_staleness),
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
