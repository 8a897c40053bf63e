/* Rows of a JSON document: an array of objects, or an object that has such an array as "rows" or
 * "data".  The document is checked first, so the walk that finds the start and end of each row may
 * trust its form. */
#include <string.h>

#include "base/mem.h"
#include "data/rows_priv.h"
#include "json/json.h"

struct walk {
    const char *p, *end;
};

static void skip_space(struct walk *w)
{
    while (w->p < w->end && memchr(" \t\r\n", *w->p, 4)) w->p++;
}

static void skip_string(struct walk *w)
{
    for (w->p++; w->p < w->end && *w->p != '"'; w->p++)
        if (*w->p == '\\') w->p++;
    w->p++;
}

static void skip_value(struct walk *w)
{
    int depth = 0;

    do {
        char c = *w->p;
        if (c == '"') {
            skip_string(w);
        } else if (c == '{' || c == '[') {
            depth++;
            w->p++;
        } else if (c == '}' || c == ']') {
            depth--;
            w->p++;
        } else if (depth == 0) { /* a number or a word */
            while (w->p < w->end && !memchr(",]} \t\r\n", *w->p, 7)) w->p++;
        } else {
            w->p++;
        }
    } while (depth > 0 && w->p < w->end);
}

/* At '{': returns the start of the value of "rows", or else of "data", if it is an array. */
static const char *find_rows(struct walk *w)
{
    const char *rows = NULL, *data = NULL;

    for (w->p++, skip_space(w); w->p < w->end && *w->p == '"'; skip_space(w)) {
        const char *key = w->p, *value;
        skip_string(w);
        skip_space(w);
        w->p++; /* the colon */
        skip_space(w);
        value = w->p;
        if (*value == '[' && strncmp(key, "\"rows\"", 6) == 0) rows = value;
        if (*value == '[' && strncmp(key, "\"data\"", 6) == 0) data = value;
        skip_value(w);
        skip_space(w);
        if (w->p < w->end && *w->p == ',') {
            w->p++;
        }
    }
    return rows ? rows : data;
}

static int64_t count_lines(const char *from, const char *to)
{
    int64_t n = 0;

    while (from < to && (from = memchr(from, '\n', (size_t)(to - from)))) {
        n++;
        from++;
    }
    return n;
}

int ipw_rows_parse_json(struct ipw_rows *out, const char *name, const char *bytes, size_t n,
                        struct ipw_err *err)
{
    struct walk w = {bytes, bytes + n};
    const char *counted = bytes;
    struct ipw_json *root = NULL;
    int64_t line = 1;
    int rc = ipw_json_parse(&root, bytes, n, NULL, err);

    ipw_json_free(root);
    if (rc) return ipw_err_prefix(err, "%s", name);
    skip_space(&w);
    if (*w.p == '{') {
        const char *rows = find_rows(&w);
        if (!rows)
            return ipw_fail(err, IPW_EPARSE,
                            "%s: expected an array of rows, or an object with "
                            "such an array as \"rows\" or \"data\"",
                            name);
        w.p = rows;
    } else if (*w.p != '[') {
        return ipw_fail(err, IPW_EPARSE, "%s: expected an array of rows", name);
    }
    for (w.p++, skip_space(&w); w.p < w.end && *w.p != ']'; skip_space(&w)) {
        const char *start = w.p;
        size_t len;

        line += count_lines(counted, start);
        counted = start;
        skip_value(&w);
        len = (size_t)(w.p - start);
        if (len > IPW_ROW_MAX)
            return ipw_fail(err, IPW_ELIMIT, "%s:%lld: the row is longer than 64 MiB", name,
                            (long long)line);
        if (*start != '{')
            return ipw_fail(err, IPW_EPARSE, "%s:%lld: a row must be a JSON object {...}", name,
                            (long long)line);
        ipw_rows_add(out, ipw_memdup(start, len), len, line);
        skip_space(&w);
        if (w.p < w.end && *w.p == ',') w.p++;
    }
    return 0;
}
