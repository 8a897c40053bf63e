#include "data/sha256.h"

#include <endian.h>
#include <stdint.h>
#include <string.h>

/* The first 32 bits of the fractional parts of the cube roots of the first 64 primes. */
static const uint32_t K[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t rotr(uint32_t x, unsigned n) { return x >> n | x << (32 - n); }

/* The sums of three rotations, each built of the one before: two copies less. */
static uint32_t big_0(uint32_t a) { return rotr(rotr(rotr(a, 9) ^ a, 11) ^ a, 2); }
static uint32_t big_1(uint32_t e) { return rotr(rotr(rotr(e, 14) ^ e, 5) ^ e, 6); }

/* One round.  Instead of moving the eight words on, the next round names them one place later. */
#define ROUND(a, b, c, d, e, f, g, h, i)                                                           \
    do {                                                                                           \
        uint32_t t1 = (h) + big_1(e) + ((g) ^ ((e) & ((f) ^ (g)))) + K[i] + w[i];                  \
        (d) += t1;                                                                                 \
        (h) = t1 + big_0(a) + (((a) & (b)) | ((c) & ((a) | (b))));                                 \
    } while (0)

static void compress(uint32_t h[8], const unsigned char block[64])
{
    uint32_t w[64], s[8];

    for (int i = 0; i < 16; i++) {
        memcpy(&w[i], block + 4 * i, 4);
        w[i] = be32toh(w[i]);
    }
    for (int i = 16; i < 64; i++) {
        uint32_t a = w[i - 15], b = w[i - 2];
        w[i] = w[i - 16] + (rotr(rotr(a, 11) ^ a, 7) ^ a >> 3) + w[i - 7] +
               (rotr(rotr(b, 2) ^ b, 17) ^ b >> 10);
    }
    memcpy(s, h, sizeof s);
    for (int i = 0; i < 64; i += 8) {
        ROUND(s[0], s[1], s[2], s[3], s[4], s[5], s[6], s[7], i);
        ROUND(s[7], s[0], s[1], s[2], s[3], s[4], s[5], s[6], i + 1);
        ROUND(s[6], s[7], s[0], s[1], s[2], s[3], s[4], s[5], i + 2);
        ROUND(s[5], s[6], s[7], s[0], s[1], s[2], s[3], s[4], i + 3);
        ROUND(s[4], s[5], s[6], s[7], s[0], s[1], s[2], s[3], i + 4);
        ROUND(s[3], s[4], s[5], s[6], s[7], s[0], s[1], s[2], i + 5);
        ROUND(s[2], s[3], s[4], s[5], s[6], s[7], s[0], s[1], i + 6);
        ROUND(s[1], s[2], s[3], s[4], s[5], s[6], s[7], s[0], i + 7);
    }
    for (int i = 0; i < 8; i++) h[i] += s[i];
}

void ipw_sha256_begin(struct ipw_sha256 *s)
{
    *s = (struct ipw_sha256){.h = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f,
                                   0x9b05688c, 0x1f83d9ab, 0x5be0cd19}};
}

void ipw_sha256_add(struct ipw_sha256 *s, const void *bytes, size_t n)
{
    const unsigned char *p = bytes;
    size_t held = s->n % 64;

    s->n += n;
    if (held && n >= 64 - held) {
        memcpy(s->block + held, p, 64 - held);
        compress(s->h, s->block);
        p += 64 - held;
        n -= 64 - held;
        held = 0;
    }
    if (!held)
        for (; n >= 64; p += 64, n -= 64) compress(s->h, p);
    if (n) memcpy(s->block + held, p, n);
}

void ipw_sha256_end(struct ipw_sha256 *s, char out[65])
{
    static const char digits[] = "0123456789abcdef";
    static const unsigned char padding[64] = {0x80};
    uint64_t bits = s->n * 8;
    size_t held = s->n % 64;
    unsigned char length[8];

    for (size_t i = 0; i < 8; i++) length[i] = (unsigned char)(bits >> (56 - 8 * i));
    ipw_sha256_add(s, padding, held < 56 ? 56 - held : 120 - held);
    ipw_sha256_add(s, length, sizeof length);
    for (size_t i = 0; i < 64; i++) out[i] = digits[s->h[i / 8] >> (28 - 4 * (i % 8)) & 15];
    out[64] = '\0';
}

void ipw_sha256_hex(char out[65], const void *bytes, size_t n)
{
    struct ipw_sha256 s;

    ipw_sha256_begin(&s);
    ipw_sha256_add(&s, bytes, n);
    ipw_sha256_end(&s, out);
}
