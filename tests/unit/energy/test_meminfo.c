/* The machine's memory over a /proc of the test's own. */
#include "energy/sources/meminfo.h"

#include "unit/energy/tree.h"
#include "unit/unit.h"

static void the_used_memory_is_a_metric(void **state)
{
    struct ipw_source *s;
    struct ipw_err err;
    int64_t used;

    (void)state;
    put("proc/meminfo", "MemTotal:        2048 kB\nMemFree:          100 kB\n"
                        "MemAvailable:     512 kB\nBuffers:            1 kB\n");
    assert_int_equal(ipw_meminfo_open(&s, tree_path("proc"), &err), 0);
    assert_int_equal(s->n_channels, 1);
    assert_string_equal(s->channels[0].name, IPW_MEMINFO_USED);
    assert_string_equal(s->channels[0].unit, "bytes");
    assert_int_equal(s->channels[0].kind, IPW_CHANNEL_METRIC);
    assert_false(s->channels[0].in_sum);
    s->read(s, &used);
    assert_int_equal(used, (int64_t)1536 * 1024 * 1000);
    put("proc/meminfo", "MemTotal:        2048 kB\nMemAvailable:    4096 kB\n");
    s->read(s, &used);
    assert_int_equal(used, IPW_NO_VALUE);
    s->close(s);
}

static void without_the_counts_it_is_not_there(void **state)
{
    struct ipw_source *s;
    struct ipw_err err;

    (void)state;
    assert_int_equal(ipw_meminfo_open(&s, tree_path("nowhere"), &err), IPW_EUNSUPPORTED);
    assert_null(s);
    put("proc/meminfo", "MemTotal:        2048 kB\n");
    assert_int_equal(ipw_meminfo_open(&s, tree_path("proc"), &err), IPW_EUNSUPPORTED);
    assert_non_null(strstr(err.text, "meminfo: no MemTotal and MemAvailable"));
}

UNIT(meminfo)
{
    const struct CMUnitTest tests[] = {
        WITH_TREE(the_used_memory_is_a_metric),
        WITH_TREE(without_the_counts_it_is_not_there),
    };
    return cmocka_run_group_tests(tests, note_fds, check_fds);
}
