/* compare RUN_A RUN_B: the differences of two runs, and which are significant. */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app/commands.h"
#include "app/doubts.h"
#include "app/options.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/secret.h"
#include "base/terminal.h"
#include "json/jsonl.h"
#include "report/compare.h"
#include "report/table.h"
#include "trace/rundir.h"

enum { MAX_OUTPUT_BYTES = 1024 * 1024 * 1024, MAX_MANIFEST_BYTES = 64 * 1024 * 1024 };

struct compare_options {
    bool json, turns;
};

struct taking {
    struct ipw_compare_run *run;
    struct ipw_doubts doubts;
};

static int take(void *ud, struct ipw_query_loaded *query, struct ipw_err *err)
{
    struct taking *t = ud;

    (void)err;
    ipw_doubts_apply(&t->doubts, &query->trace);
    ipw_compare_add(t->run, query);
    return 0;
}

/* A file of traces has no manifest, so its settings are unknown. */
static int read_manifest(struct ipw_buf *bytes, const char *path, struct ipw_err *err)
{
    char *manifest = ipw_asprintf("%s/manifest.json", path);
    struct ipw_err why = {0};
    int rc = ipw_file_read(bytes, manifest, &why);

    free(manifest);
    if (!rc || why.detail == ENOENT || why.detail == ENOTDIR) return 0;
    *err = why;
    return rc;
}

static int read_run(struct ipw_compare_run *run, const char *path, struct ipw_err *err)
{
    struct ipw_buf manifest = IPW_BUF(MAX_MANIFEST_BYTES);
    struct taking taking = {.run = run};
    int torn = 0, rc = read_manifest(&manifest, path, err);

    if (!rc) {
        ipw_doubts_load(&taking.doubts, ipw_buf_str(&manifest), manifest.len);
        rc = ipw_rundir_each_query(path, take, &taking, &torn, err);
    }
    if (!rc) ipw_compare_manifest(run, ipw_buf_str(&manifest), manifest.len);
    if (torn) ipw_say("%s: a torn last line was left out", path);
    ipw_buf_release(&manifest);
    return rc;
}

static int print(const struct ipw_buf *out, struct ipw_err *err)
{
    if (fwrite(ipw_buf_str(out), 1, out->len, stdout) != out->len || fflush(stdout))
        return ipw_fail(err, IPW_EIO, "standard output: the result could not be written");
    return 0;
}

int ipw_cmd_compare(int argc, char **argv)
{
    /* clang-format off */
    static const struct ipw_opt options[] = {
        {"turns", 0, IPW_OPT_FLAG, offsetof(struct compare_options, turns), NULL, "also print every pair of turns"},
        {"json", 0, IPW_OPT_FLAG, offsetof(struct compare_options, json), NULL, "print one JSON object with every pair"},
        IPW_OPT_END,
    };
    /* clang-format on */
    static const struct ipw_command command = {
        .name = "compare",
        .usage = "compare RUN_A RUN_B [--turns] [--json]",
        .about = "Compare two runs by query and turn: accuracy, energy, joules per token, time,\n"
                 "tokens. Show which differences are significant (95 % interval). Show how each\n"
                 "run was made, and warn if that differs.",
        .options = options,
        .more = "Queries are paired by id, turns by position. The repeats of a task and the turns\n"
                "of a query are averaged first, so each task counts once. A difference is\n"
                "significant if its 95 % interval over tasks does not contain 0 (Student's t\n"
                "below 20 tasks, bootstrap from 20 on). With fewer than 3 tasks no significance\n"
                "is reported. Sensor bounds are the lowest and highest energy that the readings\n"
                "allow.",
        .min_args = 2,
        .max_args = 2,
    };
    struct compare_options o = {0};
    struct ipw_compare_run runs[2] = {{0}};
    struct ipw_compare compare = {0};
    struct ipw_buf out = IPW_BUF(MAX_OUTPUT_BYTES);
    struct ipw_err err = {0};
    char **args;
    int n, code = IPW_EXIT_INPUT;
    int rc = ipw_options_parse(&command, argc, argv, &o, &args, &n, &err);

    if (rc) return rc > 0 ? IPW_EXIT_OK : ipw_exit_with(&err, IPW_EXIT_USAGE);
    for (int i = 0; i < 2 && !rc; i++) rc = read_run(&runs[i], args[i], &err);
    if (!rc) {
        ipw_compare_make(&compare, &runs[0], &runs[1]);
        if (!compare.n)
            rc = ipw_fail(&err, IPW_EINVAL, "%s and %s have no query in common", args[0], args[1]);
    }
    if (!rc) {
        if (o.json)
            ipw_compare_write(&out, &compare, args[0], args[1]);
        else
            ipw_compare_print(&out, &compare, args[0], args[1], o.turns,
                              ipw_use_colour(STDOUT_FILENO));
        code = IPW_EXIT_FAILED;
        rc = print(&out, &err);
    }
    ipw_compare_free(&compare);
    ipw_compare_release(&runs[0]);
    ipw_compare_release(&runs[1]);
    ipw_buf_release(&out);
    return rc ? ipw_exit_with(&err, code) : IPW_EXIT_OK;
}
