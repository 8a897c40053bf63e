#include "telemetry/telemetry_stream.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/text.h"
#include "energy/sources/stream.h"
#include "json/jsonl.h"
#include "json/write.h"
#include "telemetry/metrics_text.h"
#include "trace/power.h"

#define RING_BYTES (4 * IPW_MIB) /* of four devices, 20 times a second: some minutes */
enum { READERS_MAX = 16, CONNECTIONS_MAX = 64, IDLE_S = 10, PIECE_BYTES = 16 * 1024 };
#define PAGE_BYTES (4 * IPW_MIB)
/* A line without text, so that a client that went away is noticed, and one that waits is not. */
#define BEAT_NS (2 * IPW_NS_PER_S)

struct ipw_telemetry_reader {
    struct ipw_exchange *x;
    struct ipw_line_reader place;
    int64_t sent_ns;
    bool full;
    struct ipw_telemetry_reader *next;
};

static int read_boot_id(char *out, size_t size, struct ipw_err *err)
{
    struct ipw_buf text = IPW_BUF(IPW_KIB);
    int rc = ipw_file_read(&text, "/proc/sys/kernel/random/boot_id", err);

    snprintf(out, size, "%.*s", (int)strcspn(ipw_buf_str(&text), "\n"), ipw_buf_str(&text));
    ipw_buf_release(&text);
    return rc;
}

/* ---- the stream ---- */

static void push(struct ipw_telemetry_reader *r, const char *bytes, size_t n)
{
    if (!n) return;
    r->full = !ipw_answer_push(r->x, bytes, n);
    r->sent_ns = ipw_now_ns();
}

/* What there is for it, up to what it takes. */
static void give(struct ipw_telemetry_stream *s, struct ipw_telemetry_reader *r)
{
    struct ipw_buf lines = IPW_BUF(2 * RING_BYTES);

    while (!r->full) {
        char loss[80];
        uint64_t first, lost;

        ipw_buf_clear(&lines);
        lost = ipw_line_reader_take(&r->place, s->lines, &lines, PIECE_BYTES, &first);
        if (lost) {
            snprintf(loss, sizeof loss, "{\"dropped\":%" PRIu64 ",\"seq\":%" PRIu64 "}\n", lost,
                     first);
            push(r, loss, strlen(loss));
        }
        if (!lines.len) break;
        push(r, lines.data, lines.len);
    }
    ipw_buf_release(&lines);
    if (!ipw_answer_waiting(r->x) && ipw_now_ns() - r->sent_ns > BEAT_NS) push(r, "\n", 1);
}

static void on_room(struct ipw_exchange *x, void *stream)
{
    struct ipw_telemetry_reader *r = ipw_exchange_own(x);

    r->full = false;
    give(stream, r);
}

static void on_over(struct ipw_exchange *x, bool sent, void *stream)
{
    struct ipw_telemetry_reader *r = ipw_exchange_own(x);
    struct ipw_telemetry_stream *s = stream;

    (void)sent;
    if (!r) return; /* there were too many */
    for (struct ipw_telemetry_reader **at = &s->readers; *at; at = &(*at)->next) {
        if (*at != r) continue;
        *at = r->next;
        break;
    }
    free(r);
}

/* It begins after the line that it had last, or at the end. */
static void place(struct ipw_telemetry_stream *s, struct ipw_telemetry_reader *r)
{
    const char *after = ipw_exchange_query(r->x, "after");
    const char *instance = ipw_exchange_query(r->x, "instance");
    int64_t seq;

    ipw_line_reader_end(&r->place, s->lines);
    if (after && instance && !strcmp(instance, s->instance) &&
        !ipw_parse_int(&seq, after, 0, INT64_MAX, NULL))
        ipw_line_reader_after(&r->place, s->lines, (uint64_t)seq);
}

static void on_stream(struct ipw_exchange *x, void *stream)
{
    static const char many[] = "too many readers\n";
    struct ipw_telemetry_stream *s = stream;
    struct ipw_telemetry_reader *r;
    size_t n = 0;

    for (r = s->readers; r; r = r->next) n++;
    if (n >= READERS_MAX) {
        ipw_answer(x, 503, "text/plain; charset=utf-8", many, sizeof many - 1);
        return;
    }
    r = ipw_calloc(1, sizeof *r);
    r->x = x;
    r->next = s->readers;
    s->readers = r;
    ipw_exchange_keep(x, r);
    place(s, r);
    ipw_answer_header(x, "Content-Type", "application/x-ndjson");
    ipw_answer_header(x, "Cache-Control", "no-store");
    ipw_answer_begin(x, 200, -1);
    push(r, ipw_buf_str(&s->hello), s->hello.len);
    give(s, r);
}

/* ---- pages ---- */

static void on_clock(struct ipw_exchange *x, void *stream)
{
    struct ipw_buf page = IPW_BUF(IPW_KIB);
    struct ipw_anchor now;
    struct ipw_jw w;

    (void)stream;
    ipw_anchor_take(&now);
    ipw_jw_init(&w, &page);
    ipw_jw_obj(&w);
    ipw_jw_kint(&w, "mono_ns", now.mono_ns);
    ipw_jw_kint(&w, "wall_ns", now.wall_ns);
    ipw_jw_obj_end(&w);
    ipw_buf_addc(&page, '\n');
    ipw_answer_page(x, "application/json", ipw_buf_str(&page), page.len);
    ipw_buf_release(&page);
}

static void on_metrics(struct ipw_exchange *x, void *stream)
{
    struct ipw_telemetry_stream *s = stream;
    struct ipw_buf page = IPW_BUF(PAGE_BYTES);

    ipw_telemetry_metrics(&page, s->telemetry);
    ipw_answer_page(x, IPW_METRICS_TYPE, ipw_buf_str(&page), page.len);
    ipw_buf_release(&page);
}

static void on_root(struct ipw_exchange *x, void *stream)
{
    struct ipw_buf page = IPW_BUF(PAGE_BYTES);

    (void)stream;
    ipw_sensor_page_html(&page);
    ipw_answer_page(x, "text/html; charset=utf-8", ipw_buf_str(&page), page.len);
    ipw_buf_release(&page);
}

/* The page learns that there is no run: it reads /metrics. */
static void on_figures(struct ipw_exchange *x, void *stream)
{
    const char *text = ipw_exchange_query(x, "after");
    struct ipw_buf out = IPW_BUF(IPW_MIB);
    int64_t after = 0;

    if (text && ipw_parse_int(&after, text, 0, INT64_MAX, NULL)) after = 0;
    ipw_sensor_page_json(&out, ((struct ipw_telemetry_stream *)stream)->page, after);
    ipw_answer_page(x, "application/json", ipw_buf_str(&out), out.len);
    ipw_buf_release(&out);
}

/* ---- opening ---- */

static int open_server(struct ipw_telemetry_stream *s, struct ipw_loop *loop, const char *where,
                       struct ipw_err *err)
{
    int rc = ipw_server_address(s->host, sizeof s->host, &s->options.port, where, err);

    if (rc) return ipw_err_prefix(err, "--listen %s", where);
    s->routes[0] =
        (struct ipw_route){.path = "/metrics", .methods = "GET", .answer = on_metrics, .ud = s};
    s->routes[1] =
        (struct ipw_route){.path = "/clock", .methods = "GET", .answer = on_clock, .ud = s};
    s->routes[2] = (struct ipw_route){.path = "/stream",
                                      .methods = "GET",
                                      .answer = on_stream,
                                      .room = on_room,
                                      .over = on_over,
                                      .ud = s};
    s->routes[3] = (struct ipw_route){.path = "/", .methods = "GET", .answer = on_root, .ud = s};
    s->routes[4] =
        (struct ipw_route){.path = "/live.json", .methods = "GET", .answer = on_figures, .ud = s};
    s->page = ipw_calloc(1, sizeof *s->page);
    s->options.routes = s->routes;
    s->options.n_routes = 5;
    s->options.host = s->host;
    s->options.not_exposed = "other machines could read this machine's sensors there; add --expose "
                             "to let them, or listen on 127.0.0.1";
    s->options.connections = CONNECTIONS_MAX;
    s->options.idle_s = IDLE_S;
    rc = ipw_server_open(&s->server, &s->options, err);
    if (!rc) rc = ipw_server_attach(s->server, loop, err);
    return rc ? ipw_err_prefix(err, "--listen %s", where) : 0;
}

int ipw_telemetry_stream_open(struct ipw_telemetry_stream *s, struct ipw_telemetry *t,
                              struct ipw_loop *loop, const char *where, bool expose,
                              const char *const *allow_hosts, struct ipw_err *err)
{
    struct ipw_buf power = IPW_BUF(IPW_MIB);
    char boot_id[40];
    uint64_t random;
    struct ipw_jw w;
    int rc = read_boot_id(boot_id, sizeof boot_id, err);

    *s = (struct ipw_telemetry_stream){.telemetry = t,
                                       .hello = IPW_BUF(2 * IPW_MIB),
                                       .line = IPW_BUF(IPW_STREAM_LINE_MAX),
                                       .options = {.expose = expose, .allow_hosts = allow_hosts}};
    if (rc) return rc;
    if (getrandom(&random, sizeof random, 0) != sizeof random)
        return ipw_fail_errno(err, errno, "getrandom");
    snprintf(s->instance, sizeof s->instance, "%016llx", (unsigned long long)random);
    ipw_power_header_write(&power, &t->set, t->interval_ns, 0);
    ipw_jw_init(&w, &s->hello);
    ipw_jw_obj(&w);
    ipw_jw_kstr(&w, "boot_id", boot_id);
    ipw_jw_kstr(&w, "instance", s->instance);
    ipw_jw_key(&w, "power");
    ipw_jw_raw(&w, power.data, power.len ? power.len - 1 : 0);
    ipw_jw_kint(&w, "stream", IPW_STREAM_FORMAT);
    ipw_jw_obj_end(&w);
    ipw_buf_addc(&s->hello, '\n');
    ipw_buf_release(&power);
    s->lines = ipw_line_ring_new(RING_BYTES);
    return open_server(s, loop, where, err);
}

void ipw_telemetry_stream_row(struct ipw_telemetry_stream *s, const struct ipw_sampler_row *row)
{
    struct ipw_anchor now;
    struct ipw_jw w;

    if (!s->lines) return;
    ipw_anchor_take(&now);
    ipw_buf_clear(&s->line);
    ipw_jw_init(&w, &s->line);
    ipw_jw_obj(&w);
    ipw_jw_kint(&w, "mono_ns", row->t_ns);
    ipw_jw_kint(&w, "seq", (int64_t)ipw_line_ring_next(s->lines));
    ipw_jw_kint(&w, "source", (int64_t)row->source);
    ipw_jw_key(&w, "values");
    ipw_jw_arr(&w);
    for (size_t i = 0; i < row->n; i++) {
        if (row->values[i] == IPW_NO_VALUE)
            ipw_jw_null(&w);
        else
            ipw_jw_int(&w, row->values[i]);
    }
    ipw_jw_arr_end(&w);
    ipw_jw_kint(&w, "wall_ns", ipw_anchor_wall_ns(&now, row->t_ns));
    ipw_jw_obj_end(&w);
    ipw_buf_addc(&s->line, '\n');
    ipw_line_ring_put(s->lines, s->line.data, s->line.len);
    s->waiting = true;
}

/* Of the whole machine, else the sum of the devices whose power is known. */
static double watts_now(const struct ipw_telemetry *t, int64_t now_ns)
{
    double sum = NAN;

    for (size_t i = 0; i < IPW_DOMAIN_COUNT; i++) {
        double watts = ipw_telemetry_domain_watts(t, (enum ipw_domain)i, now_ns);

        if (isnan(watts)) continue;
        sum = isnan(sum) || i == IPW_DOMAIN_MACHINE ? watts : sum + watts;
    }
    return sum;
}

void ipw_telemetry_stream_tell(struct ipw_telemetry_stream *s)
{
    int64_t now_ns = ipw_now_ns();

    if (s->page)
        ipw_sensor_page_power(s->page, ipw_ns_to_s(now_ns - s->telemetry->start_ns),
                              watts_now(s->telemetry, now_ns));
    if (!s->server || (!s->waiting && ipw_now_ns() - s->told_ns < IPW_NS_PER_S)) return;
    s->waiting = false;
    s->told_ns = ipw_now_ns();
    for (struct ipw_telemetry_reader *r = s->readers; r; r = r->next) give(s, r);
}

void ipw_telemetry_stream_close(struct ipw_telemetry_stream *s)
{
    ipw_server_close(s->server);
    free(s->page);
    ipw_line_ring_free(s->lines);
    ipw_buf_release(&s->hello);
    ipw_buf_release(&s->line);
    *s = (struct ipw_telemetry_stream){0};
}
