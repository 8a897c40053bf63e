/* Reading the queries of a run. */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "json/jsonl.h"
#include "trace/rundir.h"
#include "trace/schema.h"

int ipw_rundir_no_run(const char *folder, int errnum, struct ipw_err *err)
{
    DIR *dir = errnum == ENOENT ? opendir(folder) : NULL;
    struct dirent *entry;
    char first[NAME_MAX + 1] = "";
    size_t n = 0;

    while (dir && (entry = readdir(dir))) {
        char *traces = ipw_asprintf("%s/%s/traces.jsonl", folder, entry->d_name);

        if (entry->d_name[0] != '.' && access(traces, F_OK) == 0) {
            if (!n++ || strcmp(entry->d_name, first) < 0)
                snprintf(first, sizeof first, "%s", entry->d_name);
        }
        free(traces);
    }
    if (dir) closedir(dir);
    if (n)
        return ipw_fail(err, IPW_ENOTFOUND,
                        "%s: is no run, but a folder of %zu: name one, such as "
                        "%s/%s",
                        folder, n, folder, first);
    return ipw_fail_errno(err, errnum, "%s/traces.jsonl: cannot be read as a run", folder);
}

static int traces_path(char **out, const char *run, struct ipw_err *err)
{
    struct stat st;
    size_t n = strlen(run);

    if (stat(run, &st) < 0) return ipw_fail_errno(err, errno, "%s: no such run", run);
    if (!S_ISDIR(st.st_mode)) {
        *out = ipw_strdup(run);
        return 0;
    }
    *out = ipw_asprintf("%s%straces.jsonl", run, n && run[n - 1] == '/' ? "" : "/");
    if (stat(*out, &st) == 0) return 0;
    ipw_rundir_no_run(run, errno, err);
    free(*out);
    *out = NULL;
    return err->code;
}

static int each_line(struct ipw_jsonl_reader *reader, const char *path,
                     int (*fn)(void *ud, struct ipw_query_loaded *query, struct ipw_err *err),
                     void *ud, int *torn, struct ipw_err *err)
{
    struct ipw_jsonl_line line;
    int rc;

    while ((rc = ipw_jsonl_next(reader, &line, err)) > 0) {
        struct ipw_query_loaded query;

        if (line.torn) {
            if (torn) *torn = 1;
            return 0;
        }
        rc = ipw_schema_read_query(&query, line.text, line.n, err);
        if (rc < 0) {
            return ipw_err_prefix(err, "%s:%lld", path, (long long)line.number);
        }
        query.line = line.text;
        query.line_n = line.n;
        rc = fn(ud, &query, err);
        ipw_query_loaded_release(&query);
        if (rc != 0) return rc;
    }
    return rc;
}

int ipw_rundir_each_query(const char *run,
                          int (*fn)(void *ud, struct ipw_query_loaded *query, struct ipw_err *err),
                          void *ud, int *torn, struct ipw_err *err)
{
    struct ipw_jsonl_reader *reader = NULL;
    struct ipw_err why = {0};
    char *path = NULL;
    int rc = traces_path(&path, run, &why);

    if (torn) *torn = 0;
    if (rc == 0) rc = ipw_jsonl_open(&reader, path, IPW_LINE_MAX, &why);
    if (rc == 0) {
        rc = each_line(reader, path, fn, ud, torn, &why);
        ipw_jsonl_close(reader);
    }
    free(path);
    if (rc < 0 && err) *err = why;
    return rc;
}
