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
#include "run/sensors_priv.h"
#include "script/lua_text.h"

static void stop_loop(void *loop) { ipw_loop_stop(loop); }

static void on_sample(void *ud) { ipw_wakeup_send(((struct ipw_sensors *)ud)->sampled); }

static void on_rows(void *ud)
{
    const struct ipw_sensors *s = ud;

    s->rows(s->ud);
}

void ipw_sensors_selection(struct ipw_buf *out, const struct ipw_sensor_options *o)
{
    for (size_t i = 0; i < o->telemetry.n; i++)
        ipw_buf_addf(out, "%s%s", i ? "," : "", o->telemetry.items[i]);
    if (!o->telemetry.n) ipw_buf_adds(out, "auto");
}

/* ---- opening ---- */

static int open_set(struct ipw_sensors *s, struct ipw_err *err)
{
    struct ipw_source_options so = {
        .telemetry = (const char *const *)s->o->telemetry.items,
        .gpu = s->o->gpu,
        .fetch = {ipw_http_get, ipw_http_get_release},
        .link = {ipw_http_stream_open, ipw_http_stream_read, ipw_http_stream_close}};
    int rc = ipw_source_set_open_with(&s->sources, &so, err);

    for (size_t i = 0; rc == 0 && i < s->sources.n_verdicts; i++) {
        const struct ipw_source_verdict *v = &s->sources.verdicts[i];
        if (v->named && v->code < 0)
            rc = ipw_fail(err, v->code, "--telemetry %s: %s", v->name, v->text);
    }
    return rc;
}

static int make_model(struct ipw_buf *model, const struct ipw_buf *facts, struct ipw_err *err)
{
    return ipw_lua_text(model, "ipw.power_model", facts, &(struct ipw_lua_text_style){0}, err);
}

/* If no sensor reads the processors, a model estimates their energy, in no total. */
static void add_estimate(struct ipw_sensors *s)
{
    const char *const *telemetry = (const char *const *)s->o->telemetry.items;
    struct ipw_source_options so = {.telemetry = telemetry, .estimate = make_model};

    if (s->o->no_estimate || s->rules.lm_remote || ipw_source_select_none(telemetry)) return;
    if (ipw_source_set_estimate(&s->sources, &so, s->found.doubted))
        s->model_source = s->sources.sources[s->sources.n - 1];
}

static void add_why(struct ipw_sensors *s, const char *who, const char *text)
{
    size_t used = strlen(s->energy_note);

    snprintf(s->energy_note + used, sizeof s->energy_note - used, "%s%s: %s", used ? "; " : "", who,
             text);
}

/* An existing source that lacks a part of a domain has the best reason for the missing sum. */
static void give_sources_reasons(struct ipw_sensors *s)
{
    const struct ipw_source_set *set = &s->sources;

    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) {
        for (size_t i = 0; i < set->n && !set->basis[d][0]; i++) {
            const struct ipw_source_missing *missing = &set->sources[i]->missing[d];

            if (!missing->text[0]) continue;
            if (missing->denied) ipw_ledger_set_reason(s->ledger, (enum ipw_domain)d, "permission");
            add_why(s, ipw_domain_name((enum ipw_domain)d), missing->text);
            break;
        }
    }
}

static void give_reasons(struct ipw_sensors *s)
{
    const struct ipw_source_set *set = &s->sources;
    bool none = ipw_sensors_off(s);

    if (none) {
        for (int d = 0; d < IPW_DOMAIN_COUNT; d++)
            ipw_ledger_set_reason(s->ledger, (enum ipw_domain)d, "switched_off");
        snprintf(s->energy_note, sizeof s->energy_note,
                 "sensors are switched off (--telemetry none)");
    }
    give_sources_reasons(s);
    for (size_t i = 0; i < set->n_verdicts; i++) {
        const struct ipw_source_verdict *v = &set->verdicts[i];
        char words[IPW_VERDICT_BYTES];
        bool missed = false;

        if (v->code == IPW_OK || v->code == IPW_EEXISTS) continue;
        if (v->code == IPW_EUNSUPPORTED) continue; /* not in this machine, as expected */
        for (int d = 0; d < IPW_DOMAIN_COUNT; d++) {
            if (set->basis[d][0] || !(v->domains >> d & 1)) continue;
            missed |= d != IPW_DOMAIN_MACHINE || set->n == (s->model_source != NULL);
            if (v->code == IPW_EPERM)
                ipw_ledger_set_reason(s->ledger, (enum ipw_domain)d, "permission");
        }
        if (missed) add_why(s, v->name, ipw_source_verdict_words(v, words));
    }
}

/* Names the model, wherever the reasons for missing sensors are printed. */
static void name_model(struct ipw_sensors *s)
{
    size_t used = strlen(s->energy_note);

    if (!s->model_source) return;
    snprintf(s->energy_note + used, sizeof s->energy_note - used,
             "%s( ) estimated, in no total: %s (--no-estimate turns it off)", used ? "; " : "",
             s->model_source->channels[0].device);
}

/* The model is on another machine.  If that machine's sensors are read, this machine's channels are
 * in no sum, and its GPUs never are, so the basis does not name them. */
static void name_no_local_channels(struct ipw_source_set *set)
{
    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) {
        char *basis = set->basis[d], *remote = basis + set->basis_remote[d];

        if (*remote)
            memmove(basis, remote, strlen(remote) + 1);
        else if (d == IPW_DOMAIN_GPU)
            basis[0] = '\0';
    }
}

int ipw_sensors_init(struct ipw_sensors *s, const struct ipw_sensor_options *o, const char *begun,
                     struct ipw_err *err)
{
    bool remote = !strcmp(o->energy, "remote");

    s->o = o;
    s->early_notes = IPW_BUF(16 * IPW_MIB);
    s->rules = IPW_LEDGER_RULES_NONE;
    s->rules.lm_remote = remote;
    s->interval_ns = o->sample_interval_ns ? o->sample_interval_ns : 50 * IPW_NS_PER_MS;
    if (s->interval_ns < IPW_NS_PER_MS) s->interval_ns = IPW_NS_PER_MS;
    if (ipw_share_parse(&s->rules.share, o->share ? o->share : begun, err)) return err->code;
    if (remote || !strcmp(o->energy, "auto") || !strcmp(o->energy, "local")) return 0;
    return ipw_fail(err, IPW_EINVAL, "--model-host %.40s: expected auto, local or remote",
                    o->energy);
}

int ipw_sensors_open(struct ipw_sensors *s, const char *const *servers, bool elsewhere,
                     const char *sub_elsewhere, struct ipw_err *err)
{
    struct ipw_sampler_options so = {.interval_ns = s->interval_ns,
                                     .adapt = s->o->sample_interval_ns == 0,
                                     .retake = true,
                                     .notify = on_sample,
                                     .gap = ipw_sensors_gap,
                                     .loss = ipw_sensors_loss,
                                     .ud = s};
    int rc = open_set(s, err);

    if (!rc && (s->sources.n || s->o->require_quiet))
        rc = ipw_start_check(&s->found, &s->sources, servers, s->o->require_quiet, err);
    if (rc) return rc;
    if (!strcmp(s->o->energy, "auto")) s->rules.lm_remote = elsewhere;
    snprintf(s->rules.sub_remote, sizeof s->rules.sub_remote, "%s",
             sub_elsewhere ? sub_elsewhere : "");
    add_estimate(s);
    s->ledger = ipw_ledger_rules_open(&s->rules, s->sources.channels, s->sources.n_channels);
    s->feed = ipw_feed_new(s->ledger);
    ipw_feed_describe(s->feed, s->sources.channels, s->sources.n_channels, &s->rules);
    give_reasons(s);
    name_model(s);
    if (s->rules.lm_remote) name_no_local_channels(&s->sources);
    if (!s->sources.n) return 0;
    s->trust = ipw_trust_new(s->sources.channels, s->sources.n_channels);
    ipw_sensors_watch_start(s, s->found.trust);
    s->sampled = ipw_wakeup_start(s->loop, on_rows, s);
    return ipw_sampler_start(&s->sampler, &s->sources, &so, err);
}

bool ipw_sensors_doubted(const struct ipw_sensors *s) { return s->doubted; }

bool ipw_sensors_off(const struct ipw_sensors *s)
{
    return ipw_source_select_none((const char *const *)s->o->telemetry.items);
}

bool ipw_sensors_none(const struct ipw_sensors *s)
{
    for (size_t i = 0; i < s->sources.n_channels; i++)
        if (s->sources.channels[i].kind < IPW_CHANNEL_METRIC) return false;
    return true;
}

void ipw_sensors_pass(struct ipw_sensors *s, int64_t until_ns)
{
    while (ipw_now_ns() < until_ns) {
        int64_t left_ns = until_ns - ipw_now_ns();

        ipw_timer_start(s->loop, left_ns > 20 * IPW_NS_PER_MS ? 20 * IPW_NS_PER_MS : left_ns + 1,
                        stop_loop, s->loop);
        ipw_loop_run(s->loop);
        s->rows(s->ud);
    }
}

void ipw_sensors_wait(struct ipw_sensors *s, struct ipw_rundir *dir)
{
    int64_t begin_ns = ipw_now_ns(), give_up_ns = begin_ns + 3 * IPW_NS_PER_S;

    s->dir = dir;
    if (!s->sampler) return;
    ipw_rundir_power_header(dir, &s->sources, s->interval_ns);
    ipw_sampler_kick(s->sampler);
    while (ipw_ledger_covered_ns(s->ledger) < begin_ns && ipw_now_ns() < give_up_ns)
        ipw_sensors_pass(s, ipw_now_ns() + IPW_NS_PER_MS);
}

static void take_row(void *ud, const struct ipw_sampler_row *row)
{
    struct ipw_sensors *s = ud;

    ipw_trust_row(s->trust, row);
    ipw_sensors_watch_clocks(s);
    ipw_rundir_power_row(s->dir, row);
    s->n_rows++;
    ipw_feed_row(s->feed, row->first_channel, row->n, row->t_ns, row->values);
    ipw_sensors_watch_row(s, row);
}

void ipw_sensors_drain(struct ipw_sensors *s)
{
    if (s->sampler) ipw_sampler_drain(s->sampler, take_row, s);
}

/* What happened to the links to other machines, for the summary. */
static void note_links(struct ipw_sensors *s)
{
    for (size_t i = 0; i < s->sources.n; i++) {
        size_t used = strlen(s->loss_note);
        char note[IPW_NOTE_BYTES];

        if (!s->sources.sources[i]->next || !*ipw_source_note(s->sources.sources[i], note))
            continue;
        snprintf(s->loss_note + used, sizeof s->loss_note - used, "%s%s: %s", used ? "; " : "",
                 s->sources.sources[i]->name, note);
        ipw_log(IPW_LOG_WARN, "%s: %s", s->sources.sources[i]->name, note);
    }
}

void ipw_sensors_stop(struct ipw_sensors *s)
{
    if (!s->sampler) return;
    ipw_sampler_stop(s->sampler);
    s->rows(s->ud);
    note_links(s);
}

/* One query by itself has a reading at each of its edges.  Where several are in flight, no reading
 * tells them apart, and each costs the client as much as a good part of a turn: a millisecond apart
 * for each of them, and by the schedule's own pace at most. */
static void space_readings(const struct ipw_sensors *s)
{
    int64_t n = (int64_t)ipw_feed_in_flight(s->feed), apart = n > 1 ? n * IPW_NS_PER_MS : 0;

    ipw_sampler_space(s->sampler, apart < s->interval_ns / 4 ? apart : s->interval_ns / 4);
}

void ipw_sensors_mark(struct ipw_sensors *s, const struct ipw_event *event)
{
    if (!s->sampler) return;
    space_readings(s);
    switch (event->kind) {
    case IPW_EV_LM_START:
    case IPW_EV_LM_END:
    case IPW_EV_TOOL_START:
    case IPW_EV_TOOL_END:
    case IPW_EV_SPAN_START:
    case IPW_EV_SPAN_END: ipw_sampler_mark(s->sampler); break;
    default: break;
    }
}

double ipw_sensors_own_joules(const struct ipw_sensors *s, double cpu_s)
{
    const struct ipw_session *session = s->session;
    struct ipw_ledger_question q = {IPW_LEDGER_ANY,    IPW_DOMAIN_CPU,  IPW_LEDGER_ALL,
                                    session->start_ns, session->end_ns, IPW_LEDGER_TOTAL};
    struct ipw_figure f = ipw_ledger_figure(s->ledger, q);
    double all_s = ipw_ns_to_s(s->session->end_ns - s->session->start_ns) *
                   (double)sysconf(_SC_NPROCESSORS_ONLN);

    return f.known && all_s > 0 ? f.j * cpu_s / all_s : NAN;
}

void ipw_sensors_close(struct ipw_sensors *s)
{
    ipw_sampler_free(s->sampler);
    ipw_wakeup_cancel(s->sampled);
    ipw_trust_free(s->trust);
    ipw_trust_free(s->found.trust);
    free(s->stuck);
    ipw_source_set_close(&s->sources);
    ipw_buf_release(&s->early_notes);
    ipw_feed_free(s->feed);
    ipw_ledger_free(s->ledger);
}
