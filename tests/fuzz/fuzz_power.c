/* Rows of power.jsonl: no line crashes the reader, and a row that it reads comes back when it is
 * written again. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "trace/power.h"

enum { MOST = 4 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ipw_buf line = IPW_BUF(IPW_MIB);
    char *text = malloc(size + 1), *next;

    if (!text) abort();
    memcpy(text, data, size);
    text[size] = '\0';
    for (char *at = text; at; at = next) {
        struct ipw_sampler_row row = {0}, back = {0};
        int64_t values[MOST], got[MOST];

        next = strchr(at, '\n');
        if (next) *next++ = '\0';
        if (!ipw_power_row_read(at, &row, values, MOST)) continue;
        ipw_buf_clear(&line);
        ipw_power_row_write(&line, &row);
        line.data[line.len - 1] = '\0';
        if (!ipw_power_row_read(line.data, &back, got, MOST) || back.t_ns != row.t_ns ||
            back.source != row.source || back.n != row.n ||
            (row.n && memcmp(got, values, row.n * sizeof *got)))
            abort();
    }
    ipw_buf_release(&line);
    free(text);
    return 0;
}
