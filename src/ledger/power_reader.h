/* ledger/power_reader.h: reads power.jsonl.
 *
 * Returns the header's channels as the run had them, and then row after row in the run's order.
 * Skips a torn last row.  A resumed run has a header for every session (`segment`) in which a
 * sensor was read; each header has its own channels and rows.  Owns the file and the channels. */
#ifndef IPW_LEDGER_POWER_READER_H
#define IPW_LEDGER_POWER_READER_H

#include "energy/sampler.h"
#include "energy/source.h"

struct ipw_power_source {
    size_t first, n; /* range of its channels */
    char name[32];
    int64_t newest_ns; /* time of its newest row so far; INT64_MIN: no row */
};

struct ipw_power_reader {
    struct ipw_channel *channels;
    size_t n_channels, cap_channels;
    struct ipw_power_source *sources;
    size_t n_sources, cap_sources;
    struct ipw_jsonl_reader *reader; /* NULL: no file, because the run had no sensor */
    char *path;
    struct ipw_json *header; /* the header of the next session, once reached; else NULL */
    int64_t header_line;
    char *header_text; /* the last header that was read */
    int segment;       /* the session that the channels belong to; -1: none yet */
    /* the last row that was read */
    int64_t t_ns;
    size_t source;
    int64_t *values;
    int64_t rows; /* rows of the session so far */
    int64_t line; /* its line number in the file, also for a damaged line */
};

/* Returns 0 also if RUN has no power.jsonl: no channels, no rows.  The channels are those of
 * session 0. */
int ipw_power_reader_open(struct ipw_power_reader *p, const char *run, struct ipw_err *err);
/* Opens any file of this format; the file must exist.  The channels are those of its first
 * header. */
int ipw_power_reader_open_file(struct ipw_power_reader *p, const char *path, struct ipw_err *err);
/* 1: the file has a whole line; 0: the run was killed before it wrote the header, or (*torn) while
 * it wrote it. */
int ipw_power_reader_has_header(const char *path, bool *torn, struct ipw_err *err);
/* Moves forward to a session: its channels (none without a header), and then its rows. */
int ipw_power_reader_segment(struct ipw_power_reader *p, int segment, struct ipw_err *err);
/* After the end of a session: moves to the next session in the file.  1: there is one; 0: end of
 * file. */
int ipw_power_reader_next_segment(struct ipw_power_reader *p, struct ipw_err *err);
/* 1: a row; 0: the end of the session; negative: a damaged line, or a row that is not later than
 * its sensor's previous row (shuffled rows are refused, not sorted).  The next call continues after
 * it. */
int ipw_power_reader_next(struct ipw_power_reader *p, struct ipw_err *err);
void ipw_power_reader_close(struct ipw_power_reader *p);

#endif
