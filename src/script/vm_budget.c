/* The CPU budget of Lua code.
 *
 * A count hook that is always set makes Lua 1.5 to 2.8 times slower, so the hook is set late.  One
 * timer on the CPU clock of the loop's thread ticks every 20 ms of CPU time.  Its handler counts
 * ticks while Lua runs, and past the budget it sets the hook on the Lua thread that runs.  Between
 * slices the timer ticks without effect. */
#include <errno.h>
#include <lauxlib.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "script/host.h"
#include "script/vm_priv.h"

enum { TICK_MS = 20 };
#define QUERY_CPU_NS (60 * IPW_NS_PER_S)

static struct ipw_vm *volatile active;
static atomic_ulong turn; /* odd while Lua runs */
static _Atomic(const char *) who;
static bool timer_made;

void ipw_budget_check(lua_State *L)
{
    struct ipw_vm *vm = ipw_vm_of(L);

    if (vm->over_memory && !vm->refused && ipw_vm_collect(vm, L)) return;
    if (vm->over_memory) {
        vm->refused = true; /* stays set: catching the error does not help */
        ipw_budget_stop(L);
        luaL_error(L, "the script passed its memory limit");
    }
    if (vm->over_cpu) {
        ipw_budget_stop(L);
        luaL_error(L, "the script passed its CPU limit");
    }
}

static void raise_stop(lua_State *L, lua_Debug *ar)
{
    struct ipw_vm *vm = ipw_vm_of(L);

    (void)ar;
    ipw_budget_check(L);
    if (!vm->over_cpu && !vm->over_memory) lua_sethook(L, NULL, 0, 0);
}

void ipw_budget_stop(lua_State *L)
{
    lua_sethook(L, raise_stop, LUA_MASKCALL | LUA_MASKRET | LUA_MASKCOUNT, 1);
}

/* lua_sethook may be called from a signal handler: it only sets fields of the thread. */
static void on_tick(int signum)
{
    struct ipw_vm *vm = active;
    int saved = errno;

    (void)signum;
    if (vm && ++vm->slice_ticks > vm->slice_ticks_max && vm->running) {
        vm->over_cpu = 1;
        ipw_budget_stop(vm->running);
    }
    errno = saved;
}

static void make_timer(void)
{
    struct sigaction action = {.sa_handler = on_tick, .sa_flags = SA_RESTART};
    struct sigevent event;
    struct itimerspec every = {.it_interval = {0, TICK_MS * 1000000L},
                               .it_value = {0, TICK_MS * 1000000L}};
    timer_t timer;

    timer_made = true;
    memset(&event, 0, sizeof event);
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = SIGRTMIN + 3;
    event._sigev_un._tid = (pid_t)syscall(SYS_gettid);
    sigemptyset(&action.sa_mask);
    sigaction(SIGRTMIN + 3, &action, NULL);
    if (timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &timer) == 0)
        timer_settime(timer, 0, &every, NULL);
}

int ipw_budget_ticks(int64_t cpu_ns) { return (int)(cpu_ns / (TICK_MS * IPW_NS_PER_MS)); }

void ipw_budget_enter(struct ipw_vm *vm)
{
    if (!timer_made) make_timer();
    vm->slice_ticks = 0;
    if (!vm->options.lasting && vm->cpu_ns > QUERY_CPU_NS) {
        vm->over_cpu = 1;
        if (vm->running) ipw_budget_stop(vm->running);
    }
    if (!active) {
        const struct ipw_host *host = vm->options.host;
        atomic_store_explicit(&who, host ? host->name : NULL, memory_order_relaxed);
        atomic_store_explicit(&turn, turn + 1, memory_order_release);
    }
    if (active != vm) vm->outside = active;
    active = vm;
}

void ipw_budget_leave(struct ipw_vm *vm)
{
    active = vm->outside;
    vm->outside = NULL;
    if (!active) atomic_store_explicit(&turn, turn + 1, memory_order_release);
}

struct ipw_vm *ipw_budget_active(void) { return active; }
unsigned long ipw_budget_turn(void) { return atomic_load_explicit(&turn, memory_order_acquire); }
const char *ipw_budget_who(void) { return atomic_load_explicit(&who, memory_order_relaxed); }
