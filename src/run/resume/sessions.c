#include "run/resume/sessions.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "json/document.h"
#include "json/jsonl.h"
#include "trace/saved_clock.h"

int ipw_retry_parse(enum ipw_retry *out, const char *name, struct ipw_err *err)
{
    static const char *const names[] = {"none", "cut", "failed", "all"};

    for (int i = 0; i <= IPW_RETRY_ALL; i++) {
        if (strcmp(names[i], name)) continue;
        *out = (enum ipw_retry)i;
        return 0;
    }
    return ipw_fail(err, IPW_EINVAL, "--rerun %.40s: expected none, cut, failed or all", name);
}

/* ---- the manifest ---- */

static struct ipw_figure past_figure(const struct ipw_json *object, const char *key)
{
    const struct ipw_json *bounds = ipw_json_get(ipw_json_get(object, "bounds"), key);
    double j = ipw_json_get_num(object, key);

    /* The manifest does not say how much of an unknown value was measured. */
    return (struct ipw_figure){.known = !isnan(j),
                               .j = isnan(j) ? 0 : j,
                               .lo_j = ipw_json_num(ipw_json_get(bounds, "lo"), 0),
                               .hi_j = ipw_json_num(ipw_json_get(bounds, "hi"), 0),
                               .u_j = ipw_json_num(ipw_json_get(bounds, "u"), 0),
                               .coverage = isnan(j) ? 0 : 1,
                               .reason = isnan(j) ? "earlier_session" : NULL};
}

static struct ipw_balance past_balance(const struct ipw_json *object, double seconds)
{
    return (struct ipw_balance){.total = past_figure(object, "total_j"),
                                .idle = past_figure(object, "idle_j"),
                                .queries = past_figure(object, "queries_j"),
                                .seconds = seconds};
}

static void add_device_balances(struct ipw_device_list *sum, enum ipw_domain d,
                                const struct ipw_json *devices, double seconds)
{
    struct ipw_device_item unnamed = {.domain = d};
    const struct ipw_device_list none = {.all = &unnamed, .n = 1};

    if (!ipw_json_first(devices)) ipw_device_list_add(sum, &none);
    for (const struct ipw_json *x = ipw_json_first(devices); x; x = ipw_json_next(x)) {
        struct ipw_device_item item = {.domain = d, .balance = past_balance(x, seconds)};
        const struct ipw_device_list one = {.all = &item, .n = 1};

        snprintf(item.name, sizeof item.name, "%s", ipw_json_key(x));
        ipw_device_list_add(sum, &one);
    }
}

static void add_balances(struct ipw_history *h, const struct ipw_json *ledger, double seconds)
{
    struct ipw_balance balance[IPW_DOMAIN_COUNT];
    struct ipw_device_list devices = {0};

    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) {
        const struct ipw_json *domain = ipw_json_get(ledger, ipw_domain_name((enum ipw_domain)d));

        balance[d] = past_balance(domain, seconds);
        add_device_balances(&devices, (enum ipw_domain)d, ipw_json_get(domain, "devices"), seconds);
    }
    ipw_run_balance_session(&h->balances, balance, &devices);
    ipw_device_list_release(&devices);
}

/* The energy and times of a session that has ended, from its object in the manifest. */
static void fold(struct ipw_history *h, const struct ipw_json *segment)
{
    const struct ipw_json *own = ipw_json_get(segment, "own");
    int64_t start_ns = ipw_json_int(ipw_json_get(segment, "start_ns"), 0);
    int64_t end_ns = ipw_json_int(ipw_json_get(segment, "end_ns"), 0);

    double seconds = ipw_ns_to_s(end_ns - start_ns);

    if (!start_ns) return; /* killed before it had begun */
    add_balances(h, ipw_json_get(segment, "ledger"), seconds);
    if (ipw_json_is_null(own)) return; /* it was killed */
    h->runner_cpu_s += ipw_json_get_num(own, "runner_cpu_s");
    h->sampler_cpu_s += ipw_json_get_num(own, "sampler_cpu_s");
    h->own_joules += ipw_json_get_num(own, "estimated_joules");
    h->wall_s += seconds;
}

static int add_past(struct ipw_history *h, const struct ipw_json *segment, struct ipw_err *err)
{
    struct ipw_past *p;
    char where[40];
    int64_t k;

    snprintf(where, sizeof where, "segments[%zu]", h->n);
    if (ipw_json_need_int(&k, segment, "segment", where, err)) return err->code;
    if (k != (int64_t)h->n)
        return ipw_fail(err, IPW_EPARSE, "%s.segment: %lld is out of order", where, (long long)k);
    IPW_GROW(h->past, h->cap, h->n + 1);
    p = &h->past[h->n++];
    *p = (struct ipw_past){.number = (int)k,
                           .killed = !strcmp(ipw_json_str(ipw_json_get(segment, "end"), "killed"),
                                             "killed")}; /* null: its energy was not computed */
    p->anchor = ipw_saved_clock_read(ipw_json_get(segment, "clock"));
    p->text = ipw_json_text(segment);
    return 0;
}

int ipw_history_read(struct ipw_history *h, const char *run, struct ipw_err *err)
{
    const struct ipw_json *segments;
    int rc = ipw_json_read(&h->manifest, run, "manifest.json", err);

    if (rc) return rc;
    h->command = ipw_json_text(ipw_json_get(h->manifest, "command"));
    rc = ipw_json_need_arr(&segments, h->manifest, "segments", "", err);
    for (const struct ipw_json *s = rc ? NULL : ipw_json_first(segments); s && !rc;
         s = ipw_json_next(s)) {
        rc = add_past(h, s, err);
    }
    return rc ? ipw_err_prefix(err, "%s/manifest.json", run) : 0;
}

void ipw_history_release(struct ipw_history *h)
{
    for (size_t i = 0; i < h->n; i++) free(h->past[i].text);
    free(h->past);
    ipw_run_balance_release(&h->balances);
    ipw_json_free(h->manifest);
    free(h->command);
    *h = (struct ipw_history){0};
}

static bool is_complete(const struct ipw_history *h)
{
    const struct ipw_json *last = ipw_json_at(ipw_json_get(h->manifest, "segments"), h->n - 1);

    return h->n && !strcmp(ipw_json_str(ipw_json_get(last, "end"), ""), "complete");
}

static int count_line(void *n, const struct ipw_jsonl_line *line, struct ipw_err *err)
{
    (void)line, (void)err;
    ++*(size_t *)n;
    return 0;
}

/* Lines of RUN/NAME; a file that is not there has none. */
static size_t count_lines(const char *run, const char *name)
{
    size_t n = 0;
    char *path = ipw_asprintf("%s/%s", run, name);

    ipw_jsonl_each(path, IPW_LINE_MAX, count_line, &n, NULL);
    free(path);
    return n;
}

bool ipw_history_complete(const struct ipw_history *h, const char *run, enum ipw_retry retry,
                          size_t planned)
{
    if (retry > IPW_RETRY_CUT || !is_complete(h)) return false;
    return count_lines(run, "traces.jsonl") >= planned;
}

/* ---- was anything changed since its end? ---- */

/* A tie counts as newer: the clock of a file system has steps of milliseconds. */
static bool is_newer(const char *run, const char *name, const struct stat *manifest)
{
    char *path = ipw_asprintf("%s/%s", run, name);
    struct stat st;
    bool newer = false;

    if (!stat(path, &st))
        newer = st.st_mtim.tv_sec > manifest->st_mtim.tv_sec ||
                (st.st_mtim.tv_sec == manifest->st_mtim.tv_sec &&
                 st.st_mtim.tv_nsec >= manifest->st_mtim.tv_nsec);
    free(path);
    return newer;
}

static bool manifest_is_newest(const char *run)
{
    static const char *const others[] = {"summary.json", "events.jsonl",   "power.jsonl",
                                         "traces.jsonl", "attempts.jsonl", "warmup.jsonl"};
    char *path = ipw_asprintf("%s/manifest.json", run);
    struct stat manifest;
    bool newest = !stat(path, &manifest);

    for (size_t i = 0; i < sizeof others / sizeof *others && newest; i++)
        newest = !is_newer(run, others[i], &manifest);
    free(path);
    return newest;
}

/* The last line of events.jsonl, to be freed; NULL: it is none, or very long. */
static struct ipw_json *last_event(const char *run)
{
    enum { TAIL = 4096 }; /* a run_end is shorter */
    char *path = ipw_asprintf("%s/events.jsonl", run);
    struct ipw_jsonl_reader *reader = NULL;
    struct ipw_jsonl_line line;
    struct ipw_json *event = NULL;
    struct stat st;
    int rc = stat(path, &st) || ipw_jsonl_open(&reader, path, TAIL, NULL) ||
             ipw_jsonl_seek(reader, st.st_size > TAIL ? st.st_size - TAIL : 0, NULL);

    while (!rc && ipw_jsonl_next(reader, &line, NULL) > 0) {
        ipw_json_free(event);
        if (ipw_json_parse(&event, line.text, line.n, NULL, NULL)) event = NULL;
    }
    ipw_jsonl_close(reader);
    free(path);
    return event;
}

/* Each session's readings begin with a header. */
static int count_row(void *n, const struct ipw_jsonl_line *line, struct ipw_err *err)
{
    (void)err;
    *(int64_t *)n = line->text[0] == '{' ? 0 : *(int64_t *)n + 1;
    return 0;
}

/* events.jsonl ends with the run_end of the last session; power.jsonl has the rows before it. */
static bool reaches_end(const struct ipw_history *h, const char *run)
{
    const struct ipw_json *last = ipw_json_at(ipw_json_get(h->manifest, "segments"), h->n - 1);
    struct ipw_json *event = last_event(run);
    char *path = ipw_asprintf("%s/power.jsonl", run);
    int64_t n = 0;
    bool reaches;

    ipw_jsonl_each(path, IPW_LINE_MAX, count_row, &n, NULL);
    reaches = !strcmp(ipw_json_str(ipw_json_get(event, "event"), ""), "run_end") &&
              ipw_json_int(ipw_json_get(event, "t_ns"), -1) ==
                  ipw_json_int(ipw_json_get(last, "end_ns"), 0) &&
              ipw_json_int(ipw_json_get(event, "rows"), 0) <= n; /* without sensors: absent */
    ipw_json_free(event);
    free(path);
    return reaches;
}

static bool summary_is_of(const struct ipw_history *h, const char *run)
{
    struct ipw_json *summary = NULL;
    const struct ipw_json *facts;
    bool same;

    if (ipw_json_read(&summary, run, "summary.json", NULL)) return false;
    facts = ipw_json_get(summary, "run");
    same = ipw_json_int(ipw_json_get(facts, "sessions"), -1) == (int64_t)h->n &&
           ipw_json_int(ipw_json_get(facts, "earlier_attempts"), -1) ==
               (int64_t)count_lines(run, "attempts.jsonl");
    ipw_json_free(summary);
    return same;
}

bool ipw_history_untouched(const struct ipw_history *h, const char *run)
{
    const struct ipw_json *config = ipw_json_get(h->manifest, "config");
    int64_t warmup = ipw_json_int(ipw_json_get(config, "warmup"), 0);

    return is_complete(h) && manifest_is_newest(run) && summary_is_of(h, run) &&
           (int64_t)count_lines(run, "warmup.jsonl") >= warmup && reaches_end(h, run);
}

/* ---- its queries ---- */

int ipw_history_each(const char *run, const char *name,
                     int (*fn)(void *ud, struct ipw_query_loaded *query, struct ipw_err *err),
                     void *ud, struct ipw_err *err)
{
    char *path = ipw_asprintf("%s/%s", run, name);
    int rc = access(path, F_OK) == 0 ? ipw_rundir_each_query(path, fn, ud, NULL, err) : 0;

    free(path);
    return rc;
}

static int add_warmup(void *warmup, struct ipw_query_loaded *q, struct ipw_err *err)
{
    (void)err;
    ipw_uncounted_add(warmup, &q->trace);
    return 0;
}

int ipw_history_warmup(struct ipw_history *h, const char *run, struct ipw_err *err)
{
    return ipw_history_each(run, "warmup.jsonl", add_warmup, &h->balances.warmup, err);
}

/* ---- the sums ---- */

void ipw_history_fold(struct ipw_history *h)
{
    for (size_t i = 0; i < h->n; i++) {
        struct ipw_json *doc;

        if (ipw_json_parse(&doc, h->past[i].text, strlen(h->past[i].text), NULL, NULL)) continue;
        fold(h, doc);
        ipw_json_free(doc);
    }
    for (int d = 0; d < IPW_DOMAIN_COUNT && !h->balances.n_sessions; d++) /* none had begun */
        h->balances.balance[d].total = h->balances.balance[d].idle =
            (struct ipw_figure){.known = true};
}

void ipw_history_add(const struct ipw_history *h, struct ipw_balance *balance,
                     struct ipw_device_list *devices)
{
    if (!h->n) return;
    ipw_device_list_add(devices, &h->balances.devices);
    for (int d = 0; d < IPW_DOMAIN_COUNT; d++)
        ipw_balance_add(&balance[d], &h->balances.balance[d]);
    ipw_uncounted_put(balance, devices, &h->balances.warmup, &h->balances.earlier);
}
