#include "app/cmd_lua.h"

#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app/calls.h"
#include "app/workbench.h"
#include "base/log.h"
#include "base/mem.h"
#include "io/proc.h"

/* clang-format off */
#define AT(field) offsetof(struct ipw_workbench_options, field)
static const struct ipw_opt path_rows[] = {
    {"path", 'p', IPW_OPT_LIST, AT(script.paths), "DIR", "search here first"},
    IPW_OPT_END,
}, script_rows[] = {
    IPW_WORKBENCH_SCRIPTS,
    IPW_OPT_END,
}, rights_rows[] = {
    {"Scripts and safety", 0, IPW_OPT_SECTION, 0, NULL, NULL},
    {"", 0, IPW_OPT_BLOCK, AT(script), NULL, NULL, .rows = ipw_script_option_rows},
    IPW_OPT_END,
}, mcp_rows[] = {
    {"", 0, IPW_OPT_BLOCK, AT(script.mcp), NULL, NULL, .rows = ipw_mcp_option_rows},
    IPW_OPT_END,
}, server_rows[] = {
    {"", 0, IPW_OPT_BLOCK, AT(find), NULL, NULL, .rows = ipw_server_option_rows},
    IPW_OPT_END,
}, judge_rows[] = {
    {"", 0, IPW_OPT_BLOCK, AT(judge), NULL, NULL, .rows = ipw_judge_option_rows},
    IPW_OPT_END,
}, verbose_rows[] = {
    {"verbose", 'v', IPW_OPT_FLAG, AT(verbose), NULL, "print what happens"},
    IPW_OPT_END,
};
/* clang-format on */

/* The rows that a command's file can name. */
static const struct ipw_command_block blocks[] = {
    {"model", ipw_workbench_model_rows},
    {"scripts", script_rows},
    {"path", path_rows},
    {"verbose", verbose_rows},
    {"rights", rights_rows},
    {"mcp", mcp_rows},
    {"server", server_rows},
    {"judge", judge_rows},
    {NULL, NULL},
};

struct call {
    struct ipw_command_file file;
    struct ipw_workbench_options *o; /* and behind it the values of the file's own options */
    struct ipw_workbench bench;
    char **args;
    int n_args;
};

static enum ipw_workbench_model model_of(const struct ipw_command_file *file)
{
    if (!file->model) return IPW_BENCH_NO_MODEL;
    if (strcmp(file->model, "find") == 0) return IPW_BENCH_FIND_MODEL;
    return strcmp(file->model, "any") ? IPW_BENCH_NAMED_MODEL : IPW_BENCH_ANY_MODEL;
}

static int parse(struct call *c, int argc, char **argv, struct ipw_err *err)
{
    int rc;

    c->o = ipw_command_file_values(&c->file);
    ipw_workbench_defaults(c->o);
    c->o->lua_cpu_ns = c->file.cpu_ns;
    argv = ipw_options_before(&c->file.command, &argc, argv);
    rc = ipw_options_parse(&c->file.command, argc, argv, c->o, &c->args, &c->n_args, err);
    return rc ? rc : ipw_judge_options_check(&c->o->judge, err);
}

static int open_bench(struct call *c, struct ipw_err *err)
{
    int rc;

    /* Programs that a command of ours starts read what the user can: a sandbox would hide it. */
    if (c->file.children) c->o->script.unsafe_tools = true;
    if (c->file.lines) setvbuf(stdout, NULL, _IOLBF, 0);
    signal(SIGXFSZ, SIG_IGN); /* a limit of a file's size is an error, and tidied up */
    rc = ipw_workbench_open(&c->bench, c->o, model_of(&c->file), err);
    c->bench.host.grants.may_download = c->file.downloads;
    c->bench.memory_bytes = c->file.memory_bytes;
    return rc;
}

/* `run` with these arguments, or `total` with what it returned for each. */
static int run(struct call *c, int64_t *status, char **args, size_t n, const int64_t *results,
               struct ipw_err *err)
{
    char program[PATH_MAX], folder[PATH_MAX];
    struct ipw_err unknown;
    bool beside = c->file.beside || c->file.each;
    struct ipw_lua_command entry = {
        .file = &c->file,
        .values = c->o,
        .args = args,
        .n_args = n,
        .results = results,
        .calls = ipw_calls,
        .facts = {.version = IPW_VERSION, .model = c->bench.connection.model},
    };

    if (!ipw_proc_own_file(program, sizeof program, &unknown)) entry.facts.program = program;
    entry.facts.folder = getcwd(folder, sizeof folder);
    return ipw_workbench_command(&c->bench, status, &entry, beside && n && !results ? *args : NULL,
                                 err);
}

static int exit_of(const struct call *c, const struct ipw_err *err)
{
    fflush(stdout);
    return ipw_exit_with(err, c->file.failed >= 0 ? c->file.failed : ipw_workbench_exit(err));
}

/* A file for each argument: one that fails does not stop the others. */
static int run_each(struct call *c, struct ipw_err *err)
{
    int64_t *results = ipw_calloc((size_t)c->n_args + 1, sizeof *results), status = 0;
    int rc;

    for (int i = 0; i < c->n_args; i++)
        if (run(c, &results[i], &c->args[i], 1, NULL, err)) results[i] = -exit_of(c, err);
    rc = run(c, &status, NULL, (size_t)c->n_args, results, err);
    free(results);
    return rc ? exit_of(c, err) : (int)status;
}

static int run_all(struct call *c, struct ipw_err *err)
{
    int64_t status = 0;
    int rc = run(c, &status, c->args, (size_t)c->n_args, NULL, err);

    while (rc == IPW_ELIMIT && c->file.again) {
        fflush(stdout);
        ipw_say("%s: restarted the Lua state; all variables are lost", err->text);
        rc = run(c, &status, c->args, (size_t)c->n_args, NULL, err);
    }
    return rc ? exit_of(c, err) : (int)status;
}

int ipw_cmd_lua(int argc, char **argv, bool built_in)
{
    struct call c = {.o = NULL};
    struct ipw_err err = {0};
    int code, rc = ipw_command_file_open(&c.file, argv[0], built_in, blocks,
                                         sizeof(struct ipw_workbench_options), &err);

    if (rc == IPW_ENOTFOUND && !built_in) return -1;
    if (rc) return ipw_exit_with(&err, IPW_EXIT_INPUT);
    rc = parse(&c, argc, argv, &err);
    if (rc) {
        code = rc > 0 ? IPW_EXIT_OK : ipw_exit_with(&err, IPW_EXIT_USAGE);
    } else {
        rc = open_bench(&c, &err);
        code = rc ? exit_of(&c, &err) : c.file.each ? run_each(&c, &err) : run_all(&c, &err);
    }
    ipw_workbench_close(&c.bench, c.o);
    ipw_command_file_values_free(&c.file, c.o);
    ipw_command_file_close(&c.file);
    return code;
}
