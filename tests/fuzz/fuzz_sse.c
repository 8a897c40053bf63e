/* libFuzzer target for io/sse.  The first byte says into how many pieces the rest is cut, as many
 * bytes after it where; the stream must give the same events whole and in pieces. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "io/sse.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { EVENT_MAX = 64 };

struct seen {
    struct ipw_buf text;
};

static int on_event(void *ud, const struct ipw_sse_event *event, struct ipw_err *err)
{
    struct seen *seen = ud;
    char len[sizeof event->data_len];

    (void)err;
    if (event->data[event->data_len] || event->data_len > EVENT_MAX) abort();
    memcpy(len, &event->data_len, sizeof len);
    ipw_buf_add(&seen->text, event->name, strlen(event->name) + 1);
    ipw_buf_add(&seen->text, len, sizeof len);
    ipw_buf_add(&seen->text, event->data, event->data_len);
    return 0;
}

static int run(struct seen *seen, const uint8_t *text, size_t n, const uint8_t *steps,
               size_t n_steps)
{
    struct ipw_sse sse;
    int rc = 0;

    ipw_buf_init(&seen->text, 64 * IPW_MIB);
    ipw_sse_init(&sse, EVENT_MAX, on_event, seen);
    for (size_t at = 0, k = 0; at < n && !rc; k++) {
        size_t step = n_steps ? (size_t)steps[k % n_steps] + 1 : n;
        char *piece;
        if (step > n - at) step = n - at;
        piece = malloc(step); /* of the exact size, so that reading beyond is seen */
        memcpy(piece, text + at, step);
        rc = ipw_sse_feed(&sse, piece, step, NULL);
        free(piece);
        at += step;
    }
    if (!rc) rc = ipw_sse_end(&sse, NULL);
    ipw_sse_release(&sse);
    return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct seen whole, pieces;
    size_t n_steps;

    if (size == 0) return 0;
    n_steps = data[0] % 8;
    if (n_steps > size - 1) n_steps = size - 1;
    if (run(&whole, data + 1 + n_steps, size - 1 - n_steps, NULL, 0) !=
            run(&pieces, data + 1 + n_steps, size - 1 - n_steps, data + 1, n_steps) ||
        whole.text.len != pieces.text.len ||
        (whole.text.len && memcmp(whole.text.data, pieces.text.data, whole.text.len) != 0))
        abort();
    ipw_buf_release(&whole.text);
    ipw_buf_release(&pieces.text);
    return 0;
}
