#include "script/command_file.h"

#include <lauxlib.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "script/fields.h"
#include "script/host.h"
#include "script/sandbox.h"
#include "script/value.h"

enum { MAX_ROWS = 64, SLOT = sizeof(struct ipw_opt_list) };

static const struct {
    const char *name;
    enum ipw_opt_kind kind;
} kinds[] = {
    {"flag", IPW_OPT_FLAG},       {"string", IPW_OPT_STR},    {"integer", IPW_OPT_INT},
    {"number", IPW_OPT_NUM},      {"time", IPW_OPT_DURATION}, {"joules", IPW_OPT_JOULES},
    {"bytes", IPW_OPT_BYTES},     {"url", IPW_OPT_URL},       {"list", IPW_OPT_LIST},
    {"section", IPW_OPT_SECTION}, {"gone", IPW_OPT_GONE},
};
enum { N_KINDS = sizeof kinds / sizeof *kinds };

struct reading {
    struct ipw_command_file *f;
    const struct ipw_command_block *blocks;
};

static const struct ipw_opt *block_named(lua_State *L, const struct reading *r, const char *name)
{
    const struct ipw_command_block *b = r->blocks;

    while (b->name && strcmp(name, b->name)) b++;
    if (!b->name) luaL_error(L, "options: there is no block '%s'", name);
    return b->rows;
}

static void read_block(lua_State *L, const struct reading *r, const char *name)
{
    const struct ipw_opt *rows = block_named(L, r, name);

    r->f->rows[r->f->n_rows++] = (struct ipw_opt){.name = "", .kind = IPW_OPT_BLOCK, .rows = rows};
}

/* The text at place i of the row at the top; the row keeps it. */
static const char *text_at(lua_State *L, const char *where, int i)
{
    const char *text;

    if (lua_rawgeti(L, -1, i) != LUA_TSTRING)
        luaL_error(L, "%s: value %d must be a text", where, i);
    text = lua_tostring(L, -1);
    lua_pop(L, 1);
    return text;
}

static void read_row(lua_State *L, const struct reading *r, int number)
{
    static const char *const known[] = {"letter", "min", "max", NULL};
    struct ipw_opt *o = &r->f->rows[r->f->n_rows++];
    const char *kind, *letter;
    char where[48];
    size_t k = 0;

    snprintf(where, sizeof where, "options[%d]", number);
    ipw_fields_take(L, lua_gettop(L), where, known, true);
    *o = (struct ipw_opt){.name = text_at(L, where, 1)};
    kind = text_at(L, where, 2);
    if (strcmp(kind, "block") == 0) {
        *o = *block_named(L, r, o->name);
        o->help = text_at(L, where, 3);
        return;
    }
    while (k < N_KINDS && strcmp(kinds[k].name, kind)) k++;
    if (k == N_KINDS) luaL_error(L, "%s: '%s' is no kind of option", where, kind);
    o->kind = kinds[k].kind;
    if (o->kind == IPW_OPT_SECTION) return;
    if (o->kind != IPW_OPT_FLAG && o->kind != IPW_OPT_GONE) o->arg = text_at(L, where, 3);
    o->help = text_at(L, where, o->arg ? 4 : 3);
    letter = ipw_fields_text(L, lua_gettop(L), where, "letter", NULL);
    o->letter = letter ? *letter : 0;
    o->min = ipw_fields_integer(L, lua_gettop(L), where, "min", 0);
    o->max = ipw_fields_integer(L, lua_gettop(L), where, "max", INT64_MAX);
    o->offset = r->f->values_at + (r->f->n_rows - 1) * SLOT;
}

static void read_options(lua_State *L, const struct reading *r)
{
    lua_Integer n = lua_getfield(L, 1, "options") == LUA_TNIL ? 0 : luaL_len(L, -1);

    if (n > MAX_ROWS) luaL_error(L, "options: more than %d rows", (int)MAX_ROWS);
    for (lua_Integer i = 1; i <= n; i++) {
        if (lua_rawgeti(L, 2, i) == LUA_TSTRING)
            read_block(L, r, lua_tostring(L, -1));
        else if (lua_istable(L, -1))
            read_row(L, r, (int)i);
        else
            luaL_error(L, "options[%d]: a table or the name of a block, not a %s", (int)i,
                       luaL_typename(L, -1));
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
    r->f->rows[r->f->n_rows] = (struct ipw_opt)IPW_OPT_END;
}

static bool flag(lua_State *L, const char *name)
{
    bool is;

    lua_getfield(L, 1, name);
    is = lua_toboolean(L, -1);
    lua_pop(L, 1);
    return is;
}

static int count_at(lua_State *L, int i, int otherwise)
{
    int n = otherwise;

    if (lua_getfield(L, 1, "args") == LUA_TTABLE) {
        lua_rawgeti(L, 2, i);
        n = (int)luaL_optinteger(L, 3, otherwise);
    }
    lua_settop(L, 1);
    return n;
}

/* read(name, built_in, reading): the file's table stays on the stack, for its texts. */
static int read_file(lua_State *L)
{
    static const char *const known[] = {"usage",     "about",  "more",   "args",  "options",
                                        "run",       "model",  "cpu_s",  "each",  "memory",
                                        "children",  "total",  "failed", "lines", "again",
                                        "downloads", "beside", "runs",   NULL};
    struct reading *r = lua_touserdata(L, 3);
    struct ipw_command_file *f = r->f;
    const char *name = f->name;

    ipw_value_push_function(L, "ipw.command", "load");
    lua_pushvalue(L, 1);
    lua_pushvalue(L, 2);
    lua_call(L, 2, 1);
    if (lua_isnil(L, -1)) return 1;
    lua_replace(L, 1);
    lua_settop(L, 1);
    ipw_fields_take(L, 1, name, known, false);
    f->command.name = name;
    f->command.usage = ipw_fields_text(L, 1, name, "usage", NULL);
    f->command.about = ipw_fields_text(L, 1, name, "about", NULL);
    if (!f->command.usage || !f->command.about)
        luaL_error(L, "%s: the command's file must say `usage` and `about`", name);
    f->command.more = ipw_fields_text(L, 1, name, "more", NULL);
    f->command.min_args = count_at(L, 1, 0);
    f->command.max_args = count_at(L, 2, f->command.min_args);
    f->model = ipw_fields_text(L, 1, name, "model", NULL);
    f->cpu_ns = ipw_fields_integer(L, 1, name, "cpu_s", 0) * IPW_NS_PER_S;
    f->memory_bytes = ipw_fields_bytes(L, 1, name, "memory", 0, 0, 65536 * IPW_MIB);
    f->failed = (int)ipw_fields_integer(L, 1, name, "failed", -1);
    f->each = flag(L, "each");
    f->downloads = flag(L, "downloads");
    f->children = flag(L, "children");
    f->lines = flag(L, "lines");
    f->again = flag(L, "again");
    f->beside = flag(L, "beside");
    read_options(L, r);
    f->command.options = f->rows;
    return 1;
}

int ipw_command_file_open(struct ipw_command_file *out, const char *name, bool built_in,
                          const struct ipw_command_block *blocks, size_t values_at,
                          struct ipw_err *err)
{
    static struct ipw_host no_host;
    struct ipw_vm_options options = {.host = &no_host};
    struct reading reading = {out, blocks};
    int rc;

    *out = (struct ipw_command_file){.name = name, .built_in = built_in, .values_at = values_at};
    rc = ipw_sandbox_open(&out->vm, &options, err);
    if (rc) return rc;
    out->rows = ipw_calloc(MAX_ROWS + 1, sizeof *out->rows);
    lua_pushcfunction(ipw_vm_lua(out->vm), read_file);
    lua_pushstring(ipw_vm_lua(out->vm), name);
    lua_pushboolean(ipw_vm_lua(out->vm), built_in);
    lua_pushlightuserdata(ipw_vm_lua(out->vm), &reading);
    rc = ipw_vm_call(out->vm, 3, 1, err);
    if (!rc && lua_isnil(ipw_vm_lua(out->vm), -1))
        rc = ipw_fail(err, IPW_ENOTFOUND, "there is no command '%.60s'", name);
    if (rc) ipw_command_file_close(out);
    return rc;
}

void ipw_command_file_close(struct ipw_command_file *f)
{
    if (f->vm) ipw_sandbox_close(f->vm);
    free(f->rows);
    *f = (struct ipw_command_file){0};
}

void *ipw_command_file_values(const struct ipw_command_file *f)
{
    char *values = ipw_calloc(1, f->values_at + (f->n_rows + 1) * SLOT);

    for (size_t i = 0; i < f->n_rows; i++) {
        void *at = values + f->rows[i].offset;

        if (f->rows[i].offset < f->values_at) continue;
        switch (f->rows[i].kind) {
        case IPW_OPT_INT:
        case IPW_OPT_DURATION: *(int64_t *)at = INT64_MIN; break;
        case IPW_OPT_NUM:
        case IPW_OPT_JOULES: *(double *)at = NAN; break;
        case IPW_OPT_BYTES: *(size_t *)at = SIZE_MAX; break;
        default: break;
        }
    }
    return values;
}

void ipw_command_file_values_free(const struct ipw_command_file *f, void *values)
{
    for (size_t i = 0; values && i < f->n_rows; i++)
        if (f->rows[i].kind == IPW_OPT_LIST && f->rows[i].offset >= f->values_at)
            free(((struct ipw_opt_list *)(void *)((char *)values + f->rows[i].offset))->items);
    free(values);
}

static void push_list(lua_State *L, const struct ipw_opt_list *list)
{
    lua_createtable(L, (int)list->n, 0);
    for (size_t i = 0; i < list->n; i++) {
        lua_pushstring(L, list->items[i]);
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
}

static void push_number(lua_State *L, double x)
{
    if (isnan(x))
        lua_pushnil(L);
    else
        lua_pushnumber(L, x);
}

static void push_integer(lua_State *L, int64_t x, bool given, int64_t unit)
{
    if (!given)
        lua_pushnil(L);
    else if (unit > 1)
        lua_pushnumber(L, (double)x / (double)unit);
    else
        lua_pushinteger(L, x);
}

static void push_value(lua_State *L, const struct ipw_opt *o, const void *at, bool own)
{
    switch (o->kind) {
    case IPW_OPT_FLAG: lua_pushboolean(L, *(const bool *)at); break;
    case IPW_OPT_STR:
    case IPW_OPT_URL: lua_pushstring(L, *(const char *const *)at); break;
    case IPW_OPT_INT:
    case IPW_OPT_DURATION:
        push_integer(L, *(const int64_t *)at,
                     own ? *(const int64_t *)at != INT64_MIN : *(const int64_t *)at != 0,
                     o->kind == IPW_OPT_INT ? 1 : IPW_NS_PER_S);
        break;
    case IPW_OPT_NUM:
    case IPW_OPT_JOULES:
        push_number(L, own || *(const double *)at != 0 ? *(const double *)at : NAN);
        break;
    case IPW_OPT_BYTES:
        push_integer(L, (int64_t) * (const size_t *)at,
                     *(const size_t *)at != (own ? SIZE_MAX : (size_t)0), 1);
        break;
    case IPW_OPT_LIST: push_list(L, at); break;
    case IPW_OPT_KEYS:
    case IPW_OPT_SECTION:
    case IPW_OPT_BLOCK:
    case IPW_OPT_GONE: lua_pushnil(L); break;
    }
}

/* offset: of the struct that the rows describe; own: their values begin at `own`. */
static void push_rows(lua_State *L, const struct ipw_opt *rows, const char *values, size_t offset,
                      size_t own)
{
    for (const struct ipw_opt *o = rows; o && o->name; o++) {
        size_t at = offset + o->offset;

        if (o->kind == IPW_OPT_BLOCK) {
            push_rows(L, o->rows, values, at, own);
            continue;
        }
        if (o->holds == IPW_HOLDS_HEADER || o->holds == IPW_HOLDS_JSON) continue;
        luaL_gsub(L, o->name, "-", "_");
        push_value(L, o, values + at, at >= own);
        lua_rawset(L, -3);
    }
}

void ipw_command_file_push(lua_State *L, const struct ipw_command_file *f, const void *values)
{
    luaL_checkstack(L, 8, "options");
    lua_newtable(L);
    push_rows(L, f->rows, values, 0, f->values_at);
}
