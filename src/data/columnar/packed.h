/* data/columnar/packed.h: the packed integers of Parquet's pages: levels, dictionary indices,
 * deltas.
 *
 * Pure.  Two encodings of parquet-format's Encodings.md: the hybrid of runs and bit-packed groups
 * (RLE), and DELTA_BINARY_PACKED.  Both return one value per call, allocate nothing and stop at the
 * end of their bytes, so a wrong count in a file does no harm. */
#ifndef IPW_DATA_COLUMNAR_PACKED_H
#define IPW_DATA_COLUMNAR_PACKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ipw_rle {
    const unsigned char *p, *end;
    unsigned width; /* bits per value, at most 32 */
    uint64_t left;  /* values left in the run or group */
    uint64_t bit;   /* in a group: the next value's first bit, counted from p */
    uint32_t value; /* in a run: its value */
    bool packed;    /* a group, not a run */
};

void ipw_rle_init(struct ipw_rle *r, const unsigned char *p, const unsigned char *end,
                  unsigned width);
bool ipw_rle_next(struct ipw_rle *r, uint32_t *value); /* false: damaged, or no more values */

struct ipw_delta {
    const unsigned char *p, *end; /* p: after the current miniblock */
    const unsigned char *widths, *mini;
    uint64_t per_mini, minis; /* values per miniblock, miniblocks per block */
    uint64_t left, at_mini, in_mini;
    uint64_t value, min_delta;
    bool first;
};

/* Reads the header; `left` is then the number of values.  False: the header is damaged. */
bool ipw_delta_init(struct ipw_delta *d, const unsigned char *p, const unsigned char *end);
bool ipw_delta_next(struct ipw_delta *d, int64_t *value);

#endif
