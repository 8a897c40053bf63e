/* json/whole_output.h: a file or a folder that appears complete or not at all.
 *
 * What is written goes to PATH.tmp; ipw_whole_commit() gives it its name, ipw_whole_drop() removes
 * it.  Without a path it goes to a stream that the caller names, and to a device or a pipe directly:
 * those cannot be renamed.  The first write that fails is reported by it and by every later call. */
#ifndef IPW_JSON_WHOLE_OUTPUT_H
#define IPW_JSON_WHOLE_OUTPUT_H

#include <stdio.h>

#include "base/err.h"

struct ipw_whole_output;

/* A file.  `path` NULL: `stream`, which stays open.  An existing regular file is replaced. */
int ipw_whole_file(struct ipw_whole_output **out, const char *path, FILE *stream,
                   struct ipw_err *err);
/* A folder: `path` must not exist, or be empty. */
int ipw_whole_folder(struct ipw_whole_output **out, const char *path, struct ipw_err *err);
/* Begins a file in the folder, and ends the one before; `name` is NAME or FOLDER/NAME, without a dot
 * first. */
int ipw_whole_next(struct ipw_whole_output *out, const char *name, struct ipw_err *err);
int ipw_whole_write(struct ipw_whole_output *out, const char *bytes, size_t n, struct ipw_err *err);
/* Where it is written, for a library that writes by itself; NULL: a stream. */
const char *ipw_whole_path(const struct ipw_whole_output *out);
/* Both free it. */
int ipw_whole_commit(struct ipw_whole_output *out, struct ipw_err *err);
void ipw_whole_drop(struct ipw_whole_output *out); /* NULL is fine */

#endif
