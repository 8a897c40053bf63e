/* A machine whose n-th call of one kind fails.  Loaded with LD_PRELOAD:
 *
 *   IPW_FAIL_CALL=read      which: open read write pread stat sync rename mkdir ftruncate opendir
 *                           unlink stdout close realpath pipe (whatever makes descriptors) spawn
 *                           thread
 *                           Not set: none, they are counted
 *   IPW_FAIL_AT=3           the third one
 *   IPW_FAIL_ERRNO=5        how; KILL: the process is killed instead
 *   IPW_FAIL_LOG=FILE       one byte is written there when it happened; or the numbers of calls,
 *                           at the end
 *
 * Calls on the counts of a coverage build (.gcda) and those before main() are not counted. */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

static const char *kind;
static long at, errnum;
enum { KILLED = -1 };
static bool foreign[65536]; /* descriptors of gcov's files */

__attribute__((constructor)) static void begin(void)
{
    const char *text = getenv("IPW_FAIL_AT"), *how = getenv("IPW_FAIL_ERRNO");

    unsetenv("LD_PRELOAD"); /* for this process alone */
    kind = getenv("IPW_FAIL_CALL");
    at = text ? atol(text) : 0;
    errnum = how && !strcmp(how, "KILL") ? KILLED : how ? atol(how) : EIO;
}

static void tell(const char *text, size_t n)
{
    const char *log = getenv("IPW_FAIL_LOG");
    long fd =
        log ? syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600)
            : -1;

    if (fd < 0) return;
    syscall(SYS_write, (int)fd, text, n);
    syscall(SYS_close, (int)fd);
}

static const char *const kinds[] = {"open",   "read",  "write",  "pread",     "stat",   "sync",
                                    "rename", "mkdir", "close",  "opendir",   "stdout", "realpath",
                                    "pipe",   "spawn", "thread", "ftruncate", "unlink"};
enum { N_KINDS = sizeof kinds / sizeof *kinds };
static long seen[N_KINDS];

__attribute__((destructor)) static void end(void)
{
    char text[64];

    if (kind) return;
    for (size_t i = 0; i < N_KINDS; i++)
        tell(text, (size_t)snprintf(text, sizeof text, "%s %ld\n", kinds[i], seen[i]));
}

/* Whether this call is the one. */
static bool fails(const char *of)
{
    size_t i = 0;

    while (strcmp(kinds[i], of)) i++;
    if (__atomic_add_fetch(&seen[i], 1, __ATOMIC_RELAXED) != at || !kind || strcmp(of, kind))
        return false;
    tell("!", 1);
    if (errnum == KILLED) raise(SIGKILL);
    errno = (int)errnum;
    return true;
}

static bool is_counts(const char *path)
{
    size_t n = strlen(path);

    return n > 5 && strcmp(path + n - 5, ".gcda") == 0;
}

#define NEXT(type, name, ...)                                                                      \
    static type (*next)(__VA_ARGS__);                                                              \
    if (!next) *(void **)&next = dlsym(RTLD_NEXT, name)

static int opened(int fd, const char *path)
{
    if (fd >= 0 && fd < 65536) foreign[fd] = is_counts(path);
    return fd;
}

static bool is_ours(int fd) { return fd >= 0 && fd < 65536 && !foreign[fd]; }

#define OPEN(name)                                                                                 \
    int name(const char *path, int flags, ...)                                                     \
    {                                                                                              \
        NEXT(int, #name, const char *, int, ...);                                                  \
        va_list args;                                                                              \
        va_start(args, flags);                                                                     \
        mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(args, mode_t) : 0;                    \
        va_end(args);                                                                              \
        if (!is_counts(path) && fails("open")) return -1;                                          \
        return opened(next(path, flags, mode), path);                                              \
    }
OPEN(open)
OPEN(open64)

int openat(int folder, const char *path, int flags, ...)
{
    NEXT(int, "openat", int, const char *, int, ...);
    va_list args;

    va_start(args, flags);
    mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(args, mode_t) : 0;
    va_end(args);
    if (!is_counts(path) && fails("open")) return -1;
    return opened(next(folder, path, flags, mode), path);
}

FILE *fopen(const char *path, const char *mode)
{
    NEXT(FILE *, "fopen", const char *, const char *);
    return !is_counts(path) && fails("open") ? NULL : next(path, mode);
}

/* A file or the standard output: what libraries read from and write to pipes of their own cannot
 * fail. */
static bool is_file(int fd)
{
    struct stat st;

    return is_ours(fd) && (fd <= 1 || (syscall(SYS_fstat, fd, &st) == 0 && S_ISREG(st.st_mode)));
}

ssize_t read(int fd, void *to, size_t n)
{
    NEXT(ssize_t, "read", int, void *, size_t);
    return is_file(fd) && fails("read") ? -1 : next(fd, to, n);
}

ssize_t pread(int fd, void *to, size_t n, off_t offset)
{
    NEXT(ssize_t, "pread", int, void *, size_t, off_t);
    return is_ours(fd) && fails("pread") ? -1 : next(fd, to, n, offset);
}

ssize_t write(int fd, const void *from, size_t n)
{
    NEXT(ssize_t, "write", int, const void *, size_t);
    return is_file(fd) && fails("write") ? -1 : next(fd, from, n);
}

int fstat(int fd, struct stat *st)
{
    NEXT(int, "fstat", int, struct stat *);
    return is_ours(fd) && fails("stat") ? -1 : next(fd, st);
}

int stat(const char *path, struct stat *st)
{
    NEXT(int, "stat", const char *, struct stat *);
    return fails("stat") ? -1 : next(path, st);
}

int fsync(int fd)
{
    NEXT(int, "fsync", int);
    return fails("sync") ? -1 : next(fd);
}

int fdatasync(int fd)
{
    NEXT(int, "fdatasync", int);
    return fails("sync") ? -1 : next(fd);
}

int rename(const char *from, const char *to)
{
    NEXT(int, "rename", const char *, const char *);
    return fails("rename") ? -1 : next(from, to);
}

int renameat2(int from_folder, const char *from, int to_folder, const char *to, unsigned flags)
{
    NEXT(int, "renameat2", int, const char *, int, const char *, unsigned);
    return fails("rename") ? -1 : next(from_folder, from, to_folder, to, flags);
}

int unlinkat(int folder, const char *path, int flags)
{
    NEXT(int, "unlinkat", int, const char *, int);
    return fails("unlink") ? -1 : next(folder, path, flags);
}

int rmdir(const char *path)
{
    NEXT(int, "rmdir", const char *);
    return fails("unlink") ? -1 : next(path);
}

int mkdir(const char *path, mode_t mode)
{
    NEXT(int, "mkdir", const char *, mode_t);
    return strstr(path, ".dir") == NULL && fails("mkdir") ? -1 : next(path, mode);
}

char *mkdtemp(char *path)
{
    NEXT(char *, "mkdtemp", char *);
    return fails("mkdir") ? NULL : next(path);
}

int ftruncate(int fd, off_t n)
{
    NEXT(int, "ftruncate", int, off_t);
    return is_ours(fd) && fails("ftruncate") ? -1 : next(fd, n);
}

int close(int fd)
{
    NEXT(int, "close", int);
    bool ours = is_ours(fd);
    int rc = next(fd);

    if (fd >= 0 && fd < 65536) foreign[fd] = false;
    return ours && fails("close") ? -1 : rc;
}

DIR *opendir(const char *path)
{
    NEXT(DIR *, "opendir", const char *);
    return fails("opendir") ? NULL : next(path);
}

char *realpath(const char *path, char *to)
{
    NEXT(char *, "realpath", const char *, char *);
    return fails("realpath") ? NULL : next(path, to);
}

int pipe2(int ends[2], int flags)
{
    NEXT(int, "pipe2", int *, int);
    return fails("pipe") ? -1 : next(ends, flags);
}

int socketpair(int domain, int type, int protocol, int ends[2])
{
    NEXT(int, "socketpair", int, int, int, int *);
    return fails("pipe") ? -1 : next(domain, type, protocol, ends);
}

int socket(int domain, int type, int protocol)
{
    NEXT(int, "socket", int, int, int);
    return fails("pipe") ? -1 : next(domain, type, protocol);
}

int epoll_create1(int flags)
{
    NEXT(int, "epoll_create1", int);
    return fails("pipe") ? -1 : next(flags);
}

int eventfd(unsigned first, int flags)
{
    NEXT(int, "eventfd", unsigned, int);
    return fails("pipe") ? -1 : next(first, flags);
}

int timerfd_create(int clock, int flags)
{
    NEXT(int, "timerfd_create", int, int);
    return fails("pipe") ? -1 : next(clock, flags);
}

int posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
                const posix_spawnattr_t *attr, char *const argv[], char *const env[])
{
    NEXT(int, "posix_spawn", pid_t *, const char *, const posix_spawn_file_actions_t *,
         const posix_spawnattr_t *, char *const *, char *const *);
    return fails("spawn") ? (int)errnum : next(pid, path, actions, attr, argv, env);
}

/* libuv ends the program where its pool cannot have its threads: that is not ours to answer. */
static bool is_of_libuv(const void *caller)
{
    Dl_info of;

    return dladdr(caller, &of) && of.dli_fname && strstr(of.dli_fname, "libuv");
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *), void *ud)
{
    NEXT(int, "pthread_create", pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    return !is_of_libuv(__builtin_return_address(0)) && fails("thread")
               ? (int)errnum
               : next(thread, attr, run, ud);
}

int fflush(FILE *f)
{
    NEXT(int, "fflush", FILE *);
    return f == stdout && fails("stdout") ? EOF : next(f);
}

size_t fwrite(const void *from, size_t size, size_t n, FILE *f)
{
    NEXT(size_t, "fwrite", const void *, size_t, size_t, FILE *);
    return f == stdout && fails("stdout") ? 0 : next(from, size, n, f);
}
