#include "base/walk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FOLDER = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC };

/* Takes over the descriptor; NULL: it cannot be read. */
static DIR *read_folder(int fd)
{
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);

    if (!dir && fd >= 0) close(fd);
    return dir;
}

/* The next entry that is not the folder itself or its parent; NULL: there is none. */
static const char *next_entry(DIR *dir)
{
    struct dirent *e;

    while ((e = readdir(dir)))
        if (strcmp(e->d_name, ".") && strcmp(e->d_name, "..")) return e->d_name;
    return NULL;
}

/* ---- counting ---- */

static bool is_over(const struct ipw_walk *w)
{
    return (w->max_bytes && w->bytes > w->max_bytes) ||
           (w->max_entries && w->entries > w->max_entries);
}

static void count_folder(struct ipw_walk *w, int fd, dev_t device, int depth);

static void count_entry(struct ipw_walk *w, int parent, const char *name, dev_t device, int depth)
{
    struct stat st;
    int fd;

    if (fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) < 0) return; /* removed meanwhile */
    w->entries++;
    w->disk_bytes += (size_t)st.st_blocks * 512;
    if (S_ISREG(st.st_mode)) w->bytes += (size_t)st.st_size;
    if (!S_ISDIR(st.st_mode) || st.st_dev != device) return;
    if (depth == IPW_WALK_DEPTH) {
        w->too_deep = true;
        return;
    }
    fd = openat(parent, name, FOLDER);
    if (fd >= 0)
        count_folder(w, fd, device, depth + 1);
    else if (errno != ENOENT && errno != ENOTDIR && errno != ELOOP) /* replaced meanwhile */
        w->unreadable = true;
}

/* Takes over the descriptor. */
static void count_folder(struct ipw_walk *w, int fd, dev_t device, int depth)
{
    DIR *dir = read_folder(fd);

    for (const char *name; dir && !is_over(w) && (name = next_entry(dir));)
        count_entry(w, dirfd(dir), name, device, depth);
    if (dir) closedir(dir);
}

void ipw_walk_count(struct ipw_walk *w, int folder)
{
    int fd = openat(folder, ".", FOLDER);
    struct stat st;

    if (fd >= 0 && fstat(fd, &st) == 0) {
        count_folder(w, fd, st.st_dev, 0);
        return;
    }
    w->unreadable = true;
    if (fd >= 0) close(fd);
}

/* ---- removing ---- */

struct removal {
    int top; /* the folder that is removed */
    dev_t device;
    const char *last;
    uint64_t n_names; /* given to folders at the top */
    bool moved;       /* a folder was moved there, which the next round removes */
    int errnum;       /* of the first failure */
};

static void failed(struct removal *r)
{
    if (!r->errnum && errno != ENOENT) r->errnum = errno;
}

/* A program can have taken its owner's right to read, enter or change a folder. */
static int open_folder(int parent, const char *name)
{
    int at = openat(parent, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    char itself[40];

    if (at < 0) return -1;
    snprintf(itself, sizeof itself, "/proc/self/fd/%d", at);
    (void)!chmod(itself, S_IRWXU); /* if it is refused, the next step fails */
    close(at);
    return openat(parent, name, FOLDER);
}

/* A name that is taken belongs to a file or to a folder that is not empty. */
static void move_up(struct removal *r, int parent, const char *name)
{
    char to[40];

    do {
        snprintf(to, sizeof to, ".deep-%llu", (unsigned long long)r->n_names++);
        r->moved = renameat(parent, name, r->top, to) == 0;
    } while (!r->moved && (errno == EEXIST || errno == ENOTEMPTY || errno == ENOTDIR));
    if (!r->moved) failed(r);
}

static void remove_folder(struct removal *r, int fd, int depth);

static void remove_entry(struct removal *r, int parent, const char *name, int depth)
{
    struct stat st;
    bool folder = fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);

    if (folder && st.st_dev == r->device) {
        int fd = open_folder(parent, name);

        if (fd < 0) {
            failed(r);
        } else if (depth == IPW_WALK_DEPTH) {
            close(fd);
            move_up(r, parent, name);
            return;
        } else {
            remove_folder(r, fd, depth + 1);
        }
    }
    if (unlinkat(parent, name, folder ? AT_REMOVEDIR : 0) < 0) failed(r);
}

/* Takes over the descriptor. */
static void remove_folder(struct removal *r, int fd, int depth)
{
    DIR *dir = read_folder(fd);

    for (const char *name; dir && (name = next_entry(dir));)
        if (depth || !r->last || strcmp(name, r->last)) remove_entry(r, dirfd(dir), name, depth);
    if (dir) closedir(dir);
}

int ipw_walk_remove(int parent, const char *name, const char *last)
{
    struct removal r = {.top = open_folder(parent, name), .last = last};
    struct stat st;

    if (r.top < 0 || fstat(r.top, &st) < 0) {
        failed(&r);
        if (r.top >= 0) close(r.top);
        return r.errnum;
    }
    r.device = st.st_dev;
    do {
        r.moved = false;
        remove_folder(&r, openat(r.top, ".", FOLDER), 0);
    } while (r.moved);
    if (!r.errnum && last && unlinkat(r.top, last, 0) < 0) failed(&r);
    if (!r.errnum && unlinkat(parent, name, AT_REMOVEDIR) < 0) failed(&r);
    close(r.top);
    return r.errnum;
}
