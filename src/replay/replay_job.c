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
#include "json/jsonl.h"
#include "json/write.h"
#include "run/find_server.h"
#include "script/embedded.h"
#include "trace/find_query.h"
#include "trace/saved_manifest.h"

enum { MAX_MANIFEST_BYTES = 64 * 1024 * 1024 };

static const char *text(const struct ipw_replay_job *job, const char *key)
{
    return ipw_json_str(ipw_json_get(job->config, key), NULL);
}

static int64_t number(const struct ipw_replay_job *job, const char *key, int64_t fallback)
{
    return ipw_json_int(ipw_json_get(job->config, key), fallback);
}

static int read_manifest(struct ipw_replay_job *job, struct ipw_err *err)
{
    int rc = ipw_saved_manifest_read(&job->manifest, job->run, err);

    job->config = ipw_json_get(job->manifest, "config");
    job->anchor = ipw_saved_clock_read(ipw_json_get(job->manifest, "clock"));
    return rc;
}

/* ---- the agent ---- */

/* A plain name that cannot lead to another folder. */
static bool is_plain_name(const char *s)
{
    return s && *s &&
           strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") ==
               strlen(s);
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
    const char *file = text(job, "agent_file"), *hash = text(job, "agent_sha256");
    const char *const *paths = ipw_script_paths(&job->o->script);
    char own[128];
    bool ours = own_agent(own, sizeof own, file);
    int rc;

    if (!ours && ipw_json_bool(ipw_json_get(job->config, "untrusted"), false))
        return ipw_fail(err, IPW_EUNSUPPORTED,
                        "%s: was recorded with --untrusted, and a replay would run the script in "
                        "this process",
                        job->run);
    if (job->o->agent) {
        rc = ipw_agent_inspect(&job->agent, job->o->agent, paths, false, err);
    } else if (ours) {
        rc = ipw_agent_inspect(&job->agent, own, paths, false, err);
        /* If the saved agent was not built in, a built-in one of the same name must not replace it
         * silently. */
        if (!rc && strncmp(file, "builtin:", 8) && hash && strcmp(hash, job->agent.sha256))
            return ipw_fail(err, IPW_EINVAL,
                            "%s: was recorded with %.200s, which is not the one in this program: "
                            "name the file with --agent FILE",
                            job->run, file);
    } else {
        return ipw_fail(err, IPW_EINVAL,
                        "%s: was recorded with the agent %.200s: name the file with --agent FILE "
                        "(a record does not say what is run)",
                        job->run, file ? file : "(not told)");
    }
    if (!rc && hash && strcmp(hash, job->agent.sha256) && !job->o->quiet)
        ipw_say("%s is not the file of the record (sha256 %.12s then, %.12s now)", job->agent.path,
                hash, job->agent.sha256);
    return rc;
}

static int take_tools(struct ipw_replay_job *job, struct ipw_err *err)
{
    const struct ipw_json *list = ipw_json_get(job->config, "tools");
    size_t n = 0, cap = 0;
    char *save = NULL;

    if (job->o->tools) {
        job->tools_text = ipw_strdup(job->o->tools);
        for (char *t = strtok_r(job->tools_text, ", ", &save); t; t = strtok_r(NULL, ", ", &save)) {
            IPW_GROW(job->tools, cap, n + 2);
            job->tools[n++] = t;
        }
    } else if (ipw_json_kind(list) == IPW_JSON_ARR) {
        IPW_GROW(job->tools, cap, 1);
        for (const struct ipw_json *t = ipw_json_first(list); t; t = ipw_json_next(t)) {
            if (!is_plain_name(ipw_json_str(t, NULL)))
                return ipw_fail(err, IPW_EINVAL,
                                "%s: names the tool file %.100s: say which to load with --tools",
                                job->run, ipw_json_str(t, "?"));
            IPW_GROW(job->tools, cap, n + 2);
            job->tools[n++] = ipw_json_str(t, "");
        }
    } else {
        return 0;
    }
    if (job->tools) job->tools[n] = NULL;
    return 0;
}

static int configure(struct ipw_replay_job *job, struct ipw_err *err)
{
    const struct ipw_json *temperature = ipw_json_get(job->config, "temperature");
    int rc = take_tools(job, err);

    job->model = ipw_strdup(text(job, "model"));
    job->agent_config = (struct ipw_agent_config){
        .max_turns = number(job, "max_turns", 0),
        .temperature = ipw_json_num(temperature, NAN),
        .seed = number(job, "seed", INT64_MIN),
        .max_tokens = number(job, "max_tokens", -1),
        .memory_bytes = (size_t)number(job, "lua_memory_bytes", 0),
        .slice_cpu_ns = ipw_s_to_ns(ipw_json_num(ipw_json_get(job->config, "lua_cpu_s"), 0)),
        .tools = job->tools,
        .paths = ipw_script_paths(&job->o->script)};
    job->quota = (struct ipw_quota){.max_bytes = (size_t)number(job, "workspace_bytes", 0),
                                    .max_files = (size_t)number(job, "workspace_files", 0)};
    if (text(job, "body") && ipw_json_valid(text(job, "body"), strlen(text(job, "body"))))
        job->over = ipw_strdup(text(job, "body"));
    return rc;
}

/* Real tools need the attachments of a dataset: one that was named, or a built-in one. */
static int open_cases(struct ipw_replay_job *job, struct ipw_err *err)
{
    const char *name = job->o->dataset ? job->o->dataset : text(job, "dataset");
    struct ipw_dataset_options options = {
        .dataset = name, .data_dir = job->o->data_dir, .paths = ipw_script_paths(&job->o->script)};
    struct ipw_err why;

    if (!job->o->dataset && !is_plain_name(name)) return 0;
    if (job->o->dataset) return ipw_dataset_open(&job->cases, &options, err);
    /* On failure a query with attachments reports it. */
    ipw_dataset_open(&job->cases, &options, &why);
    return 0;
}

static int open_servers(struct ipw_replay_job *job, struct ipw_err *err)
{
    const struct ipw_replay_cli *o = job->o;
    const char *key;
    struct ipw_llm_options options = {.max_retries = 2, .jitter_seed = 1};
    struct ipw_net_borrowed borrowed;
    int rc;

    if (!o->net.base_urls.n)
        return ipw_fail(err, IPW_EINVAL,
                        "--from-divergence live: name the server to continue with (--base-url)");
    rc = ipw_server_key(&key, o->api_key_env, err);
    if (!rc) rc = ipw_http_global_init(err);
    if (!rc)
        rc = ipw_http_new(
            &job->http, job->loop,
            &(struct ipw_http_options){.max_connections = (size_t)o->net.max_connections,
                                       .cacert = o->net.cacert},
            err);
    if (rc) return rc;
    options.base_url = o->net.base_urls.items[0];
    options.api_key = key;
    rc = ipw_net_fill(&options, &borrowed, &o->net, err);
    if (!rc) rc = ipw_llm_new(&job->servers, job->loop, job->http, &options, err);
    ipw_net_release(&borrowed);
    return rc;
}

static int find_query(struct ipw_replay_job *job, struct ipw_err *err)
{
    struct ipw_query_names names = {0};
    const char *id = NULL;
    int rc;

    if (!job->o->query) return 0;
    rc = ipw_query_names_read(&names, job->run, err);
    if (!rc) rc = ipw_query_pick(&id, &job->query_index, &names, job->o->query, err);
    if (rc)
        ipw_err_prefix(err, "%s", job->run);
    else
        job->query_id = ipw_strdup(id);
    ipw_query_names_release(&names);
    return rc;
}

int ipw_replay_job_open(struct ipw_replay_job *job, const struct ipw_replay_cli *o, const char *run,
                        int *exit_code, struct ipw_err *err)
{
    bool live = o->on && strcmp(o->on, "live") == 0;
    int rc;

    *job = (struct ipw_replay_job){.o = o, .run = run, .decisions = strcmp(o->mode, "tools") == 0};
    job->by_query = job->decisions || live || o->query;
    *exit_code = IPW_EXIT_USAGE;
    if (o->on && !live && strcmp(o->on, "fail"))
        return ipw_fail(err, IPW_EINVAL, "--from-divergence %.40s: expected fail or live", o->on);
    if (live && job->decisions)
        return ipw_fail(err, IPW_EINVAL, "--from-divergence goes with --mode hermetic");
    *exit_code = IPW_EXIT_INPUT;
    rc = read_manifest(job, err);
    if (!rc) rc = ipw_record_open(&job->record, run, err);
    if (!rc && job->by_query) rc = ipw_record_starts(&job->starts, job->record, err);
    if (!rc) rc = find_query(job, err);
    if (rc) return rc;
    if (ipw_json_bool(ipw_json_get(job->config, "no_content"), false))
        return ipw_fail(
            err, IPW_EINVAL,
            "%s: was recorded with --no-content: it holds nothing that an agent could be "
            "answered with (--mode workload sends its requests)",
            run);
    if (!ipw_json_is_null(ipw_json_get(job->manifest, "redacted")))
        return ipw_fail(
            err, IPW_EINVAL,
            "%s: was exported with --redact %.10s: what an agent could be answered with "
            "is not in it (--mode workload sends its requests)",
            run, ipw_json_str(ipw_json_get(job->manifest, "redacted"), "all"));
    ipw_script_options_apply(&o->script);
    rc = find_agent(job, err);
    if (!rc) rc = configure(job, err);
    if (!rc && (job->decisions || live)) rc = open_cases(job, err);
    if (rc == IPW_EINVAL) *exit_code = IPW_EXIT_USAGE;
    if (rc) return rc;
    *exit_code = IPW_EXIT_FAILED;
    rc = ipw_loop_new(&job->loop, err);
    if (!rc && live) rc = open_servers(job, err);
    if (!rc && (live || job->decisions))
        job->web = ipw_script_web(&o->script, job->loop, o->net.cacert);
    if (rc == IPW_EINVAL) *exit_code = IPW_EXIT_USAGE;
    return rc;
}

void ipw_replay_job_release(struct ipw_replay_job *job)
{
    while (job->active) {
        struct ipw_rq *q = job->active;

        job->active = q->next;
        ipw_rq_free(q);
    }
    while (job->told) {
        struct ipw_replay_told *t = job->told;

        job->told = t->next;
        for (size_t i = 0; i < t->n_texts; i++) free(t->texts[i]);
        free(t);
    }
    for (size_t i = 0; i < job->n_notes; i++) {
        free(job->notes[i].id);
        free(job->notes[i].text);
    }
    free(job->notes);
    free(job->gone);
    ipw_web_free(job->web);
    ipw_llm_free(job->servers);
    if (job->http) ipw_http_free(job->http);
    if (job->loop) {
        ipw_loop_run(job->loop); /* children are reaped, handles closed */
        ipw_loop_free(job->loop);
    }
    ipw_dataset_free(job->cases);
    ipw_record_close(job->record);
    ipw_record_starts_release(&job->starts);
    if (job->workspaces) rmdir(job->workspaces);
    free(job->workspaces);
    free(job->query_id);
    free(job->tools_text);
    free(job->tools);
    free(job->over);
    free(job->model);
    ipw_json_free(job->manifest);
}

/* ---- the new run's folder ---- */

static void print_clock(struct ipw_buf *out, const struct ipw_anchor *anchor)
{
    struct ipw_jw w;

    ipw_jw_init(&w, out);
    ipw_saved_clock_write(&w, anchor);
}

/* The saved manifest, with a member about its origin. */
static int write_manifest(struct ipw_replay_job *job, struct ipw_err *err)
{
    struct ipw_buf out = IPW_BUF(MAX_MANIFEST_BYTES), value = IPW_BUF(MAX_MANIFEST_BYTES);
    const char *hash = text(job, "agent_sha256");
    char date[40];
    struct ipw_anchor now;
    struct ipw_jw w;
    bool told = false;
    int rc;

    ipw_anchor_take(&now);
    ipw_jw_init(&w, &out);
    ipw_jw_obj(&w);
    /* The members are sorted: a run's own manifest has "program" before and "schema_version"
     * after. */
    for (const struct ipw_json *m = ipw_json_first(job->manifest);; m = ipw_json_next(m)) {
        if (!told && (!m || strcmp(ipw_json_key(m), "replay") >= 0)) {
            told = true;
            ipw_jw_key(&w, "replay");
            ipw_jw_obj(&w);
            ipw_jw_kstr(&w, "agent_file", job->agent.path);
            ipw_jw_kstr(&w, "agent_sha256", job->agent.sha256);
            ipw_jw_kbool(&w, "agent_unchanged", hash && strcmp(hash, job->agent.sha256) == 0);
            ipw_jw_kstr(&w, "mode", job->o->mode);
            ipw_jw_kstr(&w, "of", job->run);
            ipw_jw_kstr(&w, "replayed_at", ipw_clock_iso8601(date, sizeof date, now.wall_ns));
            ipw_jw_kstr(&w, "times", job->by_query ? "replay" : "record");
            ipw_jw_obj_end(&w);
        }
        if (!m) break;
        if (strcmp(ipw_json_key(m), "replay") == 0) continue;
        ipw_buf_clear(&value);
        if (job->by_query && strcmp(ipw_json_key(m), "clock") == 0)
            print_clock(&value, &job->anchor);
        else
            ipw_json_print(&value, m);
        ipw_jw_key_any(&w, ipw_json_key(m), strlen(ipw_json_key(m)));
        ipw_jw_raw(&w, ipw_buf_str(&value), value.len);
    }
    ipw_jw_obj_end(&w);
    ipw_buf_addc(&out, '\n');
    rc = ipw_rundir_write_manifest(job->dir, ipw_buf_str(&out), out.len, err);
    ipw_buf_release(&out);
    ipw_buf_release(&value);
    return rc;
}

int ipw_replay_job_make_dir(struct ipw_replay_job *job, struct ipw_err *err)
{
    struct ipw_anchor now;
    struct ipw_rundir_names names = {
        .agent = text(job, "agent"), .model = job->model, .dataset = text(job, "dataset")};
    char *real;
    int rc;

    ipw_anchor_take(&now);
    names.wall_ns = now.wall_ns;
    if (job->by_query) job->anchor = now;
    rc = ipw_rundir_create(&job->dir, job->o->output, &names, err);
    if (rc) return rc;
    real = realpath(ipw_rundir_path(job->dir), NULL);
    if (!real) return ipw_fail_errno(err, errno, "%s", ipw_rundir_path(job->dir));
    job->workspaces = ipw_asprintf("%s/workspaces", real);
    free(real);
    return write_manifest(job, err);
}

void ipw_replay_job_line(struct ipw_replay_job *job, const struct ipw_record_line *line)
{
    /* Notes of the run can be written after later events. */
    if (line->event.t_ns > job->written_ns || line->event.kind == IPW_EV_RUN_START) {
        job->written_ns = line->event.t_ns;
        job->written_rows = line->event.rows;
    }
    ipw_rundir_event_line(job->dir, line->text, line->n);
}
