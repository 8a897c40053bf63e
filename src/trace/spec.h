/* trace/spec.h: the format of a run's files as tables, and the writer, reader and checker that use
 * them.
 *
 * A table names the keys of an object, in the order of their bytes, with the kinds of value that
 * each may have and the struct member that holds the value, if any.  docs/trace-format.md has the
 * same keys with their meaning; a test compares the two.  The checker walks one parsed value and
 * reports the first fault with its path ("turns[2].energy.gpu.joules: expected a number or null,
 * found text").  It does not know files or relations between values; audit/validate.c does.  Keys
 * that no table names are allowed, because later versions add keys.  Pure. */
#ifndef IPW_TRACE_SPEC_H
#define IPW_TRACE_SPEC_H

#include <string.h>

#include "base/err.h"
#include "json/json.h"
#include "json/write.h"

#define IPW_SCHEMA_VERSION 2

enum ipw_spec_kind {
    IPW_SPEC_TEXT = 1,
    IPW_SPEC_INT = 2,
    IPW_SPEC_NUM = 4, /* also integers */
    IPW_SPEC_BOOL = 8,
    IPW_SPEC_OBJ = 16,
    IPW_SPEC_ARR = 32,
    IPW_SPEC_NULL = 64,
    IPW_SPEC_ANY = 127,
    IPW_SPEC_OPTIONAL = 128, /* the key may be absent */
    IPW_SPEC_EACH = 256,     /* `of` is the table of every member's value, for any key */
    IPW_SPEC_COUNT = 512,    /* not negative */
    IPW_SPEC_MICRO = 1024,   /* joules or watts: written as whole microjoules or microwatts */
    /* Redaction (trace/redact.h).  A text without a flag is hidden with the texts of queries. */
    IPW_SPEC_OPEN = 2048,    /* reveals nothing, and stays; so does one of `words` */
    IPW_SPEC_PRIVATE = 4096, /* an address, or an error with one: hidden in every mode */
    IPW_SPEC_GONE = 8192,    /* filler would tell its length: left out, or {} if it must be there */
};

/* The type of the member that holds a value, and its form for an unknown value. */
enum ipw_spec_hold {
    IPW_HOLD_NOTHING, /* no member: `put` writes it, and other code reads it */
    IPW_HOLD_INT,     /* int; unknown: 0 or less */
    IPW_HOLD_INT64,   /* unknown: below 0 for a count that may be null, else 0 */
    IPW_HOLD_SIZE,    /* size_t */
    IPW_HOLD_NUM,     /* double; unknown: NAN */
    IPW_HOLD_BOOL,
    IPW_HOLD_TEXT,   /* const char *, borrowed; unknown: NULL.  For an object: its JSON text */
    IPW_HOLD_OWN,    /* char *, owned; unknown: NULL */
    IPW_HOLD_WORD,   /* an enum, the index in `words`; written, not read */
    IPW_HOLD_FIGURE, /* struct ipw_figure: its joules; written (IPW_SPEC_MICRO), not read */
};

struct ipw_spec {
    const char *key; /* NULL ends a table */
    unsigned kind;
    const struct ipw_spec *of; /* the table of an object, or of an array's objects; NULL: any */
    const char *const *words;  /* allowed texts (NULL-terminated), or NULL: any text */
    /* Writes key and value in place of the member; `of`: the structs that the table refers to. */
    void (*put)(struct ipw_jw *w, const struct ipw_spec *s, const void *const *of);
    unsigned char hold, base; /* an ipw_spec_hold; the index of the struct with the member */
    unsigned short at;        /* the member's offset; or a number for `put` */
};

extern const struct ipw_spec ipw_spec_manifest[], ipw_spec_summary[], ipw_spec_trace[],
    ipw_spec_power_header[];
/* The extra keys of a line of attempts.jsonl. */
extern const struct ipw_spec ipw_spec_attempt[];
/* Does this program read the format of that schema_version? */
static inline bool ipw_spec_knows(int64_t version) { return version == IPW_SCHEMA_VERSION; }

/* The table of one kind of event; NULL: there is no such kind. */
const struct ipw_spec *ipw_spec_event(const char *name);

/* As strcmp(); the first bytes of two keys mostly differ. */
static inline int ipw_spec_compare(const char *a, const char *b)
{
    int order = (unsigned char)a[0] - (unsigned char)b[0];

    return order ? order : strcmp(a, b);
}

/* Is the member's key before (< 0), at (0) or behind the row's? */
static inline int ipw_spec_order(const struct ipw_json *member, const struct ipw_spec *row)
{
    return ipw_spec_compare(ipw_json_key(member), row->key);
}

/* Checks an object against a table.  IPW_EPARSE: the message names the path of the fault. */
int ipw_spec_check(const struct ipw_json *object, const struct ipw_spec *table,
                   struct ipw_err *err);
/* The same of a file that others wrote: any order, and any key may be absent or null. */
int ipw_spec_check_foreign(const struct ipw_json *object, const struct ipw_spec *table,
                           struct ipw_err *err);

/* Writes an object by a table, with its brackets.  An unknown value is left out if the key may be
 * absent; else it is null. */
void ipw_spec_write(struct ipw_jw *w, const struct ipw_spec *table, const void *const *of);
/* Reads the members of a table from an object; absent ones are unknown.  Borrowed texts point into
 * the object.  Numbers are limited as by ipw_spec_cut(). */
void ipw_spec_read(const struct ipw_json *object, const struct ipw_spec *table, void *const *of);
/* Makes sums and differences of an untrusted file's members safe.  An instant or a duration is
 * limited to a hundred years.  A count beyond 2^53 becomes unknown, because sums of it would not
 * fit. */
void ipw_spec_cut(const struct ipw_spec *table, void *const *of);
int64_t ipw_spec_instant(int64_t t_ns);

/* Checks how the values of one query's line relate, beyond the table: turns tile the query, parts
 * sum to wholes, every energy value has its provenance. */
int ipw_spec_check_query(const struct ipw_json *query, struct ipw_err *err);

#endif
