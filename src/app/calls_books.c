/* The books of a saved run, for `ledger` and `meter`. */
#include <stdlib.h>

#include "app/calls.h"
#include "audit/ledger_facts.h"
#include "audit/meter_report.h"
#include "json/write.h"
#include "run/merge/book.h"

/* ledger(run, rule, "alone"?): the run computed again, by its own sharing rule ("") or by another;
 * alone: not compared with what it wrote. */
int ipw_call_ledger(const struct ipw_call *c, struct ipw_err *err)
{
    return ipw_ledger_facts(c->out, c->args[0], c->n > 1 && *c->args[1] ? c->args[1] : NULL,
                            c->n < 3, err);
}

/* The run from its files before a meter was booked, and the logs. */
static int read_meter(struct ipw_metered_run *report, const char *run, const char *column,
                      const char *const *logs, size_t n, struct ipw_err *err)
{
    char *origin = ipw_book_origin(run);
    int rc = ipw_metered_run_read(report, origin, logs, n, *column ? column : NULL, err);

    report->run = run;
    free(origin);
    return rc;
}

/* meter_logs(run, column, log...): what the logs say (audit/meter_report.h); column "": all that
 * are in the sum. */
int ipw_call_meter_logs(const struct ipw_call *c, struct ipw_err *err)
{
    struct ipw_metered_run report;
    int rc = read_meter(&report, c->args[0], c->args[1], c->args + 2, c->n - 2, err);

    if (!rc) ipw_metered_run_logs(c->out, &report);
    if (!rc && c->out->failed)
        rc = ipw_fail(err, IPW_ELIMIT, "%s: the logs are too long", c->args[0]);
    ipw_metered_run_release(&report);
    return rc;
}

/* meter(run, column, clocks, log...): the run's energy by the logs, with the clock of each. */
int ipw_call_meter(const struct ipw_call *c, struct ipw_err *err)
{
    struct ipw_metered_run report;
    int rc = read_meter(&report, c->args[0], c->args[1], c->args + 3, c->n - 3, err);

    if (!rc) rc = ipw_metered_run_book(&report, c->args[2], err);
    if (!rc) ipw_metered_run_facts(c->out, &report);
    if (!rc && c->out->failed)
        rc = ipw_fail(err, IPW_ELIMIT, "%s: the report is too long", c->args[0]);
    ipw_metered_run_release(&report);
    return rc;
}

/* book_meter(run, energy report, "replace"?, column, clocks, log...): false: these logs are in its
 * books already. */
int ipw_call_book_meter(const struct ipw_call *c, struct ipw_err *err)
{
    struct ipw_metered_run report;
    struct ipw_jw w;
    int rc = read_meter(&report, c->args[0], c->args[3], c->args + 5, c->n - 5, err);

    if (!rc) rc = ipw_metered_run_book(&report, c->args[4], err);
    if (!rc) rc = ipw_book_run(c->args[0], &report, c->args[1], *c->args[2] != 0, err);
    ipw_metered_run_release(&report);
    if (rc < 0) return rc;
    ipw_jw_init(&w, c->out);
    ipw_jw_bool(&w, rc == 0);
    return 0;
}
