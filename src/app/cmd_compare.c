/* compare RUN_A RUN_B...: the differences of runs, and which are significant. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app/commands.h"
#include "app/runs_command.h"
#include "base/mem.h"
#include "base/terminal.h"

struct compare_options {
    struct ipw_workbench_options bench;
    struct ipw_opt_list gates;
    const char *junit;
    bool json, markdown, turns;
};

/* clang-format off */
#define AT(field) offsetof(struct compare_options, field)
static const struct ipw_opt options[] = {
    {"gate", 0, IPW_OPT_LIST, AT(gates), "EXPR", "fail unless 'accuracy>=-1pt' holds; may be repeated"},
    {"junit", 0, IPW_OPT_STR, AT(junit), "FILE", "write the gates as JUnit XML"},
    {"markdown", 0, IPW_OPT_FLAG, AT(markdown), NULL, "print tables for a pull request"},
    {"turns", 0, IPW_OPT_FLAG, AT(turns), NULL, "also print every pair of turns"},
    {"json", 0, IPW_OPT_FLAG, AT(json), NULL, "print one JSON object with every pair"},
    IPW_OPT_END,
};
/* clang-format on */

static const struct ipw_command command = {
    .name = "compare",
    .usage = "compare RUN_A RUN_B... [--gate EXPR] [--markdown | --json]",
    .about = "Compare runs with the first one by query and turn: accuracy, energy, joules per\n"
             "token, time, tokens. Show which differences are significant (95 % interval),\n"
             "what the runs were made with, and warn where that differs.",
    .options = options,
    .more = "Queries are paired by their id, turns by their place. Repeats of a query, and\n"
            "the turns of one, are averaged first: each task counts once. A difference is\n"
            "significant if its 95 % interval over tasks does not contain 0 (Student's t\n"
            "below 20 tasks, bootstrap from 20 on; of accuracies Newcombe's interval from\n"
            "Wilson's); with fewer than 3 tasks no significance is reported. Sensor bounds\n"
            "are the lowest and highest energy that the readings allow.\n\n"
            "A gate is METRIC>=BOUND or METRIC<=BOUND on the change from RUN_A: accuracy (in\n"
            "pt), j_query, j_solved, j_output_token, j_token, seconds, input_tokens,\n"
            "output_tokens, turns. BOUND has the metric's unit, or % of RUN_A's value:\n"
            "  --gate 'accuracy>=-1pt' --gate 'j_solved<=+3%'\n"
            "Exit status: 0 all held, 5 one is broken, 6 the interval does not tell.",
    .min_args = 2,
    .max_args = -1,
};

/* The script's arguments, NULL-terminated; the texts of the gates are in `texts`. */
static const char **arguments(const struct compare_options *o, char **texts)
{
    const char **args = ipw_calloc(o->gates.n + 6, sizeof *args);
    size_t n = 0;

    for (size_t i = 0; i < o->gates.n; i++)
        args[n++] = texts[i] = ipw_asprintf("gate=%s", o->gates.items[i]);
    if (o->junit) args[n++] = "junit";
    if (o->markdown) args[n++] = "markdown";
    if (o->turns) args[n++] = "turns";
    if (o->json) args[n++] = "json";
    if (ipw_use_colour(STDOUT_FILENO)) args[n] = "colour";
    return args;
}

int ipw_cmd_compare(int argc, char **argv)
{
    struct compare_options o = {.junit = NULL};
    struct ipw_err err = {0};
    int64_t status = 0;
    const char **args;
    char **runs, **texts;
    int n, rc;

    ipw_runs_defaults(&o.bench);
    rc = ipw_options_parse(&command, argc, argv, &o, &runs, &n, &err);
    if (!rc && o.junit && !o.gates.n)
        rc = ipw_fail(&err, IPW_EINVAL, "compare: --junit goes with --gate");
    if (rc) {
        free(o.gates.items);
        return rc > 0 ? IPW_EXIT_OK : ipw_exit_with(&err, IPW_EXIT_USAGE);
    }
    texts = ipw_calloc(o.gates.n + 1, sizeof *texts);
    args = arguments(&o, texts);
    rc = ipw_runs_command(
        &status, &o.bench,
        &(struct ipw_export_job){.runs = runs, .n_runs = n, .output = o.junit, .stream = stdout},
        "ipw.cli.compare", args, &err);
    for (size_t i = 0; i < o.gates.n; i++) free(texts[i]);
    free(texts);
    free(args);
    free(o.gates.items);
    return rc ? ipw_exit_with(&err, IPW_EXIT_INPUT) : (int)status;
}
