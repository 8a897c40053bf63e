#include "script/served_model.h"

#include <lauxlib.h>
#include <lua.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "json/write.h"
#include "script/export_job.h"
#include "script/host.h"
#include "script/sandbox.h"
#include "script/search.h"
#include "script/value.h"
#include "script/vm_priv.h"

#define ANSWER_BYTES (256 * IPW_MIB)
#define RUN_BYTES    ((size_t)4096 * IPW_MIB) /* for the index of a run */
enum { REQUEST_SHARE = 32 }; /* a body of this part of the memory is large: its table is larger */

struct ipw_served_model {
    struct ipw_vm *vm; /* NULL after a failure, until the next request */
    struct ipw_host host;
    struct ipw_vm_options vm_options;
    struct ipw_served_model_options o;
    struct ipw_export_job job;
    char *runs[1];
    char path[1024], dir[1024];
    int64_t number; /* of requests that reached the model */
    struct ipw_served_counts counts;
};

/* ---- answers ---- */

void ipw_served_answer_error(struct ipw_served_answer *out, int status, const char *message)
{
    struct ipw_jw w;

    *out = (struct ipw_served_answer){
        .status = status, .bytes = IPW_BUF(IPW_MIB), .parts = ipw_calloc(1, sizeof *out->parts)};
    ipw_jw_init(&w, &out->bytes);
    ipw_jw_obj(&w);
    ipw_jw_key(&w, "error");
    ipw_jw_obj(&w);
    ipw_jw_kstr(&w, "code", status == 404 ? "not_found" : NULL);
    ipw_jw_kstr(&w, "message", message);
    ipw_jw_knull(&w, "param");
    ipw_jw_kstr(&w, "type", status >= 500 ? "server_error" : "invalid_request_error");
    ipw_jw_obj_end(&w);
    ipw_jw_obj_end(&w);
    out->parts[out->n_parts++].end = out->bytes.len;
}

void ipw_served_answer_release(struct ipw_served_answer *answer)
{
    ipw_buf_release(&answer->bytes);
    free(answer->parts);
    *answer = (struct ipw_served_answer){0};
}

/* ---- the state ---- */

static void set_number(lua_State *L, const char *name, double x)
{
    lua_pushnumber(L, x);
    lua_setfield(L, -2, name);
}

static void set_flag(lua_State *L, const char *name, bool is)
{
    lua_pushboolean(L, is);
    lua_setfield(L, -2, name);
}

/* open(model): calls serve.open(). */
static int open_protected(lua_State *L)
{
    const struct ipw_served_model *m = lua_touserdata(L, 1);

    ipw_value_push_function(L, "ipw.serve", "open");
    lua_newtable(L);
    lua_pushstring(L, m->path);
    lua_setfield(L, -2, "path");
    lua_pushliteral(L, "ipw-agent-" IPW_VERSION);
    lua_setfield(L, -2, "fingerprint");
    set_number(L, "ttft_s", (double)m->o.ttft_ns / (double)IPW_NS_PER_S);
    set_number(L, "itl_s", (double)m->o.itl_ns / (double)IPW_NS_PER_S);
    set_number(L, "speed", m->o.speed);
    set_flag(L, "saved", m->o.run != NULL);
    set_flag(L, "with_failures", m->o.with_failures);
    set_flag(L, "filler", m->o.filler);
    lua_call(L, 1, 0);
    return 0;
}

static int open_state(struct ipw_served_model *m, struct ipw_err *err)
{
    lua_State *L;
    int rc = ipw_sandbox_open(&m->vm, &m->vm_options, err);

    if (rc) {
        m->vm = NULL;
        return rc;
    }
    L = ipw_vm_lua(m->vm);
    lua_pushcfunction(L, open_protected);
    lua_pushlightuserdata(L, m);
    rc = ipw_vm_call(m->vm, 1, 0, err);
    if (rc) {
        ipw_sandbox_close(m->vm);
        m->vm = NULL;
        return rc;
    }
    return 0;
}

/* The path of the model's file, whose folder is searched first. */
static int find_file(struct ipw_served_model *m, struct ipw_err *err)
{
    const char *slash;
    struct ipw_vm *vm;
    int rc = ipw_sandbox_open(&vm, &m->vm_options, err);

    if (rc) return rc;
    rc = ipw_search_script(vm, IPW_SERVED_MODEL_KIND, m->o.name, m->path, sizeof m->path, err);
    ipw_sandbox_close(vm);
    if (rc) return ipw_err_prefix(err, "model");
    slash = strrchr(m->path, '/');
    if (strncmp(m->path, "builtin:", 8) == 0) return 0;
    snprintf(m->dir, sizeof m->dir, "%.*s", slash ? (int)(slash - m->path) : 1,
             slash ? m->path : ".");
    m->vm_options.script_dir = m->dir;
    return 0;
}

int ipw_served_model_open(struct ipw_served_model **out,
                          const struct ipw_served_model_options *options, struct ipw_err *err)
{
    struct ipw_served_model *m = ipw_calloc(1, sizeof *m);
    int rc = 0;

    m->o = *options;
    m->vm_options.paths = options->paths;
    m->vm_options.host = &m->host;
    if (options->run) {
        m->runs[0] = ipw_strdup(options->run);
        m->job = (struct ipw_export_job){.runs = m->runs, .n_runs = 1};
        m->host.export_job = &m->job;
        m->vm_options.memory_bytes = RUN_BYTES;
        m->vm_options.slice_cpu_ns = 3600 * IPW_NS_PER_S;
    } else {
        rc = find_file(m, err);
    }
    if (!rc) rc = open_state(m, err);
    if (rc) {
        ipw_served_model_close(m);
        return rc;
    }
    *out = m;
    return 0;
}

void ipw_served_model_close(struct ipw_served_model *m)
{
    if (!m) return;
    if (m->vm) ipw_sandbox_close(m->vm);
    ipw_host_release(&m->host);
    free(m->runs[0]);
    free(m);
}

struct ipw_served_counts ipw_served_model_counts(const struct ipw_served_model *m)
{
    return m->counts;
}

/* ---- a request ---- */

struct question {
    struct ipw_served_model *model;
    struct ipw_served_answer *out;
    const char *body;
    size_t n;
    int64_t created;
    const char *protocol;
};

/* The parts: a flat list of texts and the seconds at which each is due. */
static void read_parts(lua_State *L, struct ipw_served_answer *out)
{
    lua_Unsigned n = lua_getfield(L, 2, "parts") == LUA_TTABLE ? lua_rawlen(L, -1) : 0;

    out->parts = ipw_calloc(n / 2 + 1, sizeof *out->parts);
    for (lua_Unsigned i = 1; i < n; i += 2) {
        size_t length;
        const char *text;
        double due_ns;

        lua_rawgeti(L, 3, (lua_Integer)i);
        lua_rawgeti(L, 3, (lua_Integer)i + 1);
        text = lua_tolstring(L, -2, &length);
        due_ns = lua_tonumber(L, -1) * (double)IPW_NS_PER_S;
        ipw_buf_add(&out->bytes, text, length);
        out->parts[out->n_parts++] = (struct ipw_served_part){
            out->bytes.len, due_ns < 1e18 ? (int64_t)llround(due_ns) : INT64_MAX / 2};
        lua_pop(L, 2);
    }
}

/* answer(question): calls serve.answer() and reads what it returns into question->out, which holds
 * all that C owns. */
static int answer_protected(lua_State *L)
{
    struct question *q = lua_touserdata(L, 1);
    struct ipw_served_model *m = q->model;
    const char *by;

    ipw_value_push_function(L, "ipw.serve", "answer");
    lua_pushlstring(L, q->body, q->n);
    lua_pushinteger(L, q->created);
    lua_pushinteger(L, m->number + 1);
    lua_pushstring(L, q->protocol);
    lua_call(L, 4, 1);
    lua_getfield(L, 2, "by");
    by = lua_tostring(L, -1);
    if (by) m->number++;
    m->counts.by_request += by && strcmp(by, "request") == 0;
    m->counts.by_messages += by && strcmp(by, "messages") == 0;
    m->counts.not_found += by && strcmp(by, "none") == 0;
    lua_getfield(L, 2, "note");
    snprintf(q->out->note, sizeof q->out->note, "%s", luaL_optstring(L, -1, ""));
    lua_getfield(L, 2, "status");
    q->out->status = (int)luaL_checkinteger(L, -1);
    lua_getfield(L, 2, "stream");
    q->out->streams = lua_toboolean(L, -1);
    lua_getfield(L, 2, "breaks");
    q->out->breaks = lua_toboolean(L, -1);
    lua_settop(L, 2);
    read_parts(L, q->out);
    return 0;
}

/* A script that passes its limit on a small request does so by itself.  If it cannot hold its
 * request, or a few copies of a large one, only a smaller request helps. */
static bool is_too_large(const struct ipw_vm *vm, size_t n)
{
    return vm->over_memory && n > vm->options.memory_bytes / REQUEST_SHARE;
}

void ipw_served_model_answer(struct ipw_served_model *m, struct ipw_served_answer *out,
                             const char *protocol, const char *body, size_t n, int64_t created)
{
    struct question question = {m, out, body, n, created, protocol};
    struct ipw_err err = {0};
    bool too_large = false;
    int rc = 0;

    *out = (struct ipw_served_answer){.bytes = IPW_BUF(ANSWER_BYTES)};
    if (!m->vm) rc = open_state(m, &err);
    if (!rc) {
        lua_pushcfunction(ipw_vm_lua(m->vm), answer_protected);
        lua_pushlightuserdata(ipw_vm_lua(m->vm), &question);
        rc = ipw_vm_call(m->vm, 1, 0, &err);
        if (rc) { /* a state that was stopped at a limit stays stopped */
            m->number++;
            too_large = is_too_large(m->vm, n);
            ipw_sandbox_close(m->vm);
            m->vm = NULL;
        }
    }
    if (too_large)
        ipw_fail(&err, IPW_ELIMIT,
                 "the request is too large for the %zu MiB of memory that the model's script has",
                 (m->vm_options.memory_bytes ? m->vm_options.memory_bytes : 64 * IPW_MIB) /
                     IPW_MIB);
    else if (!rc && out->bytes.failed)
        rc = ipw_fail(&err, IPW_ELIMIT, "the reply is too long");
    if (!rc) return;
    ipw_served_answer_release(out);
    ipw_served_answer_error(out, too_large ? 413 : 500, err.text);
}
