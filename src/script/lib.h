/* script/lib.h: the C side of the Lua modules.
 *
 * Each function is a luaopen: it pushes one table.  lua/ipw wraps these tables into the library
 * that scripts use.  Scripts reach the C side only through require "ipw.core.NAME". */
#ifndef IPW_SCRIPT_LIB_H
#define IPW_SCRIPT_LIB_H

#include <lua.h>

int ipw_lib_core(lua_State *L);    /* ipw.core.run: sleep, now, log, note, map, cancelled */
int ipw_lib_json(lua_State *L);    /* ipw.core.json */
int ipw_lib_llm(lua_State *L);     /* ipw.core.llm: chat */
int ipw_lib_tool(lua_State *L);    /* ipw.core.tool: span start and end, tool files */
int ipw_lib_span(lua_State *L);    /* ipw.core.span: start, finish */
int ipw_lib_find(lua_State *L);    /* ipw.core.script: find, load, source, names, nearest */
int ipw_lib_http(lua_State *L);    /* ipw.core.http: request, escape */
int ipw_lib_fs(lua_State *L);      /* ipw.core.fs */
int ipw_lib_child(lua_State *L);   /* ipw.core.child */
int ipw_lib_kept(lua_State *L);    /* ipw.core.kept */
int ipw_lib_budget(lua_State *L);  /* ipw.core.budget: energy, left */
int ipw_lib_data(lua_State *L);    /* ipw.core.data: rows, paths */
int ipw_lib_session(lua_State *L); /* ipw.core.session: facts, run, wait */
int ipw_lib_text(lua_State *L);    /* ipw.core.text: from_html, find, printable */
int ipw_lib_stats(lua_State *L);   /* ipw.core.stats: intervals, draws */
int ipw_lib_compute(lua_State *L); /* ipw.core.compute: call */
int ipw_lib_fetch(lua_State *L);   /* ipw.core.fetch: has_token, size, hash */
int ipw_lib_sqlite(lua_State *L);  /* ipw.core.sqlite: query, search */
int ipw_lib_export(lua_State *L);  /* ipw.core.export: saved runs, the output of an export */
int ipw_lib_prices(lua_State *L);  /* ipw.core.prices: open */

/* lib_server.c: io.serve of commands, a server whose requests the command answers. */
int ipw_lib_serve(lua_State *L);

/* Our functions, added to the stock library at the top. [0, 0, m] */
void ipw_lib_coroutine(lua_State *L); /* resume, wrap, yield, close */
void ipw_lib_string(lua_State *L);
void ipw_lib_table(lua_State *L);
int ipw_lib_pairs(lua_State *L); /* pairs() in a fixed order */

/* lib_find.c: pushes the path of a script of a kind ("agents", "agents/tools", "datasets"); or nil
 * and a reason. [0, +(1|2), e] */
int ipw_lib_find_path(lua_State *L, const char *kind, const char *name);
/* load(path): the one value that the file returns; raises if the file does. [-1, +1, e] */
int ipw_lib_find_load(lua_State *L);

/* arguments.c: validate(declaration, arguments): the completed arguments; or nil and a sentence
 * that the model can act on. [-2, +(1|2), e] */
int ipw_lib_validate(lua_State *L);
/* arguments(tool, text or table): the same for a tool; a text is a model's JSON. */
int ipw_lib_arguments(lua_State *L);

/* tool_file.c: functions of ipw.core.tool. */
int ipw_lib_tool_keep(lua_State *L);
int ipw_lib_tool_kept(lua_State *L);
int ipw_lib_tool_unread(lua_State *L);
int ipw_lib_tool_open(lua_State *L);
int ipw_lib_tool_describe(lua_State *L);

/* lib_fs.c: workspace(): the path of the query's workspace. [0, +1, e] */
int ipw_lib_fs_workspace(lua_State *L);

#endif
