#include "script/message.h"

#include <lauxlib.h>
#include <string.h>

#include "json/write.h"
#include "script/value.h"

enum { MAX_BYTES = 64 * 1024 * 1024, KEPT_BYTES = 64 * 1024 };

/* Texts are written here, and small room is kept for the next one: an error while Lua copies the
 * bytes leaks nothing.  Lua runs in one thread. */
static struct ipw_buf clean = IPW_BUF(3 * (size_t)MAX_BYTES), sealed = IPW_BUF(MAX_BYTES);

/* ---- the script's own ---- */

/* {role=, content=the value at the top}. [-1, +1, m] */
static int push_plain(lua_State *L, const char *role)
{
    lua_createtable(L, 0, 2);
    lua_insert(L, -2);
    lua_setfield(L, -2, "content");
    lua_pushstring(L, role);
    lua_setfield(L, -2, "role");
    return 1;
}

int ipw_message_system(lua_State *L)
{
    lua_settop(L, 1);
    return push_plain(L, "system");
}

int ipw_message_assistant(lua_State *L)
{
    lua_settop(L, 1);
    return push_plain(L, "assistant");
}

int ipw_message_user(lua_State *L)
{
    lua_settop(L, 1);
    if (lua_istable(L, 1)) {
        ipw_value_push_function(L, "ipw.parts", "list");
        lua_pushvalue(L, 1);
        lua_call(L, 1, 1);
    }
    return push_plain(L, "user");
}

/* ---- the reply ---- */

static void push_text(lua_State *L, const char *name, const char *s, size_t n)
{
    lua_pushlstring(L, s, n);
    lua_setfield(L, -2, name);
}

static void push_count(lua_State *L, const char *name, int64_t count)
{
    if (count < 0) return;
    lua_pushinteger(L, count);
    lua_setfield(L, -2, name);
}

/* Call i has clean arguments after this; in the list at `calls` it is marked if they are no JSON
 * object. [0, 0, m] */
static void clean_arguments(lua_State *L, const struct ipw_chat_reply *reply, size_t i, int calls)
{
    ipw_buf_clear(&clean);
    if (ipw_chat_history_arguments(&clean, &reply->calls[i])) return;
    lua_rawgeti(L, calls, (lua_Integer)i + 1);
    lua_pushboolean(L, true);
    lua_setfield(L, -2, "broken");
    lua_pop(L, 1);
}

static bool has_content(const struct ipw_chat_reply *reply)
{
    return reply->text.len || !reply->n_calls;
}

/* The assistant message for the history, and in each call of the list at `calls` whether its
 * arguments were replaced. [0, 1, m] */
static void push_message(lua_State *L, const struct ipw_chat_reply *reply, int calls)
{
    lua_createtable(L, 0, 3);
    lua_pushliteral(L, "assistant");
    lua_setfield(L, -2, "role");
    if (has_content(reply))
        lua_pushlstring(L, ipw_buf_str(&reply->text), reply->text.len);
    else
        lua_pushlightuserdata(L, NULL);
    lua_setfield(L, -2, "content");
    if (!reply->n_calls) return;
    lua_createtable(L, (int)reply->n_calls, 0);
    for (size_t i = 0; i < reply->n_calls; i++) {
        const struct ipw_chat_call *call = &reply->calls[i];
        const char *name = ipw_chat_history_name(call);

        clean_arguments(L, reply, i, calls);
        lua_createtable(L, 0, 3); // message calls call
        push_text(L, "id", call->id, strlen(call->id));
        push_text(L, "type", "function", 8);
        lua_createtable(L, 0, 2);
        push_text(L, "name", name, strlen(name));
        push_text(L, "arguments", ipw_buf_str(&clean), clean.len);
        lua_setfield(L, -2, "function");
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    lua_setfield(L, -2, "tool_calls");
}

/* The same as the JSON that json.seal() makes of it. [0, 1, e] */
static void push_sealed_message(lua_State *L, const struct ipw_chat_reply *reply, int calls)
{
    struct ipw_jw w;

    ipw_buf_clear(&sealed);
    ipw_jw_init(&w, &sealed);
    ipw_jw_obj(&w);
    ipw_jw_key(&w, "content");
    if (has_content(reply))
        ipw_jw_strn(&w, ipw_buf_str(&reply->text), reply->text.len);
    else
        ipw_jw_null(&w);
    ipw_jw_kstr(&w, "role", "assistant");
    if (reply->n_calls) {
        ipw_jw_key(&w, "tool_calls");
        ipw_jw_arr(&w);
    }
    for (size_t i = 0; i < reply->n_calls; i++) {
        const struct ipw_chat_call *call = &reply->calls[i];

        clean_arguments(L, reply, i, calls);
        ipw_jw_obj(&w);
        ipw_jw_key(&w, "function");
        ipw_jw_obj(&w);
        ipw_jw_key(&w, "arguments");
        ipw_jw_strn(&w, ipw_buf_str(&clean), clean.len);
        ipw_jw_kstr(&w, "name", ipw_chat_history_name(call));
        ipw_jw_obj_end(&w);
        ipw_jw_kstr(&w, "id", call->id);
        ipw_jw_kstr(&w, "type", "function");
        ipw_jw_obj_end(&w);
    }
    if (reply->n_calls) ipw_jw_arr_end(&w);
    ipw_jw_obj_end(&w);
    if (sealed.failed) luaL_error(L, "llm.chat: the reply is larger than 64 MiB");
    ipw_value_push_raw(L, ipw_buf_str(&sealed), sealed.len, false);
}

void ipw_message_push_reply(lua_State *L, const struct ipw_chat_reply *reply, bool seal)
{
    lua_createtable(L, 0, 8);
    push_text(L, "text", ipw_buf_str(&reply->text), reply->text.len);
    push_text(L, "reasoning", ipw_buf_str(&reply->reasoning), reply->reasoning.len);
    lua_createtable(L, (int)reply->n_calls, 0);
    for (size_t i = 0; i < reply->n_calls; i++) {
        const struct ipw_chat_call *call = &reply->calls[i];
        lua_createtable(L, 0, 3);
        push_text(L, "id", call->id, strlen(call->id));
        push_text(L, "name", call->name ? call->name : "", call->name ? strlen(call->name) : 0);
        push_text(L, "arguments", ipw_buf_str(&call->arguments), call->arguments.len);
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    if (seal) // reply calls
        push_sealed_message(L, reply, lua_gettop(L));
    else
        push_message(L, reply, lua_gettop(L));
    lua_setfield(L, -3, "message");
    lua_setfield(L, -2, "calls");
    lua_pushstring(L, reply->finish_word ? reply->finish_word : "");
    lua_setfield(L, -2, "finish");
    if (reply->model) push_text(L, "model", reply->model, strlen(reply->model));
    lua_pushboolean(L, reply->arrivals.len > 0);
    lua_setfield(L, -2, "streamed");
    lua_createtable(L, 0, 4);
    push_count(L, "input", reply->usage.prompt);
    push_count(L, "output", reply->usage.completion);
    push_count(L, "cached", reply->usage.cached);
    push_count(L, "reasoning", reply->usage.reasoning);
    lua_setfield(L, -2, "usage");
    if (clean.cap > KEPT_BYTES) ipw_buf_release(&clean);
    if (sealed.cap > KEPT_BYTES) ipw_buf_release(&sealed);
}
