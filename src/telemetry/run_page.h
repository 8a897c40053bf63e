/* telemetry/run_page.h: a run that goes on, as a page for a browser (run --watch).
 *
 * Owns the last figures.  It is fed by an observer (run/observer.h) with the figures of the
 * progress line; a server (io/server.h) asks for the page (lua/ipw/live/page.html), and for the
 * JSON that the page asks for again and again. */
#ifndef IPW_TELEMETRY_RUN_PAGE_H
#define IPW_TELEMETRY_RUN_PAGE_H

#include <stdbool.h>

#include "base/buf.h"
#include "run/observer.h"

struct ipw_run_page;

struct ipw_run_page *ipw_run_page_new(void);
void ipw_run_page_free(struct ipw_run_page *p); /* NULL is fine */
void ipw_run_page_begun(struct ipw_run_page *p, const struct ipw_observed_run *run);
void ipw_run_page_progress(struct ipw_run_page *p, const struct ipw_progress_state *state);
/* The figures are final. */
void ipw_run_page_ended(struct ipw_run_page *p);
/* Somebody asked for the figures in the last seconds. */
bool ipw_run_page_is_read(const struct ipw_run_page *p);
/* `page` is a struct ipw_run_page. */
void ipw_run_page_html(struct ipw_buf *out, void *page);
void ipw_run_page_json(struct ipw_buf *out, void *page);

#endif
