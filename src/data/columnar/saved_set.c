#include "data/columnar/saved_set.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/mem.h"
#include "data/columns.h"
#include "json/json.h"
#include "json/jsonl.h"

static void add_path(struct ipw_saved_set *set, char *path)
{
    IPW_GROW(set->paths, set->cap, set->n + 1);
    set->paths[set->n++] = path;
}

/* Reads FOLDER/NAME.  Returns 1, or 0 if the file does not exist. */
static int read_json(struct ipw_json **root, const char *folder, const char *name,
                     struct ipw_err *err)
{
    char *path = ipw_asprintf("%s/%s", folder, name);
    struct ipw_buf text = IPW_BUF(16 * IPW_MIB);
    int rc = ipw_file_read(&text, path, err);

    if (!rc) {
        rc = ipw_json_parse(root, ipw_buf_str(&text), text.len, NULL, err);
        rc = rc ? ipw_err_prefix(err, "%s", path) : 1;
    } else if (rc == IPW_ENOTFOUND) {
        rc = 0;
    }
    ipw_buf_release(&text);
    free(path);
    return rc;
}

static bool is_local(const char *name)
{
    return name && *name && !strchr(name, '/') && strcmp(name, "..") != 0;
}

static int take_state(struct ipw_saved_set *out, const char *folder, const struct ipw_json *state,
                      struct ipw_err *err)
{
    const struct ipw_json *files = ipw_json_get(state, "_data_files");

    for (const struct ipw_json *f = ipw_json_first(files); f; f = ipw_json_next(f)) {
        const char *name = ipw_json_get_str(f, "filename");

        if (!is_local(name) || !ipw_has_ending(name, ".arrow"))
            return ipw_fail(
                err, IPW_EPARSE,
                "%s/state.json: _data_files: '%.80s' is not the name of an .arrow file there",
                folder, name ? name : "");
        add_path(out, ipw_asprintf("%s/%s", folder, name));
    }
    return out->n ? 0
                  : ipw_fail(err, IPW_EPARSE, "%s/state.json: _data_files names no file", folder);
}

static int name_splits(const char *folder, const struct ipw_json *dict, struct ipw_err *err)
{
    struct ipw_buf names = IPW_BUF(200);

    for (const struct ipw_json *s = ipw_json_first(ipw_json_get(dict, "splits")); s;
         s = ipw_json_next(s))
        ipw_buf_addf(&names, "%s%s/%s", names.len ? ", " : "", folder, ipw_json_str(s, "?"));
    ipw_fail(err, IPW_EINVAL, "%s: a set of several splits; name one: %s", folder,
             ipw_buf_str(&names));
    ipw_buf_release(&names);
    return IPW_EINVAL;
}

static int compare_paths(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The length of the path without ".parquet" or, with 2 as *shards, "-00000-of-00002.parquet". */
static size_t stem_length(const char *path, unsigned *shards)
{
    static const char pattern[] = "-00000-of-00000";
    size_t n = strlen(path) - strlen(".parquet"), start = n - strlen(pattern);

    *shards = 1;
    if (n <= strlen(pattern)) return n;
    for (size_t i = 0; pattern[i]; i++)
        if (pattern[i] == '0' ? !isdigit((unsigned char)path[start + i])
                              : path[start + i] != pattern[i])
            return n;
    *shards = (unsigned)strtoul(path + n - 5, NULL, 10);
    return start;
}

/* The files must be one set: a single file, or all shards of one name.  Reading several sets would
 * mix splits or count tasks twice.  (GAIA has metadata.parquet, and the same tasks again by
 * level.) */
static int check_one_set(const struct ipw_saved_set *set, const char *folder, struct ipw_err *err)
{
    unsigned shards, others;
    size_t n = stem_length(set->paths[0], &shards), m;

    for (size_t i = 1; i < set->n; i++) {
        m = stem_length(set->paths[i], &others);
        if (m != n || others != shards || strncmp(set->paths[0], set->paths[i], n) != 0)
            return ipw_fail(err, IPW_EINVAL,
                            "%s: the Parquet files of several sets, %.*s and %.*s; name one",
                            folder, (int)n, set->paths[0], (int)m, set->paths[i]);
    }
    if (set->n != shards)
        return ipw_fail(err, IPW_ENOTFOUND, "%s: %zu of the %u files of %.*s are there", folder,
                        set->n, shards, (int)n, set->paths[0]);
    return 0;
}

static int find_parquet(struct ipw_saved_set *out, const char *folder, struct ipw_err *err)
{
    DIR *dir = opendir(folder);
    struct dirent *entry;

    if (!dir) return ipw_fail_errno(err, errno, "%s", folder);
    while ((entry = readdir(dir)) != NULL)
        if (entry->d_name[0] != '.' && ipw_has_ending(entry->d_name, ".parquet"))
            add_path(out, ipw_asprintf("%s/%s", folder, entry->d_name));
    closedir(dir);
    if (!out->n)
        return ipw_fail(
            err, IPW_ENOTFOUND,
            "%s: a folder with no rows in it: neither state.json (as save_to_disk leaves it) nor "
            ".parquet files",
            folder);
    qsort(out->paths, out->n, sizeof *out->paths, compare_paths);
    return check_one_set(out, folder, err);
}

int ipw_saved_set_find(struct ipw_saved_set *out, const char *path, struct ipw_err *err)
{
    struct ipw_json *root = NULL;
    struct stat st;
    char *folder;
    int rc;

    *out = (struct ipw_saved_set){0};
    if (stat(path, &st) != 0 || !S_ISDIR(st.st_mode)) {
        add_path(out, ipw_strdup(path));
        return 0;
    }
    folder = ipw_strdup(path);
    for (size_t n = strlen(folder); n > 1 && folder[n - 1] == '/'; n--) folder[n - 1] = '\0';
    rc = read_json(&root, folder, "state.json", err);
    if (rc == 1) {
        rc = take_state(out, folder, root, err);
    } else if (rc == 0 && (rc = read_json(&root, folder, "dataset_dict.json", err)) == 1) {
        rc = name_splits(folder, root, err);
    } else if (rc == 0) {
        rc = find_parquet(out, folder, err);
    }
    ipw_json_free(root);
    free(folder);
    if (rc) ipw_saved_set_release(out);
    return rc;
}

void ipw_saved_set_release(struct ipw_saved_set *set)
{
    for (size_t i = 0; i < set->n; i++) free(set->paths[i]);
    free(set->paths);
    *set = (struct ipw_saved_set){0};
}
