/* script/match.h: Lua patterns with a budget.
 *
 * string.find, match, gmatch and gsub as in Lua 5.4, with the same results and error messages.  The
 * stock matcher cannot be interrupted while it backtracks, and patterns come from models, so this
 * matcher is our own.  A pattern is compiled into items, its sets into bitmaps.  A mistake in a
 * pattern becomes an item that raises when it is reached, as late as in the stock matcher.  Each
 * search can take 10^7 steps, and 100 for each byte of the subject.  Every 1,024 steps it checks
 * the script's own budget. */
#ifndef IPW_SCRIPT_MATCH_H
#define IPW_SCRIPT_MATCH_H

#include <lua.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { IPW_MATCH_PATTERN_MAX = 4096, IPW_MATCH_CAPTURES = 32 };

struct ipw_pattern_item {
    uint8_t kind, repeat;
    uint8_t a, b; /* the byte; the two of %b; the digit of %1; the number of the mistake */
    uint16_t set;
};

struct ipw_pattern_set {
    uint64_t bits[4];
};

/* A compiled pattern: items, then sets, in memory of the caller. */
struct ipw_pattern {
    bool anchored; /* began with '^' */
    struct ipw_pattern_item *items;
    struct ipw_pattern_set *sets;
};

struct ipw_match {
    lua_State *L;
    const char *start, *end; /* the subject */
    const struct ipw_pattern *pattern;
    int64_t left, next_look; /* steps */
    int depth, level;
    struct {
        const char *at;
        ptrdiff_t n; /* or one of the two below */
    } captures[IPW_MATCH_CAPTURES];
};
enum { IPW_CAPTURE_OPEN = -1, IPW_CAPTURE_POSITION = -2 };

/* Bytes of memory for a pattern of n bytes; and its compilation there.  `anchors`: '^' is an
 * anchor. */
size_t ipw_pattern_bytes(size_t n);
void ipw_pattern_compile(struct ipw_pattern *out, void *memory, const char *text, size_t n,
                         bool anchors);

void ipw_match_begin(struct ipw_match *m, lua_State *L, const struct ipw_pattern *pattern,
                     const char *subject, size_t n);
/* The end of the match that begins at `at`, or NULL. Raises. [0, 0, e] */
const char *ipw_match_at(struct ipw_match *m, const char *at);
/* The place where a search continues that found nothing at `at`; at most one past the end. */
const char *ipw_match_next(const struct ipw_match *m, const char *at);
/* Takes n steps off the budget; raises if it is spent. [0, 0, e] */
void ipw_match_spend(struct ipw_match *m, size_t n);

#endif
