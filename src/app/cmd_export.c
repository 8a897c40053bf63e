/* export RUN: a saved run for other programs, or for other people without its texts. */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "app/commands.h"
#include "app/options.h"
#include "base/log.h"
#include "base/text.h"
#include "export/export_jsonl.h"
#include "export/mooncake.h"
#include "export/redacted.h"

struct export_options {
    const char *format, *output, *redact;
};

/* clang-format off */
static const struct ipw_opt options[] = {
    {"format", 0, IPW_OPT_STR, offsetof(struct export_options, format), "NAME", "jsonl (default), mooncake or run: see below"},
    {"redact", 0, IPW_OPT_STR, offsetof(struct export_options, redact), "text|tools|all", "jsonl, run: replace texts, tool data, or both"},
    {"output", 'o', IPW_OPT_STR, offsetof(struct export_options, output), "FILE", "file (default: standard output); run: a new folder"},
    IPW_OPT_END,
};
/* clang-format on */

static const struct ipw_command command = {
    .name = "export",
    .usage = "export RUN [--format FORMAT] [--redact WHAT] [--output FILE]",
    .about = "Export a saved run: for other programs, or for sharing with its texts removed.",
    .options = options,
    .more = "Formats\n"
            "  jsonl     one query per line, as in traces.jsonl\n"
            "  mooncake  one request per line: times and lengths, no texts\n"
            "  run       the whole run folder\n\n"
            "--redact replaces texts by common words of the same length. The result can\n"
            "still be printed, compared and replayed as a workload. Names of tools and\n"
            "models and ids of queries stay: look at the result before you share it.",
    .min_args = 1,
    .max_args = 1,
};

enum format { JSONL, MOONCAKE, RUN };

static int parse(enum format *format, enum ipw_redact *redact, const struct export_options *o,
                 struct ipw_err *err)
{
    static const char *const formats[] = {"jsonl", "mooncake", "run", NULL};
    const char *near;
    int i = 0;

    while (formats[i] && strcmp(o->format, formats[i])) i++;
    *format = (enum format)i;
    if (!formats[i]) {
        near = ipw_nearest(o->format, formats);
        return ipw_fail(
            err, IPW_EINVAL, "export: unknown format '%s'%s%s%s (known: jsonl, mooncake, run)",
            o->format, near ? " (did you mean '" : "", near ? near : "", near ? "'?)" : "");
    }
    if (*format == RUN && !o->output)
        return ipw_fail(err, IPW_EINVAL, "export: --format run: --output names the new folder");
    if (*format == RUN && !o->redact)
        return ipw_fail(err, IPW_EINVAL,
                        "export: --format run goes with --redact (without it: cp -r)");
    return o->redact ? ipw_redact_parse(redact, o->redact, err) : 0;
}

static int write_file(const char *run, enum format format, const struct export_options *o,
                      enum ipw_redact redact, struct ipw_err *err)
{
    FILE *out = stdout;
    size_t guessed = 0;
    int torn = 0, rc;

    if (o->output) {
        out = fopen(o->output, "we");
        if (!out) return ipw_fail(err, IPW_EIO, "%s: cannot be written: %m", o->output);
    }
    if (format == MOONCAKE)
        rc = ipw_export_mooncake(run, out, &guessed, err);
    else if (redact)
        rc = ipw_export_redacted_traces(run, out, redact, &torn, err);
    else
        rc = ipw_export_jsonl(run, out, &torn, err);
    if (!rc && (fflush(out) || ferror(out)))
        rc = ipw_fail(err, IPW_EIO, "%s: cannot be written",
                      o->output ? o->output : "standard output");
    if (o->output && fclose(out) && !rc)
        rc = ipw_fail(err, IPW_EIO, "%s: cannot be written: %m", o->output);
    if (torn) ipw_say("%s: a torn last line was left out", run);
    if (guessed)
        ipw_say("%s: the lengths of %zu requests were not told by a server: they are guessed", run,
                guessed);
    return rc;
}

int ipw_cmd_export(int argc, char **argv)
{
    struct export_options o = {.format = "jsonl"};
    enum ipw_redact redact = 0;
    enum format format;
    struct ipw_err err = {0};
    char **args;
    int n, rc = ipw_options_parse(&command, argc, argv, &o, &args, &n, &err);

    if (rc > 0) return IPW_EXIT_OK;
    if (!rc) rc = parse(&format, &redact, &o, &err);
    if (rc) return ipw_exit_with(&err, IPW_EXIT_USAGE);
    rc = format == RUN ? ipw_export_redacted(args[0], o.output, redact, &err)
                       : write_file(args[0], format, &o, redact, &err);
    return rc ? ipw_exit_with(&err,
                              rc == IPW_EIO || rc == IPW_EEXISTS ? IPW_EXIT_FAILED : IPW_EXIT_INPUT)
              : IPW_EXIT_OK;
}
