/* Writes and reads struct members by a table. */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "trace/figure.h"
#include "trace/spec.h"

static void put_int(struct ipw_jw *w, const struct ipw_spec *s, int64_t value, bool known)
{
    if (known || !(s->kind & (IPW_SPEC_NULL | IPW_SPEC_OPTIONAL))) {
        ipw_jw_kint(w, s->key, value);
    } else if (!(s->kind & IPW_SPEC_OPTIONAL)) {
        ipw_jw_knull(w, s->key);
    }
}

static void put_text(struct ipw_jw *w, const struct ipw_spec *s, const char *text)
{
    if ((s->kind & IPW_SPEC_OBJ) && (text || !(s->kind & IPW_SPEC_OPTIONAL))) {
        if (!text) text = "{}";
        ipw_jw_kraw(w, s->key, text, strlen(text));
    } else if (text || !(s->kind & IPW_SPEC_OPTIONAL)) {
        ipw_jw_kstr(w, s->key, text);
    }
}

static void put_num(struct ipw_jw *w, const struct ipw_spec *s, double x)
{
    if (!isfinite(x) && (s->kind & IPW_SPEC_OPTIONAL)) return;
    if (s->kind & IPW_SPEC_MICRO)
        ipw_jw_kmicro(w, s->key, x);
    else
        ipw_jw_knum(w, s->key, x);
}

static bool int64_known(const struct ipw_spec *s, int64_t value)
{
    if ((s->kind & IPW_SPEC_OPTIONAL) && !(s->kind & IPW_SPEC_NULL)) return value > 0;
    return s->kind & IPW_SPEC_COUNT ? value >= 0 : value != 0;
}

static void put_member(struct ipw_jw *w, const struct ipw_spec *s, const void *at)
{
    const struct ipw_figure *figure = at;

    switch ((enum ipw_spec_hold)s->hold) {
    case IPW_HOLD_NOTHING:
        if (!(s->kind & IPW_SPEC_OPTIONAL)) ipw_jw_knull(w, s->key);
        break;
    case IPW_HOLD_INT: put_int(w, s, *(const int *)at, *(const int *)at > 0); break;
    case IPW_HOLD_INT64:
        put_int(w, s, *(const int64_t *)at, int64_known(s, *(const int64_t *)at));
        break;
    case IPW_HOLD_SIZE: ipw_jw_kint(w, s->key, (int64_t) * (const size_t *)at); break;
    case IPW_HOLD_NUM: put_num(w, s, *(const double *)at); break;
    case IPW_HOLD_BOOL:
        if (*(const bool *)at || !(s->kind & IPW_SPEC_OPTIONAL))
            ipw_jw_kbool(w, s->key, *(const bool *)at);
        break;
    case IPW_HOLD_TEXT: put_text(w, s, *(const char *const *)at); break;
    case IPW_HOLD_OWN: put_text(w, s, *(char *const *)at); break;
    case IPW_HOLD_WORD: ipw_jw_kstr(w, s->key, s->words[*(const unsigned *)at]); break;
    case IPW_HOLD_FIGURE: put_num(w, s, figure->known ? figure->j : NAN); break;
    }
}

void ipw_spec_write(struct ipw_jw *w, const struct ipw_spec *table, const void *const *of)
{
    ipw_jw_obj(w);
    for (const struct ipw_spec *s = table; s->key; s++) {
        if (s->put)
            s->put(w, s, of);
        else
            put_member(w, s, (const char *)of[s->base] + s->at);
    }
    ipw_jw_obj_end(w);
}

int64_t ipw_spec_instant(int64_t t_ns)
{
    static const int64_t most_ns = INT64_MAX / 3;

    return t_ns > most_ns ? most_ns : t_ns < -most_ns ? -most_ns : t_ns;
}

static bool may_be_unknown(const struct ipw_spec *s)
{
    return (s->kind & IPW_SPEC_COUNT) && (s->kind & IPW_SPEC_NULL);
}

static int64_t cut(const struct ipw_spec *s, int64_t value)
{
    if (may_be_unknown(s)) return value > INT64_C(1) << 53 ? -1 : value;
    return ipw_spec_instant(value);
}

void ipw_spec_cut(const struct ipw_spec *table, void *const *of)
{
    for (const struct ipw_spec *s = table; s->key; s++) {
        int64_t *at;

        if (s->hold != IPW_HOLD_INT64) continue;
        at = (int64_t *)(void *)((char *)of[s->base] + s->at);
        *at = cut(s, *at);
    }
}

/* Finds the member of a key.  Our own files have their keys in the order of the table, so the walk
 * continues at *next. */
static const struct ipw_json *member_of(const struct ipw_json *object, const struct ipw_spec *s,
                                        const struct ipw_json **next, bool sorted)
{
    const struct ipw_json *node = *next;
    int order = -1;

    if (!sorted) return ipw_json_get(object, s->key);
    while (node && (order = ipw_spec_order(node, s)) < 0) node = ipw_json_next(node);
    *next = node;
    return node && !order ? node : NULL;
}

static bool is_sorted(const struct ipw_json *object)
{
    const char *before = NULL;

    if (ipw_json_kind(object) != IPW_JSON_OBJ) return false;
    for (const struct ipw_json *m = ipw_json_first(object); m; m = ipw_json_next(m)) {
        const char *key = ipw_json_key(m);

        if (before && ipw_spec_compare(before, key) >= 0) return false;
        before = key;
    }
    return true;
}

void ipw_spec_read(const struct ipw_json *object, const struct ipw_spec *table, void *const *of)
{
    bool sorted = is_sorted(object);
    const struct ipw_json *next = sorted ? ipw_json_first(object) : NULL;

    for (const struct ipw_spec *s = table; s->key; s++) {
        const struct ipw_json *node;
        void *at;

        if (!s->hold) continue;
        node = member_of(object, s, &next, sorted);
        at = (char *)of[s->base] + s->at;

        switch ((enum ipw_spec_hold)s->hold) {
        case IPW_HOLD_INT: *(int *)at = (int)ipw_json_int(node, 0); break;
        case IPW_HOLD_INT64:
            *(int64_t *)at = cut(s, ipw_json_int(node, may_be_unknown(s) ? -1 : 0));
            break;
        case IPW_HOLD_NUM: *(double *)at = ipw_json_num(node, NAN); break;
        case IPW_HOLD_BOOL: *(bool *)at = ipw_json_bool(node, false); break;
        case IPW_HOLD_TEXT:
            if (!(s->kind & IPW_SPEC_OBJ)) *(const char **)at = ipw_json_str(node, NULL);
            break;
        case IPW_HOLD_OWN: *(char **)at = ipw_strdup(ipw_json_str(node, NULL)); break;
        case IPW_HOLD_NOTHING:
        case IPW_HOLD_SIZE:
        case IPW_HOLD_WORD:
        case IPW_HOLD_FIGURE: break;
        }
    }
}
