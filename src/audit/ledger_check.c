#include "audit/ledger_check.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/table.h"
#include "json/diff.h"
#include "json/document.h"
#include "json/jsonl.h"
#include "trace/saved_clock.h"

const char *const ipw_check_names[IPW_CHECK_FILES] = {[IPW_CHECK_TRACES] = "traces.jsonl",
                                                      [IPW_CHECK_ATTEMPTS] = "attempts.jsonl",
                                                      [IPW_CHECK_WARMUP] = "warmup.jsonl"};

struct kept { /* the place of a line that was passed over, or was asked for */
    int segment;
    int32_t index;
    int64_t offset, number;
    size_t n;
    uint64_t hash; /* of a line that was asked for: see is_twin() */
    uint32_t next; /* the next line with this segment and index, or the next free place */
    int file;
    bool superseded, over; /* over: it was asked for, or the place is free */
};

struct source {
    struct ipw_jsonl_reader *reader; /* NULL: there is none */
    char *path;
    bool over; /* each of its lines was read */
    /* Its newest line, read, until the next: mostly it is the one that is asked for. */
    struct ipw_query_loaded loaded;
    const char *text; /* NULL: none is held */
    int64_t offset;
};

struct ipw_check {
    struct source files[IPW_CHECK_FILES];
    const struct ipw_check_watch *watch; /* or NULL */
    struct ipw_anchor anchor;
    struct kept *kept;
    size_t n, cap;
    uint32_t free; /* the first place of `kept` that can be used again */
    struct ipw_check_line found;
    /* The first line with a segment and index; mostly there is no other. */
    struct ipw_table by_query;
};

/* The clocks of the manifest date the lines. */
static int read_anchor(struct ipw_check *c, const char *run, struct ipw_err *err)
{
    struct ipw_json *manifest;
    int rc = ipw_json_read(&manifest, run, "manifest.json", err);

    c->anchor = ipw_saved_clock_read(ipw_json_get(manifest, "clock"));
    ipw_json_free(manifest);
    return rc;
}

static void let_line_go(struct source *file)
{
    if (file->text) ipw_query_loaded_release(&file->loaded);
    file->text = NULL;
}

/* Reads the head of a line.  Who watches gets the whole line. */
static int read_head(struct ipw_check *c, int which, const struct ipw_jsonl_line *line,
                     struct ipw_err *err)
{
    struct ipw_query_loaded *loaded = &c->files[which].loaded;
    struct ipw_json *doc;
    size_t repairs;
    int rc;

    if (!c->watch) return ipw_schema_read_head(loaded, line->text, line->n, err);
    rc = ipw_json_parse(&doc, line->text, line->n, &repairs, err);
    if (rc) return rc;
    rc = c->watch->line(c->watch->ud, (enum ipw_check_file)which, doc, line->number, repairs, err);
    if (!rc) return ipw_schema_read_parsed(loaded, doc, false, err);
    ipw_json_free(doc);
    return rc;
}

static uint64_t key_of(int segment, int32_t index)
{
    return (uint64_t)(uint32_t)segment << 32 | (uint32_t)index;
}

static void keep(struct ipw_check *c, const struct kept *line)
{
    uint32_t *link = ipw_table_at(&c->by_query, key_of(line->segment, line->index), NULL);
    uint32_t at = c->free;

    if (at == IPW_TABLE_NONE)
        at = (uint32_t)c->n++;
    else
        c->free = c->kept[at].next;
    IPW_GROW(c->kept, c->cap, c->n);
    c->kept[at] = *line;
    while (*link != IPW_TABLE_NONE) link = &c->kept[*link].next;
    *link = at;
}

/* Notes the next line of one file; 0 at its end. */
static int keep_next(struct ipw_check *c, int which, struct ipw_err *err)
{
    struct source *file = &c->files[which];
    struct ipw_query_loaded *loaded = &file->loaded;
    struct ipw_jsonl_line line;
    int rc;

    if (!file->reader || file->over) return 0;
    let_line_go(file);
    rc = ipw_jsonl_next(file->reader, &line, err);
    if (rc <= 0 || line.torn) {
        file->over = true;
        if (rc <= 0 || !c->watch) return rc < 0 ? rc : 0;
        return c->watch->line(c->watch->ud, (enum ipw_check_file)which, NULL, line.number, 0, err);
    }
    rc = read_head(c, which, &line, err);
    if (rc) return ipw_err_prefix(err, "%s:%lld", file->path, (long long)line.number);
    file->text = line.text;
    file->offset = line.offset;
    keep(c, &(struct kept){.index = loaded->trace.index,
                           .segment = loaded->details.segment,
                           .superseded = loaded->details.superseded != NULL,
                           .offset = line.offset,
                           .number = line.number,
                           .n = line.n,
                           .next = IPW_TABLE_NONE,
                           .file = which});
    return 1;
}

/* The text of a line that was passed over. */
static int read_kept(char **text, const struct ipw_check *c, const struct kept *line,
                     struct ipw_err *err)
{
    const struct source *file = &c->files[line->file];
    size_t have = 0;

    *text = ipw_malloc(line->n + 1);
    while (have < line->n) {
        ssize_t n = pread(ipw_jsonl_fd(file->reader), *text + have, line->n - have,
                          (off_t)line->offset + (off_t)have);

        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) {
            free(*text);
            *text = NULL;
            return ipw_fail(err, IPW_EIO, "%s:%lld: cannot be read again: %s", file->path,
                            (long long)line->number, n < 0 ? strerror(errno) : "it is shorter now");
        }
        have += (size_t)n;
    }
    (*text)[line->n] = '\0';
    return 0;
}

int ipw_check_open(struct ipw_check **out, const char *run, const struct ipw_check_watch *watch,
                   struct ipw_err *err)
{
    struct ipw_check *c = ipw_calloc(1, sizeof *c);
    bool any = false;
    int rc = 0, more;

    *out = NULL;
    c->watch = watch;
    c->free = IPW_TABLE_NONE;
    for (int i = 0; i < IPW_CHECK_FILES; i++)
        c->files[i].path = ipw_asprintf("%s/%s", run, ipw_check_names[i]);
    for (int i = 0; i < IPW_CHECK_FILES && !rc; i++) {
        if (access(c->files[i].path, F_OK) < 0 && errno == ENOENT) continue;
        rc = ipw_jsonl_open(&c->files[i].reader, c->files[i].path, IPW_LINE_MAX, err);
        any = true;
    }
    if (!rc && any) rc = read_anchor(c, run, err);
    /* The earlier attempts first: a line that is also in traces.jsonl is one of them. */
    while (!rc && (more = keep_next(c, IPW_CHECK_ATTEMPTS, err))) rc = more < 0 ? more : 0;
    if (rc || !any) {
        ipw_check_close(c);
        return rc;
    }
    *out = c;
    return 0;
}

static void say_values(struct ipw_buf *what, const char *where, const struct ipw_json_difference *d)
{
    struct ipw_buf x = IPW_BUF(IPW_LINE_MAX), y = IPW_BUF(IPW_LINE_MAX);

    ipw_json_print(&x, d->a);
    ipw_json_print(&y, d->b);
    ipw_buf_addf(what, "%s: %.200s, now %.200s", where, d->a ? ipw_buf_str(&x) : "absent",
                 d->b ? ipw_buf_str(&y) : "absent");
    ipw_buf_release(&x);
    ipw_buf_release(&y);
}

/* Says where the line differs. */
static void say_difference(struct ipw_buf *what, const struct ipw_query_loaded *was,
                           const struct ipw_buf *now)
{
    struct ipw_buf where = IPW_BUF(4096);
    struct ipw_json_difference d = {0};
    struct ipw_json *doc;

    if (ipw_json_parse(&doc, now->data, now->len, NULL, NULL) == 0) {
        if (ipw_json_differ(&where, &d, was->doc, doc) && (d.a || d.b))
            say_values(what, ipw_buf_str(&where), &d);
        else
            ipw_buf_adds(what, "the same values, written otherwise");
        ipw_json_free(doc);
    }
    ipw_buf_release(&where);
}

static bool same_text(const char *a, const char *b) { return !strcmp(a ? a : "", b ? b : ""); }

/* Does the line have the query's turns and spans, and the ends that they came to? */
static bool same_course(const struct ipw_query_trace *a, const struct ipw_query_trace *b)
{
    if (!same_text(a->outcome, b->outcome) || a->completed != b->completed ||
        a->n_turns != b->n_turns)
        return false;
    for (size_t i = 0; i < a->n_turns; i++) {
        if (a->turns[i].n_spans != b->turns[i].n_spans) return false;
        for (size_t k = 0; k < a->turns[i].n_spans; k++) {
            const struct ipw_span *x = &a->turns[i].spans[k], *y = &b->turns[i].spans[k];

            if (x->kind != y->kind || !same_text(x->outcome, y->outcome)) return false;
        }
    }
    return true;
}

/* Most lines are equal byte for byte; only the others are read as a whole. */
static int compare(struct ipw_check *c, const struct ipw_anchor *clock,
                   const struct ipw_query_trace *trace, const struct ipw_query_details *details,
                   const char *text, size_t n, enum ipw_check_verdict *verdict,
                   struct ipw_buf *what, struct ipw_buf *now, struct ipw_err *err)
{
    struct ipw_query_loaded was;
    int rc = 0;

    ipw_schema_write_query(now, trace, details, clock);
    if (now->failed) {
        rc = ipw_fail(err, IPW_ELIMIT, "query %s: its trace is too large", trace->id);
    } else if (now->len == n && memcmp(now->data, text, n) == 0) {
        *verdict = IPW_CHECK_SAME;
    } else if ((rc = ipw_schema_read_query(&was, text, n, err)) == 0) {
        *verdict = IPW_CHECK_DIFFERS;
        c->found.other_course = !same_course(&was.trace, trace);
        if (what) say_difference(what, &was, now);
        ipw_query_loaded_release(&was);
    }
    return rc;
}

/* The place of the line, the superseded one of several; IPW_TABLE_NONE: it was not read yet. */
static uint32_t find_kept(const struct ipw_check *c, int segment, int32_t index)
{
    uint32_t found = IPW_TABLE_NONE;
    uint32_t at = ipw_table_get(&c->by_query, key_of(segment, index), NULL);

    for (; at != IPW_TABLE_NONE; at = c->kept[at].next) {
        if (c->kept[at].over) continue;
        if (c->kept[at].superseded) return at;
        if (found == IPW_TABLE_NONE) found = at;
    }
    return found;
}

/* Frees the place of a line. */
static void let_go(struct ipw_check *c, uint32_t at)
{
    struct kept *line = &c->kept[at];
    uint64_t key = key_of(line->segment, line->index);
    uint32_t *link = ipw_table_at(&c->by_query, key, NULL);

    if (*link == at && line->next == IPW_TABLE_NONE) {
        ipw_table_remove(&c->by_query, key, NULL);
    } else {
        while (*link != at) link = &c->kept[*link].next;
        *link = line->next;
    }
    line->over = true;
    line->next = c->free;
    c->free = at;
}

/* FNV-1a (64 bits) of a line without its member "superseded", which an attempt's line has in
 * addition to its line in traces.jsonl. */
static uint64_t hash_line(const char *text, size_t n)
{
    static const char member[] = "\"superseded\":\"";
    const char *end = text + n, *skip = memmem(text, n, member, sizeof member - 1);
    uint64_t hash = 0xcbf29ce484222325;

    for (const char *p = text; p < end; p++) {
        if (p == skip) {
            const char *comma = memchr(p, ',', (size_t)(end - p));

            if (comma) p = comma + 1;
        }
        hash = (hash ^ (unsigned char)*p) * 0x100000001b3;
    }
    return hash;
}

/* An attempt is synced to attempts.jsonl before its line leaves traces.jsonl.  After a crash in
 * between it is in both, and counts once. */
static int is_twin(bool *twin, const struct ipw_check *c, const struct kept *line,
                   struct ipw_err *err)
{
    uint32_t at = ipw_table_get(&c->by_query, key_of(line->segment, line->index), NULL);
    char *text;
    int rc;

    *twin = false;
    while (at != IPW_TABLE_NONE && !c->kept[at].over) at = c->kept[at].next;
    if (at == IPW_TABLE_NONE) return 0;
    rc = read_kept(&text, c, line, err);
    if (rc) return rc;
    *twin = c->kept[at].hash == hash_line(text, line->n);
    free(text);
    return 0;
}

/* Reads a line of each file in turn until it is found; mostly it is among the next. */
static int find_line(uint32_t *out, struct ipw_check *c, int segment, int32_t index,
                     struct ipw_err *err)
{
    bool more = true;

    while ((*out = find_kept(c, segment, index)) == IPW_TABLE_NONE && more) {
        more = false;
        for (int i = 0; i < IPW_CHECK_FILES; i++) {
            int rc = keep_next(c, i, err);

            if (rc < 0) return rc;
            more |= rc > 0;
        }
    }
    return 0;
}

/* The line itself: as it was read just now, or read once more (*own is its text then). */
static int load_line(struct ipw_query_loaded *loaded, const char **text, char **own,
                     struct ipw_check *c, const struct kept *line, struct ipw_err *err)
{
    struct source *file = &c->files[line->file];
    int rc;

    *own = NULL;
    if (file->text && file->offset == line->offset) {
        *loaded = file->loaded;
        *text = file->text;
        file->text = NULL;
        return 0;
    }
    rc = read_kept(own, c, line, err);
    if (rc) return rc;
    *text = *own;
    rc = ipw_schema_read_head(loaded, *text, line->n, err);
    return rc ? ipw_err_prefix(err, "%s:%lld", file->path, (long long)line->number) : 0;
}

/* A line that was asked for may have a twin among the earlier attempts: see is_twin(). */
static void note_over(struct ipw_check *c, uint32_t at, const char *text)
{
    if (!c->files[IPW_CHECK_ATTEMPTS].reader) {
        let_go(c, at);
        return;
    }
    c->kept[at].over = true;
    c->kept[at].hash = hash_line(text, c->kept[at].n);
}

int ipw_check_query(struct ipw_check *c, const struct ipw_recompute_segment *segment,
                    const struct ipw_recompute_query *query, enum ipw_check_verdict *verdict,
                    struct ipw_query_loaded *loaded, struct ipw_buf *what, struct ipw_buf *now,
                    struct ipw_err *err)
{
    const struct ipw_query_trace *trace = query->trace;
    const struct ipw_anchor *clock = &segment->rules.clock; /* all 0: the manifest's */
    struct ipw_buf own_now = IPW_BUF(IPW_LINE_MAX);
    struct kept line;
    const char *text;
    uint32_t at;
    char *own;
    int rc;

    *loaded = (struct ipw_query_loaded){0};
    rc = find_line(&at, c, query->segment, trace->index, err);
    if (rc) return rc;
    if (at == IPW_TABLE_NONE) {
        *verdict = segment->cut ? IPW_CHECK_UNWRITTEN : IPW_CHECK_MISSING;
        return 0;
    }
    line = c->kept[at];
    rc = load_line(loaded, &text, &own, c, &line, err);
    if (!rc) {
        note_over(c, at, text);
        c->found = (struct ipw_check_line){(enum ipw_check_file)line.file, line.number,
                                           query->segment, trace->index, false};
        rc = compare(c, clock->wall_ns ? clock : &c->anchor, trace, &loaded->details, text, line.n,
                     verdict, what, now ? now : &own_now, err);
        if (rc) ipw_err_prefix(err, "%s:%lld", c->files[line.file].path, (long long)line.number);
    }
    if (rc) ipw_query_loaded_release(loaded);
    ipw_buf_release(&own_now);
    free(own);
    return rc;
}

int ipw_check_find(struct ipw_check_line *out, struct ipw_check *c, int segment, int32_t index,
                   struct ipw_err *err)
{
    uint32_t at;
    int rc = find_line(&at, c, segment, index, err);

    if (rc || at == IPW_TABLE_NONE) return rc;
    *out = (struct ipw_check_line){(enum ipw_check_file)c->kept[at].file, c->kept[at].number,
                                   segment, index, false};
    return 1;
}

int ipw_check_take(struct ipw_query_loaded *out, struct ipw_check *c, int segment, int32_t index,
                   struct ipw_err *err)
{
    const char *text;
    uint32_t at;
    char *own;
    int rc = find_line(&at, c, segment, index, err);

    if (!rc && at == IPW_TABLE_NONE) rc = ipw_fail(err, IPW_EPARSE, "a line of it was lost");
    if (rc) return rc;
    rc = load_line(out, &text, &own, c, &c->kept[at], err);
    free(own);
    let_go(c, at);
    return rc;
}

struct ipw_check_line ipw_check_found(const struct ipw_check *c) { return c->found; }

static void count_left(void *n, const struct ipw_check_line *line, bool twin)
{
    (void)line;
    *(size_t *)n += !twin;
}

int ipw_check_each_left(struct ipw_check *c,
                        void (*fn)(void *ud, const struct ipw_check_line *line, bool twin),
                        void *ud, struct ipw_err *err)
{
    for (size_t i = 0; i < c->n; i++) {
        const struct kept *k = &c->kept[i];
        const struct ipw_check_line line = {(enum ipw_check_file)k->file, k->number, k->segment,
                                            k->index, false};
        bool twin;
        int rc;

        if (k->over) continue;
        rc = is_twin(&twin, c, k, err);
        if (rc) return rc;
        fn(ud, &line, twin);
    }
    return 0;
}

int ipw_check_left(struct ipw_check *c, size_t *left, struct ipw_err *err)
{
    for (int i = 0; i < IPW_CHECK_FILES; i++) {
        int rc;

        while ((rc = keep_next(c, i, err)) > 0) continue;
        if (rc < 0) return rc;
    }
    *left = 0;
    return ipw_check_each_left(c, count_left, left, err);
}

void ipw_check_close(struct ipw_check *c)
{
    if (!c) return;
    free(c->kept);
    ipw_table_release(&c->by_query);
    for (int i = 0; i < IPW_CHECK_FILES; i++) {
        let_line_go(&c->files[i]);
        ipw_jsonl_close(c->files[i].reader);
        free(c->files[i].path);
    }
    free(c);
}
