#include "script/worker/worker_codec.h"

#include <lauxlib.h>
#include <string.h>

#include "json/json.h"
#include "script/value.h"

enum { MAX_DEPTH = 128, MAX_NODES = 1000000, MAX_VALUES = 1000 };

static const struct {
    const char *module, *names;
} forwarded[] = {
    {"run", "sleep* now log note"},
    {"llm", "chat*"},
    {"tool", "find start answer* finish granted cut"},
    {"fs", "read data_uri write size list workspace"},
    {"proc", "run*"},
    {"child", "open send receive* close"},
    {"budget", "energy left"},
    {"span", "start finish"},
    {"http", "request* search speech"},
    {"sqlite", "query* search*"},
};

const char *ipw_worker_codec_forwarded(size_t k, const char **module)
{
    if (k >= sizeof forwarded / sizeof *forwarded) return NULL;
    *module = forwarded[k].module;
    return forwarded[k].names;
}

void ipw_worker_codec_begin(struct ipw_buf *out, enum ipw_worker_message kind, uint32_t call)
{
    char head[IPW_WORKER_CODEC_HEAD] = {(char)kind};

    memcpy(head + 1, &call, sizeof call); /* both sides are one machine */
    ipw_buf_add(out, head, sizeof head);
}

int ipw_worker_codec_head(const char *bytes, size_t n, uint32_t *call)
{
    if (n < IPW_WORKER_CODEC_HEAD) return 0;
    memcpy(call, bytes + 1, sizeof *call);
    return (unsigned char)bytes[0];
}

/* ---- out ---- */

struct encoder {
    lua_State *L;
    struct ipw_buf *out;
    struct ipw_err *err;
    int depth;
    long nodes;
};

static void add_text(struct ipw_buf *out, char tag, const char *s, size_t n)
{
    uint32_t length = (uint32_t)n;

    ipw_buf_addc(out, tag);
    ipw_buf_add(out, &length, sizeof length);
    ipw_buf_add(out, s, n);
}

void ipw_worker_codec_add_text(struct ipw_buf *out, const char *s, size_t n)
{
    add_text(out, 's', s, n);
}

static int encode(struct encoder *e, int idx);

static int encode_table(struct encoder *e, int idx)
{
    lua_State *L = e->L;
    enum ipw_value_mark mark = ipw_value_mark(L, idx);
    int rc = 0;

    if (e->depth == MAX_DEPTH || !lua_checkstack(L, 8))
        return ipw_fail(e->err, IPW_ELIMIT, "a table more than %d levels deep", MAX_DEPTH);
    e->depth++;
    ipw_buf_addc(e->out, mark == IPW_MARK_LIST ? '[' : mark == IPW_MARK_ERROR ? '!' : '{');
    lua_pushnil(L);
    while (!rc && lua_next(L, idx)) {
        int top = lua_gettop(L);
        rc = encode(e, top - 1);
        if (!rc) rc = encode(e, top);
        lua_settop(L, top - 1);
    }
    if (rc) lua_settop(L, lua_gettop(L) - 1); /* removes the key */
    ipw_buf_addc(e->out, '}');
    e->depth--;
    return rc;
}

static int encode(struct encoder *e, int idx)
{
    lua_State *L = e->L;
    lua_Integer i;
    lua_Number x;
    size_t n;
    const char *s;

    if (++e->nodes > MAX_NODES) return ipw_fail(e->err, IPW_ELIMIT, "more than a million values");
    switch (lua_type(L, idx)) {
    case LUA_TNIL: return ipw_buf_addc(e->out, 'n');
    case LUA_TBOOLEAN: return ipw_buf_addc(e->out, lua_toboolean(L, idx) ? 'T' : 'F');
    case LUA_TNUMBER:
        ipw_buf_addc(e->out, lua_isinteger(L, idx) ? 'i' : 'd');
        i = lua_tointeger(L, idx);
        x = lua_tonumber(L, idx);
        return ipw_buf_add(e->out, lua_isinteger(L, idx) ? (void *)&i : (void *)&x, 8);
    case LUA_TSTRING:
        s = lua_tolstring(L, idx, &n);
        add_text(e->out, 's', s, n);
        return 0;
    case LUA_TTABLE: return encode_table(e, idx);
    case LUA_TLIGHTUSERDATA:
        if (!lua_touserdata(L, idx)) return ipw_buf_addc(e->out, 'N');
        break;
    case LUA_TUSERDATA:
        s = ipw_value_raw(L, idx, &n);
        if (!s) break;
        add_text(e->out, 'r', s, n);
        return 0;
    default: break;
    }
    return ipw_fail(e->err, IPW_EINVAL, "a %s cannot leave an untrusted script",
                    luaL_typename(L, idx));
}

int ipw_worker_codec_add(lua_State *L, int first, int n, struct ipw_buf *out, struct ipw_err *err)
{
    struct encoder e = {.L = L, .out = out, .err = err};
    int rc = 0;

    if (!lua_checkstack(L, 8)) return ipw_fail(err, IPW_ELIMIT, "the Lua stack is full");
    for (int i = 0; !rc && i < n; i++) rc = encode(&e, first + i);
    if (!rc && out->failed) rc = ipw_fail(err, IPW_ELIMIT, "more than %zu bytes", out->max);
    return rc;
}

/* ---- in ---- */

struct decoder {
    lua_State *L;
    const char *at, *end;
    int depth;
};

static const char *take(struct decoder *d, size_t n)
{
    const char *from = d->at;

    if ((size_t)(d->end - d->at) < n) luaL_error(d->L, "a message is cut short");
    d->at += n;
    return from;
}

static const char *take_text(struct decoder *d, size_t *n)
{
    uint32_t length;

    memcpy(&length, take(d, sizeof length), sizeof length);
    *n = length;
    return take(d, length);
}

static void decode(struct decoder *d);

static void decode_table(struct decoder *d, char tag)
{
    lua_State *L = d->L;

    if (d->depth == MAX_DEPTH) luaL_error(L, "a message is nested too deeply");
    luaL_checkstack(L, 8, "a message is nested too deeply");
    d->depth++;
    lua_newtable(L);
    while (*take(d, 1) != '}') {
        d->at--;
        decode(d);
        if (lua_isnil(L, -1) ||
            (lua_type(L, -1) == LUA_TNUMBER && lua_tonumber(L, -1) != lua_tonumber(L, -1)))
            luaL_error(L, "invalid key in a worker message");
        decode(d);
        lua_rawset(L, -3);
    }
    if (tag == '[') ipw_value_mark_list(L, -1);
    if (tag == '!') ipw_value_mark_error(L, -1);
    d->depth--;
}

static void decode(struct decoder *d)
{
    lua_State *L = d->L;
    char tag = *take(d, 1);
    lua_Integer i;
    lua_Number x;
    size_t n;
    const char *s;

    switch (tag) {
    case 'n': lua_pushnil(L); break;
    case 'T':
    case 'F': lua_pushboolean(L, tag == 'T'); break;
    case 'i':
        memcpy(&i, take(d, sizeof i), sizeof i);
        lua_pushinteger(L, i);
        break;
    case 'd':
        memcpy(&x, take(d, sizeof x), sizeof x);
        lua_pushnumber(L, x);
        break;
    case 's':
        s = take_text(d, &n);
        lua_pushlstring(L, s, n);
        break;
    case 'N': lua_pushlightuserdata(L, NULL); break;
    case 'r':
        s = take_text(d, &n);
        if (!ipw_json_valid(s, n)) luaL_error(L, "invalid JSON in a worker message");
        ipw_value_push_raw(L, s, n, false);
        break;
    case '{':
    case '[':
    case '!': decode_table(d, tag); break;
    default: luaL_error(L, "a message is not understood");
    }
}

int ipw_worker_codec_push(lua_State *L, const char *bytes, size_t n)
{
    struct decoder d = {.L = L, .at = bytes, .end = bytes + n};
    int count = 0;

    while (d.at < d.end) {
        if (count == MAX_VALUES) luaL_error(L, "a message holds too many values");
        luaL_checkstack(L, 4, "a message holds too many values");
        decode(&d);
        count++;
    }
    return count;
}
