#include "replay/replay_job.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/exit.h"
#include "base/log.h"
#include "base/mem.h"
#include "json/document.h"
#include "json/write.h"
#include "run/find_server.h"
#include "script/embedded.h"
#include "trace/saved_clock.h"

enum { MAX_MANIFEST_BYTES = 64 * 1024 * 1024, MOST_DIVERGENCES = 20 };

/* ---- the agent ---- */

/* A plain name that cannot lead to another folder. */
static bool is_plain_name(const char *s)
{
    return s && *s &&
           strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") ==
               strlen(s);
}

/* A tool that a saved run may open: no file, which would be somebody else's. */
static bool is_safe_tool(const char *s)
{
    if (s && strncmp(s, "mcp:", 4) == 0) s += 4;
    return is_plain_name(s) || (s && strcmp(s, "+") == 0);
}

/* One of the built-in agents, by the name of the saved run's agent file. */
static bool own_agent(char *path, size_t size, const char *file)
{
    const char *slash = file ? strrchr(file, '/') : NULL, *stem = slash ? slash + 1 : file;
    char name[64];

    if (!stem) return false;
    snprintf(name, sizeof name, "%.*s", (int)strcspn(stem, "."), stem);
    snprintf(path, size, "builtin:agents/%s.lua", name);
    return is_plain_name(name) && ipw_embedded_find(path + strlen("builtin:"));
}

static int find_agent(struct ipw_replay_job *job, struct ipw_err *err)
{
    const char *file = ipw_replayed_run_text(&job->saved, "agent_file");
    const char *hash = ipw_replayed_run_text(&job->saved, "agent_sha256");
    const char *const *paths = ipw_script_paths(&job->o->run.script);
    struct ipw_agent_info *agent = &job->setting.agent;
    char own[128];
    bool ours = own_agent(own, sizeof own, file);
    int rc;

    if (job->o->agent) {
        rc = ipw_agent_inspect(agent, "agents", job->o->agent, paths, err);
    } else if (ours) {
        rc = ipw_agent_inspect(agent, "agents", own, paths, err);
        /* If the saved agent was not built in, or this one is not, one of the same name must not
         * replace it silently. */
        if (!rc && (strncmp(file, "builtin:", 8) || strncmp(agent->path, "builtin:", 8)) && hash &&
            strcmp(hash, agent->sha256))
            return ipw_fail(err, IPW_EINVAL,
                            "%s: was run with another version of the built-in %.200s. Name the "
                            "file with --agent FILE.",
                            job->saved.path, file);
    } else {
        return ipw_fail(err, IPW_EINVAL,
                        "%s: was run with the agent %.200s. Name the file with --agent FILE: a "
                        "saved run does not choose what is executed.",
                        job->saved.path, file ? file : "(unknown)");
    }
    if (!rc && hash && strcmp(hash, agent->sha256) && !job->o->run.output.quiet)
        ipw_say("%s is not the file of the saved run (sha256 %.12s then, %.12s now)", agent->path,
                hash, agent->sha256);
    return rc;
}

static int take_tools(struct ipw_replay_job *job, struct ipw_err *err)
{
    const struct ipw_json *list = ipw_json_get(job->saved.config, "tools");
    struct ipw_replay_setting *setting = &job->setting;
    size_t n = 0;

    setting->tools = ipw_tools_cut(&setting->tools_text, job->o->run.agent.tools);
    if (setting->tools || ipw_json_kind(list) != IPW_JSON_ARR) return 0;
    setting->tools = ipw_calloc(ipw_json_count(list) + 1, sizeof *setting->tools);
    for (const struct ipw_json *t = ipw_json_first(list); t; t = ipw_json_next(t)) {
        if (!is_safe_tool(ipw_json_str(t, NULL)))
            return ipw_fail(err, IPW_EINVAL,
                            "%s: names the tool file %.100s: say which to load with --tools",
                            job->saved.path, ipw_json_str(t, "?"));
        setting->tools[n++] = ipw_json_str(t, "");
    }
    return 0;
}

static int configure(struct ipw_replay_job *job, struct ipw_err *err)
{
    const struct ipw_replayed_run *was = &job->saved;
    const char *body = ipw_replayed_run_text(was, "body");
    int rc = take_tools(job, err);

    job->setting.model = ipw_strdup(ipw_replayed_run_text(was, "model"));
    job->setting.sub_model = ipw_json_get_str(ipw_json_get(was->config, "sub_model"), "model");
    job->setting.config = (struct ipw_agent_config){
        .max_turns = ipw_replayed_run_int(was, "max_turns", 0),
        .temperature = ipw_json_num(ipw_json_get(was->config, "temperature"), NAN),
        .seed = ipw_replayed_run_int(was, "seed", INT64_MIN),
        .max_tokens = ipw_replayed_run_int(was, "max_tokens", -1),
        .memory_bytes = (size_t)ipw_replayed_run_int(was, "lua_memory_bytes", 0),
        .slice_cpu_ns = ipw_s_to_ns(ipw_json_num(ipw_json_get(was->config, "lua_cpu_s"), 0)),
        .tools = job->setting.tools,
        .paths = ipw_script_paths(&job->o->run.script)};
    if (body && ipw_json_valid(body, strlen(body))) job->setting.body = ipw_strdup(body);
    return rc;
}

/* Real tools need the attachments of a dataset: one that was named, or a built-in one. */
static int open_cases(struct ipw_replay_job *job, struct ipw_err *err)
{
    const struct ipw_data_options *o = &job->o->run.data;
    const char *name = o->dataset ? o->dataset : ipw_replayed_run_text(&job->saved, "dataset");
    struct ipw_dataset_options options = {.dataset = name,
                                          .data_dir = o->data_dir,
                                          .encoding = o->encoding,
                                          .paths = ipw_script_paths(&job->o->run.script)};
    struct ipw_err why;

    if (o->dataset) return ipw_dataset_open(&job->setting.cases, &options, err);
    if (!o->encoding) options.encoding = ipw_replayed_run_text(&job->saved, "encoding");
    /* Not there: a query with attachments says so. */
    if (is_plain_name(name)) ipw_dataset_open(&job->setting.cases, &options, &why);
    return 0;
}

static int open_servers(struct ipw_replay_job *job, struct ipw_err *err)
{
    const struct ipw_connect_options *o = &job->o->run.server;
    struct ipw_http_options pool = {.max_connections = (size_t)o->net.max_connections,
                                    .cacert = o->net.cacert};
    struct ipw_llm_options options = {.max_retries = 2, .jitter_seed = 1};
    struct ipw_replay_network *network = &job->network;
    struct ipw_net_borrowed borrowed;
    const char *key;
    int rc;

    if (!o->net.base_urls.n)
        return ipw_fail(err, IPW_EINVAL,
                        "--from-divergence live: name the server to continue with (--base-url)");
    rc = ipw_server_key(&key, o->api_key_env, err);
    if (!rc) rc = ipw_http_global_init(err);
    if (!rc) rc = ipw_http_new(&network->http, job->loop, &pool, err);
    if (rc) return rc;
    options.base_url = o->net.base_urls.items[0];
    options.api_key = key;
    rc = ipw_net_fill(&options, &borrowed, &o->net, err);
    if (!rc) rc = ipw_llm_new(&network->llm, job->loop, network->http, &options, err);
    ipw_net_release(&borrowed);
    return rc;
}

/* Scripts are allowed what they were allowed in the saved run.  Only a tool replay starts programs,
 * in today's sandbox; a hermetic replay has their saved results. */
static void grant(struct ipw_replay_job *job)
{
    const struct ipw_replayed_run *was = &job->saved;
    const struct ipw_json *sandbox = ipw_json_get(was->config, "sandbox");
    bool could_start = !ipw_replayed_run_flag(was, "no_proc") &&
                       (!sandbox || ipw_json_kind(sandbox) == IPW_JSON_STR);
    struct ipw_host_grants *grants = &job->setting.grants;

    ipw_script_grants(grants, &job->o->run.script);
    grants->quota =
        (struct ipw_quota){.max_bytes = (size_t)ipw_replayed_run_int(was, "workspace_bytes", 0),
                           .max_files = (size_t)ipw_replayed_run_int(was, "workspace_files", 0)};
    grants->web = job->network.web;
    grants->may_fetch =
        job->decisions ? job->network.web != NULL : !ipw_replayed_run_flag(was, "no_web");
    if (!job->decisions) grants->may_start = !job->o->run.script.no_proc;
    grants->may_start = grants->may_start && could_start;
    grants->leave_out = !job->setting.tools;
}

int ipw_replay_job_open(struct ipw_replay_job *job, const struct ipw_replay_options *o,
                        const char *run, int *exit_code, struct ipw_err *err)
{
    const char *then = o->from_divergence ? o->from_divergence : "fail";
    bool live = strcmp(then, "live") == 0;
    int rc;

    *job = (struct ipw_replay_job){.o = o, .decisions = strcmp(o->mode, "tools") == 0};
    job->by_query = job->decisions || live || o->query;
    *exit_code = IPW_EXIT_USAGE;
    if (!live && strcmp(then, "fail"))
        return ipw_fail(err, IPW_EINVAL, "--from-divergence %.40s: expected fail or live", then);
    if (live && job->decisions)
        return ipw_fail(err, IPW_EINVAL, "--from-divergence goes with --mode hermetic");
    *exit_code = IPW_EXIT_INPUT;
    rc = ipw_replayed_run_open(&job->saved, run, o->query, job->by_query, err);
    if (rc) return rc;
    job->anchor = job->saved.clock;
    ipw_script_options_apply(&o->run.script);
    rc = find_agent(job, err);
    if (!rc) rc = configure(job, err);
    if (!rc && (job->decisions || live)) rc = open_cases(job, err);
    if (rc == IPW_EINVAL) *exit_code = IPW_EXIT_USAGE;
    if (rc) return rc;
    *exit_code = IPW_EXIT_FAILED;
    rc = ipw_loop_new(&job->loop, err);
    if (!rc && live) rc = open_servers(job, err);
    if (!rc && (live || job->decisions))
        job->network.web = ipw_script_web(&o->run.script, job->loop, o->run.server.net.cacert);
    grant(job);
    if (rc == IPW_EINVAL) *exit_code = IPW_EXIT_USAGE;
    return rc;
}

bool ipw_replay_job_identical(const struct ipw_replay_job *job)
{
    const struct ipw_replay_tally *t = &job->tally;

    return !t->diverged && !t->different && !t->missing && !t->traces_differ;
}

/* ---- divergences ---- */

void ipw_divergences_add(struct ipw_divergences *d, const char *id, int32_t index, int turn,
                         const char *text)
{
    if (d->n == MOST_DIVERGENCES) {
        d->n_more++;
        return;
    }
    IPW_GROW(d->all, d->cap, d->n + 1);
    d->all[d->n++] = (struct ipw_divergence){
        .id = ipw_strdup(id), .text = ipw_strdup(text), .index = index, .turn = turn};
}

static void release_divergences(struct ipw_divergences *d)
{
    for (size_t i = 0; i < d->n; i++) {
        free(d->all[i].id);
        free(d->all[i].text);
    }
    free(d->all);
    *d = (struct ipw_divergences){0};
}

/* ---- the end ---- */

static void release_setting(struct ipw_replay_setting *setting)
{
    ipw_dataset_free(setting->cases);
    free(setting->tools_text);
    free(setting->tools);
    free(setting->body);
    free(setting->model);
}

void ipw_replay_job_release(struct ipw_replay_job *job)
{
    while (job->active) {
        struct ipw_replay_query *q = job->active;

        job->active = q->next;
        ipw_replay_query_free(q);
    }
    while (job->replayed) {
        struct ipw_replayed_query *r = job->replayed;

        job->replayed = r->next;
        for (size_t i = 0; i < r->n_texts; i++) free(r->texts[i]);
        free(r);
    }
    ipw_table_release(&job->gone);
    ipw_replay_results_release(job);
    ipw_web_free(job->network.web);
    ipw_llm_free(job->network.llm);
    if (job->network.http) ipw_http_free(job->network.http);
    if (job->loop) {
        ipw_loop_run(job->loop); /* reaps children and closes handles */
        ipw_loop_free(job->loop);
    }
    if (job->workspaces) rmdir(job->workspaces);
    free(job->workspaces);
    release_divergences(&job->divergences);
    release_setting(&job->setting);
    ipw_replayed_run_release(&job->saved);
}

/* ---- the new run's folder ---- */

/* The old manifest with a word on where it comes from, and the clock of the new stamps. */
static int write_manifest(struct ipw_replay_job *job, struct ipw_err *err)
{
    struct ipw_buf out = IPW_BUF(MAX_MANIFEST_BYTES), patch = IPW_BUF(IPW_MIB);
    const struct ipw_agent_info *agent = &job->setting.agent;
    const char *hash = ipw_replayed_run_text(&job->saved, "agent_sha256");
    struct ipw_anchor now;
    struct ipw_jw w;
    char date[40];
    int rc;

    ipw_anchor_take(&now);
    ipw_jw_init(&w, &patch);
    ipw_jw_obj(&w);
    if (job->by_query) {
        ipw_jw_key(&w, "clock");
        ipw_saved_clock_write(&w, &job->anchor);
    }
    ipw_jw_key(&w, "replay");
    ipw_jw_obj(&w);
    ipw_jw_kstr(&w, "agent_file", agent->path);
    ipw_jw_kstr(&w, "agent_sha256", agent->sha256);
    ipw_jw_kbool(&w, "agent_unchanged", hash && strcmp(hash, agent->sha256) == 0);
    ipw_jw_kstr(&w, "mode", job->o->mode);
    ipw_jw_kstr(&w, "of", job->saved.path);
    ipw_jw_kstr(&w, "replayed_at", ipw_clock_iso8601(date, sizeof date, now.wall_ns));
    ipw_jw_kstr(&w, "times", job->by_query ? "replay" : "record");
    ipw_jw_obj_end(&w);
    ipw_jw_obj_end(&w);
    ipw_json_patch(&out, job->saved.manifest, ipw_buf_str(&patch));
    ipw_buf_addc(&out, '\n');
    rc = ipw_rundir_write_manifest(job->dir, ipw_buf_str(&out), out.len, err);
    ipw_buf_release(&out);
    ipw_buf_release(&patch);
    return rc;
}

int ipw_replay_job_make_dir(struct ipw_replay_job *job, struct ipw_err *err)
{
    struct ipw_anchor now;
    struct ipw_rundir_names names = {.agent = ipw_replayed_run_text(&job->saved, "agent"),
                                     .model = job->setting.model,
                                     .dataset = ipw_replayed_run_text(&job->saved, "dataset")};
    char *real;
    int rc;

    ipw_anchor_take(&now);
    names.wall_ns = now.wall_ns;
    if (job->by_query) job->anchor = now;
    rc = ipw_rundir_create(&job->dir, job->o->run.output.dir, &names, err);
    if (rc) return rc;
    real = realpath(ipw_rundir_path(job->dir), NULL);
    if (!real) return ipw_fail_errno(err, errno, "%s", ipw_rundir_path(job->dir));
    job->workspaces = ipw_asprintf("%s/workspaces", real);
    free(real);
    rc = write_manifest(job, err);
    return rc ? rc : ipw_replay_results_open(job, err);
}

void ipw_replay_job_line(struct ipw_replay_job *job, const struct ipw_event_line *line)
{
    /* Notes of the run can be written after later events. */
    if (line->event.t_ns > job->written_ns || line->event.kind == IPW_EV_RUN_START) {
        job->written_ns = line->event.t_ns;
        job->written_rows = line->event.rows;
    }
    ipw_rundir_event_line(job->dir, line->text, line->n);
    ipw_replay_results_line(job, line->doc);
}

void ipw_replay_job_event(struct ipw_replay_job *job, const struct ipw_event *event)
{
    struct ipw_buf text = IPW_BUF(IPW_LINE_MAX);
    struct ipw_json *doc = NULL;

    ipw_event_write(&text, event);
    ipw_rundir_event(job->dir, event);
    if (!job->err.code && !ipw_event_parse(&doc, ipw_buf_str(&text), text.len, NULL, &job->err))
        ipw_replay_results_line(job, doc);
    ipw_json_free(doc);
    ipw_buf_release(&text);
}
