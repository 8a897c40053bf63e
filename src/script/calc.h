/* script/calc.h: the numbers of ipw.calc.
 *
 * Integers stay exact while they fit 64 bits; beyond that, and after a division that leaves a
 * remainder, numbers are doubles.  "/" of two integers that divides evenly is an integer; "//" and
 * "%" round down, as in Python.  round() takes halves away from zero.
 *
 * What can go wrong gives a text: the fault, or NULL.  lib_calc.c reads expressions with these. */
#ifndef IPW_SCRIPT_CALC_H
#define IPW_SCRIPT_CALC_H

#include <lua.h>
#include <stdbool.h>
#include <stddef.h>

struct ipw_calc_number {
    bool is_int;
    lua_Integer i;
    lua_Number d;
};

void ipw_calc_get(struct ipw_calc_number *out, lua_State *L, int idx);
void ipw_calc_push(lua_State *L, struct ipw_calc_number x);

struct ipw_calc_number ipw_calc_whole(struct ipw_calc_number x); /* 3.0 becomes 3 */
struct ipw_calc_number ipw_calc_add(struct ipw_calc_number a, struct ipw_calc_number b);
struct ipw_calc_number ipw_calc_negate(struct ipw_calc_number a);
struct ipw_calc_number ipw_calc_multiply(struct ipw_calc_number a, struct ipw_calc_number b);
const char *ipw_calc_divide(struct ipw_calc_number *out, struct ipw_calc_number a,
                            struct ipw_calc_number b);
const char *ipw_calc_floor_divide(struct ipw_calc_number *out, struct ipw_calc_number a,
                                  struct ipw_calc_number b);
const char *ipw_calc_modulo(struct ipw_calc_number *out, struct ipw_calc_number a,
                            struct ipw_calc_number b);
const char *ipw_calc_power(struct ipw_calc_number *out, struct ipw_calc_number a,
                           struct ipw_calc_number b);

struct ipw_calc_function {
    const char *name;
    size_t least, most; /* arguments */
    int which;
};

const struct ipw_calc_function *ipw_calc_find(const char *name); /* NULL: there is none */
bool ipw_calc_constant(struct ipw_calc_number *out, const char *name);
/* The number of arguments must fit.  A fault that begins with "(" wants the name before it. */
const char *ipw_calc_call(struct ipw_calc_number *out, const struct ipw_calc_function *f,
                          const struct ipw_calc_number *args, size_t n);

#endif
