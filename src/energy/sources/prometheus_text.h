/* energy/sources/prometheus_text.h: parses the Prometheus text exposition format, sample by sample.
 *
 * Pure, and lenient, as a scraper must be.  It skips comment lines (HELP, TYPE, EOF), and exemplars
 * after a value.  A line that is not a sample is counted and skipped.  Strings
 * of a sample are borrowed for the callback. */
#ifndef IPW_ENERGY_SOURCES_PROMETHEUS_TEXT_H
#define IPW_ENERGY_SOURCES_PROMETHEUS_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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
