#include "telemetry/run_page.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/text.h"
#include "json/write.h"
#include "run/progress.h"
#include "script/embedded.h"
#include "telemetry/in_flight.h"

enum { NAME_BYTES = 400, NONCE_BYTES = 16, HOUR_POINTS = 3600 };
/* An open page asks twice a second, one in the background once. */
#define READER_GONE_NS (3 * IPW_NS_PER_S)

struct figures {
    char agent[NAME_BYTES], model[NAME_BYTES], dataset[NAME_BYTES], folder[NAME_BYTES];
    struct ipw_progress_state state;
    bool ended;
};

struct ipw_run_page {
    struct figures now;
    struct ipw_in_flight *flights;
    struct {
        double seconds, watts;
    } hour[HOUR_POINTS]; /* the point of number n at n % HOUR_POINTS */
    int64_t n_points;
    bool sensors;                    /* without a run */
    int64_t asked_ns;                /* when the figures were last asked for, or 0 */
    char nonce[2 * NONCE_BYTES + 1]; /* of the page's own style and script */
};

struct ipw_run_page *ipw_run_page_new(bool sensors)
{
    struct ipw_run_page *p = ipw_calloc(1, sizeof *p);
    unsigned char random[NONCE_BYTES];

    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
        IPW_BUG("the kernel gives no random bytes");
    for (size_t i = 0; i < sizeof random; i++) sprintf(p->nonce + 2 * i, "%02x", random[i]);
    p->now.state = IPW_PROGRESS_NONE;
    p->flights = ipw_in_flight_new();
    p->sensors = sensors;
    return p;
}

void ipw_run_page_free(struct ipw_run_page *p)
{
    if (p) ipw_in_flight_free(p->flights);
    free(p);
}

void ipw_run_page_begun(struct ipw_run_page *p, const struct ipw_observed_run *run)
{
    snprintf(p->now.agent, NAME_BYTES, "%s", run->agent);
    snprintf(p->now.model, NAME_BYTES, "%s", run->model);
    snprintf(p->now.dataset, NAME_BYTES, "%s", run->dataset);
    snprintf(p->now.folder, NAME_BYTES, "%s", run->folder);
}

void ipw_run_page_progress(struct ipw_run_page *p, const struct ipw_progress_state *state)
{
    p->now.state = *state;
    ipw_run_page_power(p, state->seconds, state->watts);
}

void ipw_run_page_event(struct ipw_run_page *p, const struct ipw_event *e)
{
    ipw_in_flight_event(p->flights, e);
}

void ipw_run_page_power(struct ipw_run_page *p, double seconds, double watts)
{
    if (p->n_points && seconds < p->hour[(p->n_points - 1) % HOUR_POINTS].seconds + 1) return;
    p->hour[p->n_points % HOUR_POINTS].seconds = seconds;
    p->hour[p->n_points++ % HOUR_POINTS].watts = watts;
}

void ipw_run_page_ended(struct ipw_run_page *p) { p->now.ended = true; }

bool ipw_run_page_is_read(const struct ipw_run_page *p)
{
    return p->asked_ns && ipw_now_ns() - p->asked_ns < READER_GONE_NS;
}

static double tenths(double x) { return floor(x * 10 + 0.5) / 10; }

static void write_power(struct ipw_jw *w, const struct ipw_run_page *p, int64_t after)
{
    int64_t first = p->n_points > HOUR_POINTS ? p->n_points - HOUR_POINTS : 0;

    ipw_jw_kint(w, "points", p->n_points);
    ipw_jw_key(w, "power");
    ipw_jw_arr(w);
    for (int64_t i = after > first ? after : first; i < p->n_points; i++) {
        ipw_jw_arr(w);
        ipw_jw_num(w, tenths(p->hour[i % HOUR_POINTS].seconds));
        ipw_jw_num(w, tenths(p->hour[i % HOUR_POINTS].watts)); /* NAN is null */
        ipw_jw_arr_end(w);
    }
    ipw_jw_arr_end(w);
}

void ipw_run_page_json(struct ipw_buf *out, struct ipw_run_page *p, int64_t after)
{
    const struct figures *f = &p->now;
    struct ipw_jw w;

    p->asked_ns = ipw_now_ns();
    ipw_jw_init(&w, out);
    ipw_jw_obj(&w);
    ipw_jw_kstr(&w, "agent", f->agent);
    ipw_jw_kstr(&w, "dataset", f->dataset);
    ipw_jw_kbool(&w, "ended", f->ended);
    ipw_in_flight_write(&w, p->flights, ipw_now_ns());
    ipw_jw_kstr(&w, "folder", f->folder);
    ipw_jw_kstr(&w, "model", f->model);
    write_power(&w, p, after);
    ipw_jw_key(&w, "progress");
    ipw_progress_write(&w, &f->state);
    ipw_jw_kbool(&w, "sensors", p->sensors);
    ipw_jw_obj_end(&w);
    ipw_buf_addc(out, '\n');
}

void ipw_run_page_answer(struct ipw_exchange *x, struct ipw_run_page *p)
{
    const char *text = ipw_exchange_query(x, "after");
    struct ipw_buf out = IPW_BUF(IPW_MIB);
    int64_t after = 0;

    if (text && ipw_parse_int(&after, text, 0, INT64_MAX, NULL)) after = 0;
    ipw_run_page_json(&out, p, after);
    ipw_answer_page(x, "application/json", ipw_buf_str(&out), out.len);
    ipw_buf_release(&out);
}

/* The page allows only its own style and script: both carry the nonce. */
void ipw_run_page_html(struct ipw_buf *out, void *page)
{
    static const char mark[] = "{{nonce}}";
    const struct ipw_embedded_file *file = ipw_embedded_find("lua/ipw/live/page.html");
    const struct ipw_run_page *p = page;
    const char *at = file->bytes, *next;

    for (; (next = strstr(at, mark)); at = next + sizeof mark - 1) {
        ipw_buf_add(out, at, (size_t)(next - at));
        ipw_buf_adds(out, p->nonce);
    }
    ipw_buf_adds(out, at);
}
