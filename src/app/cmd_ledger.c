/* ledger RUN: computes every energy value of a run again, from its events and readings alone. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app/commands.h"
#include "app/options.h"
#include "audit/ledger_check.h"
#include "audit/ledger_print.h"
#include "audit/share_rules.h"
#include "base/log.h"
#include "base/terminal.h"

enum { MAX_OUTPUT_BYTES = 1024 * 1024 * 1024 };

struct ledger_options {
    const char *share;
    bool json, check;
};

struct job {
    struct ipw_ledger_report report;
    struct ipw_recompute redone; /* owns the reasons in the report */
    struct ipw_check *check;     /* NULL: there are no traces to compare with */
    const enum ipw_share *share; /* another rule than the run's, or NULL */
};

static int take_query(void *ud, const struct ipw_recompute_query *query, struct ipw_err *err)
{
    struct job *j = ud;
    const struct ipw_recompute_segment *segment = j->redone.segments[j->redone.n_segments - 1];
    struct ipw_query_details unknown = {.is_resolved = -1, .cost_usd = NAN};
    struct ipw_query_loaded was = {0};
    struct ipw_buf what = IPW_BUF(4096);
    enum ipw_check_verdict verdict = IPW_CHECK_SAME;
    struct ipw_recompute_query q = *query;
    int rc = 0;

    if (j->check)
        rc = ipw_check_query(j->check, segment, query, &verdict, &was, j->share ? NULL : &what,
                             NULL, err);
    if (!rc) {
        bool known = j->check && verdict != IPW_CHECK_MISSING && verdict != IPW_CHECK_UNWRITTEN;

        q.cut |= verdict == IPW_CHECK_UNWRITTEN; /* an earlier attempt, which will run again */
        if (j->share) verdict = IPW_CHECK_SAME;  /* other values were requested */
        ipw_ledger_report_add(&j->report, &q, known ? &was.details : &unknown, known ? &was : NULL,
                              verdict == IPW_CHECK_DIFFERS || verdict == IPW_CHECK_MISSING);
        j->report.n_differs += verdict == IPW_CHECK_DIFFERS;
        j->report.n_missing += verdict == IPW_CHECK_MISSING;
        if (verdict == IPW_CHECK_DIFFERS)
            ipw_say("query %s: %s", query->trace->id, ipw_buf_str(&what));
    }
    ipw_query_loaded_release(&was);
    ipw_buf_release(&what);
    return rc;
}

static int recompute(struct job *j, const char *run, const enum ipw_share *share,
                     struct ipw_err *err)
{
    struct ipw_recompute_options how = {.query = take_query, .ud = j, .share = share};
    int rc = ipw_check_open(&j->check, run, NULL, err);

    if (rc) return rc;
    j->share = share;
    j->report.share = share ? ipw_share_name(*share) : NULL;
    j->report.compared = j->check != NULL;
    rc = ipw_recompute_run(&j->redone, run, &how, err);
    if (!rc && j->check) rc = ipw_check_left(j->check, &j->report.n_left, err);
    if (!rc) ipw_ledger_report_close(&j->report, &j->redone);
    return rc;
}

static int write_out(const struct ipw_buf *out, struct ipw_err *err)
{
    if (fwrite(ipw_buf_str(out), 1, out->len, stdout) == out->len && !fflush(stdout)) return 0;
    return ipw_fail(err, IPW_EIO, "standard output: the result could not be written");
}

static int print(const struct job *j, bool json, struct ipw_err *err)
{
    struct ipw_buf out = IPW_BUF(MAX_OUTPUT_BYTES);
    int rc;

    if (json)
        ipw_ledger_print_json(&out, &j->report);
    else
        ipw_ledger_print_table(&out, &j->report);
    rc = write_out(&out, err);
    ipw_buf_release(&out);
    return rc;
}

static int print_shares(const char *run, bool json, struct ipw_err *err)
{
    struct ipw_buf out = IPW_BUF(MAX_OUTPUT_BYTES);
    struct ipw_shares shares;
    int rc = ipw_shares_run(&shares, run, err);

    if (rc) {
        rc = ipw_exit_with(err, IPW_EXIT_INPUT);
    } else {
        if (json)
            ipw_shares_print_json(&out, &shares);
        else
            ipw_shares_print(&out, &shares);
        rc = write_out(&out, err) ? ipw_exit_with(err, IPW_EXIT_FAILED) : IPW_EXIT_OK;
    }
    ipw_shares_release(&shares);
    ipw_buf_release(&out);
    return rc;
}

int ipw_cmd_ledger(int argc, char **argv)
{
    /* clang-format off */
    static const struct ipw_opt options[] = {
        {"check", 0, IPW_OPT_FLAG, offsetof(struct ledger_options, check), NULL, "fail if an energy value differs from the saved one"},
        {"share", 0, IPW_OPT_STR, offsetof(struct ledger_options, share), "RULE|all", "by another rule (docs/method.md); all: side by side"},
        {"json", 0, IPW_OPT_FLAG, offsetof(struct ledger_options, json), NULL, "print one JSON object"},
        {"method", 0, IPW_OPT_GONE, 0, NULL, "the simpler methods are not computed; use --share equal to compare rules"},
        IPW_OPT_END,
    };
    /* clang-format on */
    static const struct ipw_command command = {
        .name = "ledger",
        .usage = "ledger RUN [options]",
        .about = "Compute every energy value of a run again from its events and readings, and\n"
                 "show the balance: queries + warm-up + earlier attempts + idle = total.",
        .options = options,
        .more = "Exit status: 0 done, 1 --check found a difference, 3 unreadable run.",
        .min_args = 1,
        .max_args = 1,
    };
    struct ledger_options o = {0};
    struct job j = {0};
    enum ipw_share share = IPW_SHARE_EQUAL;
    struct ipw_err err = {0};
    bool all;
    char **args;
    int n = 0, code = IPW_EXIT_OK,
        rc = ipw_options_parse(&command, argc, argv, &o, &args, &n, &err);

    ipw_ledger_report_init(&j.report, n > 0 && !rc ? args[0] : "");
    all = o.share && !strcmp(o.share, "all");
    if (!rc && o.share && !all) rc = ipw_share_parse(&share, o.share, &err);
    if (!rc && o.share && o.check)
        rc = ipw_fail(&err, IPW_EINVAL, "ledger: --check and --share do not go together");
    if (rc) {
        ipw_ledger_report_release(&j.report);
        return rc > 0 ? IPW_EXIT_OK : ipw_exit_with(&err, IPW_EXIT_USAGE);
    }
    if (all) {
        ipw_ledger_report_release(&j.report);
        return print_shares(args[0], o.json, &err);
    }
    rc = recompute(&j, args[0], o.share ? &share : NULL, &err);
    if (rc) {
        code = ipw_exit_with(&err, IPW_EXIT_INPUT);
    } else if (print(&j, o.json, &err)) {
        code = ipw_exit_with(&err, IPW_EXIT_FAILED);
    } else if (o.check && (j.report.n_differs || j.report.n_missing || j.report.n_left)) {
        code = IPW_EXIT_FAILED;
    }
    ipw_check_close(j.check);
    ipw_ledger_report_release(&j.report);
    ipw_recompute_release(&j.redone);
    return code;
}
