/* --shard: how a place is read, and which tasks belong to it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "run/shard.h"
#include "unit/unit.h"

/* The variables of a test, as "NAME=value" words. */
static const char *const *variables;

static char *variable(const char *name)
{
    size_t n = strlen(name);

    for (const char *const *v = variables; *v; v++)
        if (!strncmp(*v, name, n) && (*v)[n] == '=') return (char *)(uintptr_t)(*v + n + 1);
    return NULL;
}

static const struct {
    const char *text, *variables[8];
    int64_t index, count; /* count 0: refused */
    const char *message;  /* holds this; with a place: `taken` holds it */
} rows[] = {
    {"0/1", {NULL}, 0, 1, ""},
    {"3/4", {NULL}, 3, 4, ""},
    {"4/4", {NULL}, 0, 0, "counted from 0"},
    {"-1/4", {NULL}, 0, 0, "--shard"},
    {"1", {NULL}, 0, 0, "'1' is neither I/N, auto nor auto/N"},
    {"1/0", {NULL}, 0, 0, "number of shards"},
    {"1/x", {NULL}, 0, 0, "number of shards"},
    {"auto", {NULL}, 0, 0, "SLURM_ARRAY_TASK_ID, SLURM_PROCID, JOB_COMPLETION_INDEX"},
    {"auto",
     {"SLURM_ARRAY_TASK_ID=5", "SLURM_ARRAY_TASK_COUNT=4", "SLURM_ARRAY_TASK_MIN=1",
      "SLURM_ARRAY_TASK_MAX=7", "SLURM_ARRAY_TASK_STEP=2", "SLURM_PROCID=0", "SLURM_NTASKS=1",
      NULL},
     2,
     4,
     "Slurm's array (SLURM_ARRAY_TASK_ID=5)"},
    /* One task of an array of four, handed in again. */
    {"auto/4",
     {"SLURM_ARRAY_TASK_ID=2", "SLURM_ARRAY_TASK_COUNT=1", "SLURM_ARRAY_TASK_MIN=2",
      "SLURM_ARRAY_TASK_MAX=2", NULL},
     2,
     4,
     "SLURM_ARRAY_TASK_ID=2"},
    /* The indices 0, 3 and 7: no rule gives a place. */
    {"auto",
     {"SLURM_ARRAY_TASK_ID=7", "SLURM_ARRAY_TASK_COUNT=3", "SLURM_ARRAY_TASK_MIN=0",
      "SLURM_ARRAY_TASK_MAX=7", NULL},
     0,
     0,
     "is place 7, counted from 0, of 3 shards"},
    {"auto", {"SLURM_PROCID=1", "SLURM_NTASKS=2", NULL}, 1, 2, "srun"},
    {"auto", {"SLURM_PROCID=0", "SLURM_NTASKS=1", NULL}, 0, 1, "srun"},
    {"auto/8", {"SLURM_PROCID=0", "SLURM_NTASKS=1", "PARALLEL_SEQ=8", NULL}, 7, 8, "parallel"},
    {"auto", {"JOB_COMPLETION_INDEX=3", NULL}, 0, 0, "use --shard auto/N"},
    {"auto/8", {"JOB_COMPLETION_INDEX=3", NULL}, 3, 8, "Kubernetes"},
    {"auto/8", {"JOB_COMPLETION_INDEX=8", NULL}, 0, 0, "is place 8"},
    {"auto/8", {"PARALLEL_SEQ=9", NULL}, 0, 0, "is place 8"},
    {"auto/8", {"PARALLEL_JOBSLOT=2", NULL}, 0, 0, "none of these variables"},
    {"auto",
     {"OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_SIZE=2", "PMI_RANK=1", "PMI_SIZE=2", NULL},
     1,
     2,
     "Open MPI"},
    {"auto",
     {"OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_SIZE=2", "RANK=0", "WORLD_SIZE=2", NULL},
     0,
     0,
     "Open MPI (OMPI_COMM_WORLD_RANK=1) and torchrun (RANK=0) name different places"},
    {"auto/4", {"OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_SIZE=2", NULL}, 0, 0, "is one of 2"},
    {"auto/4", {"PBS_ARRAY_INDEX=3", NULL}, 3, 4, "PBS"},
    {"auto",
     {"SGE_TASK_ID=6", "SGE_TASK_FIRST=2", "SGE_TASK_LAST=8", "SGE_TASK_STEPSIZE=2", NULL},
     2,
     4,
     "Grid Engine"},
    {"auto", {"SGE_TASK_ID=undefined", "SGE_TASK_FIRST=undefined", NULL}, 0, 0, "none of these"},
};

static void places_are_read(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct ipw_shard shard;
        struct ipw_err err = {0};
        int rc;

        variables = rows[i].variables;
        rc = ipw_shard_parse(&shard, rows[i].text, variable, &err);
        if (!!rc == !!rows[i].count || !strstr(rc ? err.text : shard.taken, rows[i].message))
            fail_msg("row %zu (%s): %d, %s", i, rows[i].text, rc, rc ? err.text : shard.taken);
        if (rc) continue;
        assert_int_equal(shard.index, rows[i].index);
        assert_int_equal(shard.count, rows[i].count);
    }
}

/* The reference values are of sha256sum: its first 15 digits, modulo N. */
static void ids_choose(void **state)
{
    const struct ipw_shard none = {0};

    (void)state;
    for (int64_t n = 1; n <= 9; n++) {
        for (int task = 0; task < 200; task++) {
            char id[16];
            int in = 0;

            snprintf(id, sizeof id, "q%04d", task);
            assert_true(ipw_shard_has(&none, id));
            for (int64_t i = 0; i < n; i++)
                in += ipw_shard_has(&(struct ipw_shard){.index = i, .count = n}, id);
            assert_int_equal(in, 1);
        }
    }
    assert_true(ipw_shard_has(&(struct ipw_shard){.index = 0, .count = 4}, "q0000"));
    assert_true(ipw_shard_has(&(struct ipw_shard){.index = 3, .count = 7}, "q0001"));
}

static void folders_are_named(void **state)
{
    static const char *const names[][2] = {
        {"out", "out.shards/2-of-4"},
        {"out/", "out.shards/2-of-4"},
        {"out.shards/2-of-4", "out.shards/2-of-4"},
        {"out.shards/2-of-4/", "out.shards/2-of-4"},
        {".shards/2-of-4", ".shards/2-of-4"},
        {"x/2-of-4", "x/2-of-4.shards/2-of-4"},
        {"out.shards/1-of-4", NULL},
        {"out.shards/2-of-5", NULL},
    };
    const struct ipw_shard shard = {.index = 2, .count = 4};

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct ipw_err err;
        char *folder;
        int rc = ipw_shard_folder(&folder, &shard, names[i][0], &err);

        assert_int_equal(!rc, names[i][1] != NULL);
        if (!rc) assert_string_equal(folder, names[i][1]);
        if (rc) assert_non_null(strstr(err.text, "another shard than --shard 2/4"));
        free(folder);
    }
}

UNIT(shard)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(places_are_read),
        cmocka_unit_test(ids_choose),
        cmocka_unit_test(folders_are_named),
    };

    return cmocka_run_group_tests_name("shard", tests, NULL, NULL);
}
