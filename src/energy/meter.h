/* energy/meter.h: reads the lines of a power meter, from text to samples.
 *
 * Pure; the one reader of meters: of a log after the run (audit/meter_report), of a log that grows
 * and of a command's output (sources/meter_feed.h).  A line may be a single reading, as commands
 * print them: "123.4 W" (a bare number is watts), "5.2 J" (cumulative), other multiples, Wh,
 * {"watts": 123.4} or {"joules": 5.2, "time": 1763695561.25}; the first one decides the kind.
 * Otherwise a log consists of rows of cells with an optional heading.  Commas, semicolons (then a
 * comma may be the decimal point) or tabs separate the cells.  The time column is called time,
 * timestamp, date, datetime or epoch; otherwise it is the first.  If it has only a date, another
 * column of such a name has the time of day.  Times are seconds or milliseconds (or finer) since
 * 1970, ISO 8601 with or without a zone, "YYYY/MM/DD HH:MM:SS", or HH:MM:SS, which may pass
 * midnight.  They may also count from when the meter was switched on, in the unit that the heading
 * names, else in seconds.  Columns of watts are recognised by unit or name (w, watt, power, pm1,
 * ..., also with a unit in brackets or in the cells: "45.3 W"), and so are cumulative joules and
 * watt-hours.  Other columns, comment lines (#) and empty cells are ignored.
 *
 * The first lines decide the format (ipw_meter_format_begin); then each line is a row.  The log
 * collects the rows into one list of points per column; it owns the lists. */
#ifndef IPW_ENERGY_METER_H
#define IPW_ENERGY_METER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "energy/source.h"

#define IPW_METER_COLUMNS ((size_t)16)      /* used columns; a row may have 64 cells */
#define IPW_METER_POINTS  ((size_t)4 << 20) /* for all columns together */

enum ipw_meter_kind {
    IPW_METER_NONE,
    IPW_METER_WATTS,   /* power now */
    IPW_METER_JOULES,  /* cumulative energy */
    IPW_METER_SECONDS, /* the unit of a time; of no column */
};

/* Parses "123.4 W", "5.2 kWh", "17": the number in watts or joules, and the kind that its unit
 * names (IPW_METER_NONE without a unit).  False if the text is not such a quantity. */
bool ipw_meter_quantity(const char *text, size_t n, bool decimal_comma, double *value,
                        enum ipw_meter_kind *kind);

enum ipw_meter_clock {
    IPW_METER_CLOCK_NONE,  /* unknown yet */
    IPW_METER_CLOCK_EPOCH, /* absolute */
    IPW_METER_CLOCK_ZONED, /* a date with a zone: absolute */
    IPW_METER_CLOCK_LOCAL, /* a date without a zone: wrong by whole quarters of an hour */
    IPW_METER_CLOCK_DAY,   /* a time of day, of an unknown date */
};

struct ipw_meter_column {
    char name[64];
    size_t cell;
    enum ipw_meter_kind kind;
    double factor; /* converts a cell's value to watts or joules */
    bool in_sum;   /* false if another column includes this one */
    enum ipw_domain domain;
};

struct ipw_meter_format {
    char delimiter;
    bool bare; /* each line is a single reading, of the one column */
    bool decimal_comma, heading;
    bool time_named; /* the heading names the column of times */
    size_t time_cell, n_cells;
    enum ipw_meter_clock clock;
    double named_unit_s;  /* the unit of times in the heading; 0: none */
    double time_unit_s;   /* for an epoch: 1, 1e-3, ... */
    double last_of_day_s; /* for HH:MM:SS, to notice midnight */
    int64_t days;
    /* The cell with the time of day, if the time cell has only a date; else SIZE_MAX. */
    size_t clock_cell;
    size_t device_cell;    /* the cell that names the row's device (index, uuid); SIZE_MAX: none */
    char first_device[48]; /* device of the first row */
    bool others;           /* a row of another device was seen */
    struct ipw_meter_column columns[IPW_METER_COLUMNS];
    size_t n_columns;
};

/* Takes the first line that is neither empty nor a comment.  1: it was a heading; 0: it is a row of
 * numbers or a single reading, and must also be given to ipw_meter_row().  `only` (may be NULL):
 * use this column alone, regardless of its name; its kind follows from the name, or is watts. */
int ipw_meter_format_begin(struct ipw_meter_format *f, const char *line, size_t n, const char *only,
                           struct ipw_err *err);

struct ipw_meter_row {
    double t_s; /* seconds since 1970, or since midnight of the first day; NAN: it has no time */
    double values[IPW_METER_COLUMNS]; /* watts or joules; NAN: the cell is empty */
};
/* 1: a row; 0: the line has no values; negative: damaged, the message names the cell.
 * IPW_EUNSUPPORTED: rows of several devices alternate in one column, so their watts cannot be
 * separated. */
int ipw_meter_row(struct ipw_meter_format *f, const char *line, size_t n, struct ipw_meter_row *row,
                  struct ipw_err *err);

struct ipw_meter_point {
    double t_s, value;
};
struct ipw_meter_points {
    struct ipw_meter_point *at;
    size_t n, cap;
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
/* Adds a line.  A damaged row is counted, and the first one is described.  Errors are only a
 * heading that cannot be used, rows of several devices, or a log over its limit. */
int ipw_meter_log_line(struct ipw_meter_log *log, const char *line, size_t n, int64_t number,
                       const char *only, struct ipw_err *err);
/* Call it after the last line.  It sorts the rows by time, and takes the parts (CPU, GPU) out of
 * the sum if there is a column of the whole.  IPW_EPARSE if no column has two rows. */
int ipw_meter_log_end(struct ipw_meter_log *log, struct ipw_err *err);

#endif
