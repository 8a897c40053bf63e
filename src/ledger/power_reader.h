/* ledger/power_reader.h: power.jsonl, read back.
 *
 * The header's channels as the run had them, and then row after row, in the order in which the run
 * took them.  A torn last row is passed over.  A run that was resumed has a header for every segment
 * (session) in which a sensor was read, and the channels and rows of each are its own.  Owns the
 * file and the channels. */
#ifndef IPW_LEDGER_POWER_READER_H
#define IPW_LEDGER_POWER_READER_H

#include "energy/sampler.h"
#include "energy/source.h"

struct ipw_power_source {
    size_t first, n; /* its channels */
    char name[32];
    int64_t newest_ns; /* of its rows so far; INT64_MIN: none */
};

struct ipw_power {
    struct ipw_channel *channels;
    size_t n_channels, cap_channels;
    struct ipw_power_source *sources;
    size_t n_sources, cap_sources;
    struct ipw_jsonl_reader *reader; /* NULL: the run has no such file, for want of sensors */
    char *path;
    struct ipw_json *header; /* of the next segment, which has come up; NULL: none has */
    int64_t header_line;
    char *header_text; /* of the header that was seen last */
    int segment;       /* whose channels these are; -1: none yet */
    /* the row that was read last */
    int64_t t_ns;
    size_t source;
    int64_t *values;
    int64_t rows; /* of the segment */
    int64_t line; /* its number in the file; of a damaged line, too */
};

/* 0 also when RUN has no power.jsonl: no channels, no rows.  The channels are those of segment 0. */
int ipw_power_open(struct ipw_power *p, const char *run, struct ipw_err *err);
/* Any file of this format, which must be there.  The channels are those of its first header. */
int ipw_power_open_file(struct ipw_power *p, const char *path, struct ipw_err *err);
/* 1: the file has a whole line; 0: the run was killed before the header was written, or (*torn) while
 * it was. */
int ipw_power_has_header(const char *path, bool *torn, struct ipw_err *err);
/* Goes on to a segment, not back: its channels, none when it has no header, and then its rows. */
int ipw_power_segment(struct ipw_power *p, int segment, struct ipw_err *err);
/* After the end of a segment: goes on to the one that follows, whatever its number.  1: there is
 * one; 0: the end of the file. */
int ipw_power_next_segment(struct ipw_power *p, struct ipw_err *err);
/* 1: a row; 0: the end of the segment; negative: a damaged line, or one that is not later than its
 * source's row before it (shuffled rows are refused, not sorted).
 * The next call goes on after it. */
int ipw_power_next(struct ipw_power *p, struct ipw_err *err);
void ipw_power_close(struct ipw_power *p);

#endif
