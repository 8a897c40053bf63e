#include "script/dataset_priv.h"

#include <lauxlib.h>
#include <lua.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/text.h"
#include "data/rows.h"
#include "json/write.h"
#include "script/chunk.h"
#include "script/host.h"
#include "script/sandbox.h"
#include "script/search.h"
#include "script/value.h"
#include "script/vm.h"

/* For all rows at once, some 70 us each; a script that never returns still ends. */
#define LOAD_CPU_NS (300 * IPW_NS_PER_S)

/* ---- reading the script's tables; these run protected and may raise ---- */

/* A copy of the field's text (numbers and booleans as Lua writes them), or NULL. */
static char *text_field(lua_State *L, int idx, const char *name)
{
    char *copy = NULL;

    if (lua_getfield(L, idx, name) == LUA_TBOOLEAN)
        copy = ipw_strdup(lua_toboolean(L, -1) ? "true" : "false");
    else if (lua_isstring(L, -1))
        copy = ipw_strdup(lua_tostring(L, -1));
    lua_pop(L, 1);
    return copy;
}

static char *object_field(lua_State *L, int idx, const char *name)
{
    struct ipw_buf out = IPW_BUF(IPW_DATASET_TEXT_MAX);
    char *copy = NULL;

    if (lua_getfield(L, idx, name) == LUA_TTABLE && ipw_value_encode(L, -1, &out, NULL) == 0)
        copy = ipw_buf_take(&out, NULL);
    ipw_buf_release(&out);
    lua_pop(L, 1);
    return copy;
}

static void read_files(lua_State *L, int record, struct ipw_case *c)
{
    if (lua_getfield(L, record, "files") != LUA_TTABLE) {
        lua_pop(L, 1);
        return;
    }
    for (lua_Integer k = 1; lua_rawgeti(L, -1, k) == LUA_TTABLE; k++) {
        int at = lua_gettop(L);
        struct ipw_case_file *f;
        IPW_GROW(c->files, c->cap_files, c->n_files + 1);
        f = &c->files[c->n_files++];
        *f = (struct ipw_case_file){0};
        f->name = text_field(L, at, "name");
        f->path = text_field(L, at, "path");
        f->builtin = text_field(L, at, "builtin");
        f->data = text_field(L, at, "data");
        lua_pushnil(L); /* the record keeps no second copy */
        lua_setfield(L, at, "data");
        lua_pop(L, 1);
    }
    lua_pop(L, 2);
}

/* The case on the top of the stack, as ipw.cases gives it. */
static void read_case(lua_State *L, struct ipw_dataset *cases, int64_t number)
{
    int at = lua_gettop(L);
    struct ipw_case *c;

    IPW_GROW(cases->list, cases->cap, cases->n + 1);
    c = &cases->list[cases->n++];
    *c = (struct ipw_case){.number = number};
    c->id = text_field(L, at, "id");
    c->prompt = text_field(L, at, "prompt");
    c->system = text_field(L, at, "system");
    c->level = text_field(L, at, "level");
    c->error = text_field(L, at, "error");
    c->metadata = object_field(L, at, "metadata");
    c->answer = text_field(L, at, "answer");
    c->subject = text_field(L, at, "subject");
    c->reference = object_field(L, at, "reference");
    c->given = text_field(L, at, "given");
    c->at_s = lua_getfield(L, at, "at_s") == LUA_TNUMBER ? lua_tonumber(L, -1) : (double)NAN;
    if (lua_getfield(L, at, "epoch") == LUA_TNUMBER) c->epoch = (int)lua_tointeger(L, -1);
    lua_pop(L, 2);
    read_files(L, at, c);
}

static void push_options(lua_State *L, const struct ipw_dataset_options *o) // [0, +1]
{
    const struct {
        const char *name, *text;
    } texts[] = {{"dataset", o->dataset},    {"data_dir", o->data_dir}, {"encoding", o->encoding},
                 {"where", o->choice.where}, {"ids", o->choice.ids},    {"query", o->choice.query}};
    const struct {
        const char *name;
        int64_t n;
    } numbers[] = {{"from", o->choice.from},
                   {"to", o->choice.to},
                   {"sample", o->choice.sample},
                   {"seed", o->choice.sample_seed}};

    lua_createtable(L, 0, 9);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        lua_pushstring(L, texts[i].text);
        lua_setfield(L, -2, texts[i].name);
    }
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        lua_pushinteger(L, numbers[i].n);
        lua_setfield(L, -2, numbers[i].name);
    }
}

/* load(script table, light userdata cases): ipw.cases loads the script's tasks. */
static int load_protected(lua_State *L)
{
    struct ipw_dataset *cases = lua_touserdata(L, 2);

    cases->rule = text_field(L, 1, "rule");
    cases->unscored = text_field(L, 1, "unscored");
    if (cases->options->scorer_only) {
        cases->name = text_field(L, 1, "name");
        lua_settop(L, 1);
        cases->script = luaL_ref(L, LUA_REGISTRYINDEX);
        return 0;
    }
    ipw_value_push_function(L, "ipw.cases", "load");
    lua_pushvalue(L, 1);
    push_options(L, cases->options);
    lua_call(L, 2, 1); // script cases loaded
    cases->name = text_field(L, 3, "name");
    cases->note = text_field(L, 3, "note");
    cases->sha256 = text_field(L, 3, "sha256");
    cases->source = text_field(L, 3, "source");
    lua_getfield(L, 3, "case");   // script cases loaded case
    lua_getfield(L, 3, "chosen"); // script cases loaded case chosen
    for (lua_Integer i = 1; lua_rawgeti(L, 5, i) == LUA_TNUMBER; i++) {
        int64_t number = lua_tointeger(L, -1);

        lua_pushvalue(L, 4);
        lua_insert(L, -2);
        lua_call(L, 1, 1);
        read_case(L, cases, number);
        lua_pop(L, 1);
    }
    lua_getfield(L, 3, "records");
    cases->total = (size_t)lua_rawlen(L, -1);
    cases->records = luaL_ref(L, LUA_REGISTRYINDEX);
    lua_pushvalue(L, 1);
    cases->script = luaL_ref(L, LUA_REGISTRYINDEX);
    return 0;
}

static bool has_id(const void *ud, uint32_t number, const void *thing)
{
    const struct ipw_case *c = &((const struct ipw_dataset *)ud)->list[number];
    const struct ipw_case *wanted = thing;

    return c->epoch == wanted->epoch && strcmp(c->id, wanted->id) == 0;
}

/* Tasks of a file are checked in lua/ipw/dataset.lua, where lines are known; tasks of a script are
 * checked here.  Everything about a run depends on unique ids: resume, compare, validate. */
static int index_ids(struct ipw_dataset *cases, struct ipw_err *err)
{
    ipw_table_release(&cases->by_id);
    cases->by_id = (struct ipw_table){.same = has_id, .ud = cases};
    for (size_t i = 0; i < cases->n; i++) {
        const struct ipw_case *c = &cases->list[i];
        uint32_t *at =
            ipw_table_at(&cases->by_id, ipw_table_text_key(c->id, (uint64_t)c->epoch), c);

        if (*at != IPW_TABLE_NONE)
            return ipw_fail(err, IPW_EPARSE, "%s: tasks %lld and %lld have the same id \"%.80s\"",
                            cases->options->dataset, (long long)cases->list[*at].number,
                            (long long)c->number, c->id);
        *at = (uint32_t)i;
    }
    return 0;
}

/* Files are recognised by their ending, in any folder.  A path with another ending than a script's
 * is also a file: the reader then lists the known kinds, whereas Lua would report the first
 * byte. */
static bool is_rows_file(const char *name)
{
    const char *slash = strrchr(name, '/'), *dot = strrchr(slash ? slash + 1 : name, '.');

    if (ipw_rows_knows_name(name)) return true;
    return slash && strncmp(name, "builtin:", 8) != 0 && dot && strcmp(dot, ".lua") != 0;
}

static bool is_of_hub(const char *name) { return strncmp(name, "hf:", 3) == 0; }

/* (module, function, text): what the function makes of the text; its nil and message is an
 * error. */
static int ask_protected(lua_State *L)
{
    ipw_value_push_function(L, lua_tostring(L, 1), lua_tostring(L, 2));
    lua_pushvalue(L, 3);
    lua_call(L, 1, 2);
    if (lua_isnil(L, -2)) return luaL_error(L, "%s", lua_tostring(L, -1));
    lua_pop(L, 1);
    return 1;
}

/* Leaves what MODULE.FUNCTION(text) gives on the stack. */
static int ask(struct ipw_vm *vm, const char *module, const char *function, const char *text,
               struct ipw_err *err)
{
    lua_State *L = ipw_vm_lua(vm);

    lua_pushcfunction(L, ask_protected);
    lua_pushstring(L, module);
    lua_pushstring(L, function);
    lua_pushstring(L, text);
    return ipw_vm_call(vm, 3, 1, err);
}

/* (dataset, scorer): the dataset's table with the scorer's score, and with its extract if it has
 * one. */
static int use_scorer_protected(lua_State *L)
{
    static const char *const fields[] = {"score", "extract"};

    if (lua_getfield(L, 2, "score") != LUA_TFUNCTION)
        return luaL_error(L, "the scorer has no function 'score'");
    lua_pop(L, 1);
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        if (lua_getfield(L, 2, fields[i]) == LUA_TFUNCTION)
            lua_setfield(L, 1, fields[i]);
        else
            lua_pop(L, 1);
    }
    lua_getfield(L, 2, "rule");
    lua_setfield(L, 1, "rule");
    lua_settop(L, 1);
    return 1;
}

/* The dataset's table is on the stack, and stays there. */
static int use_scorer(struct ipw_dataset *cases, const char *scorer, struct ipw_err *err)
{
    lua_State *L = ipw_vm_lua(cases->vm);
    const char *dot = strrchr(scorer, '.');
    int rc;

    if (dot && strcmp(dot, ".lua") == 0)
        rc = ipw_chunk_run(cases->vm, scorer, err);
    else
        rc = ask(cases->vm, "ipw.score", "named", scorer, err);
    if (rc) return rc;
    lua_pushcfunction(L, use_scorer_protected);
    lua_insert(L, -3);
    rc = ipw_vm_call(cases->vm, 2, 1, err);
    return rc ? ipw_err_prefix(err, "%s", scorer) : 0;
}

int ipw_dataset_open(struct ipw_dataset **out, const struct ipw_dataset_options *options,
                     struct ipw_err *err)
{
    struct ipw_dataset *cases = ipw_calloc(1, sizeof *cases);
    struct ipw_vm_options vm_options = {
        .memory_bytes = 4096 * IPW_MIB, /* a dataset can be large; it is the user's own */
        .slice_cpu_ns = LOAD_CPU_NS,
        .paths = options->paths,
        .host = &cases->host,
    };
    char path[1024];
    lua_State *L;
    int rc;

    cases->options = options;
    if (options->data_dir) {
        cases->run = ipw_strdup(options->data_dir);
        cases->job = (struct ipw_export_job){.runs = &cases->run, .n_runs = 1};
        cases->host.export_job = &cases->job;
    }
    rc = ipw_sandbox_open(&cases->vm, &vm_options, err);
    if (rc) goto fail;
    L = ipw_vm_lua(cases->vm);
    rc = is_rows_file(options->dataset) || is_of_hub(options->dataset)
             ? IPW_ENOTFOUND
             : ipw_search_script(cases->vm, "datasets", options->dataset, path, sizeof path, err);
    if (!rc) {
        rc = ipw_chunk_run(cases->vm, path, err);
    } else if (is_of_hub(options->dataset)) {
        rc = ask(cases->vm, "ipw.named", "of_hub", options->dataset, err);
    } else if (options->scorer_only || is_rows_file(options->dataset) ||
               access(options->dataset, F_OK) == 0) {
        /* A file of another kind is told from a name, and which kinds can be read. */
        rc = ask(cases->vm, "ipw.dataset", "open", options->dataset, err);
    }
    if (!rc && options->scorer) rc = use_scorer(cases, options->scorer, err);
    if (rc) goto fail;
    lua_pushcfunction(L, load_protected);
    lua_insert(L, -2);
    lua_pushlightuserdata(L, cases);
    rc = ipw_vm_call(cases->vm, 2, 0, err);
    if (!rc) rc = index_ids(cases, err);
    if (rc) goto fail;
    ipw_vm_set_slice(cases->vm, 0); /* later calls are for one answer each */
    if (!cases->name) cases->name = ipw_strdup(options->dataset);
    cases->options = NULL;
    *out = cases;
    return 0;
fail:
    ipw_dataset_free(cases);
    return rc;
}

int ipw_dataset_check_where(const char *expression, struct ipw_err *err)
{
    struct ipw_vm_options options = {.slice_cpu_ns = IPW_NS_PER_S};
    struct ipw_vm *vm;
    int rc = ipw_sandbox_open(&vm, &options, err);

    if (rc) return rc;
    rc = ask(vm, "ipw.where", "compile", expression, err);
    ipw_sandbox_close(vm);
    return rc ? ipw_err_prefix(err, "--where") : 0;
}

struct ipw_dataset *ipw_dataset_given(const char *name, const char *source, const char *sha256,
                                      const char *unscored, size_t n)
{
    struct ipw_dataset *cases = ipw_calloc(1, sizeof *cases);

    cases->name = ipw_strdup(name);
    cases->source = ipw_strdup(source);
    cases->sha256 = ipw_strdup(sha256);
    cases->unscored = ipw_strdup(unscored);
    cases->total = cases->n = n;
    return cases;
}

static void release_case(struct ipw_case *c)
{
    for (size_t k = 0; k < c->n_files; k++) {
        free(c->files[k].name);
        free(c->files[k].path);
        free(c->files[k].builtin);
        free(c->files[k].data);
    }
    free(c->files);
    free(c->id);
    free(c->prompt);
    free(c->system);
    free(c->level);
    free(c->metadata);
    free(c->answer);
    free(c->subject);
    free(c->reference);
    free(c->error);
    free(c->given);
}

void ipw_dataset_cut(struct ipw_dataset *cases, bool (*keep)(const void *ud, const char *id),
                     const void *ud)
{
    size_t n = 0;

    for (size_t i = 0; i < cases->n; i++) {
        cases->list[i].place = (int64_t)i + 1;
        if (keep(ud, cases->list[i].id))
            cases->list[n++] = cases->list[i];
        else
            release_case(&cases->list[i]);
    }
    cases->n = n;
    index_ids(cases, NULL); /* they are unique still */
}

void ipw_dataset_free(struct ipw_dataset *cases)
{
    if (!cases) return;
    ipw_sandbox_close(cases->vm);
    for (size_t i = 0; cases->list && i < cases->n; i++) release_case(&cases->list[i]);
    free(cases->list);
    ipw_table_release(&cases->by_id);
    free(cases->name);
    free(cases->note);
    free(cases->sha256);
    free(cases->source);
    free(cases->rule);
    free(cases->unscored);
    free(cases->run);
    free(cases);
}

size_t ipw_dataset_count(const struct ipw_dataset *cases) { return cases->n; }
size_t ipw_dataset_total(const struct ipw_dataset *cases) { return cases->total; }
size_t ipw_dataset_files(const struct ipw_dataset *cases)
{
    size_t n = 0;

    for (size_t i = 0; cases->list && i < cases->n; i++) n += cases->list[i].n_files;
    return n;
}

const char *ipw_dataset_name(const struct ipw_dataset *cases) { return cases->name; }
const char *ipw_dataset_note(const struct ipw_dataset *cases) { return cases->note; }
const char *ipw_dataset_sha256(const struct ipw_dataset *cases) { return cases->sha256; }
const char *ipw_dataset_rule(const struct ipw_dataset *cases) { return cases->rule; }
const char *ipw_dataset_source(const struct ipw_dataset *cases) { return cases->source; }

size_t ipw_dataset_find(const struct ipw_dataset *cases, const char *id, int epoch)
{
    struct ipw_case c = {.id = (char *)id, .epoch = epoch};
    uint32_t at = ipw_table_get(&cases->by_id, ipw_table_text_key(id, (uint64_t)epoch), &c);

    if (at != IPW_TABLE_NONE) return at;
    return epoch ? ipw_dataset_find(cases, id, 0) : SIZE_MAX;
}

const struct ipw_case *ipw_dataset_get(const struct ipw_dataset *cases, size_t i)
{
    return &cases->list[i];
}
