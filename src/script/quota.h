/* script/quota.h: how much a query may keep in its workspace.
 *
 * Counts the bytes (by the files' lengths) and the entries (files, folders, links) of the folder.
 * Writes of the script are counted as they are made.  A child process is stopped by the kernel at the
 * length of a single file; what its files hold together is found by looking, while it runs
 * (ipw_quota_look) and before the next write or child.  Between two looks it can write more than is
 * left: then it ends, and the next write and the next child are refused. */
#ifndef IPW_SCRIPT_QUOTA_H
#define IPW_SCRIPT_QUOTA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/err.h"

#define IPW_QUOTA_LOOK_NS (250 * IPW_NS_PER_MS) /* between looks, at least */

struct ipw_quota {
    size_t max_bytes, max_files; /* 0: not limited */
    size_t bytes, files;         /* when it was counted */
    bool counted;
    int children; /* that run now */
};

/* May a file of `old` bytes (none: `fresh`) become one of n bytes?  Counts it when it may. */
int ipw_quota_write(struct ipw_quota *quota, const char *folder, bool fresh, size_t old, size_t n,
                    struct ipw_err *err);
/* A write failed half way: what is there has to be looked at again. */
void ipw_quota_forget(struct ipw_quota *quota);
/* May a child be started?  *file_bytes: the longest file that it may write. */
int ipw_quota_child_begins(struct ipw_quota *quota, const char *folder, size_t *file_bytes,
                           struct ipw_err *err);
void ipw_quota_child_ended(struct ipw_quota *quota);
/* While a child runs: has the workspace more in it than it may?  *again_ns: when to look next, so
 * that looking takes a fiftieth of the time at most; 0: nothing is limited. */
int ipw_quota_look(const struct ipw_quota *quota, const char *folder, int64_t *again_ns,
                   struct ipw_err *err);

#endif
