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

struct ipw_json_near {
    double most;            /* numbers are equal up to this difference */
    const char *const *but; /* keys that are not compared; NULL-terminated */
};
/* The same, less strictly.  An absent member is also equal to null, and to an object whose member
 * `joules` is null (an unknown figure). */
bool ipw_json_differ_much(struct ipw_buf *where, struct ipw_json_difference *out,
                          const struct ipw_json *a, const struct ipw_json *b,
                          const struct ipw_json_near *near);

#endif
