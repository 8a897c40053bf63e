#include "run/merge/book.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "energy/trust.h"
#include "json/document.h"
#include "json/jsonl.h"
#include "json/write.h"
#include "ledger/power_reader.h"
#include "run/merge/planned_run.h"
#include "trace/lock.h"
#include "trace/power.h"

#define TEXT_MAX (64 * IPW_MIB)

/* The files that are written anew; the old ones go to before_meter.  Of traces.jsonl and its like
 * the energy changes. */
static const char *const rewritten[] = {
    "attempts.jsonl", "events.jsonl", "manifest.json", "power.jsonl",
    "summary.json",   "traces.jsonl", "warmup.jsonl",  NULL};

struct job {
    char *run, *folder;  /* the run, without links in its path; RUN.booking */
    char *origin, *kept; /* where the files are as they were; where they shall be */
    char *readings;      /* the folder of the readings with those of the meter */
    const char *report;  /* the text of energy_report.json */
    struct ipw_planned_run p;
};

char *ipw_book_origin(const char *run)
{
    char *kept = ipw_asprintf("%s/" IPW_BOOK_BEFORE, run);
    char *manifest = ipw_asprintf("%s/manifest.json", kept);
    bool booked = access(manifest, F_OK) == 0;

    free(manifest);
    if (booked) return kept;
    free(kept);
    return ipw_strdup(run);
}

/* ---- folders ---- */

static int make_folder(const char *path, struct ipw_err *err)
{
    return mkdir(path, 0700) < 0 ? ipw_fail_errno(err, errno, "%s", path) : 0;
}

/* A second name for the file, so that nothing is copied. */
static int link_file(const char *from, const char *to, struct ipw_err *err)
{
    if (linkat(AT_FDCWD, from, AT_FDCWD, to, 0) == 0) return 0;
    return ipw_fail_errno(err, errno, "%s: no second name (hard link) for it in %s", from, to);
}

static int link_folder(const char *from, const char *to, const char *const *without,
                       struct ipw_err *err);

static int link_entry(const char *from, const char *to, struct ipw_err *err)
{
    struct stat st;
    int rc = 0;

    if (lstat(from, &st) < 0) return ipw_fail_errno(err, errno, "%s", from);
    if (!S_ISDIR(st.st_mode)) return link_file(from, to, err);
    rc = make_folder(to, err);
    return rc ? rc : link_folder(from, to, NULL, err);
}

static bool is_listed(const char *name, const char *const *list)
{
    for (; list && *list; list++)
        if (!strcmp(name, *list)) return true;
    return false;
}

static int link_folder(const char *from, const char *to, const char *const *without,
                       struct ipw_err *err)
{
    DIR *dir = opendir(from);
    struct dirent *entry;
    int rc = dir ? 0 : ipw_fail_errno(err, errno, "%s", from);

    while (!rc && (entry = readdir(dir))) {
        char *a, *b;

        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..") ||
            is_listed(entry->d_name, without))
            continue;
        a = ipw_asprintf("%s/%s", from, entry->d_name);
        b = ipw_asprintf("%s/%s", to, entry->d_name);
        rc = link_entry(a, b, err);
        free(a);
        free(b);
    }
    if (dir) closedir(dir);
    return rc;
}

static int keep_originals(const struct job *job, struct ipw_err *err)
{
    int rc = make_folder(job->kept, err);

    for (const char *const *name = rewritten; !rc && *name; name++) {
        char *from = ipw_asprintf("%s/%s", job->origin, *name);
        char *to = ipw_asprintf("%s/%s", job->kept, *name);

        if (access(from, F_OK) == 0) rc = link_file(from, to, err);
        free(from);
        free(to);
    }
    return rc;
}

static int keep_others(const struct job *job, struct ipw_err *err)
{
    const char *without[16] = {"lock", "energy_report.json", IPW_BOOK_BEFORE};
    size_t n = 3;

    for (const char *const *name = rewritten; *name; name++) without[n++] = *name;
    return link_folder(job->run, job->folder, without, err);
}

/* ---- its readings, with those of the meter ---- */

/* The sources of a header: own, none of them in the machine's sum any more, then the meter's. */
static void put_sources(struct ipw_jw *w, const struct ipw_json *own, const struct ipw_json *more)
{
    struct ipw_buf text = IPW_BUF(TEXT_MAX), patch = IPW_BUF(TEXT_MAX);

    ipw_jw_key(w, "sources");
    ipw_jw_arr(w);
    for (const struct ipw_json *s = ipw_json_first(own); s; s = ipw_json_next(s)) {
        bool first = true;

        ipw_buf_clear(&patch);
        ipw_buf_adds(&patch, "{\"channels\":[");
        for (const struct ipw_json *c = ipw_json_first(ipw_json_get(s, "channels")); c;
             c = ipw_json_next(c)) {
            bool other = !strcmp(ipw_json_str(ipw_json_get(c, "domain"), ""),
                                 ipw_domain_name(IPW_DOMAIN_MACHINE));

            if (!first) ipw_buf_addc(&patch, ',');
            ipw_json_patch(&patch, c, other ? "{\"in_sum\":false}" : "{}");
            first = false;
        }
        ipw_buf_adds(&patch, "]}");
        ipw_buf_clear(&text);
        ipw_json_patch(&text, s, ipw_buf_str(&patch));
        ipw_jw_raw(w, ipw_buf_str(&text), text.len);
    }
    for (const struct ipw_json *s = ipw_json_first(more); s; s = ipw_json_next(s)) {
        ipw_buf_clear(&text);
        ipw_json_print(&text, s);
        ipw_jw_raw(w, ipw_buf_str(&text), text.len);
    }
    ipw_jw_arr_end(w);
    ipw_buf_release(&text);
    ipw_buf_release(&patch);
}

/* `own` NULL: the session read no sensor. */
static void put_header(FILE *to, const char *own, int session, const struct ipw_json *readings)
{
    const struct ipw_json *more = ipw_json_get(readings, "sources");
    struct ipw_buf patch = IPW_BUF(TEXT_MAX), plain = IPW_BUF(TEXT_MAX), basis = IPW_BUF(IPW_MIB);
    const struct ipw_source_set none = {.n = 0};
    struct ipw_json *doc = NULL;
    struct ipw_jw w;

    if (!own)
        ipw_power_header_write(&plain, &none,
                               ipw_json_int(ipw_json_get(ipw_json_first(more), "period_ns"), 0),
                               session);
    if (ipw_json_parse(&doc, own ? own : ipw_buf_str(&plain), own ? strlen(own) : plain.len - 1,
                       NULL, NULL))
        IPW_BUG("the header of power.jsonl is not JSON");
    ipw_jw_init(&w, &basis);
    ipw_jw_obj(&w);
    ipw_jw_kstr(&w, "machine", ipw_json_str(ipw_json_get(readings, "basis"), NULL));
    ipw_jw_obj_end(&w);
    ipw_buf_clear(&plain);
    ipw_json_patch(&plain, ipw_json_get(doc, "basis"), ipw_buf_str(&basis));
    ipw_jw_init(&w, &patch);
    ipw_jw_obj(&w);
    ipw_jw_kraw(&w, "basis", ipw_buf_str(&plain), plain.len);
    put_sources(&w, ipw_json_get(doc, "sources"), more);
    ipw_jw_obj_end(&w);
    ipw_buf_clear(&plain);
    ipw_json_patch(&plain, doc, ipw_buf_str(&patch));
    fprintf(to, "%s\n", ipw_buf_str(&plain));
    ipw_json_free(doc);
    ipw_buf_release(&basis);
    ipw_buf_release(&patch);
    ipw_buf_release(&plain);
}

static void put_row(FILE *to, struct ipw_buf *text, const struct ipw_sampler_row *row)
{
    ipw_buf_clear(text);
    ipw_power_row_write(text, row);
    fwrite(text->data, 1, text->len, to);
}

/* The meter's rows up to an instant; returns what follows them. */
static const char *put_rows(FILE *to, struct ipw_buf *text, const char *rows, int64_t until_ns,
                            size_t n_sources)
{
    while (*rows) {
        char *at;
        struct ipw_sampler_row row = {.n = 1, .t_ns = strtoll(rows, &at, 10)};
        int64_t value;

        if (row.t_ns > until_ns) break;
        row.source = n_sources + strtoul(at, &at, 10);
        value = strtoll(at, &at, 10);
        row.values = &value;
        put_row(to, text, &row);
        rows = at + (*at == '\n');
    }
    return rows;
}

static int write_session(FILE *to, struct ipw_power_reader *p, int number,
                         const struct ipw_json *readings, struct ipw_err *err)
{
    const char *rows = ipw_json_str(ipw_json_get(readings, "rows"), "");
    struct ipw_buf text = IPW_BUF(TEXT_MAX);
    int rc = ipw_power_reader_segment(p, number, err);
    size_t n_sources = rc ? 0 : p->n_sources;

    if (!rc) put_header(to, n_sources ? p->header_text : NULL, number, readings);
    while (!rc && n_sources && (rc = ipw_power_reader_next(p, err)) > 0) {
        struct ipw_sampler_row row = {.t_ns = p->t_ns,
                                      .source = p->source,
                                      .n = p->sources[p->source].n,
                                      .values = p->values};

        rc = 0;
        rows = put_rows(to, &text, rows, p->t_ns, n_sources);
        put_row(to, &text, &row);
    }
    if (!rc) put_rows(to, &text, rows, INT64_MAX, n_sources);
    ipw_buf_release(&text);
    return rc;
}

static int write_readings(struct job *job, struct ipw_err *err)
{
    const struct ipw_json *sessions = ipw_json_get(job->p.plan, "sessions");
    struct ipw_shard_run *saved = job->p.runs.all;
    char *path = ipw_asprintf("%s/power.jsonl", job->readings);
    struct ipw_power_reader p;
    int rc = ipw_power_reader_open(&p, saved->path, err), number = 0;
    FILE *to = rc ? NULL : fopen(path, "wxe");

    for (const struct ipw_json *s = ipw_json_first(sessions); s && to && !rc;
         s = ipw_json_next(s), number++) {
        const struct ipw_json *readings = ipw_json_get(s, "readings");

        if (!readings) continue; /* it never began */
        saved->n_added = ipw_json_count(ipw_json_get(readings, "sources"));
        rc = write_session(to, &p, number, readings, err);
    }
    if (!rc && (!to || ferror(to))) rc = ipw_fail_errno(err, errno, "%s", path);
    if (to && fclose(to) && !rc) rc = ipw_fail_errno(err, errno, "%s", path);
    ipw_power_reader_close(&p);
    saved->readings = job->readings;
    free(path);
    return rc;
}

/* ---- the run, computed again ---- */

/* A machine's meter that reads less than the machine's own sensors is not its meter, or was cut at
 * the wrong times. */
static int check_parts(void *ud, const struct ipw_recompute_segment *books, struct ipw_err *err)
{
    static const enum ipw_domain parts[] = {IPW_DOMAIN_CPU, IPW_DOMAIN_DRAM, IPW_DOMAIN_GPU};
    const struct job *job = ud;
    const struct ipw_figure *whole = &books->balance[IPW_DOMAIN_MACHINE].total;
    double sum = 0;

    for (size_t i = 0; i < sizeof parts / sizeof *parts && !books->rules.lm_remote; i++)
        if (books->balance[parts[i]].total.known) sum += books->balance[parts[i]].total.j;
    if (!whole->known || !ipw_trust_is_below(whole->hi_j, sum)) return 0;
    return ipw_fail(
        err, IPW_EINVAL,
        "%s: the meter reads %.4g J (at most %.4g) where the machine's own sensors read "
        "%.4g J: it is not booked",
        job->run, whole->j, whole->hi_j, sum);
}

static int write_report(const struct job *job, struct ipw_err *err)
{
    char *path = ipw_asprintf("%s/energy_report.json", job->folder);
    int rc = ipw_file_write_atomic(path, job->report, strlen(job->report), err);

    free(path);
    return rc;
}

static int compute(struct job *job, struct ipw_err *err)
{
    int rc = make_folder(job->folder, err);

    if (!rc) rc = make_folder(job->readings, err);
    if (!rc) rc = write_readings(job, err);
    job->p.check = check_parts;
    job->p.ud = job;
    if (!rc) rc = ipw_planned_run_write(&job->p, job->folder, err);
    if (!rc) rc = ipw_run_folder_remove(job->readings, err);
    if (!rc) rc = keep_originals(job, err);
    if (!rc) rc = keep_others(job, err);
    return rc ? rc : write_report(job, err);
}

/* The plan was made before the run was locked. */
static int open_plan(struct job *job, const struct ipw_json *plan, struct ipw_err *err)
{
    int rc = ipw_planned_run_open(&job->p, plan, err);

    if (!rc && (job->p.runs.n != 1 || strcmp(job->p.runs.all->path, job->origin) != 0))
        rc = ipw_fail(err, IPW_EINVAL, "%s: a meter was booked meanwhile: try again", job->run);
    return rc;
}

static int put_in_place(const struct job *job, struct ipw_err *err)
{
    int rc = ipw_file_sync_folder(job->run, err);

    if (rc) return rc;
    if (renameat2(AT_FDCWD, job->folder, AT_FDCWD, job->run, RENAME_EXCHANGE) < 0)
        return ipw_fail_errno(err, errno, "%s: cannot be exchanged with %s", job->run, job->folder);
    return ipw_file_sync_folder(job->run, err);
}

int ipw_book_run(const char *run, const struct ipw_json *plan, const char *report,
                 struct ipw_err *err)
{
    struct ipw_lock lock = IPW_LOCK_NONE;
    struct job job = {.run = realpath(run, NULL), .report = report};
    bool locked, exchanged;
    int rc;

    if (!job.run) return ipw_fail_errno(err, errno, "%s", run);
    job.folder = ipw_asprintf("%s.booking", job.run);
    job.origin = ipw_book_origin(run);
    job.kept = ipw_asprintf("%s/" IPW_BOOK_BEFORE, job.folder);
    job.readings = ipw_asprintf("%s/readings", job.folder);
    rc = ipw_lock_take(&lock, job.run, err);
    locked = !rc;
    if (!rc) rc = ipw_run_folder_remove(job.folder, err);
    if (!rc) rc = open_plan(&job, plan, err);
    if (!rc) rc = compute(&job, err);
    if (!rc) rc = put_in_place(&job, err);
    exchanged = !rc;
    if (locked && !exchanged)
        ipw_run_folder_remove(job.folder, NULL); /* also what a killed booking left */
    ipw_lock_drop(&lock, exchanged ? job.folder : job.run);
    if (exchanged) ipw_run_folder_remove(job.folder, err);
    ipw_planned_run_release(&job.p);
    free(job.run);
    free(job.folder);
    free(job.origin);
    free(job.kept);
    free(job.readings);
    return rc;
}
