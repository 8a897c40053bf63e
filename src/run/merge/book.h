/* run/merge/book.h: a power meter's log in the books of a saved run (meter --book).
 *
 * The run is computed again with the meter as the machine's sensor, by the code that merges shards
 * (run/merge/planned_run.h): its files are written anew into RUN.booking, together with
 * energy_report.json.  Then the two folders change places in one step, so that a kill at any moment
 * leaves one whole run; the next booking removes what is left.
 *
 * The files as they were stay in RUN/before_meter, and every booking starts from them.  Lua decides
 * whether it may begin, and what the manifest says of the meter (lua/ipw/merge/metered.lua).  The
 * run is locked. */
#ifndef IPW_RUN_MERGE_BOOK_H
#define IPW_RUN_MERGE_BOOK_H

#include "audit/meter_report.h"
#include "json/json.h"

#define IPW_BOOK_BEFORE "before_meter"

/* The folder whose files a meter's report must be made of: RUN, or the files as they were before a
 * meter was booked.  The caller frees it. */
char *ipw_book_origin(const char *run);
/* `plan`: of that folder alone; `meter`: of it, too; `report`: the text of energy_report.json. */
int ipw_book_run(const char *run, const struct ipw_json *plan, const struct ipw_metered_run *meter,
                 const char *report, struct ipw_err *err);

#endif
