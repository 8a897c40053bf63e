/* energy/sources/prometheus_series.h: which series of an exporter's page are energy, and of which
 * device.
 *
 * Pure: takes one sample and tells its meaning; then decides which series of the whole page make up
 * their domain's sum.  The table of known names is in the .c file. */
#ifndef IPW_ENERGY_SOURCES_PROMETHEUS_SERIES_H
#define IPW_ENERGY_SOURCES_PROMETHEUS_SERIES_H

#include "energy/source.h"
#include "energy/sources/prometheus_text.h"

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
/* Sets in_sum of all the series of a page, and makes their names unique. */
void ipw_prom_series_choose(struct ipw_prom_series *series, size_t n);
/* Microjoules or milliwatts; IPW_NO_VALUE for a blank or negative value, or one that is not a
 * number. */
int64_t ipw_prom_series_value(const struct ipw_prom_series *series,
                              const struct ipw_prom_sample *sample);

#endif
