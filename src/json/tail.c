/* Cuts a file's damaged end off, so that lines can be appended again. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/open.h"
#include "json/json.h"
#include "json/jsonl.h"

enum { CHUNK = 64 * 1024 };

static int read_at(int fd, const char *path, char *to, size_t n, int64_t at, struct ipw_err *err)
{
    size_t done = 0;

    while (done < n) {
        ssize_t k = pread(fd, to + done, n - done, (off_t)at + (off_t)done);

        if (k < 0 && errno == EINTR) continue;
        if (k < 0) return ipw_fail_errno(err, errno, "%s: at byte %lld", path, (long long)at);
        if (k == 0) return ipw_fail(err, IPW_EIO, "%s: became shorter while it was read", path);
        done += (size_t)k;
    }
    return 0;
}

/* The start of the line whose last byte is before `end`. */
static int line_start(int fd, const char *path, int64_t end, int64_t *start, struct ipw_err *err)
{
    char *chunk = ipw_malloc(CHUNK);
    int rc = 0;

    *start = end;
    while (*start > 0) {
        size_t n = *start < CHUNK ? (size_t)*start : CHUNK;
        char *lf;

        rc = read_at(fd, path, chunk, n, *start - (int64_t)n, err);
        if (rc) break;
        lf = memrchr(chunk, '\n', n);
        if (lf) {
            *start -= (int64_t)n - (lf + 1 - chunk);
            break;
        }
        *start -= (int64_t)n;
    }
    free(chunk);
    return rc;
}

/* Is the line [start, end) one value that needs no repair?  1, 0, or an error. */
static int is_whole(int fd, const char *path, int64_t start, int64_t end, struct ipw_err *err)
{
    size_t n = (size_t)(end - start), repairs = 0;
    struct ipw_json *doc = NULL;
    char *line;
    int rc;

    if (n == 0) return 1; /* a blank line is skipped */
    line = ipw_malloc(n);
    rc = read_at(fd, path, line, n, start, err);
    if (!rc) rc = ipw_json_parse(&doc, line, n, &repairs, NULL) == 0 && repairs == 0;
    ipw_json_free(doc);
    free(line);
    return rc;
}

/* Moves *end from the file's size to the end of its last whole line. */
static int find_end(int fd, const char *path, int64_t *end, struct ipw_err *err)
{
    while (*end > 0) {
        int64_t start;
        char last;
        int rc = read_at(fd, path, &last, 1, *end - 1, err);

        if (!rc) rc = line_start(fd, path, last == '\n' ? *end - 1 : *end, &start, err);
        if (rc) return rc;
        if (last == '\n') {
            rc = is_whole(fd, path, start, *end - 1, err);
            if (rc) return rc < 0 ? rc : 0;
        }
        *end = start;
    }
    return 0;
}

/* Appends bytes [from, to) of fd to the file `torn` and syncs it. */
static int copy_out(int fd, const char *path, int64_t from, int64_t to, const char *torn,
                    struct ipw_err *err)
{
    int out = ipw_open_write(torn, O_WRONLY | O_APPEND | O_CREAT, err);
    char *chunk;
    int rc = 0;

    if (out < 0) return out;
    chunk = ipw_malloc(CHUNK);
    while (!rc && from < to) {
        size_t n = to - from < CHUNK ? (size_t)(to - from) : CHUNK;

        rc = read_at(fd, path, chunk, n, from, err);
        from += (int64_t)n;
        if (!rc && ipw_write_all(out, chunk, n)) rc = ipw_fail_errno(err, errno, "%s: write", torn);
    }
    free(chunk);
    if (!rc && TEMP_FAILURE_RETRY(fsync(out)) < 0)
        rc = ipw_fail_errno(err, errno, "%s: sync", torn);
    if (close(out) < 0 && !rc && errno != EINTR) rc = ipw_fail_errno(err, errno, "%s", torn);
    return rc;
}

int ipw_jsonl_cut_tail(struct ipw_jsonl_cut *cut, const char *path, struct ipw_err *err)
{
    struct ipw_err why = {0};
    struct stat st;
    int64_t end = 0;
    int fd, rc = 0;

    *cut = (struct ipw_jsonl_cut){0};
    fd = ipw_open_write(path, O_RDWR, &why);
    if (fd < 0 && why.detail == ENOENT) return 0;
    if (fd < 0) {
        if (err) *err = why;
        return fd;
    }
    if (fstat(fd, &st) < 0) rc = ipw_fail_errno(err, errno, "%s", path);
    if (!rc) {
        end = st.st_size;
        rc = find_end(fd, path, &end, err);
    }
    if (!rc && end < st.st_size) {
        char *torn = ipw_asprintf("%s.torn", path);

        rc = copy_out(fd, path, end, st.st_size, torn, err);
        if (!rc && (TEMP_FAILURE_RETRY(ftruncate(fd, (off_t)end)) < 0 ||
                    TEMP_FAILURE_RETRY(fsync(fd)) < 0))
            rc =
                ipw_fail_errno(err, errno, "%s: cannot be cut to %lld bytes", path, (long long)end);
        free(torn);
        *cut = (struct ipw_jsonl_cut){.offset = end, .bytes = st.st_size - end};
    }
    close(fd);
    return rc;
}
