/* energy/sources/meter_feed.h: a source whose readings come as lines, whoever brings the bytes.
 *
 * Shared by a command's output (exec.c) and a log that grows (powerlog.c); energy/meter.h reads the
 * lines.  Each column becomes a channel, and one more channel says how far the times may be off.
 *
 * Times: a row that comes alone has the time of its arrival.  Rows that come together, out of a
 * buffer, were written before: the last one has just come, and the others lie before it by the
 * difference of their own time stamps.  Without stamps they are spread evenly over the time since
 * the last row, and may lie anywhere in it.  A row from before the last one is left out.
 *
 * Staleness, one rule: after a silence of three usual distances (at least 1 s) readings are
 * IPW_NO_VALUE, from then on until a row comes.  A meter that writes less often than every 2.5 s
 * has its last row held in between, because a finished query waits no longer for its readings. */
#ifndef IPW_ENERGY_SOURCES_METER_FEED_H
#define IPW_ENERGY_SOURCES_METER_FEED_H

#include "energy/meter.h"

enum { IPW_METER_FEED_CHANNELS = 17 }; /* the columns and the clock */

/* When a source brings news, and since when it should have. */
struct ipw_meter_feed_pace {
    int64_t last_ns;    /* when the newest came; 0: none yet */
    int64_t spacing_ns; /* usual distance; 0: unknown */
};
void ipw_meter_feed_pace_news(struct ipw_meter_feed_pace *p, int64_t now_ns);
bool ipw_meter_feed_pace_is_stale(const struct ipw_meter_feed_pace *p, int64_t now_ns);

struct ipw_meter_feed_row {
    int64_t t_ns, half_ns;
    double stamp_s; /* NAN: none */
    double values[IPW_METER_COLUMNS];
};

struct ipw_meter_feed {
    struct ipw_source source;               /* first, so that a source is a feed */
    void (*pull)(struct ipw_meter_feed *f); /* brings what has come, by ipw_meter_feed_bytes() */
    void (*shut)(struct ipw_meter_feed *f); /* releases what the owner has, and the feed */
    const char *column;                     /* this column alone; NULL: all */
    bool patient;        /* lines before the first reading, or a heading with a time, are skipped */
    bool skip;           /* rows that come now are too old: they only count */
    bool past;           /* they are old: the last of them is the present value */
    bool ended;          /* nothing will come any more */
    char name[40];       /* for messages: a file's; "" for a command's output */
    char first_bad[120]; /* about the first line that is no reading */
    size_t bad;

    char text[4096]; /* the line that has begun; a longer one is cut */
    size_t n_text;
    int64_t number; /* lines so far */
    struct ipw_meter_format format;
    bool begun;
    struct ipw_err err; /* why no line of this file can be read */
    struct ipw_meter_feed_row *rows;
    size_t n_rows, cap_rows, taken; /* rows [taken, n_rows) wait to be given */
    double newest[IPW_METER_COLUMNS];
    struct ipw_meter_feed_pace pace;
    int64_t pulled_ns, row_ns, given_ns; /* the last pull; the newest row; the last row given */
    struct ipw_channel channels[IPW_METER_FEED_CHANNELS];
};

/* Sets read(), next() and close() of the source.  The owner sets the members above first. */
void ipw_meter_feed_init(struct ipw_meter_feed *f, const char *source_name);
void ipw_meter_feed_bytes(struct ipw_meter_feed *f, const char *bytes, size_t n);
void ipw_meter_feed_end_line(struct ipw_meter_feed *f); /* the last line has no newline */
/* Another file begins: its first line may be a heading. */
void ipw_meter_feed_restart(struct ipw_meter_feed *f);
/* Takes what has come; call it until `begun`. */
void ipw_meter_feed_pull(struct ipw_meter_feed *f);
/* Describes the channels once the format is known; names are PREFIX, or PREFIX:COLUMN. */
void ipw_meter_feed_describe(struct ipw_meter_feed *f, const char *prefix, const char *method);

#endif
