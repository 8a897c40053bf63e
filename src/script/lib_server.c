/* io.serve of commands in Lua: an HTTP server (io/server.h) that a command's tasks answer.
 *
 * Requests wait in a list until next() takes them; the tasks that wait in next() get them in their
 * order.  A request that Lua never answers is broken off when the server is closed, at the latest
 * with the state. */
#include <ctype.h>
#include <lauxlib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "io/server.h"
#include "script/fields.h"
#include "script/host.h"
#include "script/lib.h"
#include "script/task.h"
#include "script/value.h"
#include "script/vm.h"

enum { HEADERS_MAX = 64 };
#define BODY_MAX (16 * IPW_MIB)

struct asked { /* a request whose answer is due */
    struct ipw_exchange *x;
    lua_Integer number;
    bool taken;
    struct asked *next;
};

struct next_op {
    struct ipw_op op;
    struct served *served;
    lua_Integer number; /* of the request that it got; 0: none yet, or its client has gone */
    struct next_op *next;
};

struct served {
    struct ipw_server_options options;
    struct ipw_route route;
    struct ipw_server *server;
    char host[64], not_exposed[160];
    struct asked *asked; /* in the order in which they came */
    lua_Integer last;
    struct next_op *waiters; /* those that wait longest first */
};

static void leave(struct next_op *op)
{
    struct next_op **at = &op->served->waiters;

    while (*at && *at != op) at = &(*at)->next;
    if (*at) *at = op->next;
}

/* ---- the server's side ---- */

static void on_request(struct ipw_exchange *x, void *ud)
{
    struct served *s = ud;
    struct asked *a = ipw_calloc(1, sizeof *a), **at = &s->asked;
    struct next_op *op = s->waiters;

    a->x = x;
    a->number = ++s->last;
    ipw_exchange_keep(x, a);
    while (*at) at = &(*at)->next;
    *at = a;
    if (!op) return;
    leave(op);
    op->number = a->number;
    a->taken = true;
    ipw_op_done(&op->op);
}

static void on_over(struct ipw_exchange *x, bool sent, void *ud)
{
    struct asked *a = ipw_exchange_own(x);
    struct served *s = ud;

    (void)sent;
    for (struct asked **at = &s->asked; *at; at = &(*at)->next) {
        if (*at != a) continue;
        *at = a->next;
        break;
    }
    free(a);
}

/* ---- next ---- */

static void put_header(const char *name, const char *value, void *ud)
{
    lua_State *L = ud;
    char low[128];
    size_t n = 0;

    for (; name[n] && n < sizeof low - 1; n++) low[n] = (char)tolower((unsigned char)name[n]);
    low[n] = '\0';
    if (lua_getfield(L, -1, low) == LUA_TSTRING) { /* several of one name are a list */
        lua_pushfstring(L, "%s, %s", lua_tostring(L, -1), value);
        lua_replace(L, -2);
    } else {
        lua_pop(L, 1);
        lua_pushstring(L, value);
    }
    lua_setfield(L, -2, low);
}

static void set_text(lua_State *L, const char *name, const char *text)
{
    lua_pushstring(L, text);
    lua_setfield(L, -2, name);
}

static int push_request(lua_State *L, const struct asked *a)
{
    size_t n;
    const char *body = ipw_exchange_body(a->x, &n);

    lua_createtable(L, 0, 8);
    lua_pushinteger(L, a->number);
    lua_setfield(L, -2, "number");
    set_text(L, "method", ipw_exchange_method(a->x));
    set_text(L, "path", ipw_exchange_path(a->x));
    set_text(L, "target", ipw_exchange_target(a->x));
    lua_pushlstring(L, body, n);
    lua_setfield(L, -2, "body");
    lua_pushboolean(L, ipw_exchange_is_near(a->x));
    lua_setfield(L, -2, "near");
    lua_newtable(L);
    ipw_exchange_headers(a->x, put_header, L);
    lua_setfield(L, -2, "headers");
    return 1;
}

static void next_cancel(struct ipw_op *base) { leave((struct next_op *)base); }

static int next_finish(lua_State *L, struct ipw_op *base)
{
    struct next_op *op = (struct next_op *)base, **at;

    /* Its client may have gone since: then the list does not have it any more. */
    for (const struct asked *a = op->served->asked; a; a = a->next)
        if (a->number == op->number) return push_request(L, a);
    op->number = 0;
    op->op.done = false;
    for (at = &op->served->waiters; *at; at = &(*at)->next) continue;
    *at = op;
    op->next = NULL;
    return ipw_op_again(L, base);
}

static struct served *served_of(lua_State *L)
{
    struct served *s = luaL_checkudata(L, 1, "ipw.command.server");

    if (!s->server) luaL_error(L, "the server is closed");
    return s;
}

/* server:next(): the next request, as a table; waits for it. [0, +1, e] */
static int server_next(lua_State *L)
{
    struct served *s = served_of(L);
    struct asked *a = s->asked;
    struct next_op *op, **at;

    while (a && a->taken) a = a->next;
    if (a) {
        a->taken = true;
        return push_request(L, a);
    }
    op = ipw_op_new(L, sizeof *op, next_cancel, next_finish, NULL);
    op->served = s;
    for (at = &s->waiters; *at; at = &(*at)->next) continue;
    *at = op;
    return ipw_op_await(L);
}

/* ---- answer ---- */

/* server:answer(request, status, headers, body): true; or false if the client has gone.
 * [0, +1, e] */
static int server_answer(lua_State *L)
{
    struct served *s = served_of(L);
    const struct asked *a = s->asked;
    int status = (int)luaL_checkinteger(L, 3);
    lua_Integer number;
    const char *body;
    size_t n;

    lua_settop(L, 5);
    luaL_checktype(L, 2, LUA_TTABLE);
    lua_getfield(L, 2, "number");
    number = lua_tointeger(L, -1);
    luaL_argcheck(L, status >= 200 && status <= 599, 3, "a status from 200 to 599");
    body = luaL_optlstring(L, 5, "", &n);
    if (!lua_isnoneornil(L, 4)) luaL_checktype(L, 4, LUA_TTABLE);
    while (a && a->number != number) a = a->next;
    if (a && ipw_exchange_is_answered(a->x)) return luaL_error(L, "the request has an answer");
    for (lua_pushnil(L); a && lua_istable(L, 4) && lua_next(L, 4); lua_pop(L, 1)) {
        luaL_argcheck(L, lua_type(L, -2) == LUA_TSTRING && lua_isstring(L, -1), 4,
                      "names and values are texts");
        luaL_argcheck(L, ipw_answer_header(a->x, lua_tostring(L, -2), lua_tostring(L, -1)), 4,
                      "not a header");
    }
    if (a) ipw_answer(a->x, status, NULL, body, n);
    lua_pushboolean(L, a != NULL);
    return 1;
}

/* ---- opening ---- */

static int server_close(lua_State *L)
{
    struct served *s = luaL_checkudata(L, 1, "ipw.command.server");

    ipw_server_close(s->server);
    s->server = NULL;
    return 0;
}

static int server_url(lua_State *L)
{
    lua_pushstring(L, ipw_server_url(served_of(L)->server));
    return 1;
}

/* serve{address=, expose=, not_exposed=}: a server, which answers from now on; raises if the
 * address is none, not allowed, or taken. [-0, +1, e] */
int ipw_lib_serve(lua_State *L)
{
    static const char *const known[] = {"address", "expose", "not_exposed", NULL};
    static const luaL_Reg methods[] = {{"next", server_next},
                                       {"answer", server_answer},
                                       {"close", server_close},
                                       {"url", server_url},
                                       {NULL, NULL}};
    const char *address, *remark;
    struct ipw_err err;
    struct served *s;
    int rc;

    ipw_fields_take(L, 1, "io.serve", known, false);
    address = ipw_fields_text(L, 1, "io.serve", "address", NULL);
    if (!address) address = "127.0.0.1:0";
    remark = ipw_fields_text(L, 1, "io.serve", "not_exposed", NULL);
    s = ipw_value_push_box(L, sizeof *s, "ipw.command.server", server_close);
    if (luaL_getmetafield(L, -1, "__index") == LUA_TNIL) {
        lua_getmetatable(L, -1);
        luaL_newlib(L, methods);
        lua_setfield(L, -2, "__index");
    }
    lua_pop(L, 1);
    snprintf(s->not_exposed, sizeof s->not_exposed, "%s", remark ? remark : "");
    lua_getfield(L, 1, "expose");
    s->route =
        (struct ipw_route){.body_most = BODY_MAX, .answer = on_request, .over = on_over, .ud = s};
    s->options = (struct ipw_server_options){.routes = &s->route,
                                             .n_routes = 1,
                                             .host = s->host,
                                             .expose = lua_toboolean(L, -1),
                                             .not_exposed = remark ? s->not_exposed : NULL,
                                             .connections = 256,
                                             .stays = true};
    lua_pop(L, 1);
    rc = ipw_server_address(s->host, sizeof s->host, &s->options.port, address, &err);
    if (!rc) rc = ipw_server_open(&s->server, &s->options, &err);
    if (!rc) rc = ipw_server_attach(s->server, ipw_vm_host(L)->loop, &err);
    if (!rc) return 1;
    ipw_err_prefix(&err, "--listen %s", address);
    ipw_value_push_error(L, ipw_code_name(err.code), err.text, false);
    return lua_error(L);
}
