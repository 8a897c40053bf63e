/* The keys of the trace that a verdict sets, and those that it does not. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "run/grade_patch.h"
#include "unit/unit.h"

static struct ipw_query_trace trace;

static struct ipw_grade_found found(enum ipw_grader grader, bool official, const char *result)
{
    trace = (struct ipw_query_trace){.input_tokens = 5, .output_tokens = -1};
    trace.energy[IPW_DOMAIN_GPU] = (struct ipw_figure){.known = true, .j = 3};
    trace.power_mean_w[IPW_DOMAIN_GPU] = 6;
    return (struct ipw_grade_found){.grader = grader,
                                    .official = official,
                                    .asked = true,
                                    .judge_model = "j",
                                    .result = result,
                                    .resolved = -1,
                                    .trace = &trace,
                                    .wall_ns = 500000000,
                                    .query_gpu_j = 4,
                                    .query_cpu_j = NAN};
}

static void assert_patch(const struct ipw_grade_found *f, const char *want)
{
    struct ipw_buf out = IPW_BUF(4096);

    ipw_grade_patch(&out, f);
    assert_string_equal(ipw_buf_str(&out), want);
    ipw_buf_release(&out);
}

#define ASKED                                                                                      \
    "\"judge_cpu_energy_joules\":null,\"judge_cpu_power_avg_watts\":null,"                         \
    "\"judge_gpu_energy_joules\":3.0,\"judge_gpu_power_avg_watts\":6.0,\"judge_input_tokens\":5,"  \
    "\"judge_model\":\"j\","
#define TASK "\"total_task_cpu_energy_joules\":null,\"total_task_gpu_energy_joules\":7.0"

static void an_opinion_has_keys_of_its_own(void **state)
{
    struct ipw_grade_found f =
        found(IPW_GRADER_JUDGE, false, "{\"asked\":2,\"text\":\"yes\",\"verdict\":\"correct\"}");

    (void)state;
    assert_patch(&f,
                 "{\"judge_asked\":2," ASKED "\"judge_text\":\"yes\",\"judge_verdict\":\"correct\","
                 "\"judge_wall_clock_s\":0.5," TASK "}");
    f.no_texts = true;
    assert_patch(&f, "{\"judge_asked\":2," ASKED
                     "\"judge_verdict\":\"correct\",\"judge_wall_clock_s\":0.5," TASK "}");
}

static void the_official_verdict_is_the_score(void **state)
{
    struct ipw_grade_found f =
        found(IPW_GRADER_JUDGE, true, "{\"asked\":1,\"verdict\":\"not_attempted\"}");

    (void)state;
    assert_patch(&f, "{\"accuracy_score\":0.0,\"is_resolved\":false,\"judge_asked\":1," ASKED
                     "\"judge_verdict\":\"not_attempted\",\"judge_wall_clock_s\":0.5,"
                     "\"score_metadata\":{\"rule\":\"judge\",\"verdict\":\"not_attempted\"}," TASK
                     ",\"unscorable_reason\":null}");
}

static void without_a_verdict_it_is_unscored_and_not_wrong(void **state)
{
    struct ipw_grade_found f = found(IPW_GRADER_JUDGE, true, NULL);

    (void)state;
    f.asked = false;
    f.why = "not asked: refused";
    assert_patch(&f, "{\"accuracy_score\":null,\"is_resolved\":null,"
                     "\"judge_cpu_energy_joules\":null,\"judge_cpu_power_avg_watts\":null,"
                     "\"judge_gpu_energy_joules\":null,\"judge_gpu_power_avg_watts\":null,"
                     "\"judge_model\":\"j\",\"judge_reason\":\"not asked: refused\","
                     "\"judge_wall_clock_s\":null,\"score_metadata\":{\"rule\":\"judge\"},"
                     "\"total_task_cpu_energy_joules\":null,\"total_task_gpu_energy_joules\":4.0,"
                     "\"unscorable_reason\":\"judge: not asked: refused\"}");
}

static void tests_of_code_set_the_score_alone(void **state)
{
    struct ipw_grade_found f = found(IPW_GRADER_CODE, true, "{\"result\":\"passed\"}");

    (void)state;
    assert_patch(&f, "{\"accuracy_score\":1.0,\"is_resolved\":true,\"score_metadata\":{\"result\":"
                     "\"passed\",\"rule\":\"code\"},\"unscorable_reason\":null}");
    f.result = "{\"output\":\"AssertionError\",\"result\":\"failed\"}";
    assert_patch(&f, "{\"accuracy_score\":0.0,\"is_resolved\":false,\"score_metadata\":{\"output\":"
                     "\"AssertionError\",\"result\":\"failed\",\"rule\":\"code\"},"
                     "\"unscorable_reason\":null}");
    f.result = "{\"reason\":\"no bubblewrap\"}";
    assert_patch(&f, "{\"accuracy_score\":null,\"is_resolved\":null,\"score_metadata\":{\"rule\":"
                     "\"code\"},\"unscorable_reason\":\"tests: no bubblewrap\"}");
}

UNIT(grade_patch)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_opinion_has_keys_of_its_own),
        cmocka_unit_test(the_official_verdict_is_the_score),
        cmocka_unit_test(without_a_verdict_it_is_unscored_and_not_wrong),
        cmocka_unit_test(tests_of_code_set_the_score_alone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
