#include "script/match.h"

#include <ctype.h>
#include <lauxlib.h>
#include <string.h>

#include "script/vm_priv.h"

enum { MAX_DEPTH = 200, STEPS_BETWEEN_LOOKS = 1024 };
static const int64_t steps_always = 10000000, steps_a_byte = 100;

enum kind {
    END,      /* of the pattern */
    BYTE,     /* one byte; these three may repeat */
    ANY,      /* . */
    SET,      /* [...] or %a */
    OPEN,     /* ( */
    POSITION, /* () */
    CLOSE,    /* ) */
    AT_END,   /* $ */
    BALANCE,  /* %bxy */
    FRONTIER, /* %f[...] */
    BACK,     /* %1 */
    FAULT,
};

enum repeat { ONCE, MAYBE, MOST, SOME, LEAST }; /* "", ?, *, +, - */

enum fault { ENDS_WITH_ESCAPE, NO_BRACKET, NO_BALANCE, NO_FRONTIER };
static const char *const faults[] = {
    "malformed pattern (ends with '%')", "malformed pattern (missing ']')",
    "malformed pattern (missing arguments to '%b')", "missing '[' after '%f' in pattern"};

/* ---- sets ---- */

static bool holds(const struct ipw_pattern_set *set, unsigned char c)
{
    return set->bits[c >> 6] >> (c & 63) & 1;
}

static void put(struct ipw_pattern_set *set, unsigned c) { set->bits[c >> 6] |= 1ULL << (c & 63); }

static bool in_class(int name, int c)
{
    switch (name) {
    case 'a': return isalpha(c);
    case 'c': return iscntrl(c);
    case 'd': return isdigit(c);
    case 'g': return isgraph(c);
    case 'l': return islower(c);
    case 'p': return ispunct(c);
    case 's': return isspace(c);
    case 'u': return isupper(c);
    case 'w': return isalnum(c);
    case 'x': return isxdigit(c);
    default: return c == 0; /* z */
    }
}

/* The bytes of class %name; a name that is not a class stands for itself. */
static void add_class(struct ipw_pattern_set *set, unsigned char name)
{
    static const char names[] = "acdglpsuwxz";
    static struct ipw_pattern_set known[sizeof names]; /* as in the C locale, which is ours */
    static bool made;
    const char *at;

    if (!made) {
        for (size_t k = 0; names[k]; k++)
            for (int c = 0; c < 256; c++)
                if (in_class(names[k], c)) put(&known[k], (unsigned)c);
        made = true;
    }
    at = name ? strchr(names, tolower(name)) : NULL;
    if (!at) {
        put(set, name);
        return;
    }
    for (int i = 0; i < 4; i++) {
        uint64_t bits = known[at - names].bits[i];
        set->bits[i] |= isupper(name) ? ~bits : bits;
    }
}

/* `p` is after '[', `end` at its ']'. */
static void fill_set(struct ipw_pattern_set *set, const unsigned char *p, const unsigned char *end)
{
    bool except = p < end && *p == '^';

    for (p += except; p < end; p++) {
        if (*p == '%' && p + 1 <= end) {
            add_class(set, *++p);
        } else if (p[1] == '-' && p + 2 < end) {
            for (unsigned c = p[0]; c <= p[2]; c++) put(set, c);
            p += 2;
        } else {
            put(set, *p);
        }
    }
    if (except)
        for (int i = 0; i < 4; i++) set->bits[i] = ~set->bits[i];
}

/* The ']' that ends the set whose first byte is at p, or NULL.  A ']' as the first byte belongs to
 * the set. */
static const unsigned char *find_bracket(const unsigned char *p, const unsigned char *end)
{
    if (p < end && *p == '^') p++;
    do {
        if (p == end) return NULL;
        if (*p++ == '%' && p < end) p++;
    } while (p == end || *p != ']');
    return p;
}

/* ---- compiling ---- */

size_t ipw_pattern_bytes(size_t n)
{
    size_t items = (n + 1) * sizeof(struct ipw_pattern_item);

    items = (items + 7) / 8 * 8;
    return items + (n / 2 + 1) * sizeof(struct ipw_pattern_set); /* %a is the shortest set */
}

struct compiler {
    struct ipw_pattern *out;
    struct ipw_pattern_item *item;
    uint16_t n_sets;
    const unsigned char *end;
};

static void fault(struct compiler *c, enum fault what)
{
    c->item->kind = FAULT;
    c->item->a = (uint8_t)what;
}

static struct ipw_pattern_set *new_set(struct compiler *c)
{
    struct ipw_pattern_set *set = &c->out->sets[c->n_sets];

    c->item->set = c->n_sets++;
    memset(set, 0, sizeof *set);
    return set;
}

/* A set in brackets; `p` is at its '['.  NULL: the end is missing. */
static const unsigned char *bracket(struct compiler *c, const unsigned char *p)
{
    const unsigned char *close = find_bracket(p + 1, c->end);

    if (!close) {
        fault(c, NO_BRACKET);
        return NULL;
    }
    fill_set(new_set(c), p + 1, close);
    return close + 1;
}

/* Which bytes match, and how often.  NULL: the pattern is wrong here. */
static const unsigned char *single(struct compiler *c, const unsigned char *p)
{
    struct ipw_pattern_item *item = c->item;

    item->kind = BYTE;
    item->a = *p;
    if (*p == '%') {
        if (++p == c->end) {
            fault(c, ENDS_WITH_ESCAPE);
            return NULL;
        }
        item->a = *p;
        if (isalpha(*p)) {
            item->kind = SET;
            add_class(new_set(c), *p);
        }
        p++;
    } else if (*p == '[') {
        item->kind = SET;
        p = bracket(c, p);
        if (!p) return NULL;
    } else {
        if (*p == '.') item->kind = ANY;
        p++;
    }
    if (p < c->end) {
        item->repeat = *p == '?'   ? MAYBE
                       : *p == '*' ? MOST
                       : *p == '+' ? SOME
                       : *p == '-' ? LEAST
                                   : ONCE;
        p += item->repeat != ONCE;
    }
    return p;
}

/* %b, %f and %1; `p` is after the '%'.  NULL: the pattern is wrong here. */
static const unsigned char *special(struct compiler *c, const unsigned char *p)
{
    struct ipw_pattern_item *item = c->item;

    if (isdigit(*p)) {
        item->kind = BACK;
        item->a = *p;
        return p + 1;
    }
    if (*p == 'b') {
        if (c->end - p < 3) {
            fault(c, NO_BALANCE);
            return NULL;
        }
        item->kind = BALANCE;
        item->a = p[1];
        item->b = p[2];
        return p + 3;
    }
    if (p + 1 == c->end || p[1] != '[') {
        fault(c, NO_FRONTIER);
        return NULL;
    }
    item->kind = FRONTIER;
    return bracket(c, p + 1);
}

void ipw_pattern_compile(struct ipw_pattern *out, void *memory, const char *text, size_t n,
                         bool anchors)
{
    const unsigned char *p = (const unsigned char *)text, *end = p + n;
    struct compiler c = {.out = out, .end = end};
    size_t items = ((n + 1) * sizeof *c.item + 7) / 8 * 8;

    out->items = memory;
    out->sets = (struct ipw_pattern_set *)((char *)memory + items);
    out->anchored = anchors && p < end && *p == '^';
    p += out->anchored;
    for (c.item = out->items; p && p < end; c.item++) {
        memset(c.item, 0, sizeof *c.item);
        if (*p == '(') {
            bool position = p + 1 < end && p[1] == ')';
            c.item->kind = position ? POSITION : OPEN;
            p += position ? 2 : 1;
        } else if (*p == ')') {
            c.item->kind = CLOSE;
            p++;
        } else if (*p == '$' && p + 1 == end) {
            c.item->kind = AT_END;
            p++;
        } else if (*p == '%' && p + 1 < end && (isdigit(p[1]) || p[1] == 'b' || p[1] == 'f')) {
            p = special(&c, p + 1);
        } else {
            p = single(&c, p);
        }
    }
    if (p) *c.item = (struct ipw_pattern_item){.kind = END};
}

/* ---- matching ---- */

void ipw_match_begin(struct ipw_match *m, lua_State *L, const struct ipw_pattern *pattern,
                     const char *subject, size_t n)
{
    m->L = L;
    m->start = subject;
    m->end = subject + n;
    m->pattern = pattern;
    m->left = steps_always + steps_a_byte * (int64_t)n;
    m->next_look = m->left - STEPS_BETWEEN_LOOKS;
    m->depth = m->level = 0;
}

void ipw_match_spend(struct ipw_match *m, size_t n)
{
    m->left -= (int64_t)n;
    if (m->left >= m->next_look) return;
    m->next_look = m->left - STEPS_BETWEEN_LOOKS;
    ipw_budget_check(m->L);
    if (m->left < 0)
        luaL_error(m->L, "pattern too costly (it backtracks over a text of %d bytes)",
                   (int)(m->end - m->start));
}

static const char *run(struct ipw_match *m, const char *s, const struct ipw_pattern_item *item);

static bool accepts(const struct ipw_match *m, const struct ipw_pattern_item *item, const char *s)
{
    if (s >= m->end) return false;
    switch (item->kind) {
    case BYTE: return (unsigned char)*s == item->a;
    case ANY: return true;
    default: return holds(&m->pattern->sets[item->set], (unsigned char)*s);
    }
}

static const char *most(struct ipw_match *m, const char *s, const struct ipw_pattern_item *item)
{
    const char *at = s;

    if (item->kind == ANY)
        at = m->end;
    else
        while (accepts(m, item, at)) at++;
    ipw_match_spend(m, (size_t)(at - s));
    for (;; at--) {
        const char *e = run(m, at, item + 1);
        if (e || at == s) return e;
    }
}

static const char *least(struct ipw_match *m, const char *s, const struct ipw_pattern_item *item)
{
    for (;; s++) {
        const char *e = run(m, s, item + 1);
        if (e) return e;
        if (!accepts(m, item, s)) return NULL;
    }
}

static const char *open_capture(struct ipw_match *m, const char *s,
                                const struct ipw_pattern_item *item)
{
    const char *e;

    if (m->level >= IPW_MATCH_CAPTURES) luaL_error(m->L, "too many captures");
    m->captures[m->level].at = s;
    m->captures[m->level].n = item->kind == OPEN ? IPW_CAPTURE_OPEN : IPW_CAPTURE_POSITION;
    m->level++;
    e = run(m, s, item + 1);
    if (!e) m->level--;
    return e;
}

static const char *close_capture(struct ipw_match *m, const char *s,
                                 const struct ipw_pattern_item *item)
{
    int i = m->level - 1;
    const char *e;

    while (i >= 0 && m->captures[i].n != IPW_CAPTURE_OPEN) i--;
    if (i < 0) luaL_error(m->L, "invalid pattern capture");
    m->captures[i].n = s - m->captures[i].at;
    e = run(m, s, item + 1);
    if (!e) m->captures[i].n = IPW_CAPTURE_OPEN;
    return e;
}

static const char *back(struct ipw_match *m, const char *s, int digit)
{
    int i = digit - '1';
    size_t n;

    if (i < 0 || i >= m->level || m->captures[i].n == IPW_CAPTURE_OPEN)
        luaL_error(m->L, "invalid capture index %%%d", i + 1);
    if (m->captures[i].n == IPW_CAPTURE_POSITION) return NULL;
    n = (size_t)m->captures[i].n;
    ipw_match_spend(m, n / 16);
    if ((size_t)(m->end - s) < n || memcmp(m->captures[i].at, s, n)) return NULL;
    return s + n;
}

static const char *balance(struct ipw_match *m, const char *s, unsigned char from, unsigned char to)
{
    const char *began = s;
    int open = 1;

    if (s >= m->end || (unsigned char)*s != from) return NULL;
    while (++s < m->end) {
        if ((unsigned char)*s == to) {
            if (--open == 0) break;
        } else if ((unsigned char)*s == from) {
            open++;
        }
    }
    ipw_match_spend(m, (size_t)(s - began));
    return s < m->end ? s + 1 : NULL;
}

static bool at_frontier(const struct ipw_match *m, const char *s,
                        const struct ipw_pattern_item *item)
{
    const struct ipw_pattern_set *set = &m->pattern->sets[item->set];
    unsigned char before = s == m->start ? 0 : (unsigned char)s[-1];
    unsigned char after = s == m->end ? 0 : (unsigned char)*s;

    return !holds(set, before) && holds(set, after);
}

/* Matches one item that can repeat.  Returns the place to continue and moves *item on; or sets
 * *item to NULL and returns the end of the whole match, or NULL. */
static const char *step(struct ipw_match *m, const char *s, const struct ipw_pattern_item **item)
{
    const struct ipw_pattern_item *at = *item;
    const char *e;

    *item = NULL;
    if (at->repeat == LEAST) return least(m, s, at);
    if (!accepts(m, at, s)) {
        if (at->repeat != MAYBE && at->repeat != MOST) return NULL;
        *item = at + 1;
        return s;
    }
    switch (at->repeat) {
    case MAYBE:
        e = run(m, s + 1, at + 1);
        if (e) return e;
        *item = at + 1;
        return s;
    case SOME: return most(m, s + 1, at);
    case MOST: return most(m, s, at);
    default: *item = at + 1; return s + 1;
    }
}

static const char *run_items(struct ipw_match *m, const char *s,
                             const struct ipw_pattern_item *item)
{
    while (item) {
        ipw_match_spend(m, 1);
        switch (item->kind) {
        case END: return s;
        case OPEN:
        case POSITION: return open_capture(m, s, item);
        case CLOSE: return close_capture(m, s, item);
        case AT_END: return s == m->end ? s : NULL;
        case BALANCE: s = balance(m, s, item->a, item->b); break;
        case FRONTIER:
            if (!at_frontier(m, s, item)) return NULL;
            break;
        case BACK: s = back(m, s, item->a); break;
        case FAULT: luaL_error(m->L, "%s", faults[item->a]); return NULL;
        default: s = step(m, s, &item); continue;
        }
        if (!s) return NULL;
        item++;
    }
    return s;
}

static const char *run(struct ipw_match *m, const char *s, const struct ipw_pattern_item *item)
{
    if (m->depth == MAX_DEPTH) luaL_error(m->L, "pattern too complex");
    m->depth++;
    s = run_items(m, s, item);
    m->depth--;
    return s;
}

const char *ipw_match_at(struct ipw_match *m, const char *at)
{
    m->depth = m->level = 0;
    return run(m, at, m->pattern->items);
}

/* A pattern that begins with X* or X+ has tried the rest of the pattern after every X from here on,
 * so a match cannot begin inside them either.  So "%s+$" reads a run of blanks once, not once for
 * each blank. */
const char *ipw_match_next(const struct ipw_match *m, const char *at)
{
    const struct ipw_pattern_item *first = m->pattern->items;

    if (first->repeat == MOST || first->repeat == SOME)
        while (accepts(m, first, at)) at++;
    return at + 1;
}
