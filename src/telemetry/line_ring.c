#include "telemetry/line_ring.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"

struct ipw_line_ring {
    char *bytes;
    size_t size;
    uint64_t first_pos, first_seq; /* the oldest line that is kept */
    uint64_t end_pos, end_seq;
};

struct ipw_line_ring *ipw_line_ring_new(size_t bytes)
{
    struct ipw_line_ring *r = ipw_calloc(1, sizeof *r);

    r->bytes = ipw_malloc(bytes);
    r->size = bytes;
    return r;
}

void ipw_line_ring_free(struct ipw_line_ring *r)
{
    if (!r) return;
    free(r->bytes);
    free(r);
}

static char at(const struct ipw_line_ring *r, uint64_t pos) { return r->bytes[pos % r->size]; }

/* The byte after the line that begins at pos. */
static uint64_t line_end(const struct ipw_line_ring *r, uint64_t pos)
{
    while (at(r, pos) != '\n') pos++;
    return pos + 1;
}

uint64_t ipw_line_ring_next(const struct ipw_line_ring *r) { return r->end_seq; }

void ipw_line_ring_put(struct ipw_line_ring *r, const char *line, size_t n)
{
    if (n == 0 || n > r->size / 2 || memchr(line, '\n', n) != line + n - 1)
        IPW_BUG("a line of %zu bytes", n);
    while (r->end_pos + n - r->first_pos > r->size) {
        r->first_pos = line_end(r, r->first_pos);
        r->first_seq++;
    }
    for (size_t i = 0; i < n; i++) r->bytes[(r->end_pos + i) % r->size] = line[i];
    r->end_pos += n;
    r->end_seq++;
}

void ipw_line_reader_end(struct ipw_line_reader *reader, const struct ipw_line_ring *r)
{
    *reader = (struct ipw_line_reader){r->end_seq, r->end_pos};
}

void ipw_line_reader_after(struct ipw_line_reader *reader, const struct ipw_line_ring *r,
                           uint64_t seq)
{
    if (seq >= r->end_seq) {
        *reader = (struct ipw_line_reader){r->end_seq, r->end_pos};
    } else if (seq + 1 <= r->first_seq) { /* what is lost is told with the first line */
        *reader = (struct ipw_line_reader){seq + 1, 0};
    } else {
        *reader = (struct ipw_line_reader){r->first_seq, r->first_pos};
        while (reader->seq <= seq) {
            reader->pos = line_end(r, reader->pos);
            reader->seq++;
        }
    }
}

uint64_t ipw_line_reader_take(struct ipw_line_reader *reader, const struct ipw_line_ring *r,
                              struct ipw_buf *out, size_t most, uint64_t *first)
{
    uint64_t lost = 0, from, next;

    if (reader->seq < r->first_seq) {
        lost = r->first_seq - reader->seq;
        *reader = (struct ipw_line_reader){r->first_seq, r->first_pos};
    } else if (reader->seq == r->first_seq) {
        reader->pos = r->first_pos;
    }
    from = reader->pos;
    *first = reader->seq;
    for (next = from; next < r->end_pos;) {
        uint64_t end = line_end(r, next);

        if (end - from > most && next > from) break;
        for (; next < end; next++) ipw_buf_addc(out, at(r, next));
        reader->seq++;
    }
    reader->pos = next;
    return lost;
}
