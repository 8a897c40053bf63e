#include "script/value.h"

#include <lauxlib.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "json/write.h"

enum { MAX_DEPTH = 128, MAX_NODES = 1000000, SMALL = 32 };

/* Addresses serve as registry keys, which are unique. */
static const char list_key, error_key, raw_key;

struct encoder {
    lua_State *L;
    struct ipw_buf *out;
    struct ipw_err *err;
    const void *open[MAX_DEPTH]; /* tables being written, to detect cycles */
    int depth;
    long nodes;
};

/* A key of an object that is being written; key and value are on the Lua stack. */
struct key {
    const char *s;
    size_t n;
    int slot; /* of the key; the value is one above */
};

static int compare(const struct key *x, const struct key *y)
{
    int c = memcmp(x->s, y->s, x->n < y->n ? x->n : y->n);

    if (c) return c;
    return x->n < y->n ? -1 : x->n > y->n;
}

static int compare_keys(const void *a, const void *b) { return compare(a, b); }

static void sort_keys(struct key *keys, size_t n)
{
    if (n > 16) {
        qsort(keys, n, sizeof *keys, compare_keys);
        return;
    }
    for (size_t i = 1; i < n; i++) {
        struct key k = keys[i];
        size_t j = i;
        for (; j > 0 && compare(&k, &keys[j - 1]) < 0; j--) keys[j] = keys[j - 1];
        keys[j] = k;
    }
}

static int encode_value(struct encoder *e, int idx);

static int fail_value(struct encoder *e, enum ipw_code code, const char *what)
{
    return ipw_fail(e->err, code, "%s", what);
}

static int encode_list(struct encoder *e, int idx, lua_Unsigned n)
{
    ipw_buf_addc(e->out, '[');
    for (lua_Unsigned i = 1; i <= n; i++) {
        int rc;

        if (i > 1) ipw_buf_addc(e->out, ',');
        lua_rawgeti(e->L, idx, (lua_Integer)i); // ... value
        rc = encode_value(e, lua_gettop(e->L));
        lua_pop(e->L, 1);
        if (rc) {
            struct ipw_err inner = {0};
            if (e->err) inner = *e->err;
            if (e->err)
                ipw_fail(e->err, (enum ipw_code)rc, "[%llu]%s%s", (unsigned long long)i,
                         inner.text[0] == '[' || inner.text[0] == '.' ? "" : ": ", inner.text);
            return rc;
        }
    }
    ipw_buf_addc(e->out, ']');
    return 0;
}

/* Pushes keys and values on the Lua stack, sorts the keys, and writes the members in that order. */
static int encode_object(struct encoder *e, int idx)
{
    lua_State *L = e->L;
    struct key small[SMALL], *keys = small;
    size_t n = 0, cap = SMALL;
    int top = lua_gettop(L), rc = 0;

    lua_pushnil(L);
    while (lua_next(L, idx)) { // (key value)... key value
        if (lua_type(L, -2) != LUA_TSTRING) {
            rc = fail_value(e, IPW_EINVAL,
                            "a table with both list elements and named fields, or with keys that "
                            "are not strings, is not a JSON value");
            goto out;
        }
        if (!lua_checkstack(L, 4)) {
            rc = fail_value(e, IPW_ELIMIT, "too many fields");
            goto out;
        }
        if (n == cap) {
            struct key *more = ipw_malloc(cap * 2 * sizeof *more);
            memcpy(more, keys, n * sizeof *more);
            if (keys != small) free(keys);
            keys = more;
            cap *= 2;
        }
        keys[n].s = lua_tolstring(L, -2, &keys[n].n);
        keys[n].slot = top + 1 + 2 * (int)n;
        n++;
        lua_pushvalue(L, -2); // (key value)... key value key
    }
    sort_keys(keys, n);
    ipw_buf_addc(e->out, '{');
    for (size_t i = 0; i < n; i++) {
        if (i) ipw_buf_addc(e->out, ',');
        ipw_json_escape(e->out, keys[i].s, keys[i].n);
        ipw_buf_addc(e->out, ':');
        rc = encode_value(e, keys[i].slot + 1);
        if (rc) {
            if (e->err) {
                struct ipw_err inner = *e->err;
                ipw_fail(e->err, (enum ipw_code)rc, ".%.60s%s%.400s", keys[i].s,
                         inner.text[0] == '[' || inner.text[0] == '.' ? "" : ": ", inner.text);
            }
            goto out;
        }
    }
    ipw_buf_addc(e->out, '}');
out:
    if (keys != small) free(keys);
    lua_settop(L, top);
    return rc;
}

static bool has_mark(lua_State *L, int idx, const char *mark)
{
    bool is;

    if (!lua_getmetatable(L, idx)) return false;
    lua_rawgetp(L, LUA_REGISTRYINDEX, mark);
    is = lua_rawequal(L, -1, -2);
    lua_pop(L, 2);
    return is;
}

enum ipw_value_mark ipw_value_mark(lua_State *L, int idx)
{
    if (has_mark(L, idx, &list_key)) return IPW_MARK_LIST;
    return has_mark(L, idx, &error_key) ? IPW_MARK_ERROR : IPW_MARK_NONE;
}

static int encode_table(struct encoder *e, int idx)
{
    const void *self = lua_topointer(e->L, idx);
    lua_Unsigned n = lua_rawlen(e->L, idx);
    int rc;

    for (int i = 0; i < e->depth; i++)
        if (e->open[i] == self) return fail_value(e, IPW_EINVAL, "a table that contains itself");
    if (e->depth == MAX_DEPTH) return fail_value(e, IPW_ELIMIT, "more than 128 levels deep");
    if (!lua_checkstack(e->L, 8)) return fail_value(e, IPW_ELIMIT, "too deep for the Lua stack");
    e->open[e->depth++] = self;
    if (n > 0) {
        /* A list must have no other fields: fields that are lost silently would change a prompt. */
        lua_Unsigned count = 0;
        lua_pushnil(e->L);
        while (lua_next(e->L, idx)) {
            lua_pop(e->L, 1);
            count++;
        }
        rc = count == n
                 ? encode_list(e, idx, n)
                 : fail_value(e, IPW_EINVAL,
                              "a table with both list elements and named fields is not a JSON "
                              "value");
    } else if (has_mark(e->L, idx, &list_key)) {
        rc = ipw_buf_adds(e->out, "[]");
    } else {
        rc = encode_object(e, idx);
    }
    e->depth--;
    return rc;
}

static int encode_value(struct encoder *e, int idx)
{
    lua_State *L = e->L;
    size_t n;
    const char *s;

    if (++e->nodes > MAX_NODES) return fail_value(e, IPW_ELIMIT, "more than a million values");
    switch (lua_type(L, idx)) {
    case LUA_TNIL: return ipw_buf_adds(e->out, "null");
    case LUA_TBOOLEAN: return ipw_buf_adds(e->out, lua_toboolean(L, idx) ? "true" : "false");
    case LUA_TNUMBER:
        if (lua_isinteger(L, idx))
            return ipw_buf_addf(e->out, "%lld", (long long)lua_tointeger(L, idx));
        if (!isfinite(lua_tonumber(L, idx)))
            return fail_value(e, IPW_EINVAL, "nan and infinity are not JSON values");
        ipw_json_double(e->out, lua_tonumber(L, idx));
        return 0;
    case LUA_TSTRING:
        s = lua_tolstring(L, idx, &n);
        ipw_json_escape(e->out, s, n);
        return 0;
    case LUA_TTABLE: return encode_table(e, idx);
    case LUA_TLIGHTUSERDATA:
        if (!lua_touserdata(L, idx)) return ipw_buf_adds(e->out, "null");
        break;
    case LUA_TUSERDATA:
        s = ipw_value_raw(L, idx, &n);
        if (!s) break;
        ipw_buf_add(e->out, s, n);
        return 0;
    default: break;
    }
    return ipw_fail(e->err, IPW_EINVAL, "a %s is not a JSON value", luaL_typename(L, idx));
}

int ipw_value_encode(lua_State *L, int idx, struct ipw_buf *out, struct ipw_err *err)
{
    struct encoder e = {.L = L, .out = out, .err = err};
    size_t start = out->len;
    int rc;

    if (!lua_checkstack(L, 8)) return ipw_fail(err, IPW_ELIMIT, "the Lua stack is full");
    rc = encode_value(&e, lua_absindex(L, idx));
    if (!rc && out->failed) rc = ipw_fail(err, IPW_ELIMIT, "more than %zu bytes of JSON", out->max);
    if (rc) ipw_buf_truncate(out, start);
    return rc;
}

void ipw_value_mark_list(lua_State *L, int idx)
{
    idx = lua_absindex(L, idx);
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &list_key) != LUA_TTABLE) {
        lua_pop(L, 1);
        lua_createtable(L, 0, 2); // mt
        lua_pushliteral(L, "json.list");
        lua_setfield(L, -2, "__name");
        lua_pushboolean(L, 0); /* hidden, because a script could put a __gc there */
        lua_setfield(L, -2, "__metatable");
        lua_pushvalue(L, -1);
        lua_rawsetp(L, LUA_REGISTRYINDEX, &list_key);
    }
    lua_setmetatable(L, idx);
}

/* Long texts of json.raw that this process keeps, because every query of a run makes the same ones:
 * the schemas of its tools.  The first few are kept, for good. */
struct kept_text {
    char *json;
    size_t n;
};
enum { KEPT_TEXTS = 8, KEPT_LEAST = 256, KEPT_MOST = 64 * 1024 };

static struct kept_text *keep_text(const char *json, size_t n)
{
    static struct kept_text kept[KEPT_TEXTS];
    static size_t n_kept;

    if (n < KEPT_LEAST || n > KEPT_MOST) return NULL;
    for (size_t i = 0; i < n_kept; i++)
        if (kept[i].n == n && memcmp(kept[i].json, json, n) == 0) return &kept[i];
    if (n_kept == KEPT_TEXTS) return NULL;
    kept[n_kept] = (struct kept_text){ipw_memdup(json, n), n};
    return &kept[n_kept++];
}

const char *ipw_value_raw(lua_State *L, int idx, size_t *n)
{
    const struct kept_text *kept;
    const char *text;

    if (lua_type(L, idx) != LUA_TUSERDATA || !has_mark(L, idx, &raw_key)) return NULL;
    if (lua_getiuservalue(L, idx, 1) == LUA_TLIGHTUSERDATA) {
        kept = lua_touserdata(L, -1);
        text = kept->json;
        *n = kept->n;
    } else {
        text = lua_tolstring(L, -1, n);
    }
    lua_pop(L, 1); /* the userdata keeps it */
    return text;
}

static int raw_tostring(lua_State *L)
{
    size_t n;
    const char *text = ipw_value_raw(L, 1, &n);

    luaL_argexpected(L, text, 1, "json.raw");
    lua_pushlstring(L, text, n);
    return 1;
}

/* A field would be a copy, and an edit of it would be lost without a word. */
static int raw_index(lua_State *L)
{
    return luaL_error(L, "this is JSON (json.raw, json.seal): json.decode(tostring(value)) makes "
                         "a table of it");
}

void ipw_value_push_raw(lua_State *L, const char *json, size_t n, bool shared)
{
    struct kept_text *kept = shared ? keep_text(json, n) : NULL;

    lua_newuserdatauv(L, 0, 1); // raw
    if (kept)
        lua_pushlightuserdata(L, kept);
    else
        lua_pushlstring(L, json, n);
    lua_setiuservalue(L, -2, 1);
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &raw_key) != LUA_TTABLE) {
        lua_pop(L, 1);
        lua_createtable(L, 0, 5);
        lua_pushliteral(L, "json.raw");
        lua_setfield(L, -2, "__name");
        lua_pushcfunction(L, raw_tostring);
        lua_setfield(L, -2, "__tostring");
        lua_pushcfunction(L, raw_index);
        lua_setfield(L, -2, "__index");
        lua_pushcfunction(L, raw_index);
        lua_setfield(L, -2, "__newindex");
        lua_pushboolean(L, 0);
        lua_setfield(L, -2, "__metatable");
        lua_pushvalue(L, -1);
        lua_rawsetp(L, LUA_REGISTRYINDEX, &raw_key);
    }
    lua_setmetatable(L, -2);
}

void ipw_value_push(lua_State *L, const struct ipw_json *node)
{
    lua_Integer i = 0;

    luaL_checkstack(L, 6, "JSON nested too deeply");
    switch (ipw_json_kind(node)) {
    case IPW_JSON_ABSENT: lua_pushnil(L); break;
    case IPW_JSON_NULL: lua_pushlightuserdata(L, NULL); break;
    case IPW_JSON_BOOL: lua_pushboolean(L, ipw_json_bool(node, false)); break;
    case IPW_JSON_INT: lua_pushinteger(L, ipw_json_int(node, 0)); break;
    case IPW_JSON_NUM: lua_pushnumber(L, ipw_json_num(node, 0)); break;
    case IPW_JSON_STR: lua_pushlstring(L, ipw_json_str(node, ""), ipw_json_str_len(node)); break;
    case IPW_JSON_ARR:
        lua_createtable(L, (int)ipw_json_count(node), 0);
        ipw_value_mark_list(L, -1);
        for (const struct ipw_json *c = ipw_json_first(node); c; c = ipw_json_next(c)) {
            ipw_value_push(L, c);
            lua_rawseti(L, -2, ++i);
        }
        break;
    case IPW_JSON_OBJ:
        lua_createtable(L, 0, (int)ipw_json_count(node));
        for (const struct ipw_json *c = ipw_json_first(node); c; c = ipw_json_next(c)) {
            lua_pushstring(L, ipw_json_key(c));
            ipw_value_push(L, c);
            lua_rawset(L, -3);
        }
        break;
    }
}

static int push_protected(lua_State *L)
{
    const struct ipw_json *node = lua_touserdata(L, 1);

    ipw_value_push(L, node);
    return 1;
}

int ipw_value_decode(lua_State *L, const char *text, size_t n, struct ipw_err *err)
{
    struct ipw_json *doc;
    int rc = ipw_json_parse(&doc, text, n, NULL, err);

    if (rc) return rc;
    lua_pushcfunction(L, push_protected);
    lua_pushlightuserdata(L, doc);
    rc = lua_pcall(L, 1, 1, 0);
    ipw_json_free(doc);
    if (rc != LUA_OK) return lua_error(L);
    return 0;
}

/* tostring(err): "code: message" */
static int error_tostring(lua_State *L)
{
    lua_settop(L, 1);
    lua_pushliteral(L, "message");
    lua_rawget(L, 1);
    if (!lua_isstring(L, -1)) lua_pushliteral(L, "error");
    return 1;
}

void ipw_value_push_error(lua_State *L, const char *code, const char *message, bool retryable)
{
    lua_createtable(L, 0, 3);
    lua_pushstring(L, code);
    lua_setfield(L, -2, "code");
    lua_pushstring(L, message);
    lua_setfield(L, -2, "message");
    lua_pushboolean(L, retryable);
    lua_setfield(L, -2, "retryable");
    ipw_value_mark_error(L, -1);
}

void ipw_value_mark_error(lua_State *L, int idx)
{
    idx = lua_absindex(L, idx);
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &error_key) != LUA_TTABLE) {
        lua_pop(L, 1);
        lua_createtable(L, 0, 3);
        lua_pushboolean(L, 0);
        lua_setfield(L, -2, "__metatable");
        lua_pushcfunction(L, error_tostring);
        lua_setfield(L, -2, "__tostring");
        lua_pushliteral(L, "ipw.error");
        lua_setfield(L, -2, "__name");
        lua_pushvalue(L, -1);
        lua_rawsetp(L, LUA_REGISTRYINDEX, &error_key);
    }
    lua_setmetatable(L, idx);
}

int ipw_value_push_failure(lua_State *L, const char *reason)
{
    lua_pushnil(L);
    lua_pushstring(L, reason);
    return 2;
}

void *ipw_value_push_box(lua_State *L, size_t size, const char *name, lua_CFunction close)
{
    void *box = memset(lua_newuserdatauv(L, size, 0), 0, size);

    if (luaL_newmetatable(L, name)) {
        lua_pushcfunction(L, close);
        lua_setfield(L, -2, "__gc");
    }
    lua_setmetatable(L, -2);
    return box;
}

void ipw_value_push_function(lua_State *L, const char *module, const char *name)
{
    lua_getglobal(L, "require");
    lua_pushstring(L, module);
    lua_call(L, 1, 1);
    lua_getfield(L, -1, name);
    lua_remove(L, -2);
}
