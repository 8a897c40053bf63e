/* trace/spec_rows.h: short macros for the rows of the tables of trace/spec.h.  Internal to the
 * files of trace/ that have a table. */
#ifndef IPW_TRACE_SPEC_ROWS_H
#define IPW_TRACE_SPEC_ROWS_H

#include <stddef.h>

#include "energy/source.h"
#include "trace/figure.h"
#include "trace/spec.h"

/* Kinds of value; Z: or null, OPT: or absent, U: absent if unknown. */
enum {
    U = IPW_SPEC_NULL | IPW_SPEC_OPTIONAL,
    T = IPW_SPEC_TEXT,
    TZ = IPW_SPEC_TEXT | IPW_SPEC_NULL,
    TU = IPW_SPEC_TEXT | U,
    I = IPW_SPEC_INT,
    C = IPW_SPEC_INT | IPW_SPEC_COUNT,
    CZ = IPW_SPEC_INT | IPW_SPEC_COUNT | IPW_SPEC_NULL,
    CU = IPW_SPEC_INT | IPW_SPEC_COUNT | U,
    IZ = IPW_SPEC_INT | IPW_SPEC_NULL,
    N = IPW_SPEC_NUM,
    NZ = IPW_SPEC_NUM | IPW_SPEC_NULL,
    NU = IPW_SPEC_NUM | U,
    J = IPW_SPEC_NUM | IPW_SPEC_MICRO, /* joules or watts */
    JU = IPW_SPEC_NUM | IPW_SPEC_MICRO | U,
    S = IPW_SPEC_NUM | IPW_SPEC_COUNT, /* seconds */
    SZ = IPW_SPEC_NUM | IPW_SPEC_COUNT | IPW_SPEC_NULL,
    SU = IPW_SPEC_NUM | IPW_SPEC_COUNT | U,
    B = IPW_SPEC_BOOL,
    BZ = IPW_SPEC_BOOL | IPW_SPEC_NULL,
    BU = IPW_SPEC_BOOL | U,
    O = IPW_SPEC_OBJ,
    OZ = IPW_SPEC_OBJ | IPW_SPEC_NULL,
    OU = IPW_SPEC_OBJ | U,
    A = IPW_SPEC_ARR,
    Z = IPW_SPEC_NULL,
    OPT = IPW_SPEC_OPTIONAL,
    EACH = IPW_SPEC_EACH,
    OPEN = IPW_SPEC_OPEN,
    PRIVATE = IPW_SPEC_PRIVATE,
    GONE = IPW_SPEC_GONE,
};

/* clang-format off */
#define NAME(name)                   .key = name
#define END                          {.key = NULL}
#define KEY(name, kinds)             {NAME(name), .kind = kinds}
#define OF(name, kinds, table)       {NAME(name), .kind = kinds, .of = table}
#define WORD(name, kinds, list)      {NAME(name), .kind = kinds, .words = list}
/* A member of struct number `in` among those that the table refers to, and its key. */
#define HELD(name, kinds, in, type, member)                                                        \
    {NAME(name), .kind = kinds, .base = in, .at = offsetof(type, member), .hold = HOLD(type, member)}
#define HOLD(type, member)                                                                         \
    _Generic(((type *)0)->member, int: IPW_HOLD_INT, int64_t: IPW_HOLD_INT64,                      \
             size_t: IPW_HOLD_SIZE, double: IPW_HOLD_NUM, bool: IPW_HOLD_BOOL,                     \
             const char *: IPW_HOLD_TEXT, char *: IPW_HOLD_OWN,                                    \
             struct ipw_figure: IPW_HOLD_FIGURE)
/* A row written by a function; `n` is a number for it. */
#define PUT(name, kinds, function, n)       {NAME(name), .kind = kinds, .put = function, .at = n}
#define PUT_OF(name, kinds, function, table) {NAME(name), .kind = kinds, .put = function, .of = table}
/* One row per domain; the function gets the domain's number as `at`. */
#define DOMAINS(kinds, function, table)                                                            \
    DOMAIN("cpu", IPW_DOMAIN_CPU, kinds, function, table),                                         \
        DOMAIN("dram", IPW_DOMAIN_DRAM, kinds, function, table),                                   \
        DOMAIN("gpu", IPW_DOMAIN_GPU, kinds, function, table),                                     \
        DOMAIN("machine", IPW_DOMAIN_MACHINE, kinds, function, table)
#define DOMAIN(name, d, kinds, function, table)                                                    \
    {NAME(name), .kind = kinds, .put = function, .of = table, .at = d}
/* clang-format on */

#endif
