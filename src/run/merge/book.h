/* run/merge/book.h: a power meter's log in the books of a saved run (meter --book).
 *
 * The run is computed again with the meter as the machine's sensor, by the code that merges shards
 * (run/merge/planned_run.h): its files are written anew into RUN.booking, together with
 * energy_report.json.  Then the two folders change places in one step, so that a kill at any moment
 * leaves one whole run; the next booking removes what is left.
 *
 * The files as they were stay in RUN/before_meter, and every booking starts from them.  Lua decides
 * whether it may begin, what the manifest says of the meter, and how its readings stand among those
 * of the run (lua/ipw/merge/metered.lua): a session of the plan has `readings`, of them
 *   sources: of the header of power.jsonl, as objects; `basis`: what the machine is measured by
 *   rows: as text, "TIME SOURCE VALUE" for each, in order of time on the session's clock; SOURCE is
 *     a place in `sources`, VALUE the least integer where nothing was read.
 * The meter is the machine's sum; another sensor of the machine leaves it.  The run is locked. */
#ifndef IPW_RUN_MERGE_BOOK_H
#define IPW_RUN_MERGE_BOOK_H

#include "base/err.h"
#include "json/json.h"

#define IPW_BOOK_BEFORE "before_meter"

/* The folder whose files a meter's report must be made of: RUN, or the files as they were before a
 * meter was booked.  The caller frees it. */
char *ipw_book_origin(const char *run);
/* `plan`: of that folder alone; `report`: the text of energy_report.json. */
int ipw_book_run(const char *run, const struct ipw_json *plan, const char *report,
                 struct ipw_err *err);

#endif
