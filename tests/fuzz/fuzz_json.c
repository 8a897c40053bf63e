/* Any bytes through the reader, the printer and the reader again.  Beyond not crashing: what was
 * read prints as text that needs no repair, prints the same a second time, and ipw_json_valid
 * agrees with the parser; every string that was read survives the escape. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/utf8.h"
#include "json/json.h"
#include "json/write.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds, const char *what)
{
    if (!holds) IPW_BUG("%s", what);
}

static void visit(const struct ipw_json *node)
{
    struct ipw_buf out = IPW_BUF(8 * IPW_MIB);
    double x = ipw_json_num(node, 0);
    char *end;

    check(ipw_json_at(node, ipw_json_count(node)) == NULL, "an element behind the last");
    if (ipw_json_kind(node) == IPW_JSON_STR) {
        check(ipw_utf8_valid(ipw_json_str(node, ""), ipw_json_str_len(node)),
              "a string is no UTF-8");
        ipw_json_escape(&out, ipw_json_str(node, ""), ipw_json_str_len(node));
        check(ipw_json_valid(out.data, out.len), "an escaped string is no JSON");
    }
    if (ipw_json_kind(node) == IPW_JSON_NUM && x - x == 0) {
        ipw_json_double(&out, x);
        check(strtod(out.data, &end) == x && *end == '\0', "a double does not read back");
    }
    ipw_buf_release(&out);
    for (const struct ipw_json *c = ipw_json_first(node); c; c = ipw_json_next(c)) {
        if (ipw_json_key(c))
            check(ipw_json_get(node, ipw_json_key(c)) != NULL, "a key is not found");
        visit(c);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    struct ipw_buf once = IPW_BUF(8 * IPW_MIB), twice = IPW_BUF(8 * IPW_MIB);
    struct ipw_json *doc, *again;
    struct ipw_err err = {0};
    size_t repairs;
    bool valid = ipw_json_valid(text, size);
    int rc = ipw_json_parse(&doc, text, size, &repairs, &err);

    if (rc) {
        check(!valid && doc == NULL && err.code == rc && strncmp(err.text, "at byte ", 8) == 0,
              "a refusal that does not say where");
        return 0;
    }
    check(!valid || repairs == 0, "valid text was repaired");
    visit(doc);
    ipw_json_print(&once, doc);
    check(ipw_json_parse(&again, once.data, once.len, &repairs, &err) == 0, "our own text refused");
    check(repairs == 0, "our own text was repaired");
    ipw_json_print(&twice, again);
    check(once.len == twice.len && memcmp(once.data, twice.data, once.len) == 0,
          "printing is not stable");
    ipw_json_free(again);
    ipw_json_free(doc);
    ipw_buf_release(&once);
    ipw_buf_release(&twice);
    return 0;
}
