/* ipw.core.data: rows of dataset files, GAIA's rule, and the places of datasets on this machine.
 *
 *   rows(path, columns, most, encoding)  list of { row = table, line = n }, sha256  |  nil, message
 *                       columns: a list of the names that are wanted, or nil; most: how many rows
 *                       are wanted, from the first on, or nil for all; encoding: of a file of
 *                       text that is not UTF-8 ("latin1"), or nil
 *   is_rows(path)       true when the name's ending is one of a file of rows
 *   open_rows(path, columns, encoding)  the same one after another: a reader  |  nil, message
 *     reader:next()     row, line  |  nil at the end  |  nil, message
 *     reader:count()    rows in all, or nil
 *     reader:sha256()   hex digits  |  nil, message
 *     reader:close()    what Lua does too when the reader is collected or leaves a <close>
 *   parse(name, text)   the same from text; the name decides the kind and stands in messages
 *   builtin_rows(path)  the same from a file inside the binary
 *   builtin(path)       true when the binary holds that file
 *   builtin_list(dir)   names of the files right below dir in the binary
 *   sha256(text)        hex digits
 *   read_text(path)     the whole file  |  nil, message
 *   gaia_score(answer, truth)  boolean; answer nil counts as the text None
 *   gaia_route(truth)   "number", "list" or "string"
 *   gaia_extract(text)  answer, "marker" | "last_line" | "none"
 *   exists(path)        "file", "dir", "other" or nil; nil, message where it is there, or may be,
 *                       and cannot be looked at (no permission, a link that leads nowhere)
 *   list_dir(path)      names without . and .., in no order  |  nil, message
 *   scorers             the names of the scorers, with commas between
 *   getenv(name)        one of a few names that say where datasets are
 *
 * C memory is in a box with a __gc, so that a Lua error leaks nothing. */
#include <dirent.h>
#include <errno.h>
#include <lauxlib.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "data/gaia.h"
#include "data/rows.h"
#include "data/scorers.h"
#include "data/sha256.h"
#include "json/jsonl.h"
#include "script/embedded.h"
#include "script/lib.h"
#include "script/value.h"

#define BOX    "ipw.core.data.box"
#define READER "ipw.core.data.reader"

struct box {
    struct ipw_rows rows;
    struct ipw_buf text;
    DIR *dir;
};

static void empty_box(struct box *box)
{
    ipw_rows_release(&box->rows);
    ipw_buf_release(&box->text);
    if (box->dir) closedir(box->dir);
    *box = (struct box){.text = IPW_BUF(64 * IPW_MIB)};
}

static int box_gc(lua_State *L)
{
    empty_box(luaL_checkudata(L, 1, BOX));
    return 0;
}

/* One box for each state, because nothing here calls Lua.  A new box for each scored answer lives
 * for two collections, and Lua 5.4.4 falls behind with such boxes: a run's memory grew. */
static struct box *push_box(lua_State *L) // [0, +1]
{
    static const char key;
    struct box *box;

    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &key) == LUA_TUSERDATA) {
        box = lua_touserdata(L, -1);
        empty_box(box);
        return box;
    }
    lua_pop(L, 1);
    box = lua_newuserdatauv(L, sizeof *box, 0);
    *box = (struct box){.text = IPW_BUF(64 * IPW_MIB)};
    luaL_setmetatable(L, BOX);
    lua_pushvalue(L, -1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &key);
    return box;
}

static int push_rows(lua_State *L, struct box *box, const char *name)
{
    struct ipw_rows *rows = &box->rows;
    struct ipw_err err = {0};

    lua_createtable(L, rows->n < 1 << 20 ? (int)rows->n : 1 << 20, 0); // list
    for (size_t i = 0; i < rows->n; i++) {
        lua_createtable(L, 0, 2); // list item
        if (ipw_value_decode(L, rows->rows[i].json, rows->rows[i].n, &err) != 0) {
            ipw_err_prefix(&err, "%s:%lld", name, (long long)rows->rows[i].line);
            return ipw_value_push_failure(L, err.text);
        }
        lua_setfield(L, -2, "row");
        lua_pushinteger(L, rows->rows[i].line);
        lua_setfield(L, -2, "line");
        lua_rawseti(L, -2, (lua_Integer)i + 1);
        free(rows->rows[i].json); /* not two copies of a large dataset at once */
        rows->rows[i].json = NULL;
    }
    lua_pushstring(L, rows->sha256);
    empty_box(box);
    return 2;
}

/* The list of names at stack index `at` as C has them, NULL for nil.  It lives as long as the
 * userdata that this pushes, and as the names in the list. */
static const char *const *push_columns(lua_State *L, int at) // [0, +1, e]
{
    const char **names;
    size_t n;

    if (lua_isnoneornil(L, at)) {
        lua_pushnil(L);
        return NULL;
    }
    luaL_checktype(L, at, LUA_TTABLE);
    n = (size_t)lua_rawlen(L, at);
    names = lua_newuserdatauv(L, (n + 1) * sizeof *names, 0);
    for (size_t i = 0; i < n; i++) {
        if (lua_rawgeti(L, at, (lua_Integer)i + 1) != LUA_TSTRING)
            luaL_argerror(L, at, "a list of column names is expected");
        names[i] = lua_tostring(L, -1);
        lua_pop(L, 1);
    }
    names[n] = NULL;
    return names;
}

static int data_rows(lua_State *L)
{
    const char *path = luaL_checkstring(L, 1);
    lua_Integer most = luaL_optinteger(L, 3, 0);
    const char *encoding = luaL_optstring(L, 4, NULL);
    const struct ipw_rows_wanted wanted = {push_columns(L, 2), most > 0 ? (size_t)most : 0,
                                           encoding};
    struct ipw_err err = {0};
    struct box *box = push_box(L);

    if (ipw_rows_read(&box->rows, path, &wanted, &err) != 0)
        return ipw_value_push_failure(L, err.text);
    return push_rows(L, box, path);
}

static int data_is_rows(lua_State *L)
{
    lua_pushboolean(L, ipw_rows_knows_name(luaL_checkstring(L, 1)));
    return 1;
}

struct reader {
    struct ipw_row_reader *rows; /* NULL: closed */
};

static int data_open_rows(lua_State *L)
{
    const char *path = luaL_checkstring(L, 1);
    const char *encoding = luaL_optstring(L, 3, NULL);
    const struct ipw_rows_wanted wanted = {.columns = push_columns(L, 2), .encoding = encoding};
    struct reader *reader = lua_newuserdatauv(L, sizeof *reader, 1);
    struct ipw_err err = {0};

    reader->rows = NULL;
    luaL_setmetatable(L, READER);
    lua_pushvalue(L, 1);
    lua_setiuservalue(L, -2, 1); /* the path, for messages */
    if (ipw_row_reader_open(&reader->rows, path, &wanted, &err) != 0)
        return ipw_value_push_failure(L, err.text);
    return 1;
}

static struct ipw_row_reader *open_reader(lua_State *L)
{
    struct reader *reader = luaL_checkudata(L, 1, READER);

    luaL_argcheck(L, reader->rows, 1, "the reader is closed");
    return reader->rows;
}

static int reader_next(lua_State *L)
{
    struct ipw_row_reader *rows = open_reader(L);
    struct ipw_err err = {0};
    struct ipw_row row;
    int rc = ipw_row_reader_next(rows, &row, &err);

    if (rc < 0) return ipw_value_push_failure(L, err.text);
    if (rc == 0) return 0;
    if (ipw_value_decode(L, row.json, row.n, &err) != 0) {
        lua_getiuservalue(L, 1, 1);
        ipw_err_prefix(&err, "%s:%lld", lua_tostring(L, -1), (long long)row.line);
        return ipw_value_push_failure(L, err.text);
    }
    lua_pushinteger(L, row.line);
    return 2;
}

static int reader_count(lua_State *L)
{
    int64_t n = ipw_row_reader_count(open_reader(L));

    if (n < 0) return 0;
    lua_pushinteger(L, n);
    return 1;
}

static int reader_sha256(lua_State *L)
{
    struct ipw_err err = {0};
    char hex[65];

    if (ipw_row_reader_sha256(open_reader(L), hex, &err) != 0)
        return ipw_value_push_failure(L, err.text);
    lua_pushstring(L, hex);
    return 1;
}

static int reader_close(lua_State *L)
{
    struct reader *reader = luaL_checkudata(L, 1, READER);

    ipw_row_reader_free(reader->rows);
    reader->rows = NULL;
    return 0;
}

static int data_parse(lua_State *L)
{
    size_t n;
    const char *name = luaL_checkstring(L, 1), *text = luaL_checklstring(L, 2, &n);
    struct ipw_err err = {0};
    struct box *box = push_box(L);

    if (ipw_rows_parse(&box->rows, name, text, n, &err) != 0)
        return ipw_value_push_failure(L, err.text);
    return push_rows(L, box, name);
}

static int data_builtin_rows(lua_State *L)
{
    const char *path = luaL_checkstring(L, 1);
    const struct ipw_embedded_file *file = ipw_embedded_find(path);
    struct ipw_err err = {0};
    struct box *box = push_box(L);

    if (!file)
        ipw_fail(&err, IPW_ENOTFOUND, "builtin:%s: no such file in the binary", path);
    else
        ipw_rows_parse(&box->rows, path, file->bytes, file->n, &err);
    if (err.code) return ipw_value_push_failure(L, err.text);
    return push_rows(L, box, path);
}

static int data_builtin(lua_State *L)
{
    lua_pushboolean(L, ipw_embedded_find(luaL_checkstring(L, 1)) != NULL);
    return 1;
}

static int data_builtin_list(lua_State *L)
{
    size_t n;
    const char *dir = luaL_checklstring(L, 1, &n);
    lua_Integer count = 0;

    lua_newtable(L);
    for (const struct ipw_embedded_file *f = ipw_embedded_files; f->path; f++)
        if (strncmp(f->path, dir, n) == 0 && f->path[n] == '/' && !strchr(f->path + n + 1, '/')) {
            lua_pushstring(L, f->path + n + 1);
            lua_rawseti(L, -2, ++count);
        }
    return 1;
}

static int data_sha256(lua_State *L)
{
    size_t n;
    const char *text = luaL_checklstring(L, 1, &n);
    char hex[65];

    ipw_sha256_hex(hex, text, n);
    lua_pushlstring(L, hex, 64);
    return 1;
}

static int data_read_text(lua_State *L)
{
    const char *path = luaL_checkstring(L, 1);
    struct ipw_err err = {0};
    struct box *box = push_box(L);

    if (ipw_file_read(&box->text, path, &err) != 0) return ipw_value_push_failure(L, err.text);
    lua_pushlstring(L, ipw_buf_str(&box->text), box->text.len);
    empty_box(box);
    return 1;
}

static int data_gaia_score(lua_State *L)
{
    const char *answer = luaL_optstring(L, 1, NULL);

    lua_pushboolean(L, ipw_gaia_score(answer, luaL_checkstring(L, 2)));
    return 1;
}

static int data_gaia_route(lua_State *L)
{
    lua_pushstring(L, ipw_gaia_route(luaL_checkstring(L, 1)));
    return 1;
}

static int data_gaia_extract(lua_State *L)
{
    size_t n;
    const char *text = luaL_checklstring(L, 1, &n), *source;
    struct box *box = push_box(L);

    source = ipw_gaia_extract(&box->text, text, n);
    if (box->text.failed) return luaL_error(L, "the answer is longer than 64 MiB");
    lua_pushlstring(L, ipw_buf_str(&box->text), box->text.len);
    lua_pushstring(L, source);
    empty_box(box);
    return 2;
}

static int data_exists(lua_State *L)
{
    const char *path = luaL_checkstring(L, 1);
    struct ipw_err err = {0};
    struct stat st;

    if (stat(path, &st) == 0) {
        lua_pushstring(L, S_ISREG(st.st_mode) ? "file" : S_ISDIR(st.st_mode) ? "dir" : "other");
        return 1;
    }
    if (errno != ENOENT && errno != ENOTDIR)
        ipw_fail_errno(&err, errno, "%s", path);
    else if (lstat(path, &st) == 0)
        ipw_fail(&err, IPW_ENOTFOUND, "%s: a link that leads nowhere", path);
    if (err.code) return ipw_value_push_failure(L, err.text);
    lua_pushnil(L);
    return 1;
}

static int data_list_dir(lua_State *L)
{
    const char *path = luaL_checkstring(L, 1);
    struct ipw_err err = {0};
    struct box *box = push_box(L);
    struct dirent *entry;
    lua_Integer n = 0;

    box->dir = opendir(path);
    if (!box->dir) {
        ipw_fail_errno(&err, errno, "%s", path);
        return ipw_value_push_failure(L, err.text);
    }
    lua_newtable(L);
    while ((errno = 0, entry = readdir(box->dir)) != NULL) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        lua_pushstring(L, entry->d_name);
        lua_rawseti(L, -2, ++n);
    }
    if (errno) {
        ipw_fail_errno(&err, errno, "%s", path);
        return ipw_value_push_failure(L, err.text);
    }
    empty_box(box);
    return 1;
}

static int data_getenv(lua_State *L)
{
    static const char *const names[] = {"IPW_AGENT_DATASETS",    "HF_ENDPOINT",    "HF_HOME",
                                        "HF_HUB_CACHE",          "HF_HUB_OFFLINE", "HOME",
                                        "HUGGINGFACE_HUB_CACHE", "XDG_CACHE_HOME", NULL};
    const char *value = getenv(names[luaL_checkoption(L, 1, NULL, names)]);

    /* An empty variable counts as unset, as everywhere on the command line. */
    lua_pushstring(L, value && *value ? value : NULL);
    return 1;
}

static void make_reader_class(lua_State *L) // [0, 0]
{
    static const luaL_Reg methods[] = {
        {"next", reader_next},
        {"count", reader_count},
        {"sha256", reader_sha256},
        {"close", reader_close},
        {"__gc", reader_close},
        {"__close", reader_close},
        {NULL, NULL},
    };

    if (luaL_newmetatable(L, READER)) {
        luaL_setfuncs(L, methods, 0);
        lua_pushvalue(L, -1);
        lua_setfield(L, -2, "__index");
    }
    lua_pop(L, 1);
}

int ipw_lib_data(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"rows", data_rows},
        {"open_rows", data_open_rows},
        {"is_rows", data_is_rows},
        {"parse", data_parse},
        {"builtin_rows", data_builtin_rows},
        {"builtin", data_builtin},
        {"builtin_list", data_builtin_list},
        {"sha256", data_sha256},
        {"read_text", data_read_text},
        {"gaia_score", data_gaia_score},
        {"gaia_route", data_gaia_route},
        {"gaia_extract", data_gaia_extract},
        {"exists", data_exists},
        {"list_dir", data_list_dir},
        {"getenv", data_getenv},
        {NULL, NULL},
    };

    if (luaL_newmetatable(L, BOX)) {
        lua_pushcfunction(L, box_gc);
        lua_setfield(L, -2, "__gc");
    }
    lua_pop(L, 1);
    make_reader_class(L);
    luaL_newlib(L, functions);
    lua_pushliteral(L, IPW_SCORERS);
    lua_setfield(L, -2, "scorers");
    return 1;
}
