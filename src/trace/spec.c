#include "trace/spec.h"

#include <math.h>
#include <string.h>

#include "base/buf.h"

/* The place of a value; its path is built only for an error message. */
struct place {
    const struct place *in; /* NULL: `key` is the text of a path */
    const char *key;        /* NULL: element `index` of a list */
    size_t index;
    bool foreign; /* of the top: any order, any key may be absent or null */
};

static bool is_foreign(const struct place *at)
{
    while (at->in) at = at->in;
    return at->foreign;
}

static void spell(struct ipw_buf *out, const struct place *at)
{
    if (at->in) spell(out, at->in);
    if (!at->in)
        ipw_buf_adds(out, at->key);
    else if (at->key)
        ipw_buf_addf(out, "%s%.60s", out->len ? "." : "", at->key);
    else
        ipw_buf_addf(out, "[%zu]", at->index);
}

/* Fails with a message that begins with the path: "turns[2].energy.gpu: ", or "" at the top. */
static int fault(struct ipw_err *err, const struct place *at, const char *text)
{
    struct ipw_buf path = IPW_BUF(4096);
    int rc;

    spell(&path, at);
    rc = ipw_fail(err, IPW_EPARSE, "%s%s%s", ipw_buf_str(&path), path.len ? ": " : "", text);
    ipw_buf_release(&path);
    return rc;
}

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

static int check_object(const struct ipw_json *object, const struct ipw_spec *table,
                        const struct place *at, struct ipw_err *err);

static int wrong_kind(unsigned kind, unsigned found, const struct place *at, struct ipw_err *err)
{
    struct ipw_buf text = IPW_BUF(256);
    int rc;

    ipw_buf_addf(&text, "expected %s%s, found %s", word_of(kind & ~(unsigned)IPW_SPEC_NULL),
                 kind & IPW_SPEC_NULL ? " or null" : "", word_of(found));
    rc = fault(err, at, ipw_buf_str(&text));
    ipw_buf_release(&text);
    return rc;
}

static int check_each(const struct ipw_json *node, const struct ipw_spec *of,
                      const struct place *at, bool list, struct ipw_err *err)
{
    struct place each = {.in = at};

    for (const struct ipw_json *c = ipw_json_first(node); c; c = ipw_json_next(c), each.index++) {
        if (!list && ipw_json_is_null(c)) continue; /* this name has no value */
        if (!list) each.key = ipw_json_key(c);
        if (check_object(c, of, &each, err) < 0) return err->code;
    }
    return 0;
}

static int check_text(const struct ipw_json *node, const struct ipw_spec *s, const struct place *at,
                      struct ipw_err *err)
{
    const char *text = ipw_json_str(node, "");
    struct ipw_buf why = IPW_BUF(256);
    int rc;

    for (size_t i = 0; s->words[i]; i++) {
        if (strcmp(s->words[i], text) == 0) return 0;
    }
    ipw_buf_addf(&why, "'%.40s' is not an allowed value", text);
    rc = fault(err, at, ipw_buf_str(&why));
    ipw_buf_release(&why);
    return rc;
}

static int check_member(const struct ipw_json *node, const struct ipw_spec *s,
                        const struct place *at, struct ipw_err *err)
{
    unsigned found = kind_of(node);

    if (found == IPW_SPEC_NULL && is_foreign(at)) return 0;
    if (!(found & s->kind)) return wrong_kind(s->kind, found, at, err);
    if (found & IPW_SPEC_NUM) {
        double value = ipw_json_num(node, NAN);

        if (!isfinite(value)) return fault(err, at, "is not a finite number");
        if ((s->kind & IPW_SPEC_COUNT) && value < 0) return fault(err, at, "is negative");
    }
    if ((found & IPW_SPEC_TEXT) && s->words) return check_text(node, s, at, err);
    if (!s->of) return 0;
    if (found & IPW_SPEC_ARR) return check_each(node, s->of, at, true, err);
    if (!(found & IPW_SPEC_OBJ)) return 0;
    return s->kind & IPW_SPEC_EACH ? check_each(node, s->of, at, false, err)
                                   : check_object(node, s->of, at, err);
}

static int check_order(const struct ipw_json *object, const struct place *at, struct ipw_err *err)
{
    const char *before = NULL;

    for (const struct ipw_json *m = ipw_json_first(object); m; m = ipw_json_next(m)) {
        const char *key = ipw_json_key(m);
        int order = before ? ipw_spec_compare(before, key) : -1;

        if (order >= 0)
            return fault(err, &(struct place){.in = at, .key = key},
                         order == 0 ? "occurs twice" : "keys are not in order");
        before = key;
    }
    return 0;
}

static int check_present(const struct ipw_json *object, const struct ipw_spec *table,
                         const struct place *at, struct ipw_err *err)
{
    for (const struct ipw_spec *s = table; s->key; s++) {
        const struct ipw_json *node = ipw_json_get(object, s->key);

        if (node && check_member(node, s, &(struct place){.in = at, .key = s->key}, err) < 0)
            return err->code;
    }
    return 0;
}

/* Table and object are both in the order of their keys, so walk along both at once. */
static int check_object(const struct ipw_json *object, const struct ipw_spec *table,
                        const struct place *at, struct ipw_err *err)
{
    const struct ipw_json *node;

    if (ipw_json_kind(object) != IPW_JSON_OBJ)
        return wrong_kind(IPW_SPEC_OBJ, kind_of(object), at, err);
    if (is_foreign(at)) return check_present(object, table, at, err);
    if (check_order(object, at, err) < 0) return err->code;
    node = ipw_json_first(object);
    for (const struct ipw_spec *s = table; s->key; s++) {
        struct place member = {.in = at, .key = s->key};
        int order = -1;

        while (node && (order = ipw_spec_order(node, s)) < 0) node = ipw_json_next(node);
        if (!node || order) {
            if (s->kind & IPW_SPEC_OPTIONAL) continue;
            return fault(err, &member, "missing");
        }
        if (check_member(node, s, &member, err) < 0) return err->code;
    }
    return 0;
}

int ipw_spec_check(const struct ipw_json *object, const struct ipw_spec *table, struct ipw_err *err)
{
    return check_object(object, table, &(struct place){.key = ""}, err);
}

int ipw_spec_check_foreign(const struct ipw_json *object, const struct ipw_spec *table,
                           struct ipw_err *err)
{
    return check_object(object, table, &(struct place){.key = "", .foreign = true}, err);
}
