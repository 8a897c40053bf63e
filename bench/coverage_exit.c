/* bench/coverage_exit.c: part of ipw-agent in the preset `coverage` only, so that processes which
 * leave by _exit() write gcov's counts too.
 *
 * A worker (`ipw-agent __lua`) shuts itself in with a seccomp filter and may open no file from then
 * on.  A filter holds for the thread that asked for it; a thread that was there before is free.  So
 * a worker starts one before main() and has it write the counts when the worker leaves.  The
 * program itself knows nothing of this. */
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

void __gcov_dump(void);
void _exit(int status) __attribute__((noreturn));

enum { STACK_BYTES = 256 * 1024 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t change = PTHREAD_COND_INITIALIZER;
static bool is_worker, asked, written;
static atomic_flag leaving = ATOMIC_FLAG_INIT;

static void *writer(void *unused)
{
    pthread_mutex_lock(&lock);
    while (!asked) pthread_cond_wait(&change, &lock);
    __gcov_dump();
    written = true;
    pthread_cond_broadcast(&change);
    pthread_mutex_unlock(&lock);
    return unused;
}

static void ask_writer(void)
{
    pthread_mutex_lock(&lock);
    asked = true;
    pthread_cond_broadcast(&change);
    while (!written) pthread_cond_wait(&change, &lock);
    pthread_mutex_unlock(&lock);
}

void _exit(int status)
{
    /* A signal's handler may come here while the counts are being written: they are not written
     * twice. */
    if (!atomic_flag_test_and_set(&leaving)) {
        if (is_worker)
            ask_writer();
        else
            __gcov_dump();
    }
    for (;;) syscall(SYS_exit_group, status);
}

static void leave_worker(int status, void *unused)
{
    (void)unused;
    _exit(status);
}

__attribute__((constructor)) static void start_writer(int argc, char **argv)
{
    pthread_attr_t attr;
    pthread_t thread;

    if (argc < 2 || strcmp(argv[1], "__lua")) return;
    mallopt(M_ARENA_MAX, 1); /* a second arena would take from the worker's address space */
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, STACK_BYTES);
    is_worker = pthread_create(&thread, &attr, writer, NULL) == 0;
    pthread_attr_destroy(&attr);
    if (is_worker)
        on_exit(leave_worker, NULL); /* before gcov's own attempt, which the filter refuses */
}
