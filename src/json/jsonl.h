/* json/jsonl.h: files with one JSON value per line.
 *
 * The reader returns lines with their numbers and offsets, up to a maximum length.  It
 * distinguishes a torn last line (no newline: its writer was killed) from a damaged one.  The
 * appender opens with O_APPEND and writes whole lines with one write.  If a write fails it cuts the
 * file back to its last whole line, so that a full disk never leaves half a line.  Neither parses
 * JSON. */
#ifndef IPW_JSON_JSONL_H
#define IPW_JSON_JSONL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

/* The longest line in a run's files, for writers and readers. */
#define IPW_LINE_MAX (512 * IPW_MIB)

struct ipw_jsonl_reader;

struct ipw_jsonl_line {
    const char *text; /* borrowed until the next call; no newline; NUL after n bytes */
    size_t n;
    int64_t number; /* counted from 1 */
    int64_t offset; /* of the line's first byte in the file */
    bool torn;      /* the last line, without a newline */
};

/* Only for regular files: offsets and a second reading make no sense for other kinds. */
int ipw_jsonl_open(struct ipw_jsonl_reader **out, const char *path, size_t line_max_bytes,
                   struct ipw_err *err);
/* 1: a line; 0: the end; negative: an error that names path and line.  Blank lines (white space
 * only) are skipped but counted.  A BOM before line 1 and a CR before LF are dropped.  After
 * IPW_ELIMIT (a line over the limit) the next call continues with the following line. */
int ipw_jsonl_next(struct ipw_jsonl_reader *reader, struct ipw_jsonl_line *line,
                   struct ipw_err *err);
/* Continues with the line at `offset`, which an earlier line reported.  Line numbers start again at
 * that line. */
int ipw_jsonl_seek(struct ipw_jsonl_reader *reader, int64_t offset, struct ipw_err *err);
/* After the end: the file may have grown since.  The next call goes on behind the last whole line,
 * so a torn line comes again. */
void ipw_jsonl_more(struct ipw_jsonl_reader *reader);
void ipw_jsonl_close(struct ipw_jsonl_reader *reader);
/* Its descriptor, to read a part of the file once more (pread()). */
int ipw_jsonl_fd(const struct ipw_jsonl_reader *reader);
/* Calls fn for each whole line of the file (a torn line is skipped), until fn returns an error.
 * Returns that error with path and line before its message. */
int ipw_jsonl_each(const char *path, size_t line_max_bytes,
                   int (*fn)(void *ud, const struct ipw_jsonl_line *line, struct ipw_err *err),
                   void *ud, struct ipw_err *err);

struct ipw_jsonl_cut {
    int64_t offset, bytes; /* bytes 0: nothing was cut */
};
/* Prepares a file for appending.  Moves everything after its last whole line (text without line
 * feed, invalid JSON, NUL bytes of a crash) to the end of PATH.torn, and cuts the file there.  A
 * missing file is fine.  Lines before the last whole one are not checked. */
int ipw_jsonl_cut_tail(struct ipw_jsonl_cut *cut, const char *path, struct ipw_err *err);

struct ipw_jsonl_appender;

/* Creates the file (mode 0600) if needed.  `exclusive`: fails with IPW_EEXISTS if it exists.  A
 * file with a torn last line is refused with IPW_EPARSE: its owner must cut it first.  Does not
 * follow a link in place of the file. */
int ipw_jsonl_append_open(struct ipw_jsonl_appender **out, const char *path, bool exclusive,
                          struct ipw_err *err);
/* Writes the bytes, which must be whole lines ending in a newline, with one write (continued after
 * short writes and EINTR).  After a failure the file ends at its last good line, and every further
 * call fails at once with the same message. */
int ipw_jsonl_append(struct ipw_jsonl_appender *a, const char *lines, size_t n,
                     struct ipw_err *err);
int ipw_jsonl_append_fd(const struct ipw_jsonl_appender *a);
int ipw_jsonl_append_close(struct ipw_jsonl_appender *a, struct ipw_err *err);

/* Appends a whole file to out; beyond the buffer's limit it returns IPW_ELIMIT. */
int ipw_file_read(struct ipw_buf *out, const char *path, struct ipw_err *err);
/* Syncs the folder of `path`, so that the file's entry in it is safe on disk. */
int ipw_file_sync_folder(const char *path, struct ipw_err *err);
/* Writes a file (mode 0600) atomically: PATH.tmp, fsync, rename, fsync of the folder. */
int ipw_file_write_atomic(const char *path, const char *bytes, size_t n, struct ipw_err *err);

#endif
