/* A unit's tests in the program of its floor: build/.../tests/test_FLOOR [UNIT [CASE]].
 *
 *     UNIT(series)
 *     {
 *         const struct CMUnitTest tests[] = {cmocka_unit_test(test_wrap)};
 *
 *         return cmocka_run_group_tests(tests, NULL, NULL);
 *     }
 *
 * test_series.c ends so; the value is the number of tests that failed.  Without arguments the
 * program runs every unit of the floor, each in a child process; with a name, that unit in the
 * process itself; with a second one, which may hold * and ?, the cases of that name. */
#ifndef TEST_UNIT_H
#define TEST_UNIT_H

struct unit {
    const char *name;
    int (*run)(void);
    struct unit *next;
};

/* The list keeps the pointer. */
void unit_add(struct unit *unit);

#define UNIT(name)                                                                                 \
    static int unit_##name(void);                                                                  \
    __attribute__((constructor)) static void add_unit_##name(void)                                 \
    {                                                                                              \
        static struct unit unit = {#name, unit_##name, 0};                                         \
        unit_add(&unit);                                                                           \
    }                                                                                              \
    static int unit_##name(void)

#endif
