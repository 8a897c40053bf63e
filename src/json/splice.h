/* json/splice.h: changes members of an object in its text.
 *
 * For many long lines of which little changes: a document of a line costs ten times as much as a
 * look at its text.  The text must be an object that was checked before (ipw_json_parse() or
 * ipw_json_parse_without()), with sorted keys and without blanks between members, as we write it.
 * The other members are copied as they are.  Pure; owns nothing. */
#ifndef IPW_JSON_SPLICE_H
#define IPW_JSON_SPLICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

enum { IPW_SPLICE_MOST = 20 };

struct ipw_splice { /* members to replace or to add; {0}: none */
    struct ipw_splice_member {
        const char *key, *text; /* text NULL: the number */
        char number[24];
    } members[IPW_SPLICE_MOST]; /* by key */
    size_t n;
};

/* Both strings are borrowed.  A key may be set once.  An empty text takes the member out. */
void ipw_splice_text(struct ipw_splice *s, const char *key, const char *text);
void ipw_splice_int(struct ipw_splice *s, const char *key, int64_t value);
/* Appends the changed object.  False: the text is not such an object; what was appended is of no
 * use. */
bool ipw_splice_write(struct ipw_buf *out, const struct ipw_splice *s, const char *text, size_t n);

#endif
