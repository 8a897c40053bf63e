/* Rows of power.jsonl: no line crashes the reader, and what it reads comes back when it is written
 * again, packed. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "trace/power_rows.h"

enum { CHANNELS = 3 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct ipw_channel channels[CHANNELS] = {
        {.kind = IPW_CHANNEL_COUNTER}, {.kind = IPW_CHANNEL_COUNTER}, {.kind = IPW_CHANNEL_GAUGE}};
    struct ipw_power_rows in = {0}, out = {0}, back = {0};
    struct ipw_power_rows *all[] = {&in, &out, &back};
    struct ipw_buf line = IPW_BUF(IPW_MIB);
    char *text = malloc(size + 1), *at, *next;
    int64_t t, again, values[CHANNELS], got[CHANNELS];
    size_t source, s;

    if (!text) abort();
    memcpy(text, data, size);
    text[size] = '\0';
    for (size_t i = 0; i < 3; i++) {
        ipw_power_rows_add(all[i], channels, CHANNELS);
        ipw_power_rows_add(all[i], channels, 1);
    }
    for (at = text; at; at = next) {
        next = strchr(at, '\n');
        if (next) *next++ = '\0';
        if (ipw_power_row_read(&in, at, &t, &source, values) != IPW_POWER_ROW) continue;
        struct ipw_sampler_row row = {
            .source = source, .n = source ? 1 : CHANNELS, .t_ns = t, .values = values};

        ipw_buf_clear(&line);
        ipw_power_row_write(&out, &line, &row);
        line.data[line.len - 1] = '\0';
        if (ipw_power_row_read(&back, line.data, &again, &s, got) != IPW_POWER_ROW || again != t ||
            s != source || memcmp(got, values, row.n * sizeof *got))
            abort();
    }
    for (size_t i = 0; i < 3; i++) ipw_power_rows_release(all[i]);
    ipw_buf_release(&line);
    free(text);
    return 0;
}
