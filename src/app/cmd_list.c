/* list: the agents, tools, datasets, models and sensors.  show: the text of a built-in file. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/cmd_models.h"
#include "app/commands.h"
#include "app/options.h"
#include "app/workbench.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/text.h"
#include "energy/select.h"
#include "energy/trust.h"
#include "script/embedded.h"
#include "script/installed.h"
#include "script/search.h"
#include "script/vm.h"

struct list_options {
    struct ipw_opt_list paths;
    struct ipw_mcp_options mcp;       /* of tools */
    struct ipw_server_options server; /* of models */
};

struct rows {
    char **lines;
    size_t n, cap;
};

static void gather(void *ud, const char *name, const char *path)
{
    struct rows *rows = ud;

    IPW_GROW(rows->lines, rows->cap, rows->n + 1);
    rows->lines[rows->n++] = ipw_asprintf("%-20s %s", name, path);
}

static void gather_pair(void *ud, const char *name, const char *path)
{
    struct rows *rows = ud;

    IPW_GROW(rows->lines, rows->cap, rows->n + 1);
    rows->lines[rows->n++] = ipw_asprintf("%s%c%s", name, '\t', path);
}

static int compare_lines(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The channels of an open source that count towards a domain but are not believed. */
static void list_doubts(const struct ipw_source_set *set, const struct ipw_trust *test,
                        const char *name)
{
    size_t at = 0;

    for (size_t i = 0; i < set->n; i++) {
        for (size_t k = 0; k < set->sources[i]->n_channels; k++, at++) {
            struct ipw_trust_verdict b = ipw_trust_verdict(test, at);

            if (strcmp(set->sources[i]->name, name) || b.believed) continue;
            if (set->channels[at].in_sum)
                printf("%-20s %s %s\n", "", set->channels[at].name, b.words);
        }
    }
}

static bool is_looked_for(const struct ipw_source_set *set, const char *kind)
{
    for (size_t i = 0; i < set->n_verdicts; i++)
        if (strcmp(set->verdicts[i].name, kind) == 0) return true;
    return false;
}

/* The supported sensors, and whether this machine has them. */
static int list_sensors(void)
{
    struct ipw_source_set set;
    struct ipw_trust *test;

    ipw_source_set_open(&set);
    test = ipw_trust_new(set.channels, set.n_channels);
    ipw_trust_watch(test, &set, 0);
    for (size_t i = 0; i < set.n_verdicts; i++) {
        const struct ipw_source_verdict *v = &set.verdicts[i];
        printf("%-20s %s%s\n", v->name, v->code == IPW_OK ? "" : "not here: ", v->text);
        if (v->code == IPW_OK) list_doubts(&set, test, v->name);
    }
    ipw_trust_free(test);
    for (const char *const *k = ipw_source_kinds(); *k; k++)
        if (!is_looked_for(&set, *k))
            printf("%-20s named: --telemetry %s%s\n", *k, *k,
                   (*k)[strlen(*k) - 1] == '=' ? "..." : "");
    ipw_source_set_close(&set);
    return IPW_EXIT_OK;
}

/* The tools of the MCP servers; takes over the options' lists. */
static int list_servers(struct list_options *lists)
{
    struct ipw_workbench_options o;
    struct ipw_workbench bench;
    struct ipw_err err = {0};
    int64_t status = 0;
    char count[24];
    int rc;

    ipw_workbench_defaults(&o);
    o.script.paths = lists->paths;
    o.script.mcp = lists->mcp;
    rc = ipw_workbench_open(&bench, &o, IPW_BENCH_NO_MODEL, &err);
    if (!rc) {
        snprintf(count, sizeof count, "%zu", bench.host.grants.n_servers);
        rc = ipw_workbench_run(&bench, &status, "ipw.cli.list_mcp", NULL,
                               (const char *const[]){count, NULL}, &err);
    }
    ipw_workbench_close(&bench, &o);
    return rc ? ipw_exit_with(&err, ipw_workbench_exit(&err)) : (int)status;
}

/* Their state on this machine is lua/ipw/cli/datasets.lua's; takes over the list of paths. */
static int list_datasets(struct ipw_opt_list *paths)
{
    struct ipw_workbench_options o;
    struct ipw_workbench bench;
    struct ipw_err err = {0};
    struct rows rows = {0};
    int64_t status = 0;
    const char **args;
    int rc;

    ipw_workbench_defaults(&o);
    o.script.paths = *paths;
    ipw_search_each("datasets", (const char *const *)paths->items, gather_pair, &rows);
    if (rows.n) qsort(rows.lines, rows.n, sizeof *rows.lines, compare_lines);
    args = ipw_calloc(2 * rows.n + 1, sizeof *args);
    for (size_t i = 0; i < rows.n; i++) {
        char *tab = strchr(rows.lines[i], '\t');

        *tab = '\0';
        args[2 * i] = rows.lines[i];
        args[2 * i + 1] = tab + 1;
    }
    o.lua_cpu_ns = 300 * IPW_NS_PER_S; /* counting rows is work, not a hang */
    rc = ipw_workbench_open(&bench, &o, IPW_BENCH_NO_MODEL, &err);
    if (!rc) rc = ipw_workbench_run(&bench, &status, "ipw.cli.datasets", NULL, args, &err);
    ipw_workbench_close(&bench, &o);
    for (size_t i = 0; i < rows.n; i++) free(rows.lines[i]);
    free(rows.lines);
    free(args);
    return rc ? ipw_exit_with(&err, ipw_workbench_exit(&err)) : (int)status;
}

int ipw_cmd_list(int argc, char **argv)
{
    static const char *const kinds[] = {"agents", "tools", "datasets", "models", "sensors", NULL};
    /* clang-format off */
    static const struct ipw_opt options[] = {
        {"path", 'p', IPW_OPT_LIST, offsetof(struct list_options, paths), "DIR", "search here first"},
        {"", 0, IPW_OPT_BLOCK, offsetof(struct list_options, mcp), NULL, NULL, .rows = ipw_mcp_option_rows},
        {"", 0, IPW_OPT_BLOCK, offsetof(struct list_options, server), NULL, NULL, .rows = ipw_server_option_rows},
        IPW_OPT_END,
    };
    /* clang-format on */
    static const struct ipw_command command = {
        .name = "list",
        .usage = "list agents|tools|datasets|models|sensors",
        .about = "List agents, tools, datasets, models or sensors, and where each comes from.\n"
                 "For a dataset also: whether it is here, its rows, its scorer, how to fetch it.",
        .options = options,
        .min_args = 1,
        .max_args = 1,
    };
    struct list_options o = {0};
    struct rows rows = {0};
    struct ipw_err err = {0};
    const char *near;
    char **args;
    int n, rc = ipw_options_parse(&command, argc, argv, &o, &args, &n, &err);

    if (rc) {
        free(o.paths.items);
        return rc > 0 ? IPW_EXIT_OK : ipw_exit_with(&err, IPW_EXIT_USAGE);
    }
    if (strcmp(args[0], "sensors") == 0) {
        free(o.paths.items);
        return list_sensors();
    }
    if (strcmp(args[0], "models") == 0) {
        free(o.paths.items);
        return ipw_list_models(&o.server);
    }
    if (strcmp(args[0], "agents") && strcmp(args[0], "tools") && strcmp(args[0], "datasets")) {
        near = ipw_nearest(args[0], kinds);
        ipw_fail(&err, IPW_EINVAL,
                 "list: unknown kind '%s'%s%s%s; use agents, tools, datasets, models or sensors",
                 args[0], near ? " (did you mean '" : "", near ? near : "", near ? "'?)" : "");
        free(o.paths.items);
        return ipw_exit_with(&err, IPW_EXIT_USAGE);
    }
    if (strcmp(args[0], "datasets") == 0) return list_datasets(&o.paths);
    if (strcmp(args[0], "tools") == 0 && (o.mcp.said.n || o.mcp.files.n)) return list_servers(&o);
    free(o.mcp.said.items);
    free(o.mcp.files.items);
    ipw_search_each(strcmp(args[0], "tools") ? args[0] : "agents/tools",
                    (const char *const *)o.paths.items, gather, &rows);
    if (rows.n) qsort(rows.lines, rows.n, sizeof *rows.lines, compare_lines);
    for (size_t i = 0; i < rows.n; i++) {
        puts(rows.lines[i]);
        free(rows.lines[i]);
    }
    free(rows.lines);
    free(o.paths.items);
    return IPW_EXIT_OK;
}

static int fail_no_builtin(const char *name, struct ipw_err *err)
{
    size_t n = 0;
    const char **paths, *near;

    while (ipw_embedded_files[n].path) n++;
    paths = ipw_calloc(n + 1, sizeof *paths);
    for (size_t i = 0; i < n; i++) paths[i] = ipw_embedded_files[i].path;
    near = ipw_nearest(name, paths);
    ipw_fail(err, IPW_ENOTFOUND, "show: no built-in file is called '%.100s'%s%s%s", name,
             near ? " (did you mean '" : "", near ? near : "", near ? "'?)" : "");
    free(paths);
    return IPW_ENOTFOUND;
}

int ipw_cmd_show(int argc, char **argv)
{
    static const struct ipw_opt options[] = {{NULL, 0, IPW_OPT_FLAG, 0, NULL, NULL}};
    static const struct ipw_command command = {
        .name = "show",
        .usage = "show [FILE]",
        .about = "Print a built-in file; without FILE, list the built-in files.\n"
                 "To start from one: ipw-agent show agents/react.lua > mine.lua",
        .options = options,
        .min_args = 0,
        .max_args = 1,
    };
    const struct ipw_embedded_file *f;
    struct ipw_err err = {0};
    char **args, none;
    int n, rc = ipw_options_parse(&command, argc, argv, &none, &args, &n, &err);

    if (rc) return rc > 0 ? IPW_EXIT_OK : ipw_exit_with(&err, IPW_EXIT_USAGE);
    if (n == 0) {
        for (f = ipw_embedded_files; f->path; f++) puts(f->path);
        return IPW_EXIT_OK;
    }
    f = ipw_installed_find(args[0]);
    if (!f) {
        fail_no_builtin(args[0], &err);
        return ipw_exit_with(&err, IPW_EXIT_USAGE);
    }
    fwrite(f->bytes, 1, f->n, stdout);
    return IPW_EXIT_OK;
}
