#include "json/diff.h"

#include <math.h>
#include <string.h>

#include "json/jsonl.h"

static bool is_left_out(const struct ipw_json_near *near, const char *key)
{
    for (const char *const *k = near ? near->but : NULL; k && *k; k++) {
        if (!strcmp(*k, key)) return true;
    }
    return false;
}

static bool unknown(const struct ipw_json *a)
{
    const struct ipw_json *joules = ipw_json_get(a, "joules");

    return !a || ipw_json_kind(a) == IPW_JSON_NULL || ipw_json_kind(joules) == IPW_JSON_NULL;
}

static bool is_near(const struct ipw_json_near *near, const struct ipw_json *a,
                    const struct ipw_json *b)
{
    double x = ipw_json_num(a, NAN), y = ipw_json_num(b, NAN);

    if (!near) return false;
    if ((!a && unknown(b)) || (!b && unknown(a))) return true;
    return fabs(x - y) <= near->most; /* false where one is not a number */
}

static bool same(const struct ipw_json_near *near, const struct ipw_json *a,
                 const struct ipw_json *b)
{
    struct ipw_buf x = IPW_BUF(IPW_LINE_MAX), y = IPW_BUF(IPW_LINE_MAX);
    bool equal;

    if (is_near(near, a, b)) return true;
    ipw_json_print(&x, a);
    ipw_json_print(&y, b);
    equal = (a == NULL) == (b == NULL) && x.len == y.len &&
            memcmp(ipw_buf_str(&x), ipw_buf_str(&y), x.len) == 0;
    ipw_buf_release(&x);
    ipw_buf_release(&y);
    return equal;
}

static bool differ(const struct ipw_json_near *near, struct ipw_buf *where,
                   struct ipw_json_difference *out, const struct ipw_json *a,
                   const struct ipw_json *b);

/* Compares the members (or elements) of a, then looks for members that only b has. */
static bool inside(const struct ipw_json_near *near, struct ipw_buf *where,
                   struct ipw_json_difference *out, const struct ipw_json *a,
                   const struct ipw_json *b)
{
    bool object = ipw_json_kind(a) == IPW_JSON_OBJ;
    size_t start = where->len, k = 0;

    for (int side = 0; side < 2; side++) {
        const struct ipw_json *m = ipw_json_first(side ? b : a);

        for (k = 0; m; m = ipw_json_next(m), k++) {
            const struct ipw_json *other =
                object ? ipw_json_get(side ? a : b, ipw_json_key(m)) : ipw_json_at(side ? a : b, k);

            if ((side && other) || (object && is_left_out(near, ipw_json_key(m)))) continue;
            if (object)
                ipw_buf_addf(where, "%s%s", start ? "." : "", ipw_json_key(m));
            else
                ipw_buf_addf(where, "[%zu]", k);
            if (side ? differ(near, where, out, NULL, m) : differ(near, where, out, m, other))
                return true;
            ipw_buf_truncate(where, start);
        }
    }
    return false;
}

static bool differ(const struct ipw_json_near *near, struct ipw_buf *where,
                   struct ipw_json_difference *out, const struct ipw_json *a,
                   const struct ipw_json *b)
{
    enum ipw_json_kind kind = ipw_json_kind(a);
    bool nested = kind == ipw_json_kind(b) && (kind == IPW_JSON_OBJ || kind == IPW_JSON_ARR);

    if (same(near, a, b)) return false;
    if (nested && inside(near, where, out, a, b)) return true;
    if (nested && near) return false; /* every part of it is near enough */
    *out = (struct ipw_json_difference){a, b};
    return true;
}

bool ipw_json_differ(struct ipw_buf *where, struct ipw_json_difference *out,
                     const struct ipw_json *a, const struct ipw_json *b)
{
    return differ(NULL, where, out, a, b);
}

bool ipw_json_differ_much(struct ipw_buf *where, struct ipw_json_difference *out,
                          const struct ipw_json *a, const struct ipw_json *b,
                          const struct ipw_json_near *near)
{
    return differ(near, where, out, a, b);
}
