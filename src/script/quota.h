/* script/quota.h: the limit of a query's workspace.
 *
 * Counts the bytes (lengths of files) and entries (files, folders, links) of the folder.  Writes of
 * the script are counted when they are made.  For a child process the kernel limits the length of a
 * single file.  The sum of its files is found by counting the folder, while the child runs
 * (ipw_quota_look) and before the next write or child.  Between two counts the child can exceed the
 * limit; then it is ended, and the next write and the next child are refused.  So is a child that
 * makes folders which cannot be counted: too deep, or unreadable.  Files that a child has removed
 * and holds open count while it runs. */
#ifndef IPW_SCRIPT_QUOTA_H
#define IPW_SCRIPT_QUOTA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/err.h"
#include "io/proc.h"

#define IPW_QUOTA_LOOK_NS (250 * IPW_NS_PER_MS) /* between two counts, at least */

struct ipw_quota {
    size_t max_bytes, max_files; /* 0: not limited */
    size_t bytes, files;         /* at the last count */
    bool counted;
    int children; /* children that run now */
};

/* Whether a file of `old` bytes (`fresh`: a new file) can grow to n bytes.  Counts it if it can. */
int ipw_quota_write(struct ipw_quota *quota, const char *folder, bool fresh, size_t old, size_t n,
                    struct ipw_err *err);
/* A write failed half way, so the folder must be counted again. */
void ipw_quota_forget(struct ipw_quota *quota);
/* Whether a child can be started.  *file_bytes: the longest file that it can write. */
int ipw_quota_child_begins(struct ipw_quota *quota, const char *folder, size_t *file_bytes,
                           struct ipw_err *err);
void ipw_quota_child_ended(struct ipw_quota *quota);
/* While a child runs: whether the workspace is over its limit, or hides a part from the count.
 * *again_ns: the time to the next
 * count, so that counting takes at most a fiftieth of the time; 0: there is no limit. */
int ipw_quota_look(const struct ipw_quota *quota, const char *folder, const struct ipw_proc *child,
                   int64_t *again_ns, struct ipw_err *err);

#endif
