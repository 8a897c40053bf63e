#include "run/finish.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/secret.h"
#include "energy/hardware.h"
#include "json/write.h"
#include "report/summary.h"

enum { MAX_BYTES = 64 * 1024 * 1024 };

static IPW_PRINTF(3, 4) void add_note(char *note, size_t size, const char *fmt, ...)
{
    size_t used = strlen(note);
    va_list ap;

    if (used) used += (size_t)snprintf(note + used, size - used, "; ");
    va_start(ap, fmt);
    if (used < size) vsnprintf(note + used, size - used, fmt, ap);
    va_end(ap);
}

/* The texts that the summary borrows. */
struct texts {
    struct ipw_buf config, hardware;
    char note[1024];  /* of the summary: all remarks */
    char end[512];    /* remarks that were not printed at the start */
    char quiet[1024]; /* the note without the dataset's remarks */
};

static void write_notes(struct texts *t, const struct ipw_finish *f)
{
    const struct ipw_manifest *m = f->manifest;
    const char *why = m->connection->demo_why, *of_dataset = ipw_dataset_note(m->cases);

    if (m->connection->demo)
        add_note(t->quiet, sizeof t->quiet,
                 "answered by the demo model that comes with ipw-agent%s%s%s", why ? " (" : "",
                 why ? why : "", why ? ")" : "");
    if (t->quiet[0]) add_note(t->note, sizeof t->note, "%s", t->quiet);
    if (of_dataset) add_note(t->note, sizeof t->note, "%s", of_dataset);
    if (f->limits->reached) add_note(t->end, sizeof t->end, "ended by %s", f->limits->why);
    if (f->ending->server_lost) add_note(t->end, sizeof t->end, "%s", f->ending->lost_note);
    if (m->sensors->loss_note[0]) add_note(t->end, sizeof t->end, "%s", m->sensors->loss_note);
    if (!t->end[0]) return;
    add_note(t->note, sizeof t->note, "%s", t->end);
    add_note(t->quiet, sizeof t->quiet, "%s", t->end);
}

static void write_texts(struct texts *t, const struct ipw_finish *f)
{
    const struct ipw_sensors *sensors = f->manifest->sensors;
    struct ipw_jw w;

    *t = (struct texts){.config = IPW_BUF(MAX_BYTES), .hardware = IPW_BUF(MAX_BYTES)};
    ipw_jw_init(&w, &t->config);
    ipw_manifest_config(&w, f->manifest);
    ipw_manifest_hardware(&t->hardware, &sensors->sources, sensors->trust);
    write_notes(t, f);
}

static const char *status_of(const struct ipw_finish *f)
{
    if (ipw_ending_begun(f->ending)) return "interrupted";
    return f->limits->reached ? "limit" : "complete";
}

void ipw_run_ended_take(struct ipw_run_ended *out, const struct ipw_manifest *m,
                        int64_t helpers_cpu_ns)
{
    const struct ipw_sensors *sensors = m->sensors;
    const struct ipw_session *session = m->session;
    int64_t sampler_ns = sensors->sampler ? ipw_sampler_cpu_ns(sensors->sampler) : 0;

    out->runner_cpu_s =
        ipw_ns_to_s(ipw_cpu_self_ns() - session->cpu_start_ns - sampler_ns + helpers_cpu_ns);
    out->sampler_cpu_s = ipw_ns_to_s(sampler_ns);
    out->own_joules = ipw_sensors_own_joules(sensors, out->runner_cpu_s + out->sampler_cpu_s);
    ipw_balance_fill(out->balances, sensors->ledger, session->start_ns, session->end_ns);
    ipw_device_list_fill(&out->devices, sensors->ledger, session->start_ns, session->end_ns);
}

void ipw_run_ended_release(struct ipw_run_ended *ended)
{
    ipw_device_list_release(&ended->devices);
}

/* The whole run: this session and the earlier ones. */
static void fill_facts(struct ipw_summary_run *facts, const struct ipw_finish *f,
                       const struct texts *t, const struct ipw_session_end *end)
{
    const struct ipw_manifest *m = f->manifest;
    const struct ipw_session *session = m->session;
    const struct ipw_history *h = m->history;

    facts->agent = m->agent->name;
    facts->model = m->connection->model;
    facts->dataset = ipw_dataset_name(m->cases);
    facts->status = end->end;
    facts->config = ipw_buf_str(&t->config);
    facts->hardware = ipw_buf_str(&t->hardware);
    facts->energy_note = m->sensors->energy_note[0] ? m->sensors->energy_note : NULL;
    facts->note = t->note[0] ? t->note : NULL;
    facts->wall_ns = ipw_anchor_wall_ns(&session->anchor, ipw_now_ns());
    facts->runner_cpu_s = end->runner_cpu_s + h->runner_cpu_s;
    facts->sampler_cpu_s = end->sampler_cpu_s + h->sampler_cpu_s;
    facts->own_joules = end->own_joules + h->own_joules;
    facts->wall_s = ipw_ns_to_s(session->end_ns - session->start_ns) + h->wall_s;
    facts->sessions = session->number + 1;
    facts->attempts = (int64_t)h->n_attempts;
    facts->planned = (int64_t)ipw_plan_counted(f->plan);
    facts->have_balance = true;
    facts->baseline_s = ipw_ns_to_s(m->o->sensors.baseline_ns);
    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) facts->baseline[d] = m->baseline->domain[d];
}

int ipw_finish(const struct ipw_finish *f, struct ipw_err *err)
{
    const struct ipw_manifest *m = f->manifest;
    struct ipw_summary_run facts = IPW_SUMMARY_RUN_UNKNOWN;
    struct ipw_device_list all_devices = {0};      /* of all sessions */
    struct ipw_balance balances[IPW_DOMAIN_COUNT]; /* of this session */
    struct ipw_session_end end = {.end = status_of(f),
                                  .runner_cpu_s = f->ended->runner_cpu_s,
                                  .sampler_cpu_s = f->ended->sampler_cpu_s,
                                  .own_joules = f->ended->own_joules,
                                  .balances = balances,
                                  .devices = &f->ended->devices};
    struct ipw_buf out = IPW_BUF(MAX_BYTES);
    struct texts texts;
    int rc;

    write_texts(&texts, f);
    fill_facts(&facts, f, &texts, &end);
    memcpy(facts.balance, f->ended->balances, sizeof facts.balance);
    ipw_device_list_add(&all_devices, &f->ended->devices);
    ipw_uncounted_put(facts.balance, &all_devices, &f->results->warmup, NULL);
    facts.devices = &all_devices;
    memcpy(balances, facts.balance, sizeof balances);
    ipw_history_add(m->history, facts.balance, &all_devices);
    rc = ipw_summary_write(&out, &f->results->summary, &facts, err);
    if (!rc) rc = ipw_rundir_write_summary(f->dir, out.data, out.len, err);
    /* Writes the manifest again, with this session's end and the self-test. */
    end.note = facts.note;
    if (!rc) rc = ipw_manifest_write(m, f->dir, &end, err);
    /* Remarks that were printed at the start are not repeated.  --quiet prints no remarks, except
     * for the model that answered. */
    if (!rc && !f->silent && !m->o->output.json)
        *f->screen_note = ipw_strdup(m->o->output.quiet ? texts.quiet : texts.end);
    if (!f->silent && m->o->output.json) {
        ipw_secret_clean(&out, 0);
        fwrite(ipw_buf_str(&out), 1, out.len, stdout);
    }
    if ((fflush(stdout) || ferror(stdout)) && !rc)
        rc = ipw_fail_errno(err, errno, "standard output: the result could not be written");
    ipw_device_list_release(&all_devices);
    ipw_buf_release(&out);
    ipw_buf_release(&texts.config);
    ipw_buf_release(&texts.hardware);
    return rc;
}
