/* json/diff.h: the first place at which two documents differ. */
#ifndef IPW_JSON_DIFF_H
#define IPW_JSON_DIFF_H

#include "json/json.h"

struct ipw_json_difference {
    /* The nodes at that place; NULL: that document has nothing there. */
    const struct ipw_json *a, *b;
};

/* False if the documents are equal (the order of members does not count, numbers compare by their
 * text).  Otherwise `where` receives the path, such as "turns[2].energy.gpu", or "" for the
 * documents themselves. */
bool ipw_json_differ(struct ipw_buf *where, struct ipw_json_difference *out,
                     const struct ipw_json *a, const struct ipw_json *b);

#endif
