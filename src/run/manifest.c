#include "run/manifest.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "energy/hardware.h"
#include "io/cgroup.h"
#include "json/write.h"
#include "run/conceal.h"
#include "run/segment.h"
#include "script/lua_text.h"
#include "trace/saved_clock.h"

enum { MAX_BYTES = 256 * 1024 * 1024 };
#define CONFIG_MAX (64 * IPW_MIB)

/* The part of the tasks that this run takes; null: all. */
static void put_shard(struct ipw_jw *w, const struct ipw_shard *shard,
                      const struct ipw_selection *whole)
{
    ipw_jw_key(w, "shard");
    if (!shard->count) {
        ipw_jw_null(w);
        return;
    }
    ipw_jw_obj(w);
    ipw_jw_kint(w, "count", shard->count);
    ipw_jw_kint(w, "index", shard->index);
    ipw_jw_kint(w, "selected", (int64_t)whole->n);
    ipw_jw_kstr(w, "selection_sha256", whole->sha256);
    ipw_jw_kstr(w, "taken", shard->taken[0] ? shard->taken : NULL);
    ipw_jw_obj_end(w);
}

static void put_sub_model(struct ipw_jw *w, const struct ipw_sub_model_options *o)
{
    if (!o->model) {
        ipw_jw_null(w);
        return;
    }
    ipw_jw_obj(w);
    ipw_jw_kstr(w, "model", o->model);
    ipw_jw_kstr(w, "url", o->url);
    ipw_jw_obj_end(w);
}

/* What stands between a tool's program and the machine; NULL: no program is started. */
static const char *wall_of(const struct ipw_host_grants *grants)
{
    if (!grants->may_start) return NULL;
    if (!grants->sandbox) return "none";
    return ipw_cgroup_parent() ? "bubblewrap+cgroup" : "bubblewrap";
}

void ipw_manifest_config(struct ipw_jw *w, const struct ipw_manifest *m)
{
    const struct ipw_run_options *o = m->o;
    int64_t forced = o->server.net.force_tokens;
    int64_t max_turns = o->agent.max_turns > 0 ? o->agent.max_turns : m->agent->max_turns;
    struct ipw_buf telemetry = IPW_BUF(IPW_MIB);
    struct ipw_host_grants grants;
    struct ipw_quota quota = ipw_script_quota(&o->script);
    char *body = ipw_conceal_copy(o->server.net.body); /* compared with an earlier session's text */

    ipw_jw_obj(w);
    ipw_jw_kstr(w, "agent", m->agent->name);
    ipw_jw_kstr(w, "agent_file", m->agent->path);
    ipw_jw_kstr(w, "agent_sha256", m->agent->sha256);
    ipw_jw_kbool(w, "allow_native", o->script.allow_native);
    ipw_jw_kstr(w, "body", body);
    free(body);
    ipw_jw_kstr(w, "client_base_url", m->connection->base_url);
    ipw_jw_kint(w, "concurrency", ipw_run_concurrency(o));
    ipw_jw_kstr(w, "dataset", ipw_dataset_name(m->cases));
    ipw_jw_kint(w, "dataset_files", (int64_t)ipw_dataset_files(m->cases));
    ipw_jw_kstr(w, "dataset_sha256", ipw_dataset_sha256(m->cases));
    ipw_jw_kstr(w, "dataset_source", ipw_dataset_source(m->cases));
    ipw_jw_kstr(w, "encoding", o->data.encoding);
    ipw_jw_kstr(w, "energy", m->sensors->rules.lm_remote ? "remote" : "local");
    ipw_jw_kint(w, "epochs", o->data.epochs);
    ipw_jw_kbool(w, "estimate", !o->sensors.no_estimate);
    ipw_jw_kcount(w, "force_output_tokens", forced > 0 ? forced : -1);
    ipw_jw_knum(w, "gco2_per_kwh", o->limits.gco2_per_kwh);
    ipw_jw_kstr(w, "ids", o->data.ids);
    ipw_jw_key(w, "judge");
    ipw_judge_options_write(w, &o->judge);
    ipw_jw_knum(w, "kwh_price", o->limits.kwh_price);
    ipw_jw_kstr(w, "limit", o->data.limit);
    ipw_jw_key(w, "limits");
    ipw_limits_write(w, &o->limits);
    ipw_jw_knum(w, "lua_cpu_s", ipw_ns_to_s(o->agent.lua_cpu_ns));
    ipw_jw_kint(w, "lua_memory_bytes", (int64_t)o->agent.lua_memory_bytes);
    ipw_jw_kbool(w, "lua_path", o->script.lua_path || o->script.allow_native);
    ipw_jw_kint(w, "max_queries", (int64_t)ipw_dataset_count(m->cases));
    ipw_jw_kint(w, "max_retries", o->server.max_retries);
    ipw_jw_kcount(w, "max_tokens", o->agent.max_tokens);
    ipw_jw_kstr(w, "max_tokens_field",
                m->connection->llm ? ipw_llm_tokens_field(m->connection->llm) : NULL);
    ipw_jw_kcount(w, "max_turns", max_turns > 0 ? max_turns : -1);
    ipw_jw_key(w, "mcp");
    ipw_mcp_servers_write(w, o->script.servers);
    ipw_jw_kbool(w, "mcp_per_query", o->script.mcp.per_query);
    ipw_jw_kstr(w, "model", m->connection->model);
    ipw_jw_kbool(w, "no_content", o->output.no_content);
    ipw_jw_kbool(w, "no_proc", o->script.no_proc);
    ipw_jw_kbool(w, "no_web", o->script.no_web);
    ipw_jw_key(w, "price");
    ipw_pricing_write(w, m->pricing, m->connection->model);
    ipw_jw_key(w, "prices");
    ipw_pricing_write_used(w, m->pricing);
    ipw_jw_knum(w, "query_timeout",
                o->limits.query.wall_ns ? ipw_ns_to_s(o->limits.query.wall_ns) : (double)NAN);
    ipw_jw_key(w, "rate");
    ipw_pacing_write(w, &o->data.pacing);
    ipw_jw_kstr(w, "sample", o->data.sample);
    ipw_run_grants(&grants, o);
    ipw_jw_kstr(w, "sandbox", wall_of(&grants));
    ipw_jw_key(w, "scripts");
    ipw_scripts_write(w, m->scripts);
    ipw_jw_kstr(w, "search", o->script.search ? o->script.search->name : NULL);
    if (o->agent.seed != INT64_MIN)
        ipw_jw_kint(w, "seed", o->agent.seed);
    else
        ipw_jw_knull(w, "seed");
    ipw_jw_kstr(w, "selection_sha256", m->selection_sha256);
    put_shard(w, &o->data.shard, &m->origin->whole);
    ipw_jw_kstr(w, "share", ipw_share_name(m->sensors->rules.share));
    ipw_jw_kstr(w, "speech", o->script.speech ? o->script.speech->name : NULL);
    ipw_jw_key(w, "sub_model");
    put_sub_model(w, &o->server.sub);
    ipw_jw_kstr(w, "sync", ipw_sync_name(m->sync));
    ipw_sensors_selection(&telemetry, &o->sensors);
    ipw_jw_kstr(w, "telemetry", ipw_buf_str(&telemetry));
    ipw_buf_release(&telemetry);
    ipw_jw_knum(w, "telemetry_interval", ipw_ns_to_s(m->sensors->interval_ns));
    ipw_jw_knum(w, "temperature", o->agent.temperature); /* NAN writes null: the agent's own */
    ipw_jw_key(w, "tools");
    if (m->tools) {
        ipw_jw_arr(w);
        for (size_t i = 0; m->tools[i]; i++) ipw_jw_str(w, m->tools[i]);
        ipw_jw_arr_end(w);
    } else {
        ipw_jw_null(w);
    }
    ipw_jw_kint(w, "warmup", o->data.warmup);
    ipw_jw_kstr(w, "where", o->data.where);
    ipw_jw_kint(w, "workspace_bytes", (int64_t)quota.max_bytes);
    ipw_jw_kint(w, "workspace_files", (int64_t)quota.max_files);
    ipw_jw_obj_end(w);
}

static void put_clock(struct ipw_jw *w, const struct ipw_anchor *anchor)
{
    ipw_jw_key(w, "clock");
    ipw_saved_clock_write(w, anchor);
}

static void put_program(struct ipw_jw *w)
{
    ipw_jw_key(w, "program");
    ipw_jw_obj(w);
    ipw_jw_kstr(w, "name", "ipw-agent");
    ipw_jw_kstr(w, "version", IPW_VERSION);
    ipw_jw_obj_end(w);
}

static void put_watts(struct ipw_jw *w, const char *key, const struct ipw_manifest *m, bool after)
{
    ipw_jw_key(w, key);
    ipw_jw_obj(w);
    for (int i = 0; i < IPW_DOMAIN_COUNT; i++) {
        enum ipw_domain d = ipw_domains_by_name[i];
        const struct ipw_baseline_watts *b = &m->baseline->domain[d];

        ipw_jw_knum(w, ipw_domain_name(d), after ? b->after_w : b->before_w);
    }
    ipw_jw_obj_end(w);
}

static void put_baseline(struct ipw_jw *w, const struct ipw_manifest *m, bool over)
{
    ipw_jw_key(w, "baseline");
    if (!over || !m->o->sensors.baseline_ns) {
        ipw_jw_null(w);
        return;
    }
    ipw_jw_obj(w);
    put_watts(w, "after_w", m, true);
    put_watts(w, "before_w", m, false);
    ipw_jw_knum(w, "seconds", ipw_ns_to_s(m->o->sensors.baseline_ns));
    ipw_jw_obj_end(w);
}

static void put_torn(struct ipw_jw *w, const struct ipw_rundir *dir)
{
    const struct ipw_rundir_torn *torn;
    size_t n = ipw_rundir_torn(dir, &torn);

    ipw_jw_key(w, "torn");
    ipw_jw_arr(w);
    for (size_t i = 0; i < n; i++) {
        ipw_jw_obj(w);
        ipw_jw_kint(w, "bytes", torn[i].cut.bytes);
        ipw_jw_kstr(w, "file", torn[i].file);
        ipw_jw_kint(w, "offset", torn[i].cut.offset);
        ipw_jw_obj_end(w);
    }
    ipw_jw_arr_end(w);
}

/* This session. */
static void put_segment(struct ipw_jw *w, const struct ipw_manifest *m,
                        const struct ipw_rundir *dir, const struct ipw_session_end *end,
                        const struct ipw_buf *hardware)
{
    const struct ipw_session *session = m->session;
    const char *not_quiet = m->sensors->found.not_quiet;
    char date[40];

    ipw_jw_obj(w);
    put_baseline(w, m, end != NULL);
    ipw_jw_kstr(w, "client_base_url", m->connection->base_url);
    put_clock(w, &session->anchor);
    ipw_jw_kint(w, "concurrency", ipw_run_concurrency(m->o));
    ipw_segment_put_end(w, end ? end->end : NULL, end ? session->end_ns : 0, &session->anchor);
    ipw_jw_kstr(w, "energy_note", m->sensors->energy_note[0] ? m->sensors->energy_note : NULL);
    ipw_jw_key(w, "forced");
    ipw_jw_arr(w);
    for (size_t i = 0; i < m->differences->n; i++) ipw_jw_str(w, m->differences->passed[i]);
    ipw_jw_arr_end(w);
    ipw_jw_kraw(w, "hardware", ipw_buf_str(hardware), hardware->len);
    ipw_segment_put_host(w);
    ipw_segment_put_balances(w, end ? end->balances : NULL, end ? end->devices : NULL);
    ipw_jw_kstr(w, "not_quiet", not_quiet[0] ? not_quiet : NULL);
    ipw_jw_kstr(w, "note", end ? end->note : NULL);
    ipw_jw_key(w, "own");
    if (end) {
        ipw_jw_obj(w);
        ipw_jw_kmicro(w, "estimated_joules", end->own_joules);
        ipw_jw_knum(w, "runner_cpu_s", end->runner_cpu_s);
        ipw_jw_knum(w, "sampler_cpu_s", end->sampler_cpu_s);
        ipw_jw_obj_end(w);
    } else {
        ipw_jw_null(w);
    }
    ipw_jw_kint(w, "pid", getpid());
    put_program(w);
    ipw_jw_kint(w, "segment", session->number);
    ipw_segment_put_time(w, "start_ns", session->start_ns);
    ipw_jw_kstr(w, "started_at", ipw_clock_iso8601(date, sizeof date, session->anchor.wall_ns));
    put_torn(w, dir);
    ipw_jw_obj_end(w);
}

struct ipw_json *ipw_manifest_config_doc(const struct ipw_manifest *m)
{
    struct ipw_buf text = IPW_BUF(CONFIG_MAX);
    struct ipw_json *doc = NULL;
    struct ipw_jw w;

    ipw_jw_init(&w, &text);
    ipw_manifest_config(&w, m);
    if (ipw_json_parse(&doc, ipw_buf_str(&text), text.len, NULL, NULL))
        IPW_BUG("the configuration is no JSON");
    ipw_buf_release(&text);
    return doc;
}

void ipw_manifest_hardware(struct ipw_buf *out, const struct ipw_source_set *set,
                           const struct ipw_trust *trust)
{
    struct ipw_buf facts = IPW_BUF(MAX_BYTES);
    struct ipw_err err;

    ipw_hardware_facts(&facts, NULL, NULL, set, trust);
    if (ipw_lua_text(out, "ipw.hardware", &facts, &(struct ipw_lua_text_style){.width = 0}, &err)) {
        ipw_log(IPW_LOG_WARN, "the hardware is not in the manifest: %s", err.text);
        ipw_buf_adds(out, "null");
    }
    ipw_buf_release(&facts);
}

/* `alone`: with this session only. */
static void put_manifest(struct ipw_buf *out, const struct ipw_manifest *m,
                         const struct ipw_rundir *dir, const struct ipw_session_end *end,
                         bool alone)
{
    const struct ipw_history *h = m->history;
    const char *not_quiet = m->sensors->found.not_quiet;
    const char *command = h->command ? h->command : m->command;
    const struct ipw_anchor *first = h->n ? &h->past[0].anchor : &m->session->anchor;
    struct ipw_json *config = ipw_manifest_config_doc(m);
    struct ipw_buf hardware = IPW_BUF(MAX_BYTES);
    struct ipw_jw w;
    char date[40];

    ipw_manifest_hardware(&hardware, &m->sensors->sources, m->sensors->trust);
    ipw_jw_init(&w, out);
    ipw_jw_obj(&w);
    put_clock(&w, first);
    ipw_jw_kraw(&w, "command", command, strlen(command));
    ipw_jw_key(&w, "config");
    ipw_manifest_config(&w, m);
    ipw_jw_kraw(&w, "hardware", ipw_buf_str(&hardware), hardware.len);
    ipw_jw_key(&w, "hashes");
    ipw_same_run_hashes(&w, config);
    ipw_jw_kstr(&w, "not_quiet", not_quiet[0] ? not_quiet : NULL);
    put_program(&w);
    if (m->origin->write) {
        ipw_jw_key(&w, "replay");
        m->origin->write(m->origin, &w);
    }
    ipw_jw_kint(&w, "schema_version", IPW_SCHEMA_VERSION);
    ipw_jw_key(&w, "segments");
    ipw_jw_arr(&w);
    for (size_t i = 0; i < h->n && !alone; i++)
        ipw_jw_raw(&w, h->past[i].text, strlen(h->past[i].text));
    put_segment(&w, m, dir, end, &hardware);
    ipw_jw_arr_end(&w);
    ipw_jw_kstr(&w, "started_at", ipw_clock_iso8601(date, sizeof date, first->wall_ns));
    ipw_jw_obj_end(&w);
    ipw_buf_release(&hardware);
    ipw_json_free(config);
}

void ipw_manifest_put(struct ipw_buf *out, const struct ipw_manifest *m,
                      const struct ipw_rundir *dir)
{
    put_manifest(out, m, dir, NULL, true);
}

int ipw_manifest_write(const struct ipw_manifest *m, struct ipw_rundir *dir,
                       const struct ipw_session_end *end, struct ipw_err *err)
{
    struct ipw_buf out = IPW_BUF(MAX_BYTES);
    int rc;

    put_manifest(&out, m, dir, end, false);
    ipw_buf_addc(&out, '\n');
    if (out.failed)
        rc = ipw_fail(err, IPW_ELIMIT, "%s: its manifest is larger than %d MiB",
                      ipw_rundir_path(dir), MAX_BYTES / 1024 / 1024);
    else
        rc = ipw_rundir_write_manifest(dir, out.data, out.len, err);
    ipw_buf_release(&out);
    return rc;
}
