/* json/document.h: a whole document: reads it from a file, prints it as text, replaces members.
 *
 * For the files of a run that are one object each (manifest.json, summary.json), and for lines that
 * are written again with a change.  Owns nothing. */
#ifndef IPW_JSON_DOCUMENT_H
#define IPW_JSON_DOCUMENT_H

#include "json/json.h"

/* Reads FOLDER/NAME, an object of at most 256 MiB.  The caller frees it; it is NULL after a
 * failure.  The error names the file. */
int ipw_json_read(struct ipw_json **out, const char *folder, const char *name, struct ipw_err *err);
/* The text that ipw_json_print() writes; freed by the caller.  NULL gives NULL. */
char *ipw_json_text(const struct ipw_json *node);
/* Appends the object with the members of `patch`, an object that we wrote: they replace members of
 * the same key.  Both have sorted keys, and so has the result. */
void ipw_json_patch(struct ipw_buf *out, const struct ipw_json *object, const char *patch);
/* The same as RFC 7396 has it: a null in the patch takes the member away.  Besides without the
 * members of `object` whose keys are in the list (NULL-terminated). */
void ipw_json_merge_patch(struct ipw_buf *out, const struct ipw_json *object, const char *patch,
                          const char *const *dropped);

#endif
