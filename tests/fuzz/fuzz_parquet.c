/* Parquet: the first byte chooses what the others are: a whole file, or its parts put into a frame that holds, so
 * that a mutation reaches them: a page of one column (its header by Thrift, its levels and values) with the type,
 * codec and levels that the next bytes choose, or packed bytes for one codec.  Any bytes give rows or one line that
 * names the file. */
#include "base/buf.h"
#include "columnar_check.h"
#include "data/columnar/codec.h"

/* Thrift's compact protocol, as little of it as the frame needs. */
static void put_varint(struct ipw_buf *out, uint64_t n)
{
    for (; n >= 128; n >>= 7) ipw_buf_addc(out, (char)(n | 128));
    ipw_buf_addc(out, (char)n);
}

static void put_number(struct ipw_buf *out, int step, int type, int64_t n)
{
    ipw_buf_addc(out, (char)(step << 4 | type));
    put_varint(out, (uint64_t)n << 1);
}

static void put_name(struct ipw_buf *out, int step)
{
    ipw_buf_addc(out, (char)(step << 4 | 8));
    ipw_buf_add(out, "\x01q", 2);
}

/* A file of one column `q` whose only page is `page`, header and all. */
static void frame_page(struct ipw_buf *out, int physical, int codec, int repetition, int values,
                       const uint8_t *page, size_t n)
{
    size_t start;
    uint32_t length;

    ipw_buf_adds(out, "PAR1");
    ipw_buf_add(out, page, n);
    start = out->len;
    put_number(out, 1, 5, 1);
    ipw_buf_add(out, "\x19\x2c", 2); /* the schema: a list of two structs */
    put_name(out, 4);
    put_number(out, 1, 5, 1);
    ipw_buf_addc(out, 0);
    put_number(out, 1, 5, physical);
    put_number(out, 1, 5, 5); /* type_length */
    put_number(out, 1, 5, repetition);
    put_name(out, 1);
    ipw_buf_addc(out, 0);
    put_number(out, 1, 6, repetition == 2 ? values / 2 : values);
    ipw_buf_add(out, "\x19\x1c", 2);   /* row_groups: one */
    ipw_buf_add(out, "\x19\x1c", 2);   /* its columns: one */
    ipw_buf_addc(out, 0x3c);           /* meta_data */
    put_number(out, 1, 5, physical);   /* 1 */
    put_number(out, 3, 5, codec);      /* 4 */
    put_number(out, 1, 6, values);     /* 5 */
    put_number(out, 2, 6, (int64_t)n); /* 7 */
    put_number(out, 2, 6, 4);          /* 9 */
    ipw_buf_add(out, "\0\0", 2);
    put_number(out, 2, 6, repetition == 2 ? values / 2 : values); /* num_rows */
    ipw_buf_add(out, "\0\0", 2);
    length = (uint32_t)(out->len - start);
    for (int i = 0; i < 4; i++) ipw_buf_addc(out, (char)(length >> (8 * i)));
    ipw_buf_adds(out, "PAR1");
}

static void read_page(const uint8_t *data, size_t size)
{
    struct ipw_buf file = IPW_BUF(IPW_MIB);
    char *exact;

    if (size < 3) return;
    frame_page(&file, data[0] & 7, data[0] >> 3 & 7, data[1] % 3, data[2], data + 3, size - 3);
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
