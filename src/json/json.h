/* json/json.h: reads JSON from any source.
 *
 * The program's only view of cJSON.  Every text passes a strict guard first: RFC 8259 grammar,
 * depth at most 128, and only white space after the value.  A UTF-8 BOM before the value is
 * skipped.  The guard repairs faults that real servers send, and counts the repairs: invalid UTF-8,
 * lone surrogates and \u0000 become U+FFFD.  Of duplicate keys the last one counts (iteration shows
 * them all, printing writes one).  Keys are compared exactly.  Integers are exact over the whole
 * int64 range.
 *
 * A text that is too deep or has more than 4 million values is refused with IPW_ELIMIT, any other
 * fault with IPW_EPARSE.  Numbers beyond the range of a double (1e999) are valid JSON: their value
 * is an infinity, which the strict getters refuse.
 *
 * A document owns its nodes.  `const struct ipw_json *` nodes and their strings live until
 * ipw_json_free(root).  All accessors accept a NULL node (an absent member) and return their
 * fallback. */
#ifndef IPW_JSON_JSON_H
#define IPW_JSON_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

struct ipw_json; /* a node; the root node also stands for the document */

enum ipw_json_kind {
    IPW_JSON_ABSENT, /* kind of a NULL node */
    IPW_JSON_NULL,
    IPW_JSON_BOOL,
    IPW_JSON_INT, /* no point and no exponent, within int64, and not -0 */
    IPW_JSON_NUM, /* any other number: 1.0, 1e3, -0, 9223372036854775808 */
    IPW_JSON_STR,
    IPW_JSON_ARR,
    IPW_JSON_OBJ,
};

/* On failure the message names the byte offset, from 0, and the text found there ("at byte 17:
 * expected ':', found '1'"), and *root is NULL.  `repairs` (may be NULL) receives the number of
 * repairs. */
int ipw_json_parse(struct ipw_json **root, const char *text, size_t n, size_t *repairs,
                   struct ipw_err *err);
/* The same without some members of the top object: `unread` names them, NULL ends it.  They are
 * checked like all text, but objects, lists and texts are empty in the document.  For a reader that
 * needs little of a long line. */
int ipw_json_parse_without(struct ipw_json **root, const char *text, size_t n,
                           const char *const *unread, size_t *repairs, struct ipw_err *err);
void ipw_json_free(struct ipw_json *root); /* NULL is fine */

enum ipw_json_kind ipw_json_kind(const struct ipw_json *node);
const struct ipw_json *ipw_json_get(const struct ipw_json *object, const char *key);
const struct ipw_json *ipw_json_at(const struct ipw_json *array, size_t index); /* O(index) */
/* Number of members or elements; 0 for scalars. */
size_t ipw_json_count(const struct ipw_json *node);
/* Iteration over members and elements in text order. */
const struct ipw_json *ipw_json_first(const struct ipw_json *node);
const struct ipw_json *ipw_json_next(const struct ipw_json *child);
const char *ipw_json_key(const struct ipw_json *member);

/* Lenient: the value if the node has that kind, else the fallback. */
const char *ipw_json_str(const struct ipw_json *node, const char *fallback);
size_t ipw_json_str_len(const struct ipw_json *node);                /* 0 if not a string */
int64_t ipw_json_int(const struct ipw_json *node, int64_t fallback); /* 3.0 counts as 3 */
double ipw_json_num(const struct ipw_json *node, double fallback);
/* A member's value; NAN or NULL if it is absent or of another kind. */
double ipw_json_get_num(const struct ipw_json *object, const char *key);
const char *ipw_json_get_str(const struct ipw_json *object, const char *key);
bool ipw_json_bool(const struct ipw_json *node, bool fallback);
bool ipw_json_is_null(const struct ipw_json *node); /* absent or null */

/* Strict: returns 0, or an error with the path, such as "turns[3].input_tokens: expected an
 * integer".  `where` is the path of `object` itself ("" at the top). */
int ipw_json_need_str(const char **out, const struct ipw_json *object, const char *key,
                      const char *where, struct ipw_err *err);
int ipw_json_need_int(int64_t *out, const struct ipw_json *object, const char *key,
                      const char *where, struct ipw_err *err);
int ipw_json_need_num(double *out, const struct ipw_json *object, const char *key,
                      const char *where, struct ipw_err *err);
int ipw_json_need_arr(const struct ipw_json **out, const struct ipw_json *object, const char *key,
                      const char *where, struct ipw_err *err);
int ipw_json_need_obj(const struct ipw_json **out, const struct ipw_json *object, const char *key,
                      const char *where, struct ipw_err *err);

/* For a text that this program wrote, where a repair shows damage: IPW_EPARSE if there was one. */
int ipw_json_need_no_repair(size_t repairs, struct ipw_err *err);

/* Checks that `text` is one JSON value, without building anything; used before text is embedded raw
 * in one of our lines.  It is stricter than reading: nothing to repair, no BOM, and at most 112
 * levels, so that the whole line can be read back. */
bool ipw_json_valid(const char *text, size_t n);

/* Appends the node as compact text with sorted keys (byte order), each written once.  Numbers keep
 * their original text (1.50 stays 1.50, -0 stays -0, 1e999 stays 1e999).  NULL: null. */
void ipw_json_print(struct ipw_buf *out, const struct ipw_json *node);

#endif
