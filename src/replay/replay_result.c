/* The results of a replay: traces and summary of the new run, replay.json, and the printed
 * lines. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "audit/ledger_check.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/open.h"
#include "base/text.h"
#include "json/jsonl.h"
#include "json/write.h"
#include "ledger/recompute.h"
#include "replay/replay_job.h"
#include "report/table.h"
#include "report/write_summary.h"
#include "run/progress.h"

enum { MAX_NOTES = 20 };

/* ---- divergences ---- */

static void add_note(struct ipw_replay_job *job, const char *id, int32_t index, int turn,
                     const char *text)
{
    if (job->n_notes == MAX_NOTES) {
        job->n_more_notes++;
        return;
    }
    IPW_GROW(job->notes, job->cap_notes, job->n_notes + 1);
    job->notes[job->n_notes++] = (struct ipw_replay_note){
        .id = ipw_strdup(id), .text = ipw_strdup(text), .index = index, .turn = turn};
}

void ipw_replay_note_add(struct ipw_replay_job *job, const struct ipw_rq *q, const char *text)
{
    add_note(job, q->c.id, q->index, ipw_playback_turns(q->replay), text);
}

void ipw_replay_note_lost(struct ipw_replay_job *job, const struct ipw_record_line *line)
{
    char *text = ipw_asprintf("an event is missing from the record\n    record  line %lld: %s\n"
                              "    now     no query_start comes before it",
                              (long long)line->number, ipw_event_name(line->event.kind));

    add_note(job, "(unknown)", line->event.query, 0, text);
    free(text);
    job->n_diverged++;
    IPW_GROW(job->gone, job->cap_gone, job->n_gone + 1);
    job->gone[job->n_gone++] = line->event.query;
}

/* ---- files ---- */

/* The readings of the replay are the saved ones: copied into a new file. */
static int copy_power(struct ipw_replay_job *job, struct ipw_err *err)
{
    char *from = ipw_asprintf("%s/power.jsonl", job->run);
    char *to = ipw_asprintf("%s/power.jsonl", ipw_rundir_path(job->dir));
    struct ipw_err why = {0};
    int in = ipw_open_read(from, &why), out = -1, rc = 0;
    char block[65536];
    ssize_t n = 1;

    if (in < 0 && why.detail != ENOENT) {
        rc = in;
        if (err) *err = why;
    }
    if (in >= 0) {
        out = ipw_open_write(to, O_WRONLY | O_CREAT | O_EXCL, err);
        if (out < 0) rc = out;
    }
    while (out >= 0 && n > 0 && !rc) {
        ssize_t done = 0;

        n = read(in, block, sizeof block);
        if (n < 0) rc = ipw_fail_errno(err, errno, "%s", from);
        while (n > 0 && done < n && !rc) {
            ssize_t k = write(out, block + done, (size_t)(n - done));

            if (k < 0 && errno != EINTR) rc = ipw_fail_errno(err, errno, "%s", to);
            if (k > 0) done += k;
        }
    }
    if (in >= 0) close(in);
    if (out >= 0 && close(out) && !rc) rc = ipw_fail_errno(err, errno, "%s", to);
    free(from);
    free(to);
    return rc;
}

struct writer {
    struct ipw_replay_job *job;
    struct ipw_check *check;
    struct ipw_recompute redo;
    struct ipw_summary summary;
    struct ipw_jsonl_appender *attempts;
    int64_t n_attempts; /* lines of attempts.jsonl */
    struct ipw_device_books devices;
    struct ipw_device_sums warmup_devices, earlier_devices;
    double warmup_j[IPW_DOMAIN_COUNT], earlier_j[IPW_DOMAIN_COUNT];
};

static const struct ipw_replay_told *told(const struct ipw_replay_job *job, int32_t index,
                                          int segment)
{
    const struct ipw_replay_told *t = job->told;

    while (t && (t->index != index || t->segment != segment)) t = t->next;
    return t;
}

/* Creates attempts.jsonl with its first line. */
static int write_attempt(struct writer *w, const char *line, size_t n, struct ipw_err *err)
{
    char *path = ipw_asprintf("%s/attempts.jsonl", ipw_rundir_path(w->job->dir));
    struct ipw_buf text = IPW_BUF(n + 1);
    int rc = w->attempts ? 0 : ipw_jsonl_append_open(&w->attempts, path, true, err);

    ipw_buf_add(&text, line, n);
    ipw_buf_addc(&text, '\n');
    if (!rc) rc = ipw_jsonl_append(w->attempts, text.data, text.len, err);
    w->n_attempts += !rc;
    ipw_buf_release(&text);
    free(path);
    return rc;
}

static int write_line(struct writer *w, const struct ipw_recompute_query *query,
                      const struct ipw_query_record *record, const struct ipw_anchor *clock,
                      struct ipw_err *err)
{
    struct ipw_buf line = IPW_BUF(IPW_LINE_MAX);
    int rc;

    ipw_schema_write_query(&line, query->trace, record, clock);
    if (line.failed)
        rc = ipw_fail(err, IPW_ELIMIT, "query %s: its trace is too large", query->trace->id);
    else if (query->warmup)
        rc = ipw_rundir_warmup(w->job->dir, line.data, line.len, err);
    else if (record->superseded)
        rc = write_attempt(w, line.data, line.len, err);
    else
        rc = ipw_rundir_trace(w->job->dir, line.data, line.len, err);
    ipw_buf_release(&line);
    if (!rc && !query->warmup && !record->superseded)
        ipw_summary_add(&w->summary, query->trace, record);
    return rc;
}

static void add_known(double *sum, struct ipw_device_sums *devices,
                      const struct ipw_query_trace *trace)
{
    ipw_device_sums_add(devices, trace);
    for (int d = 0; d < IPW_DOMAIN_COUNT; d++)
        sum[d] += trace->energy[d].known ? trace->energy[d].j : (double)NAN;
}

static int write_trace(void *ud, const struct ipw_recompute_query *query, struct ipw_err *err)
{
    struct writer *w = ud;
    struct ipw_replay_job *job = w->job;
    const struct ipw_recompute_segment *segment = w->redo.segments[w->redo.n_segments - 1];
    const struct ipw_anchor *clock =
        segment->rules.clock.wall_ns ? &segment->rules.clock : &job->anchor;
    const struct ipw_replay_told *t = told(job, query->trace->index, query->segment);
    struct ipw_query_record record;
    struct ipw_query_loaded was = {0};
    enum ipw_check_verdict verdict = IPW_CHECK_MISSING;
    int rc = 0;

    if (w->check) rc = ipw_check_query(w->check, segment, query, &verdict, &was, NULL, err);
    if (rc) return rc;
    if ((verdict == IPW_CHECK_MISSING || verdict == IPW_CHECK_UNWRITTEN) && !t)
        return 0; /* the saved run did not get to write it */
    if (t) {
        record = t->record;
        record.cost_usd = ipw_query_trace_cost(query->trace);
        record.segment = query->segment;
    } else {
        record = was.record;
        job->n_traces_differ += verdict == IPW_CHECK_DIFFERS;
    }
    if (query->warmup) add_known(w->warmup_j, &w->warmup_devices, query->trace);
    if (record.superseded) add_known(w->earlier_j, &w->earlier_devices, query->trace);
    rc = write_line(w, query, &record, clock, err);
    ipw_query_loaded_release(&was);
    return rc;
}

static void fill_balance(struct ipw_summary_run *facts, struct writer *w)
{
    facts->have_balance = w->redo.n_segments > 0;
    facts->wall_s = 0;
    for (size_t i = 0; i < w->redo.n_segments; i++) {
        const struct ipw_recompute_segment *s = w->redo.segments[i];

        facts->wall_s += ipw_ns_to_s(s->end_ns - s->start_ns);
        ipw_device_books_add(&w->devices, &s->devices);
        for (int d = 0; d < IPW_DOMAIN_COUNT; d++) {
            if (i == 0)
                facts->balance[d] = s->balance[d];
            else
                ipw_balance_add(&facts->balance[d], &s->balance[d]);
        }
    }
    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) {
        facts->balance[d].warmup_j = w->warmup_j[d];
        facts->balance[d].wasted_j = w->earlier_j[d];
    }
    ipw_device_books_apart(&w->devices, &w->warmup_devices, &w->earlier_devices);
    facts->devices = &w->devices;
}

/* The idle baseline is only in the saved run's summary.  Without a summary (the run was killed)
 * there is no baseline. */
static void take_baseline(struct ipw_summary_run *facts, const struct ipw_replay_job *job)
{
    struct ipw_buf bytes = IPW_BUF(IPW_LINE_MAX);
    char *path = ipw_asprintf("%s/summary.json", job->run);
    const struct ipw_json *baseline, *domains;
    struct ipw_json *doc = NULL;

    if (!job->by_query && !ipw_file_read(&bytes, path, NULL) &&
        !ipw_json_parse(&doc, ipw_buf_str(&bytes), bytes.len, NULL, NULL)) {
        baseline = ipw_json_get(doc, "baseline");
        domains = ipw_json_get(baseline, "domains");
        facts->baseline_s = ipw_json_num(ipw_json_get(baseline, "seconds"), 0);
        for (int d = 0; d < IPW_DOMAIN_COUNT; d++) {
            const struct ipw_json *b = ipw_json_get(domains, ipw_domain_name((enum ipw_domain)d));

            facts->baseline[d] = (struct ipw_baseline_watts){
                .before_w = ipw_json_num(ipw_json_get(b, "before_w"), NAN),
                .after_w = ipw_json_num(ipw_json_get(b, "after_w"), NAN)};
        }
        ipw_json_free(doc);
    }
    ipw_buf_release(&bytes);
    free(path);
}

static int write_summary(struct writer *w, struct ipw_err *err)
{
    struct ipw_replay_job *job = w->job;
    struct ipw_summary_run facts = IPW_SUMMARY_RUN_UNKNOWN;
    struct ipw_buf out = IPW_BUF(IPW_LINE_MAX), config = IPW_BUF(IPW_LINE_MAX),
                   hardware = IPW_BUF(IPW_LINE_MAX);
    struct ipw_anchor now;
    char note[200];
    int rc;

    ipw_anchor_take(&now);
    ipw_json_print(&config, job->config);
    ipw_json_print(&hardware, ipw_json_get(job->manifest, "hardware"));
    snprintf(note, sizeof note, "a replay (%s)%s", job->o->mode,
             job->by_query ? ": nothing was measured"
                           : ": joules and times are those of the record");
    facts.agent = ipw_json_get_str(job->config, "agent");
    facts.model = job->model;
    facts.dataset = ipw_json_get_str(job->config, "dataset");
    facts.status = job->cut || job->stop_signal ? "interrupted" : "complete";
    facts.path = ipw_rundir_path(job->dir);
    facts.config = ipw_buf_str(&config);
    facts.hardware = ipw_buf_str(&hardware);
    facts.note = note;
    facts.wall_ns = now.wall_ns;
    facts.attempts = w->n_attempts;
    fill_balance(&facts, w);
    take_baseline(&facts, job);
    rc = ipw_summary_write(&out, &w->summary, &facts, err);
    if (!rc) rc = ipw_rundir_write_summary(job->dir, ipw_buf_str(&out), out.len, err);
    ipw_buf_release(&out);
    ipw_buf_release(&config);
    ipw_buf_release(&hardware);
    return rc;
}

static bool is_identical(const struct ipw_replay_job *job)
{
    return !job->n_diverged && !job->n_differ && !job->n_missing && !job->n_traces_differ;
}

static void report_json(struct ipw_buf *out, const struct ipw_replay_job *job)
{
    struct ipw_jw w;

    ipw_jw_init(&w, out);
    ipw_jw_obj(&w);
    ipw_jw_kint(&w, "diverged", (int64_t)job->n_diverged);
    ipw_jw_key(&w, "divergences");
    ipw_jw_arr(&w);
    for (size_t i = 0; i < job->n_notes; i++) {
        const struct ipw_replay_note *n = &job->notes[i];

        ipw_jw_obj(&w);
        ipw_jw_kstr(&w, "query_id", n->id);
        ipw_jw_kint(&w, "query_index", n->index);
        ipw_jw_kstr(&w, "text", n->text);
        if (n->turn > 0)
            ipw_jw_kint(&w, "turn", n->turn);
        else
            ipw_jw_knull(&w, "turn");
        ipw_jw_obj_end(&w);
    }
    ipw_jw_arr_end(&w);
    ipw_jw_kint(&w, "divergences_left_out", (int64_t)job->n_more_notes);
    ipw_jw_kbool(&w, "identical", is_identical(job));
    ipw_jw_kstr(&w, "mode", job->o->mode);
    ipw_jw_kstr(&w, "of", job->run);
    ipw_jw_kstr(&w, "path", ipw_rundir_path(job->dir));
    ipw_jw_kint(&w, "queries", (int64_t)job->n_queries);
    ipw_jw_kint(&w, "tool_calls", (int64_t)job->n_tools);
    ipw_jw_key(&w, "tool_results");
    if (job->decisions) {
        ipw_jw_obj(&w);
        ipw_jw_kint(&w, "different", (int64_t)job->n_differ);
        ipw_jw_kint(&w, "missing", (int64_t)job->n_missing);
        ipw_jw_kint(&w, "same", (int64_t)job->n_same);
        ipw_jw_obj_end(&w);
    } else {
        ipw_jw_null(&w);
    }
    ipw_jw_kint(&w, "traces_differ", (int64_t)job->n_traces_differ);
    ipw_jw_kint(&w, "turns", (int64_t)job->n_turns);
    ipw_jw_kint(&w, "unfinished", (int64_t)job->n_unfinished);
    ipw_jw_obj_end(&w);
}

static int write_report(struct ipw_replay_job *job, struct ipw_err *err)
{
    struct ipw_buf out = IPW_BUF(IPW_LINE_MAX);
    char *path = ipw_asprintf("%s/replay.json", ipw_rundir_path(job->dir));
    int rc;

    report_json(&out, job);
    ipw_buf_addc(&out, '\n');
    rc = ipw_file_write_atomic(path, out.data, out.len, err);
    ipw_buf_release(&out);
    free(path);
    return rc;
}

int ipw_replay_finish(struct ipw_replay_job *job, struct ipw_err *err)
{
    struct writer w = {.job = job};
    struct ipw_recompute_options how = {.query = write_trace, .ud = &w};
    int rc = ipw_rundir_flush(job->dir, err);

    ipw_summary_init(&w.summary);
    w.summary.place.folder = ipw_rundir_path(job->dir);
    if (!rc && !job->by_query) rc = copy_power(job, err);
    if (!rc && !job->by_query) rc = ipw_check_open(&w.check, job->run, err);
    if (!rc) rc = ipw_recompute_run(&w.redo, ipw_rundir_path(job->dir), &how, err);
    if (!rc) rc = write_summary(&w, err);
    if (!rc) rc = write_report(job, err);
    if (w.attempts && ipw_jsonl_append_close(w.attempts, rc ? NULL : err) && !rc) rc = err->code;
    ipw_recompute_release(&w.redo);
    ipw_device_books_release(&w.devices);
    ipw_device_sums_release(&w.warmup_devices);
    ipw_device_sums_release(&w.earlier_devices);
    ipw_check_close(w.check);
    ipw_summary_release(&w.summary);
    return rc;
}

/* ---- words ---- */

/* Texts of a saved run are made harmless before they are printed. */
static void print_lines(FILE *to, const char *s)
{
    while (*s) {
        size_t n = strcspn(s, "\n");
        struct ipw_buf clean = IPW_BUF(IPW_MIB);

        ipw_text_printable(&clean, s, n, 4000);
        fprintf(to, "%s\n", ipw_buf_str(&clean));
        ipw_buf_release(&clean);
        s += n + (s[n] == '\n');
    }
}

static void print_note(const struct ipw_replay_note *n)
{
    char turn[40] = "";
    char *all;

    if (n->turn > 0) snprintf(turn, sizeof turn, ", turn %d", n->turn);
    all = ipw_asprintf("query %s (%d)%s: %s", n->id, (int)n->index, turn, n->text);
    print_lines(stderr, all);
    free(all);
}

static const char *s(size_t n) { return n == 1 ? "" : "s"; }

int ipw_replay_print(struct ipw_replay_job *job, struct ipw_err *err)
{
    struct ipw_buf out = IPW_BUF(IPW_LINE_MAX);

    for (size_t i = 0; i < job->n_notes; i++) print_note(&job->notes[i]);
    if (job->n_more_notes) ipw_say("and %zu more (replay.json counts them)", job->n_more_notes);
    if (job->n_traces_differ)
        ipw_say("%zu trace line%s differ%s from the record's: %s", job->n_traces_differ,
                s(job->n_traces_differ), job->n_traces_differ == 1 ? "s" : "",
                /* A query that ran beside a diverged one has another share of the joules. */
                job->n_diverged ? "joules were shared with what diverged"
                                : "its traces.jsonl does not follow from its events and samples");
    if (job->o->json) {
        report_json(&out, job);
    } else {
        ipw_buf_addf(&out, "replayed %zu quer%s, %zu turn%s, %zu tool call%s: ", job->n_queries,
                     job->n_queries == 1 ? "y" : "ies", job->n_turns, s(job->n_turns), job->n_tools,
                     s(job->n_tools));
        if (job->n_diverged)
            ipw_buf_addf(&out, "%zu quer%s diverged%s", job->n_diverged,
                         job->n_diverged == 1 ? "y" : "ies",
                         job->servers ? " and went on against the model" : "");
        else if (job->decisions)
            ipw_buf_addf(&out, "the decisions of the record");
        else
            ipw_buf_addf(&out, "identical to the record");
        if (job->decisions)
            ipw_buf_addf(&out, "; tool results: %zu the same, %zu different, %zu missing",
                         job->n_same, job->n_differ, job->n_missing);
        if (job->n_unfinished)
            ipw_buf_addf(&out, "; %zu the record does not finish", job->n_unfinished);
        ipw_buf_addf(&out, "\n%s", ipw_rundir_path(job->dir));
    }
    ipw_buf_addc(&out, '\n');
    if (fwrite(out.data, 1, out.len, stdout) != out.len || fflush(stdout)) {
        ipw_buf_release(&out);
        return ipw_fail(err, IPW_EIO, "standard output: the result could not be written");
    }
    ipw_buf_release(&out);
    return 0;
}
