#include "script/quota.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"

/* Deep folders are refused, because counting needs a descriptor for each level. */
enum { MAX_DEPTH = 64 };

struct count {
    const struct ipw_quota *quota;
    size_t bytes, files;
    const char *why; /* why it cannot be counted; or NULL */
};

static bool is_over(const struct count *c)
{
    const struct ipw_quota *q = c->quota;

    return (q->max_bytes && c->bytes > q->max_bytes) || (q->max_files && c->files > q->max_files);
}

static void count_folder(struct count *c, int fd, int depth);

static void count_entry(struct count *c, int folder, const char *name, int depth)
{
    struct stat st;
    int fd;

    if (fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) < 0) return; /* removed meanwhile */
    c->files++;
    if (S_ISREG(st.st_mode)) c->bytes += (size_t)st.st_size;
    if (!S_ISDIR(st.st_mode)) return;
    if (depth == MAX_DEPTH) {
        c->why = "its folders are more than 64 deep";
        return;
    }
    fd = openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0)
        count_folder(c, fd, depth + 1);
    else if (errno != ENOENT)
        c->why = "a folder in it cannot be read";
}

/* Takes over the descriptor.  Stops at the first entry over the limit. */
static void count_folder(struct count *c, int fd, int depth)
{
    DIR *dir = fdopendir(fd);

    if (!dir) {
        close(fd);
        return;
    }
    for (struct dirent *e; !c->why && !is_over(c) && (e = readdir(dir));)
        if (strcmp(e->d_name, ".") && strcmp(e->d_name, ".."))
            count_entry(c, dirfd(dir), e->d_name, depth);
    closedir(dir);
}

static void put_size(char *out, size_t size, size_t bytes)
{
    if (bytes && bytes % IPW_MIB == 0)
        snprintf(out, size, "%zuM", (size_t)(bytes / IPW_MIB));
    else
        snprintf(out, size, "%zu bytes", bytes);
}

static int fail_bytes(const struct ipw_quota *q, struct ipw_err *err)
{
    char limit[40];

    put_size(limit, sizeof limit, q->max_bytes);
    return ipw_fail(err, IPW_ELIMIT,
                    "the workspace is full: it may hold %s in all (--workspace-size)", limit);
}

static int fail_files(const struct ipw_quota *q, struct ipw_err *err)
{
    return ipw_fail(err, IPW_ELIMIT,
                    "the workspace is full: it may hold %zu files in all (--workspace-files)",
                    q->max_files);
}

static int measure(struct count *c, const char *folder, struct ipw_err *err)
{
    const struct ipw_quota *q = c->quota;
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (fd < 0) return ipw_fail_errno(err, errno, "the workspace");
    count_folder(c, fd, 0);
    if (q->max_bytes && c->bytes > q->max_bytes) return fail_bytes(q, err);
    if (q->max_files && c->files > q->max_files) return fail_files(q, err);
    return 0;
}

static int count(struct ipw_quota *q, const char *folder, struct ipw_err *err)
{
    struct count c = {.quota = q};
    int rc = measure(&c, folder, err);

    if (!rc && c.why) rc = ipw_fail(err, IPW_ELIMIT, "the workspace cannot be measured: %s", c.why);
    q->bytes = c.bytes;
    q->files = c.files;
    q->counted = q->children == 0;
    return rc;
}

int ipw_quota_write(struct ipw_quota *q, const char *folder, bool fresh, size_t old, size_t n,
                    struct ipw_err *err)
{
    int rc = 0;

    if (!q->max_bytes && !q->max_files) return 0;
    if (!q->counted) rc = count(q, folder, err);
    if (rc) {
        q->counted = false; /* a child can remove its files again */
        return rc;
    }
    if (fresh && q->max_files && q->files >= q->max_files) return fail_files(q, err);
    if (old > q->bytes) old = q->bytes;
    if (n > old && q->max_bytes && n > q->max_bytes - (q->bytes - old)) return fail_bytes(q, err);
    q->bytes += n - old;
    q->files += fresh;
    return 0;
}

void ipw_quota_forget(struct ipw_quota *q) { q->counted = false; }

int ipw_quota_child_begins(struct ipw_quota *q, const char *folder, size_t *file_bytes,
                           struct ipw_err *err)
{
    int rc = 0;

    *file_bytes = 0;
    if (folder && (q->max_bytes || q->max_files)) rc = count(q, folder, err);
    if (rc) {
        q->counted = false;
        return rc;
    }
    if (folder && q->max_bytes) { /* never 0, which means the default limit */
        *file_bytes = q->max_bytes - q->bytes;
        if (!*file_bytes) *file_bytes = 1;
    }
    q->children++;
    q->counted = false;
    return 0;
}

int ipw_quota_look(const struct ipw_quota *q, const char *folder, int64_t *again_ns,
                   struct ipw_err *err)
{
    int64_t start_ns = ipw_now_ns(), took_ns;
    struct count c = {.quota = q};
    int rc;

    *again_ns = 0;
    if (!folder || (!q->max_bytes && !q->max_files)) return 0;
    rc = measure(&c, folder, err); /* an unreadable part is reported when the child has ended */
    took_ns = ipw_now_ns() - start_ns;
    *again_ns = 50 * took_ns > IPW_QUOTA_LOOK_NS ? 50 * took_ns : IPW_QUOTA_LOOK_NS;
    return rc;
}

void ipw_quota_child_ended(struct ipw_quota *q)
{
    q->children--;
    q->counted = false;
}
