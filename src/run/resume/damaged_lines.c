#include "run/resume/damaged_lines.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/mem.h"
#include "json/jsonl.h"

static int put_line(struct ipw_jsonl_appender *to, struct ipw_buf *text,
                    const struct ipw_jsonl_line *line, struct ipw_err *err)
{
    ipw_buf_clear(text);
    ipw_buf_add(text, line->text, line->n);
    ipw_buf_addc(text, '\n');
    return ipw_jsonl_append(to, text->data, text->len, err);
}

static int sift(const char *path, const int64_t *lines, size_t n, struct ipw_jsonl_appender *kept,
                struct ipw_jsonl_appender *damaged, struct ipw_err *err)
{
    struct ipw_buf text = IPW_BUF(IPW_LINE_MAX + 1);
    struct ipw_jsonl_reader *reader = NULL;
    struct ipw_jsonl_line line;
    size_t next = 0;
    int rc = ipw_jsonl_open(&reader, path, IPW_LINE_MAX, err);

    while (!rc && (rc = ipw_jsonl_next(reader, &line, err)) > 0) {
        bool bad = next < n && lines[next] == line.number;

        next += bad;
        rc = put_line(bad ? damaged : kept, &text, &line, err);
    }
    if (!rc && (TEMP_FAILURE_RETRY(fsync(ipw_jsonl_append_fd(damaged))) < 0 ||
                TEMP_FAILURE_RETRY(fsync(ipw_jsonl_append_fd(kept))) < 0))
        rc = ipw_fail_errno(err, errno, "%s: the disk lost written data", path);
    ipw_jsonl_close(reader);
    ipw_buf_release(&text);
    return rc < 0 ? rc : 0;
}

/* A power cut can also tear the side file.  A torn line there is not a line of the run any more. */
static int open_side(struct ipw_jsonl_appender **out, const char *side, struct ipw_err *err)
{
    struct ipw_jsonl_cut cut;
    int rc = ipw_jsonl_cut_tail(&cut, side, err);

    return rc ? rc : ipw_jsonl_append_open(out, side, false, err);
}

int ipw_damaged_lines_take_out(const char *path, const int64_t *lines, size_t n,
                               struct ipw_err *err)
{
    char *tmp = ipw_asprintf("%s.tmp", path), *side = ipw_asprintf("%s.damaged", path);
    struct ipw_jsonl_appender *kept = NULL, *damaged = NULL;
    int rc;

    unlink(tmp); /* of a repair that was killed */
    rc = open_side(&damaged, side, err);
    if (!rc) rc = ipw_jsonl_append_open(&kept, tmp, true, err);
    if (!rc) rc = sift(path, lines, n, kept, damaged, err);
    if (!rc) rc = ipw_file_sync_folder(path, err); /* the side file's name first */
    if (!rc && TEMP_FAILURE_RETRY(rename(tmp, path)) < 0)
        rc = ipw_fail_errno(err, errno, "%s: rename", path);
    if (!rc) rc = ipw_file_sync_folder(path, err);
    ipw_jsonl_append_close(damaged, NULL);
    ipw_jsonl_append_close(kept, NULL);
    if (rc) unlink(tmp);
    free(tmp);
    free(side);
    return rc;
}
