#include "data/columnar/parquet_column.h"

#include <string.h>

#include "base/mem.h"
#include "data/columnar/codec.h"

enum { FIRST_HEADER = 4096, HEADER_MAX = 16 * 1024 * 1024 };

enum encoding { /* parquet.thrift's Encoding */
                PLAIN = 0,
                PLAIN_DICTIONARY = 2,
                RLE = 3,
                BIT_PACKED = 4,
                DELTA_BINARY_PACKED = 5,
                DELTA_LENGTH_BYTE_ARRAY = 6,
                DELTA_BYTE_ARRAY = 7,
                RLE_DICTIONARY = 8,
                BYTE_STREAM_SPLIT = 9,
};

enum page_type { DATA_PAGE = 0, INDEX_PAGE = 1, DICTIONARY_PAGE = 2, DATA_PAGE_V2 = 3 };

struct page_header {
    int64_t type, unpacked, packed;
    int64_t values, encoding, definition_encoding, repeat_encoding;
    int64_t definition_bytes, repeat_bytes; /* v2: before the values, never compressed */
    bool packed_values;                     /* v2: the values are compressed */
    size_t bytes;                           /* of the header itself */
};

static int damaged(const struct ipw_parquet_column *c, const char *what, struct ipw_err *err)
{
    return ipw_fail(err, IPW_EPARSE, "page at byte %llu: %s", (unsigned long long)c->page_at, what);
}

/* ---- page headers ---- */

static void read_inner_header(struct ipw_thrift *t, struct page_header *h, int kind)
{
    for (struct ipw_thrift_field f = {0}; ipw_thrift_next(t, &f);) {
        if (f.id == 1)
            h->values = ipw_thrift_int(t, &f);
        else if (kind == 8 ? f.id == 4 : f.id == 2)
            h->encoding = ipw_thrift_int(t, &f);
        else if (kind == 5 && f.id == 3)
            h->definition_encoding = ipw_thrift_int(t, &f);
        else if (kind == 5 && f.id == 4)
            h->repeat_encoding = ipw_thrift_int(t, &f);
        else if (kind == 8 && f.id == 5)
            h->definition_bytes = ipw_thrift_int(t, &f);
        else if (kind == 8 && f.id == 6)
            h->repeat_bytes = ipw_thrift_int(t, &f);
        else if (kind == 8 && f.id == 7)
            h->packed_values = ipw_thrift_bool(t, &f);
        else
            ipw_thrift_skip(t, &f);
    }
}

static struct page_header parse_header(struct ipw_thrift *t)
{
    struct page_header h = {.type = -1,
                            .unpacked = -1,
                            .packed = -1,
                            .values = -1,
                            .encoding = -1,
                            .packed_values = true};
    const unsigned char *start = t->p;

    for (struct ipw_thrift_field f = {0}; ipw_thrift_next(t, &f);) {
        if (f.id == 1)
            h.type = ipw_thrift_int(t, &f);
        else if (f.id == 2)
            h.unpacked = ipw_thrift_int(t, &f);
        else if (f.id == 3)
            h.packed = ipw_thrift_int(t, &f);
        else if ((f.id == 5 || f.id == 7 || f.id == 8) && ipw_thrift_struct(t, &f))
            read_inner_header(t, &h, f.id);
        else
            ipw_thrift_skip(t, &f);
    }
    h.bytes = (size_t)(t->p - start);
    return h;
}

/* Reads more and more bytes until the header parses: its length is not stored, and its statistics
 * can be long. */
static int read_header(struct ipw_parquet_column *c, struct page_header *h, struct ipw_err *err)
{
    uint64_t there = c->chunk.end - c->chunk.at;

    for (size_t n = FIRST_HEADER;; n *= 16) {
        size_t take = n < there ? n : (size_t)there;
        struct ipw_thrift t;
        int rc = ipw_block_resize(&c->header, c->file, take, err);

        if (!rc) rc = ipw_data_file_read(c->file, c->chunk.at, c->header.data, take, err);
        if (rc) return rc;
        t = (struct ipw_thrift){.p = c->header.data, .end = c->header.data + take};
        *h = parse_header(&t);
        if (!t.wrong) break;
        if (!t.ended || take == there || n >= HEADER_MAX) return damaged(c, t.wrong, err);
    }
    if (h->packed < 0 || h->unpacked < 0 || (uint64_t)h->packed > there - h->bytes)
        return damaged(c, "its length does not fit into the column chunk", err);
    c->chunk.at += h->bytes;
    return 0;
}

/* Reads and unpacks the page's bytes into *to.  The first `plain` bytes are not compressed. */
static int unpack_page(struct ipw_parquet_column *c, const struct page_header *h,
                       struct ipw_block *to, size_t plain, struct ipw_err *err)
{
    size_t packed = (size_t)h->packed, unpacked = (size_t)h->unpacked;
    int codec = h->packed_values ? c->chunk.codec : IPW_CODEC_NONE;
    int rc = ipw_codec_check(codec, packed - plain, unpacked - plain, err);

    if (!rc) rc = ipw_block_resize(&c->packed, c->file, packed, err);
    if (!rc) rc = ipw_data_file_read(c->file, c->chunk.at, c->packed.data, packed, err);
    if (!rc) rc = ipw_block_resize(to, c->file, unpacked, err);
    if (!rc) {
        c->chunk.at += packed;
        if (plain) memcpy(to->data, c->packed.data, plain);
        rc = ipw_codec_unpack(codec, to->data + plain, unpacked - plain, c->packed.data + plain,
                              packed - plain, err);
    }
    return rc ? ipw_err_prefix(err, "page at byte %llu", (unsigned long long)c->page_at) : 0;
}

/* ---- dictionaries ---- */

/* Writes the offset of each entry of a dictionary of byte arrays into `entries`. */
static int index_entries(struct ipw_parquet_column *c, struct ipw_err *err)
{
    size_t at = 0, n = c->dictionary.n;
    int rc = ipw_block_resize(&c->entries, c->file, c->n_entries * sizeof(uint32_t), err);

    for (size_t i = 0; !rc && i < c->n_entries; i++) {
        uint32_t length, offset = (uint32_t)at;

        if (n - at < 4) return damaged(c, "the dictionary ends too soon", err);
        length = ipw_le32(c->dictionary.data + at);
        at += 4;
        if (length > n - at) return damaged(c, "the dictionary ends inside an entry", err);
        at += length;
        memcpy(c->entries.data + i * sizeof offset, &offset, sizeof offset);
    }
    return rc;
}

static int load_dictionary(struct ipw_parquet_column *c, const struct page_header *h,
                           struct ipw_err *err)
{
    uint32_t width = c->node->width;
    int rc;

    if (c->n_entries) return damaged(c, "a second dictionary in one column chunk", err);
    if (h->encoding != PLAIN && h->encoding != PLAIN_DICTIONARY)
        return damaged(c, "a dictionary that is not PLAIN", err);
    rc = unpack_page(c, h, &c->dictionary, 0, err);
    if (rc) return rc;
    if (h->values < 0 || (uint64_t)h->values > c->dictionary.n / (width ? width : 4))
        return damaged(c, "the dictionary has fewer bytes than entries", err);
    if (c->node->physical == IPW_PARQUET_BOOLEAN)
        return damaged(c, "a dictionary of booleans", err);
    c->n_entries = (size_t)h->values;
    return width ? 0 : index_entries(c, err);
}

/* ---- data pages ---- */

static unsigned bit_width(unsigned level)
{
    unsigned width = 0;

    for (; level; level >>= 1) width++;
    return width;
}

/* Levels of a v1 page: a length, then the runs. */
static bool take_levels(struct ipw_rle *r, const unsigned char **p, const unsigned char *end,
                        unsigned level)
{
    uint32_t n;

    if (level == 0) return true;
    if (end - *p < 4) return false;
    n = ipw_le32(*p);
    *p += 4;
    if (n > (size_t)(end - *p)) return false;
    ipw_rle_init(r, *p, *p + n, bit_width(level));
    *p += n;
    return true;
}

static int refuse_encoding(const struct ipw_parquet_column *c, int encoding, struct ipw_err *err)
{
    if (encoding == BIT_PACKED)
        return ipw_fail(err, IPW_EUNSUPPORTED,
                        "page at byte %llu: the encoding BIT_PACKED is not supported",
                        (unsigned long long)c->page_at);
    return ipw_fail(err, IPW_EUNSUPPORTED,
                    "page at byte %llu: encoding %d is not supported for this type",
                    (unsigned long long)c->page_at, encoding);
}

/* All lengths come before all bytes.  A first pass over the lengths finds the first byte. */
static bool start_lengths(struct ipw_parquet_column *c, struct ipw_delta *lengths)
{
    struct ipw_delta pass;
    int64_t value;

    if (!ipw_delta_init(lengths, c->p, c->end)) return false;
    pass = *lengths;
    while (pass.left)
        if (!ipw_delta_next(&pass, &value)) return false;
    c->p = pass.p;
    return true;
}

static bool start_stream_split(struct ipw_parquet_column *c)
{
    c->stream = (size_t)(c->end - c->p) / c->node->width;
    c->stream_at = 0;
    return true;
}

static bool start_indices(struct ipw_parquet_column *c)
{
    unsigned width = c->p < c->end ? *c->p++ : 0; /* a page of nulls may be empty */

    if (width > 32) return false;
    ipw_rle_init(&c->bits, c->p, c->end, width);
    return true;
}

/* Prepares the decoder for the values, whose bytes are c->p to c->end. */
static int start_values(struct ipw_parquet_column *c, int encoding, struct ipw_err *err)
{
    enum ipw_parquet_physical physical = c->node->physical;
    bool integer = physical == IPW_PARQUET_INT32 || physical == IPW_PARQUET_INT64;
    bool bytes = physical == IPW_PARQUET_BYTE_ARRAY, fits = true, good = true;

    c->encoding = encoding;
    c->bits = (struct ipw_rle){0};
    c->numbers = c->prefixes = (struct ipw_delta){0};
    switch (encoding) {
    case PLAIN:
        if (physical == IPW_PARQUET_BOOLEAN) c->stream_at = 0;
        break;
    case RLE:
        fits = physical == IPW_PARQUET_BOOLEAN;
        good = !fits || c->p == c->end || take_levels(&c->bits, &c->p, c->end, 1);
        break;
    case PLAIN_DICTIONARY:
    case RLE_DICTIONARY: good = start_indices(c); break;
    case DELTA_BINARY_PACKED:
        fits = integer;
        good = !fits || c->p == c->end || ipw_delta_init(&c->numbers, c->p, c->end);
        break;
    case DELTA_LENGTH_BYTE_ARRAY:
        fits = bytes;
        good = !fits || c->p == c->end || start_lengths(c, &c->numbers);
        break;
    case DELTA_BYTE_ARRAY:
        fits = bytes || physical == IPW_PARQUET_FIXED;
        good = !fits || c->p == c->end ||
               (start_lengths(c, &c->prefixes) && start_lengths(c, &c->numbers));
        c->last.n = 0;
        break;
    case BYTE_STREAM_SPLIT:
        fits = c->node->width && c->node->width <= sizeof c->scratch;
        good = !fits || start_stream_split(c);
        break;
    default: fits = false;
    }
    if (!fits) return refuse_encoding(c, encoding, err);
    return good ? 0 : damaged(c, "the head of its values", err);
}

static int load_data(struct ipw_parquet_column *c, const struct page_header *h, struct ipw_err *err)
{
    bool v2 = h->type == DATA_PAGE_V2;
    size_t plain = 0;
    int rc;

    if (h->values < 0 || (uint64_t)h->values > c->chunk.values)
        return damaged(c, "it has more values than its column chunk", err);
    if (v2) {
        if (h->definition_bytes < 0 || h->repeat_bytes < 0 ||
            h->definition_bytes > h->packed - h->repeat_bytes ||
            h->definition_bytes > h->unpacked - h->repeat_bytes)
            return damaged(c, "its levels are longer than the page", err);
        plain = (size_t)(h->definition_bytes + h->repeat_bytes);
    }
    rc = unpack_page(c, h, &c->page, plain, err);
    if (rc) return rc;
    c->p = c->page.data;
    c->end = c->p + c->page.n;
    if (v2) {
        const unsigned char *levels = c->p + h->repeat_bytes;

        ipw_rle_init(&c->repeats, c->p, levels, bit_width(c->node->repeats));
        c->p += plain;
        ipw_rle_init(&c->definitions, levels, c->p, bit_width(c->node->definition));
    } else {
        if ((c->node->repeats && h->repeat_encoding != RLE) ||
            (c->node->definition && h->definition_encoding != RLE))
            return refuse_encoding(c, BIT_PACKED, err);
        if (!take_levels(&c->repeats, &c->p, c->end, c->node->repeats) ||
            !take_levels(&c->definitions, &c->p, c->end, c->node->definition))
            return damaged(c, "its levels are longer than the page", err);
    }
    c->page_left = (uint64_t)h->values;
    c->chunk.values -= c->page_left;
    return start_values(c, h->encoding < 0 || h->encoding > 99 ? -1 : (int)h->encoding, err);
}

static int next_page(struct ipw_parquet_column *c, struct ipw_err *err)
{
    struct page_header h;
    int rc;

    c->page_at = c->chunk.at;
    if (c->chunk.at == c->chunk.end)
        return ipw_fail(err, IPW_EPARSE, "its pages end %llu values too soon",
                        (unsigned long long)c->chunk.values);
    rc = read_header(c, &h, err);
    if (rc) return rc;
    switch (h.type) {
    case DATA_PAGE:
    case DATA_PAGE_V2: return load_data(c, &h, err);
    case DICTIONARY_PAGE: return load_dictionary(c, &h, err);
    default: c->chunk.at += (uint64_t)h.packed; return 0; /* skip an index page */
    }
}

/* ---- values ---- */

int ipw_parquet_column_start(struct ipw_parquet_column *c, struct ipw_data_file *file,
                             const struct ipw_parquet_node *node,
                             const struct ipw_parquet_chunk *chunk, struct ipw_err *err)
{
    c->file = file;
    c->node = node;
    c->chunk = *chunk;
    c->n_entries = 0;
    c->page_left = 0;
    c->peeked = false;
    return ipw_codec_check(chunk->codec, 0, 0, err);
}

int ipw_parquet_column_peek(struct ipw_parquet_column *c, struct ipw_err *err)
{
    uint32_t repeat = 0, definition = 0;

    if (c->peeked) return 1;
    while (c->page_left == 0) {
        int rc;

        if (c->chunk.values == 0) return 0;
        rc = next_page(c, err);
        if (rc) return rc;
    }
    if ((c->node->repeats && !ipw_rle_next(&c->repeats, &repeat)) || repeat > c->node->repeats)
        return damaged(c, "its repetition levels end too soon or are too high", err);
    if ((c->node->definition && !ipw_rle_next(&c->definitions, &definition)) ||
        definition > c->node->definition)
        return damaged(c, "its definition levels end too soon or are too high", err);
    c->repeat = repeat;
    c->definition = definition;
    c->peeked = true;
    c->page_left--;
    return 1;
}

static bool take_bytes(struct ipw_parquet_column *c, size_t n, struct ipw_parquet_value *value)
{
    if (n > (size_t)(c->end - c->p)) return false;
    *value = (struct ipw_parquet_value){c->p, n};
    c->p += n;
    return true;
}

static bool take_boolean(struct ipw_parquet_column *c, bool bit, struct ipw_parquet_value *value)
{
    c->scratch[0] = bit;
    *value = (struct ipw_parquet_value){c->scratch, 1};
    return true;
}

static bool take_plain(struct ipw_parquet_column *c, struct ipw_parquet_value *value)
{
    uint32_t n = c->node->width;

    if (c->node->physical == IPW_PARQUET_BOOLEAN) {
        size_t at = c->stream_at++;

        if (at / 8 >= (size_t)(c->end - c->p)) return false;
        return take_boolean(c, c->p[at / 8] >> at % 8 & 1, value);
    }
    if (c->node->physical == IPW_PARQUET_BYTE_ARRAY) {
        if (c->end - c->p < 4) return false;
        n = ipw_le32(c->p);
        c->p += 4;
    }
    return take_bytes(c, n, value);
}

static bool take_entry(struct ipw_parquet_column *c, struct ipw_parquet_value *value)
{
    const unsigned char *entry = c->dictionary.data;
    uint32_t index, offset;

    if (!ipw_rle_next(&c->bits, &index) || index >= c->n_entries) return false;
    if (c->node->width) {
        *value = (struct ipw_parquet_value){entry + (size_t)index * c->node->width, c->node->width};
        return true;
    }
    memcpy(&offset, c->entries.data + (size_t)index * sizeof offset, sizeof offset);
    *value = (struct ipw_parquet_value){entry + offset + 4, ipw_le32(entry + offset)};
    return true;
}

static bool take_delta(struct ipw_parquet_column *c, struct ipw_parquet_value *value)
{
    int64_t number;

    if (!ipw_delta_next(&c->numbers, &number)) return false;
    for (size_t i = 0; i < 8; i++) c->scratch[i] = (unsigned char)((uint64_t)number >> (8 * i));
    *value = (struct ipw_parquet_value){c->scratch, c->node->width};
    return true;
}

static bool take_delta_length(struct ipw_parquet_column *c, struct ipw_parquet_value *value)
{
    int64_t n;

    return ipw_delta_next(&c->numbers, &n) && n >= 0 && n <= INT32_MAX &&
           take_bytes(c, (size_t)n, value);
}

/* A value is a prefix of the value before it, followed by bytes of the page. */
static bool take_delta_bytes(struct ipw_parquet_column *c, struct ipw_parquet_value *value)
{
    struct ipw_parquet_value rest;
    int64_t prefix;

    if (!ipw_delta_next(&c->prefixes, &prefix) || !take_delta_length(c, &rest)) return false;
    if (prefix < 0 || (uint64_t)prefix > c->last.n) return false;
    if ((size_t)prefix + rest.n > c->last.cap) {
        struct ipw_block longer = {0};

        if (ipw_block_resize(&longer, c->file, 2 * ((size_t)prefix + rest.n), NULL)) return false;
        if (prefix) memcpy(longer.data, c->last.data, (size_t)prefix);
        ipw_block_release(&c->last, c->file);
        c->last = longer;
    }
    if (rest.n) memcpy(c->last.data + prefix, rest.p, rest.n);
    c->last.n = (size_t)prefix + rest.n;
    *value = (struct ipw_parquet_value){c->last.data, c->last.n};
    return c->node->width == 0 || c->last.n == c->node->width;
}

/* The page has the first bytes of all values, then the second bytes, and so on. */
static bool take_stream_split(struct ipw_parquet_column *c, struct ipw_parquet_value *value)
{
    if (c->stream_at >= c->stream) return false;
    for (size_t i = 0; i < c->node->width; i++) c->scratch[i] = c->p[i * c->stream + c->stream_at];
    c->stream_at++;
    *value = (struct ipw_parquet_value){c->scratch, c->node->width};
    return true;
}

static bool take_value(struct ipw_parquet_column *c, struct ipw_parquet_value *value)
{
    uint32_t bit;

    switch (c->encoding) {
    case PLAIN: return take_plain(c, value);
    case RLE: return ipw_rle_next(&c->bits, &bit) && take_boolean(c, bit, value);
    case DELTA_BINARY_PACKED: return take_delta(c, value);
    case DELTA_LENGTH_BYTE_ARRAY: return take_delta_length(c, value);
    case DELTA_BYTE_ARRAY: return take_delta_bytes(c, value);
    case BYTE_STREAM_SPLIT: return take_stream_split(c, value);
    default: return take_entry(c, value);
    }
}

int ipw_parquet_column_take(struct ipw_parquet_column *c, struct ipw_parquet_value *value,
                            struct ipw_err *err)
{
    c->peeked = false;
    if (c->definition < c->node->definition) return 0;
    if (!take_value(c, value))
        return damaged(c, "its values end too soon, or one is not in the dictionary", err);
    return 0;
}

void ipw_parquet_column_release(struct ipw_parquet_column *c)
{
    if (!c->file) return;
    ipw_block_release(&c->header, c->file);
    ipw_block_release(&c->packed, c->file);
    ipw_block_release(&c->page, c->file);
    ipw_block_release(&c->dictionary, c->file);
    ipw_block_release(&c->entries, c->file);
    ipw_block_release(&c->last, c->file);
}
