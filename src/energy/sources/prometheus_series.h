/* energy/sources/prometheus_series.h: which series of an exporter's page are energy, and of what.
 *
 * Pure: one sample in, what it stands for out; then, over all that a page has, which of them make
 * up their domain's sum.  The table of known names is in the .c file. */
#ifndef IPW_ENERGY_SOURCES_PROMETHEUS_SERIES_H
#define IPW_ENERGY_SOURCES_PROMETHEUS_SERIES_H

#include "energy/source.h"
#include "energy/sources/prometheus_text.h"

struct ipw_prom_series {
    char key[256];              /* what it is known by from scrape to scrape */
    char group[192];            /* the device: readings of one device have one group */
    char chip[96];              /* of hwmon: whose kind is told by another series */
    int rank;                   /* of two gauges of one group the lower one stands back */
    double factor;              /* from the value to microjoules or milliwatts */
    bool blank_ints;            /* DCGM: integers near the top stand for "not known" */
    bool twin;                  /* the same register is on the page under another path */
    bool own;                   /* of another ipw-agent */
    struct ipw_channel channel; /* without host; `in_sum` set by ipw_prom_series_choose() */
};

/* False: not a series of energy or power, or one that only splits another up. */
bool ipw_prom_series_of(struct ipw_prom_series *out, const struct ipw_prom_sample *sample);
/* The name of a chip (node_hwmon_chip_names) decides the domain of its series. */
void ipw_prom_series_chip(struct ipw_prom_series *series, const char *chip_name);
/* Sets in_sum of all the series of a page, and makes their names differ. */
void ipw_prom_series_choose(struct ipw_prom_series *series, size_t n);
/* Microjoules or milliwatts; IPW_NO_VALUE for what is blank, negative or no number. */
int64_t ipw_prom_series_value(const struct ipw_prom_series *series,
                              const struct ipw_prom_sample *sample);

#endif
