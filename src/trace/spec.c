#include "trace/spec.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static unsigned kind_of(const struct ipw_json *node)
{
    switch (ipw_json_kind(node)) {
    case IPW_JSON_NULL: return IPW_SPEC_NULL;
    case IPW_JSON_BOOL: return IPW_SPEC_BOOL;
    case IPW_JSON_INT: return IPW_SPEC_INT | IPW_SPEC_NUM;
    case IPW_JSON_NUM: return IPW_SPEC_NUM;
    case IPW_JSON_STR: return IPW_SPEC_TEXT;
    case IPW_JSON_ARR: return IPW_SPEC_ARR;
    case IPW_JSON_OBJ: return IPW_SPEC_OBJ;
    case IPW_JSON_ABSENT: break;
    }
    return 0;
}

static const char *word_of(unsigned kind)
{
    return kind & IPW_SPEC_NULL   ? "null"
           : kind & IPW_SPEC_BOOL ? "true or false"
           : kind & IPW_SPEC_INT  ? "an integer"
           : kind & IPW_SPEC_NUM  ? "a number"
           : kind & IPW_SPEC_TEXT ? "text"
           : kind & IPW_SPEC_ARR  ? "a list"
                                  : "an object";
}

static int wrong_kind(const struct ipw_spec *s, unsigned found, const char *path,
                      struct ipw_err *err)
{
    return ipw_fail(err, IPW_EPARSE, "%s: expected %s%s, found %s", path,
                    word_of(s->kind & ~(unsigned)IPW_SPEC_NULL),
                    s->kind & IPW_SPEC_NULL ? " or null" : "", word_of(found));
}

static int check_each(const struct ipw_json *node, const struct ipw_spec *of, const char *path,
                      bool list, struct ipw_err *err)
{
    size_t i = 0;

    for (const struct ipw_json *c = ipw_json_first(node); c; c = ipw_json_next(c), i++) {
        char at[192];

        if (!list && ipw_json_is_null(c)) continue; /* this name has no value */
        if (list) {
            snprintf(at, sizeof at, "%s[%zu]", path, i);
        } else {
            snprintf(at, sizeof at, "%s.%.60s", path, ipw_json_key(c));
        }
        if (ipw_json_kind(c) != IPW_JSON_OBJ)
            return ipw_fail(err, IPW_EPARSE, "%s: expected an object, found %s", at,
                            word_of(kind_of(c)));
        if (ipw_spec_check(c, of, at, err) < 0) return err->code;
    }
    return 0;
}

static int check_text(const struct ipw_json *node, const struct ipw_spec *s, const char *path,
                      struct ipw_err *err)
{
    const char *text = ipw_json_str(node, "");

    for (size_t i = 0; s->words[i]; i++) {
        if (strcmp(s->words[i], text) == 0) return 0;
    }
    return ipw_fail(err, IPW_EPARSE, "%s: '%.40s' is not an allowed value", path, text);
}

static int check_member(const struct ipw_json *node, const struct ipw_spec *s, const char *path,
                        struct ipw_err *err)
{
    unsigned found = kind_of(node);

    if (!(found & s->kind)) return wrong_kind(s, found, path, err);
    if (found & IPW_SPEC_NUM) {
        if (!isfinite(ipw_json_num(node, NAN)))
            return ipw_fail(err, IPW_EPARSE, "%s: is no finite number", path);
        if ((s->kind & IPW_SPEC_COUNT) && ipw_json_num(node, 0) < 0)
            return ipw_fail(err, IPW_EPARSE, "%s: is negative", path);
    }
    if ((found & IPW_SPEC_TEXT) && s->words) return check_text(node, s, path, err);
    if (!s->of) return 0;
    if (found & IPW_SPEC_ARR) return check_each(node, s->of, path, true, err);
    if (!(found & IPW_SPEC_OBJ)) return 0;
    return s->kind & IPW_SPEC_EACH ? check_each(node, s->of, path, false, err)
                                   : ipw_spec_check(node, s->of, path, err);
}

static int check_order(const struct ipw_json *object, const char *where, struct ipw_err *err)
{
    const char *before = NULL;

    for (const struct ipw_json *m = ipw_json_first(object); m; m = ipw_json_next(m)) {
        const char *key = ipw_json_key(m);
        int order = before ? strcmp(before, key) : -1;

        if (order >= 0)
            return ipw_fail(err, IPW_EPARSE, "%s%s%.60s: %s", where, *where ? "." : "", key,
                            order == 0 ? "stands twice" : "keys are not in order");
        before = key;
    }
    return 0;
}

int ipw_spec_check(const struct ipw_json *object, const struct ipw_spec *table, const char *where,
                   struct ipw_err *err)
{
    if (ipw_json_kind(object) != IPW_JSON_OBJ)
        return ipw_fail(err, IPW_EPARSE, "%s%sexpected an object, found %s", where,
                        *where ? ": " : "", word_of(kind_of(object)));
    if (check_order(object, where, err) < 0) return err->code;
    for (const struct ipw_spec *s = table; s->key; s++) {
        const struct ipw_json *node = ipw_json_get(object, s->key);
        char path[192];

        snprintf(path, sizeof path, "%s%s%s", where, *where ? "." : "", s->key);
        if (!node) {
            if (s->kind & IPW_SPEC_OPTIONAL) continue;
            return ipw_fail(err, IPW_EPARSE, "%s: missing", path);
        }
        if (check_member(node, s, path, err) < 0) return err->code;
    }
    return 0;
}
