#include "run/sensors.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "energy/select.h"
#include "io/http_get.h"
#include "json/write.h"
#include "run/quiet_check.h"

#define STUCK_TOLD_NS (5 * IPW_NS_PER_S) /* nothing has come to stand in by then */

/* A counter that stands still for longer than it should. */
struct ipw_stuck {
    int64_t value;    /* as last read */
    int64_t since_ns; /* 0: it moves */
    bool over, told;  /* its gauge stands in; the user knows */
};

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
    if (!loss->back) ipw_feed_device_lost(run->feed, c->name);
    if (c->in_sum) tell_loss(run, c, loss);
}

/* ---- counters that stand still in mid-run ---- */

/* What stands in for a dead counter: its device's gauge. */
static const char *stand_in(const struct ipw_run *run, size_t source, size_t channel)
{
    size_t first = ipw_source_set_first(&run->sources, source);
    const struct ipw_channel *c = &run->sources.channels[channel];

    for (size_t i = first; i < first + run->sources.sources[source]->n_channels; i++) {
        const struct ipw_channel *g = &run->sources.channels[i];

        if (g->kind == IPW_CHANNEL_GAUGE && g->domain == c->domain && g->device[0] &&
            !strcmp(g->device, c->device))
            return g->name;
    }
    return NULL;
}

static void note_stuck(struct ipw_run *run, size_t source, const char *channel, int64_t from_ns,
                       int64_t to_ns, const char *instead)
{
    struct ipw_buf data = IPW_BUF(4 * IPW_KIB);
    struct ipw_jw w;

    ipw_jw_init(&w, &data);
    ipw_jw_obj(&w);
    ipw_jw_kstr(&w, "channel", channel);
    ipw_jw_kint(&w, "from_ns", from_ns);
    ipw_jw_kint(&w, "source", (int64_t)source);
    ipw_jw_kstr(&w, "stands_in", instead);
    if (to_ns)
        ipw_jw_kint(&w, "to_ns", to_ns);
    else
        ipw_jw_knull(&w, "to_ns");
    ipw_jw_obj_end(&w);
    note(run, IPW_NOTE_STUCK, ipw_buf_str(&data), data.len);
    ipw_buf_release(&data);
}

/* For the summary: "gpu0 stopped 5.0 s after the start: gpu0/power stands in". */
static void tell_stuck(struct ipw_run *run, const struct ipw_channel *c, int64_t from_ns,
                       const char *instead)
{
    size_t used = strlen(run->loss_note);
    char when[48] = "does not move", then[96] = "not believed";

    if (run->start_ns && from_ns > run->start_ns)
        snprintf(when, sizeof when, "stopped %.1f s after the start",
                 ipw_ns_to_s(from_ns - run->start_ns));
    if (instead) snprintf(then, sizeof then, "%s stands in", instead);
    snprintf(run->loss_note + used, sizeof run->loss_note - used, "%s%s %s: %s", used ? "; " : "",
             c->name, when, then);
    ipw_log(IPW_LOG_WARN, "%s %s: %s", c->name, when, then);
}

/* The ledger judges it by the rows (ledger RUN comes to the same by them); here it is only told. */
static void watch_counter(struct ipw_run *run, size_t source, size_t channel, int64_t t_ns,
                          int64_t value)
{
    const struct ipw_channel *c = &run->sources.channels[channel];
    struct ipw_stuck *k = &run->stuck[channel];
    int64_t silence = ipw_ledger_silence_ns(run->ledger, channel);
    int64_t over_ns = ipw_ledger_handed_over_ns(run->ledger, channel);
    bool moved = value != IPW_NO_VALUE && value != k->value;

    if (value != IPW_NO_VALUE) k->value = value;
    if (k->over) return;
    if (over_ns != INT64_MIN) {
        const char *instead = stand_in(run, source, channel);

        if (!k->since_ns) k->since_ns = over_ns;
        note_stuck(run, source, c->name, k->since_ns, 0, instead);
        tell_stuck(run, c, k->since_ns, instead);
        k->over = true;
    } else if (silence > 0 && !k->since_ns) {
        k->since_ns = t_ns - silence;
        note_stuck(run, source, c->name, k->since_ns, 0, NULL);
        ipw_log(IPW_LOG_INFO, "%s has not moved for %.2f s", c->name, ipw_ns_to_s(silence));
    } else if (k->since_ns && moved) {
        note_stuck(run, source, c->name, k->since_ns, t_ns, NULL);
        k->since_ns = 0;
    } else if (k->since_ns && !k->told && t_ns - k->since_ns > STUCK_TOLD_NS) {
        tell_stuck(run, c, k->since_ns, NULL);
        k->told = true;
    }
}

void ipw_sensors_watch(struct ipw_run *run, const struct ipw_sampler_row *row)
{
    if (run->end_ns || !run->stuck) return;
    for (size_t i = 0; i < row->n; i++) {
        const struct ipw_channel *c = &run->sources.channels[row->first_channel + i];

        if (c->in_sum && c->kind == IPW_CHANNEL_COUNTER)
            watch_counter(run, row->source, row->first_channel + i, row->t_ns, row->values[i]);
    }
}

/* The record has what was found before the run (run/quiet_check.h). */
static void start_watching(struct ipw_run *run)
{
    int64_t now = ipw_now_ns();
    size_t at = 0;

    run->stuck = ipw_calloc(run->sources.n_channels + 1, sizeof *run->stuck);
    snprintf(run->loss_note, sizeof run->loss_note, "%s", run->doubts);
    for (size_t i = 0; i < run->sources.n; i++) {
        for (size_t k = 0; k < run->sources.sources[i]->n_channels; k++, at++) {
            const struct ipw_channel *c = &run->sources.channels[at];

            run->stuck[at].told = run->doubted[c->domain] != NULL;
            if (run->sources.rejected[at] && c->kind == IPW_CHANNEL_COUNTER)
                note_stuck(run, i, c->name, now, 0, stand_in(run, i, at));
        }
    }
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
                                    .gpu = run->o->gpu,
                                    .fetch = {ipw_http_get, ipw_http_get_release}};
    int rc = ipw_source_set_open_with(&run->sources, &so, err);

    for (size_t i = 0; rc == 0 && i < run->sources.n_verdicts; i++) {
        const struct ipw_source_verdict *v = &run->sources.verdicts[i];
        if (v->named && v->code < 0)
            rc = ipw_fail(err, v->code, "--telemetry %s: %s", v->name, v->text);
    }
    return rc;
}

/* Where nothing reads the processors, a model says what they may draw: beside a null, in no total. */
static void add_estimate(struct ipw_run *run)
{
    const char *const *telemetry = (const char *const *)run->o->telemetry.items;
    struct ipw_source_options so = {.telemetry = telemetry};

    if (run->o->no_estimate || run->ledger_facts.lm_remote || ipw_source_select_none(telemetry))
        return;
    if (ipw_source_set_estimate(&run->sources, &so, run->doubted))
        run->model_source = run->sources.sources[run->sources.n - 1];
}

static void undo_means(struct ipw_run *run)
{
    for (size_t i = 0; run->o->undo_mean && i < run->sources.n_channels; i++) {
        struct ipw_channel *c = &run->sources.channels[i];

        c->undo_window =
            c->kind == IPW_CHANNEL_GAUGE && c->period_ns > 0 && c->window_ns >= 2 * c->period_ns;
    }
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

static void add_why(struct ipw_run *run, const char *who, const char *text)
{
    size_t used = strlen(run->energy_note);

    snprintf(run->energy_note + used, sizeof run->energy_note - used, "%s%s: %s", used ? "; " : "",
             who, text);
}

/* A source that is there and lacks a part of a domain knows best why that has no sum. */
static void give_sources_reasons(struct ipw_run *run)
{
    const struct ipw_source_set *set = &run->sources;

    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) {
        for (size_t i = 0; i < set->n && !set->basis[d][0]; i++) {
            const struct ipw_source_missing *missing = &set->sources[i]->missing[d];

            if (!missing->text[0]) continue;
            if (missing->denied)
                ipw_ledger_set_reason(run->ledger, (enum ipw_domain)d, "permission");
            add_why(run, ipw_domain_name((enum ipw_domain)d), missing->text);
            break;
        }
    }
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
    give_sources_reasons(run);
    for (size_t i = 0; i < set->n_verdicts; i++) {
        const struct ipw_source_verdict *v = &set->verdicts[i];
        bool missed = false;

        if (v->code == IPW_OK || v->code == IPW_EEXISTS) continue;
        if (v->code == IPW_EUNSUPPORTED) continue; /* it is not in this machine: no news */
        for (int d = 0; d < IPW_DOMAIN_COUNT; d++) {
            if (set->basis[d][0] || !kind_fills(v->name, (enum ipw_domain)d)) continue;
            missed |= d != IPW_DOMAIN_MACHINE || set->n == (run->model_source != NULL);
            if (v->code == IPW_EPERM)
                ipw_ledger_set_reason(run->ledger, (enum ipw_domain)d, "permission");
        }
        if (missed) add_why(run, v->name, v->text);
    }
}

/* Names the model, wherever the reasons for what is missing are told. */
static void name_model(struct ipw_run *run)
{
    size_t used = strlen(run->energy_note);

    if (!run->model_source) return;
    snprintf(run->energy_note + used, sizeof run->energy_note - used,
             "%s( ) estimated, in no total: %s (--no-estimate turns it off)", used ? "; " : "",
             run->model_source->channels[0].device);
}

/* The model is elsewhere: where its machine is read this machine's channels are in no sum, nor are
 * its boards ever, so the basis does not name them. */
static void name_no_local_channels(struct ipw_source_set *set)
{
    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) {
        char *basis = set->basis[d], *remote = strstr(basis, "remote: ");

        if (remote) {
            memmove(basis, remote, strlen(remote) + 1);
        } else if (d == IPW_DOMAIN_GPU) {
            basis[0] = '\0';
        }
    }
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
    run->ledger_facts = IPW_LEDGER_RULES_NONE;
    rc = ipw_run_share(&run->ledger_facts.share, run, err);
    if (!rc) rc = ipw_run_where(&run->ledger_facts.lm_remote, run, err);
    if (rc) return rc;
    add_estimate(run);
    undo_means(run);
    run->ledger =
        ipw_ledger_rules_open(&run->ledger_facts, run->sources.channels, run->sources.n_channels);
    run->feed = ipw_feed_new(run->ledger);
    ipw_feed_describe(run->feed, run->sources.channels, run->sources.n_channels,
                      run->ledger_facts.lm_remote);
    give_reasons(run);
    name_model(run);
    if (run->ledger_facts.lm_remote) name_no_local_channels(&run->sources);
    if (!run->sources.n) return 0;
    run->selftest = ipw_selftest_new(&run->sources);
    start_watching(run);
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
    struct ipw_ledger_question q = {IPW_LEDGER_ANY, IPW_DOMAIN_CPU, IPW_LEDGER_ALL,
                                    run->start_ns,  run->end_ns,    IPW_LEDGER_TOTAL};
    struct ipw_figure f = ipw_ledger_figure(run->ledger, q);
    double all_s = ipw_ns_to_s(run->end_ns - run->start_ns) * (double)sysconf(_SC_NPROCESSORS_ONLN);

    return f.known && all_s > 0 ? f.j * cpu_s / all_s : NAN;
}

void ipw_sensors_close(struct ipw_run *run)
{
    ipw_sampler_free(run->sampler);
    ipw_wakeup_cancel(run->sampled);
    ipw_selftest_free(run->selftest);
    free(run->stuck);
    ipw_source_set_close(&run->sources);
    ipw_buf_release(&run->early_notes);
    ipw_feed_free(run->feed);
    ipw_ledger_free(run->ledger);
}
