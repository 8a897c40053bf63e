#include "data/columnar/codec.h"

#include <lz4.h>
#include <lz4frame.h>
#include <snappy-c.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

#include "base/buf.h"

#define UNPACKED_MAX (512 * IPW_MIB)

/* Each function returns whether it unpacked exactly out_n bytes. */

static bool unpack_snappy(char *out, size_t out_n, const char *in, size_t in_n)
{
    size_t n = 0;

    if (snappy_uncompressed_length(in, in_n, &n) != SNAPPY_OK || n != out_n) return false;
    return snappy_uncompress(in, in_n, out, &n) == SNAPPY_OK && n == out_n;
}

/* Accepts gzip and zlib, and several members in a row. */
static bool unpack_gzip(char *out, size_t out_n, const char *in, size_t in_n)
{
    z_stream z = {.next_in = (Bytef *)in, .avail_in = (uInt)in_n};
    int rc;

    if (in_n > UINT32_MAX || out_n > UINT32_MAX || inflateInit2(&z, 15 + 32) != Z_OK) return false;
    z.next_out = (Bytef *)out;
    z.avail_out = (uInt)out_n;
    do {
        rc = inflate(&z, Z_FINISH);
    } while (rc == Z_STREAM_END && z.avail_in && inflateReset(&z) == Z_OK);
    inflateEnd(&z);
    return rc == Z_STREAM_END && z.avail_out == 0;
}

static bool unpack_zstd(char *out, size_t out_n, const char *in, size_t in_n)
{
    return ZSTD_decompress(out, out_n, in, in_n) == out_n;
}

static bool unpack_lz4_raw(char *out, size_t out_n, const char *in, size_t in_n)
{
    if (in_n > INT32_MAX || out_n > INT32_MAX) return false;
    return LZ4_decompress_safe(in, out, (int)in_n, (int)out_n) == (int)out_n;
}

static bool unpack_lz4_frame(char *out, size_t out_n, const char *in, size_t in_n)
{
    LZ4F_dctx *context;
    size_t in_at = 0, out_at = 0, hint;

    if (LZ4F_isError(LZ4F_createDecompressionContext(&context, LZ4F_VERSION))) return false;
    do {
        size_t took = in_n - in_at, gave = out_n - out_at;

        hint = LZ4F_decompress(context, out + out_at, &gave, in + in_at, &took, NULL);
        if (LZ4F_isError(hint) || (took == 0 && gave == 0)) break;
        in_at += took;
        out_at += gave;
    } while (hint);
    LZ4F_freeDecompressionContext(context);
    return hint == 0 && out_at == out_n && in_at == in_n;
}

static const struct row {
    const char *name;
    bool (*unpack)(char *out, size_t out_n, const char *in, size_t in_n); /* NULL: not supported */
    uint64_t ratio; /* the most bytes that one packed byte can produce in this format */
} codecs[IPW_CODECS] = {
    [IPW_CODEC_NONE] = {"uncompressed", NULL, 1},
    [IPW_CODEC_SNAPPY] = {"snappy", unpack_snappy, 64},
    [IPW_CODEC_GZIP] = {"gzip", unpack_gzip, 1100},
    [IPW_CODEC_LZO] = {.name = "LZO"},
    [IPW_CODEC_BROTLI] = {.name = "Brotli"},
    [IPW_CODEC_LZ4] = {.name = "LZ4 in Hadoop's framing"},
    [IPW_CODEC_ZSTD] = {"zstd", unpack_zstd, 32768},
    [IPW_CODEC_LZ4_RAW] = {"LZ4", unpack_lz4_raw, 256},
    [IPW_CODEC_LZ4_FRAME] = {"LZ4", unpack_lz4_frame, 256},
};

int ipw_codec_check(int codec, size_t packed, uint64_t unpacked, struct ipw_err *err)
{
    const struct row *row = &codecs[codec >= 0 && codec < IPW_CODECS ? codec : 0];

    if (codec < 0 || codec >= IPW_CODECS)
        return ipw_fail(err, IPW_EUNSUPPORTED, "compression codec %d is not known", codec);
    if (codec != IPW_CODEC_NONE && !row->unpack)
        return ipw_fail(err, IPW_EUNSUPPORTED,
                        "compression with %s is not supported; write the file with zstd or snappy",
                        row->name);
    if (codec == IPW_CODEC_NONE && unpacked != packed)
        return ipw_fail(err, IPW_EPARSE, "%zu bytes, uncompressed, are said to be %llu", packed,
                        (unsigned long long)unpacked);
    if (unpacked > UNPACKED_MAX)
        return ipw_fail(err, IPW_ELIMIT, "%llu bytes in one piece; 512 MiB is the limit",
                        (unsigned long long)unpacked);
    if (codec != IPW_CODEC_NONE && unpacked > 4096 + packed * row->ratio)
        return ipw_fail(err, IPW_EPARSE,
                        "%zu bytes of %s cannot unpack to the %llu bytes that are declared", packed,
                        row->name, (unsigned long long)unpacked);
    return 0;
}

int ipw_codec_unpack(int codec, void *out, size_t out_n, const void *in, size_t in_n,
                     struct ipw_err *err)
{
    int rc = ipw_codec_check(codec, in_n, out_n, err);

    if (rc || (in_n == 0 && out_n == 0)) return rc; /* a page of nulls has no bytes */
    if (codec == IPW_CODEC_NONE) {
        if (in_n) memcpy(out, in, in_n);
        return 0;
    }
    if (!codecs[codec].unpack(out, out_n, in, in_n))
        return ipw_fail(err, IPW_EPARSE,
                        "damaged: %zu bytes of %s do not unpack to the %zu declared", in_n,
                        codecs[codec].name, out_n);
    return 0;
}
