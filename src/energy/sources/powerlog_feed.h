/* energy/sources/powerlog_feed.h: splits bytes into lines, and holds the latest reading.
 *
 * Shared by a followed log (powerlog.c) and a command's output (exec.c).  Pure.  A line over 4 KiB
 * is given once, with its beginning; the rest is dropped.  A held reading is the mean of the watts
 * since it was last taken, or the newest joules.  It becomes stale after five of its usual
 * distances, and at least 10 s. */
#ifndef IPW_ENERGY_SOURCES_POWERLOG_FEED_H
#define IPW_ENERGY_SOURCES_POWERLOG_FEED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "energy/meter.h"

struct ipw_powerlog_lines {
    char text[4096];
    size_t n;
    int64_t number; /* lines so far */
};
typedef void ipw_powerlog_line_fn(void *ud, const char *line, size_t n, int64_t number);

/* Calls `fn` for each line that ends within `bytes`, without its newline. */
void ipw_powerlog_lines_push(struct ipw_powerlog_lines *f, const char *bytes, size_t n,
                             ipw_powerlog_line_fn *fn, void *ud);
/* Calls `fn` for a last line without a newline, if there is one. */
void ipw_powerlog_lines_end(struct ipw_powerlog_lines *f, ipw_powerlog_line_fn *fn, void *ud);

struct ipw_powerlog_held {
    double sum, last; /* watts, or joules */
    size_t fresh;     /* number of readings in `sum` */
    int64_t last_ns;  /* when the newest came; 0: none yet */
    int64_t spacing_ns;
};

void ipw_powerlog_held_push(struct ipw_powerlog_held *h, double value, int64_t now_ns);
/* Returns milliwatts or microjoules, or IPW_NO_VALUE. */
int64_t ipw_powerlog_held_take(struct ipw_powerlog_held *h, enum ipw_meter_kind kind,
                               int64_t now_ns);

#endif
