/* Follows a meter's log. */
#include "energy/sources/powerlog.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "energy/sources/powerlog_feed.h"

#define PERIOD_NS     (100 * IPW_NS_PER_MS)
#define USUAL_ROW_NS  IPW_NS_PER_S
#define MAX_W         30000
#define PIECE         ((size_t)65536)
#define PIECES_A_READ 16 /* a megabyte: a meter's log grows more slowly */
#define FRESH_S       10 /* an older row does not tell the present power */

struct powerlog {
    struct ipw_source source;
    char path[PATH_MAX];
    char column[64];
    int fd;
    ino_t inode;
    off_t at; /* bytes read so far */
    struct ipw_powerlog_lines lines;
    struct ipw_meter_format format;
    bool begun;
    off_t ignore_until; /* rows that end before this are only counted */
    int64_t now_ns;     /* time of this reading */
    size_t bad;
    struct ipw_err err; /* error of the heading */
    struct ipw_powerlog_held held[IPW_METER_COLUMNS];
    struct ipw_channel channels[IPW_METER_COLUMNS];
};

static void count_bad(struct powerlog *p, int64_t number, const char *why)
{
    if (p->bad++ > 0) return;
    ipw_source_set_note(&p->source, "%.60s:%lld: %.80s",
                        strrchr(p->path, '/') ? strrchr(p->path, '/') + 1 : p->path,
                        (long long)number, why);
}

/* A log that is emptied while it is written (logrotate's copytruncate) continues with rows, without
 * a second heading. */
static bool is_row(const struct powerlog *p, const char *line, size_t n)
{
    struct ipw_meter_format f = p->format;
    struct ipw_meter_row row;

    return p->source.n_channels > 0 && ipw_meter_row(&f, line, n, &row, NULL) > 0;
}

/* Takes the heading, also that of a file that replaced the first: its columns must be the same.
 * Returns 1 if the line was only the heading. */
static int begin(struct powerlog *p, const char *line, size_t n)
{
    struct ipw_meter_format f;
    const char *only = p->column[0] ? p->column : NULL;
    bool same;
    int rc;

    if (is_row(p, line, n)) {
        p->begun = true;
        return 0;
    }
    rc = ipw_meter_format_begin(&f, line, n, only, &p->err);
    if (rc < 0) return rc;
    same = p->source.n_channels == 0 || f.n_columns == p->source.n_channels;
    for (size_t i = 0; i < p->source.n_channels && same; i++) {
        same = f.columns[i].kind == p->format.columns[i].kind &&
               strcmp(f.columns[i].name, p->format.columns[i].name) == 0;
    }
    if (!same) return ipw_fail(&p->err, IPW_EPARSE, "the columns are not what they were");
    p->format = f;
    p->begun = true;
    return rc;
}

static void take_line(void *ud, const char *line, size_t n, int64_t number)
{
    struct powerlog *p = ud;
    struct ipw_meter_row row;
    struct ipw_err err = {0};
    size_t blank = 0;
    int rc;

    if (number == 1 && n >= 3 && memcmp(line, "\xEF\xBB\xBF", 3) == 0) line += 3, n -= 3; /* BOM */
    while (blank < n && (line[blank] == ' ' || line[blank] == '\t')) blank++;
    if (blank == n || line[blank] == '#' || p->err.code) return;
    if (!p->begun) {
        rc = begin(p, line, n);
        if (rc < 0) count_bad(p, number, p->err.text);
        if (rc != 0) return;
    }
    if (p->at < p->ignore_until) return;
    rc = ipw_meter_row(&p->format, line, n, &row, &err);
    if (rc < 0) count_bad(p, number, err.text);
    if (rc == IPW_EUNSUPPORTED) { /* no row of this file can be used, earlier ones included */
        p->err = err;
        memset(p->held, 0, sizeof p->held);
    }
    for (size_t i = 0; i < p->format.n_columns && rc > 0; i++) {
        if (!isnan(row.values[i])) ipw_powerlog_held_push(&p->held[i], row.values[i], p->now_ns);
    }
}

/* Reads the new bytes, at most `pieces`. */
static int read_new(struct powerlog *p, size_t pieces, struct ipw_err *err)
{
    char piece[PIECE];

    for (size_t i = 0; i < pieces; i++) {
        ssize_t n = pread(p->fd, piece, sizeof piece, p->at);

        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return ipw_fail_errno(err, errno, "%s", p->path);
        p->at += n;
        ipw_powerlog_lines_push(&p->lines, piece, (size_t)n, take_line, p);
        if ((size_t)n < sizeof piece) break;
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
                        "%s: not a regular file (to read a pipe: exec=cat FILE, watts a line)",
                        p->path);
    }
    p->inode = st->st_ino;
    p->at = 0;
    p->lines.n = 0;
    p->lines.number = 0;
    p->begun = false;
    p->err.code = IPW_OK;
    return 0;
}

/* If the log was truncated, begin again.  If it was moved away, read it to its end and then its
 * successor. */
static void follow(struct powerlog *p)
{
    struct stat st;
    struct ipw_err err;
    bool other;

    if (stat(p->path, &st) < 0) return; /* perhaps between two files */
    other = st.st_ino != p->inode;
    if (p->fd >= 0 && !other && st.st_size >= p->at) return;
    if (p->fd >= 0) close(p->fd);
    if (open_file(p, &st, &err) < 0 && p->fd >= 0) {
        close(p->fd);
        p->fd = -1;
    }
}

static void powerlog_read(struct ipw_source *self, int64_t *values)
{
    struct powerlog *p = (struct powerlog *)self;

    p->now_ns = p->source.now();
    if (p->fd >= 0) read_new(p, PIECES_A_READ, NULL);
    follow(p);
    for (size_t i = 0; i < p->source.n_channels; i++) {
        values[i] = ipw_powerlog_held_take(&p->held[i], p->format.columns[i].kind, p->now_ns);
    }
}

static void powerlog_close(struct ipw_source *self)
{
    struct powerlog *p = (struct powerlog *)self;

    if (p->fd >= 0) close(p->fd);
    free(p);
}

static void make_channels(struct powerlog *p)
{
    const char *base = strrchr(p->path, '/') ? strrchr(p->path, '/') + 1 : p->path;

    for (size_t i = 0; i < p->format.n_columns; i++) {
        const struct ipw_meter_column *column = &p->format.columns[i];
        struct ipw_channel *c = &p->channels[i];
        static const enum ipw_scope scopes[IPW_DOMAIN_COUNT] = {
            [IPW_DOMAIN_GPU] = IPW_SCOPE_DEVICE,
            [IPW_DOMAIN_CPU] = IPW_SCOPE_PACKAGE,
            [IPW_DOMAIN_DRAM] = IPW_SCOPE_DRAM,
            [IPW_DOMAIN_MACHINE] = IPW_SCOPE_MACHINE};
        bool watts = column->kind == IPW_METER_WATTS;

        *c = (struct ipw_channel){.domain = column->domain,
                                  .scope = scopes[column->domain],
                                  .kind = watts ? IPW_CHANNEL_GAUGE : IPW_CHANNEL_COUNTER,
                                  .max_w = MAX_W,
                                  .in_sum = column->in_sum,
                                  .period_ns = USUAL_ROW_NS};
        snprintf(c->name, sizeof c->name, "%.24s:%.36s", base, column->name);
        snprintf(c->device, sizeof c->device, "%.24s:%.36s", base, column->name);
        snprintf(c->unit, sizeof c->unit, "%s", watts ? "mW" : "uJ");
        snprintf(c->method, sizeof c->method, "log of a power meter");
    }
    p->source.channels = p->channels;
    p->source.n_channels = p->format.n_columns;
}

static int open_log(struct powerlog *p, struct ipw_err *err)
{
    struct stat st;
    int rc = open_file(p, &st, err);

    if (rc < 0) return rc;
    p->now_ns = p->source.now();
    /* Only the last rows may tell the present power, and only if they are recent. */
    p->ignore_until =
        time(NULL) - st.st_mtime > FRESH_S ? st.st_size + 1 : st.st_size - (off_t)PIECE;
    rc = read_new(p, SIZE_MAX, err);
    p->ignore_until = 0;
    if (rc < 0) return rc;
    if (p->err.code) return ipw_fail(err, p->err.code, "%s: %s", p->path, p->err.text);
    if (!p->begun) {
        return ipw_fail(err, IPW_EUNSUPPORTED,
                        "%s: no heading yet: start the meter's logger before the run", p->path);
    }
    for (size_t i = 0; i < p->format.n_columns; i++) {
        struct ipw_powerlog_held *h = &p->held[i];
        /* Of the past rows use only the newest. */
        h->sum = h->last;
        h->fresh = h->fresh > 0;
    }
    make_channels(p);
    return 0;
}

int ipw_powerlog_open(struct ipw_source **out, const char *path, struct ipw_err *err)
{
    struct powerlog *p = ipw_calloc(1, sizeof *p);
    const char *mark = strrchr(path, '#');
    int rc;

    *out = NULL;
    p->fd = -1;
    p->source.name = "log";
    p->source.read = powerlog_read;
    p->source.close = powerlog_close;
    p->source.now = ipw_now_ns;
    p->source.period_ns = PERIOD_NS;
    snprintf(p->path, sizeof p->path, "%s", path);
    if (mark && access(path, F_OK) < 0) {
        snprintf(p->column, sizeof p->column, "%s", mark + 1);
        p->path[mark - path] = '\0';
    }
    rc = strlen(path) >= sizeof p->path ? ipw_fail(err, IPW_EINVAL, "the path is too long")
                                        : open_log(p, err);
    if (rc < 0) {
        powerlog_close(&p->source);
        return rc;
    }
    *out = &p->source;
    return 0;
}
