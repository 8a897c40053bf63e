/* energy/sources/stream.h: every reading of the sensors of another machine.
 *
 * Follows the stream of an `ipw-agent telemetry --listen` over plain http.  Each far sensor becomes
 * a source, whose readings keep their own times: the far clock's, moved to this machine's clock by
 * round trips (energy/far_clock.h) that go on through the run.  How far a time may be off is a
 * channel of its own (IPW_UNIT_CLOCK), so that it is recorded and widens the bounds.
 *
 * When the link breaks it is opened again, and the stream goes on after the last reading that came:
 * the far side keeps some.  What is missing then is a gap.  A counter's joules of a gap lie between
 * the readings around it.  A gauge is lost in a gap, and so is a counter that began anew, because
 * the far machine or the process that owns its zero did: no energy is claimed for them there.  A
 * far side that sends nonsense is told in the note and asked again later.
 *
 * The queue of readings is bounded; while none is taken, nothing is read from the link. */
#ifndef IPW_ENERGY_SOURCES_STREAM_H
#define IPW_ENERGY_SOURCES_STREAM_H

#include "energy/source.h"
#include "energy/sources/prometheus.h"

enum { IPW_STREAM_QUEUE = 1024 }; /* readings of one sensor that may wait to be taken */

/* How the stream is read: io/http_get.h has the contract.  Passed as pointers, because energy/
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

/* ---- the lines of a stream ---- */

/* Pure.  The first line is a hello: who sends, and the far sensors with their channels as
 * power.jsonl has them.  Each further line is one reading of one sensor with its sequence number
 * and the far clock's time, or says how many readings were dropped.  The sender may be hostile:
 * every number is checked, and texts lose their control characters. */
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
