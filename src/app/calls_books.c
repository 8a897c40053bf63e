/* The books of a saved run, for `ledger` and `meter`. */
#include <stdlib.h>

#include "app/calls.h"
#include "audit/ledger_facts.h"
#include "audit/meter_report.h"
#include "base/text.h"
#include "json/write.h"
#include "run/merge/book.h"

/* ledger(run, rule): the run computed again, by its own sharing rule ("") or by another. */
int ipw_call_ledger(void *ud, const char *const *args, size_t n, struct ipw_buf *out,
                    struct ipw_err *err)
{
    (void)ud;
    return ipw_ledger_facts(out, args[0], n > 1 && *args[1] ? args[1] : NULL, err);
}

/* column, offset, log...: the run from its files before a meter was booked. */
static int read_meter(struct ipw_metered_run *report, const char *run, const char *const *args,
                      size_t n, struct ipw_err *err)
{
    const char *column = *args[0] ? args[0] : NULL, *offset = *args[1] ? args[1] : NULL;
    char *origin = ipw_book_origin(run);
    double offset_s = 0;
    int rc = offset ? ipw_parse_double(&offset_s, offset, err) : 0;

    *report = (struct ipw_metered_run){.run = run};
    if (!rc)
        rc = ipw_metered_run_make(report, origin, args + 2, n - 2, column,
                                  offset ? &offset_s : NULL, err);
    report->run = run;
    free(origin);
    return rc;
}

/* meter(run, column, offset, log...): the facts of audit/meter_report.h; column, offset "": they
 * are found. */
int ipw_call_meter(void *ud, const char *const *args, size_t n, struct ipw_buf *out,
                   struct ipw_err *err)
{
    struct ipw_metered_run report;
    int rc = read_meter(&report, args[0], args + 1, n - 1, err);

    (void)ud;
    if (!rc) ipw_metered_run_facts(out, &report);
    if (!rc && out->failed) rc = ipw_fail(err, IPW_ELIMIT, "%s: the report is too long", args[0]);
    ipw_metered_run_release(&report);
    return rc;
}

/* book_meter(run, energy report, "replace"?, column, offset, log...): false: these logs are in its
 * books already. */
int ipw_call_book_meter(void *ud, const char *const *args, size_t n, struct ipw_buf *out,
                        struct ipw_err *err)
{
    struct ipw_metered_run report;
    struct ipw_jw w;
    int rc = read_meter(&report, args[0], args + 3, n - 3, err);

    (void)ud;
    if (!rc) rc = ipw_book_run(args[0], &report, args[1], *args[2] != 0, err);
    ipw_metered_run_release(&report);
    if (rc < 0) return rc;
    ipw_jw_init(&w, out);
    ipw_jw_bool(&w, rc == 0);
    return 0;
}
