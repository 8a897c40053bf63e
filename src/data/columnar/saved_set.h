/* data/columnar/saved_set.h: the files that a path to Parquet or Arrow stands for.
 *
 * A path to a file stands for that file.  A folder can hold:
 * - state.json, written by Hugging Face's save_to_disk(): it lists the Arrow files in order;
 * - one Parquet file, or all shards of one set (NAME-00000-of-00002.parquet).
 * If a folder holds several splits or sets, the error names them. */
#ifndef IPW_DATA_COLUMNAR_SAVED_SET_H
#define IPW_DATA_COLUMNAR_SAVED_SET_H

#include <stddef.h>

#include "base/err.h"

struct ipw_saved_set {
    char **paths;
    size_t n, cap;
};

int ipw_saved_set_find(struct ipw_saved_set *out, const char *path, struct ipw_err *err);
void ipw_saved_set_release(struct ipw_saved_set *set);

#endif
