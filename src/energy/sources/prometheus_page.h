/* energy/sources/prometheus_page.h: which series of an exporter's page are energy, and of which
 * device.
 *
 * Pure.  It parses the text format sample by sample, lenient as a scraper must be: comment lines
 * (HELP, TYPE, EOF) and exemplars after a value are skipped, a line that is not a sample is counted
 * and skipped, and strings of a sample are borrowed for the callback.  Then it tells the meaning of
 * a sample, and decides which series of the whole page make up their domain's sum.  The table of
 * known names is in the .c file. */
#ifndef IPW_ENERGY_SOURCES_PROMETHEUS_PAGE_H
#define IPW_ENERGY_SOURCES_PROMETHEUS_PAGE_H

#include "energy/source.h"

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

struct ipw_prom_series {
    char key[256];   /* identifies the series from scrape to scrape */
    char group[192]; /* the device: all readings of one device have the same group */
    char chip[96];   /* for hwmon: another series names this chip's kind */
    /* Of two gauges of one group, the one with the lower rank is left out. */
    int rank;
    double factor;              /* converts the value to microjoules or milliwatts */
    bool blank_ints;            /* DCGM: integers near the maximum mean "unknown" */
    bool twin;                  /* the page has the same register under another path */
    bool own;                   /* from another ipw-agent */
    struct ipw_channel channel; /* without host; `in_sum` set by ipw_prom_series_choose() */
};

/* False: not a series of energy or power, or one that only divides another. */
bool ipw_prom_series_of(struct ipw_prom_series *out, const struct ipw_prom_sample *sample);
/* The name of a chip (node_hwmon_chip_names) decides the domain of its series. */
void ipw_prom_series_chip(struct ipw_prom_series *series, const char *chip_name);
/* Sets in_sum of all the series of a page. */
void ipw_prom_series_choose(struct ipw_prom_series *series, size_t n);
/* Microjoules or milliwatts; IPW_NO_VALUE for a blank or negative value, or one that is not a
 * number. */
int64_t ipw_prom_series_value(const struct ipw_prom_series *series,
                              const struct ipw_prom_sample *sample);

#endif
