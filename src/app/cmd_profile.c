/* profile: single-turn runs at several levels of load, and their latencies and joules. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "app/commands.h"
#include "app/runs_command.h"
#include "base/mem.h"
#include "base/open.h"

extern char **environ;

enum { MAX_STEPS = 32 };

struct profile_options {
    struct ipw_workbench_options bench;
    const char *dataset, *concurrency, *rate, *arrivals, *slo, *output;
    int64_t limit, warmup;
    bool json;
};

/* clang-format off */
#define AT(field) offsetof(struct profile_options, field)
static const struct ipw_opt options[] = {
    {"dataset", 'd', IPW_OPT_STR, AT(dataset), "NAME|FILE", "dataset name or file"},
    {"limit", 'n', IPW_OPT_INT, AT(limit), "N", "use the first N tasks", 1, 1000000000},
    {"warmup", 0, IPW_OPT_INT, AT(warmup), "N", "queries before each step, not counted (default: 3)", 0, 1000000},
    {"concurrency", 'c', IPW_OPT_STR, AT(concurrency), "N,N,...", "queries in flight, a step each (default: 1)"},
    {"rate", 0, IPW_OPT_STR, AT(rate), "X,X,...", "requests per second on a schedule, a step each"},
    {"arrivals", 0, IPW_OPT_STR, AT(arrivals), "PATTERN", "--rate: poisson (default), poisson:SEED, constant"},
    {"slo", 0, IPW_OPT_STR, AT(slo), "NAME:S,...", "goodput: limits of ttft, ttfo, itl, latency"},
    {"output", 'o', IPW_OPT_STR, AT(output), "DIR", "new folder of the runs (default: in runs/)"},
    {"json", 0, IPW_OPT_FLAG, AT(json), NULL, "print one JSON object"},
    {"", 0, IPW_OPT_BLOCK, 0, NULL, NULL, .rows = ipw_workbench_model_rows},
    IPW_OPT_END,
};
/* clang-format on */

static const struct ipw_command command = {
    .name = "profile",
    .usage = "profile --dataset D --model M [-c N,N|--rate X,X] [-- OPTIONS]",
    .about = "Profile a server with single-turn requests: latencies with percentiles,\n"
             "throughput, goodput, joules per request and per token; a sweep and its knee.",
    .options = options,
    .more = "Each step is a run of the agent single, with --warmup queries before it. What\n"
            "follows -- are options of run. With --rate latencies count from the moment at\n"
            "which a request was due. docs/analysis.md defines the metrics and names their\n"
            "counterparts in AIPerf, guidellm and vLLM.\n\n"
            "  ipw-agent profile -d gsm8k -m Qwen3-8B -c 1,2,4,8 --slo ttft:0.5,itl:0.05",
    .min_args = 0,
    .max_args = -1,
};

struct step { /* of the sweep: its number as it was given */
    char text[24];
};

/* "1,2,4" for --concurrency, "0.5,1,2" for --rate. */
static int read_steps(struct step *steps, size_t *n, const struct profile_options *o,
                      struct ipw_err *err)
{
    const char *text = o->rate ? o->rate : o->concurrency ? o->concurrency : "1", *at = text;

    for (*n = 0;; at++) {
        char *end;
        double value = strtod(at, &end);
        size_t len = (size_t)(end - at);

        if (!len || !(value > 0 && value <= 1e6) || (!o->rate && value != floor(value)) ||
            (*end && *end != ',') || *n == MAX_STEPS || len >= sizeof steps->text)
            return ipw_fail(err, IPW_EINVAL,
                            "--%s '%.60s': expected at most %d %snumbers above 0, such as %s",
                            o->rate ? "rate" : "concurrency", text, MAX_STEPS,
                            o->rate ? "" : "whole ", o->rate ? "0.5,1,2" : "1,2,4,8");
        snprintf(steps[(*n)++].text, sizeof steps->text, "%.*s", (int)len, at);
        at = end;
        if (!*at) return 0;
    }
}

/* "ttft:0.5,itl:0.05" */
static int check_slo(const char *text, struct ipw_err *err)
{
    static const char *const names[] = {"ttft", "ttfo", "itl", "latency", NULL};

    for (const char *at = text; at && *at;) {
        size_t name = strcspn(at, ":,"), i = 0;
        char *end = NULL;

        while (names[i] && (strlen(names[i]) != name || strncmp(names[i], at, name))) i++;
        if (names[i] && at[name] == ':') (void)!strtod(at + name + 1, &end);
        if (!end || end == at + name + 1 || (*end && *end != ','))
            return ipw_fail(err, IPW_EINVAL,
                            "--slo '%.60s': expected NAME:SECONDS,... with the names ttft, ttfo, "
                            "itl, latency",
                            text);
        at = *end ? end + 1 : end;
    }
    return 0;
}

static int check(const struct profile_options *o, struct step *steps, size_t *n,
                 struct ipw_err *err)
{
    int rc;

    if (!o->dataset) return ipw_fail(err, IPW_EINVAL, "profile: --dataset is missing");
    if (o->rate && o->concurrency)
        return ipw_fail(err, IPW_EINVAL,
                        "profile: --rate or --concurrency; `-- --concurrency N` limits what a rate "
                        "has in flight");
    rc = read_steps(steps, n, o, err);
    return rc ? rc : check_slo(o->slo, err);
}

/* The runs' folder: a new one. */
static char *make_folder(const struct profile_options *o, struct ipw_err *err)
{
    char stamp[32] = "", *folder;
    time_t now = time(NULL);
    struct tm at;

    if (gmtime_r(&now, &at)) strftime(stamp, sizeof stamp, "%Y%m%dT%H%M%SZ", &at);
    folder = o->output ? ipw_strdup(o->output) : ipw_asprintf("runs/profile_%s", stamp);
    if (!ipw_make_parents(folder, err)) {
        if (mkdir(folder, 0777) == 0) return folder;
        if (errno == EEXIST)
            ipw_fail(err, IPW_EEXISTS, "%s already exists; --output names a new folder", folder);
        else
            ipw_fail_errno(err, errno, "%s", folder);
    }
    free(folder);
    return NULL;
}

/* One step: `run single`, a process of its own, so that each step begins with nothing. */
static int run_step(const struct profile_options *o, const char *level, const char *folder,
                    char **extra, int n_extra, struct ipw_err *err)
{
    size_t n_urls = o->bench.server.net.base_urls.n, n = 0;
    char *warmup = ipw_asprintf("%lld", (long long)o->warmup);
    char *limit = ipw_asprintf("%lld", (long long)o->limit);
    const char **args = ipw_calloc(32 + 2 * n_urls + (size_t)n_extra, sizeof *args);
    posix_spawn_file_actions_t files;
    pid_t pid = 0;
    int failed, status = 0, rc = 0;

#define ADD(option, value) (args[n++] = (option), args[n++] = (value))
    ADD("ipw-agent", "run");
    ADD("single", "--quiet");
    ADD("--dataset", o->dataset);
    ADD(o->rate ? "--rate" : "--concurrency", level);
    if (o->arrivals) ADD("--arrivals", o->arrivals);
    ADD("--warmup", warmup);
    ADD("--output", folder);
    if (o->limit) ADD("--limit", limit);
    if (o->bench.server.model) ADD("--model", o->bench.server.model);
    if (o->bench.server.api_key_env) ADD("--api-key-env", o->bench.server.api_key_env);
    for (size_t i = 0; i < n_urls; i++) ADD("--base-url", o->bench.server.net.base_urls.items[i]);
#undef ADD
    for (int i = 0; i < n_extra; i++) args[n++] = extra[i];
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, 1, "/dev/null", O_WRONLY, 0);
    failed = posix_spawn(&pid, "/proc/self/exe", &files, NULL, (char *const *)args, environ);
    posix_spawn_file_actions_destroy(&files);
    if (failed)
        rc = ipw_fail_errno(err, failed, "the run cannot be started");
    else if (TEMP_FAILURE_RETRY(waitpid(pid, &status, 0)) != pid || status != 0)
        rc = ipw_fail(err, IPW_EIO, "the run with %s %s ended with status %d", level,
                      o->rate ? "requests/s" : "in flight",
                      WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
    free(args);
    free(warmup);
    free(limit);
    return rc;
}

static int sweep(int64_t *status, struct profile_options *o, const struct step *steps, size_t n,
                 char **extra, int n_extra, struct ipw_err *err)
{
    char *folder = make_folder(o, err), *runs[MAX_STEPS] = {NULL}, *slo = NULL;
    const char *args[3] = {NULL};
    size_t done = 0, k = 0;
    int rc = folder ? 0 : err->code;

    for (; !rc && done < n; done++) {
        runs[done] = ipw_asprintf("%s/%c%s", folder, o->rate ? 'r' : 'c', steps[done].text);
        rc = run_step(o, steps[done].text, runs[done], extra, n_extra, err);
    }
    if (o->json) args[k++] = "json";
    if (o->slo) args[k++] = slo = ipw_asprintf("slo=%s", o->slo);
    if (!rc)
        rc = ipw_runs_command(
            status, &o->bench,
            &(struct ipw_export_job){.runs = runs, .n_runs = (int)n, .stream = stdout},
            "ipw.cli.profile", args, err);
    if (!rc && !o->json) printf("\n  runs in %s\n", folder);
    for (size_t i = 0; i < n; i++) free(runs[i]);
    free(slo);
    free(folder);
    return rc;
}

int ipw_cmd_profile(int argc, char **argv)
{
    struct profile_options o = {.warmup = 3};
    struct ipw_err err = {0};
    struct step steps[MAX_STEPS];
    int64_t status = 0;
    size_t n_steps = 0;
    char **extra;
    int n, rc;

    ipw_runs_defaults(&o.bench);
    o.warmup = 3;
    rc = ipw_options_parse(&command, argc, argv, &o, &extra, &n, &err);
    if (!rc) rc = check(&o, steps, &n_steps, &err);
    if (rc) {
        free(o.bench.server.net.base_urls.items);
        return rc > 0 ? IPW_EXIT_OK : ipw_exit_with(&err, IPW_EXIT_USAGE);
    }
    rc = sweep(&status, &o, steps, n_steps, extra, n, &err);
    free(o.bench.server.net.base_urls.items); /* if it ended before the workbench did */
    return rc ? ipw_exit_with(&err, IPW_EXIT_FAILED) : (int)status;
}
