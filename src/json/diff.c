#include "json/diff.h"

#include <string.h>

#include "json/jsonl.h"

static bool same(const struct ipw_json *a, const struct ipw_json *b)
{
    struct ipw_buf x = IPW_BUF(IPW_LINE_MAX), y = IPW_BUF(IPW_LINE_MAX);
    bool equal;

    ipw_json_print(&x, a);
    ipw_json_print(&y, b);
    equal = (a == NULL) == (b == NULL) && x.len == y.len &&
            memcmp(ipw_buf_str(&x), ipw_buf_str(&y), x.len) == 0;
    ipw_buf_release(&x);
    ipw_buf_release(&y);
    return equal;
}

/* Compares the members (or elements) of a, then looks for members that only b has. */
static bool inside(struct ipw_buf *where, struct ipw_json_difference *out, const struct ipw_json *a,
                   const struct ipw_json *b)
{
    bool object = ipw_json_kind(a) == IPW_JSON_OBJ;
    size_t start = where->len, k = 0;

    for (int side = 0; side < 2; side++) {
        const struct ipw_json *m = ipw_json_first(side ? b : a);

        for (k = 0; m; m = ipw_json_next(m), k++) {
            const struct ipw_json *other =
                object ? ipw_json_get(side ? a : b, ipw_json_key(m)) : ipw_json_at(side ? a : b, k);

            if (side && other) continue;
            if (object)
                ipw_buf_addf(where, "%s%s", start ? "." : "", ipw_json_key(m));
            else
                ipw_buf_addf(where, "[%zu]", k);
            if (side ? ipw_json_differ(where, out, NULL, m) : ipw_json_differ(where, out, m, other))
                return true;
            ipw_buf_truncate(where, start);
        }
    }
    return false;
}

bool ipw_json_differ(struct ipw_buf *where, struct ipw_json_difference *out,
                     const struct ipw_json *a, const struct ipw_json *b)
{
    enum ipw_json_kind kind = ipw_json_kind(a);
    bool nested = kind == ipw_json_kind(b) && (kind == IPW_JSON_OBJ || kind == IPW_JSON_ARR);

    if (same(a, b)) return false;
    if (nested && inside(where, out, a, b)) return true;
    *out = (struct ipw_json_difference){a, b};
    return true;
}
