/* The reader against jansson, over generated texts and over the same texts damaged.  Both must
 * accept and refuse alike and agree on every value, where jansson's dialect is ours: it refuses
 * invalid UTF-8, lone surrogates, \u0000, a BOM, integers beyond int64 and doubles beyond range,
 * which we repair or read.  jansson's depth is 2048, ours 128; the generator stays below both. */
#include "oracle.h"
#include "unit/unit.h"

enum { TEXTS = 6000, DAMAGED = 4 };

static uint64_t seed = 20261121;

static unsigned pick(unsigned n) { return (unsigned)(random_next(&seed) % n); }

static void space(struct ipw_buf *out)
{
    while (pick(6) == 0) ipw_buf_addc(out, " \t\r\n"[pick(4)]);
}

static void any_string(struct ipw_buf *out)
{
    static const char *const parts[] = {"a",
                                        "Z9",
                                        " ",
                                        "\\n",
                                        "\\\"",
                                        "\\\\",
                                        "\\/",
                                        "\\u0041",
                                        "\\u001f",
                                        "\\uD83D\\uDE00",
                                        "\xC3\xA9",
                                        "\xE4\xB8\xAD\xE6\x96\x87",
                                        "\xF0\x9F\x98\x80",
                                        "plain text of some length",
                                        "\x7F",
                                        "\\b\\f\\r\\t",
                                        "\\ufffd"};
    ipw_buf_addc(out, '"');
    for (unsigned n = pick(7); n; n--) ipw_buf_adds(out, parts[pick(17)]);
    ipw_buf_addc(out, '"');
}

static void any_number(struct ipw_buf *out)
{
    unsigned shift = pick(64), a = pick(1000), b = pick(100000);
    int64_t i = (int64_t)(random_next(&seed) >> shift);

    switch (pick(6)) {
    case 0: ipw_buf_addf(out, "%lld", (long long)i); break;
    case 1: ipw_buf_addf(out, "-%u", a); break;
    case 2: ipw_buf_addf(out, "%u.%u", a, b); break;
    case 3: ipw_buf_addf(out, "%u.%ue%d", a % 10, b, (int)(shift * 9) - 300); break;
    case 4: ipw_buf_addf(out, "-%uE+%u", a % 10, b % 300); break;
    default: ipw_buf_addf(out, "%.17g", (double)i * 0x1p-40); break;
    }
}

static void any_value(struct ipw_buf *out, unsigned depth)
{
    unsigned kind = pick(depth ? 10 : 6), n = pick(6);

    space(out);
    if (kind < 2) {
        any_string(out);
    } else if (kind < 4) {
        any_number(out);
    } else if (kind < 6) {
        static const char *const words[] = {"true", "false", "null"};
        ipw_buf_adds(out, words[pick(3)]);
    } else {
        ipw_buf_addc(out, kind < 8 ? '[' : '{');
        for (unsigned i = 0; i < n; i++) {
            if (i) ipw_buf_addc(out, ',');
            if (kind >= 8) {
                space(out);
                any_string(out);
                space(out);
                ipw_buf_addc(out, ':');
            }
            any_value(out, depth - 1);
        }
        if (n == 0) space(out);
        ipw_buf_addc(out, kind < 8 ? ']' : '}');
    }
    space(out);
}

static void damage(struct ipw_buf *text)
{
    static const char bytes[] = "{}[]:,\"\\0123456789-+.eEtfn uaD8\n\x01\x7F\xFF\xC3";
    size_t at = pick((unsigned)text->len);

    switch (pick(3)) {
    case 0: text->data[at] = bytes[pick(sizeof bytes - 1)]; break;
    case 1: ipw_buf_truncate(text, at); break;
    default:
        memmove(text->data + at, text->data + at + 1, text->len - at);
        text->len--;
        break;
    }
}

static void test_against_jansson(void **state)
{
    unsigned both = 0, neither = 0, ours_only = 0;

    (void)state;
    for (int i = 0; i < TEXTS; i++) {
        struct ipw_buf text = IPW_BUF(IPW_MIB);

        any_value(&text, 6);
        for (int round = 0; round <= DAMAGED && text.len; round++) {
            struct ipw_json *ours;
            json_error_t error;
            struct ipw_err err;
            size_t repairs;
            json_t *theirs = json_loadb(text.data, text.len, JSON_DECODE_ANY, &error);
            int rc = ipw_json_parse(&ours, text.data, text.len, &repairs, &err);

            if (round == 0) assert_true(rc == 0 && theirs && repairs == 0);
            if (theirs && rc) fail_msg("only jansson accepts %s (%s)", text.data, err.text);
            if (!rc && !theirs) {
                enum json_error_code code = json_error_code(&error);
                bool dialect = repairs || code == json_error_numeric_overflow ||
                               code == json_error_invalid_utf8 || strstr(error.text, "Unicode");
                if (!dialect) fail_msg("only we accept %s (%s)", text.data, error.text);
                ours_only++;
            }
            if (!rc && theirs) {
                oracle_compare(ours, theirs);
                oracle_compare_printed(ours, theirs);
                both++;
            }
            if (rc && !theirs) neither++;
            json_decref(theirs);
            ipw_json_free(ours);
            damage(&text);
        }
        ipw_buf_release(&text);
    }
    print_message("accepted by both %u, refused by both %u, ours only %u\n", both, neither,
                  ours_only);
    assert_true(both > TEXTS && neither > TEXTS && ours_only > 10);
}

UNIT(differential)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_against_jansson)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
