/* trace/spec.h: the format of the files of a run as tables, and the writer, reader and check that they
 * drive.
 *
 * A table names the keys of an object, in the order of their bytes, with the kinds of value that each
 * may have and, where a struct holds the value, the member.  docs/trace-format.md has the same keys
 * with their meaning; a test compares the two.  The check walks one parsed value, reports the first
 * fault with its path ("turns[2].energy.gpu.joules: expected a number or null, found text") and knows
 * nothing of files or of what two values have to do with each other; audit/validate.c does.  Keys that
 * no table names are no fault: later versions add keys.  Pure. */
#ifndef IPW_TRACE_SPEC_H
#define IPW_TRACE_SPEC_H

#include "base/err.h"
#include "json/json.h"
#include "json/write.h"

#define IPW_SCHEMA_VERSION 1

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

/* The type of the member that holds a value, and how it says that the value is not known. */
enum ipw_spec_hold {
    IPW_HOLD_NOTHING, /* no member: `put` writes it, and who needs it reads it */
    IPW_HOLD_INT,     /* int; not known: 0 or less */
    IPW_HOLD_INT64,   /* not known: of a count that may be null below 0, else 0 */
    IPW_HOLD_SIZE,    /* size_t */
    IPW_HOLD_NUM,     /* double; not known: NAN */
    IPW_HOLD_BOOL,
    IPW_HOLD_TEXT,   /* const char *, borrowed; not known: NULL.  Of an object: its JSON text */
    IPW_HOLD_OWN,    /* char *, owned; not known: NULL */
    IPW_HOLD_WORD,   /* an enum, the place in `words`; written, not read */
    IPW_HOLD_FIGURE, /* struct ipw_figure: its joules; written, not read */
};

struct ipw_spec {
    const char *key; /* NULL ends a table */
    unsigned kind;
    const struct ipw_spec *of; /* of an object, of the objects in an array; or NULL: free */
    const char *const *words;  /* a text must be one of these (NULL ends them); or NULL: any text */
    /* Writes key and value in place of the member; `of`: the structs that the table is about. */
    void (*put)(struct ipw_jw *w, const struct ipw_spec *s, const void *const *of);
    unsigned char hold, base; /* an ipw_spec_hold; in which of the structs the member is */
    unsigned short at;        /* where in it; or a number for `put` */
};

extern const struct ipw_spec ipw_spec_manifest[], ipw_spec_summary[], ipw_spec_trace[],
    ipw_spec_power_header[];
/* What a line of attempts.jsonl has besides. */
extern const struct ipw_spec ipw_spec_attempt[];
/* The table of one kind of event; NULL: no event is called so. */
const struct ipw_spec *ipw_spec_event(const char *name);

/* IPW_EPARSE, naming the path below `where` ("" at the top). */
int ipw_spec_check(const struct ipw_json *object, const struct ipw_spec *table, const char *where,
                   struct ipw_err *err);

/* An object of a table, with its brackets.  A value that is not known is left out where the key may be
 * absent, else null. */
void ipw_spec_write(struct ipw_jw *w, const struct ipw_spec *table, const void *const *of);
/* The members of a table, of an object; what is absent is not known.  Borrowed texts point into it.
 * Numbers are cut as by ipw_spec_cut(). */
void ipw_spec_read(const struct ipw_json *object, const struct ipw_spec *table, void *const *of);
/* Makes sums and differences of members of an untrusted record safe: an instant or a duration beyond a
 * hundred years is cut there, a count beyond 2^53, where no sum of them fits, is not known. */
void ipw_spec_cut(const struct ipw_spec *table, void *const *of);
int64_t ipw_spec_instant(int64_t t_ns);

/* What the values of one query's line have to do with each other, beyond the table: turns tile the
 * query, parts sum to wholes, every figure says how it was obtained. */
int ipw_spec_check_query(const struct ipw_json *query, struct ipw_err *err);

#endif
