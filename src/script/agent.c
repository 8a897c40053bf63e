#include "script/agent.h"

#include <lauxlib.h>
#include <lua.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "data/sha256.h"
#include "json/jsonl.h"
#include "script/chunk.h"
#include "script/embedded.h"
#include "script/sandbox.h"
#include "script/search.h"
#include "script/task.h"
#include "script/value.h"
#include "script/vm.h"

struct ipw_agent {
    struct ipw_vm *vm;
    struct ipw_task *task;
    const struct ipw_agent_config *config;
    const struct ipw_case *query;
    ipw_agent_fn done;
    void *ud;
};

/* ---- inspecting the file ---- */

/* The first unknown field by name, which may be a misspelt one.  The agent's table is at 1. */
static void find_unknown(lua_State *L, struct ipw_agent_info *info)
{
    static const char *const fields[] = {"name", "about", "defaults", "run", NULL};
    char first[64] = "";
    const char *near;

    lua_pushnil(L);
    while (lua_next(L, 1)) {
        const char *key = lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : "name";
        size_t i = 0;

        while (fields[i] && strcmp(fields[i], key) != 0) i++;
        if (!fields[i] && (!first[0] || strcmp(key, first) < 0))
            snprintf(first, sizeof first, "%.40s", key);
        lua_pop(L, 1);
    }
    if (!first[0]) return;
    near = ipw_nearest(first, fields);
    snprintf(info->unknown, sizeof info->unknown, "'%s'%s%s%s", first,
             near ? " (did you mean '" : "", near ? near : "", near ? "'?)" : "");
}

static int check_shape(lua_State *L)
{
    struct ipw_agent_info *info = lua_touserdata(L, 2);

    if (lua_getfield(L, 1, "run") != LUA_TFUNCTION)
        return luaL_error(L, "%s: the agent has no function 'run'", info->path);
    if (lua_getfield(L, 1, "name") == LUA_TSTRING)
        snprintf(info->name, sizeof info->name, "%s", lua_tostring(L, -1));
    if (lua_getfield(L, 1, "about") == LUA_TSTRING)
        snprintf(info->about, sizeof info->about, "%s", lua_tostring(L, -1));
    info->max_turns = -1;
    if (lua_getfield(L, 1, "defaults") == LUA_TTABLE) {
        if (lua_getfield(L, -1, "max_turns") == LUA_TNUMBER) info->max_turns = lua_tointeger(L, -1);
    } else if (!lua_isnil(L, -1)) {
        return luaL_error(L, "%s: defaults: expected a table", info->path);
    }
    find_unknown(L, info);
    return 0;
}

static void hash_file(struct ipw_agent_info *info)
{
    struct ipw_buf text = IPW_BUF(4 * IPW_MIB);

    if (strncmp(info->path, "builtin:", 8) == 0) {
        const struct ipw_embedded_file *f = ipw_embedded_find(info->path + 8);
        if (f) ipw_sha256_hex(info->sha256, f->bytes, f->n);
    } else if (ipw_file_read(&text, info->path, NULL) == 0) {
        ipw_sha256_hex(info->sha256, ipw_buf_str(&text), text.len);
    }
    ipw_buf_release(&text);
}

/* Fills name, about, max_turns from the file at info->path. */
static int read_file(struct ipw_agent_info *info, struct ipw_host *host, struct ipw_err *err)
{
    struct ipw_vm_options options = {.script_dir = info->dir[0] ? info->dir : NULL, .host = host};
    struct ipw_vm *vm;
    int rc = ipw_sandbox_open(&vm, &options, err);

    if (rc) return rc;
    rc = ipw_chunk_run(vm, info->path, err);
    if (!rc) {
        lua_State *L = ipw_vm_lua(vm);
        lua_pushcfunction(L, check_shape);
        lua_insert(L, -2);
        lua_pushlightuserdata(L, info);
        rc = ipw_vm_call(vm, 2, 0, err);
    }
    ipw_sandbox_close(vm);
    return rc;
}

int ipw_agent_inspect(struct ipw_agent_info *out, const char *kind, const char *name,
                      const char *const *paths, struct ipw_err *err)
{
    struct ipw_host nobody = {0};
    struct ipw_vm_options options = {.paths = paths, .host = &nobody};
    struct ipw_vm *vm;
    const char *stem, *slash;
    int rc;

    memset(out, 0, sizeof *out);
    rc = ipw_sandbox_open(&vm, &options, err);
    if (rc) return rc;
    if (strncmp(name, "builtin:", 8) == 0 && ipw_embedded_find(name + 8)) {
        snprintf(out->path, sizeof out->path, "%s", name);
    } else {
        rc = ipw_search_script(vm, kind, name, out->path, sizeof out->path, err);
    }
    ipw_sandbox_close(vm);
    if (rc) return rc;
    slash = strrchr(out->path, '/');
    stem = slash ? slash + 1 : out->path;
    snprintf(out->name, sizeof out->name, "%.*s", (int)strcspn(stem, "."), stem);
    if (strncmp(out->path, "builtin:", 8))
        snprintf(out->dir, sizeof out->dir, "%.*s", slash ? (int)(slash - out->path) : 1,
                 slash ? out->path : ".");
    rc = read_file(out, &nobody, err);
    hash_file(out);
    return rc;
}

/* ---- running ---- */

static void set_text(lua_State *L, const char *name, const char *text)
{
    lua_pushstring(L, text); /* NULL pushes nil */
    lua_setfield(L, -2, name);
}

static void push_query(lua_State *L, const struct ipw_case *c)
{
    lua_createtable(L, 0, 6);
    set_text(L, "id", c->id);
    set_text(L, "prompt", c->prompt);
    set_text(L, "system", c->system);
    set_text(L, "level", c->level);
    lua_createtable(L, (int)c->n_files, 0);
    for (size_t i = 0; i < c->n_files; i++) {
        lua_createtable(L, 0, 1);
        set_text(L, "name", c->files[i].name);
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    lua_setfield(L, -2, "files");
    if (c->metadata && ipw_value_decode(L, c->metadata, strlen(c->metadata), NULL) == 0)
        lua_setfield(L, -2, "metadata");
}

/* Sets cfg.tools, for the cfg at the top; "+" stands for those that it had. [0, 0, m] */
static void push_tools(lua_State *L, const char *const *tools)
{
    lua_Integer n = 0;

    lua_newtable(L); // cfg list
    for (; *tools; tools++) {
        if (strcmp(*tools, "+") == 0) {
            lua_Integer own = 0;

            if (lua_getfield(L, -2, "tools") == LUA_TTABLE) // cfg list own
                own = (lua_Integer)lua_rawlen(L, -1);
            for (lua_Integer i = 1; i <= own; i++) {
                lua_rawgeti(L, -1, i);
                lua_rawseti(L, -3, ++n);
            }
            lua_pop(L, 1);
            continue;
        }
        lua_pushstring(L, *tools);
        lua_rawseti(L, -2, ++n);
    }
    lua_setfield(L, -2, "tools");
}

/* A copy of the agent's defaults, with the options of the command line instead of some of them. */
static void push_config(lua_State *L, int agent, const struct ipw_agent_config *config)
{
    lua_createtable(L, 0, 8); // cfg
    if (lua_getfield(L, agent, "defaults") == LUA_TTABLE) {
        lua_pushnil(L); // cfg defaults key
        while (lua_next(L, -2)) {
            lua_pushvalue(L, -2);
            lua_insert(L, -2); // cfg defaults key key value
            lua_rawset(L, -5); // cfg defaults key
        }
    }
    lua_pop(L, 1); // cfg
    if (config->max_turns > 0) {
        lua_pushinteger(L, config->max_turns);
        lua_setfield(L, -2, "max_turns");
    }
    if (!isnan(config->temperature)) {
        lua_pushnumber(L, config->temperature);
        lua_setfield(L, -2, "temperature");
    }
    if (config->seed != INT64_MIN) {
        lua_pushinteger(L, config->seed);
        lua_setfield(L, -2, "seed");
    }
    if (config->max_tokens >= 0) {
        lua_pushinteger(L, config->max_tokens);
        lua_setfield(L, -2, "max_tokens");
    }
    if (config->tools) push_tools(L, config->tools);
}

static int push_cfg_tools(lua_State *L)
{
    push_config(L, 1, lua_touserdata(L, 2));
    lua_getfield(L, -1, "tools");
    return 1;
}

int ipw_agent_push_tools(struct ipw_vm *vm, const struct ipw_agent_info *info,
                         const struct ipw_agent_config *config, struct ipw_err *err)
{
    lua_State *L = ipw_vm_lua(vm);
    int rc = ipw_chunk_run(vm, info->path, err);

    if (rc) return rc;
    lua_pushcfunction(L, push_cfg_tools);
    lua_insert(L, -2);
    lua_pushlightuserdata(L, (void *)config);
    return ipw_vm_call(vm, 2, 1, err);
}

/* start(agent table, light userdata): leaves run, query, cfg. */
static int prepare(lua_State *L)
{
    struct ipw_agent *a = lua_touserdata(L, 2);

    if (lua_getfield(L, 1, "run") != LUA_TFUNCTION)
        return luaL_error(L, "the agent has no function 'run'");
    push_query(L, a->query);
    push_config(L, 1, a->config);
    return 3;
}

/* Reads the results of run: text; or a table {answer=, why=, source=}; or nil and a reason. */
static void read_result(lua_State *co, int n, struct ipw_agent_result *r)
{
    int at = lua_gettop(co) - n + 1;

    r->outcome = "no_answer";
    if (n == 0) return;
    if (lua_type(co, at) == LUA_TSTRING || lua_type(co, at) == LUA_TNUMBER) {
        r->completed = true;
        r->outcome = "answered";
        r->response = lua_tostring(co, at);
    } else if (lua_istable(co, at)) {
        lua_pushnil(co);
        while (lua_next(co, at)) {
            const char *key = lua_type(co, -2) == LUA_TSTRING ? lua_tostring(co, -2) : "";
            /* The table stays on the stack, so its strings stay valid.  A number becomes a string
             * in the table, as a number that is returned alone. */
            if (lua_type(co, -1) == LUA_TNUMBER && !strcmp(key, "answer")) {
                lua_tostring(co, -1);
                lua_pushvalue(co, -2);
                lua_pushvalue(co, -2);
                lua_rawset(co, at);
            }
            if (lua_type(co, -1) == LUA_TSTRING) {
                if (!strcmp(key, "answer")) r->response = lua_tostring(co, -1);
                if (!strcmp(key, "source")) r->source = lua_tostring(co, -1);
                if (!strcmp(key, "why")) r->outcome = lua_tostring(co, -1);
            }
            lua_pop(co, 1);
        }
        r->completed = r->response != NULL;
        if (r->completed && !strcmp(r->outcome, "no_answer")) r->outcome = "answered";
    } else if (n >= 2 && lua_type(co, at + 1) == LUA_TSTRING) {
        r->outcome = lua_tostring(co, at + 1);
    }
}

static void task_over(void *ud, struct ipw_task *task, enum ipw_task_end end, lua_State *co,
                      int nresults, const struct ipw_err *err)
{
    struct ipw_agent *a = ud;
    struct ipw_agent_result result = {.outcome = "error", .traceback = ""};

    (void)task;
    a->task = NULL;
    switch (end) {
    case IPW_TASK_DONE: read_result(co, nresults, &result); break;
    case IPW_TASK_CANCELLED: result.outcome = "cancelled"; break;
    case IPW_TASK_MEMORY: result.outcome = "memory"; break;
    case IPW_TASK_CPU: result.outcome = "cpu"; break;
    case IPW_TASK_FAILED: break;
    }
    if (err) result.error = err->text;
    if (end == IPW_TASK_FAILED) result.traceback = ipw_vm_traceback(a->vm);
    result.lua_peak_bytes = ipw_vm_peak_bytes(a->vm);
    result.lua_cpu_ns = ipw_task_cpu_ns(a->vm);
    a->done(a->ud, &result);
}

int ipw_agent_start(struct ipw_agent **out, const struct ipw_agent_info *info,
                    const struct ipw_agent_config *config, const struct ipw_case *query,
                    struct ipw_host *host, ipw_agent_fn done, void *ud, struct ipw_err *err)
{
    struct ipw_vm_options options = {
        .memory_bytes = config->memory_bytes,
        .late_libraries = true,
        .slice_cpu_ns = config->slice_cpu_ns,
        .paths = config->paths,
        .script_dir = info->dir[0] ? info->dir : NULL,
        .seed = (uint64_t)(config->seed == INT64_MIN ? 0 : config->seed) * 1000003u +
                (uint64_t)query->number,
        .host = host,
    };
    struct ipw_agent *a = ipw_calloc(1, sizeof *a);
    lua_State *L;
    int rc;

    a->config = config;
    a->query = query;
    a->done = done;
    a->ud = ud;
    rc = ipw_sandbox_open(&a->vm, &options, err);
    if (rc) goto fail;
    rc = ipw_chunk_run(a->vm, info->path, err);
    if (rc) goto fail;
    L = ipw_vm_lua(a->vm);
    lua_pushcfunction(L, prepare);
    lua_insert(L, -2);
    lua_pushlightuserdata(L, a);
    rc = ipw_vm_call(a->vm, 2, 3, err);
    if (rc) goto fail;
    rc = ipw_task_start(&a->task, a->vm, 2, task_over, a, err);
    if (rc) goto fail;
    *out = a;
    return 0;
fail:
    ipw_sandbox_close(a->vm);
    free(a);
    return rc;
}

void ipw_agent_cancel(struct ipw_agent *agent, const char *reason)
{
    if (agent->task) ipw_task_cancel(agent->task, reason);
}

bool ipw_agent_all_recorded(const struct ipw_agent *agent)
{
    return ipw_task_all_recorded(agent->vm);
}

void ipw_agent_free(struct ipw_agent *agent)
{
    if (!agent) return;
    ipw_sandbox_close(agent->vm);
    free(agent);
}
