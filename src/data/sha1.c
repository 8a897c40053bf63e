#include "data/sha1.h"

#include <stdio.h>
#include <string.h>

static uint32_t turn(uint32_t x, int n) { return x << n | x >> (32 - n); }

static void take_block(uint32_t h[5], const unsigned char *p)
{
    uint32_t w[80], a = h[0], b = h[1], c = h[2], d = h[3], e = h[4];

    for (int i = 0; i < 16; i++)
        w[i] = (uint32_t)p[4 * i] << 24 | (uint32_t)p[4 * i + 1] << 16 |
               (uint32_t)p[4 * i + 2] << 8 | p[4 * i + 3];
    for (int i = 16; i < 80; i++) w[i] = turn(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
    for (int i = 0; i < 80; i++) {
        uint32_t f = i < 20   ? (b & c) | (~b & d)
                     : i < 40 ? b ^ c ^ d
                     : i < 60 ? (b & c) | (b & d) | (c & d)
                              : b ^ c ^ d;
        uint32_t k = i < 20 ? 0x5A827999 : i < 40 ? 0x6ED9EBA1 : i < 60 ? 0x8F1BBCDC : 0xCA62C1D6;
        uint32_t next = turn(a, 5) + f + e + k + w[i];

        e = d;
        d = c;
        c = turn(b, 30);
        b = a;
        a = next;
    }
    h[0] += a;
    h[1] += b;
    h[2] += c;
    h[3] += d;
    h[4] += e;
}

void ipw_sha1_begin(struct ipw_sha1 *s)
{
    *s = (struct ipw_sha1){.h = {0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476, 0xC3D2E1F0}};
}

void ipw_sha1_add(struct ipw_sha1 *s, const void *bytes, size_t n)
{
    const unsigned char *p = bytes;
    size_t held = s->n % 64;

    s->n += n;
    while (n) {
        size_t k = 64 - held < n ? 64 - held : n;

        memcpy(s->block + held, p, k);
        p += k;
        n -= k;
        held = (held + k) % 64;
        if (!held) take_block(s->h, s->block);
    }
}

void ipw_sha1_end(struct ipw_sha1 *s, char out[41])
{
    static const unsigned char one = 0x80, zeros[64];
    uint64_t bits = s->n * 8;
    unsigned char length[8];

    for (int i = 0; i < 8; i++) length[i] = (unsigned char)(bits >> (56 - 8 * i));
    ipw_sha1_add(s, &one, 1);
    ipw_sha1_add(s, zeros, (120 - s->n % 64) % 64);
    ipw_sha1_add(s, length, sizeof length);
    for (int i = 0; i < 5; i++) snprintf(out + 8 * i, 9, "%08x", s->h[i]);
}
