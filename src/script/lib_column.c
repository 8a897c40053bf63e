/* Columns of ipw.core.export: the numbers that a reader of saved runs needs, packed (lib_column.h).
 *
 * A column is one array of doubles; what is not known is NaN, and a column of which nothing is
 * known has no array.  Texts are places in one list of different texts, which Lua holds. */
#include "script/lib_column.h"

#include <lauxlib.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "script/value.h"

#define COLUMNS "ipw.export.columns"
enum { MAX_COLUMNS = 120, TEXTS = 1, PLACES = 2 }; /* TEXTS, PLACES: values that Lua holds */

struct column {
    char *path; /* without its last mark */
    const char *end;
    size_t head; /* of its first way the steps before the last */
    bool beside; /* they are those of the column before it */
    char kind;   /* '$': text; '?': true or false as 1 or 0; 0: number */
    bool whole;  /* all of its values were integers */
    double *cells;
    size_t cap;
};

struct columns {
    struct column *list;
    size_t n, rows;
};

static int columns_drop(lua_State *L)
{
    struct columns *of = lua_touserdata(L, 1);

    for (size_t i = 0; i < of->n; i++) {
        free(of->list[i].path);
        free(of->list[i].cells);
    }
    free(of->list);
    *of = (struct columns){0};
    return 0;
}

static void cut(struct column *column, const struct column *before, const char *path)
{
    size_t n = strlen(path), way = strcspn(path, "|");

    column->path = ipw_strdup(path);
    column->whole = true;
    if (n && (path[n - 1] == '$' || path[n - 1] == '?')) {
        column->kind = path[n - 1];
        column->path[--n] = '\0';
    }
    column->end = column->path + n;
    for (size_t i = 0; i < way; i++)
        if (path[i] == '.') column->head = i;
    column->beside =
        before && before->head == column->head && strncmp(before->path, path, column->head) == 0;
}

int ipw_columns_new(lua_State *L)
{
    lua_Integer n;
    struct columns *of;

    luaL_checktype(L, 1, LUA_TTABLE);
    n = (lua_Integer)lua_rawlen(L, 1);
    luaL_argcheck(L, n > 0 && n <= MAX_COLUMNS, 1, "expects 1 to 120 paths");
    of = lua_newuserdatauv(L, sizeof *of, 2);
    *of = (struct columns){0};
    if (luaL_newmetatable(L, COLUMNS)) {
        lua_pushcfunction(L, columns_drop);
        lua_setfield(L, -2, "__gc");
    }
    lua_setmetatable(L, -2);
    lua_newtable(L);
    lua_setiuservalue(L, -2, TEXTS);
    lua_newtable(L);
    lua_setiuservalue(L, -2, PLACES);
    of->list = ipw_calloc((size_t)n, sizeof *of->list);
    for (lua_Integer i = 1; i <= n; i++) {
        lua_rawgeti(L, 1, i);
        cut(&of->list[of->n], of->n ? &of->list[of->n - 1] : NULL, luaL_checkstring(L, -1));
        of->n++;
        lua_pop(L, 1);
    }
    return 1;
}

/* ---- finding a value ---- */

/* The member `key` (n bytes) of an object; of "key/kind" the last object of that kind in the
 * list. */
static const struct ipw_json *step(const struct ipw_json *node, const char *key, size_t n)
{
    const char *slash = memchr(key, '/', n);
    size_t own = slash ? (size_t)(slash - key) : n;
    const struct ipw_json *member =
        ipw_json_kind(node) == IPW_JSON_OBJ ? ipw_json_first(node) : NULL;
    const struct ipw_json *found = NULL, *last = NULL;

    for (; member; member = ipw_json_next(member)) { /* of equal keys the last one counts */
        const char *name = ipw_json_key(member);

        if (strncmp(name, key, own) == 0 && !name[own]) found = member;
    }
    if (!slash || ipw_json_kind(found) != IPW_JSON_ARR) return slash ? NULL : found;
    n -= own + 1;
    for (member = ipw_json_first(found); member; member = ipw_json_next(member)) {
        const char *kind = ipw_json_get_str(member, "kind");

        if (kind && strncmp(kind, slash + 1, n) == 0 && !kind[n]) last = member;
    }
    return last;
}

static bool fits(const struct column *column, const struct ipw_json *node)
{
    enum ipw_json_kind kind = ipw_json_kind(node);

    if (column->kind == '$') return kind == IPW_JSON_STR || kind == IPW_JSON_ARR;
    if (column->kind == '?') return kind == IPW_JSON_BOOL;
    return (kind == IPW_JSON_INT || kind == IPW_JSON_NUM) && !isnan(ipw_json_num(node, NAN));
}

/* By the steps between two places of a path. */
static const struct ipw_json *walk(const struct ipw_json *node, const char *at, const char *end)
{
    while (at < end && node) {
        size_t n = strcspn(at, ".|");

        node = step(node, at, n);
        at += n + 1;
    }
    return node;
}

/* By the first of its ways that leads to a value of its kind; NULL: not known.  `head`: where the
 * first way is before its last step. */
static const struct ipw_json *find(const struct column *column, const struct ipw_json *root,
                                   const struct ipw_json *head)
{
    const char *at = column->path + column->head + (column->head > 0);
    const struct ipw_json *node = head;

    while (at <= column->end) {
        size_t n = strcspn(at, "|");

        node = walk(node, at, at + n);
        if (fits(column, node)) return node;
        node = root;
        at += n + 1;
    }
    return NULL;
}

/* ---- cells ---- */

static void put(struct column *column, size_t rows, size_t place, double value)
{
    if (!column->cells && isnan(value)) return;
    if (rows > column->cap || !column->cells) {
        size_t was = column->cells ? column->cap : 0;

        IPW_GROW(column->cells, column->cap, rows);
        for (size_t i = was; i < column->cap; i++) column->cells[i] = NAN;
    }
    column->cells[place] = value;
}

/* The place of the text in the list of texts, from 1. */
static double text_place(lua_State *L, int index, const struct ipw_json *node)
{
    lua_Integer place;

    lua_getiuservalue(L, index, TEXTS);
    lua_getiuservalue(L, index, PLACES);
    if (ipw_json_kind(node) == IPW_JSON_STR) {
        lua_pushlstring(L, ipw_json_str(node, ""), ipw_json_str_len(node));
    } else { /* the texts of a list, each with a blank behind it */
        luaL_Buffer text;

        luaL_buffinit(L, &text);
        for (node = ipw_json_first(node); node; node = ipw_json_next(node)) {
            luaL_addstring(&text, ipw_json_str(node, ""));
            luaL_addchar(&text, ' ');
        }
        luaL_pushresult(&text);
    }
    lua_pushvalue(L, -1);
    lua_rawget(L, -3); // texts places text place
    place = lua_tointeger(L, -1);
    lua_pop(L, 1);
    if (!place) {
        place = (lua_Integer)lua_rawlen(L, -3) + 1;
        lua_pushvalue(L, -1);
        lua_rawseti(L, -4, place);
        lua_pushinteger(L, place);
        lua_rawset(L, -3);
        lua_pop(L, 2);
    } else {
        lua_pop(L, 3);
    }
    return (double)place;
}

void ipw_columns_take(lua_State *L, int index, const struct ipw_json *object)
{
    struct columns *of = luaL_checkudata(L, index, COLUMNS);
    const struct ipw_json *head = object;
    size_t place = of->rows++;

    for (size_t i = 0; i < of->n; i++) {
        struct column *column = &of->list[i];
        const struct ipw_json *node;
        double value = NAN;

        if (!column->beside) head = walk(object, column->path, column->path + column->head);
        node = find(column, object, head);
        if (node && column->kind == '$')
            value = text_place(L, index, node);
        else if (node && column->kind == '?')
            value = ipw_json_bool(node, false);
        else if (node)
            value = ipw_json_num(node, NAN);
        if (node && ipw_json_kind(node) == IPW_JSON_NUM) column->whole = false;
        if (column->cells || node) put(column, of->rows, place, value);
    }
}

static size_t place_of(lua_State *L, const struct columns *of)
{
    lua_Integer place = luaL_checkinteger(L, 2);

    luaL_argcheck(L, place >= 1 && (size_t)place <= of->rows, 2, "there is no such row");
    return (size_t)place - 1;
}

static struct column *column_of(lua_State *L, const struct columns *of, int arg)
{
    lua_Integer i = luaL_checkinteger(L, arg);

    luaL_argcheck(L, i >= 1 && (size_t)i <= of->n, arg, "there is no such column");
    return &of->list[i - 1];
}

int ipw_columns_cells(lua_State *L)
{
    struct columns *of = luaL_checkudata(L, 1, COLUMNS);
    size_t place = place_of(L, of);
    int n = lua_gettop(L);

    luaL_checkstack(L, n + 2, "too many columns");
    for (int arg = 3; arg <= n; arg++) {
        const struct column *column = column_of(L, of, arg);
        double value = column->cells && place < column->cap ? column->cells[place] : NAN;

        if (isnan(value)) {
            lua_pushnil(L);
        } else if (column->kind == '$') {
            lua_getiuservalue(L, 1, TEXTS);
            lua_rawgeti(L, -1, (lua_Integer)value);
            lua_remove(L, -2);
        } else if (column->whole && fabs(value) < 9e15) {
            lua_pushinteger(L, (lua_Integer)value);
        } else {
            lua_pushnumber(L, value);
        }
    }
    return n - 2;
}

int ipw_columns_set(lua_State *L)
{
    struct columns *of = luaL_checkudata(L, 1, COLUMNS);
    size_t place = place_of(L, of);
    struct column *column = column_of(L, of, 3);

    luaL_argcheck(L, column->kind != '$', 3, "a column of texts");
    if (!lua_isnoneornil(L, 4) && !lua_isinteger(L, 4)) column->whole = false;
    put(column, of->rows, place, luaL_optnumber(L, 4, NAN));
    return 0;
}

int ipw_columns_rows(lua_State *L)
{
    const struct columns *of = luaL_checkudata(L, 1, COLUMNS);

    lua_pushinteger(L, (lua_Integer)of->rows);
    return 1;
}
