/* bench/coverage_exit.c: part of ipw-agent in the preset `coverage` only, so that processes which
 * leave by _exit() write gcov's counts too.  The program itself knows nothing of this. */
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

void __gcov_dump(void);
void _exit(int status) __attribute__((noreturn));

static atomic_flag leaving = ATOMIC_FLAG_INIT;

void _exit(int status)
{
    /* A signal's handler may come here while the counts are being written: they are not written
     * twice. */
    if (!atomic_flag_test_and_set(&leaving)) __gcov_dump();
    for (;;) syscall(SYS_exit_group, status);
}
