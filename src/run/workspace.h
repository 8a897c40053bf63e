/* run/workspace.h: the folder of one query, whose files its tools read and write. */
#ifndef IPW_RUN_WORKSPACE_H
#define IPW_RUN_WORKSPACE_H

#include "base/err.h"
#include "script/dataset.h"

/* Copies the attachment into the folder. */
int ipw_workspace_put(const char *folder, const struct ipw_case_file *file, struct ipw_err *err);
/* Removes the folder with everything in it; links are removed, not followed. */
void ipw_workspace_remove(const char *folder);

#endif
