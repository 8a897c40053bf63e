/* energy/meter_priv.h: what the files of the meter log share.
 *
 * meter_format.c reads the heading and numbers, meter_time.c times, meter.c rows and logs.  For
 * nobody else. */
#ifndef IPW_ENERGY_METER_PRIV_H
#define IPW_ENERGY_METER_PRIV_H

#include "energy/meter.h"

enum { METER_CELLS = 64 };

struct meter_cell {
    const char *text; /* without blanks and quotes around it */
    size_t n;
};

/* How many cells the line has; the first `max` of them are kept. */
size_t ipw_meter_split(struct meter_cell *cells, size_t max, const char *line, size_t n,
                       char delimiter);
/* A number at the start of text; `used` bytes of it. */
bool ipw_meter_number(const char *text, size_t n, bool decimal_comma, double *value, size_t *used);
/* A time, in the format's clock, which the first one decides. */
int ipw_meter_time(struct ipw_meter_format *f, const char *text, size_t n, double *t_s,
                   struct ipw_err *err);

#endif
