/* energy/sources/prometheus.h: energy that somebody else's exporter publishes.
 *
 * Scrapes one Prometheus text page over plain http and makes a channel of every series that it
 * knows: NVIDIA's DCGM exporter, Scaphandre, Kepler, node_exporter (powercap, hwmon), and another
 * `ipw-agent telemetry --listen`.  The channels are those of the first scrape; each later read is
 * one scrape, at most once a period, in the sampler's own thread.  A series that is missing, blank
 * or not a number is IPW_NO_VALUE; an exporter that does not answer is asked again after a second,
 * and what went wrong stands in the note.  Counters are handed on as they are: resets are the
 * series' business (ledger/series.h).
 *
 * Channels of a host other than this machine's loopback are `remote`.  A counter is in its domain's
 * sum, a gauge only where the page has no counter for the same device, and a wider scope (psys, the
 * host as a whole) has a domain of its own. */
#ifndef IPW_ENERGY_SOURCES_PROMETHEUS_H
#define IPW_ENERGY_SOURCES_PROMETHEUS_H

#include "energy/source.h"

struct ipw_buf;

/* How a page is fetched: io/http_get.h, which has the contract.  Handed in, because energy/ does not
 * see io/. */
struct ipw_page_fetch {
    int (*get)(void **kept, const char *url, struct ipw_buf *body, int64_t timeout_ns, bool *here,
               struct ipw_err *err);
    void (*release)(void *kept);
};

/* `url`: "http://host:9400/metrics" (the path may be left out).  IPW_ENET, IPW_ETIMEOUT, IPW_EHTTP:
 * it did not answer; IPW_EUNSUPPORTED: https, or a page without any series that is known. */
int ipw_prometheus_open(struct ipw_source **out, const char *url,
                        const struct ipw_page_fetch *fetch, struct ipw_err *err);

#endif
