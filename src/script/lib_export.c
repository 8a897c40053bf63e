/* ipw.core.export: the runs and the output of an export (lua/ipw/export.lua makes them pleasant).
 *
 * A reader is a run: its functions take the run's number among those of the command line.  A value
 * that the run does not know (null) is left out of its table.  The script's CPU time is counted
 * between two calls that read, so that a long run is no endless loop. */
#include <lauxlib.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/keyring.h"
#include "base/mem.h"
#include "json/json.h"
#include "json/whole_output.h"
#include "llm/playback.h"
#include "script/db_values.h"
#include "script/export_job.h"
#include "script/host.h"
#include "script/lib.h"
#include "script/lib_column.h"
#include "script/value.h"
#include "script/vm_priv.h"
#include "trace/find_query.h"
#include "trace/saved_run.h"

#define READER "ipw.export.reader"
#define OUTPUT "ipw.export.output"
enum { MAX_COLUMNS = 200, MAX_JOINED_BYTES = 64 * 1024 * 1024 };

static const struct ipw_export_job *job_of(lua_State *L)
{
    const struct ipw_host *host = ipw_vm_host(L);

    if (!host || !host->export_job)
        luaL_error(L, "ipw.core.export: only for formats of: ipw-agent export RUN --format NAME");
    return host->export_job;
}

static int raise_err(lua_State *L, const struct ipw_err *err)
{
    ipw_value_push_error(L, ipw_code_name(err->code), err->text, false);
    return lua_error(L);
}

static void renew_cpu(lua_State *L) { ipw_vm_of(L)->slice_ticks = 0; }

/* ---- documents as tables, without their nulls ---- */

static void push_known(lua_State *L, const struct ipw_json *node);

/* An object without the member of one key. */
static void push_members(lua_State *L, const struct ipw_json *object, const char *left_out)
{
    luaL_checkstack(L, 6, "JSON nested too deeply");
    lua_createtable(L, 0, (int)ipw_json_count(object));
    for (const struct ipw_json *c = ipw_json_first(object); c; c = ipw_json_next(c)) {
        const char *key = ipw_json_key(c);

        if (ipw_json_kind(c) == IPW_JSON_NULL || strcmp(key, left_out) == 0) continue;
        lua_pushstring(L, key);
        push_known(L, c);
        lua_rawset(L, -3);
    }
}

static void push_known(lua_State *L, const struct ipw_json *node)
{
    lua_Integer i = 0;

    switch (ipw_json_kind(node)) {
    case IPW_JSON_ARR:
        luaL_checkstack(L, 6, "JSON nested too deeply");
        lua_createtable(L, (int)ipw_json_count(node), 0);
        ipw_value_mark_list(L, -1);
        for (const struct ipw_json *c = ipw_json_first(node); c; c = ipw_json_next(c)) {
            push_known(L, c);
            lua_rawseti(L, -2, ++i);
        }
        break;
    case IPW_JSON_OBJ: push_members(L, node, ""); break;
    default: ipw_value_push(L, node);
    }
}

static int text_drop(lua_State *L)
{
    ipw_buf_release(lua_touserdata(L, 1));
    return 0;
}

/* ---- runs ---- */

struct reader {
    struct ipw_saved_run *run;
    struct ipw_json *doc; /* being pushed */
};

static int reader_close(lua_State *L)
{
    struct reader *reader = lua_touserdata(L, 1);

    ipw_saved_run_close(reader->run);
    ipw_json_free(reader->doc);
    *reader = (struct reader){0};
    return 0;
}

/* Also checks that it is open. */
static struct reader *reader_of(lua_State *L)
{
    struct reader *reader = luaL_checkudata(L, 1, READER);

    if (!reader->run) luaL_error(L, "ipw.core.export: the run was closed");
    renew_cpu(L);
    return reader;
}

/* runs(): the runs' paths, how much is redacted ("text", ...) or nil. [0, +2, m] */
static int export_runs(lua_State *L)
{
    const struct ipw_export_job *job = job_of(L);

    lua_createtable(L, job->n_runs, 0);
    for (int i = 0; i < job->n_runs; i++) {
        lua_pushstring(L, job->runs[i]);
        lua_rawseti(L, -2, i + 1);
    }
    lua_pushstring(L, job->redactor ? ipw_redact_name(job->redactor->what) : NULL);
    return 2;
}

/* environment(name): what OpenTelemetry's variables say, or nil. [-1, +1, e] */
static int export_environment(lua_State *L)
{
    static const char *const names[] = {"OTEL_EXPORTER_OTLP_ENDPOINT",
                                        "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
                                        "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT",
                                        "OTEL_EXPORTER_OTLP_HEADERS",
                                        "OTEL_EXPORTER_OTLP_TRACES_HEADERS",
                                        "OTEL_EXPORTER_OTLP_METRICS_HEADERS",
                                        "OTEL_EXPORTER_OTLP_TIMEOUT",
                                        "OTEL_EXPORTER_OTLP_PROTOCOL",
                                        "OTEL_SERVICE_NAME",
                                        "OTEL_RESOURCE_ATTRIBUTES",
                                        NULL};
    const char *value = ipw_keyring_env(names[luaL_checkoption(L, 1, NULL, names)]);

    job_of(L);
    lua_pushstring(L, value && *value ? value : NULL);
    return 1;
}

/* open(number): a reader. [-1, +1, e] */
static int export_open(lua_State *L)
{
    const struct ipw_export_job *job = job_of(L);
    lua_Integer i = luaL_checkinteger(L, 1);
    struct reader *reader;
    struct ipw_err err;

    luaL_argcheck(L, i >= 1 && i <= job->n_runs, 1, "there is no such run");
    reader = ipw_value_push_box(L, sizeof *reader, READER, reader_close);
    if (ipw_saved_run_open(&reader->run, job->runs[i - 1], job->redactor, &err))
        return raise_err(L, &err);
    return 1;
}

/* close(reader). [-1, 0, e] */
static int export_close(lua_State *L)
{
    luaL_checkudata(L, 1, READER);
    return reader_close(L);
}

/* document(reader, name): manifest.json or summary.json; nil: there is none. [-2, +1, e] */
static int export_document(lua_State *L)
{
    static const char *const names[] = {"manifest.json", "summary.json", NULL};
    struct reader *reader = reader_of(L);
    const char *name = names[luaL_checkoption(L, 2, NULL, names)];
    struct ipw_err err;

    ipw_json_free(reader->doc);
    if (ipw_saved_run_document(&reader->doc, reader->run, name, &err)) return raise_err(L, &err);
    push_known(L, reader->doc);
    ipw_json_free(reader->doc);
    reader->doc = NULL;
    return 1;
}

/* take(reader, whole, columns, [list, columns]...): the next query as a row of the columns, and
 * each object of its list `list` as a row of those behind it.  Returns true, or with `whole` the
 * query as a table; nil at the end, and whether a torn line was left out. [-n, +(1|2), e] */
static int export_take(lua_State *L)
{
    struct reader *reader = reader_of(L);
    struct ipw_saved_line line;
    struct ipw_err err;
    int n = lua_gettop(L), rc = ipw_saved_run_query(&line, reader->run, &err);

    if (rc < 0) return raise_err(L, &err);
    if (rc == 0) {
        lua_pushnil(L);
        lua_pushboolean(L, ipw_saved_run_torn(reader->run));
        return 2;
    }
    ipw_columns_take(L, 3, line.doc);
    for (int arg = 4; arg < n; arg += 2) {
        const struct ipw_json *list = ipw_json_get(line.doc, luaL_checkstring(L, arg));

        if (ipw_json_kind(list) != IPW_JSON_ARR) continue;
        for (const struct ipw_json *one = ipw_json_first(list); one; one = ipw_json_next(one))
            ipw_columns_take(L, arg + 1, one);
    }
    if (lua_toboolean(L, 2))
        push_known(L, line.doc);
    else
        lua_pushboolean(L, 1);
    return 1;
}

/* query(reader, what): the next query and its line; nil at the end, and whether a torn line was
 * left out.  what: the key of a member that is not wanted; true: only the line is. [-2, +2, e] */
static int export_query(lua_State *L)
{
    struct reader *reader = reader_of(L);
    struct ipw_saved_line line;
    struct ipw_err err;
    int rc = ipw_saved_run_query(&line, reader->run, &err);

    if (rc < 0) return raise_err(L, &err);
    if (rc == 0) {
        lua_pushnil(L);
        lua_pushboolean(L, ipw_saved_run_torn(reader->run));
        return 2;
    }
    if (lua_type(L, 2) != LUA_TSTRING && lua_toboolean(L, 2)) /* the line is all that is wanted */
        lua_pushboolean(L, 1);
    else
        push_members(L, line.doc, lua_isstring(L, 2) ? lua_tostring(L, 2) : "");
    lua_pushlstring(L, line.text, line.n);
    return 2;
}

/* attempts(reader): whether the run has earlier attempts; query() gives them from now on.
 * [-1, +1, e] */
static int export_attempts(lua_State *L)
{
    struct reader *reader = reader_of(L);
    struct ipw_err err;
    int rc = ipw_saved_run_attempts(reader->run, &err);

    if (rc < 0) return raise_err(L, &err);
    lua_pushboolean(L, rc);
    return 1;
}

/* find(number, name): the id of the query that the name means, as in `replay --query`, and its
 * query_index if only one of its repeats is meant. [-2, +2, e] */
static int export_find(lua_State *L)
{
    const struct ipw_export_job *job = job_of(L);
    lua_Integer i = luaL_checkinteger(L, 1);
    const char *want = luaL_checkstring(L, 2);
    int32_t index;
    struct ipw_err err;
    char *id;

    luaL_argcheck(L, i >= 1 && i <= job->n_runs, 1, "there is no such run");
    if (ipw_find_query_of_run(&id, &index, job->runs[i - 1], want, &err)) return raise_err(L, &err);
    lua_pushstring(L, id);
    free(id);
    if (index < 0) return 1;
    lua_pushinteger(L, index);
    return 2;
}

/* goes_on(reader): whether a process still writes the run. [-1, +1, e] */
static int export_goes_on(lua_State *L)
{
    lua_pushboolean(L, ipw_saved_run_goes_on(reader_of(L)->run));
    return 1;
}

/* since(reader, session): each_event() and power() pass over the sessions before that one, from 0.
 * [-2, +0, e] */
static int export_since(lua_State *L)
{
    ipw_saved_run_since(reader_of(L)->run, luaL_checkinteger(L, 2));
    return 0;
}

/* events(reader, index): the events of a query, a list. [-2, +1, e] */
static int export_events(lua_State *L)
{
    struct reader *reader = reader_of(L);
    struct ipw_saved_line line;
    struct ipw_err err;
    lua_Integer n = 0;
    int rc = ipw_saved_run_events(reader->run, luaL_checkinteger(L, 2), &err);

    lua_newtable(L);
    while (rc > 0 && (rc = ipw_saved_run_event(&line, reader->run, &err)) > 0) {
        push_known(L, line.doc);
        lua_rawseti(L, -2, ++n);
    }
    return rc < 0 ? raise_err(L, &err) : 1;
}

/* each_event(reader, nulls): the next event of the file, and its place; nothing at the end.  With
 * `nulls` its table has them (json.null), to be written again as it was. [-2, +(0|2), e] */
static int export_each_event(lua_State *L)
{
    struct reader *reader = reader_of(L);
    struct ipw_saved_line line;
    int64_t offset = 0;
    struct ipw_err err;
    int rc = ipw_saved_run_each_event(&line, &offset, reader->run, &err);

    if (rc <= 0) return rc < 0 ? raise_err(L, &err) : 0;
    if (lua_toboolean(L, 2))
        ipw_value_push(L, line.doc);
    else
        push_known(L, line.doc);
    lua_pushinteger(L, offset);
    return 2;
}

/* event_at(reader, place): that event again. [-2, +1, e] */
static int export_event_at(lua_State *L)
{
    struct reader *reader = reader_of(L);
    struct ipw_saved_line line;
    struct ipw_err err;

    if (ipw_saved_run_event_at(&line, reader->run, luaL_checkinteger(L, 2), &err) < 0)
        return raise_err(L, &err);
    push_known(L, line.doc);
    return 1;
}

/* say_message(number, saved, now): how the message of a request, from 0, differs from the saved
 * one: both JSON texts, or nil where there is none. [-3, +1, m] */
static int export_say_message(lua_State *L)
{
    lua_Integer i = luaL_checkinteger(L, 1);
    const char *was = luaL_optstring(L, 2, NULL), *now = luaL_optstring(L, 3, NULL);
    struct ipw_buf *out = ipw_value_push_box(L, sizeof *out, "ipw.export.text", text_drop);

    *out = IPW_BUF(IPW_MIB);
    ipw_playback_say_message(out, (size_t)i, was, now);
    lua_pushlstring(L, ipw_buf_str(out), out->len);
    return 1;
}

/* power(reader): the next header (a table); or the time, the source and the values of the next row;
 * nothing at the end. [-1, +(0|1|3), e] */
static int export_power(lua_State *L)
{
    struct reader *reader = reader_of(L);
    struct ipw_sampler_row row;
    struct ipw_saved_line line;
    struct ipw_err err;
    int rc = ipw_saved_run_power(&line, &row, reader->run, &err);

    if (rc < 0) return raise_err(L, &err);
    if (rc == 0) return 0;
    if (line.doc) {
        push_known(L, line.doc);
        return 1;
    }
    lua_pushinteger(L, row.t_ns);
    lua_pushinteger(L, (lua_Integer)row.source + 1);
    lua_createtable(L, (int)row.n, 0);
    for (size_t i = 0; i < row.n; i++) {
        if (row.values[i] == IPW_NO_VALUE) continue;
        lua_pushinteger(L, row.values[i]);
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    return 3;
}

/* ---- the output ---- */

struct output {
    struct ipw_whole_output *whole;
    struct ipw_db *db;
};

static int output_drop(lua_State *L)
{
    struct output *output = lua_touserdata(L, 1);

    ipw_db_close(output->db);
    ipw_whole_drop(output->whole);
    *output = (struct output){NULL, NULL};
    return 0;
}

static struct output *output_of(lua_State *L)
{
    struct output *output = luaL_checkudata(L, 1, OUTPUT);

    if (!output->whole) luaL_error(L, "ipw.core.export: the output was finished");
    return output;
}

static int raise_db(lua_State *L, struct ipw_err *err)
{
    ipw_err_prefix(err, "%s", job_of(L)->output);
    return raise_err(L, err);
}

/* output(kind): "file", "folder" or "database". [-1, +1, e] */
static int export_output(lua_State *L)
{
    static const char *const kinds[] = {"file", "folder", "database", NULL};
    const struct ipw_export_job *job = job_of(L);
    int kind = luaL_checkoption(L, 1, NULL, kinds), rc;
    struct output *output = ipw_value_push_box(L, sizeof *output, OUTPUT, output_drop);
    struct ipw_err err;

    if (kind && !job->output) {
        ipw_fail(&err, IPW_EINVAL, "this format writes a %s: --output must name it", kinds[kind]);
        return raise_err(L, &err);
    }
    rc = kind == 1 ? ipw_whole_folder(&output->whole, job->output, &err)
                   : ipw_whole_file(&output->whole, job->output, job->stream, &err);
    if (rc) return raise_err(L, &err);
    if (kind == 2 && ipw_db_create(&output->db, ipw_whole_path(output->whole), &err))
        return raise_db(L, &err);
    return 1;
}

/* begin(output, name): what follows goes to this file of the folder. [-2, 0, e] */
static int export_begin(lua_State *L)
{
    struct output *output = output_of(L);
    struct ipw_err err;

    if (ipw_whole_next(output->whole, luaL_checkstring(L, 2), &err)) return raise_err(L, &err);
    return 0;
}

/* write(output, text...). [-n, 0, e] */
static int export_write(lua_State *L)
{
    struct output *output = output_of(L);
    int n = lua_gettop(L);
    struct ipw_err err;

    for (int i = 2; i <= n; i++) {
        size_t len;
        const char *text = luaL_checklstring(L, i, &len);

        if (ipw_whole_write(output->whole, text, len, &err)) return raise_err(L, &err);
    }
    return 0;
}

/* sql(output, statements). [-2, 0, e] */
static int export_sql(lua_State *L)
{
    struct output *output = output_of(L);
    const char *sql = luaL_checkstring(L, 2);
    struct ipw_err err;

    if (!output->db) return luaL_error(L, "the output is no database");
    return ipw_db_script(output->db, sql, &err) ? raise_db(L, &err) : 0;
}

/* insert(output, statement, values): one row. [-3, 0, e] */
static int export_insert(lua_State *L)
{
    struct output *output = output_of(L);
    const char *sql = luaL_checkstring(L, 2);
    struct ipw_db_value *values;
    struct ipw_err err;
    size_t n;
    int rc;

    if (!output->db) return luaL_error(L, "the output is no database");
    n = ipw_db_values_take(&values, L, 3, MAX_COLUMNS);
    rc = ipw_db_run(NULL, output->db, sql, values, n, NULL, &err);
    free(values);
    return rc ? raise_db(L, &err) : 0;
}

/* finish(output): gives it its name. [-1, 0, e] */
static int export_finish(lua_State *L)
{
    struct output *output = output_of(L);
    struct ipw_whole_output *whole;
    struct ipw_err err;

    if (output->db && ipw_db_script(output->db, "COMMIT", &err)) return raise_db(L, &err);
    ipw_db_close(output->db);
    output->db = NULL;
    whole = output->whole;
    output->whole = NULL;
    if (ipw_whole_commit(whole, &err)) return raise_err(L, &err);
    return 0;
}

/* Texts are put together here, and a small room is kept: an error leaks nothing. */
static struct ipw_buf joined = IPW_BUF(MAX_JOINED_BYTES);

/* Strings as they are, numbers as JSON; raises for all else. */
static void add_part(lua_State *L, struct ipw_buf *out, lua_Integer i)
{
    size_t n;
    const char *text;

    switch (lua_type(L, -1)) {
    case LUA_TSTRING:
        text = lua_tolstring(L, -1, &n);
        ipw_buf_add(out, text, n);
        return;
    case LUA_TNUMBER:
        if (lua_isinteger(L, -1) || isfinite(lua_tonumber(L, -1))) {
            ipw_value_encode(L, -1, out, NULL);
            return;
        }
        break;
    default: break;
    }
    luaL_error(L, "export.join: part %I is no text and no finite number", (LUAI_UACINT)i);
}

/* join(list, n): its first n texts, one behind the other; numbers as JSON has them. [-2, +1, e] */
static int export_join(lua_State *L)
{
    lua_Integer n = luaL_checkinteger(L, 2);
    struct ipw_buf *out = &joined;

    luaL_checktype(L, 1, LUA_TTABLE);
    ipw_buf_clear(out);
    for (lua_Integer i = 1; i <= n; i++) {
        lua_rawgeti(L, 1, i);
        add_part(L, out, i);
        lua_pop(L, 1);
    }
    if (out->failed) return luaL_error(L, "export.join: more than %d MiB", MAX_JOINED_BYTES >> 20);
    lua_pushlstring(L, ipw_buf_str(out), out->len);
    if (out->cap > 64 * 1024) ipw_buf_release(out);
    return 1;
}

int ipw_lib_export(lua_State *L)
{
    static const luaL_Reg functions[] = {{"environment", export_environment},
                                         {"runs", export_runs},
                                         {"open", export_open},
                                         {"close", export_close},
                                         {"query", export_query},
                                         {"take", export_take},
                                         {"columns", ipw_columns_new},
                                         {"cells", ipw_columns_cells},
                                         {"rows", ipw_columns_rows},
                                         {"set", ipw_columns_set},
                                         {"attempts", export_attempts},
                                         {"find", export_find},
                                         {"goes_on", export_goes_on},
                                         {"since", export_since},
                                         {"document", export_document},
                                         {"events", export_events},
                                         {"each_event", export_each_event},
                                         {"event_at", export_event_at},
                                         {"say_message", export_say_message},
                                         {"power", export_power},
                                         {"output", export_output},
                                         {"begin", export_begin},
                                         {"join", export_join},
                                         {"write", export_write},
                                         {"sql", export_sql},
                                         {"insert", export_insert},
                                         {"finish", export_finish},
                                         {NULL, NULL}};

    luaL_newlib(L, functions);
    return 1;
}
