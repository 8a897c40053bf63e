/* The set of sources: what is looked for where, and what is said of it; and once from the sensors
 * through sampler and ledger to joules. */
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "energy/sampler.h"
#include "energy/select.h"
#include "ledger/ledger.h"

#include "sim/ask.h"
#include "unit/energy/ask.h"
#include "unit/energy/energy_test.h"
#include "unit/unit.h"

#define STUB     IPW_BINARY_DIR "/tests/fake/libnvidia-ml-stub.so"
#define POWERCAP IPW_BINARY_DIR "/tests/fake/fake_powercap"

static void test_names(void **state)
{
    (void)state;
    assert_string_equal(ipw_domain_name(IPW_DOMAIN_GPU), "gpu");
    assert_string_equal(ipw_domain_name(IPW_DOMAIN_CPU), "cpu");
    assert_string_equal(ipw_domain_name(IPW_DOMAIN_DRAM), "dram");
    assert_string_equal(ipw_domain_name(IPW_DOMAIN_MACHINE), "machine");
    assert_string_equal(ipw_provenance_name(IPW_PROV_NONE), "none");
    assert_string_equal(ipw_provenance_name(IPW_PROV_MEASURED), "measured");
    assert_string_equal(ipw_provenance_name(IPW_PROV_INTERPOLATED), "interpolated");
    assert_string_equal(ipw_provenance_name(IPW_PROV_DISTRIBUTED), "distributed");
    assert_string_equal(ipw_provenance_name(IPW_PROV_ESTIMATED), "estimated");
}

static const struct ipw_source_verdict *verdict(const struct ipw_source_set *set, const char *name)
{
    for (size_t i = 0; i < set->n_verdicts; i++)
        if (!strcmp(set->verdicts[i].name, name)) return &set->verdicts[i];
    fail_msg("no verdict on %s", name);
    return NULL;
}

static void test_nothing_found(void **state)
{
    struct ipw_source_set set;

    (void)state;
    setenv("IPW_SYSFS_ROOT", "/nonexistent/sys", 1);
    setenv("IPW_POWERCAP_ROOT", "/nonexistent/powercap", 1);
    setenv("IPW_NVML_LIBRARY", "/nonexistent/nvml.so", 1);
    assert_int_equal(
        ipw_source_set_open_with(&set, &(struct ipw_source_options){.ask = test_ask}, NULL), 0);
    assert_int_equal(set.n, 0);
    assert_int_equal(verdict(&set, "rapl")->code, IPW_EUNSUPPORTED);
    assert_string_equal(verdict(&set, "rapl")->text, "no /nonexistent/powercap: no RAPL here");
    assert_int_equal(verdict(&set, "nvml")->code, IPW_EUNSUPPORTED);
    assert_non_null(strstr(verdict(&set, "nvml")->text, "/nonexistent/nvml.so"));
    for (size_t i = 0; i < set.n_verdicts; i++) {
        assert_int_not_equal(set.verdicts[i].code, IPW_OK);
        assert_false(set.verdicts[i].named);
        assert_true(set.verdicts[i].text[0]);
    }
    ipw_source_set_close(&set);
    assert_int_equal(set.n_verdicts, 0);
}

struct sink {
    struct ipw_ledger *ledger;
    int64_t first_ns, last_ns[2];
};

static void book(void *ud, const struct ipw_sampler_row *row)
{
    struct sink *sink = ud;

    if (!sink->first_ns || row->t_ns < sink->first_ns) sink->first_ns = row->t_ns;
    sink->last_ns[row->source] = row->t_ns;
    ipw_ledger_row(sink->ledger, row->first_channel, row->n, row->t_ns, row->values);
}

static pid_t start_powercap(const char *dir)
{
    int ready[2];
    char word[8];
    pid_t child;

    assert_int_equal(pipe(ready), 0);
    fflush(NULL);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        dup2(ready[1], 1);
        close(ready[0]);
        close(ready[1]);
        execl(POWERCAP, "fake_powercap", dir, "--watts-package", "200", "--watts-dram", "40",
              "--start-uj", "262143000000", "--seconds", "60", (char *)NULL);
        _exit(127);
    }
    close(ready[1]);
    assert_true(read(ready[0], word, sizeof word) > 0);
    close(ready[0]);
    return child;
}

/* 200 W of a package that wraps on the way, 40 W of memory, 300 W of a GPU that publishes every
 * 100 ms: the figures are watts times seconds. */
static void test_joules_by_arithmetic(void **state)
{
    char dir[] = "/tmp/ipw-source-XXXXXX", script[] = "/tmp/ipw-source-XXXXXX", command[128];
    struct ipw_source_set set;
    struct ipw_channel channels[32];
    struct ipw_sampler *sampler;
    struct sink sink = {0};
    struct ipw_figure f;
    struct timespec nap = {0, 1000000};
    size_t n = 0;
    int64_t t0, t1, end;
    double s;
    pid_t child;
    FILE *file;
    int fd;

    (void)state;
    assert_non_null(mkdtemp(dir));
    fd = mkstemp(script);
    assert_true(fd >= 0);
    file = fdopen(fd, "w");
    assert_true(fputs("device GPU-1 Stub 700000\nenergy 0 counter watts=300\n", file) >= 0);
    assert_int_equal(fclose(file), 0);
    child = start_powercap(dir);
    setenv("IPW_POWERCAP_ROOT", dir, 1);
    setenv("IPW_SYSFS_ROOT", "/nonexistent/sys", 1);
    setenv("IPW_NVML_LIBRARY", STUB, 1);
    setenv("IPW_STUB_NVML", script, 1);
    assert_int_equal(
        ipw_source_set_open_with(&set, &(struct ipw_source_options){.ask = test_ask}, NULL), 0);
    assert_int_equal(set.n, 2);
    assert_string_equal(verdict(&set, "rapl")->text, "2 channels");
    assert_int_equal(verdict(&set, "nvml")->code, IPW_OK);
    assert_string_equal(set.basis[IPW_DOMAIN_CPU], "1 package (rapl)");
    assert_string_equal(set.basis[IPW_DOMAIN_DRAM], "1 memory zone (rapl)");
    assert_string_equal(set.basis[IPW_DOMAIN_GPU], "1 GPU (nvml)");
    for (size_t i = 0; i < set.n; i++) {
        for (size_t k = 0; k < set.sources[i]->n_channels; k++) {
            channels[n++] = set.sources[i]->channels[k];
        }
    }
    sink.ledger = ipw_ledger_new(channels, n);
    assert_int_equal(ipw_sampler_start(&sampler, &set,
                                       &(struct ipw_sampler_options){.interval_ns = S(0.01)}, NULL),
                     0);
    do { /* until the GPU's rhythm is there: the first steps of it have no beginning */
        nanosleep(&nap, NULL);
        ipw_sampler_drain(sampler, book, &sink);
    } while (sink.last_ns[1] - sink.first_ns < S(0.4));
    t0 = ipw_now_ns();
    ipw_ledger_query_begin(sink.ledger, t0);
    do {
        nanosleep(&nap, NULL);
        ipw_sampler_drain(sampler, book, &sink);
        t1 = ipw_now_ns();
    } while (t1 - t0 < S(2));
    ipw_ledger_query_end(sink.ledger, 0, t1);
    ipw_sampler_kick(sampler);
    do {
        nanosleep(&nap, NULL);
        ipw_sampler_drain(sampler, book, &sink);
    } while (ipw_ledger_covered_ns(sink.ledger) < t1 && ipw_now_ns() - t1 < S(60));
    assert_true(ipw_ledger_covered_ns(sink.ledger) >= t1);
    s = (double)(t1 - t0) / 1e9;
    f = ipw_ledger_figure(sink.ledger, ask_query(0, IPW_DOMAIN_CPU, t0, t1));
    assert_true(f.known);
    /* Both processes share a busy machine: to 250 ms of it, of more than 2 s. */
    assert_near(f.j, 200 * s, 200 * 0.25);
    f = ipw_ledger_figure(sink.ledger, ask_query(0, IPW_DOMAIN_DRAM, t0, t1));
    assert_near(f.j, 40 * s, 40 * 0.25);
    f = ipw_ledger_figure(sink.ledger, ask_query(0, IPW_DOMAIN_GPU, t0, t1));
    assert_near(f.j, 300 * s, 300 * 0.25);
    ipw_sampler_stop(sampler);
    ipw_sampler_drain(sampler, book, &sink);
    end = sink.last_ns[0] < sink.last_ns[1] ? sink.last_ns[0] : sink.last_ns[1];
    for (int d = IPW_DOMAIN_GPU; d <= IPW_DOMAIN_DRAM; d++) {
        double total =
            ipw_ledger_figure(sink.ledger, ask_total((enum ipw_domain)d, t0 - S(0.1), end)).j;
        double idle =
            ipw_ledger_figure(sink.ledger, ask_idle((enum ipw_domain)d, t0 - S(0.1), end)).j;
        double query = ipw_ledger_figure(sink.ledger, ask_query(0, (enum ipw_domain)d, t0, t1)).j;
        assert_true(total > 0 && idle > 0);
        assert_near(query + idle, total, 1e-6);
    }
    ipw_sampler_free(sampler);
    ipw_ledger_free(sink.ledger);
    ipw_source_set_close(&set);
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
    unlink(script);
    snprintf(command, sizeof command, "rm -r %s", dir);
    assert_int_equal(system(command), 0);
}

UNIT(source)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_nothing_found),
        cmocka_unit_test(test_joules_by_arithmetic),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
