/* energy/sources/stream_queue.h: the readings of one far sensor, on their way to the sampler.
 *
 * Owns the sensor's channels as this machine names them, and a bounded queue of readings in the
 * order of their times.  The channel after the far ones says how far a reading's time may be off.
 * A gap becomes a reading without values, at which the channels that cannot bridge it are lost.  So
 * does a time in which nothing comes: the reading failed, as with any other sensor.  Pure. */
#ifndef IPW_ENERGY_SOURCES_STREAM_QUEUE_H
#define IPW_ENERGY_SOURCES_STREAM_QUEUE_H

#include "energy/sources/stream_line.h"

enum { IPW_STREAM_QUEUE = 1024 };

struct ipw_stream_queue {
    struct ipw_channel *channels;
    size_t n_channels; /* with that of the clock, the last */
    bool *own_zero;    /* counter: begins anew with the far process */
    bool *lost;        /* of the reading that was taken last */
    int64_t *rows;     /* IPW_STREAM_QUEUE of: time, half, what is lost, values */
    size_t first, n;
    int64_t *newest; /* values of the newest reading that had any */
    bool any;
    int64_t far_ns, last_ns; /* of the newest row in the queue; 0: none yet */
    int64_t heard_ns;        /* the last time of a row that was no failure */
    int64_t period_ns;
    bool gap, fresh, rebooted; /* before the next row */
    uint64_t late;             /* rows that came after a later one was taken */
};

void ipw_stream_queue_init(struct ipw_stream_queue *q, const struct ipw_stream_hello *hello,
                           size_t source, const char *host, bool remote);
void ipw_stream_queue_release(struct ipw_stream_queue *q);
/* Readings are missing before the next one.  fresh: of another far process; rebooted: of another
 * boot of the far machine. */
void ipw_stream_queue_gap(struct ipw_stream_queue *q, bool fresh, bool rebooted);
/* far_ns: the far clock's time, which must increase (IPW_EPARSE); t_ns: the same on this machine's.
 * A row that is not later than the one before is counted and left out. */
int ipw_stream_queue_row(struct ipw_stream_queue *q, int64_t far_ns, int64_t t_ns, int64_t half_ns,
                         const int64_t *values, struct ipw_err *err);
/* Nothing has come up to now: adds a failed reading if that is so for long. */
void ipw_stream_queue_fail(struct ipw_stream_queue *q, int64_t now_ns);
bool ipw_stream_queue_take(struct ipw_stream_queue *q, int64_t *values, int64_t *t_ns,
                           int64_t *half_ns);
void ipw_stream_queue_newest(const struct ipw_stream_queue *q, int64_t *values);

#endif
