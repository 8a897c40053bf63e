/* Rows P-8, P-9, P-10, P-11, P-12, P-14, P-15 and S-10 of tests/faults.txt. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "io/proc.h"
#include "unit/descriptors.h"
#include "with_loop.h"

#define MS IPW_NS_PER_MS

static char dir[] = "/tmp/ipw-test-proc-XXXXXX";

struct run {
    struct ipw_proc *proc;
    struct ipw_proc_result result;
    char *out, *err;
    int done;
    int *left; /* counted down in on_done */
};

static void on_done(void *ud, const struct ipw_proc_result *result)
{
    struct run *run = ud;

    assert_int_equal(run->done, 0);
    run->done++;
    run->result = *result;
    assert_int_equal(result->out[result->out_len], '\0');
    run->out = ipw_memdup(result->out, result->out_len);
    run->err = ipw_memdup(result->err, result->err_len);
    assert_true(result->start_ns > 0 && result->end_ns >= result->start_ns);
    if (run->left) --*run->left;
}

static void start(struct run *run, const struct ipw_proc_request *request)
{
    struct ipw_err err = {0};

    if (ipw_proc_start(&run->proc, loop, request, on_done, run, &err)) fail_msg("%s", err.text);
    assert_int_equal(run->done, 0);
}

static struct run finish(const struct ipw_proc_request *request)
{
    struct run run = {0};

    start(&run, request);
    ipw_loop_run(loop);
    assert_int_equal(run.done, 1);
    return run;
}

static struct run shell(const char *script, struct ipw_proc_request request)
{
    request.argv = (const char *const[]){"sh", "-c", script, NULL};
    return finish(&request);
}

static void drop(struct run *run)
{
    free(run->out);
    free(run->err);
}

/* No child of ours is left, in whatever state. */
static void assert_childless(void)
{
    siginfo_t info = {0};

    if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0)
        fail_msg("a child is left (pid %d)", (int)info.si_pid);
    assert_int_equal(errno, ECHILD);
}

/* Lets the loop run while a process that was killed comes to its end. */
static void settle(void *ud) { (void)ud; }

static void run_until_childless(void)
{
    siginfo_t info;

    while (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0) {
        ipw_timer_start(loop, 5 * MS, settle, NULL);
        ipw_loop_run(loop);
    }
    assert_int_equal(errno, ECHILD);
}

/* --- results --------------------------------------------------------------------------------- */

static void test_results(void **state)
{
    static const struct {
        const char *script, *out, *err;
        int code, signal;
    } cases[] = {
        {"echo hello", "hello\n", "", 0, 0},
        {"echo oops >&2; exit 3", "", "oops\n", 3, 0},
        {"printf 'a\\0b'; exec >&-", "a", "", 0, 0},
        {"exit 255", "", "", 255, 0},
        {"kill -SEGV $$", "", "", -1, SIGSEGV},
        {"kill -KILL $$", "", "", -1, SIGKILL},
        {"cat", "", "", 0, 0}, /* no input: the null device */
        {"pwd; umask", "/\n0077\n", "", 0, 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct run run = shell(cases[i].script, (struct ipw_proc_request){.cwd = "/"});
        assert_string_equal(run.out, cases[i].out);
        assert_string_equal(run.err, cases[i].err);
        assert_int_equal(run.result.exit_code, cases[i].code);
        assert_int_equal(run.result.term_signal, cases[i].signal);
        assert_int_equal(run.result.exec_errno, 0);
        assert_false(run.result.timed_out);
        assert_true(run.result.cpu_ns >= 0);
        drop(&run);
    }
    assert_childless();
}

static void test_cannot_start(void **state)
{
    char script[100], binary[100], bad[100];
    struct {
        const char *program, *cwd;
        int errnum;
    } cases[] = {
        {"no-such-program-anywhere", NULL, ENOENT},
        {"/no/such/program", NULL, ENOENT},
        {"/etc/passwd", NULL, EACCES},
        {"/tmp", NULL, EACCES},
        {script, NULL, ENOENT},
        {binary, NULL, ENOEXEC},
        {bad, NULL, ENOEXEC},
        {"true", "/no/such/folder", ENOENT},
    };

    (void)state;
    snprintf(script, sizeof script, "%s/script", dir);
    snprintf(binary, sizeof binary, "%s/binary", dir);
    snprintf(bad, sizeof bad, "%s/empty", dir);
    for (int i = 0; i < 3; i++) {
        static const char *const text[] = {"#!/no/such/interpreter\n", "\177ELF\1\1\1 other", ""};
        const char *const paths[] = {script, binary, bad};
        FILE *f = fopen(paths[i], "w");
        assert_non_null(f);
        fputs(text[i], f);
        fchmod(fileno(f), 0755);
        fclose(f);
    }
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *argv[] = {cases[i].program, NULL};
        struct run run = finish(&(struct ipw_proc_request){.argv = argv, .cwd = cases[i].cwd});
        if (run.result.exec_errno != cases[i].errnum)
            fail_msg("%s: errno %d", cases[i].program, run.result.exec_errno);
        assert_int_equal(run.result.exit_code, -1);
        assert_int_equal(run.result.out_len + run.result.err_len, 0);
        drop(&run);
    }
    assert_childless();
}

static void test_refused_at_once(void **state)
{
    const char *none[] = {NULL}, *empty[] = {"", NULL}, *fine[] = {"true", NULL};
    const char *no_value[] = {"NAME", NULL}, *no_name[] = {"=x", NULL};
    const struct ipw_proc_request bad[] = {{.argv = NULL},
                                           {.argv = none},
                                           {.argv = empty},
                                           {.argv = fine, .env = no_value},
                                           {.argv = fine, .env = no_name}};

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct ipw_proc *proc = NULL;
        struct ipw_err err = {0};
        assert_int_equal(ipw_proc_start(&proc, loop, &bad[i], on_done, NULL, &err), IPW_EINVAL);
        assert_true(err.text[0]);
    }
}

static void test_input(void **state)
{
    size_t n = 3 << 20;
    char *big = malloc(n);
    struct run run;

    (void)state;
    memset(big, 'i', n);
    run = shell("wc -c", (struct ipw_proc_request){.input = big, .input_len = n});
    assert_int_equal(atol(run.out), n);
    drop(&run);
    /* One that does not read, one that closes it, one that ends before it is written. */
    run = shell("sleep 0.05; echo ok", (struct ipw_proc_request){.input = big, .input_len = n});
    assert_string_equal(run.out, "ok\n");
    drop(&run);
    run = shell("exec <&-; echo ok", (struct ipw_proc_request){.input = big, .input_len = n});
    assert_string_equal(run.out, "ok\n");
    drop(&run);
    run = shell("exit 4", (struct ipw_proc_request){.input = big, .input_len = n});
    assert_int_equal(run.result.exit_code, 4);
    drop(&run);
    free(big);
}

/* --- what the child sees --------------------------------------------------------------------- */

static void test_descriptors(void **state)
{
    int leak[5];
    struct run run;

    (void)state;
    for (int i = 0; i < 5; i++) leak[i] = open("/etc/passwd", O_RDONLY); /* not close-on-exec */
    run = shell("ls /proc/$$/fd", (struct ipw_proc_request){0});
    assert_string_equal(run.out, "0\n1\n2\n");
    for (int i = 0; i < 5; i++) close(leak[i]);
    drop(&run);
}

static void test_environment(void **state)
{
    const char *env[] = {"OWN=1", "LANG=xx", NULL}, *argv[] = {"env", NULL};
    struct run run;
    int lines = 0;

    (void)state;
    setenv("OPENAI_API_KEY", "geheim", 1);
    setenv("LD_PRELOAD", "geheim", 1);
    setenv("PYTHONPATH", "geheim", 1);
    setenv("IFS", "geheim", 1);
    setenv("PATH", ".:/geheim", 1);
    setenv("LANG", "C", 1);
    setenv("HOME", "/nowhere", 1);
    unsetenv("TZ");
    unsetenv("TMPDIR");
    run = finish(&(struct ipw_proc_request){.argv = argv, .env = env});
    for (const char *p = run.out; (p = strchr(p, '\n')); p++) lines++;
    assert_int_equal(lines, 5);
    assert_non_null(strstr(run.out, "PATH=/usr/local/bin:/usr/bin:/bin\n"));
    assert_non_null(strstr(run.out, "HOME=/nowhere\n"));
    assert_non_null(strstr(run.out, "LANG=xx\n"));
    assert_non_null(strstr(run.out, "OWN=1\n"));
    assert_non_null(strstr(run.out, "IPW_TOOL_ID="));
    assert_null(strstr(run.out, "geheim"));
    drop(&run);
    unsetenv("LD_PRELOAD");
    unsetenv("PYTHONPATH");
    unsetenv("IFS");
    setenv("PATH", "/usr/bin:/bin", 1);
}

static void test_walls(void **state)
{
    sigset_t blocked, old;
    struct run run;

    (void)state;
    sigfillset(&blocked);
    sigdelset(&blocked, SIGCHLD);
    sigprocmask(SIG_BLOCK, &blocked, &old);
    signal(SIGUSR2, SIG_IGN);
    run =
        shell("grep -E '^(NoNewPrivs|SigBlk|SigIgn)' /proc/self/status |"
              " sed s/180000000/000000000/;" /* two that glibc's posix_spawn ignores for itself */
              "ulimit -c; ulimit -n;"
              "ulimit -t; [ $(cut -d' ' -f6 /proc/$$/stat) = $PPID ] && echo session of its helper",
              (struct ipw_proc_request){.cpu_s = 7});
    signal(SIGUSR2, SIG_DFL);
    sigprocmask(SIG_SETMASK, &old, NULL);
    assert_string_equal(run.out, "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n"
                                 "NoNewPrivs:\t1\n0\n256\n7\nsession of its helper\n");
    drop(&run);
    run = shell("head -c 200000 /dev/zero > big; ls -l big | cut -d' ' -f5",
                (struct ipw_proc_request){.cwd = dir, .file_bytes = 100000});
    assert_string_equal(run.out, "100000\n");
    drop(&run);
    run = shell("while :; do :; done", (struct ipw_proc_request){.cpu_s = 1});
    assert_int_equal(run.result.term_signal, SIGXCPU);
    assert_true(run.result.cpu_ns >= 300 * MS);
    drop(&run);
}

/* --- ending ---------------------------------------------------------------------------------- */

/* A process that starts a program and is killed. */
static pid_t doomed_runner(void)
{
    static const char *const argv[] = {"sh", "-c", "sleep 600 & echo $! >begun; wait", NULL};
    struct ipw_proc_request request = {.argv = argv, .cwd = dir};
    pid_t pid = fork();

    if (pid) return pid;
    if (ipw_loop_new(&loop, NULL)) _exit(1);
    start(&(struct run){0}, &request);
    ipw_loop_run(loop);
    _exit(1);
}

/* The program's own children end as well, which have no death signal: bubblewrap's first process
 * inside has none until its handshake is over. */
static void test_runner_killed(void **state)
{
    char path[80], line[20] = "";
    pid_t pid;
    FILE *f;

    (void)state;
    snprintf(path, sizeof path, "%s/begun", dir);
    assert_int_equal(mkfifo(path, 0600), 0);
    pid = doomed_runner();
    f = fopen(path, "r");
    assert_non_null(f);
    assert_non_null(fgets(line, sizeof line, f));
    fclose(f);
    kill(pid, SIGKILL);
    for (int i = 0; kill((pid_t)atol(line), 0) == 0; i++) { /* orphans become our children */
        if (i == 5000) fail_msg("the program's child lives on");
        waitpid(-1, NULL, WNOHANG);
        usleep(1000);
    }
    while (waitpid(-1, NULL, 0) > 0) continue;
}

static void test_timeout(void **state)
{
    struct run run =
        shell("echo partial; exec sleep 1000", (struct ipw_proc_request){.wall_ns = 100 * MS});

    (void)state;
    assert_true(run.result.timed_out);
    assert_int_equal(run.result.term_signal, SIGTERM);
    assert_string_equal(run.out, "partial\n");
    assert_true(run.result.end_ns - run.result.start_ns >= 100 * MS);
    drop(&run);
    run = shell("trap '' TERM; echo partial; while :; do sleep 1000; done",
                (struct ipw_proc_request){.wall_ns = 100 * MS});
    assert_true(run.result.timed_out);
    assert_int_equal(run.result.term_signal, SIGKILL);
    assert_string_equal(run.out, "partial\n");
    assert_true(run.result.end_ns - run.result.start_ns >= 2100 * MS);
    drop(&run);
    run_until_childless();
}

static long read_pid(const char *name)
{
    char path[200];
    long pid = 0;
    FILE *f;

    snprintf(path, sizeof path, "%s/%s", dir, name);
    f = fopen(path, "r");
    if (!f) return 0;
    if (fscanf(f, "%ld", &pid) != 1) pid = 0;
    fclose(f);
    unlink(path);
    return pid;
}

/* In the group, in a session of its own, and there with a wiped environment. */
static void test_escapees(void **state)
{
    static const char *const scripts[] = {
        "sleep 1000 & echo $! > pid; echo out",
        "setsid sh -c 'echo $$ > pid; exec sleep 1000' & until [ -s pid ]; do :; done; echo out",
        "(setsid sh -c 'echo $$ > pid; trap \"\" TERM; exec env -i sleep 1000' &) ;"
        "until [ -s pid ]; do :; done; echo out",
    };

    (void)state;
    for (size_t i = 0; i < sizeof scripts / sizeof *scripts; i++) {
        struct run run = shell(scripts[i], (struct ipw_proc_request){.cwd = dir});
        long pid = read_pid("pid");
        assert_string_equal(run.out, "out\n");
        assert_int_equal(run.result.exit_code, 0);
        assert_false(run.result.timed_out);
        /* It held the pipe: the end came by the clock, not by the end of the file. */
        assert_true(run.result.end_ns - run.result.start_ns >= 200 * MS);
        assert_true(pid > 0);
        run_until_childless();
        assert_int_equal(kill((pid_t)pid, 0), -1);
        drop(&run);
    }
}

/* An orphan of one that still runs is left alone when another one ends. */
static void test_escapee_of_another(void **state)
{
    struct run a = {0}, b;
    const char *argv[] = {"sh", "-c",
                          "(setsid sh -c 'echo $$ > pid; exec sleep 1000' &);"
                          "until [ -s pid ]; do :; done; echo ready > ready; sleep 1000",
                          NULL};
    char path[200];
    struct stat st;
    long pid;

    (void)state;
    snprintf(path, sizeof path, "%s/ready", dir);
    start(&a, &(struct ipw_proc_request){.argv = argv, .cwd = dir});
    while (stat(path, &st)) usleep(1000);
    unlink(path);
    pid = read_pid("pid");
    b = (struct run){0};
    start(&b, &(struct ipw_proc_request){.argv = (const char *const[]){"true", NULL}});
    while (!b.done) {
        ipw_timer_start(loop, 5 * MS, (ipw_loop_fn)ipw_loop_stop, loop);
        ipw_loop_run(loop);
    }
    ipw_timer_start(loop, 20 * MS, (ipw_loop_fn)ipw_loop_stop, loop);
    ipw_loop_run(loop);
    assert_int_equal(kill((pid_t)pid, 0), 0);
    ipw_proc_cancel(a.proc);
    ipw_loop_run(loop);
    run_until_childless();
    assert_int_equal(kill((pid_t)pid, 0), -1);
    assert_int_equal(a.done, 0);
    drop(&b);
}

static void test_cancel(void **state)
{
    const char *argv[] = {"sh", "-c", "sleep 1000; echo never", NULL};
    const char *stubborn[] = {"sh", "-c", "trap '' TERM; while :; do sleep 1000; done", NULL};
    struct run run = {0};

    (void)state;
    start(&run, &(struct ipw_proc_request){.argv = argv});
    ipw_proc_cancel(run.proc);
    assert_int_equal(ipw_loop_leftovers(loop), 0);
    ipw_loop_run(loop);
    assert_int_equal(run.done, 0);
    run_until_childless();
    /* The loop ends before the ladder does; what may be left is for the next one. */
    start(&run, &(struct ipw_proc_request){.argv = stubborn});
    ipw_proc_cancel(run.proc);
    ipw_loop_free(loop);
    assert_int_equal(ipw_loop_new(&loop, NULL), 0);
    assert_int_equal(run.done, 0);
    run = finish(&(struct ipw_proc_request){.argv = (const char *const[]){"true", NULL}});
    run_until_childless();
    drop(&run);
}

/* --- much of it ------------------------------------------------------------------------------ */

static void test_much_output(void **state)
{
    struct run run = shell("head -c 10485760 /dev/zero | tr '\\0' x; echo; echo the end;"
                           "yes | head -c 1000 >&2",
                           (struct ipw_proc_request){.output_max_bytes = 10000});
    const char *mark = strstr(run.out, "\n[... 10475769 bytes left out ...]\n");

    (void)state;
    assert_int_equal(run.result.exit_code, 0);
    assert_int_equal(run.result.out_dropped, 10485760 + 9 - 10000);
    assert_int_equal(run.result.err_dropped, 0);
    assert_int_equal(run.result.err_len, 1000);
    assert_non_null(mark);
    assert_int_equal(mark - run.out, 5000);
    assert_int_equal(run.result.out_len, 10000 + strlen("\n[... 10475769 bytes left out ...]\n"));
    assert_string_equal(run.out + run.result.out_len - 10, "x\nthe end\n");
    drop(&run);
}

static void test_two_hundred(void **state)
{
    enum { N = 200 };
    static struct run runs[N];
    const char *argv[] = {"echo", "x", NULL};
    int left = N, before = open_descriptors();

    (void)state;
    memset(runs, 0, sizeof runs);
    for (int i = 0; i < N; i += 20) {
        for (int k = i; k < i + 20; k++) {
            runs[k].left = &left;
            start(&runs[k], &(struct ipw_proc_request){.argv = argv});
        }
        ipw_loop_run(loop);
    }
    assert_int_equal(left, 0);
    for (int i = 0; i < N; i++) {
        assert_string_equal(runs[i].out, "x\n");
        assert_int_equal(runs[i].result.exit_code, 0);
        drop(&runs[i]);
    }
    assert_childless();
    /* The first of all starts opened none that stays but the loop's own. */
    assert_true(open_descriptors() <= before);
}

/* A child that somebody else in this process forked is none of ours to reap. */
static void test_foreign_child(void **state)
{
    struct run run;
    pid_t pid = fork();
    int status = 0;

    (void)state;
    if (pid == 0) _exit(9);
    run = shell("sleep 0.05", (struct ipw_proc_request){0});
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(WEXITSTATUS(status), 9);
    drop(&run);
}

int main(int argc, char **argv)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, make_loop, free_loop)
    const struct CMUnitTest tests[] = {
        CASE(test_results),         CASE(test_cannot_start),
        CASE(test_refused_at_once), CASE(test_input),
        CASE(test_descriptors),     CASE(test_environment),
        CASE(test_walls),           CASE(test_timeout),
        CASE(test_escapees),        CASE(test_escapee_of_another),
        CASE(test_cancel),          CASE(test_much_output),
        CASE(test_two_hundred),     CASE(test_foreign_child),
        CASE(test_runner_killed),
    };
    int failed;
    char command[100];

    if (argc > 1 && strcmp(argv[1], "__exec") == 0) return ipw_proc_helper_main(argc, argv);
    if (!mkdtemp(dir)) return 1;
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    snprintf(command, sizeof command, "rm -rf %s", dir);
    return system(command) ? 1 : failed;
}
