/* libFuzzer target for what a worker process sends: it may be in an attacker's hands, and the core
 * decodes it.  Any bytes give values or a Lua error; values that were decoded can be sent again,
 * and what that gives decodes to the same bytes. */
#include <lauxlib.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "script/worker/worker_codec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct text {
    const char *bytes;
    size_t n;
};

static int push(lua_State *L)
{
    const struct text *text = lua_touserdata(L, 1);

    lua_settop(L, 0);
    return ipw_worker_codec_push(L, text->bytes, text->n);
}

/* True: the values of the text are all that is on the stack. */
static bool decoded(lua_State *L, const char *bytes, size_t n)
{
    struct text text = {bytes, n};
    int rc;

    lua_settop(L, 0);
    lua_pushcfunction(L, push);
    lua_pushlightuserdata(L, &text);
    rc = lua_pcall(L, 1, LUA_MULTRET, 0);
    if (rc != LUA_OK && (rc != LUA_ERRRUN || lua_type(L, -1) != LUA_TSTRING)) abort();
    return rc == LUA_OK;
}

/* One value after the other: the order in which a table's members come may differ. */
static size_t encoded(lua_State *L, struct ipw_buf *out)
{
    struct ipw_err err = {0};

    ipw_buf_clear(out);
    if (ipw_worker_codec_add(L, 1, lua_gettop(L), out, &err)) abort();
    return out->len;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ipw_buf first = IPW_BUF(IPW_WORKER_CODEC_MAX), second = IPW_BUF(IPW_WORKER_CODEC_MAX);
    char *exact = malloc(size ? size : 1); /* so that reading beyond is seen */
    lua_State *L = luaL_newstate();
    uint32_t call;

    if (size) memcpy(exact, data, size);
    ipw_worker_codec_head(exact, size, &call);
    if (decoded(L, exact, size)) {
        int n = lua_gettop(L);
        size_t length = encoded(L, &first);
        if (!decoded(L, ipw_buf_str(&first), first.len) || lua_gettop(L) != n) abort();
        if (encoded(L, &second) != length) abort();
    }
    lua_close(L);
    ipw_buf_release(&first);
    ipw_buf_release(&second);
    free(exact);
    return 0;
}
