/* libFuzzer target for the scrape: the bytes are a page, and then an answer of what its series are.
 * No value may be negative. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "energy/sources/prometheus.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *page;
static size_t page_bytes;

static int get(void **kept, const char *url, struct ipw_buf *body, int64_t timeout_ns, bool *here,
               struct ipw_err *err)
{
    (void)kept;
    (void)url;
    (void)timeout_ns;
    (void)err;
    *here = true;
    ipw_buf_clear(body);
    return ipw_buf_add(body, page, page_bytes);
}

static void release(void *kept) { (void)kept; }

/* A series of the first sample's name, whatever it is. */
static int series(struct ipw_buf *out, const struct ipw_buf *samples, struct ipw_err *err)
{
    const char *name = strstr(ipw_buf_str(samples), "\"name\":\"");
    size_t n = name ? strcspn(name + 8, "\"\\") : 0;

    (void)err;
    return ipw_buf_addf(
        out,
        "{\"series\":[{\"channel\":{\"domain\":\"cpu\",\"kind\":\"%s\",\"name\":"
        "\"x\"},\"factor\":1000,\"labels\":[[\"gpu\",\"0\"]],\"metric\":\"%.*s\"}]}",
        page_bytes & 1 ? "gauge" : "counter", (int)n, name ? name + 8 : "");
}

static void look(void *ud, const struct ipw_prom_sample *sample)
{
    (void)ud;
    for (size_t i = 0; i < sample->n_labels; i++) {
        if (!sample->labels[i].name[0]) abort();
        if (!ipw_prom_label(sample, sample->labels[i].name)) abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct ipw_page_fetch fetch = {get, release, series};
    char *exact = malloc(size ? size : 1); /* so that reading beyond is seen */
    size_t first_bad, bad;
    struct ipw_source *s;
    int64_t value = 0;

    if (size) memcpy(exact, data, size);
    bad = ipw_prom_parse(exact, size, look, NULL, &first_bad);
    if ((bad == 0) != (first_bad == 0)) abort();
    page = exact;
    page_bytes = size;
    if (!ipw_prometheus_open(&s, &(struct ipw_source_place){.fetch = &fetch}, "http://h", NULL)) {
        s->read(s, &value);
        if (value < 0 && value != IPW_NO_VALUE) abort();
        s->close(s);
    }
    free(exact);
    return 0;
}
