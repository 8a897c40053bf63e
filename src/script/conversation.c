#include "script/conversation.h"

#include <lauxlib.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "script/value.h"

enum { MAX_BYTES = 64 * 1024 * 1024 };

static uint64_t mix(uint64_t h, uint64_t word)
{
    h = (h ^ word) * 0xD6E8FEB86659FD93ULL;
    return h ^ h >> 32;
}

/* Eight bytes at a time. */
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

static int encode_message(lua_State *L, struct ipw_conversation *c, struct ipw_err *err)
{
    struct ipw_conversation_message *m = &c->messages[c->n];
    size_t start;
    int rc;

    if (c->n) ipw_buf_addc(&c->text, ',');
    start = c->text.len;
    if (!lua_istable(L, -1) && lua_type(L, -1) != LUA_TUSERDATA) /* json.raw */
        return ipw_fail(err, IPW_EINVAL, "messages[%zu]: expected a message, got %s", c->n + 1,
                        luaL_typename(L, -1));
    rc = ipw_value_encode(L, -1, &c->text, err);
    if (rc) {
        struct ipw_err inner = *err;
        bool path = inner.text[0] == '.' || inner.text[0] == '[';
        return ipw_fail(err, (enum ipw_code)rc, "messages[%zu]%s%.500s", c->n + 1, path ? "" : ": ",
                        inner.text);
    }
    m->end = c->text.len;
    m->hash = hash_text(c->text.data + start, c->text.len - start);
    c->n++;
    return 0;
}

int ipw_conversation_take(struct ipw_conversation *c, lua_State *L, int idx, struct ipw_err *err)
{
    size_t n = lua_rawlen(L, idx);
    int rc = 0;

    idx = lua_absindex(L, idx);
    ipw_buf_init(&c->text, MAX_BYTES);
    c->messages = ipw_calloc(n, sizeof *c->messages);
    while (c->n < n && rc == 0) {
        lua_rawgeti(L, idx, (lua_Integer)c->n + 1);
        rc = encode_message(L, c, err);
        lua_pop(L, 1);
    }
    ipw_buf_fit(&c->text);
    return rc;
}

size_t ipw_conversation_start(const struct ipw_conversation *c, size_t i)
{
    if (i == 0) return 0;
    return i < c->n ? c->messages[i - 1].end + 1 : c->messages[c->n - 1].end;
}

void ipw_conversation_release(struct ipw_conversation *c)
{
    ipw_buf_release(&c->text);
    free(c->messages);
    *c = (struct ipw_conversation){0};
}
