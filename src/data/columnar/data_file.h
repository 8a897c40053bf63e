/* data/columnar/data_file.h: random access to the bytes of a Parquet or Arrow file.
 *
 * Readers ask for ranges, so a file can be larger than memory.  A range outside the file is an
 * error.  A block holds bytes that were read or unpacked.  All blocks of a file share one limit, so
 * that a small file cannot claim all memory.  ipw_le*() decode little-endian numbers. */
#ifndef IPW_DATA_COLUMNAR_DATA_FILE_H
#define IPW_DATA_COLUMNAR_DATA_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct ipw_data_file {
    char *name;                 /* for messages */
    int fd;                     /* -1: in memory */
    const unsigned char *bytes; /* borrowed */
    uint64_t size;
    size_t held; /* bytes of all blocks */
};

int ipw_data_file_open(struct ipw_data_file *file, const char *path, struct ipw_err *err);
void ipw_data_file_memory(struct ipw_data_file *file, const char *name, const void *bytes,
                          size_t n);
void ipw_data_file_close(struct ipw_data_file *file);
int ipw_data_file_read(const struct ipw_data_file *file, uint64_t offset, void *to, size_t n,
                       struct ipw_err *err);

struct ipw_block {
    unsigned char *data;
    size_t n, cap;
};

/* Makes the block n bytes long; its content is lost. */
int ipw_block_resize(struct ipw_block *block, struct ipw_data_file *file, size_t n,
                     struct ipw_err *err);
void ipw_block_release(struct ipw_block *block, struct ipw_data_file *file);

static inline uint32_t ipw_le16(const unsigned char *p) { return p[0] | (uint32_t)p[1] << 8; }
static inline uint32_t ipw_le32(const unsigned char *p)
{
    return ipw_le16(p) | ipw_le16(p + 2) << 16;
}
static inline uint64_t ipw_le64(const unsigned char *p)
{
    return ipw_le32(p) | (uint64_t)ipw_le32(p + 4) << 32;
}

#endif
