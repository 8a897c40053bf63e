/* energy/sources/stream_line.h: the lines of the stream of `ipw-agent telemetry --listen`
 * (docs/hardware.md, "Sensors of another machine").
 *
 * Pure.  The first line is a hello: who sends, and the far sensors with their channels as
 * power.jsonl has them.  Each further line is one reading of one sensor with its sequence number
 * and the far clock's time, or says how many readings were dropped.  The sender may be hostile:
 * every number is checked, and texts lose their control characters. */
#ifndef IPW_ENERGY_SOURCES_STREAM_LINE_H
#define IPW_ENERGY_SOURCES_STREAM_LINE_H

#include "energy/source.h"

enum {
    IPW_STREAM_FORMAT = 1,
    IPW_STREAM_LINE_MAX = 256 * 1024,
    IPW_STREAM_SOURCES_MAX = 16,
    IPW_STREAM_CHANNELS_MAX = 256,
};

struct ipw_stream_hello {
    char boot_id[40];  /* of the far machine: its counters and its clock begin anew with another */
    char instance[40]; /* of the far process: its sequence numbers begin anew with another */
    size_t n_sources, n_channels;
    struct {
        char name[24];
        size_t first, n;   /* its channels */
        int64_t period_ns; /* the usual distance of its readings */
    } sources[IPW_STREAM_SOURCES_MAX];
    struct ipw_channel *channels; /* owned; `name` without the host */
};

struct ipw_stream_line {
    bool is_row;
    int64_t seq;     /* of the row; or the next one after the dropped */
    int64_t dropped; /* if it is no row */
    int64_t mono_ns;
    size_t source;
};

int ipw_stream_hello_read(struct ipw_stream_hello *out, const char *text, size_t n,
                          struct ipw_err *err);
void ipw_stream_hello_release(struct ipw_stream_hello *hello);
/* Are the sensors and channels those of another hello? */
bool ipw_stream_hello_same(const struct ipw_stream_hello *a, const struct ipw_stream_hello *b);
/* `values` has room for the channels of any source; IPW_NO_VALUE for null. */
int ipw_stream_line_read(struct ipw_stream_line *out, int64_t *values,
                         const struct ipw_stream_hello *hello, const char *text, size_t n,
                         struct ipw_err *err);
/* The answer to a question for the clock. */
int ipw_stream_clock_read(int64_t *mono_ns, const char *text, size_t n, struct ipw_err *err);

#endif
