#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "report/format.h"
#include "report/table.h"
#include "unit/report/fixture.h"

static const struct made gaia[] = {
    {"q0000", "Paris", "answered", NULL, "{\"level\":\"1\"}", 1, 3, 2, 1204, 310, 4.21, 812.4,
     55.13, IPW_PROV_MEASURED},
    {"q0001", "17", "answered", NULL, "{\"level\":\"2\"}", 0, 7, 9, 22871, 1042, 31.9, 6421, 402.9,
     IPW_PROV_INTERPOLATED},
    {"q0002", "\xE6\x9D\xB1\xE4\xBA\xAC, \xE5\xA4\xA7\xE9\x98\xAA and one more city", "answered",
     NULL, "{\"level\":1}", 1, 2, 1, 890, 77, 1.337, 240.7, 16.02, IPW_PROV_MEASURED},
    {"q0003", NULL, "timeout", "the query's 120 s have passed", "{\"level\":3}", -1, 12, 30, -1, -1,
     120.01, 21400, 1502, IPW_PROV_DISTRIBUTED},
    {"q0004", "a \x1b[31mred\x1b[0m\nanswer", "answered", NULL, "{}", -1, 1, 0, 55, 3, 0.421, 61.2,
     4.4, IPW_PROV_MEASURED},
};
#define N_GAIA (sizeof gaia / sizeof *gaia)

static void fill(struct ipw_summary *s, bool energy, bool tokens)
{
    ipw_summary_init(s);
    for (size_t i = N_GAIA; i-- > 0;) { /* in no particular order: rows are sorted */
        struct made m = gaia[i];

        if (!energy) m.gpu_j = m.cpu_j = NAN;
        if (tokens && m.in < 0) m.in = m.out = 100;
        add_made(s, &m, (int)i);
    }
}

static struct ipw_summary_run sample_run(void)
{
    struct ipw_summary_run run = IPW_SUMMARY_RUN_UNKNOWN;

    run.agent = "react";
    run.model = "qwen3:8b";
    run.dataset = "gaia";
    run.status = "complete";
    run.path = "runs/react_qwen3_8b_gaia_20261121-023107";
    run.runner_cpu_s = 0.41;
    run.sampler_cpu_s = 0.12;
    run.wall_s = 158.2;
    run.planned = 5;
    run.have_balance = true;
    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) {
        run.balance[d] = (struct ipw_balance){.total = figure(NAN, IPW_PROV_NONE),
                                              .idle = figure(NAN, IPW_PROV_NONE)};
    }
    run.balance[IPW_DOMAIN_GPU].total = figure(29424.3, IPW_PROV_MEASURED);
    run.balance[IPW_DOMAIN_GPU].idle = figure(489, IPW_PROV_MEASURED);
    run.balance[IPW_DOMAIN_CPU].total = figure(2100, IPW_PROV_MEASURED);
    run.balance[IPW_DOMAIN_CPU].idle = figure(119.55, IPW_PROV_MEASURED);
    return run;
}

static void no_line_is_wider(const struct ipw_buf *text, size_t width)
{
    for (const char *line = ipw_buf_str(text); *line;) {
        size_t n = strcspn(line, "\n");

        if (ipw_format_width(line, n) > width) fail_msg("too wide: %.*s", (int)n, line);
        line += n + (line[n] == '\n');
    }
}

static void check(const char *name, const struct ipw_summary *s, const struct ipw_summary_run *run,
                  struct ipw_table_options options)
{
    struct ipw_buf text = IPW_BUF(IPW_MIB);

    ipw_table_write(&text, s, run, &options);
    assert_false(text.failed);
    no_line_is_wider(&text, options.width < 80 ? 80 : options.width);
    check_golden(name, &text);
    ipw_buf_release(&text);
}

static void narrow_wide_and_coloured(void **state)
{
    struct ipw_summary s;
    struct ipw_summary_run run = sample_run();

    (void)state;
    fill(&s, true, false);
    check("table-80.txt", &s, &run, (struct ipw_table_options){.width = 0});
    check("table-120.txt", &s, &run, (struct ipw_table_options){.width = 120});
    check("table-colour.txt", &s, &run, (struct ipw_table_options){.width = 80, .colour = true});
    check("table-2-rows.txt", &s, &run, (struct ipw_table_options){.width = 80, .max_rows = 2});
    ipw_summary_release(&s);
}

static void without_sensors(void **state)
{
    struct ipw_summary s;
    struct ipw_summary_run run = sample_run();

    (void)state;
    fill(&s, false, true);
    run.have_balance = false;
    run.energy_note = "rapl: permission denied (try: sudo chmod a+r "
                      "/sys/class/powercap/intel-rapl:0/energy_uj); nvml: libnvidia-ml.so.1 is not "
                      "installed";
    run.note = "demo model: the answers are scripted";
    check("table-no-sensors.txt", &s, &run, (struct ipw_table_options){.width = 80});
    run.energy_note = NULL;
    check("table-no-note.txt", &s, &run, (struct ipw_table_options){.width = 80});
    ipw_summary_release(&s);
}

/* The model runs elsewhere, so that there is no basis for efficiency; the CPU was measured all the
 * same. */
static void a_missing_sensor_is_not_all_of_them(void **state)
{
    struct ipw_summary s;
    struct ipw_summary_run run = sample_run();
    struct ipw_buf text = IPW_BUF(IPW_MIB);
    struct ipw_table_options options = {.width = 100};

    (void)state;
    fill(&s, true, true);
    for (size_t i = 0; i < s.n; i++) s.rows[i].lm_remote = true;
    assert_int_equal(ipw_summary_basis(&s), 0);
    run.energy_note = "nvml: libnvidia-ml.so.1 is not installed";
    ipw_table_write(&text, &s, &run, &options);
    assert_non_null(strstr(ipw_buf_str(&text), "nvml: libnvidia-ml.so.1 is not installed"));
    assert_null(strstr(ipw_buf_str(&text), "no energy sensor"));
    ipw_buf_release(&text);
    ipw_summary_release(&s);
}

static void interrupted_and_empty(void **state)
{
    struct ipw_summary s;
    struct ipw_summary_run run = IPW_SUMMARY_RUN_UNKNOWN;

    (void)state;
    ipw_summary_init(&s);
    run.agent = "react";
    run.status = "interrupted";
    run.planned = 16;
    check("table-empty.txt", &s, &run, (struct ipw_table_options){.width = 80});
    ipw_summary_release(&s);
}

static void a_ledger_that_is_off_says_so(void **state)
{
    struct ipw_summary s;
    struct ipw_summary_run run = sample_run();
    struct ipw_buf text = IPW_BUF(IPW_MIB);
    struct ipw_table_options options = {.width = 100};

    (void)state;
    fill(&s, true, true);
    run.balance[IPW_DOMAIN_GPU].idle.j = 400;
    ipw_table_write(&text, &s, &run, &options);
    assert_non_null(strstr(ipw_buf_str(&text), "a bug, please report it"));
    ipw_buf_release(&text);
    ipw_summary_release(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(narrow_wide_and_coloured),
        cmocka_unit_test(without_sensors),
        cmocka_unit_test(a_missing_sensor_is_not_all_of_them),
        cmocka_unit_test(interrupted_and_empty),
        cmocka_unit_test(a_ledger_that_is_off_says_so),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
