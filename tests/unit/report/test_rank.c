/* Queries of a saved run by their cost: the order, queries whose cost is not known, the limit, and
 * --sort's words. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "report/rank.h"
#include "trace/schema.h"
#include "unit/report/fixture.h"
#include "unit/unit.h"

static char run[] = "/tmp/ipw-rank.XXXXXX";

static void words(void **state)
{
    static const struct {
        const char *text;
        enum ipw_rank_by by;
    } known[] = {{NULL, IPW_RANK_NOT},
                 {"energy", IPW_RANK_ENERGY},
                 {"time", IPW_RANK_TIME},
                 {"tokens", IPW_RANK_TOKENS}};
    struct ipw_err err = {0};
    enum ipw_rank_by by;

    (void)state;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        assert_int_equal(ipw_rank_parse(&by, known[i].text, &err), 0);
        assert_int_equal(by, known[i].by);
    }
    assert_int_equal(ipw_rank_parse(&by, "enegry", &err), IPW_EINVAL);
    assert_string_equal(err.text,
                        "--sort: energy, time or tokens, not 'enegry' (did you mean 'energy'?)");
    assert_int_equal(ipw_rank_parse(&by, "zzzzzzzz", &err), IPW_EINVAL);
    assert_string_equal(err.text, "--sort: energy, time or tokens, not 'zzzzzzzz'");
    assert_int_equal(by, IPW_RANK_NOT);
}

struct query {
    double seconds, machine_j, gpu_j, cpu_j; /* NAN: not known */
    int64_t input, output;                   /* < 0: not known */
};

static void write_run(const struct query *queries, size_t n)
{
    const struct ipw_anchor anchor = {.wall_ns = 1};
    struct ipw_buf lines = IPW_BUF(IPW_MIB);
    char path[64];
    FILE *f;

    for (size_t i = 0; i < n; i++) {
        struct made m = {.id = "q",
                         .outcome = "answered",
                         .turns = 1,
                         .in = queries[i].input,
                         .out = queries[i].output,
                         .wall_s = queries[i].seconds,
                         .gpu_j = queries[i].gpu_j,
                         .cpu_j = queries[i].cpu_j,
                         .provenance = IPW_PROV_MEASURED};
        struct ipw_query_details details = make_details(&m);
        struct ipw_query_trace q;

        make_trace(&q, &m, (int)i);
        q.turns[0].input_tokens = queries[i].input;
        q.turns[0].output_tokens = queries[i].output;
        q.energy[IPW_DOMAIN_MACHINE] = figure(queries[i].machine_j, IPW_PROV_MEASURED);
        ipw_schema_write_query(&lines, &q, &details, &anchor);
        ipw_buf_addc(&lines, '\n');
        ipw_query_trace_release(&q);
    }
    snprintf(path, sizeof path, "%s/traces.jsonl", run);
    f = fopen(path, "w");
    assert_non_null(f);
    fputs(ipw_buf_str(&lines), f);
    fclose(f);
    ipw_buf_release(&lines);
}

static void ranks_are(enum ipw_rank_by by, size_t limit, const size_t *want, size_t n)
{
    struct ipw_ranks ranks;
    struct ipw_err err = {0};

    if (ipw_rank_queries(&ranks, run, by, limit, &err)) fail_msg("%s", err.text);
    assert_int_equal(ranks.n, n);
    assert_int_equal(ranks.n_ranked, limit && limit < n ? limit : n);
    for (size_t i = 0; i < n; i++)
        if (ranks.of[i] != want[i]) fail_msg("by %d: query %zu has rank %zu", by, i, ranks.of[i]);
    ipw_ranks_release(&ranks);
}

#define RANKS(by, limit, ...)                                                                      \
    ranks_are(by, limit, (const size_t[]){__VA_ARGS__},                                            \
              sizeof((const size_t[]){__VA_ARGS__}) / sizeof(size_t))

static void the_dearest_first(void **state)
{
    static const struct query devices[] = {
        {1, NAN, 5, 1, 10, 1},
        {3, NAN, NAN, NAN, 30, 5}, /* energy not known: last */
        {2, NAN, 6, NAN, -1, 5},   /* the devices that were measured; tokens not known */
        {3, NAN, 1, 9, 20, 15},
    };

    (void)state;
    write_run(devices, 4);
    RANKS(IPW_RANK_ENERGY, 0, 1, 3, 2, 0); /* 6 and 6 J: the order of the file */
    RANKS(IPW_RANK_TIME, 0, 3, 0, 2, 1);
    RANKS(IPW_RANK_TOKENS, 0, 2, 0, 3, 1);
    RANKS(IPW_RANK_TIME, 2, IPW_RANK_NONE, 0, IPW_RANK_NONE, 1);
    RANKS(IPW_RANK_TIME, 9, 3, 0, 2, 1);
    RANKS(IPW_RANK_NOT, 0, 0, 1, 2, 3);
}

/* Where the machine's own meter was read, its joules decide, not the sum of some devices. */
static void a_meter_decides(void **state)
{
    static const struct query metered[] = {{1, 10, 100, 100, 1, 1},
                                           {1, 30, 1, 1, 1, 1},
                                           {1, NAN, 500, 500, 1, 1},
                                           {1, 20, 2, 2, 1, 1}};

    (void)state;
    write_run(metered, 4);
    RANKS(IPW_RANK_ENERGY, 0, 2, 0, 3, 1);
}

static void no_queries_and_no_run(void **state)
{
    struct ipw_ranks ranks;
    struct ipw_err err = {0};

    (void)state;
    write_run(NULL, 0);
    assert_int_equal(ipw_rank_queries(&ranks, run, IPW_RANK_TIME, 3, &err), 0);
    assert_true(ranks.n == 0 && ranks.n_ranked == 0 && !ranks.of);
    ipw_ranks_release(&ranks);
    assert_true(ipw_rank_queries(&ranks, "/nonexistent/run", IPW_RANK_TIME, 0, &err) < 0);
    assert_non_null(strstr(err.text, "/nonexistent/run"));
    assert_null(ranks.of);
}

static int open_run(void **state)
{
    (void)state;
    return mkdtemp(run) ? 0 : -1;
}

static int remove_run(void **state)
{
    char path[64];

    (void)state;
    snprintf(path, sizeof path, "%s/traces.jsonl", run);
    unlink(path);
    return rmdir(run);
}

UNIT(rank)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words),
        cmocka_unit_test(the_dearest_first),
        cmocka_unit_test(a_meter_decides),
        cmocka_unit_test(no_queries_and_no_run),
    };

    return cmocka_run_group_tests_name("rank", tests, open_run, remove_run);
}
