/* telemetry/telemetry_stream.h: the sensors of this machine as pages and a stream of lines.
 *
 * The server of `telemetry --listen`: the page of `run --watch`, /metrics for Prometheus, /clock,
 * and /stream, an answer that does not end, whose clients book its readings
 * (energy/sources/stream.h; docs/hardware.md, "Sensors of another machine").  Each row of the
 * sampler becomes a line in a ring (telemetry/line_ring.h), with its number, the monotonic and the
 * wall clock.  The first line of each answer names this boot, this process and the channels.
 * /stream?after=N&instance=I goes on after line N if I is this process's.
 *
 * A client cannot hold memory: there are at most 64 connections, the idle ones make room for new
 * ones, and silence ends a connection after 10 s.  At most 16 of them read the stream; a slow one
 * loses lines and is told. */
#ifndef IPW_TELEMETRY_TELEMETRY_STREAM_H
#define IPW_TELEMETRY_TELEMETRY_STREAM_H

#include "io/server.h"
#include "telemetry/line_ring.h"
#include "telemetry/sensor_page.h"
#include "telemetry/telemetry.h"

struct ipw_telemetry_reader; /* a client of /stream */

struct ipw_telemetry_stream {
    struct ipw_telemetry *telemetry;
    struct ipw_line_ring *lines; /* NULL: not open */
    struct ipw_buf hello, line;
    char instance[40], host[64];
    bool waiting;    /* lines that the readers have not got */
    int64_t told_ns; /* when they were last given what there is */
    struct ipw_telemetry_reader *readers;
    struct ipw_sensor_page *page;
    struct ipw_route routes[5];
    struct ipw_server_options options;
    struct ipw_server *server;
};

/* `where`: "[ADDRESS:]PORT".  The server answers on the loop from now on.  The stream must not move
 * until it is closed. */
int ipw_telemetry_stream_open(struct ipw_telemetry_stream *s, struct ipw_telemetry *t,
                              struct ipw_loop *loop, const char *where, bool expose,
                              const char *const *allow_hosts, struct ipw_err *err);
void ipw_telemetry_stream_row(struct ipw_telemetry_stream *s, const struct ipw_sampler_row *row);
/* Gives the readers new lines, and now and then an empty one if there are none. */
void ipw_telemetry_stream_tell(struct ipw_telemetry_stream *s);
void ipw_telemetry_stream_close(struct ipw_telemetry_stream *s);

#endif
