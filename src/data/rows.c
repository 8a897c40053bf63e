#include "data/rows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/mem.h"
#include "data/rows_priv.h"
#include "data/sha256.h"
#include "json/json.h"
#include "json/jsonl.h"

#define FILE_MAX (2048 * IPW_MIB)

void ipw_rows_add(struct ipw_rows *rows, char *json, size_t n, int64_t line)
{
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
    const char *p = bytes, *end = bytes + n;
    int64_t line = 0;

    while (p < end) {
        const char *newline = memchr(p, '\n', (size_t)(end - p));
        size_t len = (size_t)((newline ? newline : end) - p);
        const char *text = p;
        int rc;

        line++;
        p = newline ? newline + 1 : end;
        if (len && text[len - 1] == '\r') len--;
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

static bool has_ending(const char *name, const char *ending)
{
    size_t n = strlen(name), e = strlen(ending);

    return n >= e && strcasecmp(name + n - e, ending) == 0;
}

static int find_kind(const struct kind **out, const char *name, struct ipw_err *err)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (has_ending(name, kinds[i].ending)) {
            *out = &kinds[i];
            return 0;
        }
    if (has_ending(name, ".parquet"))
        return ipw_fail(err, IPW_EUNSUPPORTED,
                        "%s: Parquet is not read by this version; with pandas installed, convert "
                        "it: `python3 -c \"import sys, pandas; pandas.read_parquet(sys.argv[1])"
                        ".to_json(sys.argv[2], orient='records', lines=True, force_ascii=False)\" "
                        "FILE.parquet FILE.jsonl`",
                        name);
    return ipw_fail(err, IPW_EINVAL,
                    "%s: a dataset file's name ends in .jsonl, .ndjson, .json, .csv or .tsv", name);
}

int ipw_rows_parse(struct ipw_rows *out, const char *name, const char *bytes, size_t n,
                   struct ipw_err *err)
{
    const struct kind *kind;
    int rc = find_kind(&kind, name, err);

    *out = (struct ipw_rows){0};
    if (rc) return rc;
    ipw_sha256_hex(out->sha256, bytes, n);
    if (n >= 2 && (memcmp(bytes, "\xff\xfe", 2) == 0 || memcmp(bytes, "\xfe\xff", 2) == 0))
        return ipw_fail(err, IPW_EPARSE, "%s: the file is UTF-16; save it as UTF-8", name);
    if (n >= 3 && memcmp(bytes, "\xef\xbb\xbf", 3) == 0) {
        bytes += 3;
        n -= 3;
    }
    rc = kind->parse(out, name, bytes, n, err);
    if (rc) ipw_rows_release(out);
    return rc;
}

int ipw_rows_read(struct ipw_rows *out, const char *path, struct ipw_err *err)
{
    struct ipw_buf bytes = IPW_BUF(FILE_MAX);
    const struct kind *kind;
    struct stat st;
    int rc;

    *out = (struct ipw_rows){0};
    rc = find_kind(&kind, path, err);
    if (rc) return rc;
    /* Refuse a pipe: it would block the loop until its writer finishes. */
    if (stat(path, &st) != 0) return ipw_fail_errno(err, errno, "%s", path);
    if (!S_ISREG(st.st_mode)) return ipw_fail(err, IPW_EINVAL, "%s: not a regular file", path);
    rc = ipw_file_read(&bytes, path, err);
    if (rc == 0) rc = ipw_rows_parse(out, path, ipw_buf_str(&bytes), bytes.len, err);
    ipw_buf_release(&bytes);
    return rc;
}
