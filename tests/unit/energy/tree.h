/* A folder of a test's own, with files as the kernel shows them. */
#ifndef IPW_TESTS_UNIT_ENERGY_TREE_H
#define IPW_TESTS_UNIT_ENERGY_TREE_H

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit/energy/energy_test.h"

static char tree_root[64];

static inline int tree_setup(void **state)
{
    (void)state;
    snprintf(tree_root, sizeof tree_root, "/tmp/ipw-tree-XXXXXX");
    assert_non_null(mkdtemp(tree_root));
    return chmod(tree_root, 0755);
}

static inline int tree_drop(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st, (void)kind, (void)at;
    return remove(path);
}

static inline int tree_teardown(void **state)
{
    (void)state;
    return nftw(tree_root, tree_drop, 16, FTW_DEPTH | FTW_PHYS);
}

/* "a/b/c" below the root; what it needs is made. */
static inline const char *tree_path(const char *file)
{
    static char path[512];

    snprintf(path, sizeof path, "%s/%s", tree_root, file);
    for (char *p = path + strlen(tree_root) + 1; (p = strchr(p, '/')); *p++ = '/') {
        *p = '\0';
        assert_true(mkdir(path, 0755) == 0 || errno == EEXIST);
    }
    return path;
}

static inline void put(const char *file, const char *text)
{
    FILE *f = fopen(tree_path(file), "w");

    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

/* A file that opens and then says what sysfs says of a sensor that is off: an error.  Reading a
 * folder gives EISDIR, as good as ENODATA. */
static inline void put_unreadable(const char *file)
{
    assert_int_equal(mkdir(tree_path(file), 0755), 0);
}

static inline void put_link(const char *file, const char *target)
{
    assert_int_equal(symlink(target, tree_path(file)), 0);
}

static inline void put_number(const char *file, int64_t n)
{
    char text[32];

    snprintf(text, sizeof text, "%lld\n", (long long)n);
    put(file, text);
}

static inline const struct ipw_channel *channel(const struct ipw_source *s, const char *name,
                                                size_t *at)
{
    for (size_t i = 0; i < s->n_channels; i++) {
        if (strcmp(s->channels[i].name, name)) continue;
        if (at) *at = i;
        return &s->channels[i];
    }
    fail_msg("no channel %s", name);
    return NULL;
}

static inline int64_t value(struct ipw_source *s, const char *name)
{
    int64_t values[256];
    size_t i = 0;

    assert_true(s->n_channels <= 256);
    channel(s, name, &i);
    s->read(s, values);
    return values[i];
}

/* Root reads everything: what a user sees is seen by a child that is one.  `look` reports with
 * look_for(). */
static inline void as_user(void (*look)(void))
{
    pid_t child;
    int status;

    fflush(NULL);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        if (geteuid() == 0 && (setgid(65534) || setuid(65534))) _exit(3);
        look();
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

#define look_for(condition)                                                                        \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)

static inline void deny(const char *file)
{
    assert_int_equal(chmod(tree_path(file), geteuid() == 0 ? 0400 : 0), 0);
}

/* ---- leftovers ---- */

static int tree_fds;

static inline int count_fds(void)
{
    int n = 0;

    for (int fd = 0; fd < 256; fd++) n += fcntl(fd, F_GETFD) != -1;
    return n;
}

static inline int note_fds(void **state)
{
    (void)state;
    tree_fds = count_fds();
    return 0;
}

static inline int check_fds(void **state)
{
    (void)state;
    return count_fds() != tree_fds;
}

#define WITH_TREE(test) cmocka_unit_test_setup_teardown(test, tree_setup, tree_teardown)

#endif
