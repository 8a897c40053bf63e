/* What a run leaves behind: the manifest at its start, the summary and the table at its end. */
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/secret.h"
#include "base/terminal.h"
#include "energy/hardware.h"
#include "json/write.h"
#include "report/table.h"
#include "run/run.h"
#include "run/sensors.h"

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

int ipw_run_finish(struct ipw_run *run, struct ipw_err *err)
{
    struct ipw_summary_run facts = IPW_SUMMARY_RUN_UNKNOWN;
    struct ipw_buf out = IPW_BUF(MAX_BYTES), config = IPW_BUF(MAX_BYTES),
                   hardware = IPW_BUF(MAX_BYTES);
    struct ipw_device_books devices = {0}, all_devices = {0}; /* of this session, of all */
    char note[1024] = "", end_note[512] = ""; /* end: what was not said at the start */
    char quiet_note[1024];                    /* without the data set's remarks */
    const char *dataset_note = ipw_dataset_note(run->cases);
    int64_t sampler_ns = run->sampler ? ipw_sampler_cpu_ns(run->sampler) : 0;
    struct ipw_balance books[IPW_DOMAIN_COUNT]; /* of this session */
    struct ipw_jw w;
    int rc;

    ipw_jw_init(&w, &config);
    ipw_run_write_config(&w, run);
    ipw_hardware_json(&hardware, &run->sources, run->selftest);
    if (run->demo)
        snprintf(note, sizeof note, "answered by the demo model that comes with ipw-agent%s%s%s",
                 run->demo_why ? " (" : "", run->demo_why ? run->demo_why : "",
                 run->demo_why ? ")" : "");
    snprintf(quiet_note, sizeof quiet_note, "%s", note);
    if (dataset_note) add_note(note, sizeof note, "%s", dataset_note);
    facts.agent = run->agent.name;
    facts.model = run->demo ? "demo" : run->model;
    facts.dataset = ipw_dataset_name(run->cases);
    facts.status = run->interrupted || run->server_lost || run->err.code ? "interrupted"
                   : run->limits.reached                                 ? "limit"
                                                                         : "complete";
    if (run->limits.reached) add_note(end_note, sizeof end_note, "ended by %s", run->limits.why);
    if (run->server_lost) add_note(end_note, sizeof end_note, "%s", run->lost_note);
    if (run->loss_note[0]) add_note(end_note, sizeof end_note, "%s", run->loss_note);
    if (end_note[0]) {
        add_note(note, sizeof note, "%s", end_note);
        add_note(quiet_note, sizeof quiet_note, "%s", end_note);
    }
    facts.path = ipw_rundir_path(run->dir);
    facts.config = ipw_buf_str(&config);
    facts.hardware = ipw_buf_str(&hardware);
    facts.energy_note = run->energy_note[0] ? run->energy_note : NULL;
    facts.note = note[0] ? note : NULL;
    facts.wall_ns = ipw_anchor_wall_ns(&run->anchor, ipw_now_ns());
    run->own.runner_cpu_s = ipw_ns_to_s(ipw_cpu_self_ns() - run->cpu_start_ns - sampler_ns);
    run->own.sampler_cpu_s = ipw_ns_to_s(sampler_ns);
    run->own.joules = ipw_sensors_own_joules(run, run->own.runner_cpu_s + run->own.sampler_cpu_s);
    facts.runner_cpu_s = run->own.runner_cpu_s + run->history.runner_cpu_s;
    facts.sampler_cpu_s = run->own.sampler_cpu_s + run->history.sampler_cpu_s;
    facts.own_joules = run->own.joules + run->history.own_joules;
    facts.wall_s = ipw_ns_to_s(run->end_ns - run->start_ns) + run->history.wall_s;
    facts.cut_s = run->history.cut_s;
    facts.sessions = run->segment + 1;
    facts.attempts = (int64_t)run->history.n_attempts;
    facts.planned = (int64_t)ipw_run_planned(run) - run->o->warmup;
    facts.have_balance = true;
    ipw_balance_fill(facts.balance, run->ledger, run->start_ns, run->end_ns);
    ipw_device_books_fill(&devices, run->ledger, run->start_ns, run->end_ns);
    ipw_device_books_add(&all_devices, &devices);
    ipw_device_books_apart(&all_devices, &run->warmup_devices, NULL);
    facts.devices = &all_devices;
    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) {
        facts.balance[d].warmup_j = run->o->warmup ? run->warmup_j[d].total : 0;
        facts.baseline[d] = run->baseline[d];
        if (run->ledger_facts.share == IPW_SHARE_PHASE)
            facts.equal_part[d] = ipw_ledger_unfitted(run->ledger, (enum ipw_domain)d);
    }
    memcpy(books, facts.balance, sizeof books);
    ipw_history_add(&run->history, facts.balance, &all_devices);
    facts.baseline_s = ipw_ns_to_s(run->o->baseline_ns);
    rc = ipw_summary_write(&out, &run->summary, &facts, err);
    if (!rc) rc = ipw_rundir_write_summary(run->dir, out.data, out.len, err);
    /* Again, with this session's end, and what the self-test found. */
    run->summary_note = facts.note;
    if (!rc) rc = ipw_run_write_manifest(run, facts.status, books, &devices, err);
    run->summary_note = NULL;
    if (!run->o->json) {
        struct ipw_table_options options = {.width = ipw_terminal_width(STDOUT_FILENO),
                                            .colour = ipw_use_colour(STDOUT_FILENO),
                                            .max_rows = IPW_SUMMARY_SHOWN};
        /* What was said at the start is not said again; --quiet wants no remarks, but who answered
         * has to be seen. */
        facts.note = run->o->quiet ? quiet_note : end_note[0] ? end_note : NULL;
        ipw_buf_clear(&out);
        ipw_table_write(&out, &run->summary, &facts, &options);
        if (!rc) rc = ipw_summary_check(&run->summary, err);
    }
    if (!run->summary.place.error) { /* else the figures are not right */
        ipw_secret_clean(&out, 0);
        fwrite(ipw_buf_str(&out), 1, out.len, stdout);
    }
    if ((fflush(stdout) || ferror(stdout)) && !rc)
        rc = ipw_fail_errno(err, errno, "standard output: the result could not be written");
    ipw_device_books_release(&devices);
    ipw_device_books_release(&all_devices);
    ipw_device_sums_release(&run->warmup_devices);
    ipw_buf_release(&out);
    ipw_buf_release(&config);
    ipw_buf_release(&hardware);
    return rc;
}
