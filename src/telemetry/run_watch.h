/* telemetry/run_watch.h: the options that let others watch a run: --listen, --watch and --otlp.
 *
 * Opens what the options ask for before the run begins, so that a wrong address ends the command at
 * once, and gives the run one observer (run/observer.h) for all of it. */
#ifndef IPW_TELEMETRY_RUN_WATCH_H
#define IPW_TELEMETRY_RUN_WATCH_H

#include <stdbool.h>

#include "base/err.h"
#include "base/option.h"
#include "run/observer.h"

struct ipw_watch_options {
    const char *listen; /* "127.0.0.1:9441", "9441"; NULL: no page of metrics */
    bool watch;         /* a page for a browser, at the address of `listen`, else of its own */
    const char *otlp;   /* a collector's URL; "": by the environment; NULL: none */
};
extern const struct ipw_opt ipw_watch_option_rows[];

struct ipw_run_watch;
/* *out NULL: nothing is asked for.  `quiet`: an address is only said if the port was 0. */
int ipw_run_watch_open(struct ipw_run_watch **out, const struct ipw_watch_options *options,
                       bool quiet, struct ipw_err *err);
struct ipw_observer *ipw_run_watch_observer(struct ipw_run_watch *watch); /* NULL gives NULL */
/* After the run.  (At its end the observer waits for what is still to be sent, and a second if the
 * page is open, so that it shows the last figures.)  NULL is fine. */
void ipw_run_watch_close(struct ipw_run_watch *watch);

#endif
