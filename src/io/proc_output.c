#include "io/proc_output.h"

#include <string.h>

enum { MARK_MAX = 80 };

void ipw_output_init(struct ipw_output *output, size_t max_bytes)
{
    *output = (struct ipw_output){0};
    ipw_buf_init(&output->head, max_bytes - max_bytes / 2);
    ipw_buf_init(&output->tail, max_bytes / 2);
}

void ipw_output_release(struct ipw_output *output)
{
    ipw_buf_release(&output->head);
    ipw_buf_release(&output->tail);
}

void ipw_output_add(struct ipw_output *output, const char *bytes, size_t n)
{
    struct ipw_buf *head = &output->head, *tail = &output->tail;
    size_t room = head->max - head->len, k = n < room ? n : room;

    ipw_buf_add(head, bytes, k);
    bytes += k;
    n -= k;
    room = tail->max - tail->len;
    k = n < room ? n : room;
    ipw_buf_add(tail, bytes, k);
    bytes += k;
    n -= k;
    output->dropped += n; /* each further byte pushes one out, in the end itself */
    if (n > tail->max) {
        bytes += n - tail->max;
        n = tail->max;
    }
    while (n) {
        k = tail->max - output->tail_start;
        if (k > n) k = n;
        memcpy(tail->data + output->tail_start, bytes, k);
        output->tail_start = (output->tail_start + k) % tail->max;
        bytes += k;
        n -= k;
    }
}

const char *ipw_output_text(struct ipw_output *output, size_t *len)
{
    struct ipw_buf *head = &output->head;
    const struct ipw_buf *tail = &output->tail;

    head->max += tail->len + MARK_MAX;
    if (output->dropped) ipw_buf_addf(head, "\n[... %zu bytes left out ...]\n", output->dropped);
    ipw_buf_add(head, ipw_buf_str(tail) + output->tail_start, tail->len - output->tail_start);
    ipw_buf_add(head, ipw_buf_str(tail), output->tail_start);
    *len = head->len;
    return ipw_buf_str(head);
}
