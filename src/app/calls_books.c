/* The books of a saved run, for `ledger` and `meter`. */
#include <stdlib.h>

#include "app/calls.h"
#include "audit/ledger_facts.h"
#include "audit/meter_report.h"
#include "json/write.h"
#include "run/merge/book.h"

/* ledger(run, rule, "alone"?): the run computed again, by its own sharing rule ("") or by another;
 * alone: not compared with what it wrote. */
int ipw_call_ledger(void *ud, const char *const *args, size_t n, struct ipw_buf *out,
                    struct ipw_err *err)
{
    (void)ud;
    return ipw_ledger_facts(out, args[0], n > 1 && *args[1] ? args[1] : NULL, n < 3, err);
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
int ipw_call_meter_logs(void *ud, const char *const *args, size_t n, struct ipw_buf *out,
                        struct ipw_err *err)
{
    struct ipw_metered_run report;
    int rc = read_meter(&report, args[0], args[1], args + 2, n - 2, err);

    (void)ud;
    if (!rc) ipw_metered_run_logs(out, &report);
    if (!rc && out->failed) rc = ipw_fail(err, IPW_ELIMIT, "%s: the logs are too long", args[0]);
    ipw_metered_run_release(&report);
    return rc;
}

/* meter(run, column, clocks, log...): the run's energy by the logs, with the clock of each. */
int ipw_call_meter(void *ud, const char *const *args, size_t n, struct ipw_buf *out,
                   struct ipw_err *err)
{
    struct ipw_metered_run report;
    int rc = read_meter(&report, args[0], args[1], args + 3, n - 3, err);

    (void)ud;
    if (!rc) rc = ipw_metered_run_book(&report, args[2], err);
    if (!rc) ipw_metered_run_facts(out, &report);
    if (!rc && out->failed) rc = ipw_fail(err, IPW_ELIMIT, "%s: the report is too long", args[0]);
    ipw_metered_run_release(&report);
    return rc;
}

/* book_meter(run, energy report, "replace"?, column, clocks, log...): false: these logs are in its
 * books already. */
int ipw_call_book_meter(void *ud, const char *const *args, size_t n, struct ipw_buf *out,
                        struct ipw_err *err)
{
    struct ipw_metered_run report;
    struct ipw_jw w;
    int rc = read_meter(&report, args[0], args[3], args + 5, n - 5, err);

    (void)ud;
    if (!rc) rc = ipw_metered_run_book(&report, args[4], err);
    if (!rc) rc = ipw_book_run(args[0], &report, args[1], *args[2] != 0, err);
    ipw_metered_run_release(&report);
    if (rc < 0) return rc;
    ipw_jw_init(&w, out);
    ipw_jw_bool(&w, rc == 0);
    return 0;
}
