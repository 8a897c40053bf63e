/* ipw.core.calc: arithmetic expressions, by a grammar of our own.
 *
 *   sum     = product { ("+" | "-") product }
 *   product = unary { ("*" | "/" | "//" | "%") unary }
 *   unary   = ("+" | "-") unary | power
 *   power   = primary [ ("^" | "**") unary ]        right to left, tighter than a sign before it
 *   primary = number | name | name "(" sum { "," sum } ")" | "(" sum ")"
 *
 * The first fault ends the reading: `failed` is set, the message kept, and everything returns. */
#include <ctype.h>
#include <lauxlib.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "script/calc.h"
#include "script/lib.h"
#include "script/tostring.h"
#include "script/vm.h"

enum { MAX_BYTES = 10000, MAX_DEPTH = 100, MAX_MESSAGE = 2 * MAX_BYTES };

enum kind { NUMBER = 'n', NAME = 'a', END = 'e', FLOOR_DIVIDE = 'f' }; /* or the sign itself */

struct token {
    int kind;
    size_t at; /* from 1 */
    const char *text;
    size_t n;
    struct ipw_calc_number value;
};

struct reading {
    lua_State *L; /* for numbers to text and back */
    const char *text;
    size_t n;
    struct token *tokens;
    size_t n_tokens, cap_tokens, at;
    struct ipw_calc_number *args; /* of all calls that are being read */
    size_t n_args, cap_args;
    int depth;
    bool failed;
    struct ipw_buf message;
};

static void __attribute__((format(printf, 3, 4)))
fail(struct reading *r, size_t at, const char *format, ...)
{
    char *text = NULL;
    va_list args;

    if (r->failed) return;
    r->failed = true;
    va_start(args, format);
    if (vasprintf(&text, format, args) < 0) IPW_BUG("out of memory");
    va_end(args);
    ipw_buf_addf(&r->message, "at %zu: ", at);
    ipw_buf_adds(&r->message, text);
    free(text);
}

/* ---- tokens ---- */

static bool is_word(char c) { return isalnum((unsigned char)c) || c == '_'; }
static bool is_digit(char c) { return c >= '0' && c <= '9'; }

static void add_token(struct reading *r, int kind, size_t at, size_t n)
{
    IPW_GROW(r->tokens, r->cap_tokens, r->n_tokens + 1);
    r->tokens[r->n_tokens++] =
        (struct token){.kind = kind, .at = at + 1, .text = r->text + at, .n = n};
}

/* digits [ "." digits ] [ e [sign] digits ], either run of digits may be empty */
static bool is_plain_number(const char *s)
{
    while (is_digit(*s)) s++;
    if (*s == '.') s++;
    while (is_digit(*s)) s++;
    if (!*s) return true;
    if (*s != 'e' && *s != 'E') return false;
    s++;
    if (*s == '+' || *s == '-') s++;
    if (!is_digit(*s)) return false;
    while (is_digit(*s)) s++;
    return !*s;
}

static size_t read_number(struct reading *r, size_t at)
{
    const char *s = r->text + at;
    size_t left = r->n - at, n = 0, m, k = 0;
    char *digits;
    bool good;

    while (n < left && (is_word(s[n]) || s[n] == '.')) n++;
    /* The sign of an exponent belongs to the number. */
    for (m = 0; m < n - 1 && (is_digit(s[m]) || s[m] == '_' || s[m] == '.'); m++) continue;
    if (n > 1 && m == n - 1 && (s[m] == 'e' || s[m] == 'E') && n + 1 < left &&
        (s[n] == '+' || s[n] == '-') && is_digit(s[n + 1])) {
        n++;
        while (n < left && is_digit(s[n])) n++;
    }
    digits = ipw_malloc(n + 1);
    for (size_t i = 0; i < n; i++) {
        bool between =
            s[i] == '_' && i > 0 && is_digit(s[i - 1]) && i + 1 < n && is_digit(s[i + 1]);
        if (!between) digits[k++] = s[i];
    }
    digits[k] = '\0';
    good = is_plain_number(digits) && lua_stringtonumber(r->L, digits);
    free(digits);
    if (!good) {
        fail(r, at + 1, "%.*s is not a number", (int)n, s);
        return n;
    }
    add_token(r, NUMBER, at, n);
    ipw_calc_get(&r->tokens[r->n_tokens - 1].value, r->L, -1);
    lua_pop(r->L, 1);
    return n;
}

/* A sign of more than one byte, as texts have them: its length, and the sign it stands for or 0. */
static size_t wide_sign(const char *s, size_t left, int *kind)
{
    static const struct {
        const char *text;
        int kind;
    } signs[] = {{"\xC3\x97", '*'},
                 {"\xC2\xB7", '*'},
                 {"\xC3\xB7", '/'},
                 {"\xE2\x88\x92", '-'},
                 {"\xE2\x80\x93", '-'}};
    size_t n = 1;

    *kind = 0;
    if (!left || (unsigned char)s[0] < 0xC2 || (unsigned char)s[0] > 0xF4) return 0;
    while (n < left && ((unsigned char)s[n] & 0xC0) == 0x80) n++;
    if (n < 2) return 0;
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
        if (strlen(signs[i].text) == n && memcmp(signs[i].text, s, n) == 0) *kind = signs[i].kind;
    return n;
}

static size_t read_sign(struct reading *r, size_t at)
{
    const char *s = r->text + at;
    size_t left = r->n - at, n;
    int kind;

    if (left > 1 && s[0] == '*' && s[1] == '*') {
        add_token(r, '^', at, 2);
        return 2;
    }
    if (left > 1 && s[0] == '/' && s[1] == '/') {
        add_token(r, FLOOR_DIVIDE, at, 2);
        return 2;
    }
    if (s[0] && strchr("+-*/%^(),", s[0])) {
        add_token(r, s[0], at, 1);
        return 1;
    }
    n = wide_sign(s, left, &kind);
    if (kind)
        add_token(r, kind, at, n);
    else if (s[0] == '=')
        fail(r, at + 1, "'=' has no place here; give only what is to be computed");
    else if (s[0] == '$')
        fail(r, at + 1, "write numbers without a currency sign");
    else
        fail(r, at + 1, "'%.*s' has no meaning here", n ? (int)n : 1, s);
    return n ? n : 1;
}

static void read_tokens(struct reading *r)
{
    size_t at = 0, n;

    while (!r->failed) {
        while (at < r->n && isspace((unsigned char)r->text[at])) at++;
        if (at == r->n) break;
        if (is_digit(r->text[at]) ||
            (r->text[at] == '.' && at + 1 < r->n && is_digit(r->text[at + 1]))) {
            at += read_number(r, at);
        } else if (is_word(r->text[at])) {
            for (n = 1; at + n < r->n && is_word(r->text[at + n]);) n++;
            add_token(r, NAME, at, n);
            at += n;
        } else {
            at += read_sign(r, at);
        }
    }
    add_token(r, END, r->n, 0);
}

/* ---- reading ---- */

static const char comma[] =
    "a comma stands only between arguments; write 1000 or 1_000 for thousands";

static struct ipw_calc_number sum(struct reading *r);
static struct ipw_calc_number unary(struct reading *r);

static struct token *now(struct reading *r) { return &r->tokens[r->at]; }

static struct token *take(struct reading *r, int kind)
{
    if (r->failed || now(r)->kind != kind) return NULL;
    return &r->tokens[r->at++];
}

/* The name in small letters, cut at 200 bytes. */
static const char *name_of(char out[201], const struct token *t)
{
    size_t n = t->n < 200 ? t->n : 200;

    for (size_t i = 0; i < n; i++) out[i] = (char)tolower((unsigned char)t->text[i]);
    out[n] = '\0';
    return out;
}

/* For messages; the text lives in `out`. */
static const char *describe(struct reading *r, char out[208], const struct token *t)
{
    char name[201];

    switch (t->kind) {
    case END: return "the end";
    case NAME: snprintf(out, 208, "'%s'", name_of(name, t)); break;
    case NUMBER:
        ipw_calc_push(r->L, t->value);
        snprintf(out, 208, "'%s'", ipw_tostring_push(r->L, -1));
        lua_pop(r->L, 2);
        break;
    case FLOOR_DIVIDE: return "'//'";
    default: snprintf(out, 208, "'%c'", t->kind); break;
    }
    return out;
}

static void expect(struct reading *r, int kind, const char *why)
{
    char found[208];

    if (r->failed || take(r, kind)) return;
    fail(r, now(r)->at, "expected '%c' %s, found %s", kind, why, describe(r, found, now(r)));
}

static struct ipw_calc_number call(struct reading *r, const struct token *t)
{
    char name[201], why[240];
    const struct ipw_calc_function *f = ipw_calc_find(name_of(name, t));
    size_t first = r->n_args, n;
    struct ipw_calc_number value = {.is_int = true};
    const char *fault;

    if (!f) {
        fail(r, t->at, "there is no function %s()", name);
        return value;
    }
    if (now(r)->kind != ')') {
        do {
            value = sum(r);
            IPW_GROW(r->args, r->cap_args, r->n_args + 1);
            r->args[r->n_args++] = value;
        } while (take(r, ','));
    }
    snprintf(why, sizeof why, "to close %s(", name);
    expect(r, ')', why);
    n = r->n_args - first;
    r->n_args = first;
    if (r->failed) return value;
    if (n < f->least || n > f->most) {
        if (f->least == f->most)
            fail(r, t->at, "%s() takes %zu argument, not %zu", name, f->least, n);
        else
            fail(r, t->at, "%s() takes %zu to %zu arguments, not %zu", name, f->least, f->most, n);
        return value;
    }
    fault = ipw_calc_call(&value, f, r->args + first, n);
    if (fault) fail(r, t->at, "%s%s", *fault == '(' ? name : "", fault);
    return value;
}

static struct ipw_calc_number primary(struct reading *r)
{
    struct ipw_calc_number value = {.is_int = true};
    struct token *t = now(r);
    char text[208];

    if (r->failed) return value;
    if (t->kind != END) r->at++;
    if (t->kind == NUMBER) return t->value;
    if (t->kind == NAME) {
        if (take(r, '(')) return call(r, t);
        if (ipw_calc_constant(&value, name_of(text, t))) return value;
        if (ipw_calc_find(text))
            fail(r, t->at, "%s needs its argument in parentheses", text);
        else
            fail(r, t->at, "'%s' is not known", text);
    } else if (t->kind == '(') {
        char why[64];
        value = sum(r);
        if (!r->failed && now(r)->kind == ',') fail(r, now(r)->at, "%s", comma);
        snprintf(why, sizeof why, "for the '(' at %zu", t->at);
        expect(r, ')', why);
    } else {
        fail(r, t->at, "expected a number, found %s", describe(r, text, t));
    }
    return value;
}

/* Applies the operator whose sign is t. */
static struct ipw_calc_number apply(struct reading *r, const struct token *t,
                                    struct ipw_calc_number a, struct ipw_calc_number b)
{
    const char *fault = NULL;

    if (r->failed) return a;
    switch (t->kind) {
    case '+': a = ipw_calc_add(a, b); break;
    case '-': a = ipw_calc_add(a, ipw_calc_negate(b)); break;
    case '*': a = ipw_calc_multiply(a, b); break;
    case '/': fault = ipw_calc_divide(&a, a, b); break;
    case FLOOR_DIVIDE: fault = ipw_calc_floor_divide(&a, a, b); break;
    case '%': fault = ipw_calc_modulo(&a, a, b); break;
    default: fault = ipw_calc_power(&a, a, b); break;
    }
    if (fault) fail(r, t->at, "%s", fault);
    return a;
}

static struct ipw_calc_number unary(struct reading *r)
{
    struct ipw_calc_number value = {.is_int = true};
    const struct token *t;

    if (r->failed) return value;
    if (++r->depth > MAX_DEPTH) {
        fail(r, now(r)->at, "nested too deeply");
        return value;
    }
    if (take(r, '-')) {
        value = ipw_calc_negate(unary(r));
    } else if (take(r, '+')) {
        value = unary(r);
    } else {
        value = primary(r);
        if ((t = take(r, '^'))) value = apply(r, t, value, unary(r));
    }
    r->depth--;
    return value;
}

static struct ipw_calc_number product(struct reading *r)
{
    struct ipw_calc_number value = unary(r);
    const struct token *t;

    while ((t = take(r, '*')) || (t = take(r, '/')) || (t = take(r, FLOOR_DIVIDE)) ||
           (t = take(r, '%'))) {
        int next = now(r)->kind;
        if (t->kind == '%' && next != NUMBER && next != NAME && next != '(' && next != '-' &&
            next != '+')
            fail(r, t->at,
                 "'%%' is the remainder and needs a number after it; a percentage is "
                 "x/100");
        value = apply(r, t, value, unary(r));
    }
    return value;
}

static struct ipw_calc_number sum(struct reading *r)
{
    struct ipw_calc_number value = product(r);
    const struct token *t;

    while ((t = take(r, '+')) || (t = take(r, '-'))) value = apply(r, t, value, product(r));
    return value;
}

static struct ipw_calc_number read_all(struct reading *r)
{
    struct ipw_calc_number value = {.is_int = true};
    char text[208];

    read_tokens(r);
    if (r->failed) return value;
    value = sum(r);
    if (r->failed) return value;
    if (now(r)->kind == ',')
        fail(r, now(r)->at, "%s", comma);
    else if (now(r)->kind != END)
        fail(r, now(r)->at, "expected an operator, found %s", describe(r, text, now(r)));
    return value;
}

/* ---- the module ---- */

/* eval(text): the number; or nil and a message with the position of the fault. [-1, +(1|2), m] */
static int calc_eval(lua_State *L)
{
    struct reading r = {.L = L, .message = IPW_BUF(MAX_MESSAGE)};
    struct ipw_calc_number value;
    const char *why = NULL;
    size_t blank = 0;

    r.text = luaL_checklstring(L, 1, &r.n);
    luaL_checkstack(L, 8, NULL); /* nothing below may raise, or the tokens were lost */
    while (blank < r.n && isspace((unsigned char)r.text[blank])) blank++;
    if (r.n > MAX_BYTES) {
        why = "the expression is longer than 10000 bytes";
    } else if (blank == r.n) {
        why = "the expression is empty";
    } else {
        value = read_all(&r);
        if (r.failed)
            why = ipw_buf_str(&r.message);
        else if (!value.is_int && isnan(value.d))
            why = "the result is not a number";
        else if (!value.is_int && isinf(value.d))
            why = "the result is too large";
    }
    if (why) {
        lua_pushnil(L);
        lua_pushstring(L, why);
    } else {
        ipw_calc_push(L, value);
    }
    free(r.tokens);
    free(r.args);
    ipw_buf_release(&r.message);
    return why ? 2 : 1;
}

/* format(number): text; doubles with 15 digits, so that 0.1 + 0.2 reads 0.3. [-1, +1, m] */
static int calc_format(lua_State *L)
{
    struct ipw_calc_number x;
    char text[40];

    luaL_checknumber(L, 1);
    ipw_calc_get(&x, L, 1);
    x = ipw_calc_whole(x);
    if (x.is_int)
        snprintf(text, sizeof text, "%lld", (long long)x.i);
    else
        snprintf(text, sizeof text, "%.15g", x.d);
    lua_pushstring(L, text);
    return 1;
}

int ipw_lib_calc(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"eval", calc_eval}, {"format", calc_format}, {NULL, NULL}};

    luaL_newlib(L, functions);
    return 1;
}
