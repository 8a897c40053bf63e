/* data/columnar/packed.h: the packed integers of Parquet's pages: levels, dictionary indices, deltas.
 *
 * Pure.  Two encodings of parquet-format's Encodings.md: the hybrid of runs and bit-packed groups (RLE), and
 * DELTA_BINARY_PACKED.  Both give one value after another and allocate nothing, so a count in a file need not
 * be trusted.  Both stop at the end of their bytes. */
#ifndef IPW_DATA_COLUMNAR_PACKED_H
#define IPW_DATA_COLUMNAR_PACKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ipw_rle {
    const unsigned char *p, *end;
    unsigned width; /* bits of a value, at most 32 */
    uint64_t left;  /* values of the run or of the group */
    uint64_t bit;   /* of the group: where the next value begins, from p */
    uint32_t value; /* of the run */
    bool packed;
};

void ipw_rle_init(struct ipw_rle *r, const unsigned char *p, const unsigned char *end,
                  unsigned width);
bool ipw_rle_next(struct ipw_rle *r, uint32_t *value); /* false: damaged or at its end */

struct ipw_delta {
    const unsigned char *p,
        *end; /* p: behind the miniblock that is read, once all values were given */
    const unsigned char *widths, *mini;
    uint64_t per_mini, minis; /* values of a miniblock, miniblocks of a block */
    uint64_t left, at_mini, in_mini;
    uint64_t value, min_delta;
    bool first;
};

/* False: the header is damaged.  `left` then is how many values there are. */
bool ipw_delta_init(struct ipw_delta *d, const unsigned char *p, const unsigned char *end);
bool ipw_delta_next(struct ipw_delta *d, int64_t *value);

#endif
