#include "script/quota.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/walk.h"

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

static int measure(const struct ipw_quota *q, struct ipw_walk *w, const char *folder,
                   struct ipw_err *err)
{
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    *w = (struct ipw_walk){.max_bytes = q->max_bytes, .max_entries = q->max_files};
    if (fd < 0) return ipw_fail_errno(err, errno, "the workspace");
    ipw_walk_count(w, fd);
    close(fd);
    if (q->max_bytes && w->bytes > q->max_bytes) return fail_bytes(q, err);
    if (q->max_files && w->entries > q->max_files) return fail_files(q, err);
    if (w->too_deep)
        return ipw_fail(err, IPW_ELIMIT,
                        "the workspace cannot be measured: its folders are more than %d deep",
                        IPW_WALK_DEPTH);
    if (w->unreadable)
        return ipw_fail(err, IPW_ELIMIT,
                        "the workspace cannot be measured: a folder in it cannot be read");
    return 0;
}

static int count(struct ipw_quota *q, const char *folder, struct ipw_err *err)
{
    struct ipw_walk w;
    int rc = measure(q, &w, folder, err);

    q->bytes = w.bytes;
    q->files = w.entries;
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

int ipw_quota_look(const struct ipw_quota *q, const char *folder, const struct ipw_proc *child,
                   int64_t *again_ns, struct ipw_err *err)
{
    int64_t start_ns = ipw_now_ns(), took_ns;
    struct ipw_walk w;
    int rc;

    *again_ns = 0;
    if (!folder || (!q->max_bytes && !q->max_files)) return 0;
    rc = measure(q, &w, folder, err);
    if (!rc && child && q->max_bytes &&
        w.bytes + ipw_proc_removed_bytes(child, folder) > q->max_bytes)
        rc = fail_bytes(q, err);
    took_ns = ipw_now_ns() - start_ns;
    *again_ns = 50 * took_ns > IPW_QUOTA_LOOK_NS ? 50 * took_ns : IPW_QUOTA_LOOK_NS;
    return rc;
}

void ipw_quota_child_ended(struct ipw_quota *q)
{
    q->children--;
    q->counted = false;
}
