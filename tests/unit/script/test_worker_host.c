/* Workers that lie (script/worker/worker_host.h): this very program is the worker, and breaks the
 * rules in the way that the path in its first message names.  Each time the core gets one named
 * end, nothing is left over, and nothing it did not grant is answered.  And values over the
 * wire. */
#include "unit/script/world.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "io/confined.h"
#include "io/proc.h"
#include "script/value.h"
#include "script/worker/worker_codec.h"
#include "script/worker/worker_host.h"

/* ---- the worker ---- */

static void put(const void *bytes, size_t n)
{
    const char *at = bytes;

    while (n) {
        ssize_t k = write(IPW_CONFINED_FD, at, n);
        if (k < 0 && errno != EINTR) _exit(3);
        if (k > 0) at += k, n -= (size_t)k;
    }
}

static void put_message(char kind, uint32_t call, const char *rest, size_t n)
{
    uint32_t length = (uint32_t)n + IPW_WORKER_CODEC_HEAD;

    put(&length, 4);
    put(&kind, 1);
    put(&call, 4);
    put(rest, n);
}

static size_t get(char *out, size_t size)
{
    size_t got = 0;
    uint32_t n = 0;

    while (got < 4) {
        ssize_t k = read(IPW_CONFINED_FD, (char *)&n + got, 4 - got);
        if (k <= 0) _exit(4);
        got += (size_t)k;
    }
    for (got = 0; got < n && got < size;) {
        ssize_t k = read(IPW_CONFINED_FD, out + got, n - got);
        if (k <= 0) _exit(4);
        got += (size_t)k;
    }
    return got;
}

static void say(const char *json) { put_message('D', 0, json, strlen(json)); }

/* Asks; says "answered" when the core gave a result, "refused" when it raised. */
static void ask(const char *name, size_t name_n, const char *values, size_t n)
{
    char message[512] = {0}, answer[4096]; /* it begins outside of any tool */
    const size_t head = 5;

    memcpy(message + head, name, name_n);
    memcpy(message + head + name_n, values, n);
    put_message('C', 7, message, head + name_n + n);
    get(answer, sizeof answer);
    say(answer[0] == 'R' ? "{\"outcome\":\"answered\"}" : "{\"outcome\":\"refused\"}");
    _exit(0);
}

static int worker(void)
{
    static const char secret[] = "s\x0b\0\0\0/etc/passwd";
    char start[4096];
    size_t n = get(start, sizeof start - 1);
    const char *how = start + IPW_WORKER_CODEC_HEAD;

    start[n] = '\0';
#define IS(name) (strstr(how, "\"" name "\"") != NULL)
    if (IS("silent exit")) _exit(0);
    if (IS("closes")) {
        close(IPW_CONFINED_FD);
        sleep(60);
    }
    if (IS("killed")) abort();
    if (IS("long message")) put("\xff\xff\xff\x7f", 4);
    if (IS("no head")) put("\1\0\0\0C", 5);
    if (IS("no kind")) put_message('?', 1, "", 0);
    if (IS("cut short")) {
        put("\x40\0\0\0C", 5);
        _exit(0);
    }
    if (IS("no name")) put_message('C', 1, "\0\0\0\0\0run.now", 12);
    if (IS("unknown function")) ask("os.execute\0", 11, "", 0);
    if (IS("unknown values")) ask("run.now\0", 8, "?", 1);
    if (IS("short values")) ask("run.log\0", 8, "s\xff\xff\xff\xff", 5);
    if (IS("bad json")) ask("run.log\0", 8, "r\1\0\0\0{", 6);
    if (IS("nan key")) ask("run.log\0", 8, "{d\0\0\0\0\0\0\xf8\x7fT}", 12);
    if (IS("deep values")) {
        char deep[300];
        memset(deep, '{', sizeof deep);
        for (size_t i = 1; i < sizeof deep; i += 2) deep[i] = 'T';
        ask("run.log\0", 8, deep, sizeof deep);
    }
    if (IS("reads a file")) ask("script.source\0", 14, secret, sizeof secret - 1);
    if (IS("works")) ask("run.now\0", 8, "", 0);
    if (IS("says twice")) {
        say("{\"outcome\":\"first\"}");
        say("{\"outcome\":\"second\"}");
        _exit(0);
    }
    if (IS("says nonsense")) {
        say("{broken");
        _exit(0);
    }
    if (IS("says and stays")) say("{\"outcome\":\"answered\"}");
    if (IS("many calls"))
        for (uint32_t i = 0; i < 30000; i++)
            put_message('C', i, "\0\0\0\0\0run.sleep\0d\0\0\0\0\0\0N\x40", 24);
    if (IS("cancels nothing")) {
        put_message('X', 99, "", 0);
        say("{\"outcome\":\"answered\"}");
        _exit(0);
    }
    sleep(60);
    return 0;
}

/* ---- the core ---- */

struct seen {
    struct ipw_loop *loop;
    int n;
    char said[200], error[200];
};

static void on_end(void *ud, const struct ipw_worker_host_end *end)
{
    struct seen *s = ud;

    s->n++;
    snprintf(s->said, sizeof s->said, "%.*s", (int)end->said_n, end->said ? end->said : "");
    snprintf(s->error, sizeof s->error, "%s", end->error ? end->error : "");
    ipw_loop_stop(s->loop);
}

static void a_worker_that_lies_ends_alone(void **state)
{
    static const struct {
        const char *how, *said, *error; /* parts of what the core is told */
    } cases[] = {
        {"works", "answered", NULL},
        {"cancels nothing", "answered", NULL},
        {"says and stays", "answered", NULL},
        {"says twice", "first", NULL},
        {"says nonsense", "{broken", NULL},
        {"unknown function", "refused", NULL},
        {"unknown values", "refused", NULL},
        {"short values", "refused", NULL},
        {"bad json", "refused", NULL},
        {"nan key", "refused", NULL},
        {"deep values", "refused", NULL},
        {"reads a file", "refused", NULL},
        {"silent exit", NULL, "status 0"},
        {"cut short", NULL, "status 0"},
        {"killed", NULL, "signal 6"},
        {"closes", NULL, "signal 9"},
        {"long message", NULL, "signal 9"},
        {"no head", NULL, "broke the protocol"},
        {"no kind", NULL, "broke the protocol"},
        {"no name", NULL, "broke the protocol"},
        {"many calls", NULL, "broke the protocol"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ipw_host host = {.name = "q1", .start_ns = ipw_now_ns()};
        struct ipw_vm_options options = {.host = &host};
        struct seen seen = {0};
        struct ipw_worker_host *ward;
        struct ipw_err err = {0};
        char start[100];
        int n = snprintf(start, sizeof start, "{\"path\":\"%s\"}", cases[i].how);

        assert_int_equal(ipw_loop_new(&host.loop, &err), 0);
        seen.loop = host.loop;
        if (ipw_worker_host_start(&ward,
                                  &(struct ipw_worker_host_options){.vm = &options,
                                                                    .path = "script.lua",
                                                                    .start = start,
                                                                    .start_n = (size_t)n,
                                                                    .on_end = on_end,
                                                                    .ud = &seen},
                                  &err))
            fail_msg("%s", err.text);
        ipw_loop_run(host.loop);
        /* One that said its last word and stays is told to go. */
        assert_int_equal(seen.n, 1);
        if (cases[i].said && !strstr(seen.said, cases[i].said))
            fail_msg("%s: said '%s', error '%s'", cases[i].how, seen.said, seen.error);
        if (cases[i].error && !strstr(seen.error, cases[i].error))
            fail_msg("%s: error '%s', said '%s'", cases[i].how, seen.error, seen.said);
        ipw_worker_host_free(ward);
        assert_int_equal(ipw_loop_leftovers(host.loop), 0);
        ipw_loop_run(host.loop);
        ipw_loop_free(host.loop);
        ipw_host_release(&host);
    }
}

/* ---- the wire ---- */

static int round_trip(lua_State *L)
{
    struct ipw_buf *bytes = lua_touserdata(L, lua_upvalueindex(1));
    struct ipw_err err;

    ipw_buf_clear(bytes);
    if (ipw_worker_codec_add(L, 1, lua_gettop(L), bytes, &err))
        return luaL_error(L, "%s", err.text);
    lua_settop(L, 0);
    return ipw_worker_codec_push(L, ipw_buf_str(bytes), bytes->len);
}

static void values_come_back_as_they_went(void **state)
{
    struct ipw_buf bytes = IPW_BUF(IPW_MIB);
    struct world w;

    (void)state;
    world_open(&w, 0);
    lua_pushlightuserdata(ipw_vm_lua(w.vm), &bytes);
    lua_pushcclosure(ipw_vm_lua(w.vm), round_trip, 1);
    lua_setglobal(ipw_vm_lua(w.vm), "trip");
    world_run(&w,
              "local json, test = require 'ipw.json', require 'ipw.test'\n"
              "test.equal({ trip(nil, true, false, 1, 1.0, -0.0, math.mininteger, 1 / 0, "
              "'a\\0\\xff', '') },\n"
              "  { nil, true, false, 1, 1.0, -0.0, math.mininteger, 1 / 0, 'a\\0\\xff', '' })\n"
              "assert(math.type((trip(1.0))) == 'float' and math.type((trip(1))) == 'integer')\n"
              "assert(select('#', trip()) == 0 and select('#', trip(nil, nil)) == 2)\n"
              "assert(trip(json.null) == json.null)\n"
              "local t = trip { 1, 2, { x = { y = 'z' }, [1.5] = true, [false] = 0 } }\n"
              "assert(t[3].x.y == 'z' and t[3][1.5] == true and t[3][false] == 0 and #t == 3)\n"
              "assert(json.encode { trip(json.list {}), trip {}, trip(json.raw "
              "'{\"b\":1,\"a\":2}') } ==\n"
              "  '[[],{},{\"b\":1,\"a\":2}]')\n"
              "local ok, err = pcall(require('ipw.llm').chat, { messages = { { role = 'user', "
              "content = 'x' } } })\n"
              "local ok, raised = pcall(require('ipw').sleep, -1)\n"
              "for _, bad in ipairs { print, coroutine.create(print), { { f = print } } } do\n"
              "  local ok, why = pcall(trip, bad)\n"
              "  assert(not ok and why:find 'cannot leave', why)\n"
              "end\n"
              "local cycle = {} cycle.me = cycle\n"
              "assert(not pcall(trip, cycle))\n"
              "return 'end'");
    assert_string_equal(w.err.text, "");
    assert_string_equal(w.answer, "end");
    ipw_buf_release(&bytes);
    world_close(&w);
}

static int push_bytes(lua_State *L)
{
    const struct ipw_buf *bytes = lua_touserdata(L, 1);

    return ipw_worker_codec_push(L, ipw_buf_str(bytes), bytes->len);
}

/* Whatever bytes come, they are values or an error. */
static void any_bytes_are_values_or_an_error(void **state)
{
    static const char tags[] = "nTFidsNr{[!}";
    struct ipw_buf bytes = IPW_BUF(IPW_KIB);
    struct world w;
    uint64_t x = 88172645463325252ULL;

    (void)state;
    world_open(&w, 0);
    for (int i = 0; i < 20000; i++) {
        struct ipw_err err;
        lua_State *L = ipw_vm_lua(w.vm);
        ipw_buf_clear(&bytes);
        for (int k = 0, n = (int)(x % 40); k < n; k++) {
            x ^= x << 13, x ^= x >> 7, x ^= x << 17;
            ipw_buf_addc(&bytes, x % 3 ? tags[x / 7 % (sizeof tags - 1)] : (char)(x / 7 % 5));
        }
        x ^= x << 13, x ^= x >> 7, x ^= x << 17;
        lua_pushcfunction(L, push_bytes);
        lua_pushlightuserdata(L, &bytes);
        ipw_vm_call(w.vm, 1, 0, &err);
        assert_int_equal(lua_gettop(L), 0);
    }
    ipw_buf_release(&bytes);
    world_close(&w);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_worker_that_lies_ends_alone),
        cmocka_unit_test(values_come_back_as_they_went),
        cmocka_unit_test(any_bytes_are_values_or_an_error),
    };

    if (argc > 1 && strcmp(argv[1], "__exec") == 0) return ipw_proc_helper_main(argc, argv);
    if (argc > 1 && strcmp(argv[1], "__lua") == 0) return worker();
    return cmocka_run_group_tests_name("ward", tests, NULL, NULL);
}
