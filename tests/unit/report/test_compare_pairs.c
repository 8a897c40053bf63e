/* Two runs beside each other: which queries and turns belong together, what is compared over which
 * devices, and when a difference is significant. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "report/compare.h"
#include "unit/report/fixture.h"

static struct made made(const char *id, int resolved, double wall_s, double gpu_j, double cpu_j)
{
    return (struct made){.id = id,
                         .outcome = "answered",
                         .resolved = resolved,
                         .turns = 2,
                         .in = 100,
                         .out = 10,
                         .wall_s = wall_s,
                         .gpu_j = gpu_j,
                         .cpu_j = cpu_j,
                         .provenance = IPW_PROV_MEASURED};
}

static void add(struct ipw_compare_run *run, struct made m, int index, int epoch)
{
    struct ipw_query_loaded loaded = {.details = make_details(&m)};

    make_trace(&loaded.trace, &m, index);
    loaded.details.epoch = epoch;
    ipw_compare_add(run, &loaded);
    ipw_query_trace_release(&loaded.trace);
}

static void release(struct ipw_compare *c, struct ipw_compare_run *a, struct ipw_compare_run *b)
{
    ipw_compare_free(c);
    ipw_compare_release(a);
    ipw_compare_release(b);
}

/* By id, repeats by the order in which they were begun; whatever the order of the lines is. */
static void pairs(void **state)
{
    struct ipw_compare_run a = {0}, b = {0};
    struct ipw_compare c;
    struct made longer = made("x", 1, 1, 10, 1);

    (void)state;
    longer.turns = 3; /* only as many turns are paired as both have */
    add(&a, made("z", 1, 1, 1, 1), 5, 0);
    add(&a, longer, 0, 0);
    add(&a, made("x", 1, 1, 20, 1), 7, 1);
    add(&a, made("only a", 1, 1, 1, 1), 1, 0);
    add(&b, made("x", 1, 1, 21, 1), 3, 1);
    add(&b, made("x", 1, 1, 11, 1), 4, 0);
    add(&b, made("z", 1, 1, 2, 1), 0, 0);
    add(&b, made("only b", 1, 1, 1, 1), 9, 0);
    add(&b, made("z", 1, 1, 3, 1), 6, 1); /* no second one over there */
    ipw_compare_make(&c, &a, &b);
    assert_int_equal(c.n, 3);
    assert_int_equal(c.n_turns, 6);
    assert_int_equal(c.only[0], 1);
    assert_int_equal(c.only[1], 2);
    for (size_t i = 0; i < c.n; i++) {
        assert_string_equal(c.pairs[0][i]->id, c.pairs[1][i]->id);
        assert_true(c.pairs[1][i]->energy[IPW_DOMAIN_GPU].j ==
                    c.pairs[0][i]->energy[IPW_DOMAIN_GPU].j + 1);
    }
    assert_int_equal(c.pairs[0][0]->n_turns, 3);
    /* three pairs, two tasks: repeats are averaged first */
    assert_int_equal(c.rows[IPW_COMPARE_GPU_J].pairs, 3);
    assert_int_equal(c.rows[IPW_COMPARE_GPU_J].tasks, 2);
    assert_true(c.rows[IPW_COMPARE_GPU_J].difference.mean == 1);
    assert_string_equal(c.rows[IPW_COMPARE_GPU_J].verdict, "too_few");
    assert_int_equal(c.rows[IPW_COMPARE_TURN_J].pairs, 6);
    release(&c, &a, &b);
}

/* Repeats that no epoch tells apart go by when they were begun. */
static void repeats_of_one_epoch(void **state)
{
    struct ipw_compare_run a = {0}, b = {0};
    struct ipw_compare c;

    (void)state;
    add(&a, made("x", 1, 1, 20, 1), 7, 0);
    add(&a, made("x", 1, 1, 10, 1), 2, 0);
    add(&a, made("x", 1, 1, 30, 1), 9, 0);
    add(&b, made("x", 1, 1, 31, 1), 5, 0);
    add(&b, made("x", 1, 1, 21, 1), 4, 0);
    add(&b, made("x", 1, 1, 11, 1), 0, 0);
    ipw_compare_make(&c, &a, &b);
    assert_int_equal(c.n, 3);
    for (size_t i = 0; i < c.n; i++)
        assert_true(c.pairs[1][i]->energy[IPW_DOMAIN_GPU].j ==
                    c.pairs[0][i]->energy[IPW_DOMAIN_GPU].j + 1);
    release(&c, &a, &b);
}

static void verdicts(void **state)
{
    static const double more[] = {5, 6, 5.5, 6.5, 5}, mixed[] = {5, -6, 5.5, -6.5, 1};
    struct ipw_compare_run a = {0}, b = {0};
    struct ipw_compare c;

    (void)state;
    for (int i = 0; i < 5; i++) {
        char id[2] = {(char)('a' + i), 0};

        add(&a, made(id, 1, 10, 100, 50), i, 0);
        add(&b, made(id, i > 0, 10 + mixed[i], 100 + more[i], 50 - more[i]), i, 0);
    }
    ipw_compare_make(&c, &a, &b);
    assert_string_equal(c.rows[IPW_COMPARE_GPU_J].verdict, "higher");
    assert_string_equal(c.rows[IPW_COMPARE_CPU_J].verdict, "lower");
    assert_string_equal(c.rows[IPW_COMPARE_JOULES].verdict,
                        "same"); /* what one saves the other takes */
    assert_string_equal(c.rows[IPW_COMPARE_SECONDS].verdict, "not_shown");
    assert_string_equal(c.rows[IPW_COMPARE_OUTPUT].verdict, "same");
    assert_string_equal(c.rows[IPW_COMPARE_DRAM_J].verdict, "unknown");
    assert_true(isnan(c.rows[IPW_COMPARE_DRAM_J].a));
    assert_true(c.rows[IPW_COMPARE_ACCURACY].a == 1);
    assert_true(fabs(c.rows[IPW_COMPARE_ACCURACY].b - 0.8) < 1e-12);
    assert_true(fabs(c.rows[IPW_COMPARE_GPU_J].difference.mean - 5.6) < 1e-9);
    assert_true(c.rows[IPW_COMPARE_GPU_J].difference.lo > 0);
    release(&c, &a, &b);
}

/* What one side does not know is in no mean of either. */
static void unknown_figures(void **state)
{
    struct ipw_compare_run a = {0}, b = {0};
    struct ipw_compare c;

    (void)state;
    add(&a, made("x", 1, 1, 10, 4), 0, 0);
    add(&a, made("y", -1, 1, 1000, 4), 1, 0);
    add(&b, made("x", 1, 1, 12, 4), 0, 0);
    add(&b, made("y", 1, 1, NAN, 4), 1, 0);
    ipw_compare_make(&c, &a, &b);
    assert_int_equal(c.rows[IPW_COMPARE_GPU_J].pairs, 1);
    assert_true(c.rows[IPW_COMPARE_GPU_J].a == 10 && c.rows[IPW_COMPARE_GPU_J].b == 12);
    assert_int_equal(c.rows[IPW_COMPARE_ACCURACY].pairs, 1);
    assert_int_equal(c.basis, 1u << IPW_DOMAIN_GPU | 1u << IPW_DOMAIN_CPU);
    release(&c, &a, &b);
    /* a device that only one run measured is no basis */
    add(&a, made("x", 1, 1, 10, NAN), 0, 0);
    add(&b, made("x", 1, 1, 12, 4), 0, 0);
    ipw_compare_make(&c, &a, &b);
    assert_int_equal(c.basis, 1u << IPW_DOMAIN_GPU);
    assert_int_equal(c.rows[IPW_COMPARE_CPU_J].pairs, 0);
    release(&c, &a, &b);
    /* nor are the client's own joules, for a model somewhere else */
    add(&a, made("x", 1, 1, 10, 4), 0, 0);
    add(&b, made("x", 1, 1, 12, 4), 0, 0);
    b.not_lm = ~0u;
    ipw_compare_make(&c, &a, &b);
    assert_int_equal(c.basis, 0);
    assert_true(isnan(c.rows[IPW_COMPARE_JOULES].a));
    release(&c, &a, &b);
    ipw_compare_make(&c, &a, &b); /* nothing at all */
    assert_int_equal(c.n, 0);
    assert_string_equal(c.rows[IPW_COMPARE_SECONDS].verdict, "unknown");
    release(&c, &a, &b);
}

static void bounds(void **state)
{
    struct ipw_figure energy[IPW_DOMAIN_COUNT] = {{0}};
    double lo, hi;

    (void)state;
    energy[IPW_DOMAIN_GPU] = (struct ipw_figure){
        .known = true, .j = 10, .lo_j = 9, .hi_j = 12, .provenance = IPW_PROV_MEASURED};
    energy[IPW_DOMAIN_CPU] = (struct ipw_figure){
        .known = true, .j = 5, .lo_j = 4, .hi_j = 5.5, .provenance = IPW_PROV_MEASURED};
    assert_true(ipw_compare_joules(energy, 1u << IPW_DOMAIN_GPU | 1u << IPW_DOMAIN_CPU, &lo, &hi) ==
                15);
    assert_true(lo == 13 && hi == 17.5);
    energy[IPW_DOMAIN_CPU].lo_j = energy[IPW_DOMAIN_CPU].hi_j = 0; /* no bounds are known */
    assert_true(ipw_compare_joules(energy, 1u << IPW_DOMAIN_GPU | 1u << IPW_DOMAIN_CPU, &lo, &hi) ==
                15);
    assert_true(isnan(lo) && isnan(hi));
    assert_true(isnan(ipw_compare_joules(energy, 1u << IPW_DOMAIN_DRAM, &lo, &hi)));
    assert_true(isnan(ipw_compare_joules(energy, 0, &lo, &hi)));
}

static void written_and_printed(void **state)
{
    struct ipw_compare_run a = {0}, b = {0};
    struct ipw_buf json = IPW_BUF(IPW_MIB), text = IPW_BUF(IPW_MIB);
    const struct ipw_json *pairs_of;
    struct ipw_compare c;
    struct ipw_json *doc;

    (void)state;
    for (int i = 0; i < 4; i++) {
        char id[2] = {(char)('a' + i), 0};

        add(&a, made(id, 1, 10, 100 + i, 50), i, 0);
        add(&b, made(id, 1, 12, 200 + 2 * i, 50), i, 0);
    }
    ipw_compare_make(&c, &a, &b);
    ipw_compare_write(&json, &c, "runs/one", "runs/two");
    assert_int_equal(ipw_json_parse(&doc, ipw_buf_str(&json), json.len, NULL, NULL), 0);
    pairs_of = ipw_json_get(doc, "pairs");
    assert_int_equal(ipw_json_count(pairs_of), 4);
    assert_string_equal(ipw_json_str(ipw_json_get(ipw_json_first(pairs_of), "query_id"), ""), "a");
    ipw_json_free(doc);
    ipw_compare_print(&text, &c, "runs/one", "runs/two", true, false);
    assert_non_null(strstr(ipw_buf_str(&text), "runs/one"));
    assert_non_null(strstr(ipw_buf_str(&text), "  +102 J [+99, +104]    significant"));
    assert_null(strchr(ipw_buf_str(&text), '\x1b'));
    ipw_buf_clear(&text);
    ipw_compare_print(&text, &c, "runs/\x1b[31mone", "runs/two", false, false);
    assert_null(strchr(ipw_buf_str(&text), '\x1b'));
    ipw_buf_release(&json);
    ipw_buf_release(&text);
    release(&c, &a, &b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pairs),    cmocka_unit_test(repeats_of_one_epoch),
        cmocka_unit_test(verdicts), cmocka_unit_test(unknown_figures),
        cmocka_unit_test(bounds),   cmocka_unit_test(written_and_printed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
