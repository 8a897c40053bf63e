/* ipw.core.text: HTML to text, approximate search, and what is packed in zip files. */
#include <lauxlib.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "data/html.h"
#include "data/inflate.h"
#include "data/pytext.h"
#include "data/sha256.h"
#include "script/lib.h"
#include "script/value.h"

enum { MAX_TEXT_BYTES = 64 * 1024 * 1024, MAX_NEEDLE = 1000 };
#define MAX_STEPS 200000000.0

static int buf_release(lua_State *L)
{
    ipw_buf_release(lua_touserdata(L, 1));
    return 0;
}

static struct ipw_buf *push_buf(lua_State *L)
{
    struct ipw_buf *buf = lua_newuserdatauv(L, sizeof *buf, 0);

    ipw_buf_init(buf, MAX_TEXT_BYTES);
    if (luaL_newmetatable(L, "ipw.buf")) {
        lua_pushcfunction(L, buf_release);
        lua_setfield(L, -2, "__gc");
    }
    lua_setmetatable(L, -2);
    return buf;
}

/* What a buffer holds becomes a string; the buffer is not left to the collector. [-0, +1, m] */
static int push_text(lua_State *L, struct ipw_buf *buf)
{
    lua_pushlstring(L, ipw_buf_str(buf), buf->len);
    ipw_buf_release(buf);
    return 1;
}

/* from_html(html, links): text and title; or nil and a reason. [-2, +2, e] */
static int text_from_html(lua_State *L)
{
    size_t n;
    const char *html = luaL_checklstring(L, 1, &n);
    bool links = lua_toboolean(L, 2);
    struct ipw_buf *text = push_buf(L), *title = push_buf(L);
    struct ipw_err err;

    if (ipw_html_text(text, title, html, n, links, &err))
        return ipw_value_push_failure(L, err.text);
    push_text(L, text);
    push_text(L, title);
    return 2;
}

static unsigned char small(char c)
{
    return (unsigned char)(c >= 'A' && c <= 'Z' ? c + 'a' - 'A' : c);
}

/* find(text, needle): first and last byte of the place in text that differs least from needle, and
 * the number of edits (Sellers' algorithm; case does not count). [-2, +3, e] */
static int text_find(lua_State *L)
{
    size_t n, m, best_end = 0, best_start = 0;
    const char *text = luaL_checklstring(L, 1, &n), *needle = luaL_checklstring(L, 2, &m);
    struct cell {
        unsigned cost, start; /* of the match that ends here; its first byte */
    } * row, best = {0};

    luaL_argcheck(L, m > 0 && m <= MAX_NEEDLE, 2, "expects 1 to 1000 bytes");
    luaL_argcheck(L, (double)n * (double)m <= MAX_STEPS, 1, "is too long to be searched for that");
    row = lua_newuserdatauv(L, (m + 1) * sizeof *row, 0);
    for (size_t i = 0; i <= m; i++) row[i] = (struct cell){(unsigned)i, 0};
    best.cost = (unsigned)m;
    for (size_t j = 1; j <= n; j++) {
        struct cell diagonal = row[0], left;

        row[0] = (struct cell){0, (unsigned)j};
        for (size_t i = 1; i <= m; i++) {
            struct cell c = diagonal;

            left = row[i];
            c.cost += small(needle[i - 1]) != small(text[j - 1]);
            if (left.cost + 1 < c.cost) c = (struct cell){left.cost + 1, left.start};
            if (row[i - 1].cost + 1 < c.cost)
                c = (struct cell){row[i - 1].cost + 1, row[i - 1].start};
            diagonal = left;
            row[i] = c;
        }
        if (row[m].cost < best.cost) {
            best = row[m];
            best_start = best.start;
            best_end = j;
        }
    }
    lua_pushinteger(L, (lua_Integer)best_start + 1);
    lua_pushinteger(L, (lua_Integer)best_end);
    lua_pushinteger(L, best.cost);
    return 3;
}

/* columns(text): the terminal columns that it takes; colours take none. [-1, +1, e] */
static int text_columns(lua_State *L)
{
    size_t n;
    const char *text = luaL_checklstring(L, 1, &n);

    lua_pushinteger(L, (lua_Integer)ipw_text_columns(text, n));
    return 1;
}

/* printable(text, columns): harmless on a terminal, on one line, and cut to fewer columns (0: not
 * cut). [-2, +1, e] */
static int text_printable(lua_State *L)
{
    size_t n;
    const char *text = luaL_checklstring(L, 1, &n);
    lua_Integer columns = luaL_optinteger(L, 2, 0);
    struct ipw_buf *out = push_buf(L);

    ipw_text_printable(out, text, n, columns > 0 ? (size_t)columns : 0);
    return push_text(L, out);
}

/* inflate(bytes, most, checksum): the unpacked bytes, at most that many, of that CRC-32 (nil: any);
 * or nil and a reason. [-3, +(1|2), e] */
static int text_inflate(lua_State *L)
{
    size_t n;
    const char *bytes = luaL_checklstring(L, 1, &n);
    lua_Integer most = luaL_checkinteger(L, 2), checksum = luaL_optinteger(L, 3, -1);
    struct ipw_buf *out = push_buf(L);
    struct ipw_err err;

    luaL_argcheck(L, most >= 0 && most <= MAX_TEXT_BYTES, 2, "64 MiB at most");
    ipw_buf_init(out, (size_t)most);
    if (ipw_inflate(out, bytes, n, &err)) return ipw_value_push_failure(L, err.text);
    if (checksum >= 0 && ipw_inflate_checksum(ipw_buf_str(out), out->len) != (lua_Unsigned)checksum)
        return ipw_value_push_failure(L, "the unpacked bytes are not those that were packed");
    return push_text(L, out);
}

/* lower(text): as Python's str.lower(). [-1, +1, m] */
static int text_lower(lua_State *L)
{
    size_t n;
    const char *text = luaL_checklstring(L, 1, &n);
    struct ipw_buf *out = push_buf(L);

    ipw_py_lower(out, text, n);
    if (out->failed) return luaL_error(L, "the text is longer than 64 MiB");
    return push_text(L, out);
}

/* digits(text): as Python's float() reads it, in ASCII; nil: it can be no number. [-1, +1, m] */
static int text_digits(lua_State *L)
{
    size_t n;
    const char *text = luaL_checklstring(L, 1, &n);
    struct ipw_buf *out = push_buf(L);

    if (ipw_py_digits(out, text, n)) return push_text(L, out);
    lua_pushnil(L);
    return 1;
}

/* digest(text): its SHA-256 in hexadecimal digits. [-1, +1, m] */
static int text_digest(lua_State *L)
{
    size_t n;
    const char *text = luaL_checklstring(L, 1, &n);
    char hex[65];

    ipw_sha256_hex(hex, text, n);
    lua_pushstring(L, hex);
    return 1;
}

int ipw_lib_text(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"from_html", text_from_html}, {"find", text_find},     {"printable", text_printable},
        {"columns", text_columns},     {"lower", text_lower},   {"digits", text_digits},
        {"inflate", text_inflate},     {"digest", text_digest}, {NULL, NULL}};

    luaL_newlib(L, functions);
    return 1;
}
