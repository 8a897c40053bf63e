#include "data/columnar/packed.h"

#include "data/columnar/thrift.h"

/* Returns `width` bits (at most 64) from bit `at`, lowest bit first.  Does not check bounds. */
static uint64_t bits_at(const unsigned char *p, uint64_t at, unsigned width)
{
    uint64_t value = 0;
    unsigned got = 0;

    for (p += at / 8, at %= 8; got < width; p++, at = 0) {
        value |= (uint64_t)(*p >> at) << got;
        got += 8 - (unsigned)at;
    }
    return width < 64 ? value & ((UINT64_C(1) << width) - 1) : value;
}

void ipw_rle_init(struct ipw_rle *r, const unsigned char *p, const unsigned char *end,
                  unsigned width)
{
    *r = (struct ipw_rle){.p = p, .end = end, .width = width};
}

static bool next_run(struct ipw_rle *r)
{
    unsigned bytes = (r->width + 7) / 8;
    uint64_t head;

    if (r->packed) r->p += r->bit / 8;
    r->packed = false;
    if (!ipw_varint(&head, &r->p, r->end) || head >> 1 == 0) return false;
    if (head & 1) {
        uint64_t groups = head >> 1, there = (uint64_t)(r->end - r->p);

        /* The last group can end after its last used value. */
        if (r->width && groups > there / r->width) groups = there / r->width + 1;
        if (groups > UINT64_MAX / 8) return false;
        r->left = groups * 8;
        r->packed = true;
        r->bit = 0;
        return true;
    }
    if ((size_t)(r->end - r->p) < bytes) return false;
    r->left = head >> 1;
    r->value = 0;
    for (unsigned i = 0; i < bytes; i++) r->value |= (uint32_t)*r->p++ << (8 * i);
    return true;
}

bool ipw_rle_next(struct ipw_rle *r, uint32_t *value)
{
    if (r->left == 0 && !next_run(r)) return false;
    r->left--;
    if (!r->packed) {
        *value = r->value;
        return true;
    }
    if (r->bit + r->width > 8 * (uint64_t)(r->end - r->p)) return false;
    *value = (uint32_t)bits_at(r->p, r->bit, r->width);
    r->bit += r->width;
    return true;
}

bool ipw_delta_init(struct ipw_delta *d, const unsigned char *p, const unsigned char *end)
{
    uint64_t block, first;

    *d = (struct ipw_delta){.p = p, .end = end, .first = true};
    if (!ipw_varint(&block, &d->p, end) || !ipw_varint(&d->minis, &d->p, end) ||
        !ipw_varint(&d->left, &d->p, end) || !ipw_varint(&first, &d->p, end))
        return false;
    if (d->minis == 0 || block % d->minis || block > UINT32_MAX) return false;
    d->per_mini = block / d->minis;
    if (d->per_mini == 0 || d->per_mini % 8) return false;
    d->value = (uint64_t)ipw_zigzag(first);
    d->at_mini = d->minis; /* the first difference begins a block */
    return true;
}

static bool next_miniblock(struct ipw_delta *d)
{
    uint64_t delta;

    if (d->at_mini == d->minis) {
        if (!ipw_varint(&delta, &d->p, d->end) || d->minis > (uint64_t)(d->end - d->p))
            return false;
        d->min_delta = (uint64_t)ipw_zigzag(delta);
        d->widths = d->p;
        d->p += d->minis;
        d->at_mini = 0;
    }
    if (d->widths[d->at_mini] > 64) return false;
    if (d->per_mini / 8 * d->widths[d->at_mini] > (uint64_t)(d->end - d->p)) return false;
    d->mini = d->p;
    d->p += d->per_mini / 8 * d->widths[d->at_mini];
    d->in_mini = 0;
    return true;
}

bool ipw_delta_next(struct ipw_delta *d, int64_t *value)
{
    unsigned width;

    if (d->left == 0) return false;
    d->left--;
    if (d->first) {
        d->first = false;
    } else {
        if (!d->mini || d->in_mini == d->per_mini) {
            if (d->mini) d->at_mini++;
            if (!next_miniblock(d)) return false;
        }
        width = d->widths[d->at_mini];
        d->value += d->min_delta + bits_at(d->mini, d->in_mini++ * width, width);
    }
    *value = (int64_t)d->value;
    return true;
}
