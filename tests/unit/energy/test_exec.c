#include "energy/source.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "unit/energy/energy_test.h"
#include "unit/unit.h"

/* A named pipe through which the test tells the command when to go on. */
static char folder[] = "/tmp/ipw-exec-XXXXXX";
static char go[64];

static size_t open_files(void)
{
    DIR *dir = opendir("/proc/self/fd");
    size_t n = 0;

    assert_non_null(dir);
    while (readdir(dir)) n++;
    closedir(dir);
    return n;
}

static size_t files_before;

static int make_folder(void **state)
{
    (void)state;
    if (!mkdtemp(folder)) return -1;
    snprintf(go, sizeof go, "%s/go", folder);
    files_before = open_files();
    return mkfifo(go, 0600);
}

static int remove_folder(void **state)
{
    (void)state;
    unlink(go);
    if (rmdir(folder)) return -1;
    if (open_files() != files_before) return -1;
    return waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD ? 0 : -1; /* no child is left */
}

static struct ipw_source *open_exec(const char *command)
{
    struct ipw_source *s;
    struct ipw_err err = {0};

    if (ipw_exec_open(&s, NULL, command, &err) < 0) fail_msg("%s", err.text);
    return s;
}

static void wait_a_bit(void)
{
    struct timespec ts = {.tv_nsec = 2000000};

    nanosleep(&ts, NULL);
}

/* Reads until the value is as wanted: the child is another process. */
static void until(struct ipw_source *s, int64_t wanted)
{
    int64_t v[2], deadline = ipw_now_ns() + 30 * IPW_NS_PER_S;

    do {
        s->read(s, v);
        if (v[0] == wanted) return;
        wait_a_bit();
    } while (ipw_now_ns() < deadline);
    fail_msg("%lld, not %lld", (long long)v[0], (long long)wanted);
}

static void test_units(void **state)
{
    static const struct {
        const char *command;
        enum ipw_channel_kind kind;
        int64_t value;
    } cases[] = {
        {"echo 123.4 W; exec sleep 100", IPW_CHANNEL_GAUGE, 123400},
        {"echo 17; exec sleep 100", IPW_CHANNEL_GAUGE, 17000},
        {"echo 1.5 kW; exec sleep 100", IPW_CHANNEL_GAUGE, 1500000},
        {"echo 5.2 J; exec sleep 100", IPW_CHANNEL_COUNTER, 5200000},
        {"echo 2 Wh; exec sleep 100", IPW_CHANNEL_COUNTER, INT64_C(7200000000)},
        {"echo '{\"t\": 1, \"watts\": 12.5}'; exec sleep 100", IPW_CHANNEL_GAUGE, 12500},
        {"echo '{\"joules\": 3}'; exec sleep 100", IPW_CHANNEL_COUNTER, 3000000},
        {"echo; echo hello; echo 9 W; exec sleep 100", IPW_CHANNEL_GAUGE, 9000},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ipw_source *s = open_exec(cases[i].command);
        int64_t v[2];

        assert_string_equal(s->name, "exec");
        assert_int_equal(s->n_channels, 2);
        assert_int_equal(s->channels[0].kind, cases[i].kind);
        assert_int_equal(s->channels[0].domain, IPW_DOMAIN_MACHINE);
        assert_true(s->channels[0].in_sum);
        s->read(s, v);
        assert_int_equal(v[0], cases[i].value);
        s->close(s);
    }
}

static void test_lines_that_do_not_parse(void **state)
{
    struct ipw_source *s;
    char command[256];
    FILE *f;

    (void)state;
    snprintf(command, sizeof command,
             "echo starting up; echo 1 W; read line <%s; echo 5 J; echo '-3 W'; echo 2 W; "
             "exec sleep 100",
             go);
    s = open_exec(command);
    assert_string_equal(s->note, "1 line is no reading; line 1: 'starting up' is not a reading");
    until(s, 1000);
    f = fopen(go, "we");
    fputs("\n", f);
    fclose(f);
    until(s, 2000);
    assert_string_equal(s->note, "3 lines are no reading; line 1: 'starting up' is not a reading");
    s->close(s);
}

static void test_the_end_is_told(void **state)
{
    struct ipw_source *s;
    char command[256];
    int64_t v[2];
    FILE *f;

    (void)state;
    snprintf(command, sizeof command, "echo 10 J; read line <%s; echo 'cable gone' >&2; exit 3",
             go);
    s = open_exec(command);
    until(s, 10000000);
    f = fopen(go, "we");
    fputs("\n", f);
    fclose(f);
    until(s, IPW_NO_VALUE);
    s->read(s, v);
    assert_true(v[0] == IPW_NO_VALUE);
    assert_string_equal(s->note, "the command ended with status 3: cable gone");
    s->close(s);
}

static void test_commands_that_do_not_work(void **state)
{
    static const struct {
        const char *command, *message;
    } cases[] = {
        {"exit 4", "exec=exit 4: no reading; it ended with status 4"},
        {"echo no sensor >&2; exit 1",
         "exec=echo no sensor >&2; exit 1: no reading; it ended with status 1: no sensor"},
        {"echo volts", "exec=echo volts: no reading; it ended with status 0; line 1: 'volts' is "
                       "not a reading"},
        {"kill -9 $$", "exec=kill -9 $$: no reading; it was ended by signal 9"},
    };
    struct ipw_source *s;
    struct ipw_err err;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(ipw_exec_open(&s, NULL, cases[i].command, &err), IPW_EUNSUPPORTED);
        assert_null(s);
        assert_string_equal(err.text, cases[i].message);
    }
}

/* The whole group ends, also a child that does not listen to SIGTERM. */
static void test_nothing_is_left_running(void **state)
{
    struct ipw_source *s;
    char command[256];
    pid_t pids[2];
    FILE *f;

    (void)state;
    snprintf(command, sizeof command,
             "trap '' TERM; sleep 1000 & echo $! $$ >%s/pids; echo 1 W; wait; sleep 1000", folder);
    s = open_exec(command);
    snprintf(command, sizeof command, "%s/pids", folder);
    f = fopen(command, "re");
    assert_int_equal(fscanf(f, "%d %d", &pids[0], &pids[1]), 2);
    fclose(f);
    unlink(command);
    assert_int_equal(kill(pids[1], 0), 0);
    s->close(s);
    for (int i = 0; i < 2; i++) {
        /* The grandchild is another's to wait for: gone, or a zombie of it. */
        for (int tries = 0; tries < 10000 && kill(pids[i], 0) == 0; tries++) {
            char line[256], state_letter = '?';
            snprintf(line, sizeof line, "/proc/%d/stat", pids[i]);
            f = fopen(line, "re");
            if (f && fgets(line, sizeof line, f) && strrchr(line, ')'))
                state_letter = strrchr(line, ')')[2];
            if (f) fclose(f);
            if (state_letter == 'Z' || state_letter == 'X') break;
            wait_a_bit();
            assert_true(tries < 9999);
        }
    }
}

/* A command that prints without end is read in bounded bites. */
static void test_a_flood_is_bounded(void **state)
{
    struct ipw_source *s = open_exec("exec yes 3 W");
    int64_t v[2];

    (void)state;
    for (int i = 0; i < 20; i++) {
        s->read(s, v);
        assert_int_equal(v[0], 3000);
    }
    s->close(s);
    s = open_exec("echo 1 W; exec tr '\\000' x </dev/zero");
    for (int i = 0; i < 20; i++) s->read(s, v);
    s->close(s);
}

/* Lines that are no reading are counted, and the first is told without its control characters. */
static void test_lines_that_are_none(void **state)
{
    static const char *const table[] = {
        "{\"watts\":\"5\"}", "{\"volts\":5}", "{\"watts\":", "[5]",   "-5 W",  "1e13 W", "5 J",
        "5 volts",           "x\001\177y",    "nan",         "1e7 W", "inf W",
    };

    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct ipw_source *s;
        char command[200], shown[64];

        snprintf(command, sizeof command, "printf '%%s\\n' '1 W' '%s'; read x <%s", table[i], go);
        s = open_exec(command);
        for (int64_t v[2], end = ipw_now_ns() + 30 * IPW_NS_PER_S;
             !s->note[0] && ipw_now_ns() < end;) {
            s->read(s, v);
            wait_a_bit();
        }
        snprintf(shown, sizeof shown, "%s' is ", strchr(table[i], '\177') ? "x  y" : table[i]);
        if (!strstr(s->note, "1 line is no reading; line 2: '") || !strstr(s->note, shown))
            fail_msg("%s: %s", table[i], s->note);
        s->close(s);
    }
}

/* Blanks before a reading do not matter; JSON may have other keys and be joules. */
static void test_spellings(void **state)
{
    static const struct {
        const char *line;
        enum ipw_channel_kind kind;
    } table[] = {
        {"  \t5 W", IPW_CHANNEL_GAUGE},
        {"  {\"at\":\"noon\",\"n\":1,\"watts\":5.0}", IPW_CHANNEL_GAUGE},
        {"{\"joules\":5}", IPW_CHANNEL_COUNTER},
        {"\n \n5", IPW_CHANNEL_GAUGE},
    };

    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct ipw_source *s;
        char command[200];

        snprintf(command, sizeof command, "echo '%s'; read x <%s", table[i].line, go);
        s = open_exec(command);
        assert_int_equal(s->channels[0].kind, table[i].kind);
        s->close(s);
    }
}

/* Without descriptors there is no command: an error that names it, and no child. */
static void test_no_descriptors(void **state)
{
    struct rlimit old, low;
    struct ipw_source *s;
    struct ipw_err err = {0};

    (void)state;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
    for (rlim_t spare = 0; spare <= 2; spare += 2) {
        int probe = dup(0);

        low = old;
        low.rlim_cur = (rlim_t)probe + spare;
        close(probe);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
        assert_int_not_equal(ipw_exec_open(&s, NULL, "echo 5 W", &err), 0);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
        assert_non_null(strstr(err.text, "exec=echo 5 W: "));
        assert_null(s);
    }
}

UNIT(exec)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_units),
        cmocka_unit_test(test_lines_that_do_not_parse),
        cmocka_unit_test(test_the_end_is_told),
        cmocka_unit_test(test_commands_that_do_not_work),
        cmocka_unit_test(test_nothing_is_left_running),
        cmocka_unit_test(test_a_flood_is_bounded),
        cmocka_unit_test(test_lines_that_are_none),
        cmocka_unit_test(test_spellings),
        cmocka_unit_test(test_no_descriptors),
    };

    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
