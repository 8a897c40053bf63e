#include "script/summary_text.h"

#include <lauxlib.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/interval.h"
#include "base/mem.h"
#include "script/sandbox.h"
#include "script/value.h"

enum { MAX_SAMPLES = 16 };
#define HEAP_BYTES (UINT64_C(1) << 40) /* our own module, over as many rows as there are */
#define CPU_NS     (3600 * IPW_NS_PER_S)

struct reading {
    const struct ipw_summary_source *rows;
    uint32_t *order;  /* row numbers of the queries, in the order in which they are read */
    const char **ids; /* of the queries, by row number; NULL: not asked for yet */
    double *values;   /* for describe(), none of them NAN */
    size_t n, cap;
    struct ipw_interval_sample samples[MAX_SAMPLES];
};

static struct reading *reading(lua_State *L) { return lua_touserdata(L, lua_upvalueindex(1)); }

/* The columns of a table, "queries" or "calls", and the number of the named one. */
static const struct ipw_columns *column(lua_State *L, size_t *k)
{
    static const char *const tables[] = {"queries", "calls", NULL};
    bool calls = luaL_checkoption(L, 1, NULL, tables) == 1;
    const struct ipw_summary_source *rows = reading(L)->rows;

    *k = (size_t)luaL_checkoption(L, 2, NULL, calls ? rows->call_columns : rows->query_columns);
    return calls ? rows->calls : rows->queries;
}

/* constant(table, column): the value of all its rows; nil: they differ. [-2, +1, e] */
static int constant(lua_State *L)
{
    size_t k;
    const struct ipw_columns *c = column(L, &k);

    if (c->n && !c->of[k].values)
        lua_pushnumber(L, c->of[k].first);
    else
        lua_pushnil(L);
    return 1;
}

static void check_rows(lua_State *L, lua_Integer first, lua_Integer n, size_t rows)
{
    if (first < 0 || n < 0 || n > (lua_Integer)rows || first > (lua_Integer)rows - n)
        luaL_error(L, "there are %I rows", (lua_Integer)rows);
}

/* The number of the i-th row in the order of now. */
static size_t row_at(const struct reading *r, const struct ipw_columns *c, lua_Integer i)
{
    return c == r->rows->queries ? r->order[i] : (size_t)i;
}

/* read(table, column, first, count, into): writes the values of `count` rows, the first of which is
 * row `first` from 0, into a list; nan: unknown. [-5, +0, e] */
static int read_rows(lua_State *L)
{
    size_t k;
    const struct ipw_columns *c = column(L, &k);
    lua_Integer first = luaL_checkinteger(L, 3), n = luaL_checkinteger(L, 4);

    check_rows(L, first, n, c->n);
    luaL_checktype(L, 5, LUA_TTABLE);
    for (lua_Integer i = 0; i < n; i++) {
        lua_pushnumber(L, ipw_columns_at(c, k, row_at(reading(L), c, first + i)));
        lua_rawseti(L, 5, i + 1);
    }
    return 0;
}

/* id(row): the id of a query, from 0, in the order of now; a long one is its beginning and a hash.
 * [-1, +1, e] */
static int id(lua_State *L)
{
    const struct reading *r = reading(L);
    lua_Integer row = luaL_checkinteger(L, 1);

    check_rows(L, row, 1, r->rows->queries->n);
    lua_pushstring(L, r->ids[r->order[row]]);
    return 1;
}

/* same_task(first, count, into): whether each row is of the task of the row before it.
 * [-3, +0, e] */
static int same_task(lua_State *L)
{
    const struct reading *r = reading(L);
    lua_Integer first = luaL_checkinteger(L, 1), n = luaL_checkinteger(L, 2);

    check_rows(L, first, n, r->rows->queries->n);
    luaL_checktype(L, 3, LUA_TTABLE);
    for (lua_Integer i = first; i < first + n; i++) {
        lua_pushboolean(L, i && strcmp(r->ids[r->order[i]], r->ids[r->order[i - 1]]) == 0);
        lua_rawseti(L, 3, i - first + 1);
    }
    return 0;
}

static int by_number(uint32_t a, uint32_t b) { return (a > b) - (a < b); }

static int by_task(const void *a, const void *b, void *ids)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    int order = strcmp(((const char **)ids)[x], ((const char **)ids)[y]);

    return order ? order : by_number(x, y);
}

struct key {
    const struct ipw_columns *columns;
    size_t column;
};

static int by_value(const void *a, const void *b, void *ud)
{
    const struct key *key = ud;
    uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
    double x = ipw_columns_at(key->columns, key->column, i);
    double y = ipw_columns_at(key->columns, key->column, k);

    return x != y ? (x < y ? -1 : 1) : by_number(i, k);
}

/* sort(by): the order of the queries from now on: "task", or a column; equal ones stay as they were
 * added. [-1, +0, e] */
static int sort(lua_State *L)
{
    struct reading *r = reading(L);
    size_t n = r->rows->queries->n;
    struct key key = {.columns = r->rows->queries};

    if (strcmp(luaL_checkstring(L, 1), "task") == 0) {
        qsort_r(r->order, n, sizeof *r->order, by_task, r->ids);
        return 0;
    }
    key.column = (size_t)luaL_checkoption(L, 1, NULL, r->rows->query_columns);
    qsort_r(r->order, n, sizeof *r->order, by_value, &key);
    return 0;
}

/* cluster(sample, sum, n): adds a cluster to a sample, from 1. [-3, +0, e] */
static int cluster(lua_State *L)
{
    lua_Integer i = luaL_checkinteger(L, 1);
    double of[] = {luaL_checknumber(L, 2), luaL_checknumber(L, 3)};

    luaL_argcheck(L, i >= 1 && i <= MAX_SAMPLES, 1, "no such sample");
    ipw_columns_add(&reading(L)->samples[i - 1].clusters, of);
    return 0;
}

static void set_known(lua_State *L, const char *key, double x)
{
    if (isnan(x)) return;
    lua_pushnumber(L, x);
    lua_setfield(L, -2, key);
}

static void take_value(struct reading *r, double x)
{
    if (isnan(x)) return;
    IPW_GROW(r->values, r->cap, r->n + 1);
    r->values[r->n++] = x;
}

/* take(table, column, first, count): values for describe(), as read() has them. [-4, +0, e] */
static int take(lua_State *L)
{
    size_t k;
    const struct ipw_columns *c = column(L, &k);
    lua_Integer first = luaL_checkinteger(L, 3), n = luaL_checkinteger(L, 4);

    check_rows(L, first, n, c->n);
    for (lua_Integer i = first; i < first + n; i++)
        take_value(reading(L), ipw_columns_at(c, k, row_at(reading(L), c, i)));
    return 0;
}

/* put(list, n): n values for describe(). [-2, +0, e] */
static int put(lua_State *L)
{
    lua_Integer n = luaL_checkinteger(L, 2);

    luaL_checktype(L, 1, LUA_TTABLE);
    for (lua_Integer i = 1; i <= n; i++) {
        lua_rawgeti(L, 1, i);
        take_value(reading(L), luaL_checknumber(L, -1));
        lua_pop(L, 1);
    }
    return 0;
}

/* describe(): a table of the statistics of the values since the last call (base/stats.h); what is
 * unknown is left out. [-0, +1, e] */
static int describe(lua_State *L)
{
    struct reading *r = reading(L);
    struct ipw_stats_result of = ipw_stats_describe(r->values, r->n);

    r->n = 0;
    lua_createtable(L, 0, 9);
    lua_pushinteger(L, (lua_Integer)of.n);
    lua_setfield(L, -2, "n");
    set_known(L, "max", of.max);
    set_known(L, "mean", of.mean);
    set_known(L, "median", of.median);
    set_known(L, "min", of.min);
    set_known(L, "p90", of.p90);
    set_known(L, "p95", of.p95);
    set_known(L, "p99", of.p99);
    set_known(L, "std", of.std);
    return 1;
}

/* intervals(kinds, seed): a table of the interval of each sample (base/interval.h); what is unknown
 * is left out. [-2, +1, e] */
static int intervals(lua_State *L)
{
    struct ipw_interval_sample *samples = reading(L)->samples;
    lua_Integer seed = luaL_checkinteger(L, 2), n;

    luaL_checktype(L, 1, LUA_TTABLE);
    luaL_argcheck(L, seed != 0, 2, "expects a seed that is not 0");
    n = (lua_Integer)lua_rawlen(L, 1);
    luaL_argcheck(L, n <= MAX_SAMPLES, 1, "too many samples");
    for (lua_Integer i = 1; i <= n; i++) {
        lua_rawgeti(L, 1, i);
        samples[i - 1].kind =
            (enum ipw_interval_kind)luaL_checkoption(L, -1, NULL, ipw_interval_kinds);
        lua_pop(L, 1);
    }
    ipw_interval_make(samples, (size_t)n, (uint64_t)seed);
    lua_createtable(L, (int)n, 0);
    for (lua_Integer i = 1; i <= n; i++) {
        const struct ipw_interval *out = &samples[i - 1].out;

        lua_createtable(L, 0, 8);
        set_known(L, "hi", out->hi);
        set_known(L, "lo", out->lo);
        set_known(L, "max", out->max);
        set_known(L, "mean", out->mean);
        set_known(L, "min", out->min);
        lua_pushstring(L, out->method);
        lua_setfield(L, -2, "method");
        lua_pushinteger(L, (lua_Integer)out->n);
        lua_setfield(L, -2, "n");
        lua_rawseti(L, -2, i);
    }
    return 1;
}

/* The rows as a table of functions, and the numbers of rows. [0, +1, m] */
static void push_rows(lua_State *L, struct reading *r)
{
    static const luaL_Reg functions[] = {{"constant", constant},
                                         {"read", read_rows},
                                         {"same_task", same_task},
                                         {"sort", sort},
                                         {"take", take},
                                         {"put", put},
                                         {"describe", describe},
                                         {"cluster", cluster},
                                         {"intervals", intervals},
                                         {"id", id},
                                         {NULL, NULL}};

    lua_createtable(L, 0, 12);
    lua_pushlightuserdata(L, r);
    luaL_setfuncs(L, functions, 1);
    lua_pushinteger(L, (lua_Integer)r->rows->queries->n);
    lua_setfield(L, -2, "queries");
    lua_pushinteger(L, (lua_Integer)r->rows->calls->n);
    lua_setfield(L, -2, "calls");
}

/* make(light userdata of the reading): the text of summary.json. */
static int make(lua_State *L)
{
    struct reading *r = lua_touserdata(L, 1);
    const struct ipw_buf *facts = r->rows->facts;

    ipw_value_push_function(L, "ipw.summary", "text");
    push_rows(L, r);
    lua_pushlstring(L, facts->data, facts->len);
    lua_call(L, 2, 1);
    luaL_checktype(L, -1, LUA_TSTRING);
    return 1;
}

static void begin(struct reading *r, const struct ipw_summary_source *source)
{
    size_t n = source->queries->n;
    const char *id = source->ids;

    *r = (struct reading){.rows = source,
                          .order = ipw_calloc(n + 1, sizeof *r->order),
                          .ids = ipw_calloc(n + 1, sizeof *r->ids)};
    for (size_t i = 0; i < n; i++) {
        r->order[i] = (uint32_t)i;
        r->ids[i] = id;
        id += strlen(id) + 1;
    }
    for (int i = 0; i < MAX_SAMPLES; i++) ipw_columns_init(&r->samples[i].clusters, 2);
}

static void end(struct reading *r)
{
    for (int i = 0; i < MAX_SAMPLES; i++) ipw_columns_release(&r->samples[i].clusters);
    free(r->values);
    free(r->order);
    free(r->ids);
}

int ipw_summary_text(struct ipw_buf *out, const struct ipw_summary_source *source,
                     struct ipw_err *err)
{
    struct ipw_vm_options options = {.memory_bytes = HEAP_BYTES, .slice_cpu_ns = CPU_NS};
    struct reading r;
    struct ipw_vm *vm;
    const char *text;
    lua_State *L;
    size_t n;
    int rc = ipw_sandbox_open(&vm, &options, err);

    if (rc) return rc;
    begin(&r, source);
    L = ipw_vm_lua(vm);
    lua_pushcfunction(L, make);
    lua_pushlightuserdata(L, &r);
    rc = ipw_vm_call(vm, 1, 1, err);
    if (!rc) {
        text = lua_tolstring(L, -1, &n);
        ipw_buf_add(out, text, n);
    }
    ipw_sandbox_close(vm);
    end(&r);
    return rc;
}
