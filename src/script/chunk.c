#include "script/chunk.h"

#include <lauxlib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "json/jsonl.h"
#include "script/embedded.h"
#include "script/file_hashes.h"
#include "script/host.h"
#include "script/source_check.h"
#include "script/stock.h"
#include "script/vm_priv.h"

enum { MAX_SCRIPT_BYTES = 4 * 1024 * 1024, PATH_BYTES = 1024 };
static const char builtin[] = "builtin:";

struct compiled {
    char *path;
    struct ipw_buf code;
    unsigned libraries; /* that it names: script/standard_library.h */
    struct compiled *next;
};

static struct compiled *chunks;

static int write_code(lua_State *L, const void *bytes, size_t n, void *ud)
{
    (void)L;
    return ipw_buf_add(ud, bytes, n);
}

/* Whether these bytes are a built-in file: read from the binary, or an unchanged copy on disk. */
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

static int open_late(lua_State *L)
{
    ipw_vm_of(L)->open_libraries(L, (unsigned)lua_tointeger(L, 1));
    return 0;
}

/* Opens the libraries that a script names.  [0, 0, -] */
static int open_libraries(lua_State *L, unsigned libraries, struct ipw_err *err)
{
    if (!(libraries & ipw_vm_of(L)->closed_libraries)) return 0;
    lua_pushcfunction(L, open_late);
    lua_pushinteger(L, (lua_Integer)libraries);
    if (lua_pcall(L, 1, 0, 0) == LUA_OK) return 0;
    ipw_vm_take_error(L, err);
    return IPW_ELUA;
}

int ipw_chunk_load(lua_State *L, const char *path, struct ipw_err *err)
{
    struct ipw_buf text = IPW_BUF(MAX_SCRIPT_BYTES);
    char name[PATH_BYTES + 2];
    const char *bytes;
    size_t n;
    struct compiled *c;
    bool strip, comes_along;
    unsigned libraries;
    int rc;

    snprintf(name, sizeof name, "@%s", path);
    for (c = chunks; c; c = c->next) {
        if (strcmp(c->path, path)) continue;
        rc = open_libraries(L, c->libraries, err);
        if (rc) return rc;
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
        rc = ipw_file_read(&text, path, err);
        if (rc) {
            ipw_buf_release(&text);
            return rc;
        }
        bytes = ipw_buf_str(&text);
        n = text.len;
    }
    ipw_file_hashes_note(path, bytes, n);
    comes_along = is_embedded(path, bytes, n);
    if (n && bytes[0] == '#') { /* a first line for the shell */
        const char *eol = memchr(bytes, '\n', n);
        size_t skip = eol ? (size_t)(eol - bytes) : n;
        bytes += skip;
        n -= skip;
    }
    if (ipw_source_check_fails(bytes, n)) {
        ipw_buf_release(&text);
        return ipw_fail(err, IPW_ELIMIT, "%s: %s", path, ipw_source_check_message);
    }
    libraries = ipw_stock_named(bytes, n);
    rc = luaL_loadbufferx(L, bytes, n, name, "t");
    ipw_buf_release(&text);
    if (rc != LUA_OK) {
        ipw_vm_take_error(L, err);
        return IPW_ELUA;
    }
    rc = open_libraries(L, libraries, err);
    if (rc) {
        lua_pop(L, 1);
        return rc;
    }
    c = ipw_calloc(1, sizeof *c);
    c->path = ipw_strdup(path);
    c->libraries = libraries;
    ipw_buf_init(&c->code, 4 * (size_t)MAX_SCRIPT_BYTES);
    /* Debug information is most of a chunk.  Built-in files have none, except for verbose runs. */
    strip = comes_along && ipw_log_get_level() < IPW_LOG_INFO;
    lua_dump(L, write_code, &c->code, strip);
    c->next = chunks;
    chunks = c;
    return 0;
}

int ipw_chunk_run(struct ipw_vm *vm, const char *path, struct ipw_err *err)
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
