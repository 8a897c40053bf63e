#include "script/source_check.h"

#include <ctype.h>
#include <string.h>

/* To name the variable in "attempt to index a nil value (field 'x')", Lua 5.4.4 recurses over the
 * chain of fields before it, with a C frame and a search through the whole function for each.  A
 * chain of 100,000 overflows an 8 MiB stack; a chain of 60,000 takes seconds that nothing can
 * interrupt.  Real chains are far below a thousand. */
enum { MAX_CHAIN = 1000, MAX_NESTING = 256 }; /* Lua itself nests 200 deep */

const char ipw_source_check_message[] = "a chain of more than 1000 fields";

struct scan {
    const char *p, *end;
    int chains[MAX_NESTING]; /* the current chain at each level of brackets */
    int depth;
};

/* The place after a long bracket [==[ ... ]==] that begins at p; NULL if none begins. */
static const char *skip_long(const char *p, const char *end)
{
    size_t level = 0;

    for (p++; p < end && *p == '='; p++) level++;
    if (p == end || *p != '[') return NULL;
    while ((p = memchr(p, ']', (size_t)(end - p)))) {
        size_t n = 0;
        for (p++; p < end && *p == '='; p++) n++;
        if (p < end && *p == ']' && n == level) return p + 1;
    }
    return end;
}

static const char *skip_string(const char *p, const char *end)
{
    char quote = *p++;

    for (; p < end && *p != quote && *p != '\n'; p++)
        if (*p == '\\' && p + 1 < end) p++;
    return p < end ? p + 1 : end;
}

static const char *skip_comment(const char *p, const char *end)
{
    const char *after = p + 2 < end && p[2] == '[' ? skip_long(p + 2, end) : NULL;

    if (after) return after;
    after = memchr(p, '\n', (size_t)(end - p));
    return after ? after : end;
}

static bool is_name(char c) { return isalnum((unsigned char)c) || c == '_'; }

/* After a bracket its longest chain continues: (a.x).x is one chain. */
static void close_bracket(struct scan *s)
{
    int inner = s->chains[s->depth];

    if (s->depth == 0) return;
    s->depth--;
    if (inner > s->chains[s->depth]) s->chains[s->depth] = inner;
}

bool ipw_source_check_fails(const char *text, size_t n)
{
    struct scan s = {.p = text, .end = text + n};
    bool after_dot = false;

    if (n < 2 * MAX_CHAIN) return false;
    while (s.p < s.end) {
        char c = *s.p;
        const char *after;

        if (isspace((unsigned char)c)) {
            s.p++;
        } else if (c == '-' && s.p + 1 < s.end && s.p[1] == '-') {
            s.p = skip_comment(s.p, s.end);
        } else if (is_name(c)) {
            if (!after_dot) s.chains[s.depth] = 0;
            while (s.p < s.end && is_name(*s.p)) s.p++;
            after_dot = false;
        } else if (c == '.' && s.p + 1 < s.end && s.p[1] != '.' &&
                   (s.p == text || s.p[-1] != '.')) {
            after_dot = true;
            if (++s.chains[s.depth] > MAX_CHAIN) return true;
            s.p++;
        } else if (c == '[' && (after = skip_long(s.p, s.end))) {
            s.p = after;
        } else if (c == '[' || c == '(' || c == '{') {
            if (c == '[' && ++s.chains[s.depth] > MAX_CHAIN) return true;
            if (++s.depth == MAX_NESTING) return false; /* Lua refuses it */
            s.chains[s.depth] = 0;
            s.p++;
        } else if (c == ']' || c == ')' || c == '}') {
            close_bracket(&s);
            s.p++;
        } else {
            after_dot = false;
            s.chains[s.depth] = 0;
            s.p = c == '"' || c == '\'' ? skip_string(s.p, s.end) : s.p + 1;
        }
    }
    return false;
}
