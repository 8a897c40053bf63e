#include "run/workspaces.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"

#define PREFIX "ipw-agent-"
#define OWNER  ".owner"
enum {
    SUFFIX = 6,
    OLD_S = IPW_WORKSPACES_OLD_DAYS * 24 * 3600,
    MAX_DEPTH = 200
}; /* a folder in a folder in ...: each takes a descriptor */

const char *ipw_workspaces_root(void)
{
    const char *tmp = getenv("TMPDIR");

    return tmp && tmp[0] == '/' ? tmp : "/tmp";
}

/* The mark gets its name when it is locked: a process that sweeps takes an unlocked mark for that
 * of a process that ended. */
static int put_mark(const char *folder)
{
    char *early = ipw_asprintf("%s/" OWNER ".new", folder);
    char *mark = ipw_asprintf("%s/" OWNER, folder);
    int fd = open(early, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);

    if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0 || rename(early, mark) < 0)
        ipw_log(IPW_LOG_DEBUG, "%s: cannot be locked: %s", mark, strerror(errno));
    free(early);
    free(mark);
    return fd;
}

int ipw_workspaces_make(struct ipw_workspaces *w, struct ipw_err *err)
{
    char *path;
    int rc;

    if (w->path) return 0;
    path = ipw_asprintf("%s/" PREFIX "XXXXXX", ipw_workspaces_root());
    if (!mkdtemp(path)) {
        rc = ipw_fail_errno(err, errno, "%s: cannot make a folder for workspaces", path);
        free(path);
        return rc;
    }
    w->owner = put_mark(path);
    w->path = path;
    return 0;
}

/* ---- taking a folder away ---- */

struct sweep {
    dev_t device;
    int64_t bytes;
    bool remove;
};

static void walk(struct sweep *s, int fd, int depth);

/* A tool can have removed its owner's right to read a folder. */
static int open_folder(int parent, const char *name, bool remove)
{
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), at;
    char itself[40];

    if (!remove || (fd < 0 && errno != EACCES)) return fd;
    at = fd >= 0 ? fd : openat(parent, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (at < 0) return fd;
    snprintf(itself, sizeof itself, "/proc/self/fd/%d", at);
    if (chmod(itself, S_IRWXU) < 0) ipw_log(IPW_LOG_DEBUG, "%s: %s", name, strerror(errno));
    if (fd >= 0) return fd;
    fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    close(at);
    return fd;
}

static void walk_entry(struct sweep *s, int parent, const char *name, int depth)
{
    struct stat st;
    bool folder;

    if (fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) < 0) return;
    folder = S_ISDIR(st.st_mode);
    s->bytes += (int64_t)st.st_blocks * 512;
    if (folder && st.st_dev == s->device && depth < MAX_DEPTH) {
        int fd = open_folder(parent, name, s->remove);

        if (fd >= 0) walk(s, fd, depth + 1);
    }
    if (s->remove && unlinkat(parent, name, folder ? AT_REMOVEDIR : 0) < 0)
        ipw_log(IPW_LOG_DEBUG, "%s: %s", name, strerror(errno));
}

/* Removes the content of the folder and closes it; the owner's mark stays. */
static void walk(struct sweep *s, int fd, int depth)
{
    DIR *dir = fdopendir(fd);
    struct dirent *entry;

    if (!dir) {
        close(fd);
        return;
    }
    while ((entry = readdir(dir))) {
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..")) continue;
        if (depth == 0 && !strcmp(entry->d_name, OWNER)) continue;
        walk_entry(s, dirfd(dir), entry->d_name, depth);
    }
    closedir(dir);
}

/* The mark is removed last: until then the folder is known to have no owner. */
static int64_t empty(int root, const char *name, int folder, bool remove)
{
    struct stat st;
    struct sweep s = {.remove = remove};
    int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0 || fstat(fd, &st) < 0) {
        if (fd >= 0) close(fd);
        return 0;
    }
    s.device = st.st_dev;
    walk(&s, fd, 0);
    if (!remove) return s.bytes;
    unlinkat(folder, OWNER, 0);
    if (unlinkat(root, name, AT_REMOVEDIR) < 0 && errno != ENOENT)
        ipw_log(IPW_LOG_WARN, "%s/%s: cannot be removed: %s", ipw_workspaces_root(), name,
                strerror(errno));
    return s.bytes;
}

void ipw_workspaces_remove(struct ipw_workspaces *w)
{
    if (w->path) {
        int root = open(ipw_workspaces_root(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        int folder = open(w->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

        if (root >= 0 && folder >= 0) empty(root, strrchr(w->path, '/') + 1, folder, true);
        if (root >= 0) close(root);
        if (folder >= 0) close(folder);
    }
    if (w->owner >= 0) close(w->owner);
    free(w->path);
    *w = IPW_WORKSPACES_NONE;
}

/* ---- owners of folders ---- */

/* The lock of the folder's mark, if its process has ended; -1: it lives, or the folder may not be
 * ours. */
static int take_mark(int folder)
{
    struct stat st;
    int fd;

    if (fstat(folder, &st) < 0 || st.st_uid != geteuid() || (st.st_mode & 077)) return -1;
    fd = openat(folder, OWNER, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) return -1;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
        flock(fd, LOCK_EX | LOCK_NB) == 0 && fstat(fd, &st) == 0 && st.st_nlink == 1)
        return fd;
    close(fd);
    return -1;
}

/* Ours by name, user and mode, but without an owner's mark. */
static bool is_old(int folder)
{
    struct stat st;
    struct timespec now;

    if (fstat(folder, &st) < 0 || st.st_uid != geteuid() || (st.st_mode & 0777) != 0700)
        return false;
    clock_gettime(CLOCK_REALTIME, &now);
    return now.tv_sec - st.st_mtim.tv_sec > OLD_S && faccessat(folder, OWNER, F_OK, 0) < 0 &&
           errno == ENOENT;
}

void ipw_workspaces_left(struct ipw_workspaces_left *out, bool sweep)
{
    DIR *root = opendir(ipw_workspaces_root());
    struct dirent *entry;

    *out = (struct ipw_workspaces_left){0};
    while (root && (entry = readdir(root))) {
        int folder, mark;

        if (strncmp(entry->d_name, PREFIX, sizeof PREFIX - 1) ||
            strlen(entry->d_name) != sizeof PREFIX - 1 + SUFFIX)
            continue;
        folder =
            openat(dirfd(root), entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (folder < 0) continue;
        mark = take_mark(folder);
        if (mark >= 0) {
            out->n++;
            out->bytes += empty(dirfd(root), entry->d_name, folder, sweep);
            close(mark);
        } else if (is_old(folder)) {
            out->n_old++;
        }
        close(folder);
    }
    if (root) closedir(root);
}
