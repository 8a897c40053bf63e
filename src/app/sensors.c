#include "app/sensors.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app/before.h"
#include "base/log.h"
#include "base/mem.h"
#include "energy/select.h"
#include "json/write.h"

static void stop_loop(void *loop) { ipw_loop_stop(loop); }

static void on_sample(void *ud)
{
    struct ipw_run *run = ud;

    ipw_wakeup_send(run->sampled);
}

void ipw_sensors_selection(struct ipw_buf *out, const struct ipw_run_options *o)
{
    for (size_t i = 0; i < o->telemetry.n; i++)
        ipw_buf_addf(out, "%s%s", i ? "," : "", o->telemetry.items[i]);
    if (!o->telemetry.n) ipw_buf_adds(out, "auto");
}

/* ---- notes in the run's events ---- */

/* What happens before the run_start is written after it, and read back from there: it names the rows
 * that came before it.  What happens after the run_end belongs to no run. */
static void note(struct ipw_run *run, const char *name, const char *data, size_t n)
{
    struct ipw_event event = {.kind = IPW_EV_NOTE,
                              .t_ns = ipw_now_ns(),
                              .query = -1,
                              .rows = run->n_rows,
                              .tool.name = name,
                              .payload = data,
                              .payload_len = n};

    if (run->end_ns || !run->feed) return;
    if (run->start_ns) {
        ipw_rundir_event(run->dir, &event);
    } else {
        ipw_event_write(&run->early_notes, &event);
    }
    ipw_feed_event(run->feed, &event);
}

void ipw_sensors_started(struct ipw_run *run)
{
    if (run->early_notes.len)
        ipw_rundir_event_line(run->dir, run->early_notes.data, run->early_notes.len - 1);
    ipw_buf_clear(&run->early_notes);
}

static void on_gap(void *ud, const struct ipw_sampler_gap *gap)
{
    struct ipw_run *run = ud;
    char data[200];
    int n = snprintf(data, sizeof data,
                     "{\"from_ns\":%lld,\"slow_read\":%s,\"source\":%zu,\"to_ns\":%lld}",
                     (long long)gap->from_ns, gap->slow_read ? "true" : "false", gap->source,
                     (long long)gap->to_ns);

    note(run, "sensor_gap", data, (size_t)n);
    ipw_log(IPW_LOG_INFO, "%s: no reading for %.2f s%s", run->sources.sources[gap->source]->name,
            ipw_ns_to_s(gap->to_ns - gap->from_ns),
            gap->slow_read ? " (the driver took so long)" : "");
}

/* For the summary: "gpu0 was lost 15.2 s after the start, and came back after 18.3 s". */
static void tell_loss(struct ipw_run *run, const struct ipw_channel *c,
                      const struct ipw_sampler_loss *loss)
{
    size_t used = strlen(run->loss_note);
    double after_s = ipw_ns_to_s(loss->t_ns - run->start_ns);
    char when[48] = "before the start";

    if (run->start_ns) snprintf(when, sizeof when, "%.1f s after the start", after_s);
    snprintf(run->loss_note + used, sizeof run->loss_note - used, "%s%s was %s %s",
             used ? "; " : "", c->name, loss->back ? "back" : "lost", when);
    if (loss->back)
        ipw_log(IPW_LOG_WARN, "%s is back: it counts anew, what it drew meanwhile is not known",
                c->name);
    else
        ipw_log(IPW_LOG_WARN, "%s is lost: no %s energy is known from here on (%s)", c->name,
                ipw_domain_name(c->domain), ipw_feed_loss_reason(c->domain));
}

static void on_loss(void *ud, const struct ipw_sampler_loss *loss)
{
    struct ipw_run *run = ud;
    const struct ipw_channel *c = &run->sources.channels[loss->channel];
    struct ipw_buf data = IPW_BUF(4 * IPW_KIB);
    struct ipw_jw w;

    if (run->end_ns || !run->feed) return;
    ipw_jw_init(&w, &data);
    ipw_jw_obj(&w);
    ipw_jw_kstr(&w, "channel", c->name);
    ipw_jw_kint(&w, "read_ns", loss->t_ns);
    if (!loss->back) ipw_jw_kstr(&w, "reason", ipw_feed_loss_reason(c->domain));
    ipw_jw_kint(&w, "source", (int64_t)loss->source);
    ipw_jw_obj_end(&w);
    note(run, loss->back ? "sensor_back" : IPW_NOTE_LOST, ipw_buf_str(&data), data.len);
    ipw_buf_release(&data);
    if (!loss->back) ipw_feed_lose(run->feed, c->name);
    if (c->in_sum) tell_loss(run, c, loss);
}

static void watch_clocks(struct ipw_run *run)
{
    int64_t now = ipw_now_ns();
    struct ipw_clock_moves moves;
    struct ipw_anchor anchor;
    char data[200];

    if (now < run->clocks_due_ns || !ipw_clockwatch_take(&anchor)) return;
    run->clocks_due_ns = now + IPW_NS_PER_S;
    if (!ipw_clockwatch_look(&run->clocks, &anchor, &moves)) return;
    if (moves.step_ns) {
        int n =
            snprintf(data, sizeof data, "{\"from_ns\":%lld,\"step_ns\":%lld,\"to_ns\":%lld}",
                     (long long)moves.from_ns, (long long)moves.step_ns, (long long)moves.to_ns);
        note(run, "clock_step", data, (size_t)n);
    }
    if (moves.suspend_ns) {
        int n =
            snprintf(data, sizeof data, "{\"from_ns\":%lld,\"slept_ns\":%lld,\"to_ns\":%lld}",
                     (long long)moves.from_ns, (long long)moves.suspend_ns, (long long)moves.to_ns);
        note(run, "suspend", data, (size_t)n);
    }
}

/* ---- opening ---- */

static int open_set(struct ipw_run *run, struct ipw_err *err)
{
    struct ipw_source_options so = {.telemetry = (const char *const *)run->o->telemetry.items,
                                    .gpu = run->o->gpu};
    int rc = ipw_source_set_open_with(&run->sources, &so, err);

    for (size_t i = 0; rc == 0 && i < run->sources.n_verdicts; i++) {
        const struct ipw_source_verdict *v = &run->sources.verdicts[i];
        if (v->named && v->code < 0)
            rc = ipw_fail(err, v->code, "--telemetry %s: %s", v->name, v->text);
    }
    return rc;
}

/* Domains that a kind of source would have filled. */
static bool kind_fills(const char *kind, enum ipw_domain d)
{
    if (!strcmp(kind, "rapl") || !strcmp(kind, "perf"))
        return d == IPW_DOMAIN_CPU || d == IPW_DOMAIN_DRAM;
    if (!strcmp(kind, "nvml") || !strcmp(kind, "amdgpu") || !strcmp(kind, "intel_gpu"))
        return d == IPW_DOMAIN_GPU;
    return d == IPW_DOMAIN_MACHINE;
}

static void give_reasons(struct ipw_run *run)
{
    const struct ipw_source_set *set = &run->sources;
    bool none = ipw_source_select_none((const char *const *)run->o->telemetry.items);

    if (none) {
        for (int d = 0; d < IPW_DOMAIN_COUNT; d++)
            ipw_ledger_set_reason(run->ledger, (enum ipw_domain)d, "switched_off");
        snprintf(run->energy_note, sizeof run->energy_note,
                 "sensors are switched off (--telemetry none)");
    }
    for (size_t i = 0; i < set->n_verdicts; i++) {
        const struct ipw_source_verdict *v = &set->verdicts[i];
        size_t used = strlen(run->energy_note);
        bool missed = false;

        if (v->code == IPW_OK || v->code == IPW_EEXISTS) continue;
        if (v->code == IPW_EUNSUPPORTED && strcmp(v->name, "rapl") && strcmp(v->name, "nvml"))
            continue; /* that a machine has no Jetson's rails is no news */
        for (int d = 0; d < IPW_DOMAIN_COUNT; d++) {
            if (set->basis[d][0] || !kind_fills(v->name, (enum ipw_domain)d)) continue;
            missed |= d != IPW_DOMAIN_MACHINE || set->n == 0;
            if (v->code == IPW_EPERM)
                ipw_ledger_set_reason(run->ledger, (enum ipw_domain)d, "permission");
        }
        if (missed)
            snprintf(run->energy_note + used, sizeof run->energy_note - used, "%s%s: %s",
                     used ? "; " : "", v->name, v->text);
    }
}

/* The model is elsewhere: boards of this machine are in no sum, so the basis does not name them. */
static void name_no_local_boards(struct ipw_source_set *set)
{
    char *basis = set->basis[IPW_DOMAIN_GPU], *remote = strstr(basis, "remote: ");

    memmove(basis, remote ? remote : "", strlen(remote ? remote : "") + 1);
}

int ipw_sensors_open(struct ipw_run *run, struct ipw_err *err)
{
    struct ipw_sampler_options so = {.interval_ns = run->o->sample_interval_ns,
                                     .adapt = run->o->adapt,
                                     .retake = true,
                                     .notify = on_sample,
                                     .gap = on_gap,
                                     .loss = on_loss,
                                     .ud = run};
    int rc = open_set(run, err);

    if (!rc && (run->sources.n || run->o->require_quiet)) rc = ipw_before_check(run, err);
    if (rc) return rc;
    run->ledger_facts = IPW_LEDGER_FACTS_NONE;
    rc = ipw_share_parse(&run->ledger_facts.share, run->o->share, err);
    if (!rc) rc = ipw_run_where(&run->ledger_facts.lm_remote, run, err);
    if (rc) return rc;
    run->ledger =
        ipw_ledger_facts_open(&run->ledger_facts, run->sources.channels, run->sources.n_channels);
    run->feed = ipw_feed_new(run->ledger);
    ipw_feed_describe(run->feed, run->sources.channels, run->sources.n_channels,
                      run->ledger_facts.lm_remote);
    give_reasons(run);
    if (run->ledger_facts.lm_remote) name_no_local_boards(&run->sources);
    if (!run->sources.n) return 0;
    run->selftest = ipw_selftest_new(&run->sources);
    run->sampled = ipw_wakeup_start(run->loop, ipw_run_sampled, run);
    return ipw_sampler_start_with(&run->sampler, &run->sources, &so, err);
}

void ipw_sensors_wait(struct ipw_run *run)
{
    int64_t begin_ns = ipw_now_ns(), give_up_ns = begin_ns + 3 * IPW_NS_PER_S;

    if (!run->sampler) return;
    ipw_rundir_power_header(run->dir, &run->sources, run->o->sample_interval_ns);
    ipw_sampler_kick(run->sampler);
    while (ipw_ledger_covered_ns(run->ledger) < begin_ns && ipw_now_ns() < give_up_ns) {
        ipw_timer_start(run->loop, IPW_NS_PER_MS, stop_loop, run->loop);
        ipw_loop_run(run->loop);
        ipw_run_sampled(run);
    }
}

void ipw_sensors_row(struct ipw_run *run, const struct ipw_sampler_row *row)
{
    if (run->selftest && ipw_selftest_span_ns(run->selftest) < IPW_SELFTEST_NS)
        ipw_selftest_row(run->selftest, row);
    watch_clocks(run);
}

void ipw_sensors_mark(struct ipw_run *run, const struct ipw_event *event)
{
    switch (event->kind) {
    case IPW_EV_LM_START:
    case IPW_EV_LM_END:
    case IPW_EV_TOOL_START:
    case IPW_EV_TOOL_END:
    case IPW_EV_SPAN_START:
    case IPW_EV_SPAN_END: ipw_sampler_mark(run->sampler); break;
    default: break;
    }
}

void ipw_sensors_mark_now(struct ipw_run *run) { ipw_sampler_mark(run->sampler); }

double ipw_sensors_own_joules(const struct ipw_run *run, double cpu_s)
{
    struct ipw_figure f = ipw_ledger_total(run->ledger, IPW_DOMAIN_CPU, run->start_ns, run->end_ns);
    double all_s = ipw_ns_to_s(run->end_ns - run->start_ns) * (double)sysconf(_SC_NPROCESSORS_ONLN);

    return f.known && all_s > 0 ? f.j * cpu_s / all_s : NAN;
}

void ipw_sensors_close(struct ipw_run *run)
{
    ipw_sampler_free(run->sampler);
    ipw_wakeup_cancel(run->sampled);
    ipw_selftest_free(run->selftest);
    ipw_source_set_close(&run->sources);
    ipw_buf_release(&run->early_notes);
    ipw_feed_free(run->feed);
    ipw_ledger_free(run->ledger);
}
