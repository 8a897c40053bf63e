/* energy/sources/prometheus.h: energy that an exporter publishes.
 *
 * Scrapes one Prometheus text page over plain http and makes a channel of every series that it
 * knows: NVIDIA's DCGM exporter, Scaphandre, Kepler, node_exporter (powercap, hwmon), and another
 * `ipw-agent telemetry --listen`.  The first scrape decides the channels.  Each later read is one
 * scrape, at most once per period, in the sampler's own thread.  A series that is missing, blank or
 * not a number is IPW_NO_VALUE, and so is one whose own time stamp stands still, by the rule of
 * sources/meter_feed.h.  An exporter that does not answer is asked again after a second,
 * and the note has the error.  Counters are passed on unchanged; ledger/series.h handles resets.
 *
 * Channels of a host other than this machine's loopback are `remote`.  A counter is in its domain's
 * sum, a gauge only if the page has no counter for the same device.  A wider scope (psys, the host
 * as a whole) has its own domain. */
#ifndef IPW_ENERGY_SOURCES_PROMETHEUS_H
#define IPW_ENERGY_SOURCES_PROMETHEUS_H

#include "energy/source.h"

struct ipw_buf;

/* How a page is fetched: io/http_get.h has the contract.  Passed as pointers, because energy/ must
 * not include io/. */
struct ipw_page_fetch {
    int (*get)(void **kept, const char *url, struct ipw_buf *body, int64_t timeout_ns, bool *here,
               struct ipw_err *err);
    void (*release)(void *kept);
};

/* The host and port of "http://HOST:PORT/PATH"; *path is what follows them.  IPW_EUNSUPPORTED:
 * https, or a user in the URL. */
int ipw_page_host(char *host, size_t size, const char **path, const char *url, struct ipw_err *err);
/* `url`: "http://host:9400/metrics" (the path is optional).  IPW_ENET, IPW_ETIMEOUT, IPW_EHTTP: no
 * answer; IPW_EUNSUPPORTED: https, or a page without any known series. */
int ipw_prometheus_open(struct ipw_source **out, const struct ipw_source_place *place,
                        const char *url, struct ipw_err *err);

#endif
