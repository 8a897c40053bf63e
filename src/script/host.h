/* script/host.h: what the library functions of a Lua state work on.
 *
 * The application fills one for each state and keeps it until the state is closed: the loop, the
 * model, the query's workspace, the grants of the run, and the destination of events.  Everything
 * in it is borrowed.  A state without a model (the dataset script, the demo model) has `model.llm`
 * NULL, and its llm.chat raises. */
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

struct ipw_host_joules {  /* NAN: unknown */
    double j, lo_j, hi_j; /* the energy and its bounds */
};

struct ipw_host_energy { /* of this query so far */
    struct ipw_host_joules gpu, cpu, dram, machine;
    double until_s;         /* seconds of the query that the values cover: sensors lag a little */
    const char *provenance; /* of the least certain value; NULL: nothing is known */
};

struct ipw_host_budget { /* what is left of the query's and the run's limits; NAN: no limit */
    double tokens, turns, seconds, joules, usd;
};

/* A query of a workload replay: its requests and their times (script/lib_workload.c). */
struct ipw_workload_query;
struct ipw_host_workload {
    struct ipw_workload_query *query; /* its turn is the current request */
    struct ipw_buf prompt; /* of its first request, if it was generated before; or empty */
    bool open;             /* at the saved times; else with the saved gaps */
    bool force;            /* replies of the saved lengths */
    double speed;          /* saved times are divided by it */
    int64_t zero_ns;       /* when the workload began */
    uint64_t seed;         /* for generated texts */
    bool started;          /* a request was taken; before that the current request is the first */
    /* of the current request */
    int64_t due_ns;  /* when it is due; 0: there is none */
    int64_t late_ns; /* delay of the schedule, because the reply before it came late */
    int64_t end_ns;  /* end of the reply before it */
};
/* Generates the text of the current request before the query asks for it. */
void ipw_host_workload_prompt(struct ipw_host_workload *seat);

/* The model calls of a program that is no script: they come through the recording proxy
 * (src/proxy), and are the calls of this query. */
struct ipw_host;
struct ipw_host_session {
    const char *const *argv; /* the program and its words, NULL at the end; NULL: it is not ours */
    bool named;              /* argv has only its words: the agent's file knows the program */
    int exit_code;           /* of the program; 128 and a signal's number; -1: it has not ended */
    bool exit_scores;        /* exit status 0 solves the task, any other does not */
    const char *url;         /* of the proxy, for this query: http://127.0.0.1:PORT/q/WORD */
    const char *word;        /* in the place of a key, which is worth nothing elsewhere */
    const char *model;       /* of the run */
    int64_t end_ns;          /* it ended then, as its silence told later; 0: it ends now */
    /* From now on calls of the session are events of the host's query.  `over` is called when the
     * session has been silent for too long or the run ends; `limited`: when a limit was reached. */
    void (*open)(void *ud, struct ipw_host *host, void (*over)(void *over_ud, bool limited),
                 void *over_ud);
    /* A limit was reached: calls are refused from now on, and the program may end by itself.
     * false: nobody was told, so the query must be cancelled: its session is not open, or is over,
     * or its program did not end when the run did. */
    bool (*limit)(void *ud);
    /* No call is accepted any more; those in flight are cut.  Its program has ended, or must. */
    void (*close)(void *ud);
    /* What the model last said without calling a tool; NULL: nothing. */
    const char *(*answer)(void *ud);
    void *ud;
};

/* The default model of llm.chat. */
struct ipw_host_model {
    struct ipw_llm *llm;
    const char *name;
    struct ipw_llm *sub;  /* for requests to the sub-model; NULL: llm */
    const char *sub_name; /* its name; NULL: name */
    double temperature;   /* NAN: the server's default */
    int64_t seed;         /* INT64_MIN: not sent */
    int64_t max_tokens;   /* < 0: not sent */
};

/* A server of tools that the user named (--mcp).  A script knows its number; the rest can hold
 * keys. */
struct ipw_host_server {
    const char *name;       /* the user's; or NULL */
    const char **argv;      /* a program that is talked to; NULL: the server is at `url` */
    const char **env;       /* NAME=value, or NULL */
    const char *url, *host; /* the host: HOST[:PORT] of the url */
    double seconds;         /* limit of one call */
    const char **headers;   /* name, value, ..., or NULL; for requests to `url` */
    const char *folder;     /* of a search engine: texts that it searches instead */
};
/* Its command or address, as the user wrote it. */
void ipw_host_server_where(struct ipw_buf *out, const struct ipw_host_server *server);

/* Whether its settings name the query's own folder, as ${IPW_WORKSPACE}. */
bool ipw_host_server_in_workspace(const struct ipw_host_server *server);

/* The servers that all queries of a run share (script/kept_servers.h). */
struct ipw_host_kept {
    bool (*has)(void *ud, size_t number);
    /* Asks a server: `done` gets the answer, or NULL and the reason, in a later round of the loop.
     * Returns the call; NULL: it is over. */
    void *(*ask)(void *ud, size_t number, const char *request, size_t n,
                 void (*done)(void *ud, const char *answer, size_t n, const struct ipw_err *err),
                 void *done_ud);
    void (*cancel)(void *call); /* `done` does not follow; the server is told */
    void *ud;
};

/* What the run allows a script to do outside of its Lua state. */
struct ipw_host_grants {
    struct ipw_quota quota; /* of the workspace */
    /* Folders outside of the workspace that ipw.sqlite and programs in a sandbox may read;
     * NULL-terminated, or NULL. */
    const char *const *readable;
    struct ipw_web *web;          /* for ipw.http; NULL: the run does not grant it */
    bool may_fetch;               /* web requests; in a replay: the saved run allowed them */
    bool may_start;               /* children, through ipw.proc */
    bool may_download;            /* ipw.core.fetch; of the command fetch alone */
    bool sandbox;                 /* which then run in a sandbox (io/bubblewrap.h) */
    bool try_sandbox;             /* before a tool that needs children is opened */
    const char *no_web, *no_proc; /* messages: how to allow what was refused */
    const struct ipw_host_server *servers;
    size_t n_servers;
    const struct ipw_host_kept *kept;     /* those that all queries share; or NULL */
    const struct ipw_host_server *search; /* the engine of web_search; NULL: there is none */
    const struct ipw_host_server *speech; /* turns sound into text; NULL: there is none */
    bool leave_out; /* a tool that needs what is not granted is left out; else opening it fails */
};

/* What makes the ids of this query in a trace (lua/ipw/trace_id.lua). */
struct ipw_host_trace {
    const char *folder; /* of the run; NULL: there is none */
    int64_t wall_ns;    /* when the run began */
    int session, query; /* their numbers in the run */
};

/* Callbacks to the application.  Each can be NULL, except `emit` of a recorded query. */
struct ipw_host_callbacks {
    /* The query's folder, an absolute path; created by the first call.  NULL: there is none. */
    const char *(*workspace)(void *ud);
    /* Takes an event and fills in query number and time where they are 0. */
    void (*emit)(void *ud, struct ipw_event *event);
    /* Called before an inference.  False: a limit forbids it, and the query will be cancelled, so
     * that the call only has to wait.  NULL: there is no limit. */
    bool (*admit)(void *ud);
    /* The energy that the query has used, and the rest of its limits.  NULL: unknown. */
    void (*energy)(void *ud, struct ipw_host_energy *out);
    void (*budget)(void *ud, struct ipw_host_budget *out);
    /* Prefill has ended and decode begins. */
    void (*first_token)(void *ud, int64_t t_ns);
    /* All branches of the script wait, for a retry or for their turn to send a request (true); or
     * one of them continues (false). */
    void (*rest)(void *ud, int64_t t_ns, bool rest);
    /* The limit of requests in flight holds a request back.  The wait begins with the request's
     * event. */
    void (*held)(void *ud, int64_t t_ns);
    void *ud;
};

struct ipw_host {
    struct ipw_loop *loop;
    const char *name; /* of the query, for messages; must outlive the program's states; or NULL */
    int64_t start_ns; /* ipw.now() counts from here */
    struct ipw_host_trace trace;
    struct ipw_host_model model;
    struct ipw_host_grants grants;
    struct ipw_host_callbacks on;
    struct ipw_host_workload *workload;      /* of a workload replay; or NULL */
    struct ipw_host_session *session;        /* of a query that is no script; or NULL */
    const struct ipw_export_job *export_job; /* what `export` reads and writes; or NULL */
    struct ipw_playback *replay; /* answers from a saved run instead of the world; or NULL */

    /* Owned by the library functions. */
    struct {
        int32_t spans, inside; /* numbers of the query's spans (ipw_host_next_span) */
        int own_spans;         /* spans that the script itself made */
        int64_t effects;       /* numbers its effects (script/recorded_effect.h) */
    } count;
    struct { /* messages of the previous request, not to be stored again */
        uint64_t *hashes;
        size_t n, cap;
        bool extended; /* this request is the previous one with more messages after it */
    } sent;
};

/* The workspace or NULL; host may be NULL. */
const char *ipw_host_workspace(const struct ipw_host *host);
/* The number of a new span; `inside`: inside a tool whose result is recorded as a whole. */
int32_t ipw_host_next_span(struct ipw_host *host, bool inside);
/* Emits the event with `data` as its payload (without it if the data is larger than its limit), and
 * releases the data. */
void ipw_host_emit(struct ipw_host *host, struct ipw_event *event, struct ipw_buf *data);
void ipw_host_release(struct ipw_host *host); /* frees what the library functions put there */

#endif
