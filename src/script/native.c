#include "script/native.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "json/write.h"
#include "script/file_hashes.h"
#include "script/host.h"
#include "script/stock.h"
#include "script/task.h"
#include "script/vm_priv.h"

/* "a.b" is opened by luaopen_a_b.  As in the stock loader, text up to a hyphen is ignored. */
static void open_name(char *out, size_t size, const char *name)
{
    snprintf(out, size, "luaopen_%.*s", (int)strcspn(name, "-"), name);
    for (char *p = out; *p; p++)
        if (*p == '.') *p = '_';
}

static void note(lua_State *L, const char *name, const char *path)
{
    struct ipw_host *host = ipw_vm_host(L);
    struct ipw_event event = {.kind = IPW_EV_NOTE, .t_ns = ipw_now_ns()};
    struct ipw_buf data = IPW_BUF(8192);
    struct ipw_jw w;

    if (!host || !host->on.emit) return;
    ipw_jw_init(&w, &data);
    ipw_jw_obj(&w);
    ipw_jw_kstr(&w, "file", path);
    ipw_jw_kstr(&w, "module", name);
    ipw_jw_obj_end(&w);
    event.tool.name = "native_module";
    if (ipw_task_in_tool(ipw_vm_of(L))) event.span = ipw_host_next_span(host, true);
    ipw_host_emit(host, &event, &data);
}

int ipw_native_load(lua_State *L, const char *name, const char *path, struct ipw_err *err)
{
    char symbol[256];
    lua_CFunction open;
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL), *address;

    if (!handle) {
        const char *why = dlerror();
        bool other = why && strstr(why, "undefined symbol");
        return ipw_fail(err, IPW_ELUA, "%s: cannot be loaded%s (%.300s)", path,
                        other ? ": it was built for another Lua than 5.4" : "", why ? why : "?");
    }
    open_name(symbol, sizeof symbol, name);
    address = dlsym(handle, symbol);
    if (!address)
        return ipw_fail(err, IPW_ELUA, "%s: has no function %s: not a Lua module of that name",
                        path, symbol);
    memcpy(&open, &address, sizeof open); /* POSIX requires that this works */
    note(L, name, path);
    ipw_file_hashes_note_file(path);
    ipw_vm_of(L)->open_libraries(L, IPW_STOCK_ALL_LATE); /* C needs no source text */
    ipw_vm_of(L)->native = true;
    lua_pushcfunction(L, open);
    return 0;
}
