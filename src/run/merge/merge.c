#include "run/merge/merge.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/mem.h"
#include "json/document.h"
#include "json/jsonl.h"
#include "trace/lock.h"

/* A folder is replaced only if an earlier merge wrote it and nothing was added since. */
static int check_out(const char *out, struct ipw_err *err)
{
    struct ipw_json *manifest = NULL;
    const struct ipw_json *merge;
    int64_t sessions;
    int rc;

    if (!ipw_rundir_holds_run(out)) return 0;
    rc = ipw_lock_look(out, err);
    if (!rc) rc = ipw_json_read(&manifest, out, "manifest.json", err);
    if (rc) return rc;
    merge = ipw_json_get(manifest, "merge");
    sessions = ipw_json_int(ipw_json_get(merge, "sessions"), -1);
    if (sessions != (int64_t)ipw_json_count(ipw_json_get(manifest, "segments")))
        rc = ipw_fail(err, IPW_EEXISTS,
                      "%s: holds a run that no merge wrote; choose another folder with --output",
                      out);
    ipw_json_free(manifest);
    return rc;
}

static int put_in_place(const char *folder, const char *out, struct ipw_err *err)
{
    int rc = ipw_file_sync_folder(out, err);

    if (rc) return rc;
    if (access(out, F_OK) < 0) {
        if (rename(folder, out) < 0) rc = ipw_fail_errno(err, errno, "%s: rename", out);
        return rc ? rc : ipw_file_sync_folder(out, err);
    }
    if (renameat2(AT_FDCWD, folder, AT_FDCWD, out, RENAME_EXCHANGE) < 0)
        return ipw_fail_errno(err, errno, "%s: cannot be replaced; remove it and merge again", out);
    rc = ipw_file_sync_folder(out, err);
    return rc ? rc : ipw_run_folder_remove(folder, err);
}

int ipw_merge_run(struct ipw_planned_run *p, const char *out, struct ipw_err *err)
{
    char *folder = ipw_asprintf("%s.merging", out);
    int rc = check_out(out, err);

    if (!rc && ipw_lock_look(folder, NULL))
        rc = ipw_fail(err, IPW_EEXISTS, "%s: another merge is writing it", folder);
    if (!rc && ipw_rundir_holds_run(folder)) rc = ipw_run_folder_remove(folder, err);
    if (!rc) {
        rc = ipw_planned_run_write(p, folder, err);
        if (rc) ipw_run_folder_remove(folder, NULL);
    }
    if (!rc) rc = put_in_place(folder, out, err);
    free(folder);
    return rc;
}
