#include "script/scripted_model.h"

#include <lauxlib.h>
#include <lua.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "script/chunk.h"
#include "script/host.h"
#include "script/sandbox.h"
#include "script/search.h"
#include "script/value.h"
#include "script/vm_priv.h"

enum { REQUEST_SHARE = 8 }; /* a request of this part of the memory is large */

struct ipw_scripted_model {
    struct ipw_vm *vm; /* NULL after a failure, until the next request */
    struct ipw_host host;
    struct ipw_vm_options options;
    char path[1024], dir[1024], name[64];
    int64_t number;
    int reply_ref;
    bool formats, pictures;
};

/* [1] the table that the file returned, [2] the model */
static int check_shape(lua_State *L)
{
    struct ipw_scripted_model *m = lua_touserdata(L, 2);
    const char *slash = strrchr(m->path, '/');
    const char *stem = slash ? slash + 1 : m->path;

    if (lua_getfield(L, 1, "name") == LUA_TSTRING)
        snprintf(m->name, sizeof m->name, "%s", lua_tostring(L, -1));
    else
        snprintf(m->name, sizeof m->name, "%.*s", (int)strcspn(stem, "."), stem);
    lua_getfield(L, 1, "response_format");
    m->formats = lua_toboolean(L, -1);
    lua_getfield(L, 1, "pictures");
    m->pictures = lua_toboolean(L, -1);
    if (lua_getfield(L, 1, "reply") != LUA_TFUNCTION)
        return luaL_error(L, "%s: the model has no function 'reply'", m->path);
    m->reply_ref = luaL_ref(L, LUA_REGISTRYINDEX);
    return 0;
}

static int open_state(struct ipw_scripted_model *m, struct ipw_err *err)
{
    lua_State *L;
    int rc = ipw_sandbox_open(&m->vm, &m->options, err);

    if (rc) {
        m->vm = NULL;
        return rc;
    }
    rc = ipw_chunk_run(m->vm, m->path, err);
    if (!rc) {
        L = ipw_vm_lua(m->vm);
        if (!lua_istable(L, -1)) {
            lua_pop(L, 1);
            rc = ipw_fail(err, IPW_ELUA, "%s: a model file must return a table", m->path);
        } else {
            lua_pushcfunction(L, check_shape);
            lua_insert(L, -2);
            lua_pushlightuserdata(L, m);
            rc = ipw_vm_call(m->vm, 2, 0, err);
        }
    }
    if (rc) {
        ipw_sandbox_close(m->vm);
        m->vm = NULL;
    }
    return rc;
}

int ipw_scripted_model_open(struct ipw_scripted_model **out, const char *name,
                            const char *const *paths, struct ipw_err *err)
{
    struct ipw_scripted_model *m = ipw_calloc(1, sizeof *m);
    const char *slash;
    int rc;

    m->options.paths = paths;
    m->options.host = &m->host;
    rc = ipw_sandbox_open(&m->vm, &m->options, err);
    if (!rc) {
        rc = ipw_search_script(m->vm, IPW_SCRIPTED_MODEL_KIND, name, m->path, sizeof m->path, err);
        if (rc) ipw_err_prefix(err, "model");
        ipw_sandbox_close(m->vm);
        m->vm = NULL;
    }
    if (!rc) {
        slash = strrchr(m->path, '/');
        if (strncmp(m->path, "builtin:", 8)) {
            snprintf(m->dir, sizeof m->dir, "%.*s", slash ? (int)(slash - m->path) : 1,
                     slash ? m->path : ".");
            m->options.script_dir = m->dir;
        }
        rc = open_state(m, err);
    }
    if (rc) {
        free(m);
        return rc;
    }
    *out = m;
    return 0;
}

void ipw_scripted_model_close(struct ipw_scripted_model *model)
{
    if (!model) return;
    ipw_sandbox_close(model->vm);
    ipw_host_release(&model->host);
    free(model);
}

const char *ipw_scripted_model_name(const struct ipw_scripted_model *model) { return model->name; }

bool ipw_scripted_model_formats(const struct ipw_scripted_model *model) { return model->formats; }

bool ipw_scripted_model_pictures(const struct ipw_scripted_model *model) { return model->pictures; }

struct turn {
    struct ipw_scripted_model *model;
    const struct ipw_json *request;
    struct ipw_buf *out;
    struct ipw_err *err;
    int rc;
    bool held;                 /* the whole request is in the script's memory */
    size_t before, held_bytes; /* the memory before it, and the memory of the request */
};

static int reply_protected(lua_State *L)
{
    struct turn *t = lua_touserdata(L, 1);

    lua_rawgeti(L, LUA_REGISTRYINDEX, t->model->reply_ref);
    t->before = t->model->vm->used_bytes;
    ipw_value_push(L, t->request);
    if (t->model->vm->used_bytes > t->before) t->held_bytes = t->model->vm->used_bytes - t->before;
    t->held = true;
    lua_createtable(L, 0, 1);
    lua_pushinteger(L, t->model->number);
    lua_setfield(L, -2, "number");
    lua_call(L, 2, 1);
    if (!lua_istable(L, -1))
        return luaL_error(L, "%s: reply() gave a %s, not a table", t->model->path,
                          luaL_typename(L, -1));
    t->rc = ipw_value_encode(L, -1, t->out, t->err);
    return 0;
}

/* A script that passes its limit on a small request does so by itself.  If it cannot hold its
 * request, or a few copies of a large one, only a smaller request helps. */
static bool request_is_too_large(const struct turn *t)
{
    const struct ipw_vm *vm = t->model->vm;

    return vm->over_memory &&
           (!t->held || t->held_bytes > vm->options.memory_bytes / REQUEST_SHARE);
}

int ipw_scripted_model_reply(struct ipw_scripted_model *model, const struct ipw_json *request,
                             struct ipw_buf *out, struct ipw_err *err)
{
    struct turn turn = {.model = model, .request = request, .out = out, .err = err};
    lua_State *L;
    int rc = 0;

    if (!model->vm) rc = open_state(model, err);
    if (rc) return rc;
    model->number++;
    L = ipw_vm_lua(model->vm);
    lua_pushcfunction(L, reply_protected);
    lua_pushlightuserdata(L, &turn);
    rc = ipw_vm_call(model->vm, 1, 0, err);
    if (rc && request_is_too_large(&turn)) {
        ipw_fail(err, IPW_ELIMIT,
                 "the request is too large for the %zu MiB of memory that the model's script has",
                 model->vm->options.memory_bytes / IPW_MIB);
        if (err) err->detail = IPW_SCRIPTED_MODEL_TOO_LARGE;
    }
    if (rc) {
        /* A state that was stopped at a limit stays stopped. */
        ipw_sandbox_close(model->vm);
        model->vm = NULL;
        return rc;
    }
    return turn.rc;
}
