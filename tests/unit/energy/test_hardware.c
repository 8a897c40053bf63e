/* The facts of the hardware: texts of files below two roots, null where there is none. */
#include "energy/hardware.h"

#include <string.h>

#include "json/json.h"
#include "unit/energy/energy_test.h"
#include "unit/unit.h"

static void facts_of_a_tree(void **state)
{
    struct ipw_channel gpus[2] = {{.name = "gpu0", .domain = IPW_DOMAIN_GPU},
                                  {.name = "gpu1", .domain = IPW_DOMAIN_GPU}};
    struct ipw_source sources[2] = {{.name = "nvml", .channels = gpus, .n_channels = 2},
                                    {.name = "nvml", .channels = gpus, .n_channels = 1}};
    struct ipw_source_set set = {.sources = {&sources[0], &sources[1]}, .n = 2};
    struct ipw_buf out = IPW_BUF(IPW_MIB);
    struct ipw_json *doc;

    (void)state;
    ipw_hardware_facts(&out, NULL, "/nonexistent", &set, NULL);
    assert_int_equal(ipw_json_parse(&doc, ipw_buf_str(&out), out.len, NULL, NULL), 0);
    assert_non_null(strstr(ipw_json_str(ipw_json_get(doc, "cpuinfo"), ""), "processor"));
    assert_true(ipw_json_is_null(ipw_json_get(doc, "vendor")));
    assert_true(ipw_json_is_null(ipw_json_get(doc, "self_test")));
    assert_true(ipw_json_is_null(ipw_json_get(doc, "gpu_memory_bytes")));
    assert_int_equal(ipw_json_count(ipw_json_get(doc, "channels")), 3);
    assert_non_null(strstr(ipw_buf_str(&out), "\"source_numbers\":[0,0,1]"));
    ipw_json_free(doc);
    ipw_buf_release(&out);
}

UNIT(hardware)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(facts_of_a_tree)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
