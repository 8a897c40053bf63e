#include "script/installed.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "io/proc.h"
#include "json/jsonl.h"
#include "script/embedded.h"
#include "script/file_hashes.h"

enum { STAMP_BYTES = 200 };
#define FILE_MAX_BYTES (64 * IPW_MIB)

/* ---- stamped folders ---- */

enum stamp { NOT_LOOKED, NO_STAMP, SAME_BUILD, OTHER_BUILD };

static struct {
    enum stamp stamp; /* of the installation */
    char folder[PATH_MAX];
    uid_t owner; /* of the program's file */
} own;

static struct { /* the user's folder, which is asked for in every search */
    char folder[PATH_MAX];
    enum stamp stamp;
    bool told;
} user;

static bool is_trusted(const struct stat *st)
{
    bool known = st->st_uid == 0 || st->st_uid == geteuid() || st->st_uid == own.owner;

    return known && !(st->st_mode & S_IWOTH);
}

static void tell(const char *folder, const char *stamp)
{
    ipw_log(IPW_LOG_WARN,
            "%s: these files belong to another build (%.*s). This program uses its own (%s). "
            "Install them again, or remove the folder.",
            folder, (int)strcspn(stamp, " \n"), stamp, IPW_VERSION);
}

static enum stamp read_stamp(const char *folder, char *text)
{
    char *path = ipw_asprintf("%s/stamp", folder);
    FILE *f = fopen(path, "re");
    struct stat st;
    size_t n = 0;

    free(path);
    if (!f) return NO_STAMP;
    if (fstat(fileno(f), &st) == 0 && S_ISREG(st.st_mode) && is_trusted(&st))
        n = fread(text, 1, STAMP_BYTES - 1, f);
    fclose(f);
    text[n] = '\0';
    if (n == 0) return NO_STAMP;
    return strcmp(text, ipw_embedded_stamp) == 0 ? SAME_BUILD : OTHER_BUILD;
}

static void look_for_installation(void)
{
    char self[PATH_MAX], folder[PATH_MAX + 32], stamp[STAMP_BYTES];
    struct stat st;
    char *slash;

    own.stamp = NO_STAMP;
    if (ipw_proc_own_file(self, sizeof self, NULL) || stat(self, &st)) return;
    own.owner = st.st_uid;
    slash = strrchr(self, '/');
    if (!slash) return;
    snprintf(folder, sizeof folder, "%.*s/../share/ipw-agent", (int)(slash - self), self);
    if (!realpath(folder, own.folder)) return;
    own.stamp = read_stamp(own.folder, stamp);
    if (own.stamp == OTHER_BUILD) tell(own.folder, stamp);
}

const char *ipw_installed_folder(void)
{
    if (own.stamp == NOT_LOOKED) look_for_installation();
    return own.stamp == SAME_BUILD ? own.folder : NULL;
}

/* ---- its files ---- */

static bool is_readable(const char *path, struct stat *st)
{
    if (stat(path, st) || !S_ISREG(st->st_mode)) return false;
    if (is_trusted(st)) return true;
    ipw_log(IPW_LOG_WARN,
            "%s: not used: it belongs to another user, or everybody can write it. The file inside "
            "the program is used.",
            path);
    return false;
}

static bool is_equal(const char *path, const struct stat *st, const struct ipw_embedded_file *f)
{
    struct ipw_buf text = IPW_BUF(FILE_MAX_BYTES);
    bool equal = (size_t)st->st_size == f->n && ipw_file_read(&text, path, NULL) == 0 &&
                 text.len == f->n && memcmp(ipw_buf_str(&text), f->bytes, f->n) == 0;

    ipw_buf_release(&text);
    return equal;
}

bool ipw_installed_file(char *out, size_t size, const char *path)
{
    const char *folder = ipw_installed_folder();
    const struct ipw_embedded_file *f;
    struct stat st;
    int n;

    if (!folder || *path == '/' || strstr(path, "..")) return false;
    n = snprintf(out, size, "%s/%s", folder, path);
    if (n < 0 || (size_t)n >= size || access(out, F_OK) || !is_readable(out, &st)) return false;
    f = ipw_embedded_find(path);
    return !f || !is_equal(out, &st, f);
}

bool ipw_installed_is_copy(const char *folder, const char *file)
{
    size_t n = strlen(folder);
    const struct ipw_embedded_file *f;
    char stamp[STAMP_BYTES];
    struct stat st;

    if (strncmp(file, folder, n) || file[n] != '/') return false;
    if (user.stamp == NOT_LOOKED || strcmp(user.folder, folder) != 0) {
        snprintf(user.folder, sizeof user.folder, "%s", folder);
        user.stamp = read_stamp(folder, stamp);
    }
    if (user.stamp == NO_STAMP) return false;
    f = ipw_embedded_find(file + n + 1);
    if (!f) return false; /* the program has no such file: it is the user's own */
    if (user.stamp == SAME_BUILD) return stat(file, &st) == 0 && is_equal(file, &st, f);
    if (!user.told && read_stamp(folder, stamp) == OTHER_BUILD) tell(folder, stamp);
    user.told = true;
    return true;
}

static struct kept {
    struct ipw_embedded_file file;
    struct kept *next;
} * kept;

static const struct ipw_embedded_file *keep(const char *path, const char *place)
{
    struct ipw_buf text = IPW_BUF(FILE_MAX_BYTES);
    struct ipw_err err;
    struct kept *k;

    if (ipw_file_read(&text, place, &err)) {
        ipw_log(IPW_LOG_WARN, "%s. The file inside the program is used.", err.text);
        ipw_buf_release(&text);
        return ipw_embedded_find(path);
    }
    ipw_file_hashes_note(place, ipw_buf_str(&text), text.len);
    k = ipw_calloc(1, sizeof *k);
    k->file = (struct ipw_embedded_file){
        .path = ipw_strdup(path), .bytes = ipw_memdup(ipw_buf_str(&text), text.len), .n = text.len};
    k->next = kept;
    kept = k;
    ipw_buf_release(&text);
    return &k->file;
}

const struct ipw_embedded_file *ipw_installed_find(const char *path)
{
    char place[PATH_MAX];

    for (const struct kept *k = kept; k; k = k->next)
        if (strcmp(k->file.path, path) == 0) return &k->file;
    if (!ipw_installed_file(place, sizeof place, path)) return ipw_embedded_find(path);
    return keep(path, place);
}
