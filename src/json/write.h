/* json/write.h: writes JSON; the program's only printer.
 *
 * A writer appends compact text to a buffer.  Give the keys of one object in ascending byte order
 * (a debug build aborts otherwise): sorted keys make prompts, prefix caches and traces repeat from
 * run to run.  A double becomes the shortest decimal that reads back the same and still reads as a
 * double (whole ones end in ".0": 3.0, not 3).  Integers are exact.  NaN and infinities become
 * null.  Invalid UTF-8 and NUL bytes become U+FFFD: the reader cannot return a NUL, and a replay
 * must read the text that the run saw.  The writer owns nothing; the buffer remembers a failure
 * (`failed`). */
#ifndef IPW_JSON_WRITE_H
#define IPW_JSON_WRITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

struct ipw_jw {
    struct ipw_buf *out;
    unsigned depth;
    bool comma;              /* a value was written at this level */
    const char *last_key[8]; /* debug builds: the last key of each of the outer levels */
};

void ipw_jw_init(struct ipw_jw *w, struct ipw_buf *out);
void ipw_jw_obj(struct ipw_jw *w);
void ipw_jw_obj_end(struct ipw_jw *w);
void ipw_jw_arr(struct ipw_jw *w);
void ipw_jw_arr_end(struct ipw_jw *w);
/* A key that is a literal or outlives the object: ASCII without quotes, backslashes or controls. */
void ipw_jw_key(struct ipw_jw *w, const char *key);
/* A key of any text (escaped); the caller keeps the order of such keys. */
void ipw_jw_key_any(struct ipw_jw *w, const char *key, size_t n);

void ipw_jw_str(struct ipw_jw *w, const char *s); /* NULL writes null */
void ipw_jw_strn(struct ipw_jw *w, const char *s, size_t n);
void ipw_jw_int(struct ipw_jw *w, int64_t i);
void ipw_jw_num(struct ipw_jw *w, double x);
/* An energy or a power, as whole microjoules or microwatts: the nearest to x, which is in joules or
 * watts. */
void ipw_jw_micro(struct ipw_jw *w, double x);
void ipw_jw_bool(struct ipw_jw *w, bool b);
void ipw_jw_null(struct ipw_jw *w);
/* Text that is known to be one value (ipw_json_valid); its line breaks become spaces. */
void ipw_jw_raw(struct ipw_jw *w, const char *json, size_t n);

/* A key and its value: ipw_jw_kint(w, "n", 3). */
#define IPW_JW_MEMBER(kind, type)                                                                  \
    static inline void ipw_jw_k##kind(struct ipw_jw *w, const char *key, type value)               \
    {                                                                                              \
        ipw_jw_key(w, key);                                                                        \
        ipw_jw_##kind(w, value);                                                                   \
    }
IPW_JW_MEMBER(str, const char *)
IPW_JW_MEMBER(int, int64_t)
IPW_JW_MEMBER(num, double)
IPW_JW_MEMBER(micro, double)
IPW_JW_MEMBER(bool, bool)
#undef IPW_JW_MEMBER

static inline void ipw_jw_knull(struct ipw_jw *w, const char *key)
{
    ipw_jw_key(w, key);
    ipw_jw_null(w);
}

static inline void ipw_jw_kcount(struct ipw_jw *w, const char *key, int64_t n)
{
    if (n < 0) /* writes null */
        ipw_jw_knull(w, key);
    else
        ipw_jw_kint(w, key, n);
}

static inline void ipw_jw_kraw(struct ipw_jw *w, const char *key, const char *json, size_t n)
{
    ipw_jw_key(w, key);
    ipw_jw_raw(w, json, n);
}

/* Appends s as a quoted, escaped JSON string: fast for long plain text.  At the limit the buffer
 * keeps no part of it. */
void ipw_json_escape(struct ipw_buf *out, const char *s, size_t n);
/* Appends the shortest decimal text that strtod reads back as x, with a point or an exponent
 * ("3.0", "0.1", "1e-7", "1.5e300"); "null" for NaN and infinities. */
void ipw_json_double(struct ipw_buf *out, double x);

#endif
