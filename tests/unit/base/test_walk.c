/* Counting and removing folders that a program has made as awkward as it can. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/walk.h"
#include "unit/base/temp_folder.h"
#include "unit/unit.h"

enum { DEEP = 2500, BYTES = 1000 };

static void put_file(const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT, 0600);

    assert_true(fd >= 0 && ftruncate(fd, BYTES) == 0);
    close(fd);
}

/* A chain of folders below `name`, with a file in the last. */
static void make_chain(const char *name, int depth)
{
    int home = open(".", O_RDONLY | O_DIRECTORY);

    assert_int_equal(mkdir(name, 0700), 0);
    assert_int_equal(chdir(name), 0);
    for (int i = 1; i < depth; i++) {
        assert_int_equal(mkdir("d", 0700), 0);
        assert_int_equal(chdir("d"), 0);
    }
    put_file("file");
    assert_int_equal(fchdir(home), 0);
    close(home);
}

static struct ipw_walk count(const char *name, size_t max_bytes, size_t max_entries)
{
    struct ipw_walk w = {.max_bytes = max_bytes, .max_entries = max_entries};
    int fd = open(name, O_RDONLY | O_DIRECTORY);

    assert_true(fd >= 0);
    ipw_walk_count(&w, fd);
    close(fd);
    return w;
}

static void counts(void **state)
{
    struct ipw_walk w;

    (void)state;
    make_chain("some", IPW_WALK_DEPTH + 1); /* "some" itself is not below itself */
    assert_int_equal(symlink("/", "some/link"), 0);
    w = count("some", 0, 0);
    assert_int_equal(w.bytes, BYTES);
    assert_int_equal(w.entries, IPW_WALK_DEPTH + 2);
    assert_false(w.too_deep || w.unreadable);
    make_chain("some/more", IPW_WALK_DEPTH + 1);
    put_file("some/beside");
    w = count("some", 0, 0);
    assert_true(w.too_deep);
    assert_int_equal(w.bytes, 2 * BYTES); /* the rest is counted nevertheless */
    assert_int_equal(count("some", 0, 10).entries, 11);
    assert_int_equal(ipw_walk_remove(AT_FDCWD, "some", NULL), 0);
    assert_int_equal(access("some", F_OK), -1);
    assert_int_equal(ipw_walk_remove(AT_FDCWD, "some", NULL), 0);
}

/* Longer than any path, with names that are in the way, and without the owner's rights. */
static void removes(void **state)
{
    (void)state;
    assert_int_equal(mkdir("top", 0700), 0);
    assert_int_equal(mkdir("outside", 0700), 0);
    put_file("outside/kept");
    make_chain("top/a", DEEP);
    make_chain("top/b", DEEP);
    make_chain("top/.deep-0", 2);
    put_file("top/.deep-1");
    put_file("top/.owner");
    assert_int_equal(symlink("../outside", "top/link"), 0);
    assert_int_equal(chmod("top/a/d/d", 0), 0);
    assert_int_equal(chmod("top/b", 0500), 0);
    assert_int_equal(ipw_walk_remove(AT_FDCWD, "top", ".owner"), 0);
    assert_int_equal(access("top", F_OK), -1);
    assert_int_equal(access("outside/kept", F_OK), 0);
}

/* What cannot be removed keeps its mark, so that it is found again. */
static void keeps_the_mark(void **state)
{
    (void)state;
    assert_int_equal(mkdir("top", 0700), 0);
    assert_int_equal(mkdir("top/.owner", 0700), 0); /* no file: it cannot be removed as one */
    assert_int_equal(ipw_walk_remove(AT_FDCWD, "top", ".owner"), EISDIR);
    assert_int_equal(access("top/.owner", F_OK), 0);
    assert_int_equal(ipw_walk_remove(AT_FDCWD, "top", NULL), 0);
}

UNIT(walk)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(counts), cmocka_unit_test(removes),
                                       cmocka_unit_test(keeps_the_mark)};

    return cmocka_run_group_tests(tests, enter_temp_folder, leave_temp_folder);
}
