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
#include "base/walk.h"

#define PREFIX "ipw-agent-"
#define OWNER  ".owner"
enum { SUFFIX = 6 };

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

/* The mark goes last: until then the folder is known to have no owner. */
static void remove_owned(int root, const char *name)
{
    int errnum = ipw_walk_remove(root, name, OWNER);

    if (errnum)
        ipw_log(IPW_LOG_WARN, "%s/%s: cannot be removed: %s", ipw_workspaces_root(), name,
                strerror(errnum));
}

void ipw_workspaces_remove(struct ipw_workspaces *w)
{
    if (w->path) {
        int root = open(ipw_workspaces_root(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        if (root >= 0) remove_owned(root, strrchr(w->path, '/') + 1);
        if (root >= 0) close(root);
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
            struct ipw_walk found = {0};

            ipw_walk_count(&found, folder);
            out->n++;
            out->bytes += (int64_t)found.disk_bytes;
            out->more |= found.too_deep || found.unreadable;
            if (sweep) remove_owned(dirfd(root), entry->d_name);
            close(mark);
        }
        close(folder);
    }
    if (root) closedir(root);
}
