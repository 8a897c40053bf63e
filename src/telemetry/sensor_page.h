/* telemetry/sensor_page.h: the sensors without a run as a page for a browser (telemetry --listen).
 *
 * Owns the power of the last hour, a point a second.  A server (io/server.h) asks for the page
 * (lua/ipw/live/page.html, which also shows runs), and for the JSON that the page asks for again
 * and again. */
#ifndef IPW_TELEMETRY_SENSOR_PAGE_H
#define IPW_TELEMETRY_SENSOR_PAGE_H

#include <stdint.h>

#include "base/buf.h"

enum { IPW_SENSOR_PAGE_POINTS = 3600 };

struct ipw_sensor_page {
    struct {
        double seconds, watts;
    } hour[IPW_SENSOR_PAGE_POINTS]; /* the point of number n at n % IPW_SENSOR_PAGE_POINTS */
    int64_t n_points;
};

/* Seconds since the start, and the power of the last one; NAN: not known.  Points less than a
 * second after the one before are left out. */
void ipw_sensor_page_power(struct ipw_sensor_page *p, double seconds, double watts);
/* The page, of sensors or of a run, with a new nonce. */
void ipw_sensor_page_html(struct ipw_buf *out);
/* Of the power the points from number `after` on ("points" is how many there were). */
void ipw_sensor_page_json(struct ipw_buf *out, const struct ipw_sensor_page *p, int64_t after);

#endif
