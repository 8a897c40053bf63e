/* energy/meter.h: the log of a power meter, as text and as samples.
 *
 * Pure.  A log is rows of cells: separated by commas, semicolons (then a comma may be the decimal
 * point) or tabs; a heading, or none.  The time column is the one called time, timestamp, date,
 * datetime or epoch, else the first; where it has a date alone, a further one of such a name has the
 * time of day.  It holds seconds or milliseconds (or finer) since 1970, ISO 8601 with or without a
 * zone, "YYYY/MM/DD HH:MM:SS", or HH:MM:SS, which may pass midnight; or what the meter has counted
 * since it was switched on, in the unit that the heading names, else seconds.
 * Columns of watts are known by unit or name (w, watt, power, pm1, ... also with a unit in
 * brackets or in the cells: "45.3 W"), cumulative joules and watt-hours likewise.  Everything else
 * is passed over, and so are comment lines (#) and cells that are empty.
 *
 * The format is found from the first lines (ipw_meter_format_begin), then each line is a row.  The
 * log gathers rows into one list of points a column; it owns them. */
#ifndef IPW_ENERGY_METER_H
#define IPW_ENERGY_METER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "energy/source.h"

#define IPW_METER_COLUMNS ((size_t)16)      /* that are used; cells of a row: 64 */
#define IPW_METER_POINTS  ((size_t)4 << 20) /* of all columns together */

enum ipw_meter_kind {
    IPW_METER_NONE,
    IPW_METER_WATTS,  /* power now */
    IPW_METER_JOULES, /* cumulative energy */
};

/* "123.4 W", "5.2 kWh", "17": the number in watts or joules, and which of the two its unit says
 * (IPW_METER_NONE without one).  False when it is no such thing. */
bool ipw_meter_quantity(const char *text, size_t n, bool decimal_comma, double *value,
                        enum ipw_meter_kind *kind);

enum ipw_meter_clock {
    IPW_METER_CLOCK_NONE,  /* not seen yet */
    IPW_METER_CLOCK_EPOCH, /* absolute */
    IPW_METER_CLOCK_ZONED, /* a date with its zone: absolute */
    IPW_METER_CLOCK_LOCAL, /* a date without zone: off by whole quarters of an hour */
    IPW_METER_CLOCK_DAY,   /* the time of some day */
};

struct ipw_meter_column {
    char name[64];
    size_t cell;
    enum ipw_meter_kind kind;
    double factor; /* from what a cell says to watts or joules */
    bool in_sum;   /* not one that another stands for */
    enum ipw_domain domain;
};

struct ipw_meter_format {
    char delimiter;
    bool decimal_comma, heading;
    size_t time_cell, n_cells;
    enum ipw_meter_clock clock;
    double named_unit_s;  /* what the heading calls the unit of its times; 0: nothing */
    double time_unit_s;   /* of an epoch: 1, 1e-3, ... */
    double last_of_day_s; /* of HH:MM:SS, to see midnight pass */
    int64_t days;
    size_t clock_cell;  /* of the time of day where the time cell has a date alone; or SIZE_MAX */
    size_t device_cell; /* names the device of the row (index, uuid); SIZE_MAX: there is none */
    char first_device[48]; /* of the first row */
    bool others;           /* a row of another device came */
    struct ipw_meter_column columns[IPW_METER_COLUMNS];
    size_t n_columns;
};

/* The first line that is neither empty nor a comment.  1: it was a heading; 0: it is itself a row
 * of numbers and has to be given to ipw_meter_row(), too.  `only` (may be NULL): use this column
 * alone, whatever it is called; its kind is from its name, watts when that does not say. */
int ipw_meter_format_begin(struct ipw_meter_format *f, const char *line, size_t n, const char *only,
                           struct ipw_err *err);

struct ipw_meter_row {
    double t_s;                       /* since 1970, or since the first day's midnight */
    double values[IPW_METER_COLUMNS]; /* watts or joules; NAN: the cell is empty */
};
/* 1: a row; 0: nothing in this line; negative: damaged, the message says which cell; IPW_EUNSUPPORTED:
 * rows of several devices take turns, whose watts in one column are no one's. */
int ipw_meter_row(struct ipw_meter_format *f, const char *line, size_t n, struct ipw_meter_row *row,
                  struct ipw_err *err);

struct ipw_meter_point {
    double t_s, value;
};
struct ipw_meter_points {
    struct ipw_meter_point *at;
    size_t n, cap;
    bool means; /* each value is the mean since the point before, for certain */
};

struct ipw_meter_log {
    struct ipw_meter_format format;
    struct ipw_meter_points columns[IPW_METER_COLUMNS];
    size_t rows, bad_rows, total;
    bool begun;
    char first_bad[200]; /* "line 17: ..." */
};
void ipw_meter_log_init(struct ipw_meter_log *log);
void ipw_meter_log_release(struct ipw_meter_log *log);
/* Takes a line.  A damaged row is counted, and the first one described; an error is only a heading
 * that cannot be used, rows of several devices, or a log over its limit. */
int ipw_meter_log_line(struct ipw_meter_log *log, const char *line, size_t n, int64_t number,
                       const char *only, struct ipw_err *err);
/* After the last line: puts rows in order of time, and takes the parts (CPU, GPU) out of the sum
 * where there is a column of the whole.  IPW_EPARSE when there are not two rows in any column. */
int ipw_meter_log_end(struct ipw_meter_log *log, struct ipw_err *err);

/* The watts of all columns in the sum, of several logs, at every instant at which one of them was
 * read, each cut to where all of them are and interpolated in between; `shift_s[i]` is taken from the times of log i.  Joules become the mean watts
 * since the reading before.  The caller frees out->at. */
void ipw_meter_sum(struct ipw_meter_points *out, const struct ipw_meter_log *const *logs,
                   const double *shift_s, size_t n_logs);

#endif
