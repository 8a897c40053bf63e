/* telemetry/telemetry_stream.h: the readings of this machine's sensors as a stream of lines.
 *
 * For `telemetry --listen`, whose clients book them (energy/sources/stream.h; docs/hardware.md,
 * "Sensors of another machine").  Each row of the sampler becomes a line in a ring
 * (serve/line_ring.h), with its number, the monotonic and the wall clock.  The first line of each
 * answer names this boot, this process and the channels. */
#ifndef IPW_TELEMETRY_TELEMETRY_STREAM_H
#define IPW_TELEMETRY_TELEMETRY_STREAM_H

#include "serve/listener.h"
#include "telemetry/telemetry.h"

struct ipw_telemetry_stream {
    struct ipw_listen_stream offer; /* for the listener */
    struct ipw_buf hello, line;
    char instance[40];
    bool waiting;    /* lines that the listener has not been told of */
    int64_t told_ns; /* when it was last told */
};

int ipw_telemetry_stream_open(struct ipw_telemetry_stream *s, const struct ipw_telemetry *t,
                              struct ipw_err *err);
void ipw_telemetry_stream_row(struct ipw_telemetry_stream *s, const struct ipw_sampler_row *row);
/* Tells the listener (may be NULL) of new lines, and once a second that there are none. */
void ipw_telemetry_stream_tell(struct ipw_telemetry_stream *s, struct ipw_listener *listener);
/* Appends the page of the clocks, for the listener; `ud` is not used. */
void ipw_telemetry_stream_clock(struct ipw_buf *page, void *ud);
void ipw_telemetry_stream_close(struct ipw_telemetry_stream *s);

#endif
