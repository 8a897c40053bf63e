/* Rows of text: JSONL here, JSON, CSV and TSV in the files beside it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/text.h"
#include "base/utf8.h"
#include "data/columns.h"
#include "data/encoding.h"
#include "data/rows_priv.h"
#include "data/sha256.h"
#include "json/json.h"
#include "json/jsonl.h"

#define FILE_MAX (2048 * IPW_MIB)

void ipw_rows_add(struct ipw_rows *rows, char *json, size_t n, int64_t line)
{
    if (rows->most && rows->n == rows->most) {
        free(json);
        return;
    }
    IPW_GROW(rows->rows, rows->cap, rows->n + 1);
    rows->rows[rows->n++] = (struct ipw_row){.json = json, .n = n, .line = line};
}

void ipw_rows_release(struct ipw_rows *rows)
{
    for (size_t i = 0; i < rows->n; i++) free(rows->rows[i].json);
    free(rows->rows);
    *rows = (struct ipw_rows){0};
}

int ipw_rows_check_object(const char *text, size_t n, const char *name, int64_t line,
                          struct ipw_err *err)
{
    struct ipw_json *root = NULL;
    int rc = ipw_json_parse(&root, text, n, NULL, err);

    if (rc) return ipw_err_prefix(err, "%s:%lld", name, (long long)line);
    if (ipw_json_kind(root) != IPW_JSON_OBJ)
        rc = ipw_fail(err, IPW_EPARSE, "%s:%lld: a row must be a JSON object {...}", name,
                      (long long)line);
    ipw_json_free(root);
    return rc;
}

static bool is_blank(const char *s, size_t n)
{
    while (n && memchr(" \t\r\v\f", s[n - 1], 5)) n--;
    return n == 0;
}

static int parse_jsonl(struct ipw_rows *out, const char *name, const char *bytes, size_t n,
                       struct ipw_err *err)
{
    static const char bom[] = "\xEF\xBB\xBF";
    const char *p = bytes, *end = bytes + n;
    int64_t line = 0;

    while (p < end && !(out->most && out->n == out->most)) {
        const char *newline = memchr(p, '\n', (size_t)(end - p));
        size_t len = (size_t)((newline ? newline : end) - p);
        const char *text = p;
        int rc;

        line++;
        p = newline ? newline + 1 : end;
        if (len && text[len - 1] == '\r') len--;
        if (len > 2 && memcmp(text, bom, 3) == 0) text += 3, len -= 3; /* files put together */
        if (is_blank(text, len)) continue;
        if (len > IPW_ROW_MAX)
            return ipw_fail(err, IPW_ELIMIT, "%s:%lld: the line is longer than 64 MiB", name,
                            (long long)line);
        rc = ipw_rows_check_object(text, len, name, line, err);
        if (rc && !newline && err && strlen(err->text) < sizeof err->text - 64)
            strcat(err->text, " (the last line has no newline: is the file cut off?)");
        if (rc) return rc;
        ipw_rows_add(out, ipw_memdup(text, len), len, line);
    }
    return 0;
}

static const struct kind {
    const char *ending;
    int (*parse)(struct ipw_rows *out, const char *name, const char *bytes, size_t n,
                 struct ipw_err *err);
} kinds[] = {
    {".jsonl", parse_jsonl},      {".ndjson", parse_jsonl},     {".json", ipw_rows_parse_json},
    {".csv", ipw_rows_parse_csv}, {".tsv", ipw_rows_parse_tsv},
};

bool ipw_rows_text_knows(const char *name)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (ipw_has_ending(name, kinds[i].ending)) return true;
    return false;
}

static int find_kind(const struct kind **out, const char *name, struct ipw_err *err)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (ipw_has_ending(name, kinds[i].ending)) {
            *out = &kinds[i];
            return 0;
        }
    return ipw_fail(
        err, IPW_EINVAL,
        "%s: a dataset file's name ends in .jsonl, .ndjson, .json, .csv, .tsv, .parquet "
        "or .arrow",
        name);
}

/* A CSV has no place for other bytes, and often comes from a spreadsheet in another encoding. */
static int check_utf8(const char *name, const char *bytes, size_t n, struct ipw_err *err)
{
    const char *p = bytes, *end = bytes + n;
    size_t at = 0, k;

    if (ipw_utf8_valid(bytes, n)) return 0;
    for (int64_t line = 1; p < end; line++) {
        const char *newline = memchr(p, '\n', (size_t)(end - p));
        size_t length = (size_t)((newline ? newline : end) - p);

        if (!ipw_utf8_valid(p, length)) {
            while ((k = ipw_utf8_len(p + at, length - at))) at += k;
            return ipw_fail(err, IPW_EPARSE,
                            "%s:%lld: byte %zu of the line (0x%02X) is not UTF-8. Save the file as "
                            "UTF-8, or name its encoding: run --encoding latin1",
                            name, (long long)line, at + 1, (unsigned)(unsigned char)p[at]);
        }
        p += length + 1;
    }
    return 0;
}

/* The bytes are UTF-8 of some kind. */
static int parse_utf8(struct ipw_rows *out, const struct kind *kind, const char *name,
                      const char *bytes, size_t n, struct ipw_err *err)
{
    int rc;

    if (n >= 2 && (memcmp(bytes, "\xff\xfe", 2) == 0 || memcmp(bytes, "\xfe\xff", 2) == 0))
        return ipw_fail(err, IPW_EPARSE,
                        "%s: the file is UTF-16. Use run --encoding utf-16, or save it as UTF-8",
                        name);
    if (kind->parse == ipw_rows_parse_csv || kind->parse == ipw_rows_parse_tsv) {
        rc = check_utf8(name, bytes, n, err);
        if (rc) return rc;
    }
    if (n >= 3 && memcmp(bytes, "\xef\xbb\xbf", 3) == 0) {
        bytes += 3;
        n -= 3;
    }
    return kind->parse(out, name, bytes, n, err);
}

int ipw_rows_text_parse(struct ipw_rows *out, const char *name, const char *bytes, size_t n,
                        const char *encoding, struct ipw_err *err)
{
    struct ipw_buf text = IPW_BUF(FILE_MAX);
    const struct kind *kind = NULL;
    int rc = find_kind(&kind, name, err);

    if (rc) return rc;
    ipw_sha256_hex(out->sha256, bytes, n);
    if (encoding) {
        rc = ipw_encoding_to_utf8(&text, encoding, name, bytes, n, err);
        bytes = ipw_buf_str(&text);
        n = text.len;
    }
    if (!rc) rc = parse_utf8(out, kind, name, bytes, n, err);
    ipw_buf_release(&text);
    return rc;
}

int ipw_rows_text_read(struct ipw_rows *out, const char *path, const char *encoding,
                       struct ipw_err *err)
{
    struct ipw_buf bytes = IPW_BUF(FILE_MAX);
    const struct kind *kind;
    struct stat st;
    int rc = find_kind(&kind, path, err);

    if (rc) return rc;
    /* A pipe would block the loop for as long as its writer likes. */
    if (stat(path, &st) != 0) return ipw_fail_errno(err, errno, "%s", path);
    if (!S_ISREG(st.st_mode)) return ipw_fail(err, IPW_EINVAL, "%s: not a regular file", path);
    rc = ipw_file_read(&bytes, path, err);
    if (rc == 0) rc = ipw_rows_text_parse(out, path, ipw_buf_str(&bytes), bytes.len, encoding, err);
    ipw_buf_release(&bytes);
    return rc;
}
