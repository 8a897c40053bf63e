/* run/merge/join_rows_priv.h: the inside of the joined readings.  Internal to join_rows.c (the
 * readings) and join_rows_union.c (the sensors of all sessions together). */
#ifndef IPW_RUN_MERGE_JOIN_ROWS_PRIV_H
#define IPW_RUN_MERGE_JOIN_ROWS_PRIV_H

#include "run/merge/join_rows.h"

enum { IPW_NO_LEADER = -1 };

struct join_reading {        /* of a session */
    int64_t t_ns, before_ns; /* before: the one before it; INT64_MIN: there is none */
    int64_t *values, *before;
};

struct join_waiting { /* a reading of another session than the leader */
    size_t from;
    struct join_reading reading; /* with values of its own */
};

struct join_sensor {
    char *key, *text;        /* its name and devices, to recognise it; its object in the header */
    size_t first, n;         /* its channels */
    bool own_zero, streamed; /* streamed: all sessions get the same readings of a far process */
    int leader;              /* a session */
    bool shift_due;          /* the leader's counters are shifted at its next reading */
    int64_t last_ns;         /* of the last reading that was passed on; INT64_MIN: none */
    int64_t *last;           /* its values */
    struct join_waiting *waiting;
    size_t n_waiting, cap_waiting;
};

struct join_part { /* of a session's own source: a sensor, by its number */
    size_t source, sensor;
};

struct join_from {
    struct ipw_power_reader power;
    const struct ipw_join_from *is;
    bool ready, over; /* a reading is in power; there is no further one */
    int64_t n_own;    /* readings taken that are the session's own */
    struct join_part *parts;
    size_t n_parts, cap_parts;
    size_t *joined; /* for each own channel: the joined one, or SIZE_MAX */
    /* By channel of the union: what is added to its counters; its reading, and the one before. */
    int64_t *shift, *now, *before;
    int64_t *before_ns; /* by sensor; INT64_MIN: none */
};

struct ipw_join_rows {
    struct join_from *from;
    size_t n_from;
    struct ipw_join_from *sessions;
    struct join_sensor *sensors;
    size_t n_sensors, cap_sensors;
    struct ipw_channel *channels;
    size_t n_channels, cap_channels;
    char *header; /* of the first session with sensors */
};

/* The source of a session: finds its sensors, or adds them.  Fails if another sensor reads the same
 * device. */
int ipw_join_rows_add_source(struct ipw_join_rows *r, struct join_from *f,
                             const struct ipw_json *source, size_t number, bool divided,
                             struct ipw_err *err);
/* After the last source. */
void ipw_join_rows_name_channels(struct ipw_join_rows *r);

#endif
