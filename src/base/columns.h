/* base/columns.h: many rows of numbers, kept by column.
 *
 * A column whose values are all the same number (or all NAN) is one number: what a run does not
 * measure takes no memory.  Any other column takes eight bytes a row.  Owns its values; the struct
 * is all zero before ipw_columns_init(). */
#ifndef IPW_BASE_COLUMNS_H
#define IPW_BASE_COLUMNS_H

#include <stddef.h>

struct ipw_column {
    double first;   /* the value of row 0; of all rows while `values` is NULL */
    double *values; /* of each row */
    size_t cap;
};

struct ipw_columns {
    size_t width, n; /* number of columns and of rows */
    struct ipw_column *of;
};

void ipw_columns_init(struct ipw_columns *c, size_t width);
void ipw_columns_release(struct ipw_columns *c);
void ipw_columns_add(struct ipw_columns *c, const double *row); /* of `width` values */

static inline double ipw_columns_at(const struct ipw_columns *c, size_t column, size_t row)
{
    const struct ipw_column *of = &c->of[column];

    return of->values ? of->values[row] : of->first;
}

#endif
