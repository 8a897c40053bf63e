#include "script/conversation.h"

#include <lauxlib.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "script/value.h"

enum {
    MAX_BYTES = 64 * 1024 * 1024,
    MAX_DEPTH = 32, /* a message that is nested deeper has no fingerprint */
    SHORT = 40,     /* bytes of a string that many messages may have */
    MANY = 12,      /* messages; to encode fewer again costs less than to look for changes */
    MAX_IDLE = 4,   /* conversations that wait for the next request */
};

/* ---- fingerprints ---- */

static uint64_t mix(uint64_t h, uint64_t word)
{
    h = (h ^ word) * 0xD6E8FEB86659FD93ULL;
    return h ^ h >> 32;
}

/* Of a message's JSON: eight bytes at a time. */
static uint64_t hash_text(const char *s, size_t n)
{
    uint64_t h = 0x9E3779B97F4A7C15ULL ^ n, w;

    for (; n >= 8; s += 8, n -= 8) {
        memcpy(&w, s, 8);
        h = mix(h, w);
    }
    w = 0;
    memcpy(&w, s, n);
    return mix(h, w);
}

/* Mixes the value at the top of the stack into *h; false: it has no fingerprint. [0, 0, -] */
static bool mix_value(lua_State *L, uint64_t *h, int depth);

/* All keys and values in the order of lua_next(), which is the same for an unchanged table.  The
 * table's own address does not count: an equal copy is encoded to the same text. */
static bool mix_table(lua_State *L, uint64_t *h, int depth)
{
    int table = lua_gettop(L);
    bool empty = true;

    if (depth == MAX_DEPTH) return false;
    *h = mix(*h, '{');
    lua_pushnil(L);
    while (lua_next(L, table)) { // table key value
        bool known = true;

        if (lua_type(L, -2) == LUA_TSTRING)
            *h = mix(*h, (uintptr_t)lua_topointer(L, -2));
        else if (lua_isinteger(L, -2))
            *h = mix(*h + '#', (uint64_t)lua_tointeger(L, -2));
        else
            known = false;
        if (!known || !mix_value(L, h, depth + 1)) {
            lua_settop(L, table);
            return false;
        }
        lua_settop(L, table + 1);
        empty = false;
    }
    if (empty && ipw_value_mark(L, table) == IPW_MARK_LIST) *h = mix(*h, '[');
    *h = mix(*h, '}');
    return true;
}

static bool mix_value(lua_State *L, uint64_t *h, int depth)
{
    lua_Number number;
    uint64_t word;

    switch (lua_type(L, -1)) {
    case LUA_TSTRING:
    case LUA_TUSERDATA: *h = mix(*h + 's', (uintptr_t)lua_topointer(L, -1)); return true;
    case LUA_TTABLE: return mix_table(L, h, depth);
    case LUA_TBOOLEAN: *h = mix(*h + 'b', (uint64_t)lua_toboolean(L, -1)); return true;
    case LUA_TLIGHTUSERDATA: *h = mix(*h + 'n', (uintptr_t)lua_touserdata(L, -1)); return true;
    case LUA_TNUMBER:
        if (lua_isinteger(L, -1)) {
            *h = mix(*h + 'i', (uint64_t)lua_tointeger(L, -1));
            return true;
        }
        number = lua_tonumber(L, -1);
        memcpy(&word, &number, sizeof word);
        *h = mix(*h + 'f', word);
        return true;
    default: return false;
    }
}

/* Keeps the value at the top alive, and everything in it that counts by its address, in the table
 * at `pins`: short strings as keys, because many messages have the same; all others in a list whose
 * length is *n, so that they can go with their message. [0, 0, m] */
static void pin(lua_State *L, int pins, size_t *n)
{
    int type = lua_type(L, -1), table = lua_gettop(L);

    if (type == LUA_TSTRING && lua_rawlen(L, -1) <= SHORT) {
        lua_pushvalue(L, -1);
        lua_pushboolean(L, 1);
        lua_rawset(L, pins);
    } else if (type == LUA_TSTRING || type == LUA_TUSERDATA) {
        lua_pushvalue(L, -1);
        lua_rawseti(L, pins, (lua_Integer)++ * n);
    } else if (type == LUA_TTABLE) { /* mix_table() was here before: it is not too deep */
        lua_pushnil(L);
        while (lua_next(L, table)) {
            pin(L, pins, n);
            lua_pop(L, 1);
            if (lua_type(L, -1) == LUA_TSTRING) pin(L, pins, n);
        }
    }
}

/* ---- one of the state's conversations ---- */

size_t ipw_conversation_start(const struct ipw_conversation *c, size_t i)
{
    if (i == 0) return 0;
    return i < c->n ? c->messages[i - 1].end + 1 : c->messages[c->n - 1].end;
}

static size_t count_same(const struct ipw_conversation *c, const uint64_t *fingerprints, size_t n)
{
    size_t i = 0;

    while (i < n && i < c->n && fingerprints[i] && c->messages[i].fingerprint == fingerprints[i])
        i++;
    return i;
}

/* The free conversation that has most of the messages.  If more than half of its texts would be
 * lost, it is left to the branch that talks there, while there are few. */
static struct ipw_conversation *choose(struct ipw_conversation **all, const uint64_t *fingerprints,
                                       size_t n, size_t *same)
{
    struct ipw_conversation *best = NULL;
    size_t idle = 0;

    *same = 0;
    for (struct ipw_conversation *c = *all; c; c = c->next) {
        size_t s;

        if (c->taken) continue;
        idle++;
        s = count_same(c, fingerprints, n);
        if (best && (s < *same || (s == *same && c->n >= best->n))) continue;
        best = c;
        *same = s;
    }
    if (best && (best->n < MANY || best->n <= 2 * *same || idle >= MAX_IDLE)) return best;
    best = ipw_calloc(1, sizeof *best);
    ipw_buf_init(&best->text, MAX_BYTES);
    best->next = *all;
    *all = best;
    *same = 0;
    return best;
}

static void forget(struct ipw_conversation *c)
{
    ipw_buf_release(&c->text);
    c->n = 0;
}

static int encode_message(lua_State *L, struct ipw_conversation *c, size_t i, struct ipw_err *err)
{
    struct ipw_conversation_message *m = &c->messages[i];
    size_t start;
    int rc;

    if (i) ipw_buf_addc(&c->text, ',');
    start = c->text.len;
    if (!lua_istable(L, -1) && lua_type(L, -1) != LUA_TUSERDATA) /* json.raw */
        return ipw_fail(err, IPW_EINVAL, "messages[%zu]: expected a message, got %s", i + 1,
                        luaL_typename(L, -1));
    rc = ipw_value_encode(L, -1, &c->text, err);
    if (rc) {
        struct ipw_err inner = *err;
        bool path = inner.text[0] == '.' || inner.text[0] == '[';
        return ipw_fail(err, (enum ipw_code)rc, "messages[%zu]%s%.500s", i + 1, path ? "" : ": ",
                        inner.text);
    }
    m->end = c->text.len;
    m->hash = hash_text(c->text.data + start, c->text.len - start);
    return 0;
}

/* The list of what is kept alive for the conversation. [0, 1, m] */
static void push_pins(lua_State *L, const struct ipw_conversation *c)
{
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, c) == LUA_TTABLE) return;
    lua_pop(L, 1);
    lua_createtable(L, 4, 0);
    lua_pushvalue(L, -1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, c);
}

/* Those of messages that are no longer there. [0, 0, -] */
static void unpin(lua_State *L, int pins, size_t n)
{
    for (lua_Unsigned i = lua_rawlen(L, pins); i > n; i--) {
        lua_pushnil(L);
        lua_rawseti(L, pins, (lua_Integer)i);
    }
}

int ipw_conversation_take(struct ipw_conversation **out, struct ipw_conversation **all,
                          lua_State *L, int idx, struct ipw_err *err)
{
    size_t n = lua_rawlen(L, idx), same, n_pins;
    uint64_t *fingerprints = ipw_calloc(n, sizeof *fingerprints);
    struct ipw_conversation *c;
    int top = lua_gettop(L), rc = 0;
    /* Only for fingerprints: a stack stays as large while its query waits. */
    bool room = n >= MANY && lua_checkstack(L, 3 * MAX_DEPTH + 16);

    idx = lua_absindex(L, idx);
    for (size_t i = 0; i < n && room; i++) {
        uint64_t h = 1;

        lua_rawgeti(L, idx, (lua_Integer)i + 1);
        if (mix_value(L, &h, 0)) fingerprints[i] = h;
        lua_settop(L, top);
    }
    c = choose(all, fingerprints, n, &same);
    c->n = same;
    IPW_GROW(c->messages, c->cap, n);
    for (size_t i = same; i < n; i++) c->messages[i].fingerprint = fingerprints[i];
    free(fingerprints);
    ipw_buf_truncate(&c->text, same ? c->messages[same - 1].end : 0);
    n_pins = same ? c->messages[same - 1].pins : 0;
    if (n >= MANY) push_pins(L, c);
    for (size_t i = same; i < n && rc == 0; i++) {
        lua_rawgeti(L, idx, (lua_Integer)i + 1);
        rc = encode_message(L, c, i, err);
        if (rc == 0 && c->messages[i].fingerprint) pin(L, top + 1, &n_pins);
        lua_pop(L, 1);
        c->messages[i].pins = n_pins;
        c->n += rc == 0;
    }
    if (n >= MANY) unpin(L, top + 1, n_pins);
    lua_settop(L, top);
    if (rc) {
        forget(c);
        return rc;
    }
    ipw_buf_fit(&c->text);
    c->taken = true;
    *out = c;
    return 0;
}

bool ipw_conversation_drop_text(struct ipw_conversation *c)
{
    if (c->n >= MANY) return false;
    ipw_buf_release(&c->text);
    return true;
}

void ipw_conversation_give_back(struct ipw_conversation *c)
{
    if (c) c->taken = false;
}

void ipw_conversation_free_all(struct ipw_conversation *first)
{
    while (first) {
        struct ipw_conversation *next = first->next;

        ipw_buf_release(&first->text);
        free(first->messages);
        free(first);
        first = next;
    }
}
