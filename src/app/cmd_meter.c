/* meter RUN --log FILE: the energy of a run from a power meter's log. */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/commands.h"
#include "app/options.h"
#include "audit/meter_report.h"
#include "base/log.h"
#include "base/text.h"
#include "run/merge/book.h"

#define OUTPUT_MAX (256 * IPW_MIB)

struct meter_options {
    struct ipw_opt_list logs;
    const char *column, *offset;
    bool json, book, replace;
};

/* Books the meter after its report, and says what came of it. */
static int book(const char *run, const struct ipw_metered_run *report, bool replace,
                struct ipw_err *err)
{
    struct ipw_buf doubts = IPW_BUF(IPW_MIB);
    int rc = ipw_book_run(run, report, replace, err);

    ipw_metered_run_doubts(&doubts, report);
    for (const char *at = ipw_buf_str(&doubts); rc >= 0 && *at; at += strcspn(at, "\n") + 1)
        ipw_say("warning: %.*s", (int)strcspn(at, "\n"), at);
    if (rc == 1) ipw_say("%s: this log is in its books already; nothing changed", run);
    if (rc == 0)
        ipw_say("%s: the meter is its machine domain now; the files as they were are in %s/%s", run,
                run, IPW_BOOK_BEFORE);
    ipw_buf_release(&doubts);
    return rc < 0 ? rc : 0;
}

static int make(struct ipw_buf *out, const struct meter_options *o, const char *run,
                struct ipw_err *err)
{
    bool given = o->offset && strcmp(o->offset, "auto") != 0;
    struct ipw_metered_run report;
    char *origin = ipw_book_origin(run);
    double offset_s = 0;
    int rc = given ? ipw_parse_double(&offset_s, o->offset, err) : 0;

    if (rc < 0) {
        free(origin);
        return ipw_err_prefix(err, "--offset");
    }
    rc = ipw_metered_run_make(&report, origin, o->logs.items, o->logs.n, o->column,
                              given ? &offset_s : NULL, err);
    report.run = run;
    if (rc == 0 && o->book) rc = book(run, &report, o->replace, err);
    if (rc == 0 && o->json) ipw_metered_run_json(out, &report);
    if (rc == 0 && !o->json) ipw_metered_run_text(out, &report);
    if (rc == 0 && out->failed) rc = ipw_fail(err, IPW_ELIMIT, "%s: the report is too long", run);
    ipw_metered_run_release(&report);
    free(origin);
    return rc;
}

int ipw_cmd_meter(int argc, char **argv)
{
    /* clang-format off */
    static const struct ipw_opt options[] = {
        {"log", 0, IPW_OPT_LIST, offsetof(struct meter_options, logs), "FILE", "the meter's log; several are added up"},
        {"column", 0, IPW_OPT_STR, offsetof(struct meter_options, column), "NAME", "use only this column (default: total, else all)"},
        {"offset", 0, IPW_OPT_STR, offsetof(struct meter_options, offset), "SECONDS|auto", "how far the log's clock is ahead (default: auto)"},
        {"book", 0, IPW_OPT_FLAG, offsetof(struct meter_options, book), NULL, "enter it in the run's books as its machine domain"},
        {"replace", 0, IPW_OPT_FLAG, offsetof(struct meter_options, replace), NULL, "--book: in place of a log that was booked before"},
        {"json", 0, IPW_OPT_FLAG, offsetof(struct meter_options, json), NULL, "print the report as one JSON object"},
        IPW_OPT_END,
    };
    /* clang-format on */
    static const struct ipw_command command = {
        .name = "meter",
        .usage = "meter RUN --log FILE [--column NAME] [--offset S|auto] [--book]",
        .about = "Compute the energy of a saved run from a power meter's log\n"
                 "(docs/power-meter.md).",
        .options = options,
        .more = "--book writes the run's files anew, with the meter as one more sensor, and\n"
                "energy_report.json. The files as they were stay in RUN/before_meter.\n\n"
                "Exit status: 0 done, 1 log and run do not match, 2 wrong usage, 3 unreadable\n"
                "input.",
        .min_args = 1,
        .max_args = 1,
    };
    struct meter_options o = {0};
    struct ipw_buf out = IPW_BUF(OUTPUT_MAX);
    struct ipw_err err = {0};
    char **args;
    int n, code = IPW_EXIT_OK, rc = ipw_options_parse(&command, argc, argv, &o, &args, &n, &err);

    if (rc) {
        code = rc > 0 ? IPW_EXIT_OK : ipw_exit_with(&err, IPW_EXIT_USAGE);
    } else if (o.logs.n == 0) {
        ipw_fail(&err, IPW_EINVAL, "meter: --log FILE is needed");
        code = ipw_exit_with(&err, IPW_EXIT_USAGE);
    } else if ((rc = make(&out, &o, args[0], &err)) < 0) {
        bool usage = rc == IPW_EINVAL && !strncmp(err.text, "--offset", 8);
        bool failed = rc == IPW_EUNSUPPORTED || rc == IPW_EEXISTS || rc == IPW_EIO;
        code = ipw_exit_with(&err, usage    ? IPW_EXIT_USAGE
                                   : failed ? IPW_EXIT_FAILED
                                            : IPW_EXIT_INPUT);
    } else if (fwrite(out.data, 1, out.len, stdout) != out.len || fflush(stdout)) {
        ipw_fail(&err, IPW_EIO, "standard output cannot be written");
        code = ipw_exit_with(&err, IPW_EXIT_FAILED);
    }
    ipw_buf_release(&out);
    free(o.logs.items);
    return code;
}
