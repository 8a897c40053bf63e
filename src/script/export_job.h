/* script/export_job.h: what an export of saved runs may read and write.
 *
 * The command fills one and hands it to a Lua state by its host.  A format's script then reads these
 * runs and writes this output, and nothing else (script/lib_export.c). */
#ifndef IPW_SCRIPT_EXPORT_JOB_H
#define IPW_SCRIPT_EXPORT_JOB_H

#include <stdio.h>

#include "trace/redact.h"

struct ipw_export_job { /* all of it borrowed */
    char *const *runs;
    int n_runs;
    const char *output; /* file or new folder; NULL: `stream` */
    FILE *stream;
    const struct ipw_redactor *redactor; /* NULL: nothing is redacted */
};

#endif
