/* validate RUN and repair RUN. */
#include <stdbool.h>
#include <stdio.h>

#include "app/ask.h"
#include "app/commands.h"
#include "app/options.h"
#include "audit/validate.h"
#include "base/log.h"
#include "json/write.h"
#include "run/resume/repair.h"

static void say_counts(const struct ipw_validation *v, const char *run)
{
    printf("%s: valid: %lld quer%s, %lld turns, %lld earlier attempt%s, %d session%s, "
           "%lld events, %lld readings",
           run, (long long)v->queries, v->queries == 1 ? "y" : "ies", (long long)v->turns,
           (long long)v->attempts, v->attempts == 1 ? "" : "s", v->sessions,
           v->sessions == 1 ? "" : "s", (long long)v->events, (long long)v->rows);
    if (v->recomputed) printf("; all energy values reproduced");
    if (v->going_on)
        printf("; the run is going on");
    else if (!v->finished)
        printf("; it was killed before its end (ipw-agent resume continues it)");
    if (v->torn) printf("; %d torn last line%s ignored", v->torn, v->torn == 1 ? "" : "s");
    printf("\n");
}

static void put_json(const struct ipw_validation *v, const struct ipw_err *err)
{
    struct ipw_buf out = IPW_BUF(64 * 1024);
    struct ipw_jw w;

    ipw_jw_init(&w, &out);
    ipw_jw_obj(&w);
    ipw_jw_kint(&w, "attempts", v->attempts);
    ipw_jw_kint(&w, "events", v->events);
    ipw_jw_kstr(&w, "fault", err->code ? err->text : NULL);
    ipw_jw_kbool(&w, "finished", v->finished);
    ipw_jw_kbool(&w, "going_on", v->going_on);
    ipw_jw_kint(&w, "queries", v->queries);
    ipw_jw_kbool(&w, "recomputed", v->recomputed);
    ipw_jw_kint(&w, "rows", v->rows);
    ipw_jw_kint(&w, "sessions", v->sessions);
    ipw_jw_kint(&w, "torn", v->torn);
    ipw_jw_kint(&w, "turns", v->turns);
    ipw_jw_kbool(&w, "valid", !err->code);
    ipw_jw_obj_end(&w);
    puts(ipw_buf_str(&out));
    ipw_buf_release(&out);
}

/* Faults in the files are the command's result (1); an argument that is not a run folder is 3. */
static int exit_code(const struct ipw_err *err)
{
    return err->code == IPW_EPARSE || err->code == IPW_ELIMIT ? IPW_EXIT_FAILED : IPW_EXIT_INPUT;
}

static int validate(const char *run, bool json, bool quiet)
{
    struct ipw_validation v = {0};
    struct ipw_err err = {0};
    int rc = ipw_validate_run(&v, run, &err);

    if (json)
        put_json(&v, &err);
    else if (!rc && !quiet)
        say_counts(&v, run);
    return rc ? ipw_exit_with(&err, exit_code(&err)) : IPW_EXIT_OK;
}

int ipw_cmd_validate(int argc, char **argv)
{
    struct validate_options {
        bool json, quiet;
    } o = {0};
    /* clang-format off */
    static const struct ipw_opt options[] = {
        {"json", 0, IPW_OPT_FLAG, offsetof(struct validate_options, json), NULL, "print one JSON object a run"},
        {"quiet", 'q', IPW_OPT_FLAG, offsetof(struct validate_options, quiet), NULL, "print nothing of a valid run"},
        IPW_OPT_END,
    };
    /* clang-format on */
    static const struct ipw_command command = {
        .name = "validate",
        .usage = "validate [RUN...] [--json] [--quiet]",
        .about = "Check saved runs against docs/trace-format.md: every line, the order of\n"
                 "events, that each query occurs once, the summary, the balance, and that each\n"
                 "energy value follows from the events and readings. Report the first fault of\n"
                 "each.",
        .options = options,
        .more = "Exit status: 0 all valid, 1 a fault was found, 3 unreadable run.",
        .min_args = 0,
        .max_args = -1,
    };
    struct ipw_err err = {0};
    char **args;
    int n, worst = IPW_EXIT_OK, rc = ipw_options_parse(&command, argc, argv, &o, &args, &n, &err);

    if (rc) return rc > 0 ? IPW_EXIT_OK : ipw_exit_with(&err, IPW_EXIT_USAGE);
    worst = n ? IPW_EXIT_OK : ipw_ask_runs(&args, &n);
    if (worst) return worst;
    for (int i = 0; i < n; i++) {
        char **run = &args[i];
        int one = 1, code = ipw_ask_runs(&run, &one);

        if (!code) code = validate(*run, o.json, o.quiet);

        if (code > worst) worst = code;
    }
    return worst;
}

static void say(void *ud, const char *what)
{
    (void)ud;
    ipw_say("%s", what);
}

int ipw_cmd_repair(int argc, char **argv)
{
    static const struct ipw_opt options[] = {{NULL, 0, IPW_OPT_FLAG, 0, NULL, NULL}};
    static const struct ipw_command command = {
        .name = "repair",
        .usage = "repair RUN",
        .about = "Move damaged lines of a saved run to FILE.damaged and torn last lines to\n"
                 "FILE.torn, list them, and validate the run. Rebuild from the other files: the\n"
                 "manifest, the summary, the end of the last session, earlier attempts.",
        .options = options,
        .more = "Exit status: 0 the run is valid now, 1 a fault remains, 3 unreadable run.",
        .min_args = 1,
        .max_args = 1,
    };
    struct ipw_repair r = {.say = say};
    struct ipw_validation v = {0};
    struct ipw_err err = {0};
    char **args, none;
    int n, rc = ipw_options_parse(&command, argc, argv, &none, &args, &n, &err);

    if (rc) return rc > 0 ? IPW_EXIT_OK : ipw_exit_with(&err, IPW_EXIT_USAGE);
    rc = ipw_ask_runs(&args, &n);
    if (rc) return rc;
    rc = ipw_repair_run(&r, args[0], &err);
    if (rc) return ipw_exit_with(&err, IPW_EXIT_INPUT);
    if (!r.dropped && !r.torn && !r.mended) printf("%s: no line is damaged\n", args[0]);
    rc = ipw_validate_run(&v, args[0], &err);
    rc = rc ? ipw_exit_with(&err, exit_code(&err)) : IPW_EXIT_OK;
    if (!rc) say_counts(&v, args[0]);
    if (r.queries)
        ipw_say("%s: to run queries without a line again: ipw-agent resume %s", args[0], args[0]);
    return rc;
}
