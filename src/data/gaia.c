#include "data/gaia.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unicase.h>
#include <unictype.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/text.h"
#include "base/utf8.h"
#include "data/pytext.h"

/* No answer reaches this: model replies and dataset lines have lower limits.  Longer text equals
 * nothing. */
#define TEXT_MAX (256 * IPW_MIB)

/* The official rule drops these characters anywhere in a model's number. */
static double number_of_answer(const char *s, size_t n)
{
    struct ipw_buf kept = IPW_BUF(TEXT_MAX);
    double value = INFINITY;

    for (size_t i = 0; i < n; i++)
        if (s[i] != '$' && s[i] != '%' && s[i] != ',') ipw_buf_addc(&kept, s[i]);
    if (kept.failed || !ipw_py_float(ipw_buf_str(&kept), &value)) value = INFINITY;
    ipw_buf_release(&kept);
    return value;
}

#define CAPITAL_SIGMA 0x3a3u

/* Is the nearest character before `at` that is not case-ignorable a cased one? */
static bool cased_before(const struct ipw_buf *text, size_t at)
{
    while (at > 0) {
        size_t from = at - 1;
        uint32_t c;

        while (from > 0 && ((unsigned char)text->data[from] & 0xc0) == 0x80) from--;
        c = ipw_py_char(text->data + from, at - from);
        if (!uc_is_property_case_ignorable(c)) return uc_is_property_cased(c);
        at = from;
    }
    return false;
}

/* The same for the text from `at` on. */
static bool cased_from(const struct ipw_buf *text, size_t at)
{
    while (at < text->len) {
        size_t len = ipw_utf8_len(text->data + at, text->len - at);
        uint32_t c = ipw_py_char(text->data + at, len);

        if (!uc_is_property_case_ignorable(c)) return uc_is_property_cased(c);
        at += len;
    }
    return false;
}

/* Only a capital sigma has a lower case that depends on its neighbours: at the end of a word it
 * differs.  Python's rule is applied here, because u8_tolower of libunistring 1.0 treats an
 * apostrophe and U+0345 differently (found by tests/data/oracle_gaia.py). */
static void lower_sigmas(struct ipw_buf *text)
{
    size_t len;

    for (size_t i = 0; i < text->len; i += len) {
        len = ipw_utf8_len(text->data + i, text->len - i);
        if (len == 2 && ipw_py_char(text->data + i, 2) == CAPITAL_SIGMA) {
            bool final = cased_before(text, i) && !cased_from(text, i + 2);
            memcpy(text->data + i, final ? "\u03c2" : "\u03c3", 2);
        }
    }
}

/* Removes white space, then applies lower(), then, in the string route only, removes ASCII
 * punctuation.  The text is valid UTF-8. */
static void normalize(struct ipw_buf *out, const char *s, size_t n, bool punctuation_out)
{
    struct ipw_buf packed = IPW_BUF(TEXT_MAX);
    uint8_t *lower;
    size_t lower_n = 0, len;

    for (size_t i = 0; i < n; i += len) {
        len = ipw_utf8_len(s + i, n - i);
        if (!ipw_py_space(ipw_py_char(s + i, len))) ipw_buf_add(&packed, s + i, len);
    }
    lower_sigmas(&packed);
    /* No language: Python's lower() does not depend on the locale. */
    lower =
        u8_tolower((const uint8_t *)ipw_buf_str(&packed), packed.len, NULL, NULL, NULL, &lower_n);
    if (!lower && packed.len) IPW_BUG("u8_tolower failed on %zu bytes", packed.len);
    for (size_t i = 0; i < lower_n; i++)
        if (!punctuation_out || !ipw_py_punct((char)lower[i])) ipw_buf_addc(out, (char)lower[i]);
    free(lower);
    ipw_buf_release(&packed);
}

static bool same_text(const char *a, size_t a_n, const char *b, size_t b_n, bool punctuation_out)
{
    struct ipw_buf x = IPW_BUF(TEXT_MAX), y = IPW_BUF(TEXT_MAX);
    bool same;

    normalize(&x, a, a_n, punctuation_out);
    normalize(&y, b, b_n, punctuation_out);
    same = !x.failed && !y.failed && x.len == y.len &&
           memcmp(ipw_buf_str(&x), ipw_buf_str(&y), x.len) == 0;
    ipw_buf_release(&x);
    ipw_buf_release(&y);
    return same;
}

static size_t count_pieces(const char *s)
{
    size_t n = 1;

    for (; *s; s++) n += *s == ',' || *s == ';';
    return n;
}

static bool same_piece(const char *answer, size_t answer_n, const char *truth, size_t truth_n)
{
    char *text = ipw_memdup(truth, truth_n);
    double value;
    bool is_number = ipw_py_float(text, &value);

    free(text);
    return is_number ? number_of_answer(answer, answer_n) == value
                     : same_text(answer, answer_n, truth, truth_n, false);
}

static bool same_list(const char *answer, const char *truth)
{
    bool same = count_pieces(answer) == count_pieces(truth);

    while (same) {
        size_t a = strcspn(answer, ",;"), t = strcspn(truth, ",;");
        same = same_piece(answer, a, truth, t);
        if (!truth[t]) break;
        answer += a + 1;
        truth += t + 1;
    }
    return same;
}

/* Invalid UTF-8 becomes U+FFFD, as when Python reads the same text. */
static char *clean(const char *s)
{
    struct ipw_buf b = IPW_BUF(3 * TEXT_MAX);

    ipw_utf8_clean(&b, s, strlen(s));
    return ipw_buf_take(&b, NULL);
}

const char *ipw_gaia_route(const char *truth)
{
    double value;

    if (ipw_py_float(truth, &value)) return "number";
    return strpbrk(truth, ",;") ? "list" : "string";
}

bool ipw_gaia_score(const char *answer, const char *truth)
{
    char *a = clean(answer ? answer : "None"), *t = clean(truth);
    double value;
    bool right;

    if (ipw_py_float(t, &value))
        right = number_of_answer(a, strlen(a)) == value;
    else if (strpbrk(t, ",;"))
        right = same_list(a, t);
    else
        right = same_text(a, strlen(a), t, strlen(t), true);
    free(a);
    free(t);
    return right;
}
