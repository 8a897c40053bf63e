/* A repair, over and over, while one call on the files fails: it says so, leaves nothing open and
 * nothing locked, and the repair after it comes to the same files as one that was never
 * disturbed. */
#include "unit/json/failing.h"
#include "unit/run/damaged_run.h"

/* The same folder again and again, without writing each event anew. */
static const char *const kept_names[] = {"run/events.jsonl", "run/traces.jsonl", "run/warmup.jsonl",
                                         "run/manifest.json", "run/summary.json"};
enum { N_KEPT = sizeof kept_names / sizeof *kept_names };
static char *kept[N_KEPT];

static void (*const worlds[])(void) = {put_ended, put_lost, put_killed};

static void keep_world(size_t w)
{
    worlds[w]();
    for (int i = 0; i < N_KEPT; i++) {
        free(kept[i]);
        kept[i] = access(kept_names[i], F_OK) == 0 ? contents(kept_names[i]) : NULL;
    }
}

static void put_world(void)
{
    remove_run();
    assert_int_equal(mkdir("run", 0700), 0);
    for (int i = 0; i < N_KEPT; i++)
        if (kept[i]) put(kept_names[i], kept[i]);
}

/* Where a summary says when it was written. */
static void drop_date(char *summary)
{
    char *at = strstr(summary, "\"generated_at\":\"");

    if (at) memset(at + 16, '0', strcspn(at + 16, "\""));
}

static const char *const files[] = {
    "run/events.jsonl",  "run/traces.jsonl", "run/attempts.jsonl",   "run/warmup.jsonl",
    "run/manifest.json", "run/summary.json", "run/traces.jsonl.tmp", "run/lock"};
enum { N_FILES = sizeof files / sizeof *files };

static void take_files(char *texts[N_FILES])
{
    for (int i = 0; i < N_FILES; i++) drop_date(texts[i] = contents(files[i]));
}

static void drop_files(char *texts[N_FILES])
{
    for (int i = 0; i < N_FILES; i++) free(texts[i]);
}

static void a_repair_can_be_done_again(void **state)
{
    (void)state;
    for (size_t w = 0; w < sizeof worlds / sizeof *worlds; w++) {
        struct ipw_repair r;
        struct ipw_err err = {0};
        char *want[N_FILES];
        const char *failed = "";
        int n, told = 0;

        keep_world(w);
        if (repair(&r, &err)) fail_msg("world %zu: %s", w, err.text);
        take_files(want);
        for (n = 0; failed; n++) {
            size_t before = failing_descriptors();
            char *got[N_FILES];
            int rc;

            put_world();
            failing_at(n, FAILING_EIO);
            rc = repair(&r, &err);
            failed = failing_end();
            assert_int_equal(failing_descriptors(), before);
            assert_int_equal(ipw_lock_look("run", NULL), 0);
            told += rc != 0;
            if (rc && !*err.text) fail_msg("world %zu, call %d (%s): no message", w, n, failed);
            if (repair(&r, &err)) fail_msg("world %zu, call %d: then %s", w, n, err.text);
            take_files(got);
            for (int i = 0; i < N_FILES; i++) {
                if (strcmp(got[i], want[i]))
                    fail_msg("world %zu, call %d (%s): %s is\n%s\nnot\n%s", w, n, failed, files[i],
                             got[i], want[i]);
            }
            drop_files(got);
        }
        drop_files(want);
        assert_true(n > 40 && told > 20);
    }
}

static void an_interrupted_call_changes_nothing(void **state)
{
    (void)state;
    for (size_t w = 0; w < sizeof worlds / sizeof *worlds; w++) {
        struct ipw_repair r;
        struct ipw_err err = {0};
        const char *failed = "";

        keep_world(w);
        for (int n = 0; failed; n++) {
            put_world();
            failing_at(n, FAILING_EINTR);
            if (repair(&r, &err)) fail_msg("world %zu, call %d: %s", w, n, err.text);
            failed = failing_end();
        }
    }
}

static int drop_world(void **state)
{
    for (int i = 0; i < N_KEPT; i++) free(kept[i]);
    return leave_temp_folder(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_repair_can_be_done_again),
        cmocka_unit_test(an_interrupted_call_changes_nothing),
    };

    return cmocka_run_group_tests(tests, enter_temp_folder, drop_world);
}
