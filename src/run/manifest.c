/* manifest.json: what is run, on what, and in which sessions. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "energy/hardware.h"
#include "json/write.h"
#include "run/conceal.h"
#include "run/resume/sessions.h"
#include "run/run.h"
#include "run/sensors.h"

enum { MAX_BYTES = 256 * 1024 * 1024 };

/* The configuration as it was resolved, under upstream's names where they exist. */
void ipw_run_write_config(struct ipw_jw *w, const struct ipw_run *run)
{
    const struct ipw_run_options *o = run->o;
    struct ipw_buf telemetry = IPW_BUF(IPW_MIB);
    struct ipw_quota quota = ipw_script_quota(&o->script);
    char *body = ipw_conceal_copy(o->net.body); /* compared with what an earlier session wrote */

    ipw_jw_obj(w);
    ipw_jw_kstr(w, "agent", run->agent.name);
    ipw_jw_kstr(w, "agent_file", run->agent.path);
    ipw_jw_kstr(w, "agent_sha256", run->agent.sha256);
    ipw_jw_kbool(w, "allow_native", o->script.allow_native);
    ipw_jw_kstr(w, "body", body);
    free(body);
    ipw_jw_kstr(w, "client_base_url", run->base_url);
    ipw_jw_kint(w, "concurrency", o->concurrency);
    ipw_jw_kstr(w, "dataset", ipw_dataset_name(run->cases));
    ipw_jw_kstr(w, "dataset_sha256", ipw_dataset_sha256(run->cases));
    ipw_jw_kstr(w, "dataset_source", ipw_dataset_source(run->cases));
    ipw_jw_kstr(w, "energy", run->ledger_facts.lm_remote ? "remote" : "local");
    ipw_jw_kint(w, "epochs", o->epochs);
    if (o->net.force_tokens > 0)
        ipw_jw_kint(w, "force_output_tokens", o->net.force_tokens);
    else
        ipw_jw_knull(w, "force_output_tokens");
    ipw_jw_kstr(w, "limit", o->limit);
    ipw_jw_key(w, "limits");
    ipw_limits_write(w, &o->limits);
    ipw_jw_knum(w, "lua_cpu_s", ipw_ns_to_s(o->lua_cpu_ns));
    ipw_jw_kint(w, "lua_memory_bytes", (int64_t)o->lua_memory_bytes);
    ipw_jw_kbool(w, "lua_path", o->script.lua_path || o->script.allow_native);
    ipw_jw_kint(w, "max_queries", (int64_t)ipw_dataset_count(run->cases));
    ipw_jw_kint(w, "max_retries", o->max_retries);
    if (o->max_tokens >= 0)
        ipw_jw_kint(w, "max_tokens", o->max_tokens);
    else
        ipw_jw_knull(w, "max_tokens");
    ipw_jw_kstr(w, "max_tokens_field", run->llm ? ipw_llm_tokens_field(run->llm) : NULL);
    if (o->max_turns > 0 || run->agent.max_turns > 0)
        ipw_jw_kint(w, "max_turns", o->max_turns > 0 ? o->max_turns : run->agent.max_turns);
    else
        ipw_jw_knull(w, "max_turns");
    ipw_jw_kstr(w, "model", run->demo ? "demo" : run->model);
    ipw_jw_kbool(w, "no_content", o->no_content);
    ipw_jw_kbool(w, "no_proc", o->script.no_proc);
    ipw_jw_kbool(w, "no_web", o->script.no_web);
    ipw_jw_key(w, "price");
    ipw_pricing_write(w, &run->pricing, run->model);
    if (o->limits.query.wall_ns)
        ipw_jw_knum(w, "query_timeout", ipw_ns_to_s(o->limits.query.wall_ns));
    else
        ipw_jw_knull(w, "query_timeout");
    ipw_jw_key(w, "scripts");
    ipw_scripts_write(w, run);
    if (o->seed != INT64_MIN)
        ipw_jw_kint(w, "seed", o->seed);
    else
        ipw_jw_knull(w, "seed");
    ipw_jw_kstr(w, "selection_sha256", run->selection_sha256);
    ipw_jw_kstr(w, "share", ipw_share_name(run->ledger_facts.share));
    ipw_jw_kstr(w, "sync", ipw_sync_name(run->sync));
    ipw_sensors_selection(&telemetry, o);
    ipw_jw_kstr(w, "telemetry", ipw_buf_str(&telemetry));
    ipw_buf_release(&telemetry);
    ipw_jw_knum(w, "telemetry_interval", ipw_ns_to_s(o->sample_interval_ns));
    ipw_jw_knum(w, "temperature", o->temperature); /* NAN writes null: the agent's own */
    ipw_jw_key(w, "tools");
    if (run->tools) {
        ipw_jw_arr(w);
        for (size_t i = 0; run->tools[i]; i++) ipw_jw_str(w, run->tools[i]);
        ipw_jw_arr_end(w);
    } else {
        ipw_jw_null(w);
    }
    ipw_jw_kbool(w, "untrusted", o->untrusted);
    ipw_jw_kint(w, "warmup", o->warmup);
    ipw_jw_kint(w, "workspace_bytes", (int64_t)quota.max_bytes);
    ipw_jw_kint(w, "workspace_files", (int64_t)quota.max_files);
    ipw_jw_obj_end(w);
}

static void put_clock(struct ipw_jw *w, const struct ipw_anchor *anchor)
{
    ipw_jw_key(w, "clock");
    ipw_jw_obj(w);
    ipw_jw_kint(w, "boot_ns", anchor->boot_ns);
    ipw_jw_kint(w, "mono_ns", anchor->mono_ns);
    ipw_jw_kint(w, "wall_ns", anchor->wall_ns);
    ipw_jw_obj_end(w);
}

static void put_program(struct ipw_jw *w)
{
    ipw_jw_key(w, "program");
    ipw_jw_obj(w);
    ipw_jw_kstr(w, "name", "ipw-agent");
    ipw_jw_kstr(w, "version", IPW_VERSION);
    ipw_jw_obj_end(w);
}

/* What the domains drew while the session went on; NULL: it is not over. */
static void put_book(struct ipw_jw *w, const struct ipw_balance *b)
{
    ipw_jw_knum(w, "idle_j", b->idle.known ? b->idle.j : NAN);
    ipw_jw_kstr(w, "reason", b->total.known ? NULL : b->total.reason);
    ipw_jw_knum(w, "total_j", b->total.known ? b->total.j : NAN);
}

static void put_device_books(struct ipw_jw *w, const struct ipw_device_books *devices,
                             enum ipw_domain domain)
{
    if (!ipw_device_books_whole(devices, domain)) return;
    ipw_jw_key(w, "devices");
    ipw_jw_obj(w);
    for (size_t i = 0; i < devices->n; i++) {
        const struct ipw_device_book *book = &devices->all[i];

        if (book->domain != domain) continue;
        ipw_jw_key_any(w, book->name, strlen(book->name));
        ipw_jw_obj(w);
        put_book(w, &book->balance);
        ipw_jw_obj_end(w);
    }
    ipw_jw_obj_end(w);
}

static void put_books(struct ipw_jw *w, const struct ipw_balance *books,
                      const struct ipw_device_books *devices)
{
    static const enum ipw_domain sorted[IPW_DOMAIN_COUNT] = {IPW_DOMAIN_CPU, IPW_DOMAIN_DRAM,
                                                             IPW_DOMAIN_GPU, IPW_DOMAIN_MACHINE};

    ipw_jw_key(w, "ledger");
    if (!books) {
        ipw_jw_null(w);
        return;
    }
    ipw_jw_obj(w);
    for (int i = 0; i < IPW_DOMAIN_COUNT; i++) {
        ipw_jw_key(w, ipw_domain_name(sorted[i]));
        ipw_jw_obj(w);
        put_device_books(w, devices, sorted[i]);
        put_book(w, &books[sorted[i]]);
        ipw_jw_obj_end(w);
    }
    ipw_jw_obj_end(w);
}

static void put_time(struct ipw_jw *w, const char *key, int64_t t_ns)
{
    if (t_ns)
        ipw_jw_kint(w, key, t_ns);
    else
        ipw_jw_knull(w, key);
}

static void put_watts(struct ipw_jw *w, const char *key, const struct ipw_run *run, bool after)
{
    static const enum ipw_domain sorted[IPW_DOMAIN_COUNT] = {IPW_DOMAIN_CPU, IPW_DOMAIN_DRAM,
                                                             IPW_DOMAIN_GPU, IPW_DOMAIN_MACHINE};

    ipw_jw_key(w, key);
    ipw_jw_obj(w);
    for (int i = 0; i < IPW_DOMAIN_COUNT; i++) {
        const struct ipw_baseline_watts *b = &run->baseline[sorted[i]];

        ipw_jw_knum(w, ipw_domain_name(sorted[i]), after ? b->after_w : b->before_w);
    }
    ipw_jw_obj_end(w);
}

static void put_baseline(struct ipw_jw *w, const struct ipw_run *run, bool over)
{
    ipw_jw_key(w, "baseline");
    if (!over || !run->o->baseline_ns) {
        ipw_jw_null(w);
        return;
    }
    ipw_jw_obj(w);
    put_watts(w, "after_w", run, true);
    put_watts(w, "before_w", run, false);
    ipw_jw_knum(w, "seconds", ipw_ns_to_s(run->o->baseline_ns));
    ipw_jw_obj_end(w);
}

static void put_end(struct ipw_jw *w, const char *end, int64_t end_ns,
                    const struct ipw_anchor *anchor)
{
    char date[40];

    ipw_jw_kstr(w, "end", end);
    put_time(w, "end_ns", end_ns);
    ipw_jw_kstr(w, "ended_at",
                end_ns ? ipw_clock_iso8601(date, sizeof date, ipw_anchor_wall_ns(anchor, end_ns))
                       : NULL);
}

void ipw_segment_write_end(struct ipw_buf *out, const char *end, int64_t start_ns, int64_t end_ns,
                           const struct ipw_anchor *anchor, const struct ipw_balance *books,
                           const struct ipw_device_books *devices)
{
    struct ipw_jw w;

    ipw_jw_init(&w, out);
    ipw_jw_obj(&w);
    put_end(&w, end, end_ns, anchor);
    put_books(&w, books, devices);
    put_time(&w, "start_ns", start_ns);
    ipw_jw_obj_end(&w);
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
static void put_segment(struct ipw_jw *w, const struct ipw_run *run, const char *end,
                        const struct ipw_balance *books, const struct ipw_device_books *devices,
                        const struct ipw_buf *hardware)
{
    char date[40];

    ipw_jw_obj(w);
    put_baseline(w, run, end != NULL);
    ipw_jw_kstr(w, "client_base_url", run->base_url);
    put_clock(w, &run->anchor);
    ipw_jw_kint(w, "concurrency", run->o->concurrency);
    put_end(w, end, end ? run->end_ns : 0, &run->anchor);
    ipw_jw_kstr(w, "energy_note", run->energy_note[0] ? run->energy_note : NULL);
    ipw_jw_key(w, "forced");
    ipw_jw_arr(w);
    for (size_t i = 0; i < run->n_forced; i++) ipw_jw_str(w, run->forced[i]);
    ipw_jw_arr_end(w);
    ipw_jw_kraw(w, "hardware", ipw_buf_str(hardware), hardware->len);
    put_books(w, books, devices);
    ipw_jw_kstr(w, "not_quiet", run->not_quiet[0] ? run->not_quiet : NULL);
    ipw_jw_kstr(w, "note", run->summary_note);
    ipw_jw_key(w, "own");
    if (end) {
        ipw_jw_obj(w);
        ipw_jw_knum(w, "estimated_joules", run->own.joules);
        ipw_jw_knum(w, "runner_cpu_s", run->own.runner_cpu_s);
        ipw_jw_knum(w, "sampler_cpu_s", run->own.sampler_cpu_s);
        ipw_jw_obj_end(w);
    } else {
        ipw_jw_null(w);
    }
    ipw_jw_kint(w, "pid", getpid());
    put_program(w);
    ipw_jw_kint(w, "segment", run->segment);
    put_time(w, "start_ns", run->start_ns);
    ipw_jw_kstr(w, "started_at", ipw_clock_iso8601(date, sizeof date, run->anchor.wall_ns));
    put_torn(w, run->dir);
    ipw_jw_obj_end(w);
}

/* `alone`: of the sessions only this one. */
static void put_manifest(struct ipw_buf *out, const struct ipw_run *run, const char *end,
                         const struct ipw_balance *books, const struct ipw_device_books *devices,
                         bool alone)
{
    const struct ipw_history *h = &run->history;
    struct ipw_buf hardware = IPW_BUF(MAX_BYTES);
    const struct ipw_anchor *first = h->n ? &h->past[0].anchor : &run->anchor;
    struct ipw_jw w;
    char date[40];

    ipw_hardware_json(&hardware, &run->sources, run->selftest);
    ipw_jw_init(&w, out);
    ipw_jw_obj(&w);
    put_clock(&w, first);
    ipw_jw_kraw(&w, "command", run->command, strlen(run->command));
    ipw_jw_key(&w, "config");
    ipw_run_write_config(&w, run);
    ipw_jw_kraw(&w, "hardware", ipw_buf_str(&hardware), hardware.len);
    ipw_jw_key(&w, "hashes");
    ipw_identity_write(&w, run);
    ipw_jw_kstr(&w, "not_quiet", run->not_quiet[0] ? run->not_quiet : NULL);
    put_program(&w);
    if (run->origin->write) {
        ipw_jw_key(&w, "replay");
        run->origin->write(run->origin, &w);
    }
    ipw_jw_kint(&w, "schema_version", IPW_SCHEMA_VERSION);
    ipw_jw_key(&w, "segments");
    ipw_jw_arr(&w);
    for (size_t i = 0; i < h->n && !alone; i++)
        ipw_jw_raw(&w, h->past[i].text, strlen(h->past[i].text));
    put_segment(&w, run, end, books, devices, &hardware);
    ipw_jw_arr_end(&w);
    ipw_jw_kstr(&w, "started_at", ipw_clock_iso8601(date, sizeof date, first->wall_ns));
    ipw_jw_obj_end(&w);
    ipw_buf_release(&hardware);
}

void ipw_run_put_manifest(struct ipw_buf *out, const struct ipw_run *run)
{
    put_manifest(out, run, NULL, NULL, NULL, true);
}

int ipw_run_write_manifest(struct ipw_run *run, const char *end, const struct ipw_balance *books,
                           const struct ipw_device_books *devices, struct ipw_err *err)
{
    struct ipw_buf out = IPW_BUF(MAX_BYTES);
    int rc;

    put_manifest(&out, run, end, books, devices, false);
    ipw_buf_addc(&out, '\n');
    if (out.failed)
        rc = ipw_fail(err, IPW_ELIMIT, "%s: its manifest is larger than %d MiB",
                      ipw_rundir_path(run->dir), MAX_BYTES / 1024 / 1024);
    else
        rc = ipw_rundir_write_manifest(run->dir, out.data, out.len, err);
    ipw_buf_release(&out);
    return rc;
}
