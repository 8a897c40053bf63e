#include "io/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/mem.h"

enum { MOST_PROCESSES = 512, LAST_LOOKS = 100 };

static char *parent;
static bool looked;
static unsigned last_number;
static char **left; /* folders that could not be removed yet */
static size_t n_left, cap_left;

static int write_text(const char *folder, const char *file, const char *text)
{
    char *path = ipw_asprintf("%s/%s", folder, file);
    int fd = open(path, O_WRONLY | O_CLOEXEC), errnum = fd < 0 ? errno : 0;
    size_t n = strlen(text);

    if (fd >= 0 && write(fd, text, n) != (ssize_t)n) errnum = errno ? errno : EIO;
    if (fd >= 0) close(fd);
    free(path);
    return errnum;
}

/* ---- where ---- */

static bool has_word(const char *words, const char *word)
{
    size_t n = strlen(word);

    for (const char *at = words; (at = strstr(at, word)); at += n)
        if ((at == words || at[-1] == ' ') && (!at[n] || at[n] == ' ' || at[n] == '\n'))
            return true;
    return false;
}

static bool is_delegated(const char *folder)
{
    char *path = ipw_asprintf("%s/cgroup.subtree_control", folder), words[256];
    FILE *f = fopen(path, "re");
    bool shares =
        f && fgets(words, sizeof words, f) && has_word(words, "memory") && has_word(words, "pids");

    if (f) fclose(f);
    free(path);
    path = ipw_asprintf("%s/cgroup.procs", folder);
    shares = shares && access(folder, W_OK) == 0 && access(path, W_OK) == 0;
    free(path);
    return shares;
}

/* The mounted tree, or NULL. */
static const char *tree(void)
{
    static const char *const usual[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"};
    const char *named = getenv("IPW_CGROUP_ROOT");
    struct statfs st;

    if (named) return named;
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
        if (statfs(usual[i], &st) == 0 && st.f_type == CGROUP2_SUPER_MAGIC) return usual[i];
    return NULL;
}

/* Our own group below the tree: "/user.slice/...", or "". */
static void own_group(char *out, size_t size)
{
    FILE *f = fopen("/proc/self/cgroup", "re");
    char line[PATH_MAX];

    out[0] = '\0';
    while (f && fgets(line, sizeof line, f)) {
        if (strncmp(line, "0::", 3) != 0) continue;
        line[strcspn(line, "\n")] = '\0';
        snprintf(out, size, "%s", strcmp(line + 3, "/") ? line + 3 : "");
    }
    if (f) fclose(f);
}

const char *ipw_cgroup_parent(void)
{
    const char *root = looked ? NULL : tree();
    char own[PATH_MAX];

    looked = true;
    if (!root) return parent;
    own_group(own, sizeof own);
    for (char *end = own + strlen(own); !parent; end = strrchr(own, '/')) {
        char *folder;

        if (!end) break;
        *end = '\0';
        folder = ipw_asprintf("%s%s", root, own);
        if (is_delegated(folder))
            parent = folder;
        else
            free(folder);
    }
    return parent;
}

/* ---- one group ---- */

int ipw_cgroup_make(char **out, size_t memory_bytes, struct ipw_err *err)
{
    char memory[32], processes[32], *folder;
    int errnum;

    *out = NULL;
    if (!ipw_cgroup_parent()) return 0;
    folder = ipw_asprintf("%s/ipw-%ld-%u", parent, (long)getpid(), ++last_number);
    snprintf(memory, sizeof memory, "%zu", memory_bytes);
    snprintf(processes, sizeof processes, "%d", MOST_PROCESSES);
    /* One of that name was left by a killed process that had our number. */
    errnum = mkdir(folder, 0755) && errno != EEXIST ? errno : 0;
    if (!errnum) errnum = write_text(folder, "memory.max", memory);
    if (!errnum) errnum = write_text(folder, "pids.max", processes);
    if (errnum) {
        ipw_fail_errno(err, errnum, "cannot make the control group %s", folder);
        rmdir(folder);
        free(folder);
        return err->code;
    }
    /* Not every kernel has them: without, memory goes to swap, and one process alone is ended. */
    write_text(folder, "memory.swap.max", "0");
    write_text(folder, "memory.oom.group", "1");
    *out = folder;
    return 0;
}

int ipw_cgroup_enter(const char *folder) { return write_text(folder, "cgroup.procs", "0"); }

static void remove_left(void)
{
    size_t kept = 0;

    for (size_t i = 0; i < n_left; i++) {
        if (rmdir(left[i]) && errno != ENOENT)
            left[kept++] = left[i];
        else
            free(left[i]);
    }
    n_left = kept;
}

void ipw_cgroup_end(char *folder)
{
    if (folder) {
        write_text(folder, "cgroup.kill", "1"); /* else the sandbox's end kills them */
        IPW_GROW(left, cap_left, n_left + 1);
        left[n_left++] = folder;
    }
    remove_left();
}

void ipw_cgroup_end_all(void)
{
    for (int i = 0; n_left && i < LAST_LOOKS; i++) {
        if (i) usleep(1000);
        remove_left();
    }
    if (n_left) return;
    free(left);
    left = NULL;
    cap_left = 0;
}
