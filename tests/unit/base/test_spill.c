#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/spill.h"
#include "unit/unit.h"

enum { PIECE = IPW_SPILL_BYTES / sizeof(double) };

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

static double at(const struct ipw_spill *s, size_t i)
{
    return *(const double *)ipw_spill_at(s, i);
}

static uint64_t mixed(uint64_t i)
{
    i = (i ^ (i >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    return (i ^ (i >> 27)) * UINT64_C(0x94D049BB133111EB) >> 11;
}

/* Ways in which values may lie. */
static double spread(uint64_t i) { return (double)mixed(i) * 1e-6 - 3e9; }
static double rising(uint64_t i) { return (double)i; }
static double falling(uint64_t i) { return -(double)i; }
static double alike(uint64_t i) { return (double)(i * 0); }
static double ties(uint64_t i) { return (double)(mixed(i) % 5); }
static double sawtooth(uint64_t i) { return (double)(i % 1000); }
static double skewed(uint64_t i) { return exp((double)(mixed(i) % 1400) - 700); }
static double edges(uint64_t i)
{
    static const double all[] = {-INFINITY, INFINITY, 0, 5e-324, -5e-324, 1.7e308, -1.7e308};

    return all[mixed(i) % 7];
}

static double (*const distributions[])(uint64_t) = {spread, rising,   falling, alike,
                                                    ties,   sawtooth, skewed,  edges};

static void fill(struct ipw_spill *s, struct ipw_spill_place *place, size_t n,
                 double (*fn)(uint64_t))
{
    ipw_spill_init(s, sizeof(double), place);
    for (size_t i = 0; i < n; i++) {
        double x = fn(i);

        ipw_spill_add(s, &x);
    }
}

static void is_sorted_copy(const struct ipw_spill *s, size_t n, double (*fn)(uint64_t))
{
    struct ipw_spill sorted;
    double *plain = ipw_calloc(n + 1, sizeof *plain);

    for (size_t i = 0; i < n; i++) plain[i] = fn(i);
    qsort(plain, n, sizeof *plain, by_value);
    ipw_spill_sort(&sorted, s, by_value);
    assert_int_equal(sorted.n, n);
    for (size_t i = 0; i < n; i++) assert_true(at(&sorted, i) == plain[i]);
    for (size_t i = 0; i < n; i++) assert_true(at(s, i) == fn(i)); /* as it was */
    ipw_spill_release(&sorted);
    free(plain);
}

static void sorts_as_in_memory(void **state)
{
    static const size_t lengths[] = {0,         1,         2,         PIECE - 1,    PIECE,
                                     PIECE + 1, 2 * PIECE, 3 * PIECE, 5 * PIECE + 7};

    (void)state;
    for (size_t d = 0; d < sizeof distributions / sizeof *distributions; d++) {
        for (size_t k = 0; k < sizeof lengths / sizeof *lengths; k++) {
            for (int file = 0; file < 2; file++) {
                struct ipw_spill_place place = {.folder = file ? "/tmp" : NULL};
                struct ipw_spill s;

                fill(&s, &place, lengths[k], distributions[d]);
                assert_int_equal(s.in_file > 0, file && lengths[k] > PIECE);
                is_sorted_copy(&s, lengths[k], distributions[d]);
                assert_int_equal(place.error, 0);
                ipw_spill_release(&s);
            }
        }
    }
}

/* Records of another size, asked for in no order. */
static void gives_any_record(void **state)
{
    enum { N = 20000 };
    struct record {
        char name[90];
        int number;
    };
    struct ipw_spill_place place = {.folder = "/tmp"};
    struct ipw_spill s;

    (void)state;
    ipw_spill_init(&s, sizeof(struct record), &place);
    for (int i = 0; i < N; i++) {
        struct record r = {.number = i};

        snprintf(r.name, sizeof r.name, "record %d", i);
        ipw_spill_add(&s, &r);
        assert_true((s.n - s.in_file) * s.size <= IPW_SPILL_BYTES); /* of memory */
    }
    for (size_t i = 0; i < 2000; i++) {
        size_t k = mixed(i) % N;
        const struct record *r = ipw_spill_at(&s, k);
        char name[90];

        snprintf(name, sizeof name, "record %zu", k);
        assert_int_equal(r->number, k);
        assert_string_equal(r->name, name);
    }
    ipw_spill_release(&s);
}

/* A file that cannot be made leaves the records in memory; nothing is lost, nothing has failed. */
static void needs_no_folder(void **state)
{
    struct ipw_spill_place place = {.folder = "/nowhere/at/all"};
    struct ipw_spill s;

    (void)state;
    fill(&s, &place, 3 * PIECE, spread);
    assert_int_equal(s.in_file, 0);
    is_sorted_copy(&s, 3 * PIECE, spread);
    assert_int_equal(place.error, 0);
    ipw_spill_release(&s);
}

/* A disk that is full does not end a run: what does not fit stays in memory until there is room. */
static void a_file_that_cannot_grow(void **state)
{
    struct ipw_spill_place place = {.folder = "/tmp"};
    struct rlimit was, small;
    struct ipw_spill s;

    (void)state;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &was), 0);
    small = was;
    small.rlim_cur = IPW_SPILL_BYTES * 3 / 2; /* in the middle of the second write */
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    fill(&s, &place, 5 * PIECE, spread);
    assert_int_equal(s.in_file, PIECE);
    is_sorted_copy(&s, 5 * PIECE, spread); /* whose own files cannot grow either */
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &was), 0);
    for (size_t i = 5 * PIECE; i < 6 * PIECE + 1; i++) {
        double x = spread(i);

        ipw_spill_add(&s, &x);
    }
    assert_int_equal(s.in_file, 6 * PIECE); /* there is room again */
    is_sorted_copy(&s, 6 * PIECE + 1, spread);
    assert_int_equal(place.error, 0);
    ipw_spill_release(&s);
}

static void a_read_that_fails_is_told(void **state)
{
    struct ipw_spill_place place = {.folder = "/tmp"};
    struct ipw_spill s, other, sorted;
    int fd;

    (void)state;
    fill(&s, &place, 2 * PIECE + 1, rising);
    assert_int_equal(ftruncate(s.fd, 8 * PIECE), 0);
    assert_true(at(&s, 5) == 5);
    assert_int_equal(place.error, 0);
    assert_true(at(&s, PIECE + 5) == 0); /* no other record's value */
    assert_int_equal(place.error, EIO);
    ipw_spill_release(&s);

    place.error = 0;
    fill(&other, &place, 2 * PIECE + 1, rising);
    fd = open("/tmp", O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0 && dup2(fd, other.fd) >= 0); /* read(2) refuses a folder */
    close(fd);
    ipw_spill_sort(&sorted, &other, by_value);
    assert_int_equal(sorted.n, 2 * PIECE + 1);
    assert_int_equal(place.error, EISDIR);
    ipw_spill_release(&other);
    ipw_spill_release(&sorted);
}

/* Nobody else sees the file, and nothing stays of it. */
static void the_file_has_no_name(void **state)
{
    char folder[] = "/tmp/ipw-spill-XXXXXX";
    struct ipw_spill_place place = {.folder = folder};
    struct ipw_spill s;
    struct stat st;
    int fd;

    (void)state;
    assert_non_null(mkdtemp(folder));
    fill(&s, &place, 2 * PIECE + 1, spread);
    fd = s.fd;
    assert_int_equal(fstat(fd, &st), 0);
    assert_int_equal(st.st_nlink, 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_int_equal(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    assert_int_equal(rmdir(folder), 0); /* it is empty */
    assert_true(at(&s, 7) == spread(7));
    ipw_spill_release(&s);
    assert_int_equal(fstat(fd, &st), -1);
    ipw_spill_release(&s); /* again: nothing */
}

UNIT(spill)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sorts_as_in_memory),        cmocka_unit_test(gives_any_record),
        cmocka_unit_test(needs_no_folder),           cmocka_unit_test(a_file_that_cannot_grow),
        cmocka_unit_test(a_read_that_fails_is_told), cmocka_unit_test(the_file_has_no_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
