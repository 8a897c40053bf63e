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
        lua_getglobal(L, "require");
        lua_pushliteral(L, "ipw.parts");
        lua_call(L, 1, 1);
        lua_getfield(L, -1, "list");
        lua_pushvalue(L, 1);
        lua_call(L, 1, 1);
    }
    return push_plain(L, "user");
}

int ipw_message_tool(lua_State *L)
{
    lua_settop(L, 2);
    push_plain(L, "tool");
    lua_pushvalue(L, 1);
    lua_setfield(L, -2, "tool_call_id");
    return 1;
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

/* Call i (from 0) of the list has arguments that are no JSON object. [0, 0, m] */
static void mark_broken(lua_State *L, int calls, size_t i)
{
    lua_rawgeti(L, calls, (lua_Integer)i + 1);
    lua_pushboolean(L, true);
    lua_setfield(L, -2, "broken");
    lua_pop(L, 1);
}

/* The arguments of a call in clean, in the form that a strict server accepts; false: they are
 * no JSON object, so {} replaces them. */
static bool clean_arguments(const struct ipw_chat_call *call)
{
    ipw_buf_clear(&clean);
    ipw_chat_history_arguments(&clean, call);
    return strcmp(ipw_buf_str(&clean), "{}") != 0 ||
           strcmp(ipw_buf_str(&call->arguments), "{}") == 0;
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

        if (!clean_arguments(call)) mark_broken(L, calls, i);
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
    struct ipw_buf *out = &sealed;

    ipw_buf_clear(out);
    ipw_buf_adds(out, "{\"content\":");
    if (has_content(reply))
        ipw_json_escape(out, ipw_buf_str(&reply->text), reply->text.len);
    else
        ipw_buf_adds(out, "null");
    ipw_buf_adds(out, ",\"role\":\"assistant\"");
    for (size_t i = 0; i < reply->n_calls; i++) {
        const struct ipw_chat_call *call = &reply->calls[i];
        const char *name = ipw_chat_history_name(call);

        if (!clean_arguments(call)) mark_broken(L, calls, i);
        ipw_buf_adds(out, i ? "," : ",\"tool_calls\":[");
        ipw_buf_adds(out, "{\"function\":{\"arguments\":");
        ipw_json_escape(out, ipw_buf_str(&clean), clean.len);
        ipw_buf_adds(out, ",\"name\":");
        ipw_json_escape(out, name, strlen(name));
        ipw_buf_adds(out, "},\"id\":");
        ipw_json_escape(out, call->id, strlen(call->id));
        ipw_buf_adds(out, ",\"type\":\"function\"}");
    }
    ipw_buf_adds(out, reply->n_calls ? "]}" : "}");
    if (out->failed) luaL_error(L, "llm.chat: the reply is larger than 64 MiB");
    ipw_value_push_raw(L, ipw_buf_str(out), out->len, false);
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
    lua_createtable(L, 0, 4);
    push_count(L, "input", reply->usage.prompt);
    push_count(L, "output", reply->usage.completion);
    push_count(L, "cached", reply->usage.cached);
    push_count(L, "reasoning", reply->usage.reasoning);
    lua_setfield(L, -2, "usage");
    if (clean.cap > KEPT_BYTES) ipw_buf_release(&clean);
    if (sealed.cap > KEPT_BYTES) ipw_buf_release(&sealed);
}
