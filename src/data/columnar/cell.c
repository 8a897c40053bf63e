#include "data/columnar/cell.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "base/utf8.h"
#include "data/columnar/data_file.h"
#include "json/json.h"

#define DAY_S 86400

/* A decimal with more digits than a double keeps is written as text. */
enum { DOUBLE_DIGITS = 15 };

static const int64_t powers[10] = {1,      10,      100,      1000,      10000,
                                   100000, 1000000, 10000000, 100000000, 1000000000};

static int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b < 0); }

/* Days since 1970-01-01 in the Gregorian calendar, counted in eras of 400 years from March. */
static int add_date(char *out, size_t room, int64_t days)
{
    int64_t z = days + 719468, era = floor_div(z, 146097), of_era = z - era * 146097;
    int64_t year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    int64_t of_year = of_era - (365 * year + year / 4 - year / 100);
    int64_t month = (5 * of_year + 2) / 153, day = of_year - (153 * month + 2) / 5 + 1;

    month += month < 10 ? 3 : -9;
    year += era * 400 + (month <= 2);
    return snprintf(out, room, "%s%04lld-%02lld-%02lld", year < 0 ? "-" : "",
                    (long long)(year < 0 ? -year : year), (long long)month, (long long)day);
}

static int add_time(char *out, size_t room, int64_t seconds, int64_t fraction, unsigned digits)
{
    int n = snprintf(out, room, "%02lld:%02lld:%02lld", (long long)(seconds / 3600),
                     (long long)(seconds / 60 % 60), (long long)(seconds % 60));

    if (digits && fraction)
        n += snprintf(out + n, room - (size_t)n, ".%0*lld", (int)digits, (long long)fraction);
    return n;
}

static void write_timestamp(struct ipw_jw *w, int64_t value, unsigned digits, bool utc)
{
    int64_t seconds = floor_div(value, powers[digits]), days = floor_div(seconds, DAY_S);
    int64_t fraction = value % powers[digits];
    char text[80];
    int n = add_date(text, sizeof text, days);

    if (fraction < 0) fraction += powers[digits];
    text[n++] = 'T';
    n += add_time(text + n, sizeof text - (size_t)n, seconds - days * DAY_S, fraction, digits);
    if (utc) text[n++] = 'Z';
    ipw_jw_strn(w, text, (size_t)n);
}

static void write_int96(struct ipw_jw *w, const unsigned char *p)
{
    int64_t of_day = (int64_t)ipw_le64(p), day_ns = DAY_S * powers[9];
    int64_t days = (int64_t)(uint64_t)ipw_le32(p + 8) - 2440588 + floor_div(of_day, day_ns);
    char text[80];
    int n = add_date(text, sizeof text, days);

    of_day -= floor_div(of_day, day_ns) * day_ns;
    text[n++] = 'T';
    n += add_time(text + n, sizeof text - (size_t)n, of_day / powers[9], of_day % powers[9], 9);
    ipw_jw_strn(w, text, (size_t)n);
}

void ipw_cell_write_int(struct ipw_jw *w, const struct ipw_cell_type *type, int64_t value)
{
    char text[80];
    int n = 0;

    switch (type->kind) {
    case IPW_CELL_BOOL: ipw_jw_bool(w, value != 0); return;
    case IPW_CELL_UINT:
        n = snprintf(text, sizeof text, "%llu", (unsigned long long)value);
        ipw_jw_raw(w, text, (size_t)n);
        return;
    case IPW_CELL_DECIMAL:
        ipw_cell_write_decimal(w, type, value < 0 ? UINT64_MAX : 0, (uint64_t)value);
        return;
    case IPW_CELL_DATE_MS: value = floor_div(value, DAY_S * 1000); /* fallthrough */
    case IPW_CELL_DATE: n = add_date(text, sizeof text, value); break;
    case IPW_CELL_TIME:
        if (value < 0 || value / powers[type->fraction_digits] > DAY_S) {
            ipw_jw_int(w, value); /* not a time of day */
            return;
        }
        n = add_time(text, sizeof text, value / powers[type->fraction_digits],
                     value % powers[type->fraction_digits], type->fraction_digits);
        break;
    case IPW_CELL_TIMESTAMP: write_timestamp(w, value, type->fraction_digits, type->utc); return;
    default: ipw_jw_int(w, value); return;
    }
    ipw_jw_strn(w, text, (size_t)n);
}

static double half_to_double(uint32_t bits)
{
    int exponent = (int)(bits >> 10 & 31);
    double fraction = bits & 1023, value;

    if (exponent == 31)
        value = fraction > 0 ? NAN : INFINITY;
    else
        value = exponent ? ldexp(1024 + fraction, exponent - 25) : ldexp(fraction, -24);
    return bits >> 15 ? -value : value;
}

void ipw_cell_write_float(struct ipw_jw *w, const unsigned char *p, size_t n)
{
    uint32_t bits32;
    uint64_t bits64;
    float single;
    double value;

    if (n == 2) {
        value = half_to_double(ipw_le16(p));
    } else if (n == 4) {
        bits32 = ipw_le32(p);
        memcpy(&single, &bits32, sizeof single);
        value = (double)single;
    } else {
        bits64 = ipw_le64(p);
        memcpy(&value, &bits64, sizeof value);
    }
    ipw_jw_num(w, value);
}

/* Older writers store text as plain bytes.  So valid UTF-8 becomes text, and other bytes become
 * {"base64": "..."}, which cannot be confused with a text. */
static void write_binary(struct ipw_jw *w, const unsigned char *p, size_t n)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    struct ipw_buf *out = w->out;
    char *to;

    if (ipw_utf8_valid((const char *)p, n) && (!n || !memchr(p, '\0', n))) {
        ipw_jw_strn(w, (const char *)p, n);
        return;
    }
    ipw_jw_obj(w);
    ipw_jw_key(w, "base64");
    ipw_jw_raw(w, "\"", 1);
    to = ipw_buf_room(out, (n + 2) / 3 * 4);
    if (to) {
        for (size_t i = 0; i < n; i += 3, to += 4) {
            uint32_t three = (uint32_t)p[i] << 16 | (i + 1 < n ? (uint32_t)p[i + 1] << 8 : 0) |
                             (i + 2 < n ? p[i + 2] : 0);
            to[0] = digits[three >> 18];
            to[1] = digits[three >> 12 & 63];
            to[2] = i + 1 < n ? digits[three >> 6 & 63] : '=';
            to[3] = i + 2 < n ? digits[three & 63] : '=';
        }
        ipw_buf_added(out, (n + 2) / 3 * 4);
    }
    ipw_buf_addc(out, '"');
    ipw_jw_obj_end(w);
}

static void write_uuid(struct ipw_jw *w, const unsigned char *p)
{
    struct ipw_buf hex = IPW_BUF(40);

    for (size_t i = 0; i < 16; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10) ipw_buf_addc(&hex, '-');
        ipw_buf_addf(&hex, "%02x", p[i]);
    }
    ipw_jw_strn(w, hex.data, hex.len);
    ipw_buf_release(&hex);
}

void ipw_cell_write_bytes(struct ipw_jw *w, const struct ipw_cell_type *type,
                          const unsigned char *p, size_t n)
{
    uint64_t hi = n && p[0] & 0x80 ? UINT64_MAX : 0, lo = hi;

    switch (type->kind) {
    case IPW_CELL_DECIMAL:
        for (size_t i = 0; i < n; i++) {
            hi = hi << 8 | lo >> 56;
            lo = lo << 8 | p[i];
        }
        ipw_cell_write_decimal(w, type, hi, lo);
        return;
    case IPW_CELL_JSON:
        if (ipw_json_valid((const char *)p, n))
            ipw_jw_raw(w, (const char *)p, n);
        else
            ipw_jw_strn(w, (const char *)p, n);
        return;
    case IPW_CELL_TEXT: ipw_jw_strn(w, (const char *)p, n); return;
    case IPW_CELL_UUID: write_uuid(w, p); return;
    case IPW_CELL_INT96: write_int96(w, p); return;
    default: write_binary(w, p, n); return;
    }
}

void ipw_cell_write_decimal(struct ipw_jw *w, const struct ipw_cell_type *type, uint64_t hi,
                            uint64_t lo)
{
    bool negative = hi >> 63;
    char digits[48], text[128];
    int n = 0, at = 0;

    if (negative) {
        lo = ~lo + 1;
        hi = ~hi + (lo == 0);
    }
    while (hi || lo || n <= type->scale) { /* at least one digit before the point */
        uint64_t rest = 0, parts[4] = {hi >> 32, hi & UINT32_MAX, lo >> 32, lo & UINT32_MAX};

        for (int i = 0; i < 4; i++) {
            rest = rest << 32 | parts[i];
            parts[i] = rest / 10;
            rest %= 10;
        }
        hi = parts[0] << 32 | parts[1];
        lo = parts[2] << 32 | parts[3];
        digits[n++] = (char)('0' + rest);
    }
    if (negative) text[at++] = '-';
    while (n > 0) {
        if (n == type->scale) text[at++] = '.';
        text[at++] = digits[--n];
    }
    if (type->precision > DOUBLE_DIGITS)
        ipw_jw_strn(w, text, (size_t)at);
    else
        ipw_jw_raw(w, text, (size_t)at);
}
