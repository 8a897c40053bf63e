#include <dirent.h>
#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "json/jsonl.h"
#include "trace/redact.h"
#include "trace/rundir.h"
#include "trace/schema.h"
#include "unit/base/temp_folder.h"
#include "unit/trace/script.h"
#include "unit/unit.h"

static size_t files_in(const char *path)
{
    DIR *dir = opendir(path);
    size_t n = 0;

    assert_non_null(dir);
    for (struct dirent *e; (e = readdir(dir));) n += e->d_name[0] != '.';
    closedir(dir);
    return n;
}

static char *contents(const char *path)
{
    struct ipw_buf bytes = IPW_BUF(IPW_MIB);
    char *text;

    assert_int_equal(ipw_file_read(&bytes, path, NULL), 0);
    text = ipw_memdup(bytes.data, bytes.len); /* by length: what was read is bytes, not text */
    ipw_buf_release(&bytes);
    return text;
}

static void assert_contents(const char *path, const char *want)
{
    char *text = contents(path);

    assert_string_equal(text, want);
    free(text);
}

static mode_t mode_of(const char *path)
{
    struct stat st;

    assert_int_equal(stat(path, &st), 0);
    return st.st_mode & 0777;
}

static const struct ipw_rundir_names names = {.agent = "react",
                                              .model = "Qwen/Qwen3-8B",
                                              .dataset = "gaia",
                                              .wall_ns = INT64_C(1795228267123000000)};

static void default_names_are_numbered(void **state)
{
    static const char *const want[] = {"runs/react_Qwen_Qwen3_8B_gaia_20261121-023107",
                                       "runs/react_Qwen_Qwen3_8B_gaia_20261121-023107-2",
                                       "runs/react_Qwen_Qwen3_8B_gaia_20261121-023107-3"};
    struct ipw_rundir_names odd = {.agent = "../a b", .model = "", .dataset = ".\n"};
    struct ipw_rundir *dir;

    (void)state;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(ipw_rundir_create(&dir, NULL, &names, NULL), 0);
        assert_string_equal(ipw_rundir_path(dir), want[i]);
        assert_int_equal(mode_of(want[i]), 0700);
        assert_int_equal(ipw_rundir_close(dir, NULL), 0);
    }
    assert_int_equal(files_in("runs"), 3);
    assert_int_equal(ipw_rundir_create(&dir, NULL, &odd, NULL), 0);
    assert_string_equal(ipw_rundir_path(dir), "runs/_._a_b_model____19700101-000000");
    assert_int_equal(ipw_rundir_close(dir, NULL), 0);
}

static void a_run_is_not_written_twice(void **state)
{
    struct ipw_rundir *dir, *second;
    struct ipw_err err = {0};

    (void)state;
    assert_int_equal(ipw_rundir_create(&dir, "a/b/c", NULL, &err), 0);
    assert_int_equal(mode_of("a/b/c/traces.jsonl"), 0600);
    assert_int_equal(mode_of("a/b/c/events.jsonl"), 0600);
    assert_int_equal(mode_of("a/b/c/lock"), 0600);
    assert_int_equal(ipw_rundir_create(&second, "a/b/c", NULL, &err), IPW_EEXISTS);
    assert_non_null(strstr(err.text, "a/b/c: another run is writing here (pid "));
    assert_int_equal(ipw_rundir_close(dir, &err), 0);
    assert_int_equal(ipw_rundir_create(&second, "a/b/c", NULL, &err), IPW_EEXISTS);
    assert_string_equal(err.text, "a/b/c: already contains a run; use --resume to continue it, or "
                                  "--output to choose another folder");
    assert_int_equal(files_in("a/b/c"), 2); /* no lock is left behind, by either */
}

static void a_foreign_folder_may_be_used(void **state)
{
    struct ipw_rundir *dir;
    struct ipw_err err = {0};
    FILE *f;

    (void)state;
    assert_int_equal(mkdir("mine", 0755), 0);
    f = fopen("mine/notes.txt", "w");
    assert_non_null(f);
    fclose(f);
    assert_int_equal(ipw_rundir_create(&dir, "mine/", NULL, &err), 0);
    assert_int_equal(ipw_rundir_close(dir, NULL), 0);
    assert_int_equal(files_in("mine"), 3);
    assert_int_equal(ipw_rundir_create(&dir, "mine/notes.txt", NULL, &err), IPW_EEXISTS);
    assert_non_null(strstr(err.text, "mine/notes.txt: not a folder"));
    assert_int_equal(ipw_rundir_create(&dir, "mine/notes.txt/run", NULL, &err), IPW_EIO);
    assert_non_null(strstr(err.text, "mine/notes.txt/run: the run's folder cannot be created"));
    assert_int_equal(ipw_rundir_create(&dir, "", NULL, &err), IPW_EINVAL);
}

static void an_unwritable_place_is_named(void **state)
{
    struct ipw_rundir *dir;
    struct ipw_err err = {0};

    (void)state;
    assert_true(ipw_rundir_create(&dir, "/proc/ipw/run", NULL, &err) < 0);
    assert_non_null(strstr(err.text, "/proc/ipw: the folder cannot be created"));
    if (geteuid() == 0) return; /* no folder is closed to root */
    assert_int_equal(mkdir("closed", 0555), 0);
    assert_int_equal(ipw_rundir_create(&dir, "closed/run", NULL, &err), IPW_EPERM);
    assert_non_null(strstr(err.text, "closed/run: the run's folder cannot be created"));
}

static void a_second_process_is_refused(void **state)
{
    int ready[2], done[2];
    char byte, pid_text[40];
    struct ipw_rundir *dir;
    struct ipw_err err = {0};
    pid_t child;
    int status;

    (void)state;
    assert_int_equal(pipe(ready) | pipe(done), 0);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        int rc = ipw_rundir_create(&dir, "shared", NULL, NULL);

        close(done[1]);
        if (rc < 0 || write(ready[1], "r", 1) != 1) _exit(1);
        _exit(read(done[0], &byte, 1) == 0 ? 0 : 2); /* ends without closing: a crash */
    }
    close(done[0]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    assert_int_equal(ipw_rundir_create(&dir, "shared", NULL, &err), IPW_EEXISTS);
    snprintf(pid_text, sizeof pid_text, "another run is writing here (pid %d,", (int)child);
    assert_non_null(strstr(err.text, pid_text));
    close(done[1]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(ipw_rundir_create(&dir, "shared", NULL, &err), IPW_EEXISTS);
    assert_non_null(strstr(err.text, "already contains a run"));
    close(ready[0]);
    close(ready[1]);
}

static void no_read(struct ipw_source *self, int64_t *values)
{
    (void)self;
    (void)values;
}

static void files_are_written_in_order(void **state)
{
    static const struct ipw_channel channel = {.name = "package-0",
                                               .device = "CPU 0",
                                               .domain = IPW_DOMAIN_CPU,
                                               .modulus_uj = 100,
                                               .max_w = 500,
                                               .in_sum = true};
    struct ipw_source source = {.name = "rapl",
                                .read = no_read,
                                .channels = &channel,
                                .n_channels = 1,
                                .period_ns = 1000000};
    struct ipw_source_set set = {
        .sources = {&source},
        .n = 1,
        .verdicts = {{"rapl", IPW_OK, "1 zone"}, {"nvml", IPW_EUNSUPPORTED, "no library"}},
        .n_verdicts = 2};
    const int64_t values[] = {17, IPW_NO_VALUE};
    const struct ipw_sampler_row row = {.source = 0, .n = 2, .t_ns = 99, .values = values};
    const struct ipw_event event = {.kind = IPW_EV_NOTE, .t_ns = 5, .query = 0};
    struct ipw_rundir *dir;
    int fds[IPW_RUNDIR_FDS];
    char *text;

    (void)state;
    assert_int_equal(ipw_rundir_create(&dir, "order", NULL, NULL), 0);
    assert_int_equal(ipw_rundir_write_manifest(dir, "{}", 2, NULL), 0);
    assert_contents("order/manifest.json", "{}");
    ipw_rundir_power_row(dir, &row); /* before the header: dropped, the file has none yet */
    ipw_rundir_power_header(dir, &set, 50000000);
    ipw_rundir_power_row(dir, &row);
    ipw_rundir_event(dir, &event);
    assert_contents("order/events.jsonl", "");
    assert_int_equal(ipw_rundir_trace(dir, "{\"a\":1}", 7, NULL), 0);
    assert_contents("order/events.jsonl",
                    "{\"event\":\"note\",\"query\":0,\"span\":0,\"t_ns\":5}\n");
    assert_contents("order/traces.jsonl", "{\"a\":1}\n");
    ipw_rundir_event(dir, &event);
    assert_int_equal(ipw_rundir_flush(dir, NULL), 0);
    text = contents("order/events.jsonl");
    assert_int_equal(strlen(text),
                     2 * strlen("{\"event\":\"note\",\"query\":0,\"span\":0,\"t_ns\":5}\n"));
    free(text);
    assert_contents(
        "order/power.jsonl",
        "{\"basis\":{\"cpu\":null,\"dram\":null,\"gpu\":null,\"machine\":null},\"format\":1,"
        "\"interval_ns\":50000000,\"row\":[\"t_ns\",\"source\",\"values...\"],"
        "\"schema_version\":2,\"segment\":0,\"sources\":[{\"channels\":[{\"device\":\"CPU "
        "0\",\"domain\":\"cpu\","
        "\"in_sum\":true,\"kind\":\"counter\",\"max_w\":500,\"modulus_uj\":100,"
        "\"name\":\"package-0\",\"period_ns\":0,\"remote\":false,\"scope\":\"device\","
        "\"unit\":\"uJ\"}],\"name\":\"rapl\",\"note\":\"\","
        "\"period_ns\":1000000}],\"verdicts\":[{\"code\":\"ok\",\"name\":\"rapl\","
        "\"text\":\"1 zone\"},{\"code\":\"unsupported\",\"name\":\"nvml\",\"text\":\"no "
        "library\"}]}"
        "\n[99,0,17,null]\n");
    assert_int_equal(ipw_rundir_fds(dir, fds), 3); /* events, power, traces */
    for (int i = 0; i < 3; i++) assert_true(fcntl(fds[i], F_GETFD) & FD_CLOEXEC);
    assert_int_equal(ipw_rundir_write_summary(dir, "{\"x\":2}", 7, NULL), 0);
    ipw_rundir_event(dir, &event); /* close flushes what is left */
    assert_int_equal(ipw_rundir_close(dir, NULL), 0);
    text = contents("order/events.jsonl");
    assert_int_equal(strlen(text), 3 * 45);
    free(text);
}

static void a_full_disk_stops_the_run(void **state)
{
    struct rlimit before, small;
    struct ipw_rundir *dir;
    struct ipw_err err = {0}, again = {0};
    const struct ipw_event event = {.kind = IPW_EV_NOTE, .t_ns = 5, .query = 0};
    char line[3000], *text;

    (void)state;
    assert_int_equal(ipw_rundir_create(&dir, "full", NULL, NULL), 0);
    assert_int_equal(ipw_rundir_trace(dir, "{}", 2, NULL), 0);
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before);
    small = before;
    small.rlim_cur = 1000;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    memset(line, '1', sizeof line);
    assert_true(ipw_rundir_trace(dir, line, sizeof line, &err) < 0);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, SIG_DFL);
    assert_non_null(strstr(err.text, "full/traces.jsonl"));
    ipw_rundir_event(dir, &event); /* all further calls are refused with the first error */
    assert_int_equal(ipw_rundir_flush(dir, &again), err.code);
    assert_string_equal(again.text, err.text);
    assert_int_equal(ipw_rundir_trace(dir, "{}", 2, &again), err.code);
    assert_int_equal(ipw_rundir_write_summary(dir, "{}", 2, &again), err.code);
    assert_int_equal(ipw_rundir_close(dir, &again), err.code);
    assert_string_equal(again.text, err.text);
    text = contents("full/traces.jsonl");
    assert_string_equal(text, "{}\n");
    free(text);
}

static int count_query(void *ud, struct ipw_query_loaded *query, struct ipw_err *err)
{
    int *n = ud;

    (void)err;
    assert_int_equal(query->trace.index, *n);
    ++*n;
    return 0;
}

static void append(const char *path, const char *text)
{
    FILE *f = fopen(path, "a");

    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static void a_torn_tail_is_passed_over(void **state)
{
    struct ipw_query_details details = {
        .cost_usd = NAN, .is_resolved = -1, .lua_peak_bytes = -1, .lua_cpu_ns = -1};
    struct ipw_rundir *dir;
    struct ipw_err err = {0};
    int n = 0, torn = -1;

    (void)state;
    assert_int_equal(ipw_rundir_create(&dir, "torn", NULL, NULL), 0);
    for (int i = 0; i < 3; i++) {
        struct ipw_event events[] = {QS(1), QE(2, "answered")};
        struct ipw_query_trace q;
        struct ipw_buf line = IPW_BUF(IPW_MIB);

        events[0].query = i;
        build_trace(&q, events, 2);
        ipw_schema_write_query(&line, &q, &details, NULL);
        assert_int_equal(ipw_rundir_trace(dir, line.data, line.len, NULL), 0);
        ipw_buf_release(&line);
        ipw_query_trace_release(&q);
    }
    assert_int_equal(ipw_rundir_close(dir, NULL), 0);
    assert_int_equal(ipw_rundir_each_query("torn", count_query, &n, &torn, &err), 0);
    assert_int_equal(n, 3);
    assert_int_equal(torn, 0);
    append("torn/traces.jsonl", "{\"query_id\":\"q00");
    n = 0;
    assert_int_equal(ipw_rundir_each_query("torn/traces.jsonl", count_query, &n, &torn, &err), 0);
    assert_int_equal(n, 3);
    assert_int_equal(torn, 1);
    append("torn/traces.jsonl", "\n"); /* now it is a damaged line, not a torn one */
    n = 0;
    assert_int_equal(ipw_rundir_each_query("torn/", count_query, &n, NULL, &err), IPW_EPARSE);
    assert_non_null(strstr(err.text, "torn/traces.jsonl:4: "));
    assert_int_equal(ipw_rundir_each_query("nothing", count_query, &n, NULL, &err), IPW_ENOTFOUND);
    assert_non_null(strstr(err.text, "nothing: no such run"));
    assert_int_equal(mkdir("empty", 0755), 0);
    assert_int_equal(ipw_rundir_each_query("empty", count_query, &n, NULL, &err), IPW_ENOTFOUND);
    assert_non_null(strstr(err.text, "empty/traces.jsonl"));
}

static int stop_at_first(void *ud, struct ipw_query_loaded *query, struct ipw_err *err)
{
    struct ipw_query_loaded *taken = ud;

    (void)err;
    *taken = *query; /* takes it */
    memset(query, 0, sizeof *query);
    return 5;
}

static void the_reader_can_stop_and_take(void **state)
{
    struct ipw_query_loaded taken;
    FILE *f = fopen("two.jsonl", "w");

    (void)state;
    assert_non_null(f);
    for (int i = 0; i < 2; i++)
        fprintf(f,
                "{\"end_ns\":2,\"query_id\":\"q000%d\",\"schema_version\":2,\"start_ns\":1,"
                "\"turns\":[]}\n",
                i);
    fclose(f);
    assert_int_equal(ipw_rundir_each_query("two.jsonl", stop_at_first, &taken, NULL, NULL), 5);
    assert_string_equal(taken.trace.id, "q0000");
    ipw_query_loaded_release(&taken);
}

/* Names that are missing, or longer than a folder's name should be, make one all the same. */
static void odd_names_make_a_folder(void **state)
{
    char agent[400];
    struct ipw_rundir_names none = {0},
                            many = {.agent = agent, .model = "m", .dataset = "\x01\x7f d"};
    struct ipw_rundir *dir;

    (void)state;
    assert_int_equal(ipw_rundir_create(&dir, NULL, &none, NULL), 0);
    assert_string_equal(ipw_rundir_path(dir), "runs/agent_model_dataset_19700101-000000");
    assert_int_equal(ipw_rundir_close(dir, NULL), 0);
    /* 1 + 2 * 150 bytes are cut to 79 of them: characters stay whole */
    agent[0] = 'x';
    agent[1] = '\0';
    for (int i = 0; i < 150; i++) strcat(agent, "\xC3\xA9");
    assert_int_equal(ipw_rundir_create(&dir, NULL, &many, NULL), 0);
    assert_int_equal(strncmp(ipw_rundir_path(dir), "runs/x\xC3\xA9", 8), 0);
    assert_non_null(strstr(ipw_rundir_path(dir), "\xC3\xA9_m____d_19700101-000000"));
    assert_int_equal(strlen(ipw_rundir_path(dir)),
                     strlen("runs/") + 79 + strlen("_m____d_19700101-000000"));
    assert_int_equal(ipw_rundir_close(dir, NULL), 0);
}

/* What cannot be read cannot be redacted: it is not written, and the run ends with that. */
static void what_cannot_be_redacted_is_not_written(void **state)
{
    struct ipw_redactor redactor;
    struct ipw_rundir *dir;
    struct ipw_err err = {0}, first = {IPW_EIO, 5, "the first"};

    (void)state;
    assert_int_equal(ipw_redactor_init(&redactor, IPW_REDACT_TEXT, NULL), 0);
    assert_int_equal(ipw_rundir_create(&dir, "hidden", NULL, NULL), 0);
    ipw_rundir_set_redactor(dir, &redactor);
    assert_int_equal(ipw_rundir_trace(dir, "{\"secret\"", 9, &err), IPW_EPARSE);
    ipw_rundir_failed(dir, &first); /* it was not the first */
    ipw_rundir_event_line(dir, "{}", 2);
    assert_int_equal(ipw_rundir_close(dir, &err), IPW_EPARSE);
    assert_contents("hidden/traces.jsonl", "");
    assert_contents("hidden/events.jsonl", "");
    /* told from outside: a disk that did not keep what was written */
    assert_int_equal(ipw_rundir_create(&dir, "lost", NULL, NULL), 0);
    ipw_rundir_failed(dir, &first);
    assert_int_equal(ipw_rundir_trace(dir, "{}", 2, &err), IPW_EIO);
    assert_string_equal(err.text, "the first");
    assert_int_equal(ipw_rundir_close(dir, &err), IPW_EIO);
    assert_contents("lost/traces.jsonl", "");
}

UNIT(rundir)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(default_names_are_numbered),
        cmocka_unit_test(a_run_is_not_written_twice),
        cmocka_unit_test(a_foreign_folder_may_be_used),
        cmocka_unit_test(an_unwritable_place_is_named),
        cmocka_unit_test(a_second_process_is_refused),
        cmocka_unit_test(files_are_written_in_order),
        cmocka_unit_test(a_full_disk_stops_the_run),
        cmocka_unit_test(a_torn_tail_is_passed_over),
        cmocka_unit_test(the_reader_can_stop_and_take),
        cmocka_unit_test(odd_names_make_a_folder),
        cmocka_unit_test(what_cannot_be_redacted_is_not_written),
    };

    return cmocka_run_group_tests(tests, enter_temp_folder, leave_temp_folder);
}
