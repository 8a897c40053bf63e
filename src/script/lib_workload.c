/* ipw.core.workload: the requests of a workload replay (lua/ipw/workload.lua sends them). */
#include <lauxlib.h>
#include <string.h>

#include "base/clock.h"
#include "script/host.h"
#include "script/lib.h"
#include "script/task.h"
#include "script/value.h"
#include "script/vm_state.h"
#include "trace/workload.h"
#include "json/json.h"

enum { MAX_PROMPT_BYTES = 64 * 1024 * 1024 };

static struct ipw_host_workload *seat_of(lua_State *L)
{
    struct ipw_host *host = ipw_host_of(L);

    if (!host || !host->workload)
        luaL_error(L, "this agent is run by: ipw-agent replay RUN --mode workload");
    return host->workload;
}

static const struct ipw_workload_turn *turn_of(lua_State *L, struct ipw_host_workload *seat)
{
    lua_Integer k = luaL_checkinteger(L, 1);

    luaL_argcheck(L, k >= 1 && (size_t)k <= seat->query->n, 1, "is no request of this query");
    return &seat->query->turns[k - 1];
}

/* turns(): how many requests there are. [0, +1, e] */
static int workload_turns(lua_State *L)
{
    lua_pushinteger(L, (lua_Integer)seat_of(L)->query->n);
    return 1;
}

static void push_messages(lua_State *L, const struct ipw_host_workload *seat,
                          const struct ipw_workload_turn *turn)
{
    size_t n = turn->n_messages;

    lua_createtable(L, (int)(n ? n : 1), 0);
    for (size_t i = 0; i < n; i++) {
        ipw_value_push_raw(L, turn->messages[i], strlen(turn->messages[i]));
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    if (!n) { /* only its length is known */
        struct ipw_buf text = IPW_BUF(MAX_PROMPT_BYTES);

        ipw_workload_prompt(&text, turn, seat->seed * 4096 + (uint64_t)(turn - seat->query->turns));
        ipw_value_push_raw(L, ipw_buf_str(&text), text.len);
        ipw_buf_release(&text);
        lua_rawseti(L, -2, 1);
    }
}

/* request(k): what llm.chat takes. [-1, +1, e] */
static int workload_request(lua_State *L)
{
    struct ipw_host_workload *seat = seat_of(L);
    const struct ipw_workload_turn *turn = turn_of(L, seat);
    bool force = seat->force && turn->output_tokens > 0;
    struct ipw_json *rest = NULL;

    lua_createtable(L, 0, 4);
    push_messages(L, seat, turn);
    lua_setfield(L, -2, "messages");
    if (turn->output_tokens > 0) {
        lua_pushinteger(L, turn->output_tokens);
        lua_setfield(L, -2, force ? "force_output_tokens" : "max_tokens");
    }
    if (turn->rest && ipw_json_parse(&rest, turn->rest, strlen(turn->rest), NULL, NULL) == 0) {
        ipw_value_push(L, rest);
        ipw_json_free(rest);
        if (force) { /* either would end a reply before its length */
            lua_pushnil(L);
            lua_setfield(L, -2, "stop");
            lua_pushnil(L);
            lua_setfield(L, -2, "response_format");
        }
        lua_setfield(L, -2, "extra");
    }
    return 1;
}

/* ---- wait ---- */

struct wait_op {
    struct ipw_op op;
    struct ipw_timer *timer;
};

static void wait_over(void *ud)
{
    struct wait_op *op = ud;

    op->timer = NULL;
    ipw_op_done(&op->op);
}

static void wait_cancel(struct ipw_op *base)
{
    struct wait_op *op = (struct wait_op *)base;

    ipw_timer_cancel(op->timer);
    op->timer = NULL;
}

static int wait_finish(lua_State *L, struct ipw_op *base)
{
    (void)L;
    (void)base;
    return 0;
}

/* When request k is to be sent. */
static int64_t due(struct ipw_host *host, struct ipw_host_workload *seat,
                   const struct ipw_workload_turn *turn)
{
    bool first = turn == seat->query->turns;
    int64_t before = first ? host->start_ns : seat->end_ns;
    int64_t at = seat->zero_ns + (int64_t)((double)turn->at_ns / seat->speed);

    if (!seat->open) return before + (int64_t)((double)turn->gap_ns / seat->speed);
    seat->late = !first && before > at; /* the reply before it came too late for the schedule */
    return seat->late ? before : at;
}

/* wait(k): until request k is due. [-1, 0, e] */
static int workload_wait(lua_State *L)
{
    struct ipw_host *host = ipw_host_of(L);
    struct ipw_host_workload *seat = seat_of(L);
    const struct ipw_workload_turn *turn = turn_of(L, seat);
    int64_t now = ipw_now_ns();
    struct wait_op *op;

    seat->late = false;
    seat->turn = (size_t)(turn - seat->query->turns);
    seat->due_ns = due(host, seat, turn);
    if (seat->due_ns <= now) return 0;
    op = ipw_op_new(L, sizeof *op, wait_cancel, wait_finish, NULL);
    op->timer = ipw_timer_start(host->loop, seat->due_ns - now, wait_over, op);
    return ipw_op_await(L);
}

int ipw_lib_workload(lua_State *L)
{
    static const luaL_Reg functions[] = {{"turns", workload_turns},
                                         {"request", workload_request},
                                         {"wait", workload_wait},
                                         {NULL, NULL}};

    luaL_newlib(L, functions);
    return 1;
}
