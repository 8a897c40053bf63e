#include "run/resume/line_changes.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "json/jsonl.h"

void ipw_line_changes_add(struct ipw_line_changes *c, struct ipw_line_change change)
{
    IPW_GROW(c->all, c->cap, c->n + 1);
    c->all[c->n++] = change;
    c->n_out += change.text == NULL;
}

void ipw_line_changes_release(struct ipw_line_changes *c)
{
    for (size_t i = 0; i < c->n; i++) free(c->all[i].text);
    free(c->all);
    *c = (struct ipw_line_changes){0};
}

static int by_number(const void *a, const void *b)
{
    const struct ipw_line_change *x = a, *y = b;

    return (x->number > y->number) - (x->number < y->number);
}

static int put(struct ipw_jsonl_appender *to, struct ipw_buf *line, const char *text, size_t n,
               struct ipw_err *err)
{
    ipw_buf_clear(line);
    ipw_buf_add(line, text, n);
    ipw_buf_addc(line, '\n');
    return ipw_jsonl_append(to, line->data, line->len, err);
}

static int sift(const char *path, const struct ipw_line_changes *c, struct ipw_jsonl_appender *kept,
                struct ipw_jsonl_appender *damaged, struct ipw_err *err)
{
    struct ipw_buf text = IPW_BUF(IPW_LINE_MAX + 1);
    struct ipw_jsonl_reader *reader = NULL;
    struct ipw_jsonl_line line;
    size_t next = 0;
    int rc = ipw_jsonl_open(&reader, path, IPW_LINE_MAX, err);

    while (!rc && (rc = ipw_jsonl_next(reader, &line, err)) > 0) {
        const struct ipw_line_change *change =
            next < c->n && c->all[next].number == line.number ? &c->all[next++] : NULL;

        rc = 0;
        if (!change || change->behind || !change->text)
            rc = put(change && !change->text ? damaged : kept, &text, line.text, line.n, err);
        if (!rc && change && change->text)
            rc = put(kept, &text, change->text, strlen(change->text), err);
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

int ipw_line_changes_write(struct ipw_line_changes *c, const char *path, struct ipw_err *err)
{
    char *tmp = ipw_asprintf("%s.tmp", path), *side = ipw_asprintf("%s.damaged", path);
    struct ipw_jsonl_appender *kept = NULL, *damaged = NULL;
    int rc = 0;

    if (c->n) qsort(c->all, c->n, sizeof *c->all, by_number);
    unlink(tmp); /* of a repair that was killed */
    rc = open_side(&damaged, side, err);
    if (!rc) rc = ipw_jsonl_append_open(&kept, tmp, true, err);
    if (!rc) rc = sift(path, c, kept, damaged, err);
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
