#include "json/jsonl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/open.h"

enum { CHUNK = 64 * 1024 };

struct ipw_jsonl_reader {
    int fd;
    char *path;
    size_t line_max;
    struct ipw_buf buf; /* bytes of the file from `base` on */
    int64_t base;
    size_t at;      /* in buf: start of the next line */
    size_t scanned; /* in buf: no line feed between `at` and here */
    int64_t number; /* number of the last line returned */
    bool end;       /* the file has no more bytes */
    size_t torn;    /* bytes of the torn line that was returned last */
    bool skipping;  /* inside a line that was refused as too long */
};

int ipw_jsonl_fd(const struct ipw_jsonl_reader *reader) { return reader->fd; }

int ipw_jsonl_open(struct ipw_jsonl_reader **out, const char *path, size_t line_max_bytes,
                   struct ipw_err *err)
{
    struct ipw_jsonl_reader *r;
    struct stat st;
    struct ipw_err why = {0};
    int fd = ipw_open_read(path, &why);

    *out = NULL;
    if (fd < 0 && why.detail != EISDIR) {
        if (err) *err = why;
        return fd;
    }
    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
        if (fd >= 0) close(fd);
        return ipw_fail(err, IPW_EINVAL, "%s: not a regular file", path);
    }
    r = ipw_calloc(1, sizeof *r);
    r->fd = fd;
    r->path = ipw_strdup(path);
    r->line_max = line_max_bytes;
    /* Room for one line, its end, a BOM, and the chunk with the start of the next line. */
    ipw_buf_init(&r->buf, line_max_bytes + CHUNK + 16);
    *out = r;
    return 0;
}

void ipw_jsonl_close(struct ipw_jsonl_reader *r)
{
    if (!r) return;
    close(r->fd);
    ipw_buf_release(&r->buf);
    free(r->path);
    free(r);
}

/* Reads more bytes behind the unread ones; sets `end` at the end of the file. */
static int fill(struct ipw_jsonl_reader *r, struct ipw_err *err)
{
    ssize_t n;
    char *to;

    if (r->at) {
        ipw_buf_drop_front(&r->buf, r->at);
        r->base += (int64_t)r->at;
        r->scanned -= r->at;
        r->at = 0;
    }
    to = ipw_buf_room(&r->buf, CHUNK);
    if (!to) IPW_BUG("%zu bytes kept of lines of at most %zu", r->buf.len, r->line_max);
    do {
        n = read(r->fd, to, CHUNK);
    } while (n < 0 && errno == EINTR);
    if (n < 0)
        return ipw_fail_errno(err, errno, "%s: line %lld", r->path, (long long)r->number + 1);
    ipw_buf_added(&r->buf, (size_t)n);
    if (n == 0) r->end = true;
    if (r->base == 0 && r->at == 0 && r->number == 0 && r->buf.len >= 3 &&
        memcmp(r->buf.data, "\xEF\xBB\xBF", 3) == 0) {
        r->at = 3;
        if (r->scanned < 3) r->scanned = 3;
    }
    return 0;
}

int ipw_jsonl_seek(struct ipw_jsonl_reader *r, int64_t offset, struct ipw_err *err)
{
    r->skipping = false;
    r->number = 0;
    r->torn = 0;
    /* Lines before `at` were handed out, so their line ends are overwritten. */
    if (offset >= r->base + (int64_t)r->at && offset <= r->base + (int64_t)r->buf.len) {
        r->at = r->scanned = (size_t)(offset - r->base);
        return 0;
    }
    if (lseek(r->fd, (off_t)offset, SEEK_SET) < 0)
        return ipw_fail_errno(err, errno, "%s: byte %lld", r->path, (long long)offset);
    ipw_buf_clear(&r->buf);
    r->base = offset;
    r->at = r->scanned = 0;
    r->end = false;
    return 0;
}

static bool is_blank(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (s[i] != ' ' && s[i] != '\t' && s[i] != '\r') return false;
    return true;
}

static int too_long(struct ipw_jsonl_reader *r, struct ipw_err *err)
{
    return ipw_fail(err, IPW_ELIMIT, "%s: line %lld is longer than %zu bytes", r->path,
                    (long long)r->number, r->line_max);
}

/* Takes the line that begins at `at` and ends at `stop` (its line feed, or the end of the file).
 * Returns 1 for a line, 0 for a blank one. */
static int take(struct ipw_jsonl_reader *r, struct ipw_jsonl_line *line, size_t stop, bool torn,
                struct ipw_err *err)
{
    char *text = r->buf.data + r->at;
    size_t n = stop - r->at, from = r->at;

    r->at = r->scanned = torn ? stop : stop + 1;
    if (r->skipping) {
        r->skipping = false;
        return 0;
    }
    r->number++;
    r->torn = torn ? n : 0;
    if (!torn && n && text[n - 1] == '\r') n--;
    if (n > r->line_max) return too_long(r, err);
    if (is_blank(text, n)) return 0;
    text[n] = '\0';
    *line = (struct ipw_jsonl_line){
        .text = text, .n = n, .number = r->number, .offset = r->base + (int64_t)from, .torn = torn};
    return 1;
}

int ipw_jsonl_next(struct ipw_jsonl_reader *r, struct ipw_jsonl_line *line, struct ipw_err *err)
{
    int rc;

    for (;;) {
        size_t n = r->buf.len - r->scanned;
        char *lf = n ? memchr(r->buf.data + r->scanned, '\n', n) : NULL;

        if (lf) {
            rc = take(r, line, (size_t)(lf - r->buf.data), false, err);
            if (rc) return rc;
            continue;
        }
        r->scanned = r->buf.len;
        if (r->skipping) {
            r->at = r->scanned;
        } else if (r->scanned - r->at > r->line_max + 1) { /* 1: the CR before the line feed */
            r->skipping = true;
            r->number++;
            return too_long(r, err);
        }
        if (!r->end) {
            rc = fill(r, err);
            if (rc) return rc;
            continue;
        }
        if (r->at == r->buf.len) return 0;
        rc = take(r, line, r->buf.len, true, err);
        if (rc) return rc;
    }
}

void ipw_jsonl_more(struct ipw_jsonl_reader *r)
{
    r->end = false;
    if (!r->torn) return;
    r->at -= r->torn;
    r->scanned = r->at;
    r->number--;
    r->torn = 0;
}

int ipw_jsonl_each(const char *path, size_t line_max_bytes,
                   int (*fn)(void *ud, const struct ipw_jsonl_line *line, struct ipw_err *err),
                   void *ud, struct ipw_err *err)
{
    struct ipw_jsonl_reader *reader;
    struct ipw_jsonl_line line;
    int rc = ipw_jsonl_open(&reader, path, line_max_bytes, err);

    if (rc) return rc;
    while ((rc = ipw_jsonl_next(reader, &line, err)) > 0) {
        rc = line.torn ? 0 : fn(ud, &line, err);
        if (!rc) continue;
        ipw_err_prefix(err, "%s:%lld", path, (long long)line.number);
        break;
    }
    ipw_jsonl_close(reader);
    return rc;
}
