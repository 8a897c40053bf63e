
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "json/json.h"
#include "json/write.h"
#include "script/agent_priv.h"
#include "script/worker/worker_host.h"

enum { MAX_START_BYTES = 32 * 1024 * 1024 };

struct ipw_agent_worker {
    struct ipw_worker_host *worker;
    const char *cancelled; /* the reason, or NULL */
    ipw_agent_fn done;
    void *ud;
};

/* ---- the first message ---- */

static void write_texts(struct ipw_jw *w, const char *key, const char *const *list)
{
    if (!list) return;
    ipw_jw_key(w, key);
    ipw_jw_arr(w);
    for (; *list; list++) ipw_jw_str(w, *list);
    ipw_jw_arr_end(w);
}

static void write_files(struct ipw_jw *w, const struct ipw_case *query)
{
    ipw_jw_key(w, "files");
    ipw_jw_arr(w);
    for (size_t i = 0; i < query->n_files; i++) ipw_jw_str(w, query->files[i].name);
    ipw_jw_arr_end(w);
}

/* Keys in order.  A setting without a value is left out. */
static void write_start(struct ipw_buf *out, const struct ipw_agent_info *info,
                        const struct ipw_agent_config *config, const struct ipw_case *query)
{
    struct ipw_jw w;

    ipw_jw_init(&w, out);
    ipw_jw_obj(&w);
    write_files(&w, query);
    ipw_jw_kstr(&w, "id", query->id);
    ipw_jw_kbool(&w, "inspect", false);
    ipw_jw_kstr(&w, "level", query->level);
    ipw_jw_kint(&w, "max_tokens", config->max_tokens);
    ipw_jw_kint(&w, "max_turns", config->max_turns);
    ipw_jw_kint(&w, "memory_bytes", (int64_t)config->memory_bytes);
    ipw_jw_kstr(&w, "metadata", query->metadata);
    ipw_jw_kstr(&w, "name", info->name);
    ipw_jw_kint(&w, "number", query->number);
    ipw_jw_kstr(&w, "path", info->path);
    ipw_jw_kstr(&w, "prompt", query->prompt);
    ipw_jw_kint(&w, "seed", config->seed);
    ipw_jw_kint(&w, "slice_cpu_ns", config->slice_cpu_ns);
    ipw_jw_kstr(&w, "system", query->system);
    if (!isnan(config->temperature)) ipw_jw_knum(&w, "temperature", config->temperature);
    write_texts(&w, "tools", config->tools);
    ipw_jw_obj_end(&w);
}

/* ---- the last ---- */

static const char *text_of(const struct ipw_json *doc, const char *key)
{
    return ipw_json_str(ipw_json_get(doc, key), NULL);
}

static void ended(void *ud, const struct ipw_worker_host_end *end)
{
    struct ipw_agent_worker *a = ud;
    struct ipw_agent_result r = {.outcome = end->cpu ? "cpu" : "worker",
                                 .error = end->error,
                                 .traceback = "",
                                 .lua_cpu_ns = end->cpu_ns};
    struct ipw_json *doc = NULL;
    struct ipw_err err;

    if (end->said && ipw_json_parse(&doc, end->said, end->said_n, NULL, &err)) {
        r.error = err.text;
    } else if (doc) {
        r.completed = ipw_json_bool(ipw_json_get(doc, "completed"), false);
        r.error = text_of(doc, "error");
        r.response = text_of(doc, "response");
        r.source = text_of(doc, "source");
        r.outcome = ipw_json_str(ipw_json_get(doc, "outcome"), "error");
        r.traceback = ipw_json_str(ipw_json_get(doc, "traceback"), "");
        r.lua_peak_bytes = (size_t)ipw_json_int(ipw_json_get(doc, "peak_bytes"), 0);
        r.lua_cpu_ns = ipw_json_int(ipw_json_get(doc, "cpu_ns"), 0);
    }
    if (a->cancelled) {
        r = (struct ipw_agent_result){.outcome = "cancelled",
                                      .error = a->cancelled,
                                      .traceback = "",
                                      .lua_peak_bytes = r.lua_peak_bytes,
                                      .lua_cpu_ns = r.lua_cpu_ns};
    }
    a->done(a->ud, &r);
    ipw_json_free(doc);
}

int ipw_agent_worker_start(struct ipw_agent_worker **out, const struct ipw_agent_info *info,
                           const struct ipw_agent_config *config, const struct ipw_case *query,
                           const struct ipw_vm_options *options, ipw_agent_fn done, void *ud,
                           struct ipw_err *err)
{
    struct ipw_agent_worker *a = ipw_calloc(1, sizeof *a);
    struct ipw_buf start = IPW_BUF(MAX_START_BYTES);
    int rc;

    a->done = done;
    a->ud = ud;
    write_start(&start, info, config, query);
    rc = start.failed
             ? ipw_fail(err, IPW_ELIMIT, "the query is larger than 32 MiB")
             : ipw_worker_host_start(&a->worker,
                                     &(struct ipw_worker_host_options){.vm = options,
                                                                       .path = info->path,
                                                                       .tools = config->tools,
                                                                       .start = start.data,
                                                                       .start_n = start.len,
                                                                       .on_end = ended,
                                                                       .ud = a},
                                     err);
    ipw_buf_release(&start);
    if (rc)
        free(a);
    else
        *out = a;
    return rc;
}

void ipw_agent_worker_cancel(struct ipw_agent_worker *a, const char *reason)
{
    if (a->cancelled) return;
    a->cancelled = reason;
    ipw_worker_host_cancel(a->worker, reason);
}

void ipw_agent_worker_free(struct ipw_agent_worker *a)
{
    if (!a) return;
    ipw_worker_host_free(a->worker);
    free(a);
}

/* ---- looking at a file ---- */

struct inspection {
    struct ipw_loop *loop;
    struct ipw_agent_info *info;
    struct ipw_err *err;
    int rc;
};

static void inspected(void *ud, const struct ipw_worker_host_end *end)
{
    struct inspection *i = ud;
    struct ipw_json *doc = NULL;

    if (!end->said) {
        i->rc = ipw_fail(i->err, IPW_ELUA, "%s: %s", i->info->path, end->error);
    } else if (!(i->rc = ipw_json_parse(&doc, end->said, end->said_n, NULL, i->err))) {
        const char *error = text_of(doc, "error");
        if (error) i->rc = ipw_fail(i->err, IPW_ELUA, "%s", error);
        snprintf(i->info->name, sizeof i->info->name, "%s",
                 ipw_json_str(ipw_json_get(doc, "name"), i->info->name));
        snprintf(i->info->about, sizeof i->info->about, "%s",
                 ipw_json_str(ipw_json_get(doc, "about"), ""));
        i->info->max_turns = ipw_json_int(ipw_json_get(doc, "max_turns"), -1);
        ipw_json_free(doc);
    }
    ipw_loop_stop(i->loop);
}

int ipw_agent_worker_inspect(struct ipw_agent_info *info, const char *const *paths,
                             struct ipw_err *err)
{
    struct inspection i = {.info = info, .err = err};
    struct ipw_host host = {.name = info->name, .start_ns = ipw_now_ns()};
    struct ipw_vm_options options = {
        .script_dir = info->dir[0] ? info->dir : NULL, .paths = paths, .host = &host};
    struct ipw_buf start = IPW_BUF(8 * IPW_KIB);
    struct ipw_worker_host *worker = NULL;
    struct ipw_jw w;
    int rc = ipw_loop_new(&i.loop, err);

    if (rc) return rc;
    host.loop = i.loop;
    ipw_jw_init(&w, &start);
    ipw_jw_obj(&w);
    ipw_jw_kbool(&w, "inspect", true);
    ipw_jw_kstr(&w, "name", info->name);
    ipw_jw_kstr(&w, "path", info->path);
    ipw_jw_obj_end(&w);
    i.rc = ipw_worker_host_start(&worker,
                                 &(struct ipw_worker_host_options){.vm = &options,
                                                                   .path = info->path,
                                                                   .start = ipw_buf_str(&start),
                                                                   .start_n = start.len,
                                                                   .on_end = inspected,
                                                                   .ud = &i},
                                 err);
    ipw_buf_release(&start);
    if (!i.rc) ipw_loop_run(i.loop);
    ipw_worker_host_free(worker);
    ipw_loop_run(i.loop); /* the child is reaped */
    ipw_loop_free(i.loop);
    return i.rc;
}
