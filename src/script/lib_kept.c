/* ipw.core.kept: the MCP servers that all queries of a run share. */
#include <lauxlib.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "script/host.h"
#include "script/lib.h"
#include "script/task.h"
#include "script/tool_call.h"
#include "script/vm.h"

struct ask_op {
    struct ipw_op op;
    const struct ipw_host_kept *kept;
    void *call;   /* NULL: it is over */
    char *answer; /* NULL: */
    struct ipw_err err;
    size_t n;
};

static void asked(void *ud, const char *answer, size_t n, const struct ipw_err *err)
{
    struct ask_op *op = ud;

    op->call = NULL;
    op->answer = answer ? ipw_memdup(answer, n) : NULL;
    op->n = n;
    if (err) op->err = *err;
    ipw_op_done(&op->op);
}

static void ask_cancel(struct ipw_op *base)
{
    struct ask_op *op = (struct ask_op *)base;

    if (op->call) op->kept->cancel(op->call);
    op->call = NULL;
}

static void ask_release(struct ipw_op *base) { free(((struct ask_op *)base)->answer); }

static int ask_finish(lua_State *L, struct ipw_op *base)
{
    const struct ask_op *op = (const struct ask_op *)base;

    if (!op->answer) return luaL_error(L, "%s", op->err.text);
    lua_pushlstring(L, op->answer, op->n);
    return 1;
}

static const struct ipw_host_kept *kept_of(lua_State *L)
{
    const struct ipw_host *host = ipw_vm_host(L);

    return host ? host->grants.kept : NULL;
}

/* has(number): whether the run's queries share this server. [-1, +1, e] */
static int kept_has(lua_State *L)
{
    lua_Integer number = luaL_checkinteger(L, 1);
    const struct ipw_host_kept *kept = kept_of(L);

    lua_pushboolean(L, kept && number > 0 && kept->has(kept->ud, (size_t)number));
    return 1;
}

/* ask(number, request): the answer of lua/ipw/mcp_kept.lua. [-2, +1, e] */
static int kept_ask(lua_State *L)
{
    size_t number = (size_t)luaL_checkinteger(L, 1), n;
    const char *request = luaL_checklstring(L, 2, &n);
    const struct ipw_host_kept *kept = kept_of(L);
    struct ask_op *op;

    luaL_argcheck(L, kept && kept->has(kept->ud, number), 1, "no such server is kept");
    op = ipw_op_new(L, sizeof *op, ask_cancel, ask_finish, ask_release);
    op->kept = kept;
    op->call = kept->ask(kept->ud, number, request, n, asked, op);
    return ipw_op_await(L);
}

/* stays(): the tool call that runs talked to a process. [0, 0, e] */
static int kept_stays(lua_State *L)
{
    ipw_tool_call_child_stays(ipw_vm_of(L));
    return 0;
}

int ipw_lib_kept(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"has", kept_has}, {"ask", kept_ask}, {"stays", kept_stays}, {NULL, NULL}};

    luaL_newlib(L, functions);
    return 1;
}
