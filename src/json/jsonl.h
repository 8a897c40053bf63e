/* json/jsonl.h: files of one JSON value a line.
 *
 * The reader gives lines with their numbers and offsets, within a ceiling, and tells a torn last
 * line (one that has no newline: a writer was killed inside it) from a damaged one.  The appender
 * opens with O_APPEND, writes whole lines with one write, and cuts the file back to its last whole
 * line when a write fails, so that a full disk never leaves half a line behind.  Neither parses. */
#ifndef IPW_JSON_JSONL_H
#define IPW_JSON_JSONL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

/* The longest line of a run's files, for who writes one and who reads one. */
#define IPW_LINE_MAX (512 * IPW_MIB)

struct ipw_jsonl_reader;

struct ipw_jsonl_line {
    const char *text; /* borrowed until the next call; no newline; NUL after n bytes */
    size_t n;
    int64_t number; /* from 1 */
    int64_t offset; /* of its first byte in the file */
    bool torn;      /* the last line, and no newline ended it */
};

/* Regular files only: offsets and a second reading mean nothing elsewhere. */
int ipw_jsonl_open(struct ipw_jsonl_reader **out, const char *path, size_t line_max_bytes,
                   struct ipw_err *err);
/* 1: a line; 0: the end; negative: an error that names path and line.  Blank lines (white space
 * only) are passed over but counted; a BOM before line 1 is dropped; CR before LF is dropped.
 * After IPW_ELIMIT (a line over the ceiling) the next call goes on with the line after it. */
int ipw_jsonl_next(struct ipw_jsonl_reader *reader, struct ipw_jsonl_line *line,
                   struct ipw_err *err);
/* Goes on with the line that begins at `offset`, which a line before said.  From then on lines are
 * counted from there. */
int ipw_jsonl_seek(struct ipw_jsonl_reader *reader, int64_t offset, struct ipw_err *err);
void ipw_jsonl_close(struct ipw_jsonl_reader *reader);
/* Calls fn for each whole line of the file (a torn one is passed over), until it returns an error, which is
 * returned with path and line before it. */
int ipw_jsonl_each(const char *path, size_t line_max_bytes,
                   int (*fn)(void *ud, const struct ipw_jsonl_line *line, struct ipw_err *err),
                   void *ud, struct ipw_err *err);

struct ipw_jsonl_cut {
    int64_t offset, bytes; /* bytes 0: nothing had to be cut */
};
/* Before a file is appended to again: moves what follows its last whole line (no line feed, no
 * JSON, NUL bytes that a crash left) behind PATH.torn, and cuts the file there.  A file that is not
 * there is fine.  Lines before the last whole one are not looked at. */
int ipw_jsonl_cut_tail(struct ipw_jsonl_cut *cut, const char *path, struct ipw_err *err);

struct ipw_jsonl_appender;

/* Creates the file (mode 0600) if needed.  `exclusive`: fail with IPW_EEXISTS if it exists.  A file
 * whose last line is torn is refused with IPW_EPARSE: its owner cuts it first.  A link in place of
 * the file is not followed. */
int ipw_jsonl_append_open(struct ipw_jsonl_appender **out, const char *path, bool exclusive,
                          struct ipw_err *err);
/* Writes the bytes, which must be whole lines ending in a newline, with one write (short writes
 * and EINTR continued).  After a failure the file ends at its last good line and every further
 * call fails at once with the same message. */
int ipw_jsonl_append(struct ipw_jsonl_appender *a, const char *lines, size_t n,
                     struct ipw_err *err);
int ipw_jsonl_append_fd(const struct ipw_jsonl_appender *a);
int ipw_jsonl_append_close(struct ipw_jsonl_appender *a, struct ipw_err *err);

/* Appends a whole file to out (its ceiling holds: IPW_ELIMIT). */
int ipw_file_read(struct ipw_buf *out, const char *path, struct ipw_err *err);
/* Makes the entry of `path` in its folder last. */
int ipw_file_sync_folder(const char *path, struct ipw_err *err);
/* Writes a file (mode 0600) atomically: PATH.tmp, fsync, rename, fsync of the folder. */
int ipw_file_write_atomic(const char *path, const char *bytes, size_t n, struct ipw_err *err);

#endif
