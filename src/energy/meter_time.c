/* The time cell of a row. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "energy/meter_priv.h"

#define DAY_S 86400.0

struct scan {
    const char *at, *end;
};

/* Reads from `least` to `most` digits. */
static bool digits(struct scan *s, size_t least, size_t most, int *out)
{
    size_t n = 0;
    int x = 0;

    while (n < most && s->at < s->end && isdigit((unsigned char)*s->at)) {
        x = x * 10 + (*s->at++ - '0');
        n++;
    }
    *out = x;
    return n >= least;
}

static bool literal(struct scan *s, const char *any)
{
    if (s->at == s->end || !strchr(any, *s->at)) return false;
    s->at++;
    return true;
}

/* Days from 1970 to a date of the Gregorian calendar. */
static int64_t days_since_1970(int year, int month, int day)
{
    int64_t y = month <= 2 ? year - 1 : year;
    int64_t era = y / 400, of_era = y - era * 400;
    int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;

    return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

/* "14:03:07.25", "14:03:07,25", "2:03:07 PM" */
static bool read_clock(struct scan *s, double *of_day_s)
{
    int hour, minute, second;
    double part = 0, unit = 0.1;

    if (!digits(s, 1, 2, &hour) || !literal(s, ":") || !digits(s, 2, 2, &minute)) return false;
    second = 0;
    if (literal(s, ":") && !digits(s, 2, 2, &second)) return false;
    if (s->at + 1 < s->end && (*s->at == '.' || *s->at == ',') &&
        isdigit((unsigned char)s->at[1])) {
        for (s->at++; s->at < s->end && isdigit((unsigned char)*s->at); s->at++, unit /= 10) {
            part += (*s->at - '0') * unit;
        }
    }
    if (s->end - s->at >= 3 && *s->at == ' ' && toupper((unsigned char)s->at[2]) == 'M' &&
        strchr("aApP", s->at[1])) {
        if (hour < 1 || hour > 12) return false;
        hour = hour % 12 + (toupper((unsigned char)s->at[1]) == 'P' ? 12 : 0);
        s->at += 3;
    }
    if (hour > 23 || minute > 59 || second > 60) return false;
    *of_day_s = hour * 3600 + minute * 60 + second + part;
    return true;
}

/* Reads "Z", "UTC", "+01:00", "-0530", "+02", or nothing: then *zoned is false. */
static bool read_zone(struct scan *s, bool *zoned, double *ahead_s)
{
    int hour, minute = 0;
    char sign;

    *zoned = true;
    *ahead_s = 0;
    while (s->at < s->end && *s->at == ' ') s->at++;
    if (s->at == s->end) {
        *zoned = false;
        return true;
    }
    if (s->end - s->at == 3 && memcmp(s->at, "UTC", 3) == 0) {
        s->at = s->end;
        return true;
    }
    sign = *s->at++;
    if (sign == 'Z' || sign == 'z') return s->at == s->end;
    if ((sign != '+' && sign != '-') || !digits(s, 2, 2, &hour)) return false;
    literal(s, ":");
    if (s->at < s->end && !digits(s, 2, 2, &minute)) return false;
    if (hour > 14 || minute > 59 || s->at != s->end) return false;
    *ahead_s = (sign == '-' ? -1 : 1) * (hour * 3600.0 + minute * 60.0);
    return true;
}

static bool read_date(const char *text, size_t n, double *t_s, enum ipw_meter_clock *clock)
{
    struct scan s = {text, text + n};
    int year, month, day;
    double of_day, ahead;
    bool zoned;

    if (!digits(&s, 4, 4, &year) || !literal(&s, "-/.") || !digits(&s, 1, 2, &month) ||
        !literal(&s, "-/.") || !digits(&s, 1, 2, &day) || !literal(&s, "Tt _")) {
        /* 21.11.2026 14:03:07 */
        s.at = text;
        if (!digits(&s, 1, 2, &day) || !literal(&s, ".") || !digits(&s, 1, 2, &month) ||
            !literal(&s, ".") || !digits(&s, 4, 4, &year) || !literal(&s, "Tt _")) {
            return false;
        }
    }
    while (s.at < s.end && *s.at == ' ') s.at++;
    if (month < 1 || month > 12 || day < 1 || day > 31 || year < 1970) return false;
    if (!read_clock(&s, &of_day) || !read_zone(&s, &zoned, &ahead)) return false;
    *t_s = (double)days_since_1970(year, month, day) * DAY_S + of_day - ahead;
    *clock = zoned ? IPW_METER_CLOCK_ZONED : IPW_METER_CLOCK_LOCAL;
    return true;
}

/* The unit of a time since 1970: seconds, or a finer unit that gives a date from 2001 to 2286.
 * Small numbers count from when the meter was switched on, in the unit that the heading names. */
static double epoch_unit(double x, double named)
{
    double unit = 1;

    if (named > 0 && fabs(x) * named <= 1e10) return named;
    while (fabs(x) * unit > 1e10 && unit > 1e-9) unit /= 1e3;
    return unit;
}

/* A time of day more than half a day earlier belongs to the next day. */
static double pass_midnight(struct ipw_meter_format *f, double of_day_s)
{
    if (f->clock == IPW_METER_CLOCK_DAY && of_day_s < f->last_of_day_s - DAY_S / 2) f->days++;
    f->last_of_day_s = of_day_s;
    return (double)f->days * DAY_S + of_day_s;
}

static const char *clock_name(enum ipw_meter_clock clock)
{
    switch (clock) {
    case IPW_METER_CLOCK_NONE: break;
    case IPW_METER_CLOCK_EPOCH: return "seconds since 1970";
    case IPW_METER_CLOCK_ZONED: return "a date with its zone";
    case IPW_METER_CLOCK_LOCAL: return "a date";
    case IPW_METER_CLOCK_DAY: return "HH:MM:SS";
    }
    return "a time";
}

int ipw_meter_time(struct ipw_meter_format *f, const char *text, size_t n, double *t_s,
                   struct ipw_err *err)
{
    enum ipw_meter_clock clock = IPW_METER_CLOCK_NONE;
    struct scan s = {text, text + n};
    double x = 0, of_day = 0;
    size_t used = 0;

    if (ipw_meter_number(text, n, f->decimal_comma, &x, &used) && used == n && x >= 0) {
        clock = IPW_METER_CLOCK_EPOCH;
        if (f->clock == IPW_METER_CLOCK_NONE) f->time_unit_s = epoch_unit(x, f->named_unit_s);
        x *= f->time_unit_s;
    } else if (read_date(text, n, &x, &clock)) {
        ; /* x is the time */
    } else if (read_clock(&s, &of_day) && s.at == s.end) {
        clock = IPW_METER_CLOCK_DAY;
    }
    if (clock == IPW_METER_CLOCK_NONE || (f->clock != IPW_METER_CLOCK_NONE && f->clock != clock)) {
        return ipw_fail(err, IPW_EPARSE, "time '%.*s' is not %s", (int)(n < 40 ? n : 40), text,
                        clock_name(f->clock));
    }
    if (clock == IPW_METER_CLOCK_DAY) x = pass_midnight(f, of_day);
    f->clock = clock;
    *t_s = x;
    return 0;
}
