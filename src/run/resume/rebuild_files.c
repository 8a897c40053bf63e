#include "run/resume/rebuild_files.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "json/document.h"
#include "json/jsonl.h"
#include "report/summary.h"
#include "run/resume/sessions.h"
#include "trace/rundir.h"

#define FILE_MAX_BYTES (256 * IPW_MIB)

void ipw_rebuild_say(const struct ipw_rebuild *m, const char *fmt, ...)
{
    char line[2048];
    va_list ap;

    if (!m->say) return;
    va_start(ap, fmt);
    vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    m->say(m->ud, line);
}

int ipw_rebuild_write_manifest(const char *run, const struct ipw_json *manifest,
                               const char *sessions, struct ipw_err *err)
{
    char *path = ipw_asprintf("%s/manifest.json", run);
    char *patch = ipw_asprintf("{\"segments\":%s}", sessions);
    struct ipw_buf out = IPW_BUF(FILE_MAX_BYTES);
    int rc;

    ipw_json_patch(&out, manifest, patch);
    ipw_buf_addc(&out, '\n');
    rc = ipw_file_write_atomic(path, ipw_buf_str(&out), out.len, err);
    ipw_buf_release(&out);
    free(patch);
    free(path);
    return rc;
}

int ipw_rebuild_set_summary_aside(const char *run, struct ipw_err *err)
{
    char *from = ipw_asprintf("%s/summary.json", run), *to = ipw_asprintf("%s.damaged", from);
    int rc = TEMP_FAILURE_RETRY(rename(from, to)) < 0
                 ? ipw_fail_errno(err, errno, "%s: rename", from)
                 : ipw_file_sync_folder(from, err);

    free(from);
    free(to);
    return rc;
}

/* ---- manifest.json ---- */

struct starts {      /* the sessions by their run_start */
    char **sessions; /* text of each session's object; NULL: it has no run_start */
    size_t n, cap;
    struct ipw_json *manifest; /* of the last run_start */
};

/* A session without run_start: like the session after it, with an unknown energy and CPU time. */
static void fill_gap(struct starts *s, size_t number, const struct ipw_json *like)
{
    char *patch = ipw_asprintf("{\"segment\":%zu}", number);
    struct ipw_buf text = IPW_BUF(FILE_MAX_BYTES);

    ipw_json_patch(&text, like, patch);
    s->sessions[number] = ipw_buf_take(&text, NULL);
    free(patch);
}

static void take_start(struct starts *s, const struct ipw_json *event)
{
    const struct ipw_json *manifest = ipw_json_get(ipw_json_get(event, "data"), "manifest");
    const struct ipw_json *session = ipw_json_at(ipw_json_get(manifest, "segments"), 0);
    int64_t number = ipw_json_int(ipw_json_get(event, "segment"), -1);
    char *text;

    if (!session || number < (int64_t)s->n || number > 1000000) return;
    IPW_GROW(s->sessions, s->cap, (size_t)number + 1);
    while (s->n < (size_t)number) fill_gap(s, s->n++, session);
    s->sessions[s->n++] = ipw_json_text(session);
    ipw_json_free(s->manifest);
    text = ipw_json_text(manifest);
    if (ipw_json_parse(&s->manifest, text, strlen(text), NULL, NULL)) s->manifest = NULL;
    free(text);
}

static int read_start(void *s, const struct ipw_jsonl_line *line, struct ipw_err *err)
{
    static const char mark[] = "\"event\":\"run_start\"";
    struct ipw_json *doc;
    int rc;

    if (!memmem(line->text, line->n, mark, sizeof mark - 1)) return 0;
    rc = ipw_json_parse(&doc, line->text, line->n, NULL, err);
    if (rc) return rc;
    if (!strcmp(ipw_json_str(ipw_json_get(doc, "event"), ""), "run_start")) take_start(s, doc);
    ipw_json_free(doc);
    return 0;
}

/* Readings of a session whose run_start is lost keep its number, so a later session cannot have
 * it. */
static int read_header(void *ud, const struct ipw_jsonl_line *line, struct ipw_err *err)
{
    struct starts *s = ud;
    struct ipw_json *header = NULL, *like = NULL;
    const char *last = s->sessions[s->n - 1];
    int64_t number;

    (void)err;
    if (line->text[0] != '{') return 0;
    if (ipw_json_parse(&header, line->text, line->n, NULL, NULL)) return 0;
    number = ipw_json_int(ipw_json_get(header, "segment"), 0);
    ipw_json_free(header);
    if (number < (int64_t)s->n || number > 1000000) return 0;
    if (ipw_json_parse(&like, last, strlen(last), NULL, NULL)) return 0;
    IPW_GROW(s->sessions, s->cap, (size_t)number + 1);
    while (s->n <= (size_t)number) fill_gap(s, s->n++, like);
    ipw_json_free(like);
    return 0;
}

int ipw_rebuild_manifest(const struct ipw_rebuild *m, const char *run, struct ipw_err *err)
{
    struct starts s = {0};
    struct ipw_buf sessions = IPW_BUF(FILE_MAX_BYTES);
    char *events = ipw_asprintf("%s/events.jsonl", run),
         *power = ipw_asprintf("%s/power.jsonl", run);
    int rc = ipw_jsonl_each(events, 2 * (size_t)FILE_MAX_BYTES, read_start, &s, err);

    if (!rc && !s.manifest)
        rc = ipw_fail(
            err, IPW_EPARSE,
            "%s/manifest.json: cannot be rebuilt: no run_start in events.jsonl carries it", run);
    if (!rc && access(power, F_OK) == 0)
        rc = ipw_jsonl_each(power, FILE_MAX_BYTES, read_header, &s, err);
    ipw_buf_addc(&sessions, '[');
    for (size_t i = 0; i < s.n; i++) {
        if (i) ipw_buf_addc(&sessions, ',');
        ipw_buf_adds(&sessions, s.sessions[i]);
        free(s.sessions[i]);
    }
    ipw_buf_addc(&sessions, ']');
    if (!rc) rc = ipw_rebuild_write_manifest(run, s.manifest, ipw_buf_str(&sessions), err);
    if (!rc)
        ipw_rebuild_say(
            m,
            "%s/manifest.json: rebuilt from events.jsonl; the CPU time of the program and the "
            "self-test of the sensors are lost",
            run);
    ipw_json_free(s.manifest);
    free(s.sessions);
    ipw_buf_release(&sessions);
    free(events);
    free(power);
    return rc;
}

/* ---- summary.json ---- */

struct summing {
    struct ipw_history h;
    struct ipw_summary summary;
    struct ipw_summary *counted; /* that, or the caller's */
};

static int add_query(void *ud, struct ipw_query_loaded *q, struct ipw_err *err)
{
    struct summing *s = ud;

    (void)err;
    ipw_summary_add(&s->summary, &q->trace, &q->details);
    return 0;
}

static int add_attempt(void *ud, struct ipw_query_loaded *q, struct ipw_err *err)
{
    struct summing *s = ud;

    (void)err;
    ipw_uncounted_add(&s->h.balances.earlier, &q->trace);
    s->h.n_attempts++;
    return 0;
}

static int64_t whole_at(const struct ipw_json *object, const char *key)
{
    return ipw_json_int(ipw_json_get(object, key), 0);
}

/* What the manifest says of the last session. */
static void take_session(struct ipw_summary_run *facts, const struct ipw_json *session)
{
    const struct ipw_json *baseline = ipw_json_get(session, "baseline");
    const struct ipw_json *clock = ipw_json_get(session, "clock");
    const struct ipw_json *ledger = ipw_json_get(session, "ledger");

    facts->energy_note = ipw_json_get_str(session, "energy_note");
    facts->note = ipw_json_get_str(session, "note");
    if (__builtin_add_overflow(whole_at(clock, "wall_ns"), whole_at(session, "end_ns"),
                               &facts->wall_ns) ||
        __builtin_sub_overflow(facts->wall_ns, whole_at(clock, "mono_ns"), &facts->wall_ns))
        facts->wall_ns = 0; /* the manifest was changed by hand */
    facts->baseline_s = ipw_json_num(ipw_json_get(baseline, "seconds"), 0);
    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) {
        const char *domain = ipw_domain_name((enum ipw_domain)d);
        const char *reason = ipw_json_get_str(ipw_json_get(ledger, domain), "reason");

        facts->baseline[d] = (struct ipw_baseline_watts){
            .before_w = ipw_json_num(ipw_json_get(ipw_json_get(baseline, "before_w"), domain), NAN),
            .after_w = ipw_json_num(ipw_json_get(ipw_json_get(baseline, "after_w"), domain), NAN)};
        if (!facts->balance[d].total.known && reason) facts->balance[d].total.reason = reason;
        if (!facts->balance[d].idle.known && reason) facts->balance[d].idle.reason = reason;
    }
}

static int write_summary(struct ipw_buf *out, struct summing *s, struct ipw_err *err)
{
    const struct ipw_json *manifest = s->h.manifest, *config = ipw_json_get(manifest, "config");
    char *config_text = ipw_json_text(config),
         *hardware = ipw_json_text(ipw_json_get(manifest, "hardware"));
    struct ipw_summary_run facts = IPW_SUMMARY_RUN_UNKNOWN;
    const struct ipw_json *last =
        ipw_json_at(ipw_json_get(manifest, "segments"), s->h.n ? s->h.n - 1 : 0);
    int rc;

    ipw_run_balance_close(&s->h.balances);
    facts.agent = ipw_json_get_str(config, "agent");
    facts.model = ipw_json_get_str(config, "model");
    facts.dataset = ipw_json_get_str(config, "dataset");
    facts.config = config_text;
    facts.hardware = hardware;
    facts.planned = whole_at(config, "max_queries") * whole_at(config, "epochs");
    facts.status = ipw_json_get_str(last, "end");
    if (facts.status && !strcmp(facts.status, "complete") &&
        (int64_t)s->counted->queries.n < facts.planned)
        facts.status = "interrupted"; /* some of its lines are lost */
    facts.runner_cpu_s = s->h.runner_cpu_s;
    facts.sampler_cpu_s = s->h.sampler_cpu_s;
    facts.own_joules = s->h.own_joules;
    facts.wall_s = s->h.wall_s;
    facts.sessions = (int64_t)s->h.n;
    facts.attempts = (int64_t)s->h.n_attempts;
    facts.have_balance = true;
    memcpy(facts.balance, s->h.balances.balance, sizeof facts.balance);
    facts.devices = &s->h.balances.devices;
    take_session(&facts, last);
    rc = ipw_summary_write(out, s->counted, &facts, err);
    free(config_text);
    free(hardware);
    return rc;
}

int ipw_rebuild_summary(const char *run, struct ipw_summary *counted, struct ipw_err *err)
{
    struct summing s = {0};
    struct ipw_buf out = IPW_BUF(FILE_MAX_BYTES);
    char *path = ipw_asprintf("%s/summary.json", run);
    int rc = ipw_history_read(&s.h, run, err);

    ipw_summary_init(&s.summary);
    s.counted = counted ? counted : &s.summary;
    if (!rc) rc = ipw_history_each(run, "attempts.jsonl", add_attempt, &s, err);
    if (!rc) rc = ipw_history_warmup(&s.h, run, err);
    if (!rc && !counted) rc = ipw_history_each(run, "traces.jsonl", add_query, &s, err);
    if (!rc) {
        ipw_history_fold(&s.h);
        rc = write_summary(&out, &s, err);
    }
    if (!rc) rc = ipw_file_write_atomic(path, ipw_buf_str(&out), out.len, err);
    ipw_summary_release(&s.summary);
    ipw_history_release(&s.h);
    ipw_buf_release(&out);
    free(path);
    return rc;
}
