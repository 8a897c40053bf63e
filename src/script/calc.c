#include "script/calc.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct ipw_calc_number num;

static num of_int(lua_Integer i) { return (num){.is_int = true, .i = i}; }
static num of_double(lua_Number d) { return (num){.d = d}; }
static lua_Number as_double(num x) { return x.is_int ? (lua_Number)x.i : x.d; }

/* Exact for any pair: a long double holds every 64-bit integer. */
static long double as_long(num x) { return x.is_int ? (long double)x.i : (long double)x.d; }
static bool is_less(num a, num b) { return as_long(a) < as_long(b); }
static bool is(num x, int what) { return x.is_int ? x.i == what : x.d == what; }
static bool is_negative(num x) { return x.is_int ? x.i < 0 : x.d < 0; }

/* A double without a fraction as an integer, when it fits one. */
static num to_int(lua_Number d)
{
    return d >= -0x1p63 && d < 0x1p63 ? of_int((lua_Integer)d) : of_double(d);
}

void ipw_calc_get(num *out, lua_State *L, int idx)
{
    *out = lua_isinteger(L, idx) ? of_int(lua_tointeger(L, idx)) : of_double(lua_tonumber(L, idx));
}

void ipw_calc_push(lua_State *L, num x)
{
    if (x.is_int)
        lua_pushinteger(L, x.i);
    else
        lua_pushnumber(L, x.d);
}

num ipw_calc_whole(num x)
{
    if (x.is_int || x.d != floor(x.d) || x.d < -0x1p53 || x.d > 0x1p53) return x;
    return of_int((lua_Integer)x.d);
}

num ipw_calc_add(num a, num b)
{
    lua_Integer sum;

    if (a.is_int && b.is_int && !__builtin_add_overflow(a.i, b.i, &sum)) return of_int(sum);
    return of_double(as_double(a) + as_double(b));
}

num ipw_calc_negate(num a)
{
    return a.is_int && a.i != LUA_MININTEGER ? of_int(-a.i) : of_double(-as_double(a));
}

num ipw_calc_multiply(num a, num b)
{
    lua_Integer product;

    if (a.is_int && b.is_int && !__builtin_mul_overflow(a.i, b.i, &product)) return of_int(product);
    return of_double(as_double(a) * as_double(b));
}

/* ---- quotients; the divisor -1 is taken apart because the least integer has no opposite ---- */

const char *ipw_calc_divide(num *out, num a, num b)
{
    if (is(b, 0)) return "division by zero";
    if (a.is_int && b.is_int && b.i != -1 && a.i % b.i == 0)
        *out = of_int(a.i / b.i);
    else
        *out = of_double(as_double(a) / as_double(b));
    return NULL;
}

const char *ipw_calc_floor_divide(num *out, num a, num b)
{
    if (is(b, 0)) return "division by zero";
    if (is(b, -1)) {
        a = ipw_calc_negate(a);
        *out = a.is_int ? a : to_int(floor(a.d));
    } else if (a.is_int && b.is_int) {
        lua_Integer q = a.i / b.i;
        *out = of_int(q - (a.i % b.i != 0 && (a.i % b.i < 0) != (b.i < 0)));
    } else {
        *out = ipw_calc_whole(of_double(floor(as_double(a) / as_double(b))));
    }
    return NULL;
}

const char *ipw_calc_modulo(num *out, num a, num b)
{
    if (is(b, 0)) return "remainder of a division by zero";
    if (a.is_int && b.is_int) {
        lua_Integer m = b.i == -1 ? 0 : a.i % b.i;
        *out = of_int(m != 0 && (m < 0) != (b.i < 0) ? m + b.i : m);
    } else {
        lua_Number x = as_double(b), m = fmod(as_double(a), x);
        if (m > 0 ? x < 0 : m < 0 && x != m && x > 0) m += x;
        *out = ipw_calc_whole(of_double(m));
    }
    return NULL;
}

const char *ipw_calc_power(num *out, num a, num b)
{
    if (is(a, 0) && is_negative(b)) return "0 to a negative power";
    if (a.is_int && b.is_int && b.i >= 0) {
        /* By squaring: 64 rounds at most, and a double as soon as it no longer fits. */
        num result = of_int(1), base = a;
        for (lua_Integer left = b.i; left > 0; left >>= 1) {
            if (left & 1) result = ipw_calc_multiply(result, base);
            if (left > 1) base = ipw_calc_multiply(base, base);
        }
        *out = result;
        return NULL;
    }
    if (is_negative(a) && !b.is_int && b.d != floor(b.d))
        return "a negative number to a fraction of a power";
    *out = of_double(pow(as_double(a), as_double(b)));
    return NULL;
}

/* ---- functions ---- */

enum {
    F_ABS,
    F_CEIL,
    F_COS,
    F_EXP,
    F_FLOOR,
    F_LN,
    F_LOG,
    F_LOG10,
    F_LOG2,
    F_MAX,
    F_MIN,
    F_ROUND,
    F_SIN,
    F_SQRT,
    F_SUM,
    F_TAN
};

static const struct ipw_calc_function functions[] = {
    {"abs", 1, 1, F_ABS},    {"ceil", 1, 1, F_CEIL},   {"cos", 1, 1, F_COS},
    {"exp", 1, 1, F_EXP},    {"floor", 1, 1, F_FLOOR}, {"ln", 1, 1, F_LN},
    {"log", 1, 2, F_LOG},    {"log10", 1, 1, F_LOG10}, {"log2", 1, 1, F_LOG2},
    {"max", 1, 1000, F_MAX}, {"min", 1, 1000, F_MIN},  {"round", 1, 2, F_ROUND},
    {"sin", 1, 1, F_SIN},    {"sqrt", 1, 1, F_SQRT},   {"sum", 1, 1000, F_SUM},
    {"tan", 1, 1, F_TAN},
};

const struct ipw_calc_function *ipw_calc_find(const char *name)
{
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (strcmp(functions[i].name, name) == 0) return &functions[i];
    return NULL;
}

bool ipw_calc_constant(num *out, const char *name)
{
    if (strcmp(name, "pi") == 0)
        *out = of_double(3.141592653589793238462643383279502884);
    else if (strcmp(name, "e") == 0)
        *out = of_double(exp(1));
    else
        return false;
    return true;
}

static const char *round_to(num *out, num x, num digits)
{
    lua_Number scale, scaled, rounded;
    char text[400];

    if (!digits.is_int || digits.i < -15 || digits.i > 15)
        return "round() wants a whole number of digits from -15 to 15";
    *out = x;
    if (x.is_int && digits.i >= 0) return NULL;
    scale = pow(10.0, (lua_Number)digits.i);
    scaled = as_double(x) * scale;
    if (!(fabs(scaled) < 0x1p52)) return NULL; /* nothing behind the point to round */
    rounded = (scaled < 0 ? ceil(scaled - 0.5) : floor(scaled + 0.5)) / scale;
    if (digits.i > 0) {
        snprintf(text, sizeof text, "%.*f", (int)digits.i, rounded);
        *out = of_double(strtod(text, NULL));
    } else {
        *out = ipw_calc_whole(of_double(rounded));
    }
    return NULL;
}

static const char not_positive[] = "() of a number that is not positive";

static const char *log_to(num *out, num x, num base)
{
    lua_Number b = as_double(base);

    if (is(base, 1)) return "log() to the base 1";
    if (!(as_double(x) > 0) && !isnan(as_double(x))) return not_positive;
    if (b <= 0) return not_positive;
    *out = ipw_calc_whole(of_double(b == 2    ? log2(as_double(x))
                                    : b == 10 ? log10(as_double(x))
                                              : log(as_double(x)) / log(b)));
    return NULL;
}

const char *ipw_calc_call(num *out, const struct ipw_calc_function *f, const num *args, size_t n)
{
    num x = args[0];
    lua_Number d = as_double(x);

    switch (f->which) {
    case F_ABS: *out = is_negative(x) ? ipw_calc_negate(x) : x; break;
    case F_CEIL: *out = x.is_int ? x : to_int(ceil(d)); break;
    case F_FLOOR: *out = x.is_int ? x : to_int(floor(d)); break;
    case F_COS: *out = of_double(cos(d)); break;
    case F_SIN: *out = of_double(sin(d)); break;
    case F_TAN: *out = of_double(tan(d)); break;
    case F_EXP: *out = of_double(exp(d)); break;
    case F_LN:
        if (d <= 0) return not_positive;
        *out = of_double(log(d));
        break;
    case F_LOG:
        if (n == 2) return log_to(out, x, args[1]);
        if (d <= 0) return not_positive;
        *out = of_double(log(d));
        break;
    case F_LOG10:
        if (d <= 0) return not_positive;
        *out = ipw_calc_whole(of_double(log10(d)));
        break;
    case F_LOG2:
        if (d <= 0) return not_positive;
        *out = ipw_calc_whole(of_double(log2(d)));
        break;
    case F_SQRT:
        if (d < 0) return "sqrt() of a negative number";
        *out = ipw_calc_whole(of_double(sqrt(d)));
        break;
    case F_ROUND: return round_to(out, x, n == 2 ? args[1] : of_int(0));
    case F_MIN:
    case F_MAX:
        for (size_t i = 1; i < n; i++)
            if (f->which == F_MIN ? is_less(args[i], x) : is_less(x, args[i])) x = args[i];
        *out = x;
        break;
    case F_SUM:
        x = of_int(0);
        for (size_t i = 0; i < n; i++) x = ipw_calc_add(x, args[i]);
        *out = x;
        break;
    default: break;
    }
    return NULL;
}
