#include "run/merge/merge_manifest.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "json/document.h"
#include "json/write.h"
#include "run/resume/same_run.h"
#include "run/segment.h"

#define TEXT_MAX (256 * IPW_MIB)

static void put_names(struct ipw_jw *w, const char *key, const struct ipw_shard_runs *r)
{
    ipw_jw_key(w, key);
    ipw_jw_arr(w);
    for (size_t i = 0; i < r->n; i++) {
        const struct ipw_shard_run *run = &r->all[i];

        ipw_jw_obj(w);
        ipw_jw_kint(w, "queries", run->n_done);
        ipw_jw_kint(w, "sessions", (int64_t)run->n_sessions);
        ipw_jw_kstr(w, "shard", run->name);
        ipw_jw_kint(w, "tasks", run->n_tasks);
        ipw_jw_obj_end(w);
    }
    ipw_jw_arr_end(w);
}

static void put_left(struct ipw_jw *w, const struct ipw_shard_runs *r)
{
    ipw_jw_key(w, "left_out");
    ipw_jw_arr(w);
    for (size_t i = 0; i < r->n_left; i++) {
        ipw_jw_obj(w);
        ipw_jw_kstr(w, "shard", r->left[i].name);
        ipw_jw_kstr(w, "text", r->left[i].why);
        ipw_jw_obj_end(w);
    }
    ipw_jw_arr_end(w);
}

static void put_absent(struct ipw_jw *w, const struct ipw_merge *m)
{
    ipw_jw_key(w, "absent");
    ipw_jw_arr(w);
    for (int64_t i = 0; i < m->runs.count && m->missing; i++) {
        char name[64];

        if (!ipw_shard_runs_lacks(&m->runs, i)) continue;
        snprintf(name, sizeof name, "%lld-of-%lld", (long long)i, (long long)m->runs.count);
        ipw_jw_str(w, name);
    }
    ipw_jw_arr_end(w);
}

static void put_merge(struct ipw_jw *w, const struct ipw_merge *m)
{
    ipw_jw_obj(w);
    put_absent(w, m);
    ipw_jw_key(w, "added_j");
    ipw_jw_obj(w);
    for (int i = 0; i < IPW_DOMAIN_COUNT; i++) {
        enum ipw_domain d = ipw_domains_by_name[i];

        ipw_jw_kmicro(w, ipw_domain_name(d), m->added_j[d]);
    }
    ipw_jw_obj_end(w);
    ipw_jw_kint(w, "count", m->runs.count);
    put_left(w, &m->runs);
    ipw_jw_kint(w, "missing", m->missing);
    ipw_jw_kint(w, "sessions", (int64_t)m->n_sessions);
    put_names(w, "shards", &m->runs);
    ipw_jw_obj_end(w);
}

/* The most queries that were in flight in one session; 0: not known. */
static int64_t most_in_flight(const char *sessions)
{
    char *text = ipw_asprintf("[%s]", sessions);
    struct ipw_json *list = NULL;
    int64_t most = 0;

    if (ipw_json_parse(&list, text, strlen(text), NULL, NULL)) list = NULL;
    for (const struct ipw_json *s = ipw_json_first(list); s; s = ipw_json_next(s)) {
        int64_t n = ipw_json_int(ipw_json_get(s, "concurrency"), 0);

        if (n > most) most = n;
    }
    ipw_json_free(list);
    free(text);
    return most;
}

/* The attachments of all shards; -1: a shard does not know its own. */
static int64_t all_files(const struct ipw_shard_runs *r)
{
    int64_t sum = 0;

    for (size_t i = 0; i < r->n; i++) {
        int64_t n = ipw_json_int(ipw_json_get(r->all[i].config, "dataset_files"), -1);

        if (n < 0 || n > INT32_MAX) return -1;
        sum += n;
    }
    return sum;
}

/* The configuration of the uncut run. */
static struct ipw_json *config_of(const struct ipw_shard_runs *r, const char *sessions)
{
    int64_t in_flight = most_in_flight(sessions);
    const struct ipw_json *config = r->all[0].config;
    struct ipw_buf patch = IPW_BUF(TEXT_MAX), text = IPW_BUF(TEXT_MAX);
    struct ipw_json *doc = NULL;
    struct ipw_jw w;

    ipw_jw_init(&w, &patch);
    ipw_jw_obj(&w);
    if (in_flight) ipw_jw_kint(&w, "concurrency", in_flight);
    ipw_jw_kcount(&w, "dataset_files", all_files(r));
    ipw_jw_kint(&w, "max_queries", r->selected);
    ipw_jw_kstr(&w, "selection_sha256",
                ipw_json_get_str(ipw_json_get(config, "shard"), "selection_sha256"));
    ipw_jw_knull(&w, "shard");
    ipw_jw_obj_end(&w);
    ipw_json_patch(&text, config, ipw_buf_str(&patch));
    if (ipw_json_parse(&doc, ipw_buf_str(&text), text.len, NULL, NULL)) doc = NULL;
    ipw_buf_release(&patch);
    ipw_buf_release(&text);
    return doc;
}

void ipw_merge_manifest_put(struct ipw_buf *out, const struct ipw_merge *m, const char *sessions)
{
    struct ipw_json *config = config_of(&m->runs, sessions);
    struct ipw_buf patch = IPW_BUF(TEXT_MAX);
    char *text = ipw_json_text(config);
    struct ipw_jw w;

    ipw_jw_init(&w, &patch);
    ipw_jw_obj(&w);
    ipw_jw_knull(&w, "command");
    ipw_jw_kraw(&w, "config", text, strlen(text));
    ipw_jw_key(&w, "hashes");
    ipw_same_run_hashes(&w, config);
    ipw_jw_key(&w, "merge");
    put_merge(&w, m);
    ipw_jw_key(&w, "segments");
    ipw_jw_raw(&w, "[", 1);
    ipw_buf_adds(&patch, sessions);
    ipw_buf_adds(&patch, "]}");
    ipw_json_patch(out, m->runs.all[0].manifest, ipw_buf_str(&patch));
    ipw_buf_release(&patch);
    ipw_json_free(config);
    free(text);
}

/* ---- sessions ---- */

static const struct ipw_json *session_of(const struct ipw_join *j, size_t i)
{
    return j->members[i].run->sessions[j->members[i].session].doc;
}

/* What the programs used, without those that were killed, as in any run. */
static void put_own(struct ipw_jw *w, const struct ipw_join *j)
{
    static const char *const keys[] = {"estimated_joules", "runner_cpu_s", "sampler_cpu_s"};
    bool known = false;

    for (size_t i = 0; i < j->n; i++)
        known |= !ipw_json_is_null(ipw_json_get(session_of(j, i), "own"));
    ipw_jw_key(w, "own");
    if (!known) {
        ipw_jw_null(w);
        return;
    }
    ipw_jw_obj(w);
    for (size_t k = 0; k < sizeof keys / sizeof *keys; k++) {
        double sum = 0;

        for (size_t i = 0; i < j->n; i++) {
            const struct ipw_json *own = ipw_json_get(session_of(j, i), "own");

            if (!ipw_json_is_null(own)) sum += ipw_json_get_num(own, keys[k]);
        }
        ipw_jw_knum(w, keys[k], sum);
    }
    ipw_jw_obj_end(w);
}

static void put_members(struct ipw_jw *w, const struct ipw_join *j)
{
    ipw_jw_key(w, "merged");
    ipw_jw_arr(w);
    for (size_t i = 0; i < j->n; i++) {
        ipw_jw_obj(w);
        if (j->members[i].clock_error_ns) {
            const struct ipw_shard_run *run = j->members[i].run;

            ipw_jw_kint(w, "ahead_ns", j->members[i].ahead_ns);
            ipw_jw_kstr(w, "clock_error_by",
                        run->sessions[j->members[i].session].clock_error_ns < 0 ? "assumed"
                                                                                : "system");
            ipw_jw_kint(w, "clock_error_ns", j->members[i].clock_error_ns);
        }
        ipw_jw_kint(w, "segment", j->members[i].session);
        ipw_jw_kstr(w, "shard", j->members[i].run->name);
        ipw_jw_obj_end(w);
    }
    ipw_jw_arr_end(w);
}

static void put_forced(struct ipw_jw *w, const struct ipw_join *j)
{
    ipw_jw_key(w, "forced");
    ipw_jw_arr(w);
    for (size_t i = 0; i < j->n; i++) {
        const struct ipw_json *list = ipw_json_get(session_of(j, i), "forced");

        for (const struct ipw_json *f = ipw_json_first(list); f; f = ipw_json_next(f))
            ipw_jw_str(w, ipw_json_str(f, ""));
    }
    ipw_jw_arr_end(w);
}

static void put_hardware(struct ipw_jw *w, const struct ipw_join *j)
{
    struct ipw_buf patch = IPW_BUF(TEXT_MAX), text = IPW_BUF(TEXT_MAX);

    if (!j->channels.len) return;
    ipw_buf_addf(&patch, "{\"channels\":%s}", ipw_buf_str(&j->channels));
    ipw_json_patch(&text, ipw_json_get(session_of(j, 0), "hardware"), ipw_buf_str(&patch));
    ipw_jw_kraw(w, "hardware", ipw_buf_str(&text), text.len);
    ipw_buf_release(&patch);
    ipw_buf_release(&text);
}

/* The first session's remark, and that the run is partial. */
static void put_note(struct ipw_jw *w, const struct ipw_merge *m, const struct ipw_join *j)
{
    const char *own = ipw_json_get_str(session_of(j, 0), "note");
    const struct ipw_shard_runs *r = &m->runs;
    char partial[200];

    if (!m->missing) return;
    snprintf(partial, sizeof partial,
             "%.60s%sa partial merge: %zu of %lld shards; %lld of %lld queries are missing",
             own ? own : "", own ? "; " : "", r->n, (long long)r->count, (long long)m->missing,
             (long long)(r->selected * r->epochs));
    ipw_jw_kstr(w, "note", partial);
}

void ipw_merge_session_put(struct ipw_buf *out, const struct ipw_merge *m, const struct ipw_join *j,
                           bool over)
{
    const struct ipw_shard_session *first = &j->members[0].run->sessions[j->members[0].session];
    const struct ipw_recompute_segment *books = ipw_join_books(j);
    struct ipw_buf patch = IPW_BUF(TEXT_MAX);
    int64_t concurrency = 0;
    struct ipw_jw w;

    for (size_t i = 0; i < j->n; i++)
        concurrency += ipw_json_int(ipw_json_get(session_of(j, i), "concurrency"), 0);
    ipw_jw_init(&w, &patch);
    ipw_jw_obj(&w);
    ipw_jw_kint(&w, "concurrency", concurrency);
    ipw_segment_put_end(&w,
                        !over        ? NULL
                        : m->missing ? "interrupted"
                                     : "complete",
                        over ? books->end_ns : 0, &first->clock);
    put_forced(&w, j);
    put_hardware(&w, j);
    ipw_segment_put_balances(&w, over ? books->balance : NULL, over ? &books->devices : NULL);
    put_members(&w, j);
    put_note(&w, m, j);
    put_own(&w, j);
    ipw_jw_kint(&w, "segment", j->number);
    ipw_segment_put_time(&w, "start_ns", over ? books->start_ns : first->start_ns);
    ipw_jw_key(&w, "torn");
    ipw_jw_arr(&w);
    ipw_jw_arr_end(&w);
    ipw_jw_obj_end(&w);
    ipw_json_patch(out, first->doc, ipw_buf_str(&patch));
    ipw_buf_release(&patch);
}
