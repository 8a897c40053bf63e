#include "script/recorded_effect.h"

#include <lauxlib.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/text.h"
#include "base/utf8.h"
#include "json/write.h"
#include "llm/playback.h"
#include "script/host.h"
#include "script/task.h"
#include "script/value.h"
#include "script/vm.h"

enum {
    MAX_VALUE_BYTES = 4 * 1024 * 1024,
    MAX_NOTE_BYTES = 16 * 1024 * 1024,
    MAX_RESULTS = 16,
    MAX_MEMBERS = 256,
    MAX_DEPTH = 6
};

int64_t ipw_recorded_effect_begin(lua_State *L)
{
    struct ipw_host *host = ipw_vm_host(L);

    if (!host || !host->on.emit || ipw_task_in_tool(ipw_vm_of(L))) return 0;
    return ++host->count.effects;
}

bool ipw_recorded_effect_replayed(lua_State *L, int64_t id)
{
    const struct ipw_host *host = ipw_vm_host(L);

    return id > 0 && ipw_playback_answers(host->replay);
}

/* ---- values ---- */

/* Bytes that are not JSON text, as pairs of hexadecimal digits. */
static void write_bytes(struct ipw_jw *w, const char *s, size_t n)
{
    struct ipw_buf hex = IPW_BUF(2 * (size_t)MAX_VALUE_BYTES);

    ipw_text_hex(&hex, s, n);
    ipw_jw_obj(w);
    ipw_jw_key(w, "hex");
    ipw_jw_strn(w, ipw_buf_str(&hex), hex.len);
    ipw_jw_obj_end(w);
    ipw_buf_release(&hex);
}

static void write_value(lua_State *L, int idx, struct ipw_jw *w, int depth);

static int by_name(const void *a, const void *b)
{
    const char *const *x = a, *const *y = b;

    return strcmp(*x, *y);
}

/* A list, or named members: the tables that our own functions return. */
static void write_table(lua_State *L, int idx, struct ipw_jw *w, int depth)
{
    const char *names[MAX_MEMBERS];
    size_t n = 0;
    lua_Integer length = (lua_Integer)lua_rawlen(L, idx);

    lua_pushnil(L);
    while (lua_next(L, idx)) {
        lua_pop(L, 1);
        if (lua_type(L, -1) == LUA_TSTRING && n < MAX_MEMBERS) names[n++] = lua_tostring(L, -1);
    }
    ipw_jw_obj(w);
    ipw_jw_key(w, n ? "table" : "list");
    if (n) {
        qsort(names, n, sizeof *names, by_name);
        ipw_jw_obj(w);
    } else {
        ipw_jw_arr(w);
    }
    for (size_t i = 0; i < n; i++) {
        ipw_jw_key_any(w, names[i], strlen(names[i]));
        lua_pushstring(L, names[i]);
        lua_rawget(L, idx);
        write_value(L, lua_gettop(L), w, depth + 1);
        lua_pop(L, 1);
    }
    for (lua_Integer i = 1; !n && i <= length; i++) {
        lua_rawgeti(L, idx, i);
        write_value(L, lua_gettop(L), w, depth + 1);
        lua_pop(L, 1);
    }
    if (n)
        ipw_jw_obj_end(w);
    else
        ipw_jw_arr_end(w);
    ipw_jw_obj_end(w);
}

/* Each value is text, a number, a boolean or null; {"table":{...}} or {"list":[...]} of values;
 * {"hex":...} for bytes that are not text; or {"left_out":bytes}. */
static void write_value(lua_State *L, int idx, struct ipw_jw *w, int depth)
{
    struct ipw_buf json = IPW_BUF(MAX_VALUE_BYTES);
    size_t n;
    const char *s;

    switch (lua_type(L, idx)) {
    case LUA_TSTRING:
        s = lua_tolstring(L, idx, &n);
        if (n > MAX_VALUE_BYTES) {
            ipw_jw_obj(w);
            ipw_jw_kint(w, "left_out", (int64_t)n);
            ipw_jw_obj_end(w);
        } else if (memchr(s, 0, n) || !ipw_utf8_valid(s, n)) {
            write_bytes(w, s, n);
        } else {
            ipw_jw_strn(w, s, n);
        }
        break;
    case LUA_TTABLE:
        if (depth < MAX_DEPTH && lua_checkstack(L, 8))
            write_table(L, idx, w, depth);
        else
            ipw_jw_null(w);
        break;
    default:
        if (lua_isnil(L, idx) || ipw_value_encode(L, idx, &json, NULL))
            ipw_jw_null(w);
        else
            ipw_jw_raw(w, ipw_buf_str(&json), json.len);
    }
    ipw_buf_release(&json);
}

static void push_hex(lua_State *L, const char *s, size_t n)
{
    luaL_Buffer b;

    ipw_text_unhex(luaL_buffinitsize(L, &b, n / 2), s, n);
    luaL_pushresultsize(&b, n / 2);
}

static void push_value(lua_State *L, const struct ipw_json *node)
{
    const struct ipw_json *hex = ipw_json_get(node, "hex"), *table = ipw_json_get(node, "table");
    const struct ipw_json *list = ipw_json_get(node, "list");

    luaL_checkstack(L, 8, NULL);

    if (ipw_json_is_null(node)) {
        lua_pushnil(L);
    } else if (ipw_json_kind(node) != IPW_JSON_OBJ) {
        ipw_value_push(L, node);
    } else if (ipw_json_kind(hex) == IPW_JSON_STR) {
        push_hex(L, ipw_json_str(hex, ""), ipw_json_str_len(hex));
    } else if (table) {
        lua_newtable(L);
        for (const struct ipw_json *m = ipw_json_first(table); m; m = ipw_json_next(m)) {
            lua_pushstring(L, ipw_json_key(m));
            push_value(L, m);
            lua_rawset(L, -3);
        }
    } else if (list) {
        lua_Integer i = 0;

        lua_newtable(L);
        for (const struct ipw_json *m = ipw_json_first(list); m; m = ipw_json_next(m)) {
            push_value(L, m);
            lua_rawseti(L, -2, ++i);
        }
    } else {
        luaL_error(L, "the saved run left out %d bytes that this replay needs",
                   (int)ipw_json_int(ipw_json_get(node, "left_out"), 0));
    }
}

/* Pushes the recorded results and returns their number. */
static int push_results(lua_State *L, const struct ipw_json *value)
{
    int n = 0;

    luaL_checkstack(L, MAX_RESULTS + 8, NULL);
    for (const struct ipw_json *v = ipw_json_first(value); v && n < MAX_RESULTS;
         v = ipw_json_next(v), n++)
        push_value(L, v);
    return n;
}

/* ---- the note ---- */

static void emit(struct ipw_host *host, int64_t id, const char *name, const char *value, size_t n)
{
    struct ipw_event event = {.kind = IPW_EV_NOTE, .t_ns = ipw_now_ns()};
    struct ipw_buf data = IPW_BUF(2 * (size_t)MAX_NOTE_BYTES);
    struct ipw_jw w;

    ipw_jw_init(&w, &data);
    ipw_jw_obj(&w);
    ipw_jw_kint(&w, "id", id);
    ipw_jw_kstr(&w, "name", "effect");
    ipw_jw_kstr(&w, "of", name);
    ipw_jw_kraw(&w, "value", value, n);
    ipw_jw_obj_end(&w);
    ipw_host_emit(host, &event, &data);
}

void ipw_recorded_effect_note(lua_State *L, int64_t id, const char *name, int n)
{
    struct ipw_buf value = IPW_BUF(MAX_NOTE_BYTES);
    int first = lua_gettop(L) - n + 1;
    struct ipw_jw w;

    if (id <= 0) return;
    ipw_jw_init(&w, &value);
    ipw_jw_arr(&w);
    for (int i = 0; i < n; i++) write_value(L, first + i, &w, 0);
    ipw_jw_arr_end(&w);
    emit(ipw_vm_host(L), id, name, ipw_buf_str(&value), value.len);
    ipw_buf_release(&value);
}

/* In a replay the note gets the saved text of the results. */
static void note_again(struct ipw_host *host, int64_t id, const char *name,
                       const struct ipw_json *value)
{
    struct ipw_buf text = IPW_BUF(MAX_NOTE_BYTES);

    ipw_json_print(&text, value);
    emit(host, id, name, ipw_buf_str(&text), text.len);
    ipw_buf_release(&text);
}

int ipw_recorded_effect_call(lua_State *L, const char *name, lua_CFunction fn)
{
    int nargs = lua_gettop(L), n;
    int64_t id;

    id = ipw_recorded_effect_begin(L);
    if (ipw_recorded_effect_replayed(L, id)) {
        struct ipw_host *host = ipw_vm_host(L);
        const struct ipw_event_line *line = ipw_playback_effect(host->replay, id, name);
        const struct ipw_json *value = line ? ipw_json_get(line->data, "value") : NULL;

        if (line) {
            n = push_results(L, value);
            note_again(host, id, name, value); /* this can free the line */
            return n;
        }
        if (ipw_playback_answers(host->replay)) return luaL_error(L, "the replay went another way");
    }
    lua_pushcfunction(L, fn);
    lua_insert(L, 1);
    lua_call(L, nargs, LUA_MULTRET);
    n = lua_gettop(L);
    ipw_recorded_effect_note(L, id, name, n);
    return n;
}

/* ---- waiting for a saved line ---- */

struct wait_op {
    struct ipw_op op;
    struct ipw_host *host;
    const char *name;
    ipw_saved_fn *push;
    struct ipw_event_line *line; /* a copy; NULL: there is none */
};

static void answered(void *ud, const struct ipw_event_line *line)
{
    struct wait_op *w = ud;

    if (line) w->line = ipw_event_line_new(ipw_memdup(line->text, line->n), line->n, NULL);
    ipw_op_done(&w->op);
}

static void wait_cancel(struct ipw_op *op)
{
    struct wait_op *w = (struct wait_op *)op;

    ipw_playback_forget(w->host->replay, w);
}

static void wait_release(struct ipw_op *op) { ipw_event_line_free(((struct wait_op *)op)->line); }

static int wait_finish(lua_State *L, struct ipw_op *op)
{
    struct wait_op *w = (struct wait_op *)op;

    return w->push(L, w->host, w->name, w->line);
}

int ipw_recorded_wait(lua_State *L, int64_t id, const char *name, ipw_saved_fn *push)
{
    struct wait_op *w = ipw_op_new(L, sizeof *w, wait_cancel, wait_finish, wait_release);

    w->op.recorded = true;
    w->host = ipw_vm_host(L);
    w->name = name;
    w->push = push;
    ipw_playback_wait(w->host->replay, id, answered, w);
    return ipw_op_await(L);
}

static int push_effect(lua_State *L, struct ipw_host *host, const char *name,
                       const struct ipw_event_line *line)
{
    const struct ipw_json *value = line ? ipw_json_get(line->data, "value") : NULL;

    if (!value) {
        ipw_value_push_error(L, "replay", "the replay went another way here", true);
        return lua_error(L);
    }
    note_again(host, ipw_playback_effect_id(line), name, value);
    return push_results(L, value);
}

int ipw_recorded_effect_wait(lua_State *L, int64_t id, const char *name)
{
    return ipw_recorded_wait(L, -id, name, push_effect);
}
