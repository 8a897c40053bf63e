#include "energy/sources/prometheus.h"

#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "io/http_get.h"
#include "script/lua_text.h"
#include "unit/energy/energy_test.h"
#include "unit/unit.h"

/* ---- the text format ---- */

struct seen {
    char text[4096];
    size_t n;
};

static void note_sample(void *ud, const struct ipw_prom_sample *s)
{
    struct seen *seen = ud;
    size_t used = strlen(seen->text);

    seen->n++;
    used += (size_t)snprintf(seen->text + used, sizeof seen->text - used, "%s", s->name);
    for (size_t i = 0; i < s->n_labels; i++) {
        used += (size_t)snprintf(seen->text + used, sizeof seen->text - used, "[%s=%s]",
                                 s->labels[i].name, s->labels[i].value);
    }
    snprintf(seen->text + used, sizeof seen->text - used, s->is_int ? " =%.0f;" : " %g;", s->value);
}

static void test_text_format(void **state)
{
    static const struct {
        const char *text, *seen;
        size_t bad, first_bad;
    } cases[] = {
        {"a 1\n", "a =1;", 0, 0},
        {"# HELP a b\n# TYPE a counter\n\na 1.5\n# EOF\n", "a 1.5;", 0, 0},
        {"a{} 1\na{x=\"1\"} 2\na{x=\"1\",} 3\n", "a =1;a[x=1] =2;a[x=1] =3;", 0, 0},
        {"a { x = \"1\" , y=\"2\" } 2e3\n", "a[x=1][y=2] 2000;", 0, 0},
        {"a{x=\"q\\\"b\\\\n\\n}\"} 1\n", "a[x=q\"b\\n\n}] =1;", 0, 0},
        {"a 1 1700000000123\na 2 17.5 # {t=\"1\"} 3\na 3 # {} 1\n", "a =1;a =2;a =3;", 0, 0},
        {"a NaN\nb +Inf\nc -Inf\n", "a nan;b inf;c -inf;", 0, 0},
        {"a 1\r\nb 2", "a =1;b =2;", 0, 0},
        {"a\nb 0x10\nc{ 1\nd{x=1} 2\ne{x=\"1} 2\nf 1 x\n9 1\ng 1\n", "g =1;", 7, 1},
        {"ok 1\nbad{x=\"1\"y=\"2\"} 1\n", "ok =1;", 1, 2},
        {"a 9223372036854775807\nb 9223372036854775808\n", "a =9223372036854775808;b 9.22337e+18;",
         0, 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct seen seen = {0};
        size_t first = 99;
        size_t bad =
            ipw_prom_parse(cases[i].text, strlen(cases[i].text), note_sample, &seen, &first);

        assert_string_equal(seen.text, cases[i].seen);
        assert_int_equal(bad, cases[i].bad);
        assert_int_equal(first, cases[i].first_bad);
    }
}

static void test_text_long_lines(void **state)
{
    char *text = malloc(100000);
    struct seen seen = {0};
    size_t n = 0;

    (void)state;
    n += (size_t)sprintf(text, "a{x=\"");
    memset(text + n, 'y', 90000);
    n += 90000;
    n += (size_t)sprintf(text + n, "\"} 1\nb 2\nc{");
    for (int i = 0; i < 100; i++) n += (size_t)sprintf(text + n, "l%d=\"\",", i);
    n += (size_t)sprintf(text + n, "} 3\n");
    assert_int_equal(ipw_prom_parse(text, n, note_sample, &seen, NULL), 1);
    assert_int_equal(seen.n, 2);
    free(text);
}

/* ---- an exporter ---- */

/* As the program asks. */
static int make_series(struct ipw_buf *out, const struct ipw_buf *page, struct ipw_err *err)
{
    return ipw_lua_text(out, "ipw.prometheus", page, &(struct ipw_lua_text_style){0}, err);
}

static const struct ipw_page_fetch fetch = {ipw_http_get, ipw_http_get_release, make_series};

struct exporter {
    int listener;
    char url[64];
    pthread_t thread;
    const char *_Atomic reply; /* a whole answer; NULL: accept and say nothing */
    atomic_int requests;
};

static void *serve(void *arg)
{
    struct exporter *e = arg;
    int fd, silent[16], n_silent = 0;

    while ((fd = accept(e->listener, NULL, NULL)) >= 0) {
        const char *reply = atomic_load(&e->reply);
        char request[2048];
        size_t n = 0;

        atomic_fetch_add(&e->requests, 1);
        if (!reply && n_silent < 16) {
            silent[n_silent++] = fd;
            continue;
        }
        while (n < sizeof request - 1) {
            ssize_t k = read(fd, request + n, sizeof request - 1 - n);
            if (k <= 0) break;
            n += (size_t)k;
            request[n] = '\0';
            if (strstr(request, "\r\n\r\n")) break;
        }
        for (size_t at = 0, all = reply ? strlen(reply) : 0; at < all;) {
            ssize_t k = send(fd, reply + at, all - at, MSG_NOSIGNAL);
            if (k <= 0) break;
            at += (size_t)k;
        }
        close(fd);
    }
    while (n_silent > 0) close(silent[--n_silent]);
    return NULL;
}

static void start(struct exporter *e, const char *reply)
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof in;

    atomic_init(&e->reply, reply);
    atomic_init(&e->requests, 0);
    e->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(e->listener, (struct sockaddr *)&in, sizeof in), 0);
    assert_int_equal(listen(e->listener, 16), 0);
    assert_int_equal(getsockname(e->listener, (struct sockaddr *)&in, &size), 0);
    snprintf(e->url, sizeof e->url, "http://127.0.0.1:%d/metrics", ntohs(in.sin_port));
    assert_int_equal(pthread_create(&e->thread, NULL, serve, e), 0);
}

static void stop(struct exporter *e)
{
    shutdown(e->listener, SHUT_RDWR);
    pthread_join(e->thread, NULL);
    close(e->listener);
}

#define OK "HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\n"

static const struct ipw_channel *channel(const struct ipw_source *s, const char *short_name,
                                         size_t *at)
{
    for (size_t i = 0; i < s->n_channels; i++) {
        const char *slash = strchr(s->channels[i].name, '/');
        if (slash && strcmp(slash + 1, short_name) == 0) {
            if (at) *at = i;
            return &s->channels[i];
        }
    }
    fail_msg("no channel %s", short_name);
    return NULL;
}

static struct ipw_source *open_page(struct exporter *e, const char *page)
{
    struct ipw_source *source;
    struct ipw_err err = {0};

    start(e, page);
    if (ipw_prometheus_open(&source, &(struct ipw_source_place){.fetch = &fetch}, e->url, &err) < 0)
        fail_msg("%s", err.text);
    return source;
}

static int64_t value_of(struct ipw_source *s, const char *short_name)
{
    int64_t values[64];
    size_t at = 0;

    assert_true(s->n_channels <= 64);
    channel(s, short_name, &at);
    s->read(s, values);
    return values[at];
}

static void test_dcgm(void **state)
{
    static const char page[] =
        OK "# HELP DCGM_FI_DEV_POWER_USAGE Power draw (in W).\n"
           "# TYPE DCGM_FI_DEV_POWER_USAGE gauge\n"
           "DCGM_FI_DEV_POWER_USAGE{gpu=\"0\",UUID=\"GPU-a\",device=\"nvidia0\"} 68.244000\n"
           "DCGM_FI_DEV_POWER_USAGE{gpu=\"1\",UUID=\"GPU-b\",device=\"nvidia1\",modelName=\"NVIDIA "
           "H100\"} 70.5\n"
           "DCGM_FI_DEV_POWER_USAGE_INSTANT{gpu=\"1\",UUID=\"GPU-b\",device=\"nvidia1\"} 71.5\n"
           "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{gpu=\"0\",UUID=\"GPU-a\",pod=\"x\"} 15152422938\n"
           "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{gpu=\"0\",UUID=\"GPU-a\",pod=\"y\"} 15152422938\n"
           "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{gpu=\"2\",UUID=\"GPU-c\"} 9223372036854775794\n"
           "DCGM_FI_DEV_GPU_TEMP{gpu=\"0\",UUID=\"GPU-a\"} 41\n";
    struct exporter e;
    struct ipw_source *s = open_page(&e, page);

    (void)state;
    assert_string_equal(s->name, "prometheus");
    assert_int_equal(s->n_channels, 4);
    assert_string_equal(s->note, "without a value and not counted: "
                                 "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{2|GPU-c|}");
    assert_true(channel(s, "gpu0", NULL)->in_sum);
    assert_int_equal(channel(s, "gpu0", NULL)->kind, IPW_CHANNEL_COUNTER);
    assert_int_equal(channel(s, "gpu0", NULL)->domain, IPW_DOMAIN_GPU);
    assert_int_equal(channel(s, "gpu0", NULL)->scope, IPW_SCOPE_DEVICE);
    assert_string_equal(channel(s, "gpu0", NULL)->device, "GPU-a");
    assert_string_equal(channel(s, "gpu1/power", NULL)->device, "GPU-b NVIDIA H100");
    assert_false(channel(s, "gpu0", NULL)->remote); /* loopback */
    assert_false(channel(s, "gpu0/power", NULL)->in_sum);
    /* Without a counter, power stands in: the instant one of the two. */
    assert_false(channel(s, "gpu1/power", NULL)->in_sum);
    assert_true(channel(s, "gpu1/power#2", NULL)->in_sum);
    assert_int_equal(value_of(s, "gpu0"), INT64_C(15152422938000));
    assert_int_equal(value_of(s, "gpu0/power"), 68244);
    assert_int_equal(value_of(s, "gpu1/power#2"), 71500);
    atomic_store(&e.reply, OK "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{gpu=\"0\",UUID=\"GPU-a\"} "
                              "9223372036854775794\n");
    assert_true(value_of(s, "gpu0") == IPW_NO_VALUE);
    s->close(s);
    stop(&e);
}

static void test_scaphandre(void **state)
{
    static const char page[] = OK
        "scaph_host_energy_microjoules 123456789012\n"
        "scaph_host_power_microwatts 25000000\n"
        "scaph_socket_energy_microjoules{socket_id=\"0\"} 100000001\n"
        "scaph_socket_power_microwatts{socket_id=\"0\"} 20000000\n"
        "scaph_domain_energy_microjoules{socket_id=\"0\",domain_id=\"0\",domain_name=\"dram\"} 5\n"
        "scaph_domain_energy_microjoules{socket_id=\"0\",domain_id=\"1\",domain_name=\"core\"} 6\n"
        "scaph_process_power_consumption_microwatts{pid=\"1\"} 7\n";
    struct exporter e;
    struct ipw_source *s = open_page(&e, page);

    (void)state;
    assert_int_equal(s->n_channels, 6);
    assert_int_equal(channel(s, "host", NULL)->domain, IPW_DOMAIN_MACHINE);
    assert_int_equal(channel(s, "host", NULL)->scope, IPW_SCOPE_PLATFORM);
    assert_true(channel(s, "host", NULL)->in_sum);
    assert_false(channel(s, "host/power", NULL)->in_sum);
    assert_true(channel(s, "socket0", NULL)->in_sum);
    assert_int_equal(channel(s, "dram-0", NULL)->domain, IPW_DOMAIN_DRAM);
    assert_int_equal(channel(s, "core-0", NULL)->scope, IPW_SCOPE_CORE);
    assert_false(channel(s, "core-0", NULL)->in_sum);
    assert_int_equal(value_of(s, "host"), INT64_C(123456789012));
    assert_int_equal(value_of(s, "host/power"), 25000);
    assert_int_equal(value_of(s, "socket0"), 100000001);
    s->close(s);
    stop(&e);
}

static void test_kepler(void **state)
{
    static const char page[] = OK
        "kepler_node_cpu_joules_total{zone=\"package\",path=\"/sys/x/intel-rapl:0\"} 1234.5\n"
        "kepler_node_cpu_joules_total{zone=\"package\",path=\"/sys/x/intel-rapl-mmio:0\"} 1234.5\n"
        "kepler_node_cpu_joules_total{zone=\"dram\",path=\"/sys/x/intel-rapl:0:1\"} 10\n"
        "kepler_node_cpu_joules_total{zone=\"psys\",path=\"/sys/x/intel-rapl:1\"} 20\n"
        "kepler_node_cpu_active_joules_total{zone=\"package\"} 1000\n"
        "kepler_node_cpu_watts{zone=\"package\",path=\"/sys/x/intel-rapl:0\"} 33\n"
        "kepler_node_gpu_joules_total{gpu=\"0\",gpu_uuid=\"GPU-a\",vendor=\"nvidia\"} 7\n"
        "kepler_platform_watts{source=\"redfish\",node_name=\"n\"} 450\n";
    struct exporter e;
    struct ipw_source *s = open_page(&e, page);

    (void)state;
    assert_int_equal(s->n_channels, 7);
    assert_true(channel(s, "package-intel-rapl:0", NULL)->in_sum);
    assert_false(channel(s, "package-intel-rapl-mmio:0", NULL)->in_sum);
    assert_false(channel(s, "package-intel-rapl:0/power", NULL)->in_sum);
    assert_true(channel(s, "dram-intel-rapl:0:1", NULL)->in_sum);
    /* A meter of the whole machine comes before psys. */
    assert_false(channel(s, "psys-intel-rapl:1", NULL)->in_sum);
    assert_true(channel(s, "platform-redfish/power", NULL)->in_sum);
    assert_int_equal(value_of(s, "package-intel-rapl:0"), 1234500000);
    assert_int_equal(value_of(s, "gpu0"), 7000000);
    assert_int_equal(value_of(s, "platform-redfish/power"), 450000);
    s->close(s);
    stop(&e);
}

/* Before 0.10 a device is split into modes, which are added. */
static void test_kepler_modes(void **state)
{
    static const char page[] =
        OK "kepler_node_package_joules_total{package=\"0\",mode=\"dynamic\",source=\"rapl\"} 30\n"
           "kepler_node_package_joules_total{package=\"0\",mode=\"idle\",source=\"rapl\"} 70\n";
    struct exporter e;
    struct ipw_source *s = open_page(&e, page);

    (void)state;
    assert_int_equal(s->n_channels, 2);
    assert_true(s->channels[0].in_sum && s->channels[1].in_sum);
    assert_string_not_equal(s->channels[0].name, s->channels[1].name);
    s->close(s);
    stop(&e);
}

static void test_node_exporter(void **state)
{
    static const char page[] = OK
        "node_rapl_package_joules_total{index=\"0\",path=\"/sys/class/powercap/intel-rapl:0\"} "
        "118.31\n"
        "node_rapl_package_joules_total{index=\"0\",path=\"/sys/class/powercap/"
        "intel-rapl-mmio:0\"} "
        "118.31\n"
        "node_rapl_core_joules_total{index=\"0\",path=\"/sys/class/powercap/intel-rapl:0:0\"} 8\n"
        "node_rapl_dram_joules_total{index=\"0\",path=\"/sys/class/powercap/intel-rapl:0:1\"} 9\n"
        "node_hwmon_power_average_watt{chip=\"LNXSYSTM:00\",sensor=\"power1\"} 205.5\n"
        "node_hwmon_power_average_watt{chip=\"0000:03:00.0\",sensor=\"power1\"} 44\n"
        "node_hwmon_power_watt{chip=\"nvme_nvme0\",sensor=\"power1\"} 4\n"
        "node_hwmon_chip_names{chip=\"LNXSYSTM:00\",chip_name=\"power_meter\"} 1\n"
        "node_hwmon_chip_names{chip=\"0000:03:00.0\",chip_name=\"amdgpu\"} 1\n"
        "node_cpu_seconds_total{cpu=\"0\",mode=\"idle\"} 1.2e+06\n";
    struct exporter e;
    struct ipw_source *s = open_page(&e, page);

    (void)state;
    assert_int_equal(s->n_channels, 6); /* not the disk */
    assert_true(channel(s, "package-0", NULL)->in_sum);
    assert_false(channel(s, "package-0#2", NULL)->in_sum);
    assert_true(channel(s, "dram-0", NULL)->in_sum);
    assert_false(channel(s, "core-0", NULL)->in_sum);
    assert_int_equal(channel(s, "0000:03:00.0-power1", NULL)->domain, IPW_DOMAIN_GPU);
    assert_true(channel(s, "LNXSYSTM:00-power1", NULL)->in_sum);
    assert_int_equal(value_of(s, "package-0"), 118310000);
    assert_int_equal(value_of(s, "LNXSYSTM:00-power1"), 205500);
    s->close(s);
    stop(&e);
}

static void test_another_ipw_agent(void **state)
{
    static const char page[] =
        OK "ipw_energy_joules_total{channel=\"gpu0\",device=\"GPU-a H100\",domain=\"gpu\","
           "scope=\"device\"} 12.000001\n"
           "ipw_power_watts{channel=\"gpu0/power\",device=\"GPU-a H100\",domain=\"gpu\","
           "scope=\"device\"} 300\n"
           "ipw_energy_joules_total{channel=\"package-0\",device=\"intel-rapl:0\",domain=\"cpu\","
           "scope=\"package\"} 3\n"
           "ipw_energy_joules_total{channel=\"core-0\",device=\"intel-rapl:0:0\",domain=\"cpu\","
           "scope=\"core\"} 2\n"
           "ipw_energy_joules_total{channel=\"odd\",device=\"?\",domain=\"moon\",scope=\"x\"} 2\n";
    struct exporter e;
    struct ipw_source *s = open_page(&e, page);

    (void)state;
    assert_int_equal(s->n_channels, 4);
    assert_true(channel(s, "gpu0", NULL)->in_sum);
    assert_false(channel(s, "gpu0/power", NULL)->in_sum);
    assert_true(channel(s, "package-0", NULL)->in_sum);
    assert_false(channel(s, "core-0", NULL)->in_sum);
    assert_int_equal(value_of(s, "gpu0"), 12000001);
    assert_int_equal(s->period_ns, 200 * IPW_NS_PER_MS);
    s->close(s);
    stop(&e);
}

static int64_t tick_ns;
static int64_t tick(void) { return tick_ns; }

static void test_what_is_missing_is_no_value(void **state)
{
    static const char *const pages[] = {
        OK "node_rapl_dram_joules_total{index=\"0\"} 1\n",
        OK "node_rapl_package_joules_total{index=\"0\"} NaN\n",
        OK "node_rapl_package_joules_total{index=\"0\"} -1\n",
        OK "node_rapl_package_joules_total{index=\"0\"} 1e300\n",
        OK "node_rapl_package_joules_total{index=\"1\"} 5\n",
        OK "",
    };
    struct exporter e;
    struct ipw_source *s = open_page(&e, OK "node_rapl_package_joules_total{index=\"0\"} 2.5\n"
                                            "node_rapl_package_joules_total{index=\"1\"} bad\n");
    struct ipw_err err;

    (void)state;
    assert_int_equal(s->n_channels, 1);
    assert_string_equal(s->note, "1 lines of the page are not samples; the first is line 2");
    assert_int_equal(value_of(s, "package-0"), 2500000);
    for (size_t i = 0; i < sizeof pages / sizeof *pages; i++) {
        atomic_store(&e.reply, pages[i]);
        assert_true(value_of(s, "package-0") == IPW_NO_VALUE);
    }
    /* An error of the exporter, and then a second in which it is left in peace. */
    atomic_store(&e.reply, "HTTP/1.1 503 Busy\r\n\r\n");
    assert_true(value_of(s, "package-0") == IPW_NO_VALUE);
    assert_non_null(strstr(s->note, "1 scrape failed: http://127.0.0.1:"));
    assert_non_null(strstr(s->note, "HTTP status 503"));
    {
        int before = atomic_load(&e.requests);
        tick_ns = ipw_now_ns();
        s->now = tick;
        for (int i = 0; i < 100; i++) assert_true(value_of(s, "package-0") == IPW_NO_VALUE);
        assert_int_equal(atomic_load(&e.requests), before);
        tick_ns += IPW_NS_PER_S;
        for (int i = 0; i < 100; i++) assert_true(value_of(s, "package-0") == IPW_NO_VALUE);
        assert_int_equal(atomic_load(&e.requests), before + 1);
    }
    s->close(s);

    atomic_store(&e.reply, OK "up 1\n");
    assert_int_equal(
        ipw_prometheus_open(&s, &(struct ipw_source_place){.fetch = &fetch}, e.url, &err),
        IPW_EUNSUPPORTED);
    assert_non_null(strstr(err.text, "no known series of energy or power"));
    assert_null(s);
    stop(&e);
    assert_int_equal(
        ipw_prometheus_open(&s, &(struct ipw_source_place){.fetch = &fetch}, e.url, &err),
        IPW_ENET);
    assert_int_equal(ipw_prometheus_open(&s, &(struct ipw_source_place){.fetch = &fetch},
                                         "https://127.0.0.1/", &err),
                     IPW_EUNSUPPORTED);
    assert_non_null(strstr(err.text, "plain http"));
}

/* A page that is served with one old time stamp says nothing of the present, at once or after three
 * of its periods. */
static void test_stamps(void **state)
{
    static char pages[5][160];
    struct ipw_source *s;
    struct exporter e;

    (void)state;
    for (int i = 0; i < 5; i++)
        snprintf(pages[i], sizeof pages[i],
                 OK "node_rapl_package_joules_total{index=\"0\"} %d %lld\n", i + 1,
                 (long long)time(NULL) * 1000 + (i < 4 ? i * 500 : -3600000));
    s = open_page(&e, pages[0]);
    s->now = tick;
    tick_ns = ipw_now_ns();
    for (int i = 0; i < 4; i++, tick_ns += IPW_NS_PER_S / 2) {
        atomic_store(&e.reply, pages[i]);
        assert_int_equal(value_of(s, "package-0"), (i + 1) * 1000000);
    }
    tick_ns += IPW_NS_PER_S / 2;
    assert_int_equal(value_of(s, "package-0"), 4000000);
    tick_ns += IPW_NS_PER_S;
    assert_true(value_of(s, "package-0") == IPW_NO_VALUE);
    assert_string_equal(s->note, "the time stamps of 1 series stand still: no value");
    s->close(s);
    atomic_store(&e.reply, pages[4]);
    assert_int_equal(
        ipw_prometheus_open(&s, &(struct ipw_source_place){.fetch = &fetch}, e.url, NULL), 0);
    assert_true(value_of(s, "package-0") == IPW_NO_VALUE);
    atomic_store(&e.reply, pages[1]); /* now it moves */
    assert_int_equal(value_of(s, "package-0"), 2000000);
    s->close(s);
    stop(&e);
}

/* ---- the URL ---- */

static char asked[1024];
static bool on_loopback;

static int fake_get(void **kept, const char *url, struct ipw_buf *body, int64_t timeout_ns,
                    bool *here, struct ipw_err *err)
{
    (void)kept;
    (void)err;
    assert_true(timeout_ns > 0);
    snprintf(asked, sizeof asked, "%s", url);
    *here = on_loopback;
    ipw_buf_clear(body);
    return ipw_buf_adds(body, "scaph_host_energy_microjoules 1\n");
}

static void fake_release(void *kept) { assert_null(kept); }

static const struct ipw_page_fetch fake = {fake_get, fake_release, make_series};

static void test_urls(void **state)
{
    static const struct {
        const char *url, *asked, *channel;
        int rc;
    } cases[] = {
        {"http://localhost:9400/metrics", "http://localhost:9400/metrics", "localhost:9400/host",
         0},
        {"http://localhost:9400", "http://localhost:9400/metrics", "localhost:9400/host", 0},
        {"HTTP://gpu-box/", "HTTP://gpu-box/metrics", "gpu-box/host", 0},
        {"http://[::1]:9100/x?a=b#c", "http://[::1]:9100/x?a=b#c", "[::1]:9100/host", 0},
        {"http://[::1]", "http://[::1]/metrics", "[::1]/host", 0},
        {"http://h?a=b", "http://h/metrics?a=b", "h/host", 0},
        {"http://h/?a=b", "http://h/?a=b", "h/host", 0},
        {"http://h#top", "http://h/metrics#top", "h/host", 0},
        {"http://h/#top", "http://h/metrics#top", "h/host", 0},
        {"https://h/", "", NULL, IPW_EUNSUPPORTED},
        {"http://u:p@h/", "", NULL, IPW_EUNSUPPORTED},
        {"localhost:9400", "", NULL, IPW_EINVAL},
        {"ftp://h", "", NULL, IPW_EINVAL},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ipw_source *s;
        struct ipw_err err = {0};

        asked[0] = '\0';
        if (ipw_prometheus_open(&s, &(struct ipw_source_place){.fetch = &fake}, cases[i].url,
                                &err) != cases[i].rc)
            fail_msg("%s: %s", cases[i].url, err.text);
        assert_string_equal(asked, cases[i].asked);
        if (cases[i].rc) continue;
        assert_string_equal(s->channels[0].name, cases[i].channel);
        s->close(s);
    }
}

/* A host's name of any length leaves room for the channel's own. */
static void test_long_hosts(void **state)
{
    char url[600];
    struct ipw_source *s;

    (void)state;
    snprintf(url, sizeof url, "http://[%0500d", 0);
    assert_int_equal(ipw_prometheus_open(&s, &(struct ipw_source_place){.fetch = &fake}, url, NULL),
                     0);
    assert_non_null(strstr(s->channels[0].name, "0/host"));
    s->close(s);
}

/* Case 35: a channel of another machine is remote; one on this machine's loopback is not. */
static void test_35_remote_hosts(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct ipw_source *s;

        on_loopback = i;
        assert_int_equal(
            ipw_prometheus_open(&s, &(struct ipw_source_place){.fetch = &fake}, "http://h:1", NULL),
            0);
        assert_int_equal(s->channels[0].remote, !i);
        s->close(s);
    }
}

/* Case 50, for this reader. */
static void test_50_random_pages(void **state)
{
    static const char *const pieces[] = {"DCGM_FI_DEV_POWER_USAGE",
                                         "node_rapl_",
                                         "_joules_total",
                                         "{",
                                         "}",
                                         "gpu=\"0\"",
                                         ",",
                                         "\"",
                                         "\\",
                                         " ",
                                         "1e308",
                                         "NaN",
                                         "-1",
                                         "9223372036854775794",
                                         "\n",
                                         "# ",
                                         "ipw_power_watts",
                                         "domain=\"cpu\"",
                                         "channel=\"\\n\"",
                                         "=",
                                         "3"};
    uint64_t seed = 50;

    (void)state;
    for (int i = 0; i < 20000; i++) {
        char page[600] = "";
        struct seen seen = {0};

        for (int k = 0; k < 24; k++) {
            strcat(page, pieces[test_random(&seed) % (sizeof pieces / sizeof *pieces)]);
        }
        ipw_prom_parse(page, strlen(page), note_sample, &seen, NULL);
    }
}

UNIT(prometheus)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text_format),
        cmocka_unit_test(test_text_long_lines),
        cmocka_unit_test(test_dcgm),
        cmocka_unit_test(test_scaphandre),
        cmocka_unit_test(test_kepler),
        cmocka_unit_test(test_kepler_modes),
        cmocka_unit_test(test_node_exporter),
        cmocka_unit_test(test_another_ipw_agent),
        cmocka_unit_test(test_what_is_missing_is_no_value),
        cmocka_unit_test(test_stamps),
        cmocka_unit_test(test_urls),
        cmocka_unit_test(test_long_hosts),
        cmocka_unit_test(test_35_remote_hosts),
        cmocka_unit_test(test_50_random_pages),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
