/* lua_bench: what the scripts' runtime costs.
 *
 * Each line says what its figure measures.  Times are CPU time of this thread, best of several
 * rounds; ratios are to the stock Lua library in the same process.  Runs in some ten seconds, by
 * hand, from an optimised build. */
#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "io/proc.h"
#include "script/host.h"
#include "script/sandbox.h"
#include "script/task.h"
#include "script/vm_priv.h"

enum { ROUNDS = 7 };

static int64_t cpu_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return t.tv_sec * IPW_NS_PER_S + t.tv_nsec;
}

static const char full[] =
    "for _, name in ipairs { 'ipw', 'ipw.llm', 'ipw.tools', 'ipw.json', 'ipw.fs',"
    " 'ipw.proc', 'ipw.schema', 'ipw.score' } do require(name) end";

static struct ipw_vm *open_vm(struct ipw_host *host)
{
    struct ipw_vm_options options = {.host = host};
    struct ipw_vm *vm;
    struct ipw_err err;

    if (ipw_sandbox_open(&vm, &options, &err)) {
        fprintf(stderr, "%s\n", err.text);
        exit(1);
    }
    return vm;
}

static void check(lua_State *L, int rc)
{
    if (rc == LUA_OK) return;
    fprintf(stderr, "%s\n", lua_tostring(L, -1));
    exit(1);
}

/* Runs the chunk at the top of the stack, which stays; gives the time of the best round. */
static double best_ns(lua_State *L, struct ipw_vm *vm)
{
    double best = INFINITY;

    for (int i = 0; i < ROUNDS; i++) {
        int64_t began = cpu_ns(), took;
        lua_pushvalue(L, -1);
        if (vm) {
            struct ipw_err err;
            if (ipw_vm_call(vm, 0, 0, &err)) {
                fprintf(stderr, "%s\n", err.text);
                exit(1);
            }
        } else {
            check(L, lua_pcall(L, 0, 0, 0));
        }
        took = cpu_ns() - began;
        if ((double)took < best) best = (double)took;
    }
    return best;
}

static double run(lua_State *L, struct ipw_vm *vm, const char *script)
{
    double ns;

    check(L, luaL_loadstring(L, script));
    ns = best_ns(L, vm);
    lua_pop(L, 1);
    return ns;
}

static void states(struct ipw_host *host)
{
    enum { N = 200 };
    double bare = INFINITY, all = INFINITY;
    size_t bare_bytes = 0, all_bytes = 0;

    for (int i = 0; i < ROUNDS; i++) {
        int64_t began = cpu_ns(), middle;
        for (int k = 0; k < N; k++) {
            struct ipw_vm *vm = open_vm(host);
            bare_bytes = vm->used_bytes;
            ipw_sandbox_close(vm);
        }
        middle = cpu_ns();
        for (int k = 0; k < N; k++) {
            struct ipw_vm *vm = open_vm(host);
            struct ipw_err err;
            check(vm->L, luaL_loadstring(vm->L, full));
            if (ipw_vm_call(vm, 0, 0, &err)) exit(1);
            all_bytes = vm->used_bytes;
            ipw_sandbox_close(vm);
        }
        if ((double)(middle - began) / N < bare) bare = (double)(middle - began) / N;
        if ((double)(cpu_ns() - middle) / N < all) all = (double)(cpu_ns() - middle) / N;
    }
    printf("%-58s %8.1f us %6.1f KB\n", "a state made and closed, nothing required", bare / 1e3,
           (double)bare_bytes / 1024);
    printf("%-58s %8.1f us %6.1f KB\n", "the same with the whole library required", all / 1e3,
           (double)all_bytes / 1024);
}

/* The same script in the stock library, in ours, and with a hook that is always armed. */
static void on_count(lua_State *L, lua_Debug *ar) { (void)L, (void)ar; }

static const struct {
    const char *what, *script;
    bool cpu_bound; /* the budget's cost is told too */
} scripts[] = {
    {"calls and arithmetic (fib 27)",
     "local function fib(n) if n < 2 then return n end return fib(n - 1) + fib(n - 2) end fib(27)",
     true},
    {"tables and floats (a sieve, a sum)",
     "local s = {} for i = 2, 300000 do s[i] = true end for i = 2, 547 do if s[i] then "
     "for k = i * i, 300000, i do s[k] = false end end end local x = 0.0 for i = 1, 3000000 do x = "
     "x + i % 7 end",
     true},
    {"100,000 switches between two coroutines",
     "local co = coroutine.wrap(function() while true do coroutine.yield() end end) for _ = 1, "
     "100000 do co() end",
     false},
    {"find: 20,000 searches of ten words in a line",
     "local s = ('lorem ipsum dolor sit amet '):rep(8) .. 'FINAL ANSWER: 42' for _ = 1, 20000 do "
     "s:find('ANSWER:%s*(%d+)') end",
     false},
    {"gmatch and gsub: the words of 200 kB",
     "local s = ('some words, and others; 1234 '):rep(7000) local n = 0 for w in s:gmatch('%w+') "
     "do n = n + #w end "
     "s:gsub('%a+', string.upper)",
     false},
    {"sort: 100,000 numbers, then with a comparison",
     "local t = {} local x = 1 for i = 1, 100000 do x = x * 16807 % 2147483647 t[i] = x end "
     "table.sort(t) "
     "for i = 1, 100000 do x = x * 16807 % 2147483647 t[i] = x end table.sort(t, function(a, b) "
     "return a > b end)",
     false},
};
enum { N_SCRIPTS = sizeof scripts / sizeof *scripts };

static void against_stock(struct ipw_host *host)
{
    double stock[N_SCRIPTS], armed[N_SCRIPTS];
    lua_State *L = luaL_newstate();
    struct ipw_vm *vm;

    luaL_openlibs(L);
    for (size_t i = 0; i < N_SCRIPTS; i++) stock[i] = run(L, NULL, scripts[i].script);
    lua_sethook(L, on_count, LUA_MASKCOUNT, 10000);
    for (size_t i = 0; i < N_SCRIPTS; i++)
        armed[i] = scripts[i].cpu_bound ? run(L, NULL, scripts[i].script) : 0;
    lua_close(L);
    vm = open_vm(host); /* the budget's timer ticks from here on */
    vm->slice_ticks_max = 100000;
    for (size_t i = 0; i < N_SCRIPTS; i++) {
        double ours = run(vm->L, vm, scripts[i].script);
        printf("%-58s %8.1f ms %6.3f x stock", scripts[i].what, ours / 1e6, ours / stock[i]);
        if (armed[i] > 0) printf("  (a hook armed for good: %.2f x)", armed[i] / stock[i]);
        putchar('\n');
    }
    ipw_sandbox_close(vm);
}

static void json(struct ipw_host *host)
{
    struct ipw_vm *vm = open_vm(host);
    double ns;

    check(vm->L,
          luaL_dostring(
              vm->L,
              "json = require 'ipw.json'\n"
              "local parts = {}\n"
              "for i = 1, 40 do parts[i] = { type = 'text', index = i, score = i / 7, text = "
              "('The quick brown fox, \"quoted\" and\\n'):rep(13) } end\n"
              "message = { role = 'user', content = parts } text = json.encode(message)"));
    lua_getglobal(vm->L, "text");
    printf("%-58s %8zu bytes\n", "a message of 40 parts as JSON", (size_t)lua_rawlen(vm->L, -1));
    lua_pop(vm->L, 1);
    ns = run(vm->L, vm, "for _ = 1, 500 do json.encode(message) end");
    printf("%-58s %8.1f us\n", "encode it", ns / 500 / 1e3);
    ns = run(vm->L, vm, "for _ = 1, 500 do json.decode(text) end");
    printf("%-58s %8.1f us\n", "decode it", ns / 500 / 1e3);
    ipw_sandbox_close(vm);
}

static void over(void *ud, struct ipw_task *task, enum ipw_task_end end, lua_State *co,
                 int nresults, const struct ipw_err *err)
{
    (void)task, (void)co, (void)nresults;
    if (end != IPW_TASK_DONE) {
        fprintf(stderr, "%s\n", err->text);
        exit(1);
    }
    ipw_loop_stop(ud);
}

static void waits(struct ipw_host *host)
{
    enum { N = 20000 };
    struct ipw_vm *vm = open_vm(host);
    struct ipw_task *task;
    struct ipw_err err;
    int64_t began;

    check(vm->L, luaL_loadstring(vm->L, "local sleep = require('ipw').sleep\n"
                                        "for _ = 1, 20000 do sleep(0) end"));
    if (ipw_task_start(&task, vm, 0, over, host->loop, &err)) exit(1);
    began = cpu_ns();
    ipw_loop_run(host->loop);
    printf("%-58s %8.2f us\n", "a wait: yield, a timer of the loop, resume",
           (double)(cpu_ns() - began) / N / 1e3);
    ipw_sandbox_close(vm);
}

int main(int argc, char **argv)
{
    struct ipw_host host = {
        .model.seed = INT64_MIN, .model.max_tokens = -1, .model.temperature = NAN, .name = "bench"};
    struct ipw_err err;

    if (argc > 1 && strcmp(argv[1], "__exec") == 0) return ipw_proc_helper_main(argc, argv);
    if (ipw_loop_new(&host.loop, &err)) return 1;
    host.start_ns = ipw_now_ns();
    against_stock(&host);
    states(&host);
    waits(&host);
    json(&host);
    ipw_host_release(&host);
    ipw_loop_free(host.loop);
    return 0;
}
