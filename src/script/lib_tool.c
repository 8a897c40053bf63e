/* ipw.core.tool: loads tool files and writes the spans of tool calls. */
#include <lauxlib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"
#include "base/utf8.h"
#include "io/bubblewrap.h"
#include "json/write.h"
#include "llm/playback.h"
#include "script/host.h"
#include "script/lib.h"
#include "script/recorded_effect.h"
#include "script/task.h"
#include "script/tool_call.h"
#include "script/vm.h"

enum { MAX_RECORD_BYTES = 16 * 1024 * 1024, MAX_ERROR_BYTES = 500 };

/* find(name): the path of the tool's file; or nil and a reason. [-1, +(1|2), e] */
static int tool_find(lua_State *L)
{
    return ipw_lib_find_path(L, "agents/tools", luaL_checkstring(L, 1));
}

/* start(name, call_id, arguments, whole): the span's number.  `arguments` is the model's text.
 * `whole`: the tool has a file of its own, so its result is recorded as a whole. [-4, +1, e] */
static int tool_start(lua_State *L)
{
    struct ipw_host *host = ipw_vm_host(L);
    const char *name = luaL_checkstring(L, 1), *id = luaL_optstring(L, 2, NULL);
    size_t n;
    const char *arguments = luaL_optlstring(L, 3, "{}", &n);
    struct ipw_event event = {.kind = IPW_EV_TOOL_START, .t_ns = ipw_now_ns()};
    struct ipw_buf data = IPW_BUF(MAX_RECORD_BYTES);
    struct ipw_jw w;

    if (!lua_isstring(L, 3)) n = 2;
    ipw_jw_init(&w, &data);
    ipw_jw_obj(&w);
    ipw_jw_key(&w, "arguments");
    if (ipw_json_valid(arguments, n))
        ipw_jw_raw(&w, arguments, n);
    else
        ipw_jw_strn(&w, arguments, n);
    ipw_jw_kstr(&w, "call_id", id);
    ipw_jw_obj_end(&w);
    event.span = ipw_host_next_span(host, ipw_task_in_tool(ipw_vm_of(L)));
    event.tool = (struct ipw_tool_facts){.name = name, .call_id = id, .argument_bytes = (int64_t)n};
    ipw_host_emit(host, &event, &data);
    if (!ipw_tool_call_begin(ipw_vm_of(L), event.span)) return luaL_error(L, "not enough memory");
    if (lua_toboolean(L, 4)) ipw_task_enter_tool(ipw_vm_of(L), 1);
    lua_pushinteger(L, event.span);
    return 1;
}

/* The first line of the model's text, without its first word. */
static const char *one_line(struct ipw_buf *out, const char *text)
{
    static const char word[] = "error: ";

    if (strncmp(text, word, strlen(word)) == 0) text += strlen(word);
    ipw_text_printable(out, text, strcspn(text, "\r\n"), MAX_ERROR_BYTES);
    return ipw_buf_str(out);
}

/* ---- a recorded result ---- */

static int push_answer(lua_State *L, struct ipw_host *host, const char *name,
                       const struct ipw_event_line *line)
{
    const struct ipw_json *content = line ? ipw_json_get(line->data, "content") : NULL;

    (void)host, (void)name;
    if (!line) return 0;
    lua_pushstring(L, line->event.tool.outcome ? line->event.tool.outcome : "ok");
    lua_pushlstring(L, ipw_json_str(content, ""), ipw_json_str_len(content));
    if (ipw_json_bool(ipw_json_get(line->data, "final"), false))
        lua_pushvalue(L, -1);
    else
        lua_pushnil(L);
    lua_pushstring(L, ipw_json_get_str(line->data, "picture"));
    return 4;
}

/* answer(span): outcome, text, final answer and picture of a saved run; nothing if this is not a
 * replay. [-1, +(0|4), e] */
static int tool_answer(lua_State *L)
{
    lua_Integer span = luaL_checkinteger(L, 1);

    if (!ipw_playback_answers(ipw_vm_host(L)->replay)) return 0;
    return ipw_recorded_wait(L, span, NULL, push_answer);
}

/* finish(span, name, call_id, ok, outcome, content, final, whole, picture or nil): `picture` is a
 * file that the model is shown with the result. [-9, 0, e] */
static int tool_finish(lua_State *L)
{
    struct ipw_host *host = ipw_vm_host(L);
    lua_Integer span = luaL_checkinteger(L, 1);
    const char *name = luaL_checkstring(L, 2), *id = luaL_optstring(L, 3, NULL);
    bool ok = lua_toboolean(L, 4);
    const char *outcome = luaL_checkstring(L, 5);
    size_t n;
    const char *content = luaL_checklstring(L, 6, &n), *picture = luaL_optstring(L, 9, NULL);
    struct ipw_event event = {.kind = IPW_EV_TOOL_END, .t_ns = ipw_now_ns(), .span = (int32_t)span};
    struct ipw_buf data = IPW_BUF(MAX_RECORD_BYTES), why = IPW_BUF(IPW_KIB);
    struct ipw_jw w;
    int32_t outer;

    ipw_jw_init(&w, &data);
    ipw_jw_obj(&w);
    ipw_jw_key(&w, "content");
    ipw_jw_strn(&w, content, n);
    if (lua_toboolean(L, 7)) ipw_jw_kbool(&w, "final", true);
    if (picture) ipw_jw_kstr(&w, "picture", picture);
    ipw_jw_obj_end(&w);
    if (lua_toboolean(L, 8)) ipw_task_enter_tool(ipw_vm_of(L), -1);
    event.tool = (struct ipw_tool_facts){
        .name = name, .call_id = id, .ok = ok, .outcome = outcome, .result_bytes = (int64_t)n};
    if (!ok) event.tool.error = one_line(&why, n ? content : outcome);
    outer = ipw_tool_call_end(ipw_vm_of(L), (int32_t)span, &event.tool);
    ipw_host_emit(host, &event, &data);
    ipw_buf_release(&why);
    lua_pushinteger(L, outer);
    return 1;
}

/* cut(bytes): a cap left them out of the result of the tool call that runs. [-1, 0, e] */
static int tool_cut(lua_State *L)
{
    ipw_tool_call_cut(ipw_vm_of(L), luaL_checkinteger(L, 1));
    return 0;
}

/* recall(): the text that a saved run remembered; or nil and a number for remember().  Between the
 * two nothing is recorded. [0, +(1|2), e] */
static int tool_recall(lua_State *L)
{
    int64_t id = ipw_recorded_effect_begin(L);

    if (ipw_recorded_effect_replayed(L, id)) return ipw_recorded_effect_wait(L, id, "recall");
    ipw_task_enter_tool(ipw_vm_of(L), 1);
    lua_pushnil(L);
    lua_pushinteger(L, id);
    return 2;
}

/* remember(number, text): for a replay. [-2, 0, e] */
static int tool_remember(lua_State *L)
{
    int64_t id = luaL_checkinteger(L, 1);

    luaL_checkstring(L, 2);
    lua_settop(L, 2);
    ipw_task_enter_tool(ipw_vm_of(L), -1);
    ipw_recorded_effect_note(L, id, "recall", 1);
    return 0;
}

/* clean(text): the text with U+FFFD for each NUL and each byte that is not UTF-8, so that the
 * model, the request and a replay have the same text. [-1, +1, e] */
static int tool_clean(lua_State *L)
{
    size_t n;
    const char *s = luaL_checklstring(L, 1, &n);
    struct ipw_buf out = IPW_BUF(MAX_RECORD_BYTES);

    if (!memchr(s, 0, n) && ipw_utf8_valid(s, n)) return 1;
    for (const char *end = s + n;;) {
        size_t k = strnlen(s, (size_t)(end - s));

        ipw_utf8_clean(&out, s, k);
        s += k;
        if (s == end) break;
        ipw_buf_adds(&out, "\xEF\xBF\xBD");
        s++;
    }
    lua_pushlstring(L, ipw_buf_str(&out), out.len);
    ipw_buf_release(&out);
    return 1;
}

/* granted(what): true if the run allows "proc", "http" or "search"; else false and how to allow it.
 * [-1, +2, e] */
static int tool_granted(lua_State *L)
{
    static const char no_search[] =
        "no search engine is named: set SEARXNG_URL, BRAVE_API_KEY, TAVILY_API_KEY or "
        "SERPER_API_KEY, or use --search (a folder's path searches that folder)";
    static const char no_sandbox[] =
        "programs run in a sandbox only, and bubblewrap cannot make one here: allow user "
        "namespaces (`ipw-agent doctor` says more), or use --unsafe-tools";
    const struct ipw_host *host = ipw_vm_host(L);
    const char *what = luaL_checkstring(L, 1), *how = NULL;
    bool ok = false;

    if (host && strcmp(what, "http") == 0) {
        ok = host->grants.may_fetch;
        how = host->grants.no_web;
    } else if (host && strcmp(what, "proc") == 0) {
        ok = host->grants.may_start;
        how = host->grants.no_proc;
        if (ok && host->grants.try_sandbox && !ipw_bubblewrap_works()) {
            ok = false;
            how = no_sandbox;
        }
    } else if (host && strcmp(what, "search") == 0) {
        ok = host->grants.search || ipw_playback_answers(host->replay);
        how = no_search;
    }
    lua_pushboolean(L, ok);
    if (ok) return 1;
    lua_pushstring(L, how ? how : "this run does not grant it");
    return 2;
}

/* leave_out(name, why): whether the run goes without a tool that it does not grant; it says so once
 * for each tool. [-2, +1, e] */
static int tool_leave_out(lua_State *L)
{
    static char said[512]; /* names, each with a newline after it; a name beyond is said again */
    const struct ipw_host *host = ipw_vm_host(L);
    const char *name = luaL_checkstring(L, 1), *why = luaL_checkstring(L, 2);
    bool leave = host && host->grants.leave_out;
    char line[128];

    snprintf(line, sizeof line, "%.100s\n", name);
    if (leave && !strstr(said, line)) {
        ipw_log(IPW_LOG_WARN, "the agent goes without the tool '%.100s': %s", name, why);
        strncat(said, line, sizeof said - strlen(said) - 1);
    }
    lua_pushboolean(L, leave);
    return 1;
}

/* __index of a tool call's context. */
static int context_index(lua_State *L)
{
    const char *key = lua_tostring(L, 2);

    if (!key || strcmp(key, "workdir")) return 0;
    lua_settop(L, 0);
    return ipw_lib_fs_workspace(L);
}

int ipw_lib_tool(lua_State *L)
{
    static const luaL_Reg functions[] = {{"find", tool_find},
                                         {"load", ipw_lib_find_load},
                                         {"open", ipw_lib_tool_open},
                                         {"unread", ipw_lib_tool_unread},
                                         {"keep", ipw_lib_tool_keep},
                                         {"kept", ipw_lib_tool_kept},
                                         {"describe", ipw_lib_tool_describe},
                                         {"arguments", ipw_lib_arguments},
                                         {"validate", ipw_lib_validate},
                                         {"start", tool_start},
                                         {"answer", tool_answer},
                                         {"finish", tool_finish},
                                         {"granted", tool_granted},
                                         {"leave_out", tool_leave_out},
                                         {"recall", tool_recall},
                                         {"remember", tool_remember},
                                         {"clean", tool_clean},
                                         {"cut", tool_cut},
                                         {NULL, NULL}};

    luaL_newlib(L, functions);
    lua_createtable(L, 0, 1);
    lua_pushcfunction(L, context_index);
    lua_setfield(L, -2, "__index");
    lua_setfield(L, -2, "context");
    return 1;
}
