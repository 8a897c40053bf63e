/* telemetry/run_page.h: a run that goes on (run --watch), or the sensors without one (telemetry
 * --listen), as a page for a browser.
 *
 * Owns the last figures, and the power of the last hour, a point a second.  It is fed by an
 * observer (run/observer.h) with the figures of the progress line and with events, or with watts
 * alone; a server (io/server.h) asks for the page (lua/ipw/live/page.html), and for the JSON that
 * the page asks for again and again. */
#ifndef IPW_TELEMETRY_RUN_PAGE_H
#define IPW_TELEMETRY_RUN_PAGE_H

#include <stdbool.h>

#include "base/buf.h"
#include "io/server.h"
#include "run/observer.h"

struct ipw_run_page;

/* `sensors`: of telemetry --listen, without a run. */
struct ipw_run_page *ipw_run_page_new(bool sensors);
void ipw_run_page_free(struct ipw_run_page *p); /* NULL is fine */
void ipw_run_page_begun(struct ipw_run_page *p, const struct ipw_observed_run *run);
void ipw_run_page_progress(struct ipw_run_page *p, const struct ipw_progress_state *state);
void ipw_run_page_event(struct ipw_run_page *p, const struct ipw_event *e);
/* Seconds since the start, and the power of the last one; NAN: not known.  Points less than a
 * second after the one before are left out. */
void ipw_run_page_power(struct ipw_run_page *p, double seconds, double watts);
/* The figures are final. */
void ipw_run_page_ended(struct ipw_run_page *p);
/* Somebody asked for the figures in the last seconds. */
bool ipw_run_page_is_read(const struct ipw_run_page *p);
/* `page` is a struct ipw_run_page. */
void ipw_run_page_html(struct ipw_buf *out, void *page);
/* Answers a request for the figures: "?after=N". */
void ipw_run_page_answer(struct ipw_exchange *x, struct ipw_run_page *p);
/* Of the power the points from number `after` on ("points" is how many there were). */
void ipw_run_page_json(struct ipw_buf *out, struct ipw_run_page *page, int64_t after);

#endif
