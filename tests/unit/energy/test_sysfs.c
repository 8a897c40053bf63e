/* What every source reads through: numbers and words of kernel text, bus ids, lists, notes. */
#include "energy/sources/sysfs.h"

#include "unit/energy/tree.h"
#include "unit/unit.h"

static void test_09_signed(void **state)
{
    static const struct {
        const char *text;
        bool good;
        int64_t value;
    } cases[] = {
        {"0\n", true, 0},
        {"-0\n", true, 0},
        {"-5\n", true, -5},
        {"1500000", true, 1500000},
        {"-9223372036854775807\n", true, -INT64_MAX},
        {"-9223372036854775808\n", false, 0},
        {"--5", false, 0},
        {"-", false, 0},
        {"- 5", false, 0},
        {"", false, 0},
        {"5-", false, 0},
        {"+5", false, 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t v = 0;
        bool good = ipw_sysfs_parse_signed(&v, cases[i].text, strlen(cases[i].text));
        if (good != cases[i].good || v != cases[i].value) fail_msg("'%s'", cases[i].text);
    }
}

static void test_50_noise(void **state)
{
    uint64_t seed = 50;

    (void)state;
    for (int i = 0; i < 200000; i++) {
        static const char alphabet[] = "0123456789-+ .\nexnNaI";
        char text[24];
        size_t n = test_random(&seed) % sizeof text;
        int64_t v = 0;
        for (size_t k = 0; k < n; k++) {
            text[k] = alphabet[test_random(&seed) % (sizeof alphabet - 1)];
        }
        assert_true(ipw_sysfs_parse(text, n) >= -1);
        if (ipw_sysfs_parse_signed(&v, text, n)) {
            /* What is a number reads back as the same one. */
            char *end;
            long long same;
            text[n < sizeof text ? n : n - 1] = '\0';
            same = strtoll(text, &end, 10);
            if (n < sizeof text) assert_true(v == same && (*end == '\0' || *end == '\n'));
        }
    }
}

static void test_lines(void **state)
{
    char out[16];

    (void)state;
    put("a", "word\nmore\n");
    put("long", "123456789012345\n");
    put("longer", "1234567890123456\n");
    put("empty", "");
    put("blank", "\n");
    put("n", "42\n");
    put_unreadable("dir");
    assert_true(ipw_sysfs_line(out, sizeof out, tree_root, "a"));
    assert_string_equal(out, "word");
    assert_false(ipw_sysfs_line(out, sizeof out, tree_root, "long")); /* no room for its end */
    assert_false(ipw_sysfs_line(out, sizeof out, tree_root, "longer"));
    assert_false(ipw_sysfs_line(out, sizeof out, tree_root, "empty"));
    assert_false(ipw_sysfs_line(out, sizeof out, tree_root, "blank"));
    assert_false(ipw_sysfs_line(out, sizeof out, tree_root, "dir"));
    assert_false(ipw_sysfs_line(out, sizeof out, tree_root, "none"));
    assert_int_equal(ipw_sysfs_number(tree_root, "n"), 42);
    assert_int_equal(ipw_sysfs_number(tree_root, "a"), -1);
    assert_int_equal(ipw_sysfs_number(tree_root, "none"), -1);
}

static void test_lists(void **state)
{
    char **names;

    (void)state;
    put("hwmon10/name", "x");
    put("hwmon2/name", "x");
    put("hwmon0/name", "x");
    put("other/name", "x");
    put(".hidden", "x");
    names = ipw_sysfs_list(tree_root, "hwmon");
    assert_string_equal(names[0], "hwmon0");
    assert_string_equal(names[1], "hwmon2");
    assert_string_equal(names[2], "hwmon10");
    assert_null(names[3]);
    ipw_sysfs_free_list(names);
    names = ipw_sysfs_list(tree_root, "none");
    assert_non_null(names);
    assert_null(names[0]);
    ipw_sysfs_free_list(names);
    assert_null(ipw_sysfs_list("/nonexistent", ""));
    ipw_sysfs_free_list(NULL);
}

static void test_bus_ids(void **state)
{
    static const struct {
        const char *text, *canonical; /* NULL: it is none */
    } cases[] = {
        {"01:00.0", "0000:01:00.0"},
        {"0000:01:00.0", "0000:01:00.0"},
        {"00000000:C1:1F.7", "0000:c1:1f.7"},
        {"00010000:01:00.0", "10000:01:00.0"}, /* behind a VMD */
        {"01:00", NULL},
        {"01:00.8", NULL},
        {"01:00.00", NULL},
        {"1:00.0", NULL},
        {"001:00.0", NULL},
        {"10000:e1:00.0", "10000:e1:00.0"},
        {"03020000:c1:00.0", "3020000:c1:00.0"},
        {"000000000:01:00.0", NULL},
        {"0000:01:00.0 ", NULL},
        {"", NULL},
        {"GPU-01:00.0", NULL},
        {"0000", NULL},
        {"zz:00.0", NULL},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char id[IPW_PCI_ID_BYTES] = "";
        bool good = ipw_pci_canonical(id, cases[i].text);
        if (good != (cases[i].canonical != NULL)) fail_msg("'%s'", cases[i].text);
        assert_int_equal(ipw_pci_is_id(cases[i].text), good);
        if (!good) continue;
        assert_string_equal(id, cases[i].canonical);
        assert_true(ipw_pci_same_id(id, cases[i].text));
    }
    assert_true(ipw_pci_same_id("C1:00.0", "0000:c1:00.0"));
    assert_false(ipw_pci_same_id("C1:00.0", "0001:c1:00.0"));
    assert_false(ipw_pci_same_id("C1:00.0", "c1:00.1"));
    assert_false(ipw_pci_same_id("", ""));
}

static void test_words(void **state)
{
    const char *list = " a,, b c ,0123456789abcdef,";
    char word[8];

    (void)state;
    assert_true(ipw_sysfs_word(word, sizeof word, &list));
    assert_string_equal(word, "a");
    assert_true(ipw_sysfs_word(word, sizeof word, &list));
    assert_string_equal(word, "b c");
    assert_true(ipw_sysfs_word(word, sizeof word, &list));
    assert_string_equal(word, "0123456");
    assert_false(ipw_sysfs_word(word, sizeof word, &list));
    assert_false(ipw_sysfs_word(word, sizeof word, &list));
    list = NULL;
    assert_false(ipw_sysfs_word(word, sizeof word, &list));
}

static void test_notes_and_names(void **state)
{
    struct ipw_source source = {0};
    struct ipw_channel c[4] = {{.name = "a"}, {.name = "a"}, {.name = "a"}, {.name = "a#2"}};

    (void)state;
    ipw_source_add_note(&source, "one %d", 1);
    ipw_source_add_note(&source, "two");
    assert_string_equal(source.note, "one 1; two");
    for (int i = 0; i < 50; i++) ipw_source_add_note(&source, "a remark of some length");
    assert_int_equal(strlen(source.note), sizeof source.note - 1);
    for (size_t i = 0; i < 4; i++) ipw_channel_unique(c, i, i);
    assert_string_equal(c[0].name, "a");
    assert_string_equal(c[1].name, "a#2");
    assert_string_equal(c[2].name, "a#3");
    assert_string_equal(c[3].name, "a#2#2");
}

UNIT(sysfs)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_09_signed),
        cmocka_unit_test(test_50_noise),
        WITH_TREE(test_lines),
        WITH_TREE(test_lists),
        cmocka_unit_test(test_bus_ids),
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_notes_and_names),
    };

    return cmocka_run_group_tests(tests, note_fds, check_fds);
}
