#include "json/whole_output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/open.h"
#include "base/walk.h"
#include "json/jsonl.h"

struct ipw_whole_output {
    char *path, *tmp; /* path NULL: a stream; tmp NULL: written directly */
    FILE *file;       /* of a folder: the file at hand, or NULL */
    bool folder, borrowed;
    struct ipw_err failed;
};

static const char *name_of(const struct ipw_whole_output *out)
{
    return out->path ? out->path : "standard output";
}

static int fail(struct ipw_whole_output *out, int errnum, struct ipw_err *err)
{
    if (!out->failed.code)
        ipw_fail(&out->failed, IPW_EIO, "%s: cannot be written: %s", name_of(out),
                 strerror(errnum ? errnum : EIO));
    return ipw_fail(err, out->failed.code, "%s", out->failed.text);
}

int ipw_whole_file(struct ipw_whole_output **result, const char *path, FILE *stream,
                   struct ipw_err *err)
{
    struct ipw_whole_output *out = ipw_calloc(1, sizeof *out);
    struct stat st;
    int rc;

    if (!path) {
        out->file = stream;
        out->borrowed = true;
        *result = out;
        return 0;
    }
    out->path = ipw_strdup(path);
    if (ipw_make_parents(path, err)) {
        free(out->path);
        free(out);
        return err->code;
    }
    if (stat(path, &st) < 0 || S_ISREG(st.st_mode)) out->tmp = ipw_asprintf("%s.tmp", path);
    out->file = fopen(out->tmp ? out->tmp : path, "we");
    if (out->file) {
        *result = out;
        return 0;
    }
    rc = fail(out, errno, err);
    free(out->path);
    free(out->tmp);
    free(out);
    return rc;
}

int ipw_whole_folder(struct ipw_whole_output **result, const char *path, struct ipw_err *err)
{
    struct ipw_whole_output *out;
    size_t n = strlen(path);
    char *plain, *tmp;

    while (n > 1 && path[n - 1] == '/') n--;
    plain = ipw_asprintf("%.*s", (int)n, path);
    if (access(plain, F_OK) == 0 && rmdir(plain) < 0) {
        free(plain);
        return ipw_fail(err, IPW_EEXISTS, "%s: exists already; --output must name a new folder",
                        path);
    }
    if (ipw_make_parents(plain, err)) {
        free(plain);
        return err->code;
    }
    tmp = ipw_asprintf("%s.tmp", plain);
    if (mkdir(tmp, 0777) < 0) {
        ipw_fail(err, IPW_EIO, "%s: cannot be made: %s", tmp, strerror(errno));
        free(tmp);
        free(plain);
        return IPW_EIO;
    }
    out = ipw_calloc(1, sizeof *out);
    *out = (struct ipw_whole_output){.path = plain, .tmp = tmp, .folder = true};
    *result = out;
    return 0;
}

/* The file at hand is complete: on the disk as far as the program can tell. */
static int end_file(struct ipw_whole_output *out, struct ipw_err *err)
{
    FILE *file = out->file;

    if (out->failed.code) return fail(out, 0, err);
    if (!file) return 0;
    out->file = NULL;
    errno = 0;
    if (fflush(file) || ferror(file)) {
        int why = errno;

        if (!out->borrowed) fclose(file);
        return fail(out, why, err);
    }
    if (out->borrowed) return 0;
    return fclose(file) ? fail(out, errno, err) : 0;
}

static bool name_is_inside(const char *name)
{
    const char *slash = strchr(name, '/');

    return *name && *name != '.' && *name != '/' && strlen(name) < 512 &&
           (!slash || (slash[1] && slash[1] != '.' && !strchr(slash + 1, '/')));
}

int ipw_whole_next(struct ipw_whole_output *out, const char *name, struct ipw_err *err)
{
    char *path = ipw_asprintf("%s/%s", out->tmp ? out->tmp : "", name), *slash;
    int rc = end_file(out, err);

    if (!rc && (!out->folder || !name_is_inside(name)))
        rc = ipw_fail(err, IPW_EINVAL, "'%.80s' cannot be a file of the output folder", name);
    slash = strchr(name, '/');
    if (!rc && slash) {
        slash = strrchr(path, '/');
        *slash = '\0';
        if (mkdir(path, 0777) < 0 && errno != EEXIST) rc = fail(out, errno, err);
        *slash = '/';
    }
    if (!rc) {
        out->file = fopen(path, "wxe");
        if (!out->file && errno == EEXIST)
            rc = ipw_fail(err, IPW_EEXISTS, "'%.80s' was written already: names must differ", name);
        else if (!out->file)
            rc = fail(out, errno, err);
    }
    free(path);
    return rc;
}

int ipw_whole_write(struct ipw_whole_output *out, const char *bytes, size_t n, struct ipw_err *err)
{
    if (out->failed.code) return fail(out, 0, err);
    if (!out->file) return ipw_fail(err, IPW_EINVAL, "no file of the output folder was begun");
    return fwrite(bytes, 1, n, out->file) == n ? 0 : fail(out, errno, err);
}

const char *ipw_whole_path(const struct ipw_whole_output *out)
{
    return out->tmp ? out->tmp : out->path;
}

static void release(struct ipw_whole_output *out)
{
    if (out->file && !out->borrowed) fclose(out->file);
    free(out->path);
    free(out->tmp);
    free(out);
}

int ipw_whole_commit(struct ipw_whole_output *out, struct ipw_err *err)
{
    int rc = end_file(out, err);

    if (!rc && out->tmp) {
        if (rename(out->tmp, out->path) < 0)
            rc = fail(out, errno, err);
        else
            rc = ipw_file_sync_folder(out->path, err);
    }
    if (rc)
        ipw_whole_drop(out);
    else
        release(out);
    return rc;
}

void ipw_whole_drop(struct ipw_whole_output *out)
{
    if (!out) return;
    if (out->folder)
        ipw_walk_remove(AT_FDCWD, out->tmp, NULL);
    else if (out->tmp)
        unlink(out->tmp);
    release(out);
}
