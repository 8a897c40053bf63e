/* run/workspace.h: the folder of one query, whose files its tools read and write. */
#ifndef IPW_RUN_WORKSPACE_H
#define IPW_RUN_WORKSPACE_H

#include "base/err.h"
#include "script/dataset.h"

/* FOLDER/q0007, made on the first call and kept in *path, which the caller frees; NULL after a
 * warning when it cannot be made. */
const char *ipw_workspace_make(char **path, const char *folder, int32_t query);
/* Copies the attachments of the case into the folder, which is asked for when there is one. */
int ipw_workspace_fill(const char *(*folder)(void *ud), void *ud, const struct ipw_case *c,
                       struct ipw_err *err);
/* Removes the folder with everything in it; links are removed, not followed. */
void ipw_workspace_remove(const char *folder);

#endif
