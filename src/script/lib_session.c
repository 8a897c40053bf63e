/* ipw.core.session: a query whose model calls come from a program that is no script.
 *
 * The agents of lua/ipw/programs start that program, or wait for clients that somebody else
 * started.  The calls themselves are events of src/proxy; the script sees only how it ended. */
#include <lauxlib.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "io/proc.h"
#include "json/write.h"
#include "script/host.h"
#include "script/lib.h"
#include "script/task.h"
#include "script/vm.h"

enum { MAX_WORDS = 4096 };

struct session_op {
    struct ipw_op op;
    struct ipw_host *host;
    struct ipw_host_session *session;
    struct ipw_proc *program;   /* NULL: it has ended, or there is none */
    struct ipw_proc_result end; /* without its texts */
    struct ipw_timer *patience; /* a limit was reached: until the program is ended */
    bool open, asked;
};

#define PATIENCE_NS (5 * IPW_NS_PER_S)

static struct ipw_host_session *session_of(lua_State *L)
{
    struct ipw_host *host = ipw_vm_host(L);

    if (!host || !host->session)
        luaL_error(L, "this agent is run by: ipw-agent measure -- COMMAND");
    return host->session;
}

/* Clients must reach the proxy directly; what the user excepts stays. [0, +1, m] */
static void push_no_proxy(lua_State *L)
{
    const char *own = getenv("NO_PROXY");

    if (!own) own = getenv("no_proxy");
    lua_pushfstring(L, "%s%s127.0.0.1,localhost", own ? own : "", own && *own ? "," : "");
}

/* facts(): {argv, has_collector, named, no_proxy, url, word, model}. [0, +1, e] */
static int session_facts(lua_State *L)
{
    const struct ipw_host_session *s = session_of(L);

    lua_createtable(L, 0, 4);
    lua_newtable(L);
    for (lua_Integer i = 0; s->argv && s->argv[i]; i++) {
        lua_pushstring(L, s->argv[i]);
        lua_rawseti(L, -2, i + 1);
    }
    lua_setfield(L, -2, "argv");
    lua_pushboolean(L, s->named);
    lua_setfield(L, -2, "named");
    lua_pushstring(L, s->url);
    lua_setfield(L, -2, "url");
    lua_pushstring(L, s->word);
    lua_setfield(L, -2, "word");
    push_no_proxy(L);
    lua_setfield(L, -2, "no_proxy");
    lua_pushboolean(L, getenv("OTEL_EXPORTER_OTLP_ENDPOINT") ||
                           getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"));
    lua_setfield(L, -2, "has_collector");
    lua_pushstring(L, s->model);
    lua_setfield(L, -2, "model");
    return 1;
}

static void close_session(struct session_op *op)
{
    if (op->open) op->session->close(op->session->ud);
    op->open = false;
}

/* What the program used, for the files of the run. */
static void note_program(const struct session_op *op)
{
    struct ipw_event event = {.kind = IPW_EV_NOTE, .tool.name = "program"};
    struct ipw_buf data = IPW_BUF(IPW_KIB);
    struct ipw_jw w;

    if (!op->host->on.emit) return;
    ipw_jw_init(&w, &data);
    ipw_jw_obj(&w);
    if (op->end.cpu_ns >= 0) ipw_jw_kint(&w, "cpu_ns", op->end.cpu_ns);
    if (op->end.exit_code >= 0) ipw_jw_kint(&w, "exit_code", op->end.exit_code);
    if (op->end.peak_bytes > 0) ipw_jw_kint(&w, "peak_bytes", op->end.peak_bytes);
    if (op->end.term_signal) ipw_jw_kint(&w, "signal", op->end.term_signal);
    ipw_jw_obj_end(&w);
    ipw_host_emit(op->host, &event, &data);
}

static void program_over(void *ud, const struct ipw_proc_result *end)
{
    struct session_op *op = ud;

    op->program = NULL;
    ipw_timer_cancel(op->patience);
    op->patience = NULL;
    op->end = *end;
    op->session->exit_code = end->term_signal ? 128 + end->term_signal : end->exit_code;
    close_session(op);
    note_program(op);
    ipw_op_done(&op->op);
}

static void out_of_patience(void *ud)
{
    struct session_op *op = ud;

    op->patience = NULL;
    ipw_proc_cancel(op->program);
    op->program = NULL;
    op->end = (struct ipw_proc_result){.exit_code = -1, .term_signal = SIGTERM, .cpu_ns = -1};
    close_session(op);
    ipw_op_done(&op->op);
}

/* The run ends: a program decides itself what it does about a Ctrl-C; a second one ends it.  A
 * limit was reached: its calls are refused, and it has some time to say so and end. */
static void session_over(void *ud, bool limited)
{
    struct session_op *op = ud;

    op->asked = true;
    if (op->program && limited) {
        if (!op->patience)
            op->patience = ipw_timer_start(op->host->loop, PATIENCE_NS, out_of_patience, op);
        return;
    }
    if (op->program) {
        ipw_proc_signal(op->program, SIGINT);
        return;
    }
    close_session(op);
    ipw_op_done(&op->op);
}

static void session_cancel(struct ipw_op *base)
{
    struct session_op *op = (struct session_op *)base;

    if (op->program) ipw_proc_cancel(op->program);
    op->program = NULL;
    ipw_timer_cancel(op->patience);
    op->patience = NULL;
    close_session(op);
}

/* {code, signal, text, asked} [0, +1, m] */
static int session_finish(lua_State *L, struct ipw_op *base)
{
    struct session_op *op = (struct session_op *)base;
    const char *text = op->session->answer(op->session->ud);

    if (op->end.exec_errno)
        return luaL_error(L, "%s: it could not be started: %s", op->session->argv[0],
                          strerror(op->end.exec_errno));
    lua_createtable(L, 0, 4);
    lua_pushinteger(L, op->end.exit_code);
    lua_setfield(L, -2, "code");
    lua_pushinteger(L, op->end.term_signal);
    lua_setfield(L, -2, "signal");
    lua_pushstring(L, text);
    lua_setfield(L, -2, "text");
    lua_pushboolean(L, op->asked);
    lua_setfield(L, -2, "asked");
    return 1;
}

static struct session_op *new_op(lua_State *L)
{
    struct ipw_host_session *session = session_of(L);
    struct session_op *op = ipw_op_new(L, sizeof *op, session_cancel, session_finish, NULL);

    op->host = ipw_vm_host(L);
    op->session = session;
    return op;
}

/* wait(): until the session has ended. [0, +1, e] */
static int session_wait(lua_State *L)
{
    struct session_op *op = new_op(L);

    op->open = true;
    op->session->open(op->session->ud, op->host, session_over, op);
    return ipw_op_await(L);
}

/* The list of texts at idx, in a userdata that is pushed. [0, +1, e] */
static const char **texts_at(lua_State *L, int idx)
{
    lua_Unsigned n;
    const char **texts;

    luaL_checktype(L, idx, LUA_TTABLE);
    n = lua_rawlen(L, idx);
    if (n > MAX_WORDS) luaL_error(L, "more than %d words", MAX_WORDS);
    texts = lua_newuserdatauv(L, (size_t)(n + 1) * sizeof *texts, 0);
    for (lua_Unsigned i = 0; i < n; i++) {
        if (lua_rawgeti(L, idx, (lua_Integer)i + 1) != LUA_TSTRING)
            luaL_error(L, "expected a list of texts");
        texts[i] = lua_tostring(L, -1); /* the table keeps it */
        lua_pop(L, 1);
    }
    texts[n] = NULL;
    return texts;
}

/* run(words, environment): starts the program and waits for its end. [-2, +1, e] */
static int session_run(lua_State *L)
{
    const char **argv, **env;
    struct ipw_proc_request program = {.whose = IPW_PROC_USERS};
    struct session_op *op;
    struct ipw_err err;

    lua_settop(L, 2);
    argv = texts_at(L, 1);
    env = texts_at(L, 2);
    if (!argv[0]) return luaL_error(L, "no program was named");
    op = new_op(L);
    op->open = true;
    op->session->open(op->session->ud, op->host, session_over, op);
    program.argv = argv;
    program.env = env;
    if (ipw_proc_start(&op->program, op->host->loop, &program, program_over, op, &err)) {
        close_session(op);
        return luaL_error(L, "%s", err.text);
    }
    return ipw_op_await(L);
}

int ipw_lib_session(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"facts", session_facts}, {"run", session_run}, {"wait", session_wait}, {NULL, NULL}};

    luaL_newlib(L, functions);
    return 1;
}
