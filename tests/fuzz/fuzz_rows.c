/* Rows of datasets: CSV, TSV, JSON, JSON Lines, by the first byte.  Any bytes give rows or one line
 * that names the file; a row is one JSON object of valid UTF-8, lines count upwards, and the rows
 * that were read come back when they are written as CSV, or as one JSON list, and read again. */
#include "check.h"
#include "data/rows.h"
#include "json/json.h"

static struct ipw_json *object_of(const struct ipw_row *row)
{
    struct ipw_json *doc;
    size_t repairs = 0;

    check(ipw_json_parse(&doc, row->json, row->n, &repairs, NULL) == 0, "a row is not JSON");
    check(ipw_json_kind(doc) == IPW_JSON_OBJ, "a row is not an object");
    return doc;
}

static void check_rows(const struct ipw_rows *rows)
{
    for (size_t i = 0; i < rows->n; i++) {
        check(rows->rows[i].line >= (i ? rows->rows[i - 1].line : 1), "lines do not count upwards");
        ipw_json_free(object_of(&rows->rows[i]));
    }
}

static void put_cell(struct ipw_buf *out, const char *s, bool comma)
{
    if (comma) ipw_buf_addc(out, ',');
    ipw_buf_addc(out, '"');
    for (; *s; s++) {
        if (*s == '"') ipw_buf_addc(out, '"');
        ipw_buf_addc(out, *s);
    }
    ipw_buf_addc(out, '"');
}

/* The header by the first row's keys; of each row the values in that order. */
static void write_csv(struct ipw_buf *out, const struct ipw_rows *rows)
{
    for (size_t i = 0; i <= rows->n; i++) {
        struct ipw_json *doc = object_of(&rows->rows[i ? i - 1 : 0]);
        bool comma = false;

        for (const struct ipw_json *m = ipw_json_first(doc); m; m = ipw_json_next(m)) {
            put_cell(out, i ? ipw_json_str(m, "") : ipw_json_key(m), comma);
            comma = true;
        }
        ipw_buf_addc(out, '\n');
        ipw_json_free(doc);
    }
}

static void write_list(struct ipw_buf *out, const struct ipw_rows *rows)
{
    ipw_buf_addc(out, '[');
    for (size_t i = 0; i < rows->n; i++) {
        if (i) ipw_buf_addc(out, ',');
        ipw_buf_add(out, rows->rows[i].json, rows->rows[i].n);
    }
    ipw_buf_addc(out, ']');
}

static void check_again(const struct ipw_rows *rows, const char *name, const struct ipw_buf *text)
{
    struct ipw_err err = {0};
    struct ipw_rows again;

    if (ipw_rows_parse(&again, name, ipw_buf_str(text), text->len, &err))
        IPW_BUG("what was read is refused: %s", err.text);
    check(again.n == rows->n, "another number of rows");
    for (size_t i = 0; i < rows->n; i++) {
        struct ipw_json *x = object_of(&rows->rows[i]), *y = object_of(&again.rows[i]);
        struct ipw_buf a = IPW_BUF(64 * IPW_MIB), b = IPW_BUF(64 * IPW_MIB);

        ipw_json_print(&a, x);
        ipw_json_print(&b, y);
        check(a.len == b.len && memcmp(a.data, b.data, a.len) == 0, "another row");
        ipw_buf_release(&a);
        ipw_buf_release(&b);
        ipw_json_free(x);
        ipw_json_free(y);
    }
    ipw_rows_release(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const names[] = {"f.csv", "f.tsv", "f.json", "f.jsonl"};
    size_t kind = size ? data[0] % 4 : 0;
    char *text = exact_text(data + (size > 0), size - (size > 0));
    struct ipw_buf out = IPW_BUF(64 * IPW_MIB);
    struct ipw_err err = {0};
    struct ipw_rows rows;
    int rc = ipw_rows_parse(&rows, names[kind], text, size - (size > 0), &err);

    if (rc) {
        check_error(&err, rc);
        check(strstr(err.text, names[kind]) != NULL, "an error that does not name the file");
    } else {
        check_rows(&rows);
        if (kind < 2 && rows.n)
            write_csv(&out, &rows);
        else if (kind >= 2)
            write_list(&out, &rows);
        if (out.len) check_again(&rows, kind < 2 ? "f.csv" : "f.json", &out);
        ipw_rows_release(&rows);
    }
    ipw_buf_release(&out);
    free(text);
    return 0;
}
