/* Parquet: the first byte chooses what the others are: a whole file, or its parts put into a frame
 * that holds, so that a mutation reaches them: a page of one column (its header by Thrift, its
 * levels and values) with the type, codec and levels that the next bytes choose, or packed bytes
 * for one codec.  Any bytes give rows or one line that names the file. */
#include "../unit/data/parquet_frame.h"
#include "base/buf.h"
#include "columnar_check.h"
#include "data/columnar/codec.h"

static void read_page(const uint8_t *data, size_t size)
{
    struct ipw_buf file = IPW_BUF(IPW_MIB);
    struct frame_column column = {.name = "q", .at = 4};
    char *exact;

    if (size < 3) return;
    column.physical = data[0] & 7;
    column.codec = data[0] >> 3 & 7;
    column.repetition = data[1] % 3;
    column.values = data[2];
    column.bytes = (int64_t)size - 3;
    ipw_buf_adds(&file, "PAR1");
    ipw_buf_add(&file, data + 3, size - 3);
    put_footer(&file, &column, 1, column.repetition == 2 ? column.values / 2 : column.values);
    exact = exact_text((const uint8_t *)file.data, file.len);
    if (!file.failed) read_columnar("f.parquet", exact, file.len);
    free(exact);
    ipw_buf_release(&file);
}

static void unpack(const uint8_t *data, size_t size)
{
    struct ipw_err err = {0};
    size_t n, packed;
    char *in, *out;
    int codec, rc;

    if (size < 3) return;
    codec = data[0] % (IPW_CODECS + 1);
    n = (size_t)data[1] | (size_t)data[2] << 8;
    packed = size - 3;
    in = exact_text(data + 3, packed);
    out = malloc(n + 1);
    if (!out) abort();
    rc = ipw_codec_check(codec, packed, n, &err);
    if (rc) check_error(&err, rc);
    rc = ipw_codec_unpack(codec, out, n, in, packed, &err);
    if (rc) check_error(&err, rc);
    free(in);
    free(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    unsigned kind = size ? data[0] % 3 : 0;
    char *exact;

    if (size < 1) return 0;
    data++;
    size--;
    if (kind == 1) read_page(data, size);
    if (kind == 2) unpack(data, size);
    if (kind) return 0;
    exact = exact_text(data, size);
    read_columnar("f.parquet", exact, size);
    free(exact);
    return 0;
}
