/* script/dataset_priv.h: the dataset object, internal to dataset.c and dataset_score.c. */
#ifndef IPW_SCRIPT_DATASET_PRIV_H
#define IPW_SCRIPT_DATASET_PRIV_H

#include "base/table.h"
#include "script/dataset.h"
#include "script/export_job.h"
#include "script/host.h"

#define IPW_DATASET_TEXT_MAX (16 * IPW_MIB)

struct ipw_vm;
struct lua_State;
struct ipw_dataset {
    struct ipw_vm *vm;
    struct ipw_host host;
    char *run; /* --data-dir, which may be a saved run that the script reads */
    struct ipw_export_job job;
    struct ipw_case *list;
    size_t n, cap, total;
    struct ipw_table by_id; /* indices of `list` */
    char *name, *note, *sha256, *source, *rule;
    char *unscored;                            /* why nothing is scored; or NULL */
    const struct ipw_dataset_options *options; /* while opening */
    /* registry references: the dataset's table and the list of tasks */
    int script, records;
};

#endif
