/* CSV and TSV after RFC 4180: a header line, then one row per line.  A field in double quotes may
 * hold separators, line breaks and doubled quotes.  Line ends are LF, CRLF or CR.  Every value is
 * text; the dataset script decides what it means.
 *
 * The first two lines of a .csv file show its separator: a comma, a semicolon (which spreadsheets
 * write if the comma is the decimal point) or a tab. */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/text.h"
#include "data/columns.h"
#include "data/rows_priv.h"
#include "json/write.h"

enum { COLUMNS_MAX = 10000 };

struct field {
    size_t start, n; /* place in the row's text */
};

struct csv {
    const char *name;
    const char *p, *end;
    char separator;
    int64_t line;        /* of the next character */
    struct ipw_buf text; /* the fields of the row, unquoted, one after another */
    struct field *fields;
    size_t n, cap;
};

static int fail_at(const struct csv *c, int64_t line, enum ipw_code code, const char *what,
                   struct ipw_err *err)
{
    return ipw_fail(err, code, "%s:%lld: %s", c->name, (long long)line, what);
}

/* Skips a line break: LF, CRLF or CR. */
static void skip_break(struct csv *c)
{
    if (*c->p == '\r' && c->p + 1 < c->end && c->p[1] == '\n') c->p++;
    c->p++;
    c->line++;
}

static bool at_break(const struct csv *c) { return *c->p == '\n' || *c->p == '\r'; }

static int read_quoted(struct csv *c, struct ipw_err *err)
{
    int64_t opened = c->line;

    for (c->p++; c->p < c->end;) {
        if (*c->p == '"' && (c->p + 1 == c->end || c->p[1] != '"')) {
            c->p++;
            if (c->p < c->end && *c->p != c->separator && !at_break(c))
                return fail_at(c, c->line, IPW_EPARSE,
                               "text after the closing quote of a field (a quote inside a quoted "
                               "field is written twice)",
                               err);
            return 0;
        }
        if (at_break(c)) { /* kept as written */
            const char *from = c->p;
            skip_break(c);
            ipw_buf_add(&c->text, from, (size_t)(c->p - from));
        } else {
            ipw_buf_addc(&c->text, *c->p);
            c->p += *c->p == '"' ? 2 : 1;
        }
    }
    return fail_at(c, opened, IPW_EPARSE, "a quoted field is opened here and never closed", err);
}

static void read_plain(struct csv *c)
{
    const char *from = c->p;

    while (c->p < c->end && *c->p != c->separator && !at_break(c)) c->p++;
    ipw_buf_add(&c->text, from, (size_t)(c->p - from));
}

/* Skips lines that are empty or hold only blanks. */
static void skip_blank_lines(struct csv *c)
{
    while (c->p < c->end) {
        const char *q = c->p;
        while (q < c->end && *q != c->separator && (*q == ' ' || *q == '\t')) q++;
        if (q < c->end && *q != '\n' && *q != '\r') return;
        c->p = q;
        if (q < c->end) skip_break(c);
    }
}

/* Reads one row into c->fields.  1: a row, which starts at line *line; 0: the end. */
static int read_row(struct csv *c, int64_t *line, struct ipw_err *err)
{
    int rc;

    skip_blank_lines(c);
    if (c->p == c->end) return 0;
    ipw_buf_clear(&c->text);
    c->n = 0;
    *line = c->line;
    for (;;) {
        size_t start = c->text.len;

        if (c->p < c->end && *c->p == '"') {
            rc = read_quoted(c, err);
            if (rc) return rc;
        } else {
            read_plain(c);
        }
        if (c->text.failed)
            return fail_at(c, *line, IPW_ELIMIT, "the row is longer than 64 MiB", err);
        if (c->n == COLUMNS_MAX)
            return fail_at(c, *line, IPW_ELIMIT, "the row has more than 10000 fields", err);
        IPW_GROW(c->fields, c->cap, c->n + 1);
        c->fields[c->n++] = (struct field){.start = start, .n = c->text.len - start};
        if (c->p == c->end) return 1;
        if (at_break(c)) {
            skip_break(c);
            return 1;
        }
        c->p++; /* the separator */
    }
}

struct column {
    char *name;
    size_t index;
};

struct header {
    struct column *columns; /* sorted by name: rows are JSON with sorted keys */
    size_t n, cap;
};

static int compare_columns(const void *a, const void *b)
{
    return strcmp(((const struct column *)a)->name, ((const struct column *)b)->name);
}

static void release_header(struct header *h)
{
    for (size_t i = 0; i < h->n; i++) free(h->columns[i].name);
    free(h->columns);
}

static int take_header(struct header *h, const struct csv *c, int64_t line, struct ipw_err *err)
{
    for (size_t i = 0; i < c->n; i++) {
        const char *s = ipw_buf_str(&c->text) + c->fields[i].start;
        size_t n = c->fields[i].n;

        while (n && (*s == ' ' || *s == '\t')) {
            s++;
            n--;
        }
        while (n && (s[n - 1] == ' ' || s[n - 1] == '\t')) n--;
        IPW_GROW(h->columns, h->cap, h->n + 1);
        /* Exports with a row index leave its name empty. */
        h->columns[h->n++] = (struct column){
            .name = n ? ipw_column_name(s, n) : ipw_asprintf("column_%zu", i + 1), .index = i};
    }
    qsort(h->columns, h->n, sizeof *h->columns, compare_columns);
    for (size_t i = 1; i < h->n; i++)
        if (strcmp(h->columns[i - 1].name, h->columns[i].name) == 0)
            return ipw_fail(err, IPW_EPARSE, "%s:%lld: the header names column \"%.80s\" twice",
                            c->name, (long long)line, h->columns[i].name);
    return 0;
}

static int add_row(struct ipw_rows *out, const struct header *h, const struct csv *c, int64_t line,
                   struct ipw_err *err)
{
    struct ipw_buf json = IPW_BUF(IPW_ROW_MAX);
    struct ipw_jw w;
    char *text;
    size_t n;

    if (c->n != h->n)
        return ipw_fail(err, IPW_EPARSE,
                        "%s:%lld: %zu fields, but the header has %zu (fields are "
                        "separated by %s)",
                        c->name, (long long)line, c->n, h->n,
                        c->separator == ','   ? "commas"
                        : c->separator == ';' ? "semicolons"
                                              : "tabs");
    ipw_jw_init(&w, &json);
    ipw_jw_obj(&w);
    for (size_t i = 0; i < h->n; i++) {
        const struct field *f = &c->fields[h->columns[i].index];
        ipw_jw_key_any(&w, h->columns[i].name, strlen(h->columns[i].name));
        ipw_jw_strn(&w, ipw_buf_str(&c->text) + f->start, f->n);
    }
    ipw_jw_obj_end(&w);
    if (json.failed) {
        ipw_buf_release(&json);
        return fail_at(c, line, IPW_ELIMIT, "the row is longer than 64 MiB", err);
    }
    text = ipw_buf_take(&json, &n);
    ipw_rows_add(out, text, n, line);
    return 0;
}

/* The number of fields of the header, if the row below it has as many; else 0. */
static size_t fields_with(const char *bytes, size_t n, char separator)
{
    struct csv c = {.name = "",
                    .p = bytes,
                    .end = bytes + n,
                    .separator = separator,
                    .line = 1,
                    .text = IPW_BUF(IPW_ROW_MAX)};
    int64_t line;
    size_t fields = 0;
    int rc = read_row(&c, &line, NULL);

    if (rc > 0) {
        fields = c.n;
        rc = read_row(&c, &line, NULL);
        if (rc < 0 || (rc > 0 && c.n != fields)) fields = 0;
    }
    free(c.fields);
    ipw_buf_release(&c.text);
    return fields;
}

/* The separator that gives the most fields; a comma if none separates anything. */
static char find_separator(const char *bytes, size_t n)
{
    static const char candidates[] = {',', ';', '\t'};
    size_t most = 1;
    char best = ',';

    for (size_t i = 0; i < sizeof candidates; i++) {
        size_t fields = fields_with(bytes, n, candidates[i]);

        if (fields <= most) continue;
        most = fields;
        best = candidates[i];
    }
    return best;
}

static int parse(struct ipw_rows *out, const char *name, const char *bytes, size_t n,
                 char separator, struct ipw_err *err)
{
    struct csv c = {.name = name,
                    .p = bytes,
                    .end = bytes + n,
                    .separator = separator,
                    .line = 1,
                    .text = IPW_BUF(IPW_ROW_MAX)};
    struct header header = {0};
    int64_t line = 1;
    int rc = read_row(&c, &line, err);

    if (rc == 0)
        rc = fail_at(&c, 1, IPW_EPARSE, "the file is empty: a header line was expected", err);
    else if (rc > 0)
        rc = take_header(&header, &c, line, err);
    while (rc == 0 && (rc = read_row(&c, &line, err)) > 0)
        rc = add_row(out, &header, &c, line, err);
    release_header(&header);
    free(c.fields);
    ipw_buf_release(&c.text);
    return rc;
}

int ipw_rows_parse_csv(struct ipw_rows *out, const char *name, const char *bytes, size_t n,
                       struct ipw_err *err)
{
    return parse(out, name, bytes, n, find_separator(bytes, n), err);
}

int ipw_rows_parse_tsv(struct ipw_rows *out, const char *name, const char *bytes, size_t n,
                       struct ipw_err *err)
{
    return parse(out, name, bytes, n, '\t', err);
}
