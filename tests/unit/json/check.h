/* What the tests of src/json share: cmocka, parsing that must work, and the count of leftovers. */
#ifndef IPW_TEST_JSON_CHECK_H
#define IPW_TEST_JSON_CHECK_H

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "json/json.h"
#include "json/write.h"

static inline struct ipw_json *parse_text(const char *text)
{
    struct ipw_json *doc;
    struct ipw_err err = {0};

    if (ipw_json_parse(&doc, text, strlen(text), NULL, &err)) fail_msg("%s: %s", text, err.text);
    return doc;
}

/* How the text prints; for one assertion at a time. */
static inline const char *printed(const char *text)
{
    static struct ipw_buf out = {.max = 64 * IPW_MIB};
    struct ipw_json *doc = parse_text(text);

    ipw_buf_clear(&out);
    ipw_json_print(&out, doc);
    assert_false(out.failed);
    ipw_json_free(doc);
    return ipw_buf_str(&out);
}

static inline int open_descriptors(void)
{
    DIR *dir = opendir("/proc/self/fd");
    int n = 0;

    assert_non_null(dir);
    while (readdir(dir)) n++;
    closedir(dir);
    return n;
}

/* xorshift: the same numbers in every run */
static inline uint64_t random_next(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

#endif
