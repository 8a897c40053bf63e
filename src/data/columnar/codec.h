/* data/columnar/codec.h: unpacks compressed pages and buffers with the system's libraries.
 *
 * A file states the unpacked size.  Call ipw_codec_check() before allocating memory: it refuses a
 * size that the packed bytes cannot produce.  ipw_codec_unpack() then fails unless exactly that
 * many bytes result. */
#ifndef IPW_DATA_COLUMNAR_CODEC_H
#define IPW_DATA_COLUMNAR_CODEC_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum ipw_codec { /* up to LZ4_RAW: the numbers of parquet.thrift's CompressionCodec */
                 IPW_CODEC_NONE,
                 IPW_CODEC_SNAPPY,
                 IPW_CODEC_GZIP,
                 IPW_CODEC_LZO,
                 IPW_CODEC_BROTLI,
                 IPW_CODEC_LZ4, /* Hadoop's framing, deprecated */
                 IPW_CODEC_ZSTD,
                 IPW_CODEC_LZ4_RAW,
                 IPW_CODEC_LZ4_FRAME, /* Arrow's */
                 IPW_CODECS
};

int ipw_codec_check(int codec, size_t packed, uint64_t unpacked, struct ipw_err *err);
int ipw_codec_unpack(int codec, void *out, size_t out_n, const void *in, size_t in_n,
                     struct ipw_err *err);

#endif
