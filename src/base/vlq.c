#include "base/vlq.h"

#include <string.h>

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void ipw_vlq_put(struct ipw_buf *out, int64_t x)
{
    uint64_t z = x == IPW_VLQ_NONE ? 1 : x < 0 ? (uint64_t)-x << 1 | 1 : (uint64_t)x << 1;
    size_t n = 1;
    char *to;

    for (uint64_t rest = z >> 5; rest; rest >>= 5) n++;
    to = ipw_buf_room(out, n);
    if (!to) return;
    for (; z > 31; z >>= 5) *to++ = digits[32 | (z & 31)];
    *to = digits[z];
    ipw_buf_added(out, n);
}

bool ipw_vlq_take(const char **at, int64_t *x)
{
    uint64_t z = 0;
    const char *d;

    for (unsigned shift = 0; shift < 60; shift += 5) {
        if (!**at || !(d = strchr(digits, **at))) return false;
        (*at)++;
        z |= (uint64_t)((d - digits) & 31) << shift;
        if (d - digits > 31) continue;
        *x = z == 1 ? IPW_VLQ_NONE : z & 1 ? -(int64_t)(z >> 1) : (int64_t)(z >> 1);
        return true;
    }
    return false;
}
