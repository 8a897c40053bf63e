/* libFuzzer target for the scrape: the bytes are a page.  No value may be negative. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "energy/sources/prometheus.h"
#include "energy/sources/sysfs.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { SERIES = 64 };

struct page {
    struct ipw_prom_series series[SERIES];
    struct ipw_channel channels[SERIES];
    size_t n;
};

static void take(void *ud, const struct ipw_prom_sample *sample)
{
    struct page *page = ud;
    struct ipw_prom_series series;
    int64_t value;

    for (size_t i = 0; i < sample->n_labels; i++) {
        if (!sample->labels[i].name[0]) abort();
        if (!ipw_prom_label(sample, sample->labels[i].name)) abort();
    }
    if (!ipw_prom_series_of(&series, sample)) return;
    value = ipw_prom_series_value(&series, sample);
    if (value < 0 && value != IPW_NO_VALUE) abort();
    ipw_prom_series_chip(&series, ipw_prom_label(sample, "chip"));
    if (page->n < SERIES) page->series[page->n++] = series;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct page *page = calloc(1, sizeof *page);
    char *exact = malloc(size ? size : 1); /* so that reading beyond is seen */
    size_t first_bad, bad;

    if (size) memcpy(exact, data, size);
    bad = ipw_prom_parse(exact, size, take, page, &first_bad);
    if ((bad == 0) != (first_bad == 0)) abort();
    ipw_prom_series_choose(page->series, page->n);
    for (size_t i = 0; i < page->n; i++) { /* as the source makes its channels */
        page->channels[i] = page->series[i].channel;
        ipw_channel_unique(page->channels, i, i);
        for (size_t k = 0; k < i; k++) {
            if (!strcmp(page->channels[i].name, page->channels[k].name)) abort();
        }
    }
    free(exact);
    free(page);
    return 0;
}
