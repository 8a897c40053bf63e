/* The Prometheus page, served by libmicrohttpd on loopback, or on other addresses if the user
 * allows it. */
#include <arpa/inet.h>
#include <errno.h>
#include <math.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/text.h"
#include "serve/connections.h"
#include "serve/visitor.h"
#include "telemetry/telemetry.h"

enum { MAX_PAGE_BYTES = 4 * 1024 * 1024, DEFAULT_PORT = 9440 };
enum { CONNECTIONS_MAX = 64, CLOSING_MAX = 64, IDLE_S = 10 };

struct ipw_listener {
    struct ipw_telemetry *telemetry;
    struct MHD_Daemon *daemon;
    struct ipw_visitor_rules visitors;
    struct ipw_connections connections;
    char own_name[256], url[160];
};

static void label(struct ipw_buf *out, const char *name, const char *value, const char *before)
{
    ipw_buf_addf(out, "%s%s=\"", before, name);
    for (; *value; value++) {
        if (*value == '\\' || *value == '"') ipw_buf_addc(out, '\\');
        if (*value == '\n')
            ipw_buf_adds(out, "\\n");
        else
            ipw_buf_addc(out, *value);
    }
    ipw_buf_addc(out, '"');
}

static void labels(struct ipw_buf *out, const char *metric, const struct ipw_live *l)
{
    ipw_buf_adds(out, metric);
    label(out, "channel", l->channel.name, "{");
    label(out, "device", l->channel.device, ",");
    label(out, "domain", ipw_domain_name(l->channel.domain), ",");
    label(out, "scope", ipw_scope_name(l->channel.scope), ",");
    label(out, "source", l->source, ",");
}

static void heading(struct ipw_buf *out, const char *name, const char *type, const char *help)
{
    ipw_buf_addf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

/* A gauge that represents its device also has its integral, so that readers of this page can use
 * either. */
static bool has_joules(const struct ipw_live *l)
{
    return l->seen && (l->channel.kind == IPW_CHANNEL_COUNTER ||
                       (l->channel.kind == IPW_CHANNEL_GAUGE && l->channel.in_sum));
}

/* Metrics that are not energy: a family for each unit that occurs. */
static void metrics_by_unit(struct ipw_buf *out, const struct ipw_telemetry *t)
{
    static const struct {
        const char *unit, *name, *help;
        double scale; /* of the thousandths of a channel's value */
    } families[] = {
        {"pct", "ipw_utilization_ratio", "How busy a device or its memory is, 0 to 1.", 1e-5},
        {"bytes", "ipw_memory_bytes", "Memory of a device, used and there.", 1e-3},
        {"celsius", "ipw_temperature_celsius", "Temperature of a device.", 1e-3},
    };

    for (size_t k = 0; k < sizeof families / sizeof *families; k++) {
        bool any = false;

        for (size_t i = 0; i < t->n; i++) {
            const struct ipw_live *l = &t->live[i];

            if (l->channel.kind != IPW_CHANNEL_METRIC || !l->seen) continue;
            if (strcmp(l->channel.unit, families[k].unit)) continue;
            if (!any) heading(out, families[k].name, "gauge", families[k].help);
            any = true;
            labels(out, families[k].name, l);
            ipw_buf_addf(out, "} %.15g\n", (double)l->value * families[k].scale);
        }
    }
}

void ipw_telemetry_metrics(struct ipw_buf *out, struct ipw_telemetry *t)
{
    int64_t now_ns = ipw_now_ns();

    pthread_mutex_lock(&t->lock);
    heading(out, "ipw_energy_joules_total", "counter",
            "Energy as the device counts it, or its power integrated since the start.");
    for (size_t i = 0; i < t->n; i++) {
        const struct ipw_live *l = &t->live[i];

        if (!has_joules(l)) continue;
        labels(out, "ipw_energy_joules_total", l);
        ipw_buf_addf(out, "} %lld.%06lld\n", (long long)(l->uj / 1000000),
                     (long long)(l->uj % 1000000));
    }
    heading(out, "ipw_power_watts", "gauge", "Power over the last second.");
    for (size_t i = 0; i < t->n; i++) {
        double watts = ipw_live_watts(&t->live[i], now_ns);

        if (isnan(watts)) continue; /* an unknown value is absent, never 0 */
        labels(out, "ipw_power_watts", &t->live[i]);
        ipw_buf_addf(out, "} %.6g\n", watts);
    }
    metrics_by_unit(out, t);
    heading(out, "ipw_sensor_info", "gauge", "One for each channel that is read.");
    for (size_t i = 0; i < t->n; i++) {
        const struct ipw_live *l = &t->live[i];

        labels(out, "ipw_sensor_info", l);
        label(out, "in_sum", l->channel.in_sum ? "true" : "false", ",");
        label(out, "method", l->channel.method, ",");
        label(out, "unit", l->channel.unit, ",");
        ipw_buf_adds(out, "} 1\n");
    }
    pthread_mutex_unlock(&t->lock);
}

static enum MHD_Result reply(struct MHD_Connection *c, unsigned status, const char *type,
                             const char *text, size_t n)
{
    struct MHD_Response *r =
        MHD_create_response_from_buffer(n, (void *)(uintptr_t)text, MHD_RESPMEM_MUST_COPY);
    enum MHD_Result done;

    if (!r) return MHD_NO;
    MHD_add_response_header(r, "Content-Type", type);
    done = MHD_queue_response(c, status, r);
    MHD_destroy_response(r);
    return done;
}

static enum MHD_Result reply_not_here(struct MHD_Connection *c, const char *host)
{
    char message[512];

    ipw_visitor_say_host(message, sizeof message - 1, host);
    strcat(message, "\n");
    return reply(c, MHD_HTTP_FORBIDDEN, "text/plain; charset=utf-8", message, strlen(message));
}

static void completed(void *cls, struct MHD_Connection *c, void **state,
                      enum MHD_RequestTerminationCode why)
{
    struct ipw_listener *l = cls;

    (void)state, (void)why;
    ipw_connections_idle(&l->connections, c);
}

static enum MHD_Result answer(void *cls, struct MHD_Connection *c, const char *url,
                              const char *method, const char *version, const char *upload,
                              size_t *upload_size, void **state)
{
    static const char index[] = "ipw-agent telemetry: see /metrics\n";
    struct ipw_listener *l = cls;
    const char *host = MHD_lookup_connection_value(c, MHD_HEADER_KIND, "Host");
    struct ipw_buf page = IPW_BUF(MAX_PAGE_BYTES);
    enum MHD_Result done;

    (void)version, (void)upload;
    *upload_size = 0;
    *state = l; /* otherwise libmicrohttpd does not report the end of the answer */
    ipw_connections_busy(c);
    if (!ipw_visitor_host(&l->visitors, host)) return reply_not_here(c, host);
    if (strcmp(method, "GET") && strcmp(method, "HEAD"))
        return reply(c, MHD_HTTP_METHOD_NOT_ALLOWED, "text/plain", "GET only\n", 9);
    if (!strcmp(url, "/")) return reply(c, MHD_HTTP_OK, "text/plain", index, sizeof index - 1);
    if (strcmp(url, "/metrics")) return reply(c, MHD_HTTP_NOT_FOUND, "text/plain", "no\n", 3);
    ipw_telemetry_metrics(&page, l->telemetry);
    done = page.failed ? reply(c, MHD_HTTP_INTERNAL_SERVER_ERROR, "text/plain", "too large\n", 10)
                       : reply(c, MHD_HTTP_OK, "text/plain; version=0.0.4; charset=utf-8",
                               ipw_buf_str(&page), page.len);
    ipw_buf_release(&page);
    return done;
}

static int parse_address(struct sockaddr_in *out, const char *where, struct ipw_err *err)
{
    const char *colon = strrchr(where, ':');
    char host[64] = "127.0.0.1";
    int64_t port = DEFAULT_PORT;
    int rc;

    if (colon && colon > where) snprintf(host, sizeof host, "%.*s", (int)(colon - where), where);
    if (!strcmp(host, "localhost")) snprintf(host, sizeof host, "127.0.0.1");
    rc = ipw_parse_int(&port, colon ? colon + 1 : where, 0, 65535, err);
    if (rc) return ipw_err_prefix(err, "--listen %s: expected ADDRESS:PORT", where);
    *out = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    if (inet_pton(AF_INET, host, &out->sin_addr) != 1)
        return ipw_fail(err, IPW_EINVAL, "--listen %s: '%s' is not an IPv4 address", where, host);
    return 0;
}

static bool is_loopback(const struct sockaddr_in *at)
{
    return ntohl(at->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
}

int ipw_telemetry_listen(struct ipw_listener **out, struct ipw_telemetry *t,
                         const struct ipw_listen_options *options, struct ipw_err *err)
{
    const char *where = options->where;
    struct ipw_listener *l;
    struct sockaddr_in at;
    const union MHD_DaemonInfo *info;
    char host[INET_ADDRSTRLEN];
    int rc = parse_address(&at, where, err);

    *out = NULL;
    if (rc) return rc;
    if (!is_loopback(&at) && !options->expose)
        return ipw_fail(err, IPW_EINVAL,
                        "--listen %s: other machines could read this machine's sensors there; add "
                        "--expose to let them, or listen on 127.0.0.1",
                        where);
    l = ipw_calloc(1, sizeof *l);
    l->telemetry = t;
    l->connections.most = CONNECTIONS_MAX;
    l->visitors.names = options->allow_hosts;
    l->visitors.exposed = !is_loopback(&at);
    if (gethostname(l->own_name, sizeof l->own_name - 1) == 0) l->visitors.own_name = l->own_name;
    errno = 0;
    l->daemon = MHD_start_daemon(
        MHD_USE_INTERNAL_POLLING_THREAD, 0, NULL, NULL, answer, l, MHD_OPTION_SOCK_ADDR,
        (struct sockaddr *)&at, MHD_OPTION_NOTIFY_COMPLETED, completed, l,
        MHD_OPTION_NOTIFY_CONNECTION, ipw_connections_notify, &l->connections,
        MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_S, MHD_OPTION_CONNECTION_LIMIT,
        (unsigned)CONNECTIONS_MAX + CLOSING_MAX, MHD_OPTION_END);
    if (!l->daemon) {
        int errnum = errno;
        free(l);
        return ipw_fail_errno(err, errnum, "--listen %s", where);
    }
    info = MHD_get_daemon_info(l->daemon, MHD_DAEMON_INFO_BIND_PORT);
    inet_ntop(AF_INET, &at.sin_addr, host, sizeof host);
    snprintf(l->url, sizeof l->url, "http://%s:%u/metrics", host,
             info && info->port ? info->port : ntohs(at.sin_port));
    *out = l;
    return 0;
}

const char *ipw_listener_url(const struct ipw_listener *l) { return l->url; }

bool ipw_listener_exposed(const struct ipw_listener *l) { return l->visitors.exposed; }

void ipw_listener_close(struct ipw_listener *l)
{
    if (!l) return;
    MHD_stop_daemon(l->daemon);
    free(l);
}
