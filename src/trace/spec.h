/* trace/spec.h: what docs/trace-format.md says of every kind of object, as tables, and the check.
 *
 * A table names the keys of an object with the kinds of value that each may have.  The check walks
 * one parsed value, reports the first fault with its path ("turns[2].energy.gpu.joules: expected a
 * number or null, found text") and knows nothing of files or of what two values have to do with
 * each other; audit/validate.c does.  Keys that no table names are no fault: later versions add keys.
 * Pure. */
#ifndef IPW_TRACE_SPEC_H
#define IPW_TRACE_SPEC_H

#include "base/err.h"
#include "json/json.h"

enum ipw_spec_kind {
    IPW_SPEC_TEXT = 1,
    IPW_SPEC_INT = 2,
    IPW_SPEC_NUM = 4, /* integers, too */
    IPW_SPEC_BOOL = 8,
    IPW_SPEC_OBJ = 16,
    IPW_SPEC_ARR = 32,
    IPW_SPEC_NULL = 64,
    IPW_SPEC_ANY = 127,
    IPW_SPEC_OPTIONAL = 128, /* the key may be absent */
    IPW_SPEC_EACH = 256,     /* `of` is the table of every member's value, whatever its key */
    IPW_SPEC_COUNT = 512,    /* not negative */
};

struct ipw_spec {
    const char *key; /* NULL ends a table */
    unsigned kind;
    const struct ipw_spec *of; /* of an object, of the objects in an array; or NULL: free */
    const char *const *words;  /* a text must be one of these (NULL ends them); or NULL: any text */
};

extern const struct ipw_spec ipw_spec_manifest[], ipw_spec_summary[], ipw_spec_trace[],
    ipw_spec_attempt[], ipw_spec_power_header[];
/* The table of one kind of event; NULL: no event is called so. */
const struct ipw_spec *ipw_spec_event(const char *name);

/* IPW_EPARSE, naming the path below `where` ("" at the top). */
int ipw_spec_check(const struct ipw_json *object, const struct ipw_spec *table, const char *where,
                   struct ipw_err *err);

/* What the values of one query's line have to do with each other, beyond the table: turns tile the
 * query, parts sum to wholes, every figure says how it was obtained. */
int ipw_spec_check_query(const struct ipw_json *query, struct ipw_err *err);

#endif
