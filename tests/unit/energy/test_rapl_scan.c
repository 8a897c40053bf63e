/* What powercap shows is not quite what the register counted: energy/sources/rapl.h. */
#include "energy/sources/rapl.h"
#include "unit/energy/tree.h"
#include "unit/unit.h"

/* The kernel cuts the unit to whole nanojoules; its range tells which it was, and the truth comes
 * back: 15258 for 15258.789, 61035 for 61035.156.  Dram's 15.3 uJ is by its book, the last was not
 * cut. */
static void test_cut_unit_is_multiplied_back(void **state)
{
    static const struct {
        const char *range;
        int64_t shown, truth, modulus;
    } cases[] = {
        {"65532610987\n", INT64_C(15258000000), INT64_C(15258789062), INT64_C(65536000000)},
        {"65532610987\n", INT64_C(65532610987), INT64_C(65535999984), INT64_C(65536000000)},
        {"262143328850\n", INT64_C(61035000000), INT64_C(61035156250), INT64_C(262144000000)},
        {"262143328850\n", 0, 0, INT64_C(262144000000)},
        {"65712999613\n", 15300000, 15300000, INT64_C(65712999628)},
        {"262144000000\n", 61035156, 61035156, INT64_C(262144000061)},
        {"9223372036854775807\n", 77, 77, 0},
    };

    (void)state;
    put("intel-rapl:0/name", "package-0\n");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct ipw_source_place place = {.powercap = tree_root};
        struct ipw_source *s;
        int64_t shown;

        put("intel-rapl:0/max_energy_range_uj", cases[i].range);
        put_number("intel-rapl:0/energy_uj", cases[i].shown);
        assert_int_equal(ipw_rapl_open(&s, &place, "rapl", NULL), 0);
        assert_int_equal(s->n_channels, 1);
        s->read(s, &shown);
        assert_int_equal(shown, cases[i].truth);
        if (cases[i].modulus) assert_int_equal(s->channels[0].modulus_uj, cases[i].modulus);
        s->close(s);
    }
}

UNIT(rapl_scan)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_cut_unit_is_multiplied_back, tree_setup,
                                        tree_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
