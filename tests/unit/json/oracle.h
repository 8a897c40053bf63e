/* jansson as the second opinion on what a text says: both documents must hold the same values, and
 * what we print of ours must read back, there, as the same. */
#ifndef IPW_TEST_JSON_ORACLE_H
#define IPW_TEST_JSON_ORACLE_H

#include <jansson.h>

#include "check.h"

static inline void oracle_compare(const struct ipw_json *ours, const json_t *theirs)
{
    const struct ipw_json *x;
    const char *key;
    json_t *member;
    size_t i;

    switch (json_typeof(theirs)) {
    case JSON_NULL: assert_int_equal(ipw_json_kind(ours), IPW_JSON_NULL); break;
    case JSON_TRUE: assert_true(ipw_json_bool(ours, false)); break;
    case JSON_FALSE: assert_false(ipw_json_bool(ours, true)); break;
    case JSON_INTEGER:
        assert_true(ipw_json_kind(ours) == IPW_JSON_INT || ipw_json_kind(ours) == IPW_JSON_NUM);
        assert_true(ipw_json_int(ours, -77) == json_integer_value(theirs));
        break;
    case JSON_REAL:
        assert_int_equal(ipw_json_kind(ours), IPW_JSON_NUM);
        assert_true(ipw_json_num(ours, -77) == json_real_value(theirs));
        break;
    case JSON_STRING:
        assert_int_equal(ipw_json_kind(ours), IPW_JSON_STR);
        assert_int_equal(ipw_json_str_len(ours), json_string_length(theirs));
        assert_string_equal(ipw_json_str(ours, ""), json_string_value(theirs));
        break;
    case JSON_ARRAY:
        assert_int_equal(ipw_json_kind(ours), IPW_JSON_ARR);
        assert_int_equal(ipw_json_count(ours), json_array_size(theirs));
        x = ipw_json_first(ours);
        for (i = 0; i < json_array_size(theirs); i++, x = ipw_json_next(x))
            oracle_compare(x, json_array_get(theirs, i));
        break;
    case JSON_OBJECT:
        assert_int_equal(ipw_json_kind(ours), IPW_JSON_OBJ);
        json_object_foreach((json_t *)(uintptr_t)theirs, key, member)
            oracle_compare(ipw_json_get(ours, key), member);
        for (x = ipw_json_first(ours); x; x = ipw_json_next(x))
            assert_non_null(json_object_get(theirs, ipw_json_key(x)));
        break;
    }
}

/* What we write is what jansson reads. */
static inline void oracle_compare_printed(const struct ipw_json *ours, const json_t *theirs)
{
    struct ipw_buf out = IPW_BUF(IPW_MIB);
    json_t *again;

    ipw_json_print(&out, ours);
    assert_false(out.failed);
    again = json_loadb(out.data, out.len, JSON_DECODE_ANY, NULL);
    assert_non_null(again);
    assert_true(json_equal(again, theirs));
    json_decref(again);
    ipw_buf_release(&out);
}

#endif
