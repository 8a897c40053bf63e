#include "base/utf8.h"

size_t ipw_utf8_len(const char *s, size_t n)
{
    const unsigned char *p = (const unsigned char *)s;

    if (n == 0) return 0;
    if (p[0] < 0x80) return 1;
    if (p[0] < 0xC2) return 0;
    if (p[0] < 0xE0) return n >= 2 && (p[1] & 0xC0) == 0x80 ? 2 : 0;
    if (p[0] < 0xF0) {
        if (n < 3 || (p[1] & 0xC0) != 0x80 || (p[2] & 0xC0) != 0x80) return 0;
        if (p[0] == 0xE0 && p[1] < 0xA0) return 0;
        if (p[0] == 0xED && p[1] >= 0xA0) return 0; /* surrogates */
        return 3;
    }
    if (p[0] < 0xF5) {
        if (n < 4 || (p[1] & 0xC0) != 0x80 || (p[2] & 0xC0) != 0x80 || (p[3] & 0xC0) != 0x80)
            return 0;
        if (p[0] == 0xF0 && p[1] < 0x90) return 0;
        if (p[0] == 0xF4 && p[1] >= 0x90) return 0;
        return 4;
    }
    return 0;
}

bool ipw_utf8_valid(const char *s, size_t n)
{
    for (size_t i = 0; i < n;) {
        size_t k = ipw_utf8_len(s + i, n - i);
        if (!k) return false;
        i += k;
    }
    return true;
}
