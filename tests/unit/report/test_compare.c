/* Two runs beside each other: joules with their bounds, and each verdict. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fixture.h"
#include "report/compare.h"

#define assert_near(a, b) assert_true(fabs((double)(a) - (double)(b)) <= 1e-9)

/* A query of `turns` turns that took `j` joules each, on the processor, give or take `by`. */
static void put(struct ipw_compare_run *run, const char *id, int epoch, int index, int turns,
                double j, double by)
{
    struct made m = {.id = id,
                     .outcome = "answered",
                     .resolved = 1,
                     .turns = turns,
                     .in = 10,
                     .out = 20,
                     .wall_s = turns,
                     .gpu_j = NAN,
                     .cpu_j = turns * j,
                     .provenance = IPW_PROV_MEASURED};
    struct ipw_query_loaded loaded = {.details = {.epoch = epoch, .is_resolved = 1}};
    struct ipw_query_trace *t = &loaded.trace;

    make_trace(t, &m, index);
    for (int i = -1; i < turns; i++) {
        struct ipw_figure *f = &(i < 0 ? t->energy : t->turns[i].energy)[IPW_DOMAIN_CPU];

        f->lo_j = f->j - (i < 0 ? turns : 1) * by;
        f->hi_j = f->j + (i < 0 ? turns : 1) * by;
        if (i < 0) continue;
        t->turns[i].start_ns = i * IPW_NS_PER_S;
        t->turns[i].end_ns = (i + 1) * IPW_NS_PER_S;
        t->turns[i].input_tokens = 10;
        t->turns[i].output_tokens = 20 + i;
    }
    ipw_compare_add(run, &loaded);
    ipw_query_trace_release(t);
}

static void joules_and_bounds(void **state)
{
    struct ipw_compare_run a = {0}, b = {0};
    struct ipw_compare c = {0};
    const struct ipw_compare_row *turns, *queries;
    double lo, hi;

    (void)state;
    for (int i = 0; i < 4; i++) {
        char id[8];

        snprintf(id, sizeof id, "q%d", i);
        put(&a, id, 0, i, 2, 10 + i, 0.5);
        put(&b, id, 0, i, 2, 14 + 2 * i, 0.25);
    }
    ipw_compare_make(&c, &a, &b);
    queries = &c.rows[IPW_COMPARE_CPU_J];
    turns = &c.rows[IPW_COMPARE_TURN_J];
    assert_int_equal(queries->pairs, 4);
    assert_int_equal(turns->pairs, 8);
    assert_int_equal(turns->tasks, 4);
    assert_near(queries->a, 2 * 11.5);
    for (int i = 0; i < 2; i++) { /* the second began a second later */
        assert_near(c.pairs[0][0]->turns[i].seconds, 1);
        assert_int_equal(c.pairs[0][0]->turns[i].output_tokens, 20 + i);
    }
    assert_near(turns->a, 11.5);
    assert_near(turns->b, 17);
    assert_near(turns->a_lo, 11);
    assert_near(turns->a_hi, 12);
    assert_near(turns->b_lo, 16.75);
    assert_near(turns->b_hi, 17.25);
    /* The readings' own: from one's highest to the other's lowest. */
    assert_near(turns->difference_lo, 16.75 - 12);
    assert_near(turns->difference_hi, 17.25 - 11);
    assert_near(turns->difference.mean, 5.5);
    assert_string_equal(turns->verdict, "higher");
    assert_string_equal(c.rows[IPW_COMPARE_GPU_J].verdict, "unknown");
    assert_true(isnan(c.rows[IPW_COMPARE_GPU_J].a));
    assert_string_equal(c.rows[IPW_COMPARE_OUTPUT].verdict, "same");
    assert_near(ipw_compare_joules(c.pairs[1][3]->turns[1].energy, c.basis, &lo, &hi), 20);
    assert_near(lo, 19.75);
    assert_near(hi, 20.25);
    /* What one of the devices does not tell is not known of the sum. */
    assert_true(
        isnan(ipw_compare_joules(c.pairs[1][3]->energy, c.basis | 1u << IPW_DOMAIN_GPU, &lo, &hi)));
    ipw_compare_free(&c);
    ipw_compare_release(&a);
    ipw_compare_release(&b);
}

static const char *verdict_of(const double *b, int n)
{
    struct ipw_compare_run runs[2] = {0};
    struct ipw_compare c = {0};
    const char *verdict;

    for (int i = 0; i < n; i++) {
        char id[8];

        snprintf(id, sizeof id, "q%d", i);
        put(&runs[0], id, 0, i, 1, 10, 0);
        put(&runs[1], id, 0, i, 1, b[i], 0);
    }
    ipw_compare_make(&c, &runs[0], &runs[1]);
    verdict = c.rows[IPW_COMPARE_JOULES].verdict;
    ipw_compare_free(&c);
    ipw_compare_release(&runs[0]);
    ipw_compare_release(&runs[1]);
    return verdict;
}

static void verdicts(void **state)
{
    (void)state;
    assert_string_equal(verdict_of((double[]){12, 13}, 2), "too_few");
    assert_string_equal(verdict_of((double[]){12, 13, 12.5}, 3), "higher");
    assert_string_equal(verdict_of((double[]){8, 7, 7.5}, 3), "lower");
    assert_string_equal(verdict_of((double[]){10, 10, 10}, 3), "same");
    assert_string_equal(verdict_of((double[]){12, 8, 10.5, 9}, 4), "not_shown");
}

/* The columns of the widest line. */
static size_t widest(const char *text)
{
    size_t most = 0, n = 0;

    for (; *text; text++) {
        if (*text == '\n')
            n = 0;
        else if (((unsigned char)*text & 0xC0) != 0x80)
            n++;
        most = n > most ? n : most;
    }
    return most;
}

/* A task with many turns counts as much as one with few in the means too: else A, B and B - A of a
 * row do not fit together.  Each turn of --turns says which one it is; a terminal holds the
 * lines. */
static void each_task_counts_once(void **state)
{
    struct ipw_compare_run a = {0}, b = {0};
    struct ipw_compare c = {0};
    struct ipw_buf text = IPW_BUF(IPW_MIB);
    const struct ipw_compare_row *turns;

    (void)state;
    put(&a, "68f700f5-b02b-4dc6", 0, 0, 4, 10, 1);
    put(&a, "s", 0, 1, 1, 40, 1);
    put(&a, "t", 0, 2, 1, 40, 1);
    put(&b, "68f700f5-b02b-4dc6", 0, 0, 4, 16, 1);
    put(&b, "s", 0, 1, 1, 41, 1);
    put(&b, "t", 0, 2, 1, 41.5, 1);
    ipw_compare_make(&c, &a, &b);
    turns = &c.rows[IPW_COMPARE_TURN_J];
    assert_int_equal(turns->pairs, 6);
    assert_int_equal(turns->tasks, 3);
    assert_near(turns->a, 30);
    assert_near(turns->a_lo, 29);
    assert_near(turns->a_hi, 31);
    assert_near(turns->b, 98.5 / 3);
    assert_near(turns->difference.mean, turns->b - turns->a);
    ipw_compare_print(&text, &c, "a", "b", true, false);
    assert_non_null(strstr(ipw_buf_str(&text), "\n  68f700f… 4    10.0 J    16.0 J"));
    assert_non_null(strstr(ipw_buf_str(&text), "no significant difference"));
    assert_true(widest(ipw_buf_str(&text)) <= 80);
    ipw_buf_release(&text);
    ipw_compare_free(&c);
    ipw_compare_release(&a);
    ipw_compare_release(&b);
}

/* One query on each side whose turns are given by their joules; what is NAN is not known. */
static void put_turns(struct ipw_compare_run *run, const char *id, int index, const double *j,
                      int n, double seconds, int64_t tokens)
{
    struct ipw_query_loaded loaded = {.details = {.is_resolved = -1}};
    struct made m = {.id = id,
                     .outcome = "answered",
                     .turns = n,
                     .in = tokens,
                     .out = tokens,
                     .wall_s = seconds,
                     .gpu_j = NAN,
                     .cpu_j = 1,
                     .provenance = IPW_PROV_MEASURED};
    double sum = 0;

    make_trace(&loaded.trace, &m, index);
    for (int i = 0; i < n; i++) {
        loaded.trace.turns[i].energy[IPW_DOMAIN_CPU] = figure(j[i], IPW_PROV_MEASURED);
        loaded.trace.turns[i].input_tokens = loaded.trace.turns[i].output_tokens = tokens;
        loaded.trace.turns[i].end_ns = ipw_s_to_ns(seconds / n);
        sum += j[i];
    }
    loaded.trace.energy[IPW_DOMAIN_CPU] = figure(sum, IPW_PROV_MEASURED);
    ipw_compare_add(run, &loaded);
    ipw_query_trace_release(&loaded.trace);
}

static char *printed(const double *a, const double *b, int tasks, int64_t tokens)
{
    struct ipw_compare_run runs[2] = {0};
    struct ipw_compare c = {0};
    struct ipw_buf text = IPW_BUF(IPW_MIB);

    for (int i = 0; i < tasks; i++) {
        char id[8];

        snprintf(id, sizeof id, "q%d", i);
        put_turns(&runs[0], id, i, a, 1, 2, tokens);
        put_turns(&runs[1], id, i, b, 1, 2, tokens);
    }
    ipw_compare_make(&c, &runs[0], &runs[1]);
    ipw_compare_print(&text, &c, "a", "b", true, false);
    ipw_compare_free(&c);
    ipw_compare_release(&runs[0]);
    ipw_compare_release(&runs[1]);
    return ipw_buf_take(&text, NULL);
}

static void assert_prints(double a, double b, int tasks, int64_t tokens, const char *what)
{
    char *text = printed(&a, &b, tasks, tokens);

    if (!strstr(text, what)) fail_msg("%s is not in\n%s", what, text);
    assert_true(widest(text) <= 80);
    free(text);
}

/* From microjoules to megajoules; nothing is made up of what is not known. */
static void sizes_and_what_is_not_known(void **state)
{
    const double a[] = {5, NAN, 7}, b[] = {6, 8};
    struct ipw_compare_run runs[2] = {0};
    struct ipw_compare c = {0};
    struct ipw_buf text = IPW_BUF(IPW_MIB);

    (void)state;
    assert_prints(2e6, 5e6, 3, 10, "+3.00 MJ");
    assert_prints(2e3, 5e3, 3, 10, "+3.00 kJ");
    assert_prints(2e-3, 5e-3, 3, 10, "+3.00 mJ");
    assert_prints(2e-6, 5e-6, 3, 10, "+3.00 uJ");
    assert_prints(2, 2, 3, 10, "the same");
    assert_prints(2, 3, 1, 10, "1 query and 1 turn in both");
    assert_prints(2, 3, 1, 10, "too few tasks");
    assert_prints(2, 3, 2, 123456, "   123456 ");
    assert_prints(NAN, NAN, 2, -1, "no device was measured in both");
    /* three turns beside two: those that both have */
    put_turns(&runs[0], "x", 0, a, 3, 6, -1);
    put_turns(&runs[1], "x", 0, b, 2, 4, 10);
    put_turns(&runs[1], "y", 1, b, 2, 4, 10);
    ipw_compare_make(&c, &runs[0], &runs[1]);
    ipw_compare_print(&text, &c, "a", "b", true, true);
    assert_non_null(strstr(ipw_buf_str(&text), "; only in A 0, only in B 1"));
    ipw_buf_clear(&text);
    ipw_compare_write(&text, &c, "a", "b");
    assert_non_null(strstr(ipw_buf_str(&text), "\"b\":null,\"turn_index\":2"));
    assert_non_null(strstr(ipw_buf_str(&text), "\"input_tokens\":null"));
    assert_non_null(strstr(ipw_buf_str(&text), "\"output_tokens\":10"));
    ipw_buf_release(&text);
    ipw_compare_free(&c);
    ipw_compare_release(&runs[0]);
    ipw_compare_release(&runs[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(joules_and_bounds),
        cmocka_unit_test(each_task_counts_once),
        cmocka_unit_test(verdicts),
        cmocka_unit_test(sizes_and_what_is_not_known),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
