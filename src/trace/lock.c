#include "trace/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/open.h"

static char *lock_file(const char *folder) { return ipw_asprintf("%s/lock", folder); }

/* Reads the owner's text from the lock file; "" if there is none. */
static void read_owner(int fd, char *text, size_t size)
{
    ssize_t n = pread(fd, text, size - 1, 0);

    text[n > 0 ? n : 0] = '\0';
    text[strcspn(text, "\n")] = '\0';
    /* The text goes to a terminal, and anyone may have written it. */
    for (char *c = text; *c; c++) {
        if ((unsigned char)*c < ' ' || (unsigned char)*c >= 0x7F) *c = '?';
    }
}

static int fail_locked(int fd, const char *folder, struct ipw_err *err)
{
    char owner[160];

    read_owner(fd, owner, sizeof owner);
    return ipw_fail(err, IPW_EEXISTS,
                    "%s: another run is writing here (%s); --output another folder", folder,
                    *owner ? owner : "its lock is held");
}

/* The start of our process, in the kernel's ticks since boot; 0: unknown. */
static unsigned long long own_start(void)
{
    char text[1024];
    unsigned long long start = 0;
    FILE *f = fopen("/proc/self/stat", "re");
    size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
    const char *at;

    if (f) fclose(f);
    text[n] = '\0';
    at = strrchr(text, ')'); /* after the process name, which may contain any character */
    for (int field = 2; at && field < 22; field++) at = strchr(at + 1, ' ');
    if (at) start = strtoull(at + 1, NULL, 10);
    return start;
}

static int pwrite_all(int fd, const char *text, size_t n)
{
    size_t at = 0;

    while (at < n) {
        ssize_t k = pwrite(fd, text + at, n - at, (off_t)at);

        if (k < 0 && errno != EINTR) return -1;
        if (k > 0) at += (size_t)k;
    }
    return 0;
}

static int write_owner(const struct ipw_lock *lock, const char *file, struct ipw_err *err)
{
    char text[256], iso[40], host[80] = "?";
    struct ipw_anchor now;
    int n;

    ipw_anchor_take(&now);
    gethostname(host, sizeof host - 1);
    n = snprintf(text, sizeof text, "pid %ld, start %llu, host %s, since %s\n", (long)getpid(),
                 own_start(), host, ipw_clock_iso8601(iso, sizeof iso, now.wall_ns));
    if (TEMP_FAILURE_RETRY(ftruncate(lock->fd, 0)) < 0 || pwrite_all(lock->fd, text, (size_t)n) < 0)
        return ipw_fail_errno(err, errno, "%s: cannot be written", file);
    return 0;
}

/* True if the previous owner removed the file between our open and our lock.  Other processes would
 * then look at another file than the one we hold. */
static bool was_removed(int fd, const char *file)
{
    struct stat ours, there;

    return fstat(fd, &ours) < 0 || stat(file, &there) < 0 || ours.st_ino != there.st_ino ||
           ours.st_dev != there.st_dev;
}

static int take(struct ipw_lock *lock, const char *folder, const char *file, struct ipw_err *err)
{
    for (;;) {
        lock->fd = ipw_open_write(file, O_RDWR | O_CREAT, err);
        if (lock->fd < 0) {
            int rc = lock->fd;

            lock->fd = -1;
            return rc;
        }
        if (TEMP_FAILURE_RETRY(flock(lock->fd, LOCK_EX | LOCK_NB)) < 0) {
            return errno == EWOULDBLOCK ? fail_locked(lock->fd, folder, err)
                                        : ipw_fail_errno(err, errno, "%s: cannot be locked", file);
        }
        if (!was_removed(lock->fd, file)) return 0;
        close(lock->fd);
    }
}

int ipw_lock_take(struct ipw_lock *lock, const char *folder, struct ipw_err *err)
{
    char *file = lock_file(folder);
    int rc;

    *lock = IPW_LOCK_NONE;
    rc = take(lock, folder, file, err);
    if (!rc) {
        read_owner(lock->fd, lock->stale, sizeof lock->stale);
        rc = write_owner(lock, file, err);
    }
    if (rc) ipw_lock_drop(lock, folder, false);
    free(file);
    return rc;
}

int ipw_lock_check(const struct ipw_lock *lock, const char *folder, struct ipw_err *err)
{
    char *file = lock_file(folder);
    bool astray = was_removed(lock->fd, file);
    struct stat st;

    free(file);
    if (!astray) return 0;
    if (fstat(lock->fd, &st) == 0 && st.st_nlink == 0)
        return ipw_fail(err, IPW_ENOTFOUND, "%s: was removed while the run was writing to it",
                        folder);
    return ipw_fail(err, IPW_ENOTFOUND,
                    "%s: was moved while the run was writing to it; ipw-agent resume continues it "
                    "where it is now",
                    folder);
}

void ipw_lock_drop(struct ipw_lock *lock, const char *folder, bool remove)
{
    if (lock->fd < 0) return;
    /* Remove the file while we hold the lock, and only our own: another program may have made a new
     * folder here. */
    if (remove && ipw_lock_check(lock, folder, NULL) == 0) {
        char *file = lock_file(folder);

        unlink(file);
        free(file);
    }
    close(lock->fd);
    lock->fd = -1;
}

int ipw_lock_look(const char *folder, struct ipw_err *err)
{
    char *file = lock_file(folder);
    struct ipw_err why = {0};
    int fd = ipw_open_read(file, &why), rc = 0;

    free(file);
    if (fd < 0 && why.code == IPW_EINVAL) { /* not a regular file, so no process can hold it */
        if (err) *err = why;
        return fd;
    }
    if (fd < 0) return 0;
    if (TEMP_FAILURE_RETRY(flock(fd, LOCK_SH | LOCK_NB)) < 0) rc = fail_locked(fd, folder, err);
    close(fd);
    return rc;
}
