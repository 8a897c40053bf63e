/* energy/meter_priv.h: shared by the files of the meter log.
 *
 * meter_format.c reads the heading and numbers, meter_time.c times, meter.c rows and logs.
 * Internal to them. */
#ifndef IPW_ENERGY_METER_PRIV_H
#define IPW_ENERGY_METER_PRIV_H

#include "energy/meter.h"

enum { METER_CELLS = 64 };

struct meter_cell {
    const char *text; /* without surrounding blanks and quotes */
    size_t n;
};

/* Splits a line and returns its number of cells; keeps the first `max`. */
size_t ipw_meter_split(struct meter_cell *cells, size_t max, const char *line, size_t n,
                       char delimiter);
/* Reads a number at the start of text; it occupies `used` bytes. */
bool ipw_meter_number(const char *text, size_t n, bool decimal_comma, double *value, size_t *used);
/* Reads a line that is a single reading; *kind: what its unit names, or IPW_METER_NONE. */
bool ipw_meter_single(const char *line, size_t n, double *t_s, double *value,
                      enum ipw_meter_kind *kind);
/* Reads a time in the format's clock; the first time decides the clock. */
int ipw_meter_time(struct ipw_meter_format *f, const char *text, size_t n, double *t_s,
                   struct ipw_err *err);

#endif
