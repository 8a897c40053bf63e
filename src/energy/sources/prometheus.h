/* energy/sources/prometheus.h: energy that an exporter publishes.
 *
 * Scrapes one Prometheus text page over plain http and makes a channel of every series that
 * lua/ipw/prometheus.lua knows.  The first scrape decides the channels.  Each later read is one
 * scrape, at most once per period, in the sampler's own thread.  A series that is missing, blank or
 * not a number is IPW_NO_VALUE, and so is one whose own time stamp stands still, by the rule of
 * sources/meter_feed.h.  An exporter that does not answer is asked again after a second,
 * and the note has the error.  Counters are passed on unchanged; ledger/series.h handles resets.
 *
 * Channels of a host other than this machine's loopback are `remote`.
 *
 * The page is parsed sample by sample, lenient as a scraper must be: comment lines (HELP, TYPE,
 * EOF) and exemplars after a value are skipped, a line that is not a sample is counted and skipped,
 * and strings of a sample are borrowed for the callback. */
#ifndef IPW_ENERGY_SOURCES_PROMETHEUS_H
#define IPW_ENERGY_SOURCES_PROMETHEUS_H

#include "energy/source.h"

struct ipw_buf;

/* How a page is fetched: io/http_get.h has the contract.  Passed as pointers, because energy/ must
 * not include io/ or script/. */
struct ipw_page_fetch {
    int (*get)(void **kept, const char *url, struct ipw_buf *body, int64_t timeout_ns, bool *here,
               struct ipw_err *err);
    void (*release)(void *kept);
    /* Which samples of a page are energy (lua/ipw/prometheus.lua, both JSON); for this source. */
    int (*series)(struct ipw_buf *out, const struct ipw_buf *page, struct ipw_err *err);
};

/* The host and port of "http://HOST:PORT/PATH"; *path is what follows them.  IPW_EUNSUPPORTED:
 * https, or a user in the URL. */
int ipw_page_host(char *host, size_t size, const char **path, const char *url, struct ipw_err *err);
/* `url`: "http://host:9400/metrics" (the path is optional).  IPW_ENET, IPW_ETIMEOUT, IPW_EHTTP: no
 * answer; IPW_EUNSUPPORTED: https, or a page without any known series. */
int ipw_prometheus_open(struct ipw_source **out, const struct ipw_source_place *place,
                        const char *url, struct ipw_err *err);

/* ---- the samples of a page ---- */

#define IPW_PROM_LABELS 48 /* further labels of a sample are dropped */

struct ipw_prom_sample {
    const char *name;
    struct {
        const char *name, *value; /* value: without escapes */
    } labels[IPW_PROM_LABELS];
    size_t n_labels;
    double value; /* may be NAN or an infinity */
    bool is_int;  /* `integer` is the exact value */
    int64_t integer;
    int64_t stamp_ms; /* its own time, since 1970; INT64_MIN: none */
};

/* Returns the number of lines that were neither samples, comments nor blank; *first_bad (may be
 * NULL) is the line number of the first, from 1. */
size_t ipw_prom_parse(const char *text, size_t n,
                      void (*fn)(void *ud, const struct ipw_prom_sample *sample), void *ud,
                      size_t *first_bad);

/* The label's value, or "". */
const char *ipw_prom_label(const struct ipw_prom_sample *sample, const char *name);

#endif
