/* json/document.h: a whole document: from a file, as a text, with some of its members replaced.
 *
 * For the files of a run that are one object each (manifest.json, summary.json) and for lines that
 * are written again with a change.  Owns nothing. */
#ifndef IPW_JSON_DOCUMENT_H
#define IPW_JSON_DOCUMENT_H

#include "json/json.h"

/* FOLDER/NAME, an object of at most 256 MiB; freed by the caller, NULL after a failure.  The error
 * names the file. */
int ipw_json_read(struct ipw_json **out, const char *folder, const char *name, struct ipw_err *err);
/* As ipw_json_print() writes it; freed by the caller.  NULL gives NULL. */
char *ipw_json_text(const struct ipw_json *node);
/* The object with the members of `patch`, an object of our own writing: they replace those of the same
 * key.  Both have sorted keys, and so has the outcome. */
void ipw_json_patch(struct ipw_buf *out, const struct ipw_json *object, const char *patch);

#endif
