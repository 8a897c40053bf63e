/* The books of a saved run, for `ledger` and `meter`. */
#include <stdlib.h>
#include <string.h>

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

/* meter(run, columns): the run's energy by the readings of these columns (audit/meter_report.h). */
int ipw_call_meter(const struct ipw_call *c, struct ipw_err *err)
{
    struct ipw_metered_run report;
    int rc = read_meter(&report, c->args[0], "", NULL, 0, err);

    if (!rc) rc = ipw_metered_run_book(&report, c->args[1], err);
    if (!rc) ipw_metered_run_facts(c->out, &report);
    if (!rc && c->out->failed)
        rc = ipw_fail(err, IPW_ELIMIT, "%s: the report is too long", c->args[0]);
    ipw_metered_run_release(&report);
    return rc;
}

/* book_meter(run, plan, energy report): see run/merge/book.h. */
int ipw_call_book_meter(const struct ipw_call *c, struct ipw_err *err)
{
    struct ipw_json *plan = NULL;
    int rc = ipw_json_parse(&plan, c->args[1], strlen(c->args[1]), NULL, err);

    if (!rc) rc = ipw_book_run(c->args[0], plan, c->args[2], err);
    ipw_json_free(plan);
    return rc;
}
