#include "script/vm.h"

#include <lauxlib.h>
#include <lualib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/text.h"
#include "script/host.h"
#include "script/vm_priv.h"

enum {
    ALL_GARBAGE = 64 * 1024 * 1024, /* of all states together */
    MOST_GARBAGE = 1024 * 1024,     /* of one */
    LEAST_GARBAGE = 8 * 1024,
    MANY_OPEN = 512, /* states; with more, memory matters more than time */
    TIDY_GARBAGE = 6 * 1024,
};
static size_t n_open; /* states */

/* NULL: Lua gets no more memory. */
static void *resize(struct ipw_vm *vm, void *ptr, size_t osize, size_t nsize)
{
    size_t old = ptr ? osize : 0, cap = vm->options.memory_bytes;
    void *block;

    if (nsize > old) {
        bool one_object = !ptr && (osize == LUA_TSTRING || osize == LUA_TUSERDATA);
        size_t used = vm->used_bytes + (nsize - old);

        if ((one_object && nsize > cap / 4) || used > cap * 4) {
            vm->over_memory = 1;
            vm->refused = true;
            return NULL;
        }
        if (used > cap && vm->running) ipw_budget_stop(vm->running);
        if (used > cap) vm->over_memory = 1;
    }
    block = ipw_arena_resize(&vm->arena, ptr, old, nsize);
    if (!block && nsize > old) { /* Lua collects its garbage and asks again */
        if (vm->starved) vm->over_memory = 1, vm->refused = true;
        vm->starved = true;
    }
    return block;
}

/* Lua's allocator.  The cap is soft, because Debian's Lua 5.4.4 corrupts its heap if an allocator
 * refuses to grow a table.  Past the cap the script is stopped at its next instruction.  Only
 * single strings and userdata of more than a quarter of the cap are refused, and anything beyond
 * four times the cap. */
static void *allocate(void *ud, void *ptr, size_t osize, size_t nsize)
{
    struct ipw_vm *vm = ud;
    size_t old = ptr ? osize : 0, cap = vm->options.memory_bytes;
    void *block = NULL;

    if (nsize == 0) {
        vm->used_bytes -= old;
        if (!old || old > IPW_ARENA_LARGEST) return ipw_arena_resize(&vm->arena, ptr, old, 0);
        ipw_arena_give(&vm->arena, ptr, old);
        return NULL;
    }
    /* Mostly a small new value, far below the cap. */
    if (!old && nsize <= IPW_ARENA_LARGEST && nsize <= cap / 4 && vm->used_bytes + nsize <= cap)
        block = ipw_arena_take(&vm->arena, nsize);
    if (!block) block = resize(vm, ptr, osize, nsize);
    if (!block) return nsize <= old ? ptr : NULL; /* shrinking must not fail */
    if (nsize > old) vm->starved = false;
    vm->used_bytes += nsize - old;
    if (vm->used_bytes > vm->peak_bytes) vm->peak_bytes = vm->used_bytes;
    return block;
}

/* Garbage counts until it is collected, and near the cap that must happen before Lua does it by
 * itself.  A collection must free an eighth of the cap; otherwise the script would do nothing
 * else. */
bool ipw_vm_collect(struct ipw_vm *vm, lua_State *L)
{
    lua_gc(L, LUA_GCCOLLECT);
    if (vm->refused || vm->used_bytes > vm->options.memory_bytes - vm->options.memory_bytes / 8)
        return false;
    vm->over_memory = 0;
    return true;
}

/* For lua_close(): blocks need not be freed one by one, because the arena is released as a
 * whole. */
static void *let_go(void *ud, void *ptr, size_t osize, size_t nsize)
{
    return nsize ? allocate(ud, ptr, osize, nsize) : NULL;
}

static bool has_field(lua_State *L, int table, const char *name)
{
    bool found = false;

    lua_pushnil(L);
    while (lua_next(L, table)) {
        found |= lua_type(L, -2) == LUA_TSTRING && strcmp(lua_tostring(L, -2), name) == 0;
        lua_pop(L, 1);
    }
    return found;
}

/* Whether a value of the state has a finalizer.  Scripts have no __gc, and C gives one only to
 * types that luaL_newmetatable() put into the registry.  Lua's own boxes (_UBOX*) own only memory
 * of the arena. */
static bool has_finalizers(lua_State *L)
{
    bool found = false;

    if (!lua_checkstack(L, 8)) return true;
    lua_pushnil(L);
    while (!found && lua_next(L, LUA_REGISTRYINDEX)) {
        found = lua_type(L, -2) == LUA_TSTRING && lua_istable(L, -1) &&
                strcmp(lua_tostring(L, -2), "_UBOX*") && has_field(L, lua_gettop(L), "__gc");
        lua_pop(L, 1);
    }
    if (found) lua_pop(L, 1);
    return found;
}

/* The garbage collector of a new state starts when the state has grown by this much.  Otherwise it
 * begins at once and runs three times in the life of a query that needs 100 kB in the end.  With
 * thousands of states open the limit is smaller, because their uncollected memory adds up. */
static void grant_garbage(const struct ipw_vm *vm)
{
    size_t bytes = ALL_GARBAGE / n_open;

    if (bytes > MOST_GARBAGE) bytes = MOST_GARBAGE;
    if (bytes < LEAST_GARBAGE) bytes = LEAST_GARBAGE;
    if (bytes > vm->options.memory_bytes / 4) bytes = vm->options.memory_bytes / 4;
    /* A negative step of so many kilobytes is a credit that must be used up before the collector
     * works. */
    lua_gc(vm->L, LUA_GCSTEP, -(int)(bytes / 1024));
}

void ipw_vm_tidy(struct ipw_vm *vm)
{
    if (n_open <= MANY_OPEN || vm->used_bytes < vm->tidy_bytes + TIDY_GARBAGE) return;
    lua_gc(vm->L, LUA_GCCOLLECT);
    vm->tidy_bytes = vm->used_bytes;
}

static int panic(lua_State *L)
{
    const char *text = lua_tostring(L, -1);

    IPW_BUG("unprotected Lua error: %s", text ? text : "(not a string)");
}

struct ipw_vm *ipw_vm_of(lua_State *L)
{
    struct ipw_vm *vm;

    memcpy(&vm, lua_getextraspace(L), sizeof vm); /* new threads inherit it from the main thread */
    return vm;
}

struct ipw_host *ipw_vm_host(lua_State *L) { return ipw_vm_of(L)->options.host; }

void ipw_vm_set_slice(struct ipw_vm *vm, int64_t cpu_ns)
{
    vm->options.slice_cpu_ns = cpu_ns ? cpu_ns : 2 * IPW_NS_PER_S;
    vm->slice_ticks_max = ipw_budget_ticks(vm->options.slice_cpu_ns);
}

int ipw_vm_new(struct ipw_vm **out, const struct ipw_vm_options *options, lua_CFunction fill,
               struct ipw_err *err)
{
    struct ipw_vm *vm = ipw_calloc(1, sizeof *vm);
    int rc;

    vm->options = *options;
    if (!vm->options.memory_bytes) vm->options.memory_bytes = 64 * IPW_MIB;
    ipw_vm_set_slice(vm, options->slice_cpu_ns);
    vm->script_dir = ipw_strdup(options->script_dir);
    vm->options.script_dir = vm->script_dir;
    vm->L = lua_newstate(allocate, vm);
    if (!vm->L) {
        ipw_arena_release(&vm->arena);
        free(vm->script_dir);
        free(vm);
        return ipw_fail(err, IPW_ELIMIT, "not enough memory for a Lua state");
    }
    memcpy(lua_getextraspace(vm->L), &vm, sizeof vm);
    n_open++;
    lua_atpanic(vm->L, panic);
    lua_gc(vm->L, LUA_GCSTOP);
    lua_pushcfunction(vm->L, fill);
    rc = ipw_vm_call(vm, 0, 0, err);
    if (rc) {
        ipw_vm_free(vm);
        return rc;
    }
    lua_gc(vm->L, LUA_GCRESTART);
    grant_garbage(vm);
    *out = vm;
    return 0;
}

void ipw_vm_free(struct ipw_vm *vm)
{
    lua_setallocf(vm->L, let_go, vm);
    if (vm->native || has_finalizers(vm->L)) {
        vm->running = vm->L;
        ipw_budget_enter(vm);
        lua_close(vm->L);
        ipw_budget_leave(vm);
    }
    n_open--;
    ipw_arena_release(&vm->arena);
    free(vm->traceback);
    free(vm->script_dir);
    free(vm);
}

lua_State *ipw_vm_lua(struct ipw_vm *vm) { return vm->L; }
size_t ipw_vm_peak_bytes(const struct ipw_vm *vm) { return vm->peak_bytes; }

const char *ipw_vm_traceback(const struct ipw_vm *vm) { return vm->traceback ? vm->traceback : ""; }

int ipw_vm_call(struct ipw_vm *vm, int nargs, int nresults, struct ipw_err *err)
{
    lua_State *before = vm->running;
    int rc;

    vm->running = vm->L;
    ipw_budget_enter(vm);
    rc = lua_pcall(vm->L, nargs, nresults, 0);
    ipw_budget_leave(vm);
    vm->running = before;
    if (rc == LUA_OK) return 0;
    ipw_vm_take_error(vm->L, err);
    if (vm->over_memory)
        return ipw_fail(err, IPW_ELIMIT, "the script passed its memory limit of %zu bytes",
                        vm->options.memory_bytes);
    return err ? (int)err->code : IPW_ELUA;
}

void ipw_vm_renew_cpu(struct ipw_vm *vm) { vm->over_cpu = 0; } /* the hook removes itself */

static enum ipw_code code_of(const char *name)
{
    for (int code = -1; code >= IPW_CODE_LAST; code--)
        if (strcmp(ipw_code_name((enum ipw_code)code), name) == 0) return (enum ipw_code)code;
    return IPW_ELUA;
}

/* The string at idx as one printable line, cut to fit. */
static void read_line(lua_State *L, int idx, char *out, size_t size)
{
    struct ipw_buf line = IPW_BUF(8 * IPW_KIB);
    size_t n;
    const char *s = lua_tolstring(L, idx, &n);

    ipw_text_printable(&line, s, n < 2048 ? n : 2048, size / 4 * 3);
    snprintf(out, size, "%s", ipw_buf_str(&line));
    ipw_buf_release(&line);
}

/* Reads fields of the error table raw, so that no script code runs, and without pushing a key, for
 * which there may be no memory. */
static bool error_field(lua_State *L, int idx, const char *key, char *out, size_t size)
{
    bool found = false;

    lua_pushnil(L);
    while (lua_next(L, idx)) {
        if (lua_type(L, -2) == LUA_TSTRING && strcmp(lua_tostring(L, -2), key) == 0 &&
            lua_type(L, -1) == LUA_TSTRING) {
            read_line(L, -1, out, size);
            found = true;
        }
        lua_pop(L, 1);
    }
    return found;
}

void ipw_vm_take_error(lua_State *L, struct ipw_err *err)
{
    ipw_vm_read_error(L, err);
    lua_pop(L, 1);
}

void ipw_vm_read_error(lua_State *L, struct ipw_err *err)
{
    char message[480], code[32];
    int idx = lua_gettop(L);

    switch (lua_type(L, idx)) {
    case LUA_TSTRING:
        read_line(L, idx, message, sizeof message);
        ipw_fail(err, IPW_ELUA, "%s", message);
        break;
    case LUA_TNUMBER: ipw_fail(err, IPW_ELUA, "%.14g", (double)lua_tonumber(L, idx)); break;
    case LUA_TTABLE:
        if (lua_checkstack(L, 4) && error_field(L, idx, "message", message, sizeof message)) {
            enum ipw_code c = IPW_ELUA;
            if (error_field(L, idx, "code", code, sizeof code)) c = code_of(code);
            ipw_fail(err, c, "%s", message);
        } else {
            ipw_fail(err, IPW_ELUA, "the script raised a table without a message");
        }
        break;
    default: ipw_fail(err, IPW_ELUA, "the script raised a %s value", luaL_typename(L, idx)); break;
    }
}
