/* Functions of `string` that replace stock ones: patterns (match.h), because the stock matcher has
 * no budget; rep, which has no limit; and format, which shows addresses. */
#include <lauxlib.h>
#include <string.h>

#include "script/lib.h"
#include "script/match.h"
#include "script/stock.h"
#include "script/tostring.h"
#include "script/vm_priv.h"

enum { SMALL_PATTERN = 1024 };

static lua_CFunction stock_rep, stock_format;

/* rep(s, n [, sep]): as the stock function, but with a limit. [-3, +1, e] */
static int str_rep(lua_State *L)
{
    size_t n, n_sep = 0, most = ipw_vm_of(L)->options.memory_bytes / 4;
    lua_Integer times = luaL_checkinteger(L, 2);

    luaL_checklstring(L, 1, &n);
    luaL_optlstring(L, 3, "", &n_sep);
    if (times <= 0 || n + n_sep == 0) {
        lua_pushliteral(L, "");
        return 1;
    }
    if ((lua_Unsigned)times > most / (n + n_sep) + 1)
        return luaL_error(L, "resulting string too large");
    return stock_rep(L);
}

/* ---- format ---- */

/* The conversion that begins after the '%' at p; NULL at the end of the text. */
static const char *conversion(const char *p, const char *end)
{
    while (p < end && strchr("-+ #0123456789.", *p) && *p) p++;
    return p < end ? p : NULL;
}

/* Replaces each argument that the stock function shows with its address by our text; true if the
 * format has a %p. */
static bool replace_arguments(lua_State *L, const char *text, const char *end)
{
    bool pointers = false;
    int arg = 1, top = lua_gettop(L);

    for (const char *p = text; (p = memchr(p, '%', (size_t)(end - p))); p++) {
        p = conversion(p + 1, end);
        if (!p) break;
        if (*p == '%') continue;
        if (++arg > top) break;
        if (*p == 'p') {
            pointers = true;
            ipw_tostring_push_identity(L, arg);
        } else if (*p == 's' && lua_type(L, arg) > LUA_TSTRING) {
            ipw_tostring_push(L, arg);
        } else if (*p == 's' && lua_islightuserdata(L, arg)) {
            ipw_tostring_push(L, arg);
        } else {
            continue;
        }
        lua_replace(L, arg);
    }
    return pointers;
}

static int str_format(lua_State *L)
{
    size_t n;
    const char *text = luaL_checklstring(L, 1, &n), *end = text + n;

    if (replace_arguments(L, text, end)) {
        luaL_Buffer b;
        char *copy = luaL_buffinitsize(L, &b, n);
        memcpy(copy, text, n);
        for (char *p = copy; (p = memchr(p, '%', (size_t)(copy + n - p))); p++) {
            p = (char *)conversion(p + 1, copy + n);
            if (!p) break;
            if (*p == 'p') *p = 's';
        }
        luaL_pushresultsize(&b, n);
        lua_replace(L, 1);
    }
    return stock_format(L);
}

/* ---- patterns ---- */

/* Compiles the pattern into `small` if it fits, else into a userdata that it pushes. [0, +(0|1),
 * e] */
static void compile(lua_State *L, struct ipw_pattern *out, void *small, const char *text, size_t n,
                    bool anchors)
{
    size_t bytes = ipw_pattern_bytes(n);

    if (n > IPW_MATCH_PATTERN_MAX)
        luaL_error(L, "pattern too long (more than %d bytes)", IPW_MATCH_PATTERN_MAX);
    ipw_pattern_compile(out, bytes <= SMALL_PATTERN ? small : lua_newuserdatauv(L, bytes, 0), text,
                        n, anchors);
}

/* The start of a search, from 0; more than n if it is past the end. */
static size_t start_of(lua_State *L, int arg, size_t n)
{
    lua_Integer at = luaL_optinteger(L, arg, 1);

    if (at > 0) return (size_t)at - 1;
    if (at == 0 || at < -(lua_Integer)n) return 0;
    return n - (size_t)-at;
}

/* Capture i; or the whole match if there are no captures. [0, +1, e] */
static void push_capture(struct ipw_match *m, int i, const char *from, const char *to)
{
    if (i >= m->level) {
        if (i != 0) luaL_error(m->L, "invalid capture index %%%d", i + 1);
        lua_pushlstring(m->L, from, (size_t)(to - from));
        return;
    }
    if (m->captures[i].n == IPW_CAPTURE_OPEN) luaL_error(m->L, "unfinished capture");
    if (m->captures[i].n == IPW_CAPTURE_POSITION)
        lua_pushinteger(m->L, m->captures[i].at - m->start + 1);
    else
        lua_pushlstring(m->L, m->captures[i].at, (size_t)m->captures[i].n);
}

/* All captures; `from` NULL: without the whole match if there are none. [0, +n, e] */
static int push_captures(struct ipw_match *m, const char *from, const char *to)
{
    int n = m->level == 0 && from ? 1 : m->level;

    luaL_checkstack(m->L, n, "too many captures");
    for (int i = 0; i < n; i++) push_capture(m, i, from, to);
    return n;
}

/* Whether every character of the pattern stands for itself; it can contain zero bytes. */
static bool is_plain(const char *p, size_t n)
{
    static const char special[] = "^$*+?.([%-";

    for (const char *end = p + n;; p++) {
        p += strcspn(p, special);
        if (p >= end) return true;
        if (*p) return false;
    }
}

static int find(lua_State *L, bool wants_place)
{
    size_t n, n_pattern, at;
    const char *s = luaL_checklstring(L, 1, &n), *p = luaL_checklstring(L, 2, &n_pattern);
    uint64_t small[SMALL_PATTERN / sizeof(uint64_t)];
    struct ipw_pattern pattern;
    struct ipw_match m;

    at = start_of(L, 3, n);
    if (at > n) {
        lua_pushnil(L);
        return 1;
    }
    if (wants_place && (lua_toboolean(L, 4) || is_plain(p, n_pattern))) {
        const char *found = n_pattern ? memmem(s + at, n - at, p, n_pattern) : s + at;
        if (!found) {
            lua_pushnil(L);
            return 1;
        }
        lua_pushinteger(L, found - s + 1);
        lua_pushinteger(L, found - s + (lua_Integer)n_pattern);
        return 2;
    }
    compile(L, &pattern, small, p, n_pattern, true);
    ipw_match_begin(&m, L, &pattern, s, n);
    for (const char *from = s + at; from <= m.end; from = ipw_match_next(&m, from)) {
        const char *to = ipw_match_at(&m, from);
        if (to && wants_place) {
            lua_pushinteger(L, from - s + 1);
            lua_pushinteger(L, to - s);
            return push_captures(&m, NULL, NULL) + 2;
        }
        if (to) return push_captures(&m, from, to);
        if (pattern.anchored) break;
    }
    lua_pushnil(L);
    return 1;
}

static int str_find(lua_State *L) { return find(L, true); }
static int str_match(lua_State *L) { return find(L, false); }

/* ---- gmatch ---- */

struct iterator {
    struct ipw_match match;
    struct ipw_pattern pattern;
    const char *at, *last; /* last: end of the match before, which must not match again */
    uint64_t memory[];
};

/* Upvalues: the subject, the pattern (kept alive), the iterator. */
static int gmatch_next(lua_State *L)
{
    struct iterator *it = lua_touserdata(L, lua_upvalueindex(3));

    it->match.L = L;
    for (const char *from = it->at, *next; from <= it->match.end; from = next) {
        const char *to = ipw_match_at(&it->match, from);
        next = to ? from + 1 : ipw_match_next(&it->match, from);
        if (!to || to == it->last) continue;
        it->at = it->last = to;
        return push_captures(&it->match, from, to);
    }
    return 0;
}

static int str_gmatch(lua_State *L)
{
    size_t n, n_pattern, at;
    const char *s = luaL_checklstring(L, 1, &n), *p = luaL_checklstring(L, 2, &n_pattern);
    struct iterator *it;

    at = start_of(L, 3, n);
    if (at > n) at = n + 1;
    if (n_pattern > IPW_MATCH_PATTERN_MAX)
        return luaL_error(L, "pattern too long (more than %d bytes)", IPW_MATCH_PATTERN_MAX);
    lua_settop(L, 2);
    it = lua_newuserdatauv(L, sizeof *it + ipw_pattern_bytes(n_pattern), 0);
    ipw_pattern_compile(&it->pattern, it->memory, p, n_pattern, false);
    ipw_match_begin(&it->match, L, &it->pattern, s, n);
    it->at = s + at;
    it->last = NULL;
    lua_pushcclosure(L, gmatch_next, 3);
    return 1;
}

/* ---- gsub ---- */

/* The replacement text with its %1 filled in. */
static void add_text(struct ipw_match *m, luaL_Buffer *b, const char *from, const char *to)
{
    size_t n;
    const char *text = lua_tolstring(m->L, 3, &n), *end = text + n, *escape;

    ipw_match_spend(m, 1 + n / 16);
    while ((escape = memchr(text, '%', (size_t)(end - text)))) {
        unsigned char c = (unsigned char)escape[1]; /* 0 after the end */
        luaL_addlstring(b, text, (size_t)(escape - text));
        if (c == '%') {
            luaL_addchar(b, '%');
        } else if (c == '0') {
            luaL_addlstring(b, from, (size_t)(to - from));
            ipw_match_spend(m, (size_t)(to - from) / 16);
        } else if (c >= '1' && c <= '9') {
            push_capture(m, c - '1', from, to);
            ipw_match_spend(m, (size_t)lua_rawlen(m->L, -1) / 16);
            luaL_addvalue(b);
        } else {
            luaL_error(m->L, "invalid use of '%c' in replacement string", '%');
        }
        text = escape + 2;
    }
    luaL_addlstring(b, text, (size_t)(end - text));
}

/* Adds the replacement of the match; false if the match stays as it was. */
static bool add_replacement(struct ipw_match *m, luaL_Buffer *b, const char *from, const char *to,
                            int type)
{
    lua_State *L = m->L;

    if (type == LUA_TFUNCTION) {
        lua_pushvalue(L, 3);
        lua_call(L, push_captures(m, from, to), 1);
    } else if (type == LUA_TTABLE) {
        push_capture(m, 0, from, to);
        lua_gettable(L, 3);
    } else {
        add_text(m, b, from, to);
        return true;
    }
    if (!lua_toboolean(L, -1)) {
        lua_pop(L, 1);
        luaL_addlstring(b, from, (size_t)(to - from));
        return false;
    }
    if (!lua_isstring(L, -1))
        luaL_error(L, "invalid replacement value (a %s)", luaL_typename(L, -1));
    ipw_match_spend(m, (size_t)lua_rawlen(L, -1) / 16);
    luaL_addvalue(b);
    return true;
}

static int str_gsub(lua_State *L)
{
    size_t n, n_pattern;
    const char *s = luaL_checklstring(L, 1, &n), *p = luaL_checklstring(L, 2, &n_pattern);
    const char *at = s, *last = NULL;
    int type = lua_type(L, 3);
    lua_Integer most = luaL_optinteger(L, 4, (lua_Integer)n + 1), count = 0;
    uint64_t small[SMALL_PATTERN / sizeof(uint64_t)];
    struct ipw_pattern pattern;
    struct ipw_match m;
    bool changed = false;
    luaL_Buffer b;

    luaL_argexpected(L,
                     type == LUA_TNUMBER || type == LUA_TSTRING || type == LUA_TTABLE ||
                         type == LUA_TFUNCTION,
                     3, "string/function/table");
    compile(L, &pattern, small, p, n_pattern, true);
    ipw_match_begin(&m, L, &pattern, s, n);
    luaL_buffinit(L, &b);
    while (count < most) {
        const char *to = ipw_match_at(&m, at);
        if (to && to != last) {
            count++;
            changed |= add_replacement(&m, &b, at, to, type);
            at = last = to;
        } else if (at < m.end) {
            const char *next = to ? at + 1 : ipw_match_next(&m, at);
            if (next > m.end) next = m.end;
            luaL_addlstring(&b, at, (size_t)(next - at));
            at = next;
        } else {
            break;
        }
        if (pattern.anchored) break;
    }
    if (changed) {
        luaL_addlstring(&b, at, (size_t)(m.end - at));
        luaL_pushresult(&b);
    } else {
        lua_pushvalue(L, 1);
    }
    lua_pushinteger(L, count);
    return 2;
}

void ipw_lib_string(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"rep", str_rep},       {"format", str_format}, {"find", str_find}, {"match", str_match},
        {"gmatch", str_gmatch}, {"gsub", str_gsub},     {NULL, NULL}};

    stock_rep = ipw_stock_function("string", "rep");
    stock_format = ipw_stock_function("string", "format");
    luaL_setfuncs(L, functions, 0);
}
