/* telemetry/run_exporter.h: sends a run's spans and readings to a collector while it goes on.
 *
 * Owns one child process: this program's own `export RUN --format otlp`, which follows the run's
 * files.  So the spans are those of a later export, and what a collector does cannot slow the run,
 * fill its memory or end it.  The child says at its end what could not be sent; it notices the end
 * of the run by itself, also of a killed one.  Keys are not in the run's environment
 * (base/keyring.h); the child gets the OTEL_EXPORTER_OTLP_* variables and no other keys. */
#ifndef IPW_TELEMETRY_RUN_EXPORTER_H
#define IPW_TELEMETRY_RUN_EXPORTER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

struct ipw_run_exporter {
    pid_t pid; /* 0: not started */
};

/* `url` "": the environment's addresses.  Refuses what is no http(s) URL. */
int ipw_run_exporter_check(const char *url, struct ipw_err *err);
/* The run has its folder.  A child that cannot be started is said, and the run goes on. */
void ipw_run_exporter_start(struct ipw_run_exporter *e, const char *url, const char *folder,
                            int session, bool quiet);
int64_t ipw_run_exporter_cpu_ns(const struct ipw_run_exporter *e);
/* The run's folder was closed: waits for the rest to be sent, some seconds at the most. */
void ipw_run_exporter_finish(struct ipw_run_exporter *e);

#endif
