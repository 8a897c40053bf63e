#include <fcntl.h>
#include <ftw.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "energy/sources/rapl.h"
#include "energy/sources/sysfs.h"

#include "unit/energy/energy_test.h"
#include "unit/unit.h"

/* A powercap tree in a folder of its own. */
struct tree {
    char root[64];
};

static void put(const struct tree *tree, const char *zone, const char *file, const char *text)
{
    char path[256];
    FILE *f;

    snprintf(path, sizeof path, "%s/%s/%s", tree->root, zone, file);
    f = fopen(path, "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static void energy(const struct tree *tree, const char *zone, int64_t uj)
{
    char text[32];

    snprintf(text, sizeof text, "%lld\n", (long long)uj);
    put(tree, zone, "energy_uj", text);
}

static void zone(const struct tree *tree, const char *id, const char *name, int64_t uj)
{
    char path[256], text[64];

    snprintf(path, sizeof path, "%s/%s", tree->root, id);
    assert_int_equal(mkdir(path, 0755), 0);
    snprintf(text, sizeof text, "%s\n", name);
    put(tree, id, "name", text);
    snprintf(text, sizeof text, "%lld\n", (long long)RANGE_61);
    put(tree, id, "max_energy_range_uj", text);
    energy(tree, id, uj);
}

static int setup(void **state)
{
    static struct tree tree;

    snprintf(tree.root, sizeof tree.root, "/tmp/ipw-rapl-XXXXXX");
    assert_non_null(mkdtemp(tree.root));
    assert_int_equal(chmod(tree.root, 0755), 0);
    *state = &tree;
    return 0;
}

static int drop(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st, (void)kind, (void)at;
    return remove(path);
}

static int teardown(void **state)
{
    const struct tree *tree = *state;

    return nftw(tree->root, drop, 16, FTW_DEPTH | FTW_PHYS);
}

static struct ipw_source *open_tree(const struct tree *tree)
{
    struct ipw_source *source;
    struct ipw_err err = {0};

    if (ipw_rapl_open(&source, &(struct ipw_source_place){.powercap = tree->root}, "rapl", &err))
        fail_msg("%s", err.text);
    assert_string_equal(source->name, "rapl");
    return source;
}

static const struct ipw_channel *channel(const struct ipw_source *s, const char *name, size_t *at)
{
    for (size_t i = 0; i < s->n_channels; i++) {
        if (strcmp(s->channels[i].name, name)) continue;
        if (at) *at = i;
        return &s->channels[i];
    }
    fail_msg("no channel %s", name);
    return NULL;
}

static int64_t value(struct ipw_source *s, const char *name)
{
    int64_t values[64];
    size_t i = 0;

    channel(s, name, &i);
    s->read(s, values);
    return values[i];
}

static void test_09_texts(void **state)
{
    static const struct {
        const char *text;
        int64_t value;
    } cases[] = {
        {"0", 0},
        {"0\n", 0},
        {"123456789\n", 123456789},
        {"000000001234567\n", 1234567},
        {"9223372036854775807\n", INT64_MAX},
        {"", -1},
        {"\n", -1},
        {"\n\n", -1},
        {"nan", -1},
        {"-5", -1},
        {"+5", -1},
        {" 5", -1},
        {"5 ", -1},
        {"5\n6\n", -1},
        {"5.5", -1},
        {"1e6", -1},
        {"0x10", -1},
        {"9223372036854775808", -1},
        {"18446744073709551615", -1},
        {"00000000000000000005", -1}, /* 20 digits */
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t v = ipw_sysfs_parse(cases[i].text, strlen(cases[i].text));
        if (v != cases[i].value) fail_msg("'%s' gives %lld", cases[i].text, (long long)v);
    }
    assert_int_equal(ipw_sysfs_parse("5\0", 2), -1);
}

/* Case 9 through the file, and 50: whatever it holds, a bad text is no reading. */
static void test_09_file_contents(void **state)
{
    const struct tree *tree = *state;
    struct ipw_source *s;
    static char long_text[3001];
    const char *bad[] = {"", "nan", "-5", "18446744073709551615\n", long_text, "\n", "12 34\n"};
    uint64_t seed = 50;

    memset(long_text, '7', 3000);
    zone(tree, "intel-rapl:0", "package-0", 1000);
    s = open_tree(tree);
    assert_int_equal(value(s, "package-0"), 1000);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        put(tree, "intel-rapl:0", "energy_uj", bad[i]);
        assert_true(value(s, "package-0") == IPW_NO_VALUE);
        energy(tree, "intel-rapl:0", 2000 + (int64_t)i);
        assert_int_equal(value(s, "package-0"), 2000 + (int64_t)i);
    }
    for (int i = 0; i < 2000; i++) {
        char noise[40];
        size_t n = test_random(&seed) % sizeof noise;
        int64_t v;
        for (size_t k = 0; k < n; k++) noise[k] = (char)test_random(&seed);
        v = ipw_sysfs_parse(noise, n);
        assert_true(v >= -1);
    }
    s->close(s);
}

/* Case 17: everything there is, and the sum covers each joule once. */
static void test_17_covering_set(void **state)
{
    const struct tree *tree = *state;
    struct ipw_source *s;
    static const struct {
        const char *name;
        enum ipw_domain domain;
        enum ipw_scope scope;
        bool in_sum;
        int64_t uj;
    } want[] = {
        {"mmio/package-0", IPW_DOMAIN_CPU, IPW_SCOPE_PACKAGE, false, 70},
        {"package-0", IPW_DOMAIN_CPU, IPW_SCOPE_PACKAGE, true, 10},
        {"package-0/core", IPW_DOMAIN_CPU, IPW_SCOPE_CORE, false, 20},
        {"package-0/uncore", IPW_DOMAIN_CPU, IPW_SCOPE_UNCORE, false, 30},
        {"package-0/dram", IPW_DOMAIN_DRAM, IPW_SCOPE_DRAM, true, 40},
        {"psys", IPW_DOMAIN_MACHINE, IPW_SCOPE_PLATFORM, false, 50},
        {"package-1", IPW_DOMAIN_CPU, IPW_SCOPE_PACKAGE, true, 60},
        {"package-1/dram", IPW_DOMAIN_DRAM, IPW_SCOPE_DRAM, true, 65},
        {"platform-1", IPW_DOMAIN_MACHINE, IPW_SCOPE_PLATFORM, false, 66},
    };

    zone(tree, "intel-rapl:0", "package-0", 10);
    zone(tree, "intel-rapl:0:0", "core", 20);
    zone(tree, "intel-rapl:0:1", "uncore", 30);
    zone(tree, "intel-rapl:0:2", "dram", 40);
    zone(tree, "intel-rapl:1", "psys", 50); /* not package 1: the name says so */
    zone(tree, "intel-rapl:2", "package-1", 60);
    zone(tree, "intel-rapl:2:0", "dram", 65);
    zone(tree, "intel-rapl:3", "platform-1", 66);
    zone(tree, "intel-rapl-mmio:0", "package-0", 70);
    s = open_tree(tree);
    assert_int_equal(s->n_channels, sizeof want / sizeof *want);
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        const struct ipw_channel *c = channel(s, want[i].name, NULL);
        assert_int_equal(c->domain, want[i].domain);
        assert_int_equal(c->scope, want[i].scope);
        assert_int_equal(c->in_sum, want[i].in_sum);
        assert_string_equal(c->unit, "uJ");
        assert_int_equal(c->kind, IPW_CHANNEL_COUNTER);
        assert_int_equal(c->modulus_uj, INT64_C(262144000000)); /* 2^32 counts of 2^-14 J */
        assert_int_equal(c->max_w, want[i].scope == IPW_SCOPE_PLATFORM ? 4000 : 1000);
        assert_int_equal(value(s, want[i].name), want[i].uj);
    }
    assert_string_equal(s->note, "");
    s->close(s);
}

static void test_17_mmio_alone_counts(void **state)
{
    const struct tree *tree = *state;
    struct ipw_source *s;

    zone(tree, "intel-rapl-mmio:0", "package-0", 70);
    s = open_tree(tree);
    assert_true(channel(s, "mmio/package-0", NULL)->in_sum);
    s->close(s);
}

/* The layout of /sys/devices/virtual/powercap: zones inside zones; and both at once, by links. */
static void test_nested_layout(void **state)
{
    const struct tree *tree = *state;
    struct ipw_source *s;
    char path[256];

    snprintf(path, sizeof path, "%s/intel-rapl", tree->root);
    assert_int_equal(mkdir(path, 0755), 0);
    zone(tree, "intel-rapl/intel-rapl:0", "package-0", 10);
    zone(tree, "intel-rapl/intel-rapl:0/intel-rapl:0:0", "dram", 20);
    snprintf(path, sizeof path, "%s/intel-rapl:0", tree->root);
    assert_int_equal(symlink("intel-rapl/intel-rapl:0", path), 0);
    snprintf(path, sizeof path, "%s/intel-rapl:0:0", tree->root);
    assert_int_equal(symlink("intel-rapl/intel-rapl:0/intel-rapl:0:0", path), 0);
    s = open_tree(tree);
    assert_int_equal(s->n_channels, 2);
    assert_int_equal(value(s, "package-0"), 10);
    assert_int_equal(value(s, "package-0/dram"), 20);
    s->close(s);
}

/* Case 18: two dies over one register count once; over two, both. */
static void test_18_die_twins(void **state)
{
    const struct tree *tree = *state;
    struct ipw_source *s;

    zone(tree, "intel-rapl:0", "package-0-die-0", 123456789);
    zone(tree, "intel-rapl:1", "package-0-die-1", 123456789);
    zone(tree, "intel-rapl:2", "package-0-die-2", 987654321);
    s = open_tree(tree);
    assert_true(channel(s, "package-0-die-0", NULL)->in_sum);
    assert_false(channel(s, "package-0-die-1", NULL)->in_sum);
    assert_true(channel(s, "package-0-die-2", NULL)->in_sum);
    assert_string_equal(s->note,
                        "package-0-die-1 shows the same register as package-0-die-0: counted once");
    s->close(s);
}

/* Case 21, and names that are not zones. */
static void test_21_names(void **state)
{
    const struct tree *tree = *state;
    struct ipw_source *s;

    zone(tree, "intel-rapl:a", "package-0-die-1", 10);
    zone(tree, "intel-rapl:a:1f", "dram", 20);
    zone(tree, "intel-rapl:b", "package-0-die-1", 30); /* the name again */
    zone(tree, "intel-rapl:xyz", "package-9", 40);
    zone(tree, "intel-rapl:", "package-9", 40);
    zone(tree, "dtpm", "package-9", 50);
    zone(tree, "intel-rapl:c", "", 60); /* no name */
    s = open_tree(tree);
    assert_int_equal(s->n_channels, 3);
    assert_int_equal(value(s, "package-0-die-1"), 10);
    assert_int_equal(value(s, "package-0-die-1/dram"), 20);
    assert_int_equal(value(s, "package-0-die-1#2"), 30);
    s->close(s);
}

static void test_limits_and_units(void **state)
{
    const struct tree *tree = *state;
    struct ipw_source *s;

    zone(tree, "intel-rapl:0", "package-0", 10);
    put(tree, "intel-rapl:0", "constraint_0_max_power_uw", "280000000\n");
    put(tree, "intel-rapl:0", "constraint_1_power_limit_uw", "350000000\n");
    zone(tree, "intel-rapl:0:0", "dram", 20);
    put(tree, "intel-rapl:0:0", "max_energy_range_uj", "65532610987\n");
    put(tree, "intel-rapl:0:0", "constraint_0_max_power_uw", "0\n");
    zone(tree, "intel-rapl:1", "package-1", 30);
    put(tree, "intel-rapl:1", "max_energy_range_uj", "nonsense\n");
    put(tree, "intel-rapl:1", "constraint_0_max_power_uw", "15000000\n");
    s = open_tree(tree);
    assert_int_equal(channel(s, "package-0", NULL)->max_w, 700);
    assert_int_equal(channel(s, "package-0/dram", NULL)->modulus_uj, INT64_C(65536000000));
    assert_int_equal(channel(s, "package-0/dram", NULL)->max_w, 700); /* as its package */
    assert_int_equal(channel(s, "package-1", NULL)->modulus_uj, 0);
    assert_int_equal(channel(s, "package-1", NULL)->max_w, 200);
    s->close(s);
}

static void test_nothing_there(void **state)
{
    const struct tree *tree = *state;
    struct ipw_source *s = (struct ipw_source *)1;
    struct ipw_err err = {0};
    char path[256], want[320];

    snprintf(path, sizeof path, "%s/nowhere", tree->root);
    assert_int_equal(ipw_rapl_open(&s, &(struct ipw_source_place){.powercap = path}, "rapl", &err),
                     IPW_EUNSUPPORTED);
    assert_null(s);
    snprintf(want, sizeof want, "no %s: no RAPL here", path);
    assert_string_equal(err.text, want);
    assert_int_equal(
        ipw_rapl_open(&s, &(struct ipw_source_place){.powercap = tree->root}, "rapl", &err),
        IPW_EUNSUPPORTED);
    snprintf(want, sizeof want, "no intel-rapl zone in %s", tree->root);
    assert_string_equal(err.text, want);
    assert_int_equal(
        ipw_rapl_open(&s, &(struct ipw_source_place){.powercap = tree->root}, "rapl", NULL),
        IPW_EUNSUPPORTED);
    zone(tree, "intel-rapl:0", "package-0", 10);
    snprintf(path, sizeof path, "%s/intel-rapl:0/energy_uj", tree->root);
    assert_int_equal(remove(path), 0);
    assert_int_equal(
        ipw_rapl_open(&s, &(struct ipw_source_place){.powercap = tree->root}, "rapl", &err),
        IPW_ENOTFOUND);
    assert_null(s);
    snprintf(want, sizeof want, "%s: No such file or directory", path);
    assert_string_equal(err.text, want);
    assert_int_equal(ipw_rapl_open(&s, &(struct ipw_source_place){.powercap = path}, "rapl", NULL),
                     IPW_EUNSUPPORTED); /* no folder either */
}

/* Cases 2 and 5 from the source's side: each socket has its own range, and its own modulus. */
static void test_02_05_ranges(void **state)
{
    const struct tree *tree = *state;
    struct ipw_source *s;

    zone(tree, "intel-rapl:0", "package-0", 10);
    zone(tree, "intel-rapl:1", "package-1", 20);
    put(tree, "intel-rapl:1", "max_energy_range_uj", "65532610987\n");
    s = open_tree(tree);
    assert_int_equal(channel(s, "package-0", NULL)->modulus_uj, INT64_C(262144000000));
    assert_int_equal(channel(s, "package-1", NULL)->modulus_uj, INT64_C(65536000000));
    energy(tree, "intel-rapl:0", 0); /* wraps alone */
    assert_int_equal(value(s, "package-0"), 0);
    assert_int_equal(value(s, "package-1"), 20);
    s->close(s);
}

/* A subzone whose package is not shown has no parent to be named after. */
static void test_orphan(void **state)
{
    const struct tree *tree = *state;
    struct ipw_source *s;

    zone(tree, "intel-rapl:4:0", "dram", 10);
    s = open_tree(tree);
    assert_int_equal(value(s, "dram"), 10);
    assert_true(channel(s, "dram", NULL)->in_sum);
    s->close(s);
}

/* Root reads everything: what a user sees is seen by a child that is one. */
static void as_user(void (*look)(const struct tree *tree), const struct tree *tree)
{
    pid_t child;
    int status;

    fflush(NULL);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        if (geteuid() == 0 && (setgid(65534) || setuid(65534))) _exit(3);
        look(tree);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

#define look_for(condition)                                                                        \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)

static void deny(const struct tree *tree, const char *id)
{
    char path[256];

    snprintf(path, sizeof path, "%s/%s/energy_uj", tree->root, id);
    assert_int_equal(chmod(path, 0400), 0);
    if (geteuid() != 0) assert_int_equal(chmod(path, 0), 0);
}

/* Its owner may write it again; who writes needs no more than that, root or not. */
static void allow(const struct tree *tree, const char *id)
{
    char path[256];

    snprintf(path, sizeof path, "%s/%s/energy_uj", tree->root, id);
    assert_int_equal(chmod(path, 0600), 0);
}

static void look_denied(const struct tree *tree)
{
    struct ipw_source *s;
    struct ipw_err err = {0};
    char want[512];

    look_for(ipw_rapl_open(&s, &(struct ipw_source_place){.powercap = tree->root}, "rapl", &err) ==
             IPW_EPERM);
    look_for(!s);
    snprintf(want, sizeof want,
             "%s/intel-rapl:0/energy_uj is not readable: chmod a+r "
             "%s/intel-rapl*/energy_uj (as root), or run as root",
             tree->root, tree->root);
    look_for(!strcmp(err.text, want));
}

/* Case 15: nothing readable: permission, and one line that says what to do. */
static void test_15_permission(void **state)
{
    const struct tree *tree = *state;

    zone(tree, "intel-rapl:0", "package-0", 10);
    zone(tree, "intel-rapl:0:0", "dram", 10);
    deny(tree, "intel-rapl:0");
    deny(tree, "intel-rapl:0:0");
    as_user(look_denied, tree);
}

static void look_partly_denied(const struct tree *tree)
{
    char want[200];
    struct ipw_source *s;
    int64_t values[4];

    look_for(ipw_rapl_open(&s, &(struct ipw_source_place){.powercap = tree->root}, "rapl", NULL) ==
             0);
    look_for(s->n_channels == 3);
    for (size_t i = 0; i < 3; i++) {
        look_for(s->channels[i].in_sum == (s->channels[i].domain == IPW_DOMAIN_DRAM));
    }
    snprintf(want, sizeof want,
             "no cpu energy: %s/intel-rapl:1/energy_uj: Permission denied (as root: chmod a+r it)",
             tree->root);
    look_for(!strcmp(s->note, want));
    s->read(s, values);
    look_for(values[0] == 10 && values[1] == 20 && values[2] == IPW_NO_VALUE);
    s->close(s);
}

/* One socket of two: a sum of the other alone would pass for the whole. */
static void test_15_part_of_a_domain(void **state)
{
    const struct tree *tree = *state;

    zone(tree, "intel-rapl:0", "package-0", 10);
    zone(tree, "intel-rapl:0:0", "dram", 20);
    zone(tree, "intel-rapl:1", "package-1", 30);
    deny(tree, "intel-rapl:1");
    as_user(look_partly_denied, tree);
}

/* Case 16: permission that is lost afterwards does not matter; a zone that went away and came back
 * is opened anew. */
static void look_kept(const struct tree *tree)
{
    struct ipw_source *s;
    int64_t v;

    look_for(ipw_rapl_open(&s, &(struct ipw_source_place){.powercap = tree->root}, "rapl", NULL) ==
             0);
    s->read(s, &v);
    look_for(v == 10);
    s->close(s);
}

static int64_t tick_ns;
static int64_t tick(void) { return tick_ns; }

static void test_16_descriptor_is_kept(void **state)
{
    const struct tree *tree = *state;
    struct ipw_source *s;
    char path[256];

    zone(tree, "intel-rapl:0", "package-0", 10);
    as_user(look_kept, tree);
    s = open_tree(tree);
    deny(tree, "intel-rapl:0");
    assert_int_equal(value(s, "package-0"), 10);
    allow(tree, "intel-rapl:0");
    energy(tree, "intel-rapl:0", 15);
    deny(tree, "intel-rapl:0");
    assert_int_equal(value(s, "package-0"), 15);
    s->now = tick;
    tick_ns = ipw_now_ns();
    allow(tree, "intel-rapl:0");
    /* The zone goes: its file reads empty for who still holds it, as sysfs fails then. */
    put(tree, "intel-rapl:0", "energy_uj", "");
    snprintf(path, sizeof path, "%s/intel-rapl:0/energy_uj", tree->root);
    assert_int_equal(remove(path), 0);
    energy(tree, "intel-rapl:0", 20); /* another file */
    for (int i = 0; i < 3; i++) {
        assert_true(value(s, "package-0") == IPW_NO_VALUE && s->lost[0]);
        tick_ns += IPW_NS_PER_S / 3;
    }
    tick_ns += 1;
    assert_int_equal(value(s, "package-0"), 20);
    assert_false(s->lost[0]);
    put(tree, "intel-rapl:0", "energy_uj", "");
    /* Not tried again within a second of the clock, and then it is. */
    assert_true(value(s, "package-0") == IPW_NO_VALUE);
    assert_int_equal(remove(path), 0);
    energy(tree, "intel-rapl:0", 30);
    assert_true(value(s, "package-0") == IPW_NO_VALUE && !s->lost[0]);
    tick_ns += IPW_NS_PER_S;
    assert_true(value(s, "package-0") == IPW_NO_VALUE && s->lost[0]);
    tick_ns += IPW_NS_PER_S;
    assert_int_equal(value(s, "package-0"), 30);
    /* What fails and is the same file goes on counting: no loss (case 8). */
    put(tree, "intel-rapl:0", "energy_uj", "");
    tick_ns += 2 * IPW_NS_PER_S;
    assert_true(value(s, "package-0") == IPW_NO_VALUE && !s->lost[0]);
    energy(tree, "intel-rapl:0", 35);
    assert_int_equal(value(s, "package-0"), 35);
    /* Gone, and not back. */
    put(tree, "intel-rapl:0", "energy_uj", "");
    assert_int_equal(remove(path), 0);
    tick_ns += 2 * IPW_NS_PER_S;
    assert_true(value(s, "package-0") == IPW_NO_VALUE && s->lost[0]);
    s->close(s);
}

static int count_fds(void)
{
    int n = 0;

    for (int fd = 0; fd < 256; fd++) n += fcntl(fd, F_GETFD) != -1;
    return n;
}

static int fds_before;

static int note_fds(void **state)
{
    (void)state;
    fds_before = count_fds();
    return 0;
}

static int check_fds(void **state)
{
    (void)state;
    return count_fds() != fds_before;
}

UNIT(rapl)
{
#define WITH_TREE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_09_texts),
        WITH_TREE(test_09_file_contents),
        WITH_TREE(test_17_covering_set),
        WITH_TREE(test_17_mmio_alone_counts),
        WITH_TREE(test_nested_layout),
        WITH_TREE(test_18_die_twins),
        WITH_TREE(test_21_names),
        WITH_TREE(test_limits_and_units),
        WITH_TREE(test_nothing_there),
        WITH_TREE(test_02_05_ranges),
        WITH_TREE(test_orphan),
        WITH_TREE(test_15_permission),
        WITH_TREE(test_15_part_of_a_domain),
        WITH_TREE(test_16_descriptor_is_kept),
    };

    return cmocka_run_group_tests(tests, note_fds, check_fds);
}
