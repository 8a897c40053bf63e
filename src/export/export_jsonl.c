#include "export/export_jsonl.h"

#include <errno.h>

#include "trace/rundir.h"
#include "trace/schema.h"

static int put_line(void *ud, struct ipw_query_loaded *query, struct ipw_err *err)
{
    FILE *out = ud;

    if (fwrite(query->line, 1, query->line_n, out) == query->line_n && putc('\n', out) != EOF) {
        return 0;
    }
    return ipw_fail_errno(err, errno, "the export cannot be written");
}

int ipw_export_jsonl(const char *run, FILE *out, int *torn, struct ipw_err *err)
{
    int rc = ipw_rundir_each_query(run, put_line, out, torn, err);

    if (rc < 0) return rc;
    if (fflush(out) == EOF) return ipw_fail_errno(err, errno, "the export cannot be written");
    return 0;
}
