#include "telemetry/sensor_page.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "base/err.h"
#include "json/write.h"
#include "script/embedded.h"

void ipw_sensor_page_power(struct ipw_sensor_page *p, double seconds, double watts)
{
    int64_t n = p->n_points;

    if (n && seconds < p->hour[(n - 1) % IPW_SENSOR_PAGE_POINTS].seconds + 1) return;
    p->hour[n % IPW_SENSOR_PAGE_POINTS].seconds = seconds;
    p->hour[n % IPW_SENSOR_PAGE_POINTS].watts = watts;
    p->n_points++;
}

static double tenths(double x) { return floor(x * 10 + 0.5) / 10; }

void ipw_sensor_page_json(struct ipw_buf *out, const struct ipw_sensor_page *p, int64_t after)
{
    int64_t first = p->n_points > IPW_SENSOR_PAGE_POINTS ? p->n_points - IPW_SENSOR_PAGE_POINTS : 0;
    struct ipw_jw w;

    ipw_jw_init(&w, out);
    ipw_jw_obj(&w);
    ipw_jw_kint(&w, "points", p->n_points);
    ipw_jw_key(&w, "power");
    ipw_jw_arr(&w);
    for (int64_t i = after > first ? after : first; i < p->n_points; i++) {
        ipw_jw_arr(&w);
        ipw_jw_num(&w, tenths(p->hour[i % IPW_SENSOR_PAGE_POINTS].seconds));
        ipw_jw_num(&w, tenths(p->hour[i % IPW_SENSOR_PAGE_POINTS].watts)); /* NAN is null */
        ipw_jw_arr_end(&w);
    }
    ipw_jw_arr_end(&w);
    ipw_jw_kbool(&w, "sensors", true);
    ipw_jw_obj_end(&w);
    ipw_buf_addc(out, '\n');
}

/* The page allows only its own style and script: both carry the nonce. */
void ipw_sensor_page_html(struct ipw_buf *out)
{
    static const char mark[] = "{{nonce}}";
    const struct ipw_embedded_file *file = ipw_embedded_find("lua/ipw/live/page.html");
    const char *at = file->bytes, *next;
    unsigned long long random[2];
    char nonce[40];

    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
        IPW_BUG("the kernel gives no random bytes");
    snprintf(nonce, sizeof nonce, "%016llx%016llx", random[0], random[1]);
    for (; (next = strstr(at, mark)); at = next + sizeof mark - 1) {
        ipw_buf_add(out, at, (size_t)(next - at));
        ipw_buf_adds(out, nonce);
    }
    ipw_buf_adds(out, at);
}
