/* score RUN: scores the answers of a saved run again and prints the differences. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app/commands.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/open.h"
#include "base/text.h"
#include "data/scorers.h"
#include "json/document.h"
#include "json/jsonl.h"
#include "json/write.h"
#include "report/format.h"
#include "run/grading.h"
#include "run/progress.h"
#include "run/resume/rebuild_files.h"
#include "run/script_options.h"
#include "script/dataset.h"
#include "trace/rundir.h"
#include "trace/schema.h"

enum { MAX_BYTES = 1024 * 1024 * 1024, SHOWN = 40, GRADED_AT_A_TIME = 8 };

struct score_options {
    const char *dataset, *data_dir, *encoding, *scorer, *output;
    struct ipw_script_options script;
    struct ipw_judge_options judge;
    bool json, dry_run;
};

struct job {
    const struct score_options *o;
    const char *run;
    struct ipw_dataset *cases;
    bool saved;           /* by the references in the traces; else by the dataset's tasks */
    int code;             /* the exit status of a failure */
    struct ipw_buf lines; /* scores.jsonl */
    struct ipw_buf flips,
        reworded;              /* a line each for a person: another score, another answer only */
    struct ipw_buf flips_json; /* the elements of a list */
    size_t n, n_missing, n_changed, n_flipped, n_reworded;
    size_t was[3], now[3]; /* wrong, correct, not scored */
};

static const char *word(int resolved)
{
    return resolved == 1 ? "correct" : resolved == 0 ? "wrong" : "not scored";
}
static size_t slot(int resolved) { return resolved < 0 ? 2 : (size_t)resolved; }

static void put_resolved(struct ipw_jw *w, const char *key, int resolved)
{
    if (resolved < 0)
        ipw_jw_knull(w, key);
    else
        ipw_jw_kbool(w, key, resolved == 1);
}

static void put_line(struct job *j, const struct ipw_query_loaded *q, const struct ipw_score *s)
{
    struct ipw_jw w;

    ipw_jw_init(&w, &j->lines);
    ipw_jw_obj(&w);
    ipw_jw_kstr(&w, "answer", s->answer.len ? ipw_buf_str(&s->answer) : NULL);
    ipw_jw_kstr(&w, "answer_source", s->source);
    ipw_jw_kstr(&w, "answer_was", q->details.answer);
    ipw_jw_kint(&w, "epoch", q->details.epoch);
    put_resolved(&w, "is_resolved", s->resolved);
    put_resolved(&w, "is_resolved_was", q->details.is_resolved);
    ipw_jw_kstr(&w, "query_id", q->trace.id);
    ipw_jw_kint(&w, "query_index", q->trace.index);
    ipw_jw_kstr(&w, "reason", s->reason[0] ? s->reason : NULL);
    if (j->o->scorer) ipw_jw_kstr(&w, "scorer", j->o->scorer);
    ipw_jw_obj_end(&w);
    ipw_buf_addc(&j->lines, '\n');
}

static void put_flip_json(struct ipw_buf *out, const struct ipw_query_loaded *q,
                          const struct ipw_score *s)
{
    struct ipw_jw w;

    if (out->len) ipw_buf_addc(out, ',');
    ipw_jw_init(&w, out);
    ipw_jw_obj(&w);
    ipw_jw_kstr(&w, "answer", s->answer.len ? ipw_buf_str(&s->answer) : NULL);
    ipw_jw_kstr(&w, "answer_was", q->details.answer);
    ipw_jw_kint(&w, "epoch", q->details.epoch);
    put_resolved(&w, "is_resolved", s->resolved);
    put_resolved(&w, "is_resolved_was", q->details.is_resolved);
    ipw_jw_kstr(&w, "query_id", q->trace.id);
    ipw_jw_obj_end(&w);
}

static void put_change(struct job *j, const struct ipw_query_loaded *q, const struct ipw_score *s)
{
    const char *was = q->details.answer ? q->details.answer : "(none)";
    const char *now = s->answer.len ? ipw_buf_str(&s->answer) : "(none)";
    bool flipped = s->resolved != q->details.is_resolved;
    struct ipw_buf *out = flipped ? &j->flips : &j->reworded;

    j->n_changed++;
    if (flipped) {
        j->n_flipped++;
        put_flip_json(&j->flips_json, q, s);
    } else if (j->n_reworded++ >= SHOWN) {
        return;
    }
    ipw_buf_addc(out, ' ');
    ipw_text_printable(out, q->trace.id, strlen(q->trace.id), 24);
    if (q->details.epoch) ipw_buf_addf(out, " (epoch %d)", q->details.epoch);
    ipw_buf_addf(out, "  %s -> %s  ", word(q->details.is_resolved), word(s->resolved));
    ipw_text_printable(out, was, strlen(was), 30);
    if (strcmp(was, now)) {
        ipw_buf_adds(out, " -> ");
        ipw_text_printable(out, now, strlen(now), 30);
    }
    if (s->reason[0]) {
        ipw_buf_adds(out, "  (");
        ipw_text_printable(out, s->reason, strlen(s->reason), 60);
        ipw_buf_adds(out, ")");
    }
    ipw_buf_addc(out, '\n');
}

/* The --dataset that the run was begun with; NULL: the manifest does not say (redacted). */
static const char *given_dataset(const struct ipw_json *manifest)
{
    const struct ipw_json *arg =
        ipw_json_first(ipw_json_get(ipw_json_get(manifest, "command"), "args"));

    while (arg && strcmp(ipw_json_str(arg, ""), "--dataset")) arg = ipw_json_next(arg);
    return arg ? ipw_json_str(ipw_json_next(arg), NULL) : NULL;
}

/* The dataset that the run names; or, where it was a file of rows, that file: the user says where
 * it is now, because a name that is made of the file's could be another dataset's. */
static char *named_dataset(const char *run, char **file, bool *filler)
{
    struct ipw_json *doc;
    char *name = NULL;

    if (ipw_json_read(&doc, run, "manifest.json", NULL) == 0) {
        const struct ipw_json *config = ipw_json_get(doc, "config");
        const char *given = given_dataset(doc), *dot = given ? strrchr(given, '.') : NULL;

        if (given && strncmp(given, "hf:", 3) == 0)
            name = ipw_strdup(given);
        else if (dot && strcmp(dot, ".lua"))
            *file = ipw_strdup(given);
        else
            name = ipw_strdup(ipw_json_str(ipw_json_get(config, "dataset"), NULL));
        *filler = ipw_json_bool(ipw_json_get(config, "no_content"), false);
    }
    ipw_json_free(doc);
    return name;
}

/* By what the first query tells: a run has the references of all its queries, or, an older one or
 * one with --no-content, of none. */
static int open_scorer(struct job *j, const struct ipw_query_loaded *first, struct ipw_err *err)
{
    bool filler = false;
    char *file = NULL, *named = named_dataset(j->run, &file, &filler);
    struct ipw_dataset_options options = {.dataset = j->o->dataset ? j->o->dataset : named,
                                          .data_dir = j->o->data_dir,
                                          .encoding = j->o->encoding,
                                          .scorer = j->o->scorer,
                                          .paths = ipw_script_paths(&j->o->script)};
    int rc;

    j->saved = !j->o->dataset && first->details.reference;
    options.scorer_only = j->saved;
    if (j->saved && file) options.dataset = file;
    j->code = options.dataset || filler ? IPW_EXIT_INPUT : IPW_EXIT_USAGE;
    rc =
        filler ? ipw_fail(err, IPW_EUNSUPPORTED,
                          "%s: was run with --no-content, so its answers are filler", j->run)
        : options.dataset
            ? ipw_dataset_open(&j->cases, &options, err)
            : ipw_fail(err, IPW_EINVAL,
                       "%s: has no reference answers; name its dataset with --dataset%s%s%s",
                       j->run, file ? " (it was the file " : "", file ? file : "", file ? ")" : "");
    free(named);
    free(file);
    return rc;
}

/* Scores the query by its own trace, or by the dataset's task of its id; false: that is missing. */
static bool score_query(struct job *j, const struct ipw_query_loaded *q, struct ipw_score *out)
{
    const struct ipw_query_details *r = &q->details;
    const struct ipw_saved_case saved = {q->trace.id,
                                         r->query_text,
                                         r->reference_answer,
                                         r->subject,
                                         r->metadata,
                                         r->reference,
                                         r->judge ? r->judge->verdict : NULL,
                                         r->score_metadata};
    const char *response = q->trace.completed ? r->response_text : NULL;
    const char *source = r->answer_source;
    size_t i = j->saved ? 0 : ipw_dataset_find(j->cases, q->trace.id);

    /* What the agent itself said of its answer; how ours was found is found out again. */
    if (source && strcmp(source, "marker") && strcmp(source, "tool")) source = NULL;
    if (i == SIZE_MAX) return false;
    if (j->saved)
        ipw_dataset_score_saved(j->cases, &saved, response, source, out);
    else
        ipw_dataset_score(j->cases, i, response, source, out);
    return true;
}

static int take(void *ud, struct ipw_query_loaded *q, struct ipw_err *err)
{
    struct job *j = ud;
    struct ipw_score score;
    int rc = j->cases ? 0 : open_scorer(j, q, err);

    if (rc) return rc;
    j->n++;
    if (!score_query(j, q, &score)) {
        j->n_missing++;
        return 0;
    }
    if (!q->trace.completed && score.resolved < 0 && !score.reason[0])
        snprintf(score.reason, sizeof score.reason, "%s", q->trace.outcome ? q->trace.outcome : "");
    j->was[slot(q->details.is_resolved)]++;
    j->now[slot(score.resolved)]++;
    put_line(j, q, &score);
    if (score.resolved != q->details.is_resolved ||
        strcmp(ipw_buf_str(&score.answer), q->details.answer ? q->details.answer : ""))
        put_change(j, q, &score);
    ipw_score_release(&score);
    return 0;
}

/* Unknown, not 0, when nothing was scored. */
static const char *percent(char out[16], const size_t *n)
{
    if (n[0] + n[1])
        snprintf(out, 16, "%5.1f", 100.0 * (double)n[1] / (double)(n[0] + n[1]));
    else
        snprintf(out, 16, "    " IPW_UNKNOWN_TEXT);
    return out;
}

static void print(struct job *j, const char *path)
{
    struct ipw_buf out = IPW_BUF(MAX_BYTES), flipped = IPW_BUF(MAX_BYTES);
    char was[16], now[16];
    struct ipw_jw w;

    if (!j->o->json) {
        if (j->n_flipped)
            printf("flipped: %zu of %zu queries (query, old and new score, answer)\n%s",
                   j->n_flipped, j->n - j->n_missing, ipw_buf_str(&j->flips));
        else
            printf("flipped: none of %zu quer%s\n", j->n - j->n_missing,
                   j->n - j->n_missing == 1 ? "y" : "ies");
        if (j->n_reworded)
            printf("another answer, the same score: %zu\n%s", j->n_reworded,
                   ipw_buf_str(&j->reworded));
        if (j->n_reworded > SHOWN) printf(" and %zu more\n", j->n_reworded - SHOWN);
        printf("            was    now\n"
               " correct  %5zu  %5zu\n"
               " wrong    %5zu  %5zu\n"
               " none     %5zu  %5zu\n"
               " score %s  %s %%\n",
               j->was[1], j->now[1], j->was[0], j->now[0], j->was[2], j->now[2],
               percent(was, j->was), percent(now, j->now));
        if (j->n_missing) printf("%zu queries are not in the dataset\n", j->n_missing);
        if (path) printf("%s\n", path);
        ipw_buf_release(&out);
        return;
    }
    ipw_buf_addf(&flipped, "[%s]", ipw_buf_str(&j->flips_json));
    ipw_jw_init(&w, &out);
    ipw_jw_obj(&w);
    ipw_jw_kint(&w, "changed", (int64_t)j->n_changed);
    ipw_jw_kraw(&w, "flipped", ipw_buf_str(&flipped), flipped.len);
    ipw_jw_kint(&w, "missing", (int64_t)j->n_missing);
    for (int side = 0; side < 2; side++) {
        const size_t *n = side ? j->was : j->now;

        ipw_jw_key(&w, side ? "was" : "now");
        ipw_jw_obj(&w);
        if (n[0] + n[1])
            ipw_jw_knum(&w, "accuracy", (double)n[1] / (double)(n[0] + n[1]));
        else
            ipw_jw_knull(&w, "accuracy");
        ipw_jw_kint(&w, "resolved", (int64_t)n[1]);
        ipw_jw_kint(&w, "unresolved", (int64_t)n[0]);
        ipw_jw_kint(&w, "unscored", (int64_t)n[2]);
        ipw_jw_obj_end(&w);
    }
    ipw_jw_obj_end(&w);
    printf("%s\n", ipw_buf_str(&out));
    ipw_buf_release(&flipped);
    ipw_buf_release(&out);
}

/* ---- verdicts that are missing ---- */

static int take_first(void *ud, struct ipw_query_loaded *q, struct ipw_err *err)
{
    struct job *j = ud;
    int rc = open_scorer(j, q, err);

    return rc ? rc : 1; /* the first is enough */
}

/* The address of the run's server, freed by the caller; NULL: its demo model, which has ended. */
static char *server_of(const char *run)
{
    struct ipw_json *doc;
    const struct ipw_json *config;
    char *url = NULL;

    if (ipw_json_read(&doc, run, "manifest.json", NULL)) return NULL;
    config = ipw_json_get(doc, "config");
    if (strcmp(ipw_json_str(ipw_json_get(config, "model"), ""), "demo"))
        url = ipw_strdup(ipw_json_str(ipw_json_get(config, "client_base_url"), NULL));
    ipw_json_free(doc);
    return url;
}

/* Grades in the run's folder, which is locked meanwhile. */
static int grade_locked(struct job *j, struct ipw_grading *g, struct ipw_err *err)
{
    int closed, rc = ipw_rundir_open(&g->dir, j->run, err);

    if (rc) return rc;
    rc = ipw_grading_run(g, err);
    closed = ipw_rundir_close(g->dir, rc ? NULL : err);
    if (!rc) rc = closed;
    if (!rc && g->n_graded) rc = ipw_rebuild_summary(j->run, NULL, err);
    if (!rc && g->stop_signal) {
        j->code = 128 + g->stop_signal;
        rc = ipw_fail(err, IPW_ECANCELLED, "%s: interrupted; the same command continues", j->run);
    }
    return rc;
}

static int grade(struct job *j, struct ipw_err *err)
{
    struct ipw_workspaces workspaces = IPW_WORKSPACES_NONE;
    struct ipw_pricing pricing = {0};
    char *url = server_of(j->run);
    struct ipw_grading g = {.judge = &j->o->judge,
                            .script = &j->o->script,
                            .server.url = url,
                            .workspaces = &workspaces,
                            .pricing = &pricing,
                            .concurrency = GRADED_AT_A_TIME,
                            .quiet = j->o->json};
    bool pending = false;
    int rc = ipw_rundir_each_query(j->run, take_first, j, NULL, err);

    if (rc > 0) rc = 0;
    g.cases = j->cases;
    if (!rc && j->cases && !j->o->dry_run) rc = ipw_grading_pending(&pending, &g, j->run, err);
    if (!rc && pending) {
        j->code = IPW_EXIT_FAILED;
        rc = ipw_pricing_open(&pricing, NULL, false, err);
        if (!rc) rc = ipw_http_global_init(err);
        if (!rc) rc = ipw_loop_new(&g.loop, err);
        if (!rc) rc = grade_locked(j, &g, err);
        ipw_pricing_close(&pricing);
        if (g.loop) {
            ipw_loop_run(g.loop);
            ipw_loop_free(g.loop);
        }
        ipw_workspaces_remove(&workspaces);
    }
    free(url);
    return rc;
}

static int score(struct job *j, struct ipw_err *err)
{
    char *path = NULL;
    int rc = access(j->run, F_OK) ? ipw_fail_errno(err, errno, "%s: no such run", j->run) : 0;

    if (!rc) rc = grade(j, err);
    if (!rc) rc = ipw_rundir_each_query(j->run, take, j, NULL, err);
    if (!rc && j->n == j->n_missing)
        rc = j->n
                 ? ipw_fail(
                       err, IPW_ENOTFOUND,
                       "%s: dataset %s contains none of the run's %zu queries. Choose another with "
                       "--dataset.",
                       j->run, j->o->dataset ? j->o->dataset : ipw_dataset_name(j->cases), j->n)
                 : ipw_fail(err, IPW_ENOTFOUND, "%s: no query is finished", j->run);
    if (!rc && !j->o->dry_run) {
        j->code = IPW_EXIT_FAILED;
        path = j->o->output ? ipw_strdup(j->o->output) : ipw_asprintf("%s/scores.jsonl", j->run);
        rc = j->lines.failed ? ipw_fail(err, IPW_ELIMIT, "%s: too many scores", j->run)
                             : ipw_make_parents(path, err);
        if (!rc) rc = ipw_file_write_atomic(path, ipw_buf_str(&j->lines), j->lines.len, err);
    }
    if (!rc) print(j, path);
    free(path);
    return rc;
}

int ipw_cmd_score(int argc, char **argv)
{
    /* clang-format off */
    static const struct ipw_opt options[] = {
        {"dataset", 'd', IPW_OPT_STR, offsetof(struct score_options, dataset), "NAME|FILE", "dataset to score by (default: what the run saved)"},
        {"data-dir", 0, IPW_OPT_STR, offsetof(struct score_options, data_dir), "DIR", "folder of the dataset's own files"},
        {"encoding", 0, IPW_OPT_STR, offsetof(struct score_options, encoding), "NAME", "encoding of the dataset's text, such as latin1"},
        {"scorer", 's', IPW_OPT_STR, offsetof(struct score_options, scorer), "NAME|FILE", "scorer or FILE.lua (default: the dataset's)"},
        {"Judge", 0, IPW_OPT_SECTION, 0, NULL, NULL},
        {"", 0, IPW_OPT_BLOCK, offsetof(struct score_options, judge), NULL, NULL, .rows = ipw_judge_option_rows},
        {"Output", 0, IPW_OPT_SECTION, 0, NULL, NULL},
        {"dry-run", 0, IPW_OPT_FLAG, offsetof(struct score_options, dry_run), NULL, "write nothing"},
        {"output", 'o', IPW_OPT_STR, offsetof(struct score_options, output), "FILE", "output file (default: RUN/scores.jsonl)"},
        {"json", 0, IPW_OPT_FLAG, offsetof(struct score_options, json), NULL, "print one JSON object"},
        {"Scripts and safety", 0, IPW_OPT_SECTION, 0, NULL, NULL},
        {"", 0, IPW_OPT_BLOCK, offsetof(struct score_options, script), NULL, NULL, .rows = ipw_script_option_rows},
        IPW_OPT_END,
    };
    /* clang-format on */
    static const struct ipw_command command = {
        .name = "score",
        .usage = "score RUN [--dataset NAME|FILE] [--scorer NAME|FILE] [options]",
        .about = "Score the saved answers of a run again; show old and new scores side by side.\n"
                 "The run's own files stay unchanged; the new scores go to a separate file.\n"
                 "With --judge-model, answers without a verdict of that model are judged, and\n"
                 "the run's traces and summary get the verdicts. Programs of a dataset with the\n"
                 "rule code are run with their tests likewise.",
        .options = options,
        .more = "Scorers: " IPW_SCORERS ".\n\n"
                "Exit status: 0 done, 1 failed, 2 wrong usage, 3 unreadable run or dataset.",
        .min_args = 1,
        .max_args = 1,
    };
    struct score_options o = {0};
    struct job j = {.o = &o,
                    .code = IPW_EXIT_INPUT,
                    .lines = IPW_BUF(MAX_BYTES),
                    .flips = IPW_BUF(MAX_BYTES),
                    .reworded = IPW_BUF(IPW_MIB),
                    .flips_json = IPW_BUF(MAX_BYTES)};
    struct ipw_err err = {0};
    char **args;
    int n, code = IPW_EXIT_OK, rc = ipw_options_parse(&command, argc, argv, &o, &args, &n, &err);

    if (!rc) rc = ipw_judge_options_check(&o.judge, &err);
    if (!rc && o.judge.model && o.dry_run)
        rc = ipw_fail(&err, IPW_EINVAL,
                      "--dry-run writes nothing, and --judge-model writes verdicts");
    if (rc) {
        code = rc > 0 ? IPW_EXIT_OK : ipw_exit_with(&err, IPW_EXIT_USAGE);
    } else {
        ipw_script_options_apply(&o.script);
        j.run = args[0];
        if (score(&j, &err)) code = ipw_exit_with(&err, j.code);
    }
    ipw_dataset_free(j.cases);
    ipw_buf_release(&j.lines);
    ipw_buf_release(&j.flips);
    ipw_buf_release(&j.reworded);
    ipw_buf_release(&j.flips_json);
    ipw_script_options_release(&o.script);
    return code;
}
