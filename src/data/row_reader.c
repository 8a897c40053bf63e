/* Rows one after another.  A text file is read whole when it is opened.  Of a Parquet or Arrow
 * file, one page of each column or one record batch is in memory at a time. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "data/columnar/arrow.h"
#include "data/columnar/parquet.h"
#include "data/columnar/saved_set.h"
#include "data/columns.h"
#include "data/rows.h"
#include "data/rows_priv.h"
#include "data/sha256.h"

enum { HASH_PIECE = 1 << 16 };
#define ROWS_MAX (2048 * IPW_MIB) /* of all rows at once */

struct ipw_row_reader {
    struct ipw_rows text;
    size_t next_text;

    struct ipw_saved_set files; /* n is 0: it is text, or in memory */
    size_t next_file;
    char **columns;              /* NULL after the last; NULL: all */
    const void *bytes;           /* in memory: borrowed, with a hash */
    struct ipw_parquet *parquet; /* the open file: one of the two, or none */
    struct ipw_arrow *arrow;
    struct ipw_buf json;
    int64_t line;
    bool failed;
};

static bool is_arrow(const char *name)
{
    return ipw_has_ending(name, ".arrow") || ipw_has_ending(name, ".feather");
}

static bool is_columnar_name(const char *name)
{
    return ipw_has_ending(name, ".parquet") || is_arrow(name);
}

static bool is_columnar(const char *path)
{
    struct stat st;

    return is_columnar_name(path) || (stat(path, &st) == 0 && S_ISDIR(st.st_mode));
}

bool ipw_rows_knows_name(const char *name)
{
    return ipw_rows_text_knows(name) || is_columnar_name(name);
}

static char **copy_columns(const char *const *columns)
{
    size_t n = 0;
    char **copy;

    if (!columns) return NULL;
    while (columns[n]) n++;
    copy = ipw_calloc(n + 1, sizeof *copy);
    for (size_t i = 0; i < n; i++) copy[i] = ipw_strdup(columns[i]);
    return copy;
}

static void close_file(struct ipw_row_reader *reader)
{
    ipw_parquet_free(reader->parquet);
    ipw_arrow_free(reader->arrow);
    reader->parquet = NULL;
    reader->arrow = NULL;
}

/* Takes the file. */
static int open_columnar(struct ipw_row_reader *reader, struct ipw_data_file *file,
                         struct ipw_err *err)
{
    const char *const *columns = (const char *const *)reader->columns;

    close_file(reader);
    return is_arrow(file->name) ? ipw_arrow_open(&reader->arrow, file, columns, err)
                                : ipw_parquet_open(&reader->parquet, file, columns, err);
}

static int open_next(struct ipw_row_reader *reader, struct ipw_err *err)
{
    struct ipw_data_file file;
    int rc = ipw_data_file_open(&file, reader->files.paths[reader->next_file++], err);

    return rc ? rc : open_columnar(reader, &file, err);
}

int ipw_row_reader_open(struct ipw_row_reader **out, const char *path,
                        const struct ipw_rows_wanted *wanted, struct ipw_err *err)
{
    const char *encoding = wanted ? wanted->encoding : NULL;
    struct ipw_row_reader *reader = ipw_calloc(1, sizeof *reader);
    int rc;

    reader->json = IPW_BUF(IPW_ROW_MAX);
    reader->columns = copy_columns(wanted ? wanted->columns : NULL);
    if (encoding && is_columnar(path)) {
        rc = ipw_fail(err, IPW_EINVAL,
                      "%s: --encoding is for files of text; Parquet and Arrow have UTF-8", path);
    } else if (is_columnar(path)) {
        rc = ipw_saved_set_find(&reader->files, path, err);
        if (!rc) rc = open_next(reader, err);
    } else {
        rc = ipw_rows_text_read(&reader->text, path, encoding, err);
    }
    if (rc) {
        ipw_row_reader_free(reader);
        return rc;
    }
    *out = reader;
    return 0;
}

int ipw_row_reader_open_memory(struct ipw_row_reader **out, const char *name, const void *bytes,
                               size_t n, struct ipw_err *err)
{
    struct ipw_row_reader *reader = ipw_calloc(1, sizeof *reader);
    struct ipw_data_file file;
    int rc;

    reader->json = IPW_BUF(IPW_ROW_MAX);
    reader->bytes = bytes;
    ipw_sha256_hex(reader->text.sha256, bytes, n);
    ipw_data_file_memory(&file, name, bytes, n);
    rc = open_columnar(reader, &file, err);
    if (rc) {
        ipw_row_reader_free(reader);
        return rc;
    }
    *out = reader;
    return 0;
}

/* Of the files of Parquet or Arrow. */
static int next_columnar(struct ipw_row_reader *reader, struct ipw_row *row, struct ipw_err *err)
{
    int rc;

    for (;;) {
        ipw_buf_clear(&reader->json);
        rc = reader->parquet ? ipw_parquet_next(reader->parquet, &reader->json, err)
                             : ipw_arrow_next(reader->arrow, &reader->json, err);
        if (rc) break;
        if (reader->next_file == reader->files.n) return 0;
        rc = open_next(reader, err);
        if (rc) return rc;
    }
    if (rc == 1)
        *row = (struct ipw_row){
            .json = reader->json.data, .n = reader->json.len, .line = ++reader->line};
    return rc;
}

int ipw_row_reader_next(struct ipw_row_reader *reader, struct ipw_row *row, struct ipw_err *err)
{
    int rc;

    if (reader->failed) return ipw_fail(err, IPW_EINVAL, "the reader has failed before");
    if (reader->files.n || reader->bytes) {
        rc = next_columnar(reader, row, err);
        reader->failed = rc < 0;
        return rc;
    }
    if (reader->next_text == reader->text.n) return 0;
    *row = reader->text.rows[reader->next_text++];
    return 1;
}

int64_t ipw_row_reader_count(const struct ipw_row_reader *reader)
{
    if (reader->files.n <= 1 && reader->parquet) return ipw_parquet_count(reader->parquet);
    return reader->files.n || reader->arrow ? -1 : (int64_t)reader->text.n;
}

static int hash_file(struct ipw_sha256 *hash, const char *path, struct ipw_err *err)
{
    char *piece = ipw_malloc(HASH_PIECE);
    struct ipw_data_file file;
    int rc = ipw_data_file_open(&file, path, err);

    for (uint64_t at = 0; !rc && at < file.size; at += HASH_PIECE) {
        size_t n = file.size - at < HASH_PIECE ? (size_t)(file.size - at) : HASH_PIECE;

        rc = ipw_data_file_read(&file, at, piece, n, err);
        if (rc)
            ipw_err_prefix(err, "%s", path);
        else
            ipw_sha256_add(hash, piece, n);
    }
    ipw_data_file_close(&file);
    free(piece);
    return rc;
}

int ipw_row_reader_sha256(struct ipw_row_reader *reader, char out[65], struct ipw_err *err)
{
    struct ipw_sha256 hash;
    int rc = 0;

    if (!reader->files.n) {
        memcpy(out, reader->text.sha256, sizeof reader->text.sha256);
        return 0;
    }
    ipw_sha256_begin(&hash);
    for (size_t i = 0; !rc && i < reader->files.n; i++)
        rc = hash_file(&hash, reader->files.paths[i], err);
    if (!rc) ipw_sha256_end(&hash, out);
    return rc;
}

void ipw_row_reader_free(struct ipw_row_reader *reader)
{
    if (!reader) return;
    close_file(reader);
    ipw_saved_set_release(&reader->files);
    for (size_t i = 0; reader->columns && reader->columns[i]; i++) free(reader->columns[i]);
    free(reader->columns);
    ipw_buf_release(&reader->json);
    ipw_rows_release(&reader->text);
    free(reader);
}

/* ---- all rows at once ---- */

/* Has a limit: a few bytes of Parquet can encode very many rows. */
static int read_all(struct ipw_rows *out, const char *name, struct ipw_row_reader *reader,
                    struct ipw_err *err)
{
    struct ipw_row row;
    size_t held = 0;
    int rc = ipw_row_reader_sha256(reader, out->sha256, err);

    while (!rc && !(out->most && out->n == out->most) &&
           (rc = ipw_row_reader_next(reader, &row, err)) == 1) {
        held += row.n + 64;
        if (held > ROWS_MAX)
            rc = ipw_fail(err, IPW_ELIMIT, "%s: more than 2 GiB of rows; choose fewer columns",
                          name);
        else
            ipw_rows_add(out, ipw_memdup(row.json, row.n), row.n, row.line), rc = 0;
    }
    return rc;
}

int ipw_rows_parse(struct ipw_rows *out, const char *name, const char *bytes, size_t n,
                   struct ipw_err *err)
{
    struct ipw_row_reader *reader = NULL;
    int rc;

    *out = (struct ipw_rows){0};
    if (is_columnar_name(name)) {
        rc = ipw_row_reader_open_memory(&reader, name, bytes, n, err);
        if (!rc) rc = read_all(out, name, reader, err);
        ipw_row_reader_free(reader);
    } else {
        rc = ipw_rows_text_parse(out, name, bytes, n, NULL, err);
    }
    if (rc) ipw_rows_release(out);
    return rc;
}

int ipw_rows_read(struct ipw_rows *out, const char *path, const struct ipw_rows_wanted *wanted,
                  struct ipw_err *err)
{
    struct ipw_row_reader *reader = NULL;
    int rc;

    *out = (struct ipw_rows){.most = wanted ? wanted->most : 0};
    if (is_columnar(path)) {
        rc = ipw_row_reader_open(&reader, path, wanted, err);
        if (!rc) rc = read_all(out, path, reader, err);
        ipw_row_reader_free(reader);
    } else {
        rc = ipw_rows_text_read(out, path, wanted ? wanted->encoding : NULL, err);
    }
    if (rc) ipw_rows_release(out);
    return rc;
}
