/* compare RUN_A RUN_B: which one, and is the difference real. */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "app/commands.h"
#include "app/options.h"
#include "app/progress.h"
#include "base/log.h"
#include "base/secret.h"
#include "report/compare.h"
#include "report/table.h"
#include "trace/rundir.h"

enum { MAX_OUTPUT_BYTES = 1024 * 1024 * 1024 };

struct compare_options {
    bool json, turns;
};

static int take(void *ud, struct ipw_query_loaded *query, struct ipw_err *err)
{
    (void)err;
    ipw_compare_add(ud, query);
    return 0;
}

static int print(const struct ipw_buf *out, struct ipw_err *err)
{
    if (fwrite(ipw_buf_str(out), 1, out->len, stdout) != out->len || fflush(stdout))
        return ipw_fail(err, IPW_EIO, "standard output: the result could not be written");
    return 0;
}

int ipw_cmd_compare(int argc, char **argv)
{
    static const struct ipw_opt options[] = {
        {"turns", 't', IPW_OPT_FLAG, offsetof(struct compare_options, turns), NULL,
         "print every pair of turns too"},
        {"json", 0, IPW_OPT_FLAG, offsetof(struct compare_options, json), NULL,
         "print one JSON object, with every pair"},
        {NULL, 0, IPW_OPT_FLAG, 0, NULL, NULL},
    };
    static const struct ipw_command command = {
        .name = "compare",
        .usage = "compare RUN_A RUN_B [--turns] [--json]",
        .about =
            "Sets two runs beside each other, query by query and turn by turn: accuracy, joules,\n"
            "seconds, tokens, and whether a difference is real.",
        .options = options,
        .more =
            "Queries are paired by their id, turns by their place.  Repeats of a query, and the\n"
            "turns of one, are averaged first: each task counts once.  A difference is called "
            "real\n"
            "when its 95 % interval over tasks does not hold 0 (Student's t below 20 tasks,\n"
            "bootstrap from 20 on), else \"not shown\"; below 3 tasks nothing is said.",
        .min_args = 2,
        .max_args = 2,
    };
    struct compare_options o = {0};
    struct ipw_compare_run runs[2] = {{0}};
    struct ipw_compare compare = {0};
    struct ipw_buf out = IPW_BUF(MAX_OUTPUT_BYTES);
    struct ipw_err err = {0};
    char **args;
    int n, torn, code = IPW_EXIT_INPUT;
    int rc = ipw_options_parse(&command, argc, argv, &o, &args, &n, &err);

    if (rc) return rc > 0 ? IPW_EXIT_OK : ipw_exit_with(&err, IPW_EXIT_USAGE);
    for (int i = 0; i < 2 && !rc; i++) {
        rc = ipw_rundir_each_query(args[i], take, &runs[i], &torn, &err);
        if (torn) ipw_say("%s: a torn last line was left out", args[i]);
    }
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
