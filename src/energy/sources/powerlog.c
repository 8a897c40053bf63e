/* The log of a power meter, read while it is written.
 *
 * Follows a file that another program appends rows to (energy/meter.h describes the formats).  Each
 * column of watts becomes a gauge, each column of joules or watt-hours a counter.  All belong to
 * the whole machine unless the column's name says GPU, CPU or DRAM.  sources/meter_feed.h says
 * which times the rows get, and when a log that does not grow has no value.  (To attribute energy
 * by the meter's clock, use `ipw-agent meter` after the run.)  A damaged row is skipped and
 * counted, and the note names its file and line.  A file that was truncated or replaced is read
 * from its start again.
 *
 * Among several columns of one kind and domain, a column called sum or total replaces the others; a
 * counter replaces the gauges. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "energy/sources/meter_feed.h"

#define PIECE         ((size_t)65536)
#define PIECES_A_READ 16 /* a megabyte: a meter's log grows more slowly */
#define FRESH_S       10 /* an older row does not tell the present power */

struct powerlog {
    struct ipw_meter_feed feed;
    char path[PATH_MAX], column[64];
    int fd;
    ino_t inode;
    off_t at; /* bytes read so far */
};

/* Reads the new bytes, at most `pieces`, up to `until`. */
static int read_new(struct powerlog *p, size_t pieces, off_t until, struct ipw_err *err)
{
    char piece[PIECE];

    for (size_t i = 0; i < pieces && p->at < until; i++) {
        size_t most = until - p->at < (off_t)PIECE ? (size_t)(until - p->at) : PIECE;
        ssize_t n = pread(p->fd, piece, most, p->at);

        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return ipw_fail_errno(err, errno, "%s", p->path);
        p->at += n;
        ipw_meter_feed_bytes(&p->feed, piece, (size_t)n);
        if ((size_t)n < most) break;
    }
    return 0;
}

static int open_file(struct powerlog *p, struct stat *st, struct ipw_err *err)
{
    p->fd = open(p->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (p->fd < 0) return ipw_fail_errno(err, errno, "%s", p->path);
    if (fstat(p->fd, st) < 0) return ipw_fail_errno(err, errno, "%s", p->path);
    if (!S_ISREG(st->st_mode)) {
        return ipw_fail(err, IPW_EINVAL,
                        "%s: not a regular file (to read a pipe, use exec=cat FILE)", p->path);
    }
    p->inode = st->st_ino;
    p->at = 0;
    ipw_meter_feed_restart(&p->feed);
    return 0;
}

/* If the log was truncated, begin again.  If it was moved away, read it to its end and then its
 * successor. */
static void follow(struct powerlog *p)
{
    struct stat st;

    if (stat(p->path, &st) < 0) return; /* perhaps between two files */
    if (p->fd >= 0 && st.st_ino == p->inode && st.st_size >= p->at) return;
    if (p->fd >= 0) close(p->fd);
    if (open_file(p, &st, NULL) < 0 && p->fd >= 0) {
        close(p->fd);
        p->fd = -1;
    }
}

static void powerlog_pull(struct ipw_meter_feed *f)
{
    struct powerlog *p = (struct powerlog *)f;

    if (p->fd >= 0) read_new(p, PIECES_A_READ, LONG_MAX, NULL);
    follow(p);
}

static void powerlog_shut(struct ipw_meter_feed *f)
{
    struct powerlog *p = (struct powerlog *)f;

    if (p->fd >= 0) close(p->fd);
    free(p);
}

/* Reads what is there: the rows tell the format, and the last one the present power if it is
 * recent. */
static void pull_past(struct ipw_meter_feed *f)
{
    struct powerlog *p = (struct powerlog *)f;
    struct stat st;
    bool recent = fstat(p->fd, &st) == 0 && time(NULL) - st.st_mtime <= FRESH_S;

    f->skip = true;
    if (read_new(p, SIZE_MAX, recent ? st.st_size - (off_t)PIECE : LONG_MAX, &f->err)) return;
    f->skip = false;
    read_new(p, SIZE_MAX, LONG_MAX, &f->err);
}

static int open_log(struct powerlog *p, struct ipw_err *err)
{
    struct ipw_meter_feed *f = &p->feed;
    struct stat st;
    int rc = open_file(p, &st, err);

    if (rc < 0) return rc;
    f->pull = pull_past;
    f->past = true;
    ipw_meter_feed_pull(f);
    f->past = false;
    f->pull = powerlog_pull;
    if (f->err.code) return ipw_fail(err, f->err.code, "%s: %s", p->path, f->err.text);
    if (!f->begun) {
        return ipw_fail(err, IPW_EUNSUPPORTED,
                        "%s: no heading yet: start the meter's logger before the run", p->path);
    }
    ipw_meter_feed_describe(f, f->name, "log of a power meter");
    return 0;
}

int ipw_powerlog_open(struct ipw_source **out, const struct ipw_source_place *place,
                      const char *path, struct ipw_err *err)
{
    struct powerlog *p = ipw_calloc(1, sizeof *p);
    const char *mark = strrchr(path, '#'), *slash;
    int rc;

    (void)place;
    *out = NULL;
    p->fd = -1;
    p->feed.shut = powerlog_shut;
    ipw_meter_feed_init(&p->feed, "log");
    snprintf(p->path, sizeof p->path, "%s", path);
    if (mark && mark - path < (ptrdiff_t)sizeof p->path && access(path, F_OK) < 0) {
        snprintf(p->column, sizeof p->column, "%s", mark + 1);
        p->feed.column = p->column;
        p->path[mark - path] = '\0';
    }
    slash = strrchr(p->path, '/');
    snprintf(p->feed.name, sizeof p->feed.name, "%s", slash ? slash + 1 : p->path);
    rc = strlen(path) >= sizeof p->path ? ipw_fail(err, IPW_EINVAL, "the path is too long")
                                        : open_log(p, err);
    if (rc < 0) {
        p->feed.source.close(&p->feed.source);
        return rc;
    }
    *out = &p->feed.source;
    return 0;
}
