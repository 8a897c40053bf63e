/* export RUN: a saved run for other programs, or for other people without its texts. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/commands.h"
#include "app/runs_command.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/open.h"
#include "export/mooncake.h"
#include "export/redacted.h"

struct export_options {
    struct ipw_workbench_options bench;
    const char *format, *output, *redact;
    struct ipw_opt_list settings;
    bool list;
};

/* clang-format off */
#define AT(field) offsetof(struct export_options, field)
static const struct ipw_opt options[] = {
    {"format", 0, IPW_OPT_STR, AT(format), "NAME", "format, or a format's .lua file (default: jsonl)"},
    {"list", 0, IPW_OPT_FLAG, AT(list), NULL, "list the formats"},
    {"output", 'o', IPW_OPT_STR, AT(output), "PATH", "file or new folder (default: standard output)"},
    {"redact", 0, IPW_OPT_STR, AT(redact), "text|tools|all", "replace texts, tool data, or both"},
    {"set", 0, IPW_OPT_LIST, AT(settings), "KEY=VALUE", "a setting of the format; may be repeated"},
    IPW_WORKBENCH_SCRIPTS,
    IPW_OPT_END,
};
/* clang-format on */

static const struct ipw_command command = {
    .name = "export",
    .usage = "export RUN... [--format NAME] [--redact WHAT] [--output PATH]",
    .about = "Export saved runs: for other programs, or for sharing without their texts.",
    .options = options,
    .more = "A format is a Lua file: ipw-agent new export NAME writes one to start from.\n"
            "docs/export.md says which programs read a built-in format, and what it omits.\n\n"
            "--redact replaces texts by common words of the same length. The result can\n"
            "still be printed, compared and replayed as a workload. Names of tools and\n"
            "models and ids of queries stay, so check the result before you share it.",
    .min_args = 0,
    .max_args = -1,
};

static int check(const struct export_options *o, int n, struct ipw_err *err)
{
    bool run = strcmp(o->format, "run") == 0;

    if (o->list) return 0;
    if (n == 0)
        return ipw_fail(err, IPW_EINVAL,
                        "export: an argument is missing: name a run (--list lists the formats)");
    if (n > 1 && (run || strcmp(o->format, "mooncake") == 0))
        return ipw_fail(err, IPW_EINVAL, "export: --format %s takes one run", o->format);
    if (run && !o->output)
        return ipw_fail(err, IPW_EINVAL, "export: --format run: --output names the new folder");
    if (run && !o->redact)
        return ipw_fail(err, IPW_EINVAL,
                        "export: --format run goes with --redact (without it: cp -r)");
    return 0;
}

static int write_mooncake(const char *run, const char *output, struct ipw_err *err)
{
    FILE *out = stdout;
    size_t guessed = 0;
    int rc;

    if (output) {
        if (ipw_make_parents(output, err)) return err->code;
        out = fopen(output, "we");
        if (!out) return ipw_fail(err, IPW_EIO, "%s: cannot be written: %m", output);
    }
    rc = ipw_export_mooncake(run, out, &guessed, err);
    if (!rc && (fflush(out) || ferror(out)))
        rc = ipw_fail(err, IPW_EIO, "%s: cannot be written", output ? output : "standard output");
    if (output && fclose(out) && !rc)
        rc = ipw_fail(err, IPW_EIO, "%s: cannot be written: %m", output);
    if (guessed)
        ipw_say("%s: the lengths of %zu requests were not told by a server: they are guessed", run,
                guessed);
    return rc;
}

/* Who names a collector to send to wants it reached, also where it is not a public address. */
static void allow_collector(struct ipw_opt_list *allowed, char places[3][300])
{
    static const char *const names[] = {"OTEL_EXPORTER_OTLP_ENDPOINT",
                                        "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
                                        "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT"};

    for (size_t i = 0; i < 3; i++) {
        const char *url = getenv(names[i]), *host;

        if (!url || !*url) url = i ? NULL : "http://localhost:4318";
        host = url ? strstr(url, "://") : NULL;
        if (!host) continue;
        snprintf(places[i], sizeof places[i], "%.*s", (int)strcspn(host + 3, "/?#"), host + 3);
        IPW_GROW(allowed->items, allowed->cap, allowed->n + 2);
        allowed->items[allowed->n++] = places[i];
        allowed->items[allowed->n] = NULL;
    }
}

/* A format's script reads the runs and writes the output, and can do no more than other scripts. */
static int run_format(int64_t *status, struct export_options *o, char **runs, int n,
                      const struct ipw_redactor *redactor, struct ipw_err *err)
{
    struct ipw_export_job job = {
        .runs = runs, .n_runs = n, .output = o->output, .stream = stdout, .redactor = redactor};
    const char **args = ipw_calloc(o->settings.n + 2, sizeof *args);
    char collectors[3][300];
    int rc;

    if (strcmp(o->format, "otlp") == 0) allow_collector(&o->bench.script.web_allow, collectors);
    args[0] = o->list ? "" : o->format;
    for (size_t i = 0; i < o->settings.n; i++) args[i + 1] = o->settings.items[i];
    rc = ipw_runs_command(status, &o->bench, &job, "ipw.cli.export", args, err);
    free(args);
    return rc;
}

int ipw_cmd_export(int argc, char **argv)
{
    struct export_options o = {.format = "jsonl"};
    struct ipw_redactor redactor;
    enum ipw_redact redact = 0;
    struct ipw_err err = {0};
    int64_t status = 0;
    char **args;
    int n, rc;

    ipw_workbench_defaults(&o.bench);
    rc = ipw_options_parse(&command, argc, argv, &o, &args, &n, &err);
    if (rc > 0) return IPW_EXIT_OK;
    if (!rc) rc = check(&o, n, &err);
    if (!rc && o.redact) rc = ipw_redact_parse(&redact, o.redact, &err);
    if (rc) {
        ipw_script_options_release(&o.bench.script);
        free(o.settings.items);
        return ipw_exit_with(&err, IPW_EXIT_USAGE);
    }
    if (redact) rc = ipw_redactor_init(&redactor, redact, &err);
    if (!rc && o.list)
        rc = run_format(&status, &o, args, 0, NULL, &err);
    else if (!rc && strcmp(o.format, "run") == 0)
        rc = ipw_export_redacted(args[0], o.output, redact, &err);
    else if (!rc && strcmp(o.format, "mooncake") == 0)
        rc = write_mooncake(args[0], o.output, &err);
    else if (!rc)
        rc = run_format(&status, &o, args, n, redact ? &redactor : NULL, &err);
    free(o.settings.items);
    if (!rc) return (int)status;
    return ipw_exit_with(&err,
                         rc == IPW_EIO || rc == IPW_EEXISTS ? IPW_EXIT_FAILED : IPW_EXIT_INPUT);
}
