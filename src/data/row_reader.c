/* One row after another.  A file of text is read whole when it is opened. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "data/rows.h"

struct ipw_row_reader {
    struct ipw_rows text;
    size_t next;
};

int ipw_row_reader_open(struct ipw_row_reader **out, const char *path, const char *const *columns,
                        struct ipw_err *err)
{
    struct ipw_row_reader *reader = ipw_calloc(1, sizeof *reader);
    int rc = ipw_rows_read(&reader->text, path, err);

    (void)columns;
    if (rc) {
        ipw_row_reader_free(reader);
        return rc;
    }
    *out = reader;
    return 0;
}

int ipw_row_reader_next(struct ipw_row_reader *reader, struct ipw_row *row, struct ipw_err *err)
{
    (void)err;
    if (reader->next == reader->text.n) return 0;
    *row = reader->text.rows[reader->next++];
    return 1;
}

int64_t ipw_row_reader_count(const struct ipw_row_reader *reader)
{
    return (int64_t)reader->text.n;
}

int ipw_row_reader_sha256(struct ipw_row_reader *reader, char out[65], struct ipw_err *err)
{
    (void)err;
    memcpy(out, reader->text.sha256, sizeof reader->text.sha256);
    return 0;
}

void ipw_row_reader_free(struct ipw_row_reader *reader)
{
    if (!reader) return;
    ipw_rows_release(&reader->text);
    free(reader);
}
