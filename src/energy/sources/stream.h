/* energy/sources/stream.h: every reading of the sensors of another machine.
 *
 * Follows the stream of an `ipw-agent telemetry --listen` over plain http (stream_line.h has its
 * lines).  Each far sensor becomes a source, whose readings keep their own times: the far clock's,
 * moved to this machine's clock by round trips (energy/far_clock.h) that go on through the run.
 * How far a time may be off is a channel of its own (IPW_UNIT_CLOCK), so that it is recorded and
 * widens the bounds.
 *
 * When the link breaks it is opened again, and the stream goes on after the last reading that came:
 * the far side keeps some.  What is missing then is a gap.  A counter's joules of a gap lie between
 * the readings around it.  A gauge is lost in a gap, and so is a counter that began anew, because
 * the far machine or the process that owns its zero did: no energy is claimed for them there.  A
 * far side that sends nonsense is told in the note and asked again later.
 *
 * The queue of readings is bounded; while nobody takes them, nothing is read from the link. */
#ifndef IPW_ENERGY_SOURCES_STREAM_H
#define IPW_ENERGY_SOURCES_STREAM_H

#include "energy/source.h"
#include "energy/sources/prometheus.h"

enum { IPW_STREAM_QUEUE = 1024 }; /* readings of one sensor that may wait to be taken */

/* How the stream is read: io/http_stream.h has the contract.  Passed as pointers, because energy/
 * must not include io/. */
struct ipw_stream_link {
    void *(*open)(const char *url);
    int (*read)(void *link, char *to, size_t size, size_t *n, struct ipw_err *err);
    void (*close)(void *link);
};

/* `url`: "http://host:9440" (a path /metrics or /stream is taken for it).  Waits for the first
 * readings, at most 5 s.  `*out` is the first source; the others hang on its `also`. */
int ipw_stream_open(struct ipw_source **out, const struct ipw_source_place *place, const char *url,
                    struct ipw_err *err);

#endif
