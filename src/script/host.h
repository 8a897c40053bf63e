/* script/host.h: what the library functions of a Lua state act on.
 *
 * The application fills one of these for each state and keeps it alive until the state is closed:
 * the loop, the model, the query's workspace, what the run grants, and where events go.  Everything
 * in it is borrowed.  A state without a model (the dataset script, the demo model) has `model.llm`
 * NULL: its llm.chat raises. */
#ifndef IPW_SCRIPT_HOST_H
#define IPW_SCRIPT_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "io/http_web.h"
#include "io/loop.h"
#include "llm/client.h"
#include "script/quota.h"
#include "trace/event.h"

struct ipw_export_job;
struct ipw_playback;
struct lua_State; /* only script/ includes lua.h */

struct ipw_host_joules {  /* NAN: not known */
    double j, lo_j, hi_j; /* and where the truth lies for certain */
};

struct ipw_host_energy { /* of this query so far */
    struct ipw_host_joules gpu, cpu, dram, machine;
    double until_s;         /* seconds of the query that they cover: sensors lag a little */
    const char *provenance; /* of the least certain of them; NULL when none is known */
};

struct ipw_host_budget { /* what is left of the query's and the run's limits; NAN: no limit */
    double tokens, turns, seconds, joules, usd;
};

/* A query of a workload replay: what it sends, and when (script/lib_workload.c). */
struct ipw_workload_query;
struct ipw_host_workload {
    struct ipw_workload_query *query; /* its turn is the request at hand */
    struct ipw_buf prompt;            /* of its first request, when one was made before; or empty */
    bool open;                        /* at the recorded times; else with the recorded gaps */
    bool force;                       /* replies of the recorded lengths */
    double speed;                     /* recorded times are divided by it */
    int64_t zero_ns;                  /* when the workload began */
    uint64_t seed;                    /* of texts that have to be made up */
    bool started; /* a request was taken; until then the one at hand is the first */
    /* of the request at hand */
    int64_t due_ns;  /* when it is to be sent; 0: there is none */
    int64_t late_ns; /* after when the schedule says, because the reply before it came so late */
    int64_t end_ns;  /* of the reply before it */
};
/* Makes the text of the request at hand, before it is asked for. */
void ipw_host_workload_prompt(struct ipw_host_workload *seat);

/* In a worker process (script/worker/worker_main.h): what goes to the core in place of the world. */
struct ipw_host_worker {
    /* Calls the core's function with the arguments on the stack: ends a lua_CFunction. */
    int (*call)(struct lua_State *L, const char *name);
    /* What ipw.core.MODULE is on this side: replaces functions in the table at the top, or raises
     * when the module is not for untrusted scripts. [0, 0, e] */
    void (*open)(struct lua_State *L, const char *module);
    /* Where require finds a module; raises when it does not. [0, 0, e] */
    void (*module)(struct lua_State *L, const char *name, char *path, size_t size);
    int (*source)(struct lua_State *L, const char *path, struct ipw_buf *out, struct ipw_err *err);
    void (*log)(struct lua_State *L, const char *text);
};

/* The model that llm.chat asks, where the script does not say otherwise. */
struct ipw_host_model {
    struct ipw_llm *llm;
    const char *name;
    double temperature; /* NAN: the server's default */
    int64_t seed;       /* INT64_MIN: not sent */
    int64_t max_tokens; /* < 0: not sent */
};

/* What the run lets a script do outside of its Lua state. */
struct ipw_host_grants {
    struct ipw_quota quota;       /* of the workspace */
    const char *const *readable;  /* folders outside of the workspace, NULL-terminated; or NULL */
    struct ipw_web *web;          /* for ipw.http; NULL: the run does not grant it */
    bool may_fetch;               /* web requests; in a replay: the recorded run granted them */
    bool may_start;               /* children, through ipw.proc */
    const char *no_web, *no_proc; /* messages: how to grant what was refused */
};

/* What the application is asked and told; every function but `emit` of a recorded query may be NULL. */
struct ipw_host_callbacks {
    /* The query's folder, absolute, made when it is first asked for; NULL: there is none. */
    const char *(*workspace)(void *ud);
    /* Takes an event (query number and time are filled in by the taker when 0). */
    void (*emit)(void *ud, struct ipw_event *event);
    /* Before an inference: false when a limit forbids it; the query is about to be cancelled then,
     * so that the call only has to wait.  NULL: nothing is limited. */
    bool (*admit)(void *ud);
    /* What the query has used of energy, and may still use of everything.  NULL: not known. */
    void (*energy)(void *ud, struct ipw_host_energy *out);
    void (*budget)(void *ud, struct ipw_host_budget *out);
    /* Prefill has ended and decode begins. */
    void (*first_token)(void *ud, int64_t t_ns);
    /* All that the script's branches do is wait, for the next attempt of a request or for their turn
     * to send one; or one of them goes on. */
    void (*rest)(void *ud, int64_t t_ns, bool rest);
    /* A request is held back by the limit of those in flight; it begins with its event. */
    void (*held)(void *ud, int64_t t_ns);
    void *ud;
};

struct ipw_host {
    struct ipw_loop *loop;
    const struct ipw_host_worker *worker; /* in a worker process: the way to the core; or NULL */
    const char *name; /* of the query, for messages; must outlive the program's states; or NULL */
    int64_t start_ns; /* ipw.now() counts from here */
    struct ipw_host_model model;
    struct ipw_host_grants grants;
    struct ipw_host_callbacks on;
    struct ipw_host_workload *workload;      /* of a workload replay; or NULL */
    const struct ipw_export_job *export_job; /* what `export` reads and writes; or NULL */
    struct ipw_playback *replay; /* answers from a record in place of the world; or NULL */

    /* The library functions' own. */
    struct {
        int32_t spans, inside; /* numbers of the query's spans (ipw_host_next_span) */
        int own_spans;         /* those that the script made itself */
        int64_t effects;       /* numbers its effects (script/recorded_effect.h) */
    } count;
    struct { /* what the previous request of this query held, so that the record repeats nothing */
        uint64_t *hashes;
        size_t n, cap;
        bool extended; /* this request is the previous one with more messages behind it */
    } sent;
};

/* The workspace or NULL; host may be NULL. */
const char *ipw_host_workspace(const struct ipw_host *host);
/* The number of the span that begins; `inside` a tool that is on record as a whole. */
int32_t ipw_host_next_span(struct ipw_host *host, bool inside);
/* Emits the event with the data as its payload (without it where the data outgrew its ceiling), and
 * releases the data. */
void ipw_host_emit(struct ipw_host *host, struct ipw_event *event, struct ipw_buf *data);
void ipw_host_release(struct ipw_host *host); /* frees what the library functions put there */

#endif
