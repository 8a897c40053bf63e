/* ipw.core.workload: the requests of a workload replay (lua/ipw/workload.lua sends them). */
#include <lauxlib.h>
#include <string.h>

#include "json/json.h"
#include "script/host.h"
#include "script/lib.h"
#include "script/value.h"
#include "script/vm.h"
#include "trace/workload.h"
#include "trace/workload_prompt.h"

enum { MAX_PROMPT_BYTES = 64 * 1024 * 1024 };

void ipw_host_workload_prompt(struct ipw_host_workload *seat)
{
    ipw_buf_init(&seat->prompt, MAX_PROMPT_BYTES);
    ipw_workload_prompt(&seat->prompt, &seat->query->turn,
                        seat->seed * 4096 + (uint64_t)seat->query->n_read - 1);
}

static struct ipw_host_workload *seat_of(lua_State *L)
{
    struct ipw_host *host = ipw_vm_host(L);

    if (!host || !host->workload)
        luaL_error(L, "this agent is run by: ipw-agent replay RUN --mode workload");
    return host->workload;
}

static void push_messages(lua_State *L, struct ipw_host_workload *seat)
{
    const struct ipw_workload_turn *turn = &seat->query->turn;
    size_t n = turn->n_messages;

    lua_createtable(L, (int)(n ? n : 1), 0);
    for (size_t i = 0; i < n; i++) {
        ipw_value_push_raw(L, turn->messages[i], strlen(turn->messages[i]), false);
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    if (!n) { /* only its length is known */
        if (!seat->prompt.len) ipw_host_workload_prompt(seat);
        if (seat->prompt.failed) luaL_error(L, "a prompt is larger than 64 MiB");
        ipw_value_push_raw(L, ipw_buf_str(&seat->prompt), seat->prompt.len, false);
        ipw_buf_release(&seat->prompt);
        lua_rawseti(L, -2, 1);
    }
}

/* Sets the time at which the current request is due. */
static void set_due(struct ipw_host *host, struct ipw_host_workload *seat)
{
    const struct ipw_workload_turn *turn = &seat->query->turn;
    bool first = seat->query->n_read == 1;
    int64_t before = first ? host->start_ns : seat->end_ns;
    int64_t at = seat->zero_ns + (int64_t)((double)turn->at_ns / seat->speed);

    seat->late_ns = 0;
    if (!seat->open) {
        seat->due_ns = before + (int64_t)((double)turn->gap_ns / seat->speed);
    } else if (!first && before > at) { /* the reply before it came too late for the schedule */
        seat->due_ns = before;
        seat->late_ns = before - at;
    } else {
        seat->due_ns = at;
    }
}

/* request(): the next request as llm.chat takes it; nil: there are no more.  llm.chat sends it when
 * it is due. [0, +1, e] */
static int workload_request(lua_State *L)
{
    struct ipw_host *host = ipw_vm_host(L);
    struct ipw_host_workload *seat = seat_of(L);
    const struct ipw_workload_turn *turn = &seat->query->turn;
    struct ipw_json *rest = NULL;
    struct ipw_err err;
    bool force;

    seat->due_ns = 0;
    /* The first request was read before, so that it is ready when it is due. */
    if (seat->started) {
        int rc = ipw_workload_next(seat->query, &err);

        if (rc < 0) return luaL_error(L, "%s", err.text);
        if (!rc) return 0;
    }
    seat->started = true;
    force = seat->force && turn->output_tokens > 0;
    lua_createtable(L, 0, 4);
    push_messages(L, seat);
    lua_setfield(L, -2, "messages");
    if (turn->output_tokens > 0) {
        lua_pushinteger(L, turn->output_tokens);
        lua_setfield(L, -2, force ? "force_output_tokens" : "max_tokens");
    }
    if (turn->rest && ipw_json_parse(&rest, turn->rest, strlen(turn->rest), NULL, NULL) == 0) {
        ipw_value_push(L, rest);
        ipw_json_free(rest);
        if (force) { /* either ends a reply before its length */
            lua_pushnil(L);
            lua_setfield(L, -2, "stop");
            lua_pushnil(L);
            lua_setfield(L, -2, "response_format");
        }
        lua_setfield(L, -2, "extra");
    }
    set_due(host, seat);
    return 1;
}

int ipw_lib_workload(lua_State *L)
{
    static const luaL_Reg functions[] = {{"request", workload_request}, {NULL, NULL}};

    luaL_newlib(L, functions);
    return 1;
}
