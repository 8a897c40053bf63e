#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <setjmp.h>

#include <cmocka.h>

#include <sys/wait.h>
#include <unistd.h>

#include "unit/unit.h"

/* In order of names. */
static struct unit *units;

void unit_add(struct unit *unit)
{
    struct unit **at = &units;

    while (*at && strcmp((*at)->name, unit->name) < 0) at = &(*at)->next;
    unit->next = *at;
    *at = unit;
}

/* What a unit leaves behind (open files, the current folder, static variables) is no other's. */
static int run_in_child(const struct unit *unit)
{
    int status = 0;
    pid_t child;

    printf("== %s\n", unit->name);
    fflush(NULL);
    child = fork();
    if (child == 0) exit(unit->run() != 0);
    if (child < 0 || waitpid(child, &status, 0) != child) {
        perror("unit tests");
        exit(2);
    }
    return status != 0;
}

static int run_all(void)
{
    int failed = 0;

    for (const struct unit *unit = units; unit; unit = unit->next) {
        if (run_in_child(unit)) {
            printf("== %s FAILED\n", unit->name);
            failed++;
        }
    }
    return failed != 0;
}

int main(int argc, char **argv)
{
    if (argc < 2) return run_all();
    if (argc > 2) cmocka_set_test_filter(argv[2]);
    for (const struct unit *unit = units; unit; unit = unit->next)
        if (!strcmp(unit->name, argv[1])) return unit->run() != 0;
    fprintf(stderr, "%s: no unit \"%s\"; there are:\n", argv[0], argv[1]);
    for (const struct unit *unit = units; unit; unit = unit->next)
        fprintf(stderr, "  %s\n", unit->name);
    return 2;
}
