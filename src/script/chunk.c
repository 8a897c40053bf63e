/* Compiling and requiring scripts; script/search.h finds them.
 *
 * Each script is compiled once a process and kept as bytecode of our own making (debug information
 * included), because a state per query would otherwise parse the same text a thousand times.
 * Scripts themselves can load text only. */
#include <lauxlib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "json/jsonl.h"
#include "script/embedded.h"
#include "script/file_hashes.h"
#include "script/lib.h"
#include "script/native.h"
#include "script/search.h"
#include "script/vm_state.h"
#include "script/worker/worker_main.h"

enum { MAX_SCRIPT_BYTES = 4 * 1024 * 1024, PATH_BYTES = 1024 };
static const char builtin[] = "builtin:";

/* ---- the compiled chunks of this process ---- */

struct compiled {
    char *path;
    struct ipw_buf code;
    struct compiled *next;
};

static struct compiled *chunks;

static int write_code(lua_State *L, const void *bytes, size_t n, void *ud)
{
    (void)L;
    return ipw_buf_add(ud, bytes, n);
}

/* Whether these bytes are a file of this binary: taken from it, or an unchanged copy on disk. */
static bool is_embedded(const char *path, const char *bytes, size_t n)
{
    size_t length = strlen(path);

    if (strncmp(path, builtin, strlen(builtin)) == 0) return true;
    for (const struct ipw_embedded_file *f = ipw_embedded_files; f->path; f++) {
        size_t m = strlen(f->path);
        if (f->n == n && length >= m && strcmp(path + length - m, f->path) == 0 &&
            memcmp(f->bytes, bytes, n) == 0)
            return true;
    }
    return false;
}

/* Leaves the compiled function on the stack. [0, +1, -] on success */
int ipw_chunk_load(lua_State *L, const char *path, struct ipw_err *err)
{
    struct ipw_buf text = IPW_BUF(MAX_SCRIPT_BYTES);
    char name[PATH_BYTES + 2];
    const char *bytes;
    size_t n;
    struct compiled *c;
    bool strip, comes_along;
    int rc;

    snprintf(name, sizeof name, "@%s", path);
    for (c = chunks; c; c = c->next) {
        if (strcmp(c->path, path)) continue;
        rc = luaL_loadbufferx(L, c->code.data, c->code.len, name, "b");
        if (rc == LUA_OK) return 0;
        ipw_vm_take_error(L, err);
        return IPW_ELUA;
    }
    if (strncmp(path, builtin, strlen(builtin)) == 0) {
        const struct ipw_embedded_file *f = ipw_embedded_find(path + strlen(builtin));
        if (!f) return ipw_fail(err, IPW_ENOTFOUND, "%s: not in this binary", path);
        bytes = f->bytes;
        n = f->n;
    } else {
        struct ipw_remote *remote = ipw_host_remote(L);
        rc = remote ? ipw_remote_source(remote, path, &text, err) : ipw_file_read(&text, path, err);
        if (rc) {
            ipw_buf_release(&text);
            return rc;
        }
        bytes = ipw_buf_str(&text);
        n = text.len;
    }
    ipw_loaded_note(path, bytes, n);
    comes_along = is_embedded(path, bytes, n);
    if (n && bytes[0] == '#') { /* a first line for the shell */
        const char *eol = memchr(bytes, '\n', n);
        size_t skip = eol ? (size_t)(eol - bytes) : n;
        bytes += skip;
        n -= skip;
    }
    if (ipw_chain_too_long(bytes, n)) {
        ipw_buf_release(&text);
        return ipw_fail(err, IPW_ELIMIT, "%s: %s", path, ipw_chain_message);
    }
    rc = luaL_loadbufferx(L, bytes, n, name, "t");
    ipw_buf_release(&text);
    if (rc != LUA_OK) {
        ipw_vm_take_error(L, err);
        return IPW_ELUA;
    }
    c = ipw_calloc(1, sizeof *c);
    c->path = ipw_strdup(path);
    ipw_buf_init(&c->code, 4 * (size_t)MAX_SCRIPT_BYTES);
    /* Debug information is most of a chunk: what comes along does without, unless somebody looks. */
    strip = comes_along && ipw_log_get_level() < IPW_LOG_INFO;
    lua_dump(L, write_code, &c->code, strip);
    c->next = chunks;
    chunks = c;
    return 0;
}

/* ---- require ---- */

static const struct {
    const char *name;
    lua_CFunction open;
} core[] = {
    {"ipw.core.run", ipw_lib_core},      {"ipw.core.json", ipw_lib_json},
    {"ipw.core.llm", ipw_lib_llm},       {"ipw.core.tool", ipw_lib_tool},
    {"ipw.core.fs", ipw_lib_fs},         {"ipw.core.proc", ipw_lib_proc},
    {"ipw.core.budget", ipw_lib_budget}, {"ipw.core.data", ipw_lib_data},
    {"ipw.core.span", ipw_lib_span},     {"ipw.core.script", ipw_lib_script},
    {"ipw.core.http", ipw_lib_http},     {"ipw.core.workload", ipw_lib_workload},
    {"ipw.core.text", ipw_lib_text},     {"ipw.core.sqlite", ipw_lib_sqlite},
};

/* require(name): one table a module a state.  Upvalue 1: the loaded modules. */
static int base_require(lua_State *L)
{
    const char *name = luaL_checkstring(L, 1);
    char path[PATH_BYTES];
    enum ipw_found found;
    struct ipw_err err;

    lua_settop(L, 1);
    lua_pushvalue(L, 1);
    if (lua_rawget(L, lua_upvalueindex(1)) != LUA_TNIL) {
        if (!lua_isboolean(L, -1) || lua_toboolean(L, -1)) return 1;
        return luaL_error(L, "module '%s' requires itself", name);
    }
    lua_settop(L, 1);
    for (size_t i = 0; i < sizeof core / sizeof *core; i++) {
        if (strcmp(core[i].name, name)) continue;
        lua_pushcfunction(L, core[i].open);
        lua_call(L, 0, 1); // name module
        if (ipw_host_remote(L)) ipw_remote_open(L, name + strlen("ipw.core."));
        goto store;
    }
    found = IPW_FOUND_TEXT;
    if (ipw_host_remote(L))
        ipw_remote_module(L, name, path, sizeof path);
    else
        found = ipw_search_module(&ipw_vm_of(L)->options, name, path, sizeof path);
    if (!found) return ipw_search_fail(L, name);
    lua_pushboolean(L, 0); /* marks "being loaded" */
    lua_setfield(L, lua_upvalueindex(1), name);
    if (found == IPW_FOUND_NATIVE ? ipw_native_load(L, name, path, &err)
                                  : ipw_chunk_load(L, path, &err)) {
        lua_pushnil(L);
        lua_setfield(L, lua_upvalueindex(1), name);
        return luaL_error(L, "%s", err.text);
    }
    lua_pushvalue(L, 1);
    lua_pushstring(L, path);
    if (lua_pcall(L, 2, 1, 0) != LUA_OK) {
        lua_pushnil(L); /* the next require shall fail with the same words */
        lua_setfield(L, lua_upvalueindex(1), name);
        return lua_error(L);
    }
    if (lua_isnil(L, -1)) {
        lua_pop(L, 1);
        lua_pushboolean(L, 1);
    }
store:
    lua_pushvalue(L, -1);
    lua_setfield(L, lua_upvalueindex(1), name);
    return 1;
}

void ipw_chunk_open(lua_State *L)
{
    lua_createtable(L, 0, 12);
    lua_pushcclosure(L, base_require, 1);
    lua_setglobal(L, "require");
}

int ipw_vm_load(struct ipw_vm *vm, const char *path, struct ipw_err *err)
{
    int rc;

    vm->running = vm->L;
    rc = ipw_chunk_load(vm->L, path, err);
    vm->running = NULL;
    if (rc) return rc;
    rc = ipw_vm_call(vm, 0, 1, err);
    if (rc) return rc;
    if (!lua_istable(vm->L, -1)) {
        lua_pop(vm->L, 1);
        return ipw_fail(err, IPW_ELUA, "%s: must return a table", path);
    }
    return 0;
}
