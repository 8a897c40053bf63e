#include "data/data_url.h"

#include <stdint.h>
#include <string.h>

static int digit_of(char c)
{
    if (c >= 'A' && c <= 'Z') return c - 'A';
    if (c >= 'a' && c <= 'z') return c - 'a' + 26;
    if (c >= '0' && c <= '9') return c - '0' + 52;
    return c == '+' || c == '-' ? 62 : c == '/' || c == '_' ? 63 : -1;
}

static bool is_blank(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

int ipw_data_url_decode(struct ipw_buf *out, const char *url, struct ipw_err *err)
{
    static const char mark[] = ";base64,";
    const char *at = strncmp(url, "data:", 5) ? NULL : strstr(url, mark);
    uint32_t bits = 0;
    int n = 0;
    size_t digits = 0;

    if (!at) return ipw_fail(err, IPW_EPARSE, "not a data URL with base64");
    for (at += sizeof mark - 1; *at && *at != '='; at++) {
        int digit = digit_of(*at);

        if (is_blank(*at)) continue;
        if (digit < 0) return ipw_fail(err, IPW_EPARSE, "a data URL that is not base64");
        digits++;
        bits = bits << 6 | (uint32_t)digit;
        n += 6;
        if (n < 8) continue;
        n -= 8;
        ipw_buf_addc(out, (char)(bits >> n & 255));
    }
    for (; *at; at++)
        if (*at != '=' && !is_blank(*at))
            return ipw_fail(err, IPW_EPARSE, "a data URL with text after its padding");
    if (digits % 4 == 1) return ipw_fail(err, IPW_EPARSE, "a data URL that is cut off");
    if (out->failed)
        return ipw_fail(err, IPW_ELIMIT, "a data URL of more than %zu bytes", out->max);
    return 0;
}
