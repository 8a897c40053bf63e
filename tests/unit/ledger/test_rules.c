/* The rules of a run: written, read back and applied. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "ledger/rules.h"
#include "sim/ask.h"
#include "unit/energy/energy_test.h"
#include "unit/unit.h"

#define CPU IPW_DOMAIN_CPU
#define GPU IPW_DOMAIN_GPU

static struct ipw_json *parse(struct ipw_buf *text)
{
    struct ipw_json *doc = NULL;

    assert_int_equal(ipw_json_parse(&doc, ipw_buf_str(text), text->len, NULL, NULL), 0);
    ipw_buf_release(text);
    return doc;
}

static struct ipw_ledger_rules sample(void)
{
    struct ipw_ledger_rules r = IPW_LEDGER_RULES_NONE;

    r.baseline_w[CPU] = 20;
    r.baseline_w[GPU] = 90;
    r.n_device_baselines[GPU] = 2;
    r.device_baseline_w[GPU][0] = 30;
    r.device_baseline_w[GPU][1] = 60;
    r.share = IPW_SHARE_PHASE;
    snprintf(r.reasons[IPW_DOMAIN_DRAM], sizeof r.reasons[0], "permission");
    snprintf(r.sub_remote, sizeof r.sub_remote, "http://far:1/v1");
    r.clock = (struct ipw_anchor){.mono_ns = 5, .wall_ns = 7, .boot_ns = 9};
    return r;
}

static void written_and_read(void **state)
{
    struct ipw_ledger_rules from = sample(), to;
    struct ipw_buf text = IPW_BUF(10000), twice = IPW_BUF(10000);
    struct ipw_json *doc;

    (void)state;
    ipw_ledger_rules_write(&text, &from);
    assert_non_null(strstr(ipw_buf_str(&text), "\"device_baseline_w\":{\"gpu\":[30"));
    assert_non_null(strstr(ipw_buf_str(&text), "\"reasons\":{\"dram\":\"permission\"}"));
    ipw_buf_adds(&twice, ipw_buf_str(&text));
    doc = parse(&text);
    ipw_ledger_rules_read(&to, doc);
    ipw_json_free(doc);
    assert_true(to.baseline_w[CPU] == 20 && to.baseline_w[GPU] == 90 &&
                isnan(to.baseline_w[IPW_DOMAIN_DRAM]) && isnan(to.baseline_w[IPW_DOMAIN_MACHINE]));
    assert_true(to.n_device_baselines[GPU] == 2 && to.n_device_baselines[CPU] == 0);
    assert_true(to.device_baseline_w[GPU][0] == 30 && to.device_baseline_w[GPU][1] == 60);
    assert_string_equal(to.reasons[IPW_DOMAIN_DRAM], "permission");
    assert_string_equal(to.reasons[CPU], "");
    assert_string_equal(to.sub_remote, "http://far:1/v1");
    assert_true(to.share == IPW_SHARE_PHASE && !to.lm_remote);
    assert_true(to.clock.mono_ns == 5 && to.clock.wall_ns == 7 && to.clock.boot_ns == 9);
    ipw_ledger_rules_write(&text, &to);
    assert_string_equal(ipw_buf_str(&text), ipw_buf_str(&twice));
    ipw_buf_release(&text);
    ipw_buf_release(&twice);
    ipw_ledger_rules_read(&to, NULL);
    assert_true(to.share == IPW_SHARE_EQUAL && isnan(to.baseline_w[CPU]) && !to.clock.mono_ns);
}

static void names_of_rules(void **state)
{
    enum ipw_share share = IPW_SHARE_PHASE;
    struct ipw_err err = {0};

    (void)state;
    assert_int_equal(ipw_share_parse(&share, "equal", &err), 0);
    assert_int_equal(share, IPW_SHARE_EQUAL);
    assert_int_equal(ipw_share_parse(&share, "phase", &err), 0);
    assert_int_equal(share, IPW_SHARE_PHASE);
    assert_int_equal(ipw_share_parse(&share, "model-time", &err), 0);
    assert_int_equal(share, IPW_SHARE_MODEL_TIME);
    assert_true(ipw_share_parse(&share, "fair", &err) < 0);
    assert_non_null(strstr(err.text, "expected one of equal, model-time, phase"));
}

/* Two boards, each with its idle power; a domain whose baselines do not fit its devices gets equal
 * parts. */
static void opened(void **state)
{
    struct ipw_channel c[] = {test_counter("gpu0", GPU, 0, 900), test_counter("gpu1", GPU, 0, 900),
                              test_counter("package-0", CPU, 0, 900)};

    (void)state;
    for (int fits = 0; fits < 2; fits++) {
        struct ipw_ledger_rules r = sample();
        struct ipw_ledger *l;
        int64_t q = 0;

        r.n_device_baselines[GPU] = fits ? 2 : 1;
        l = ipw_ledger_rules_open(&r, c, 3);
        for (int i = 0; i <= 40; i++) {
            int64_t uj[] = {i * J(10), i * J(10), i * J(5)};

            if (i == 10) q = ipw_ledger_query_begin(l, S(1));
            if (i == 20) ipw_ledger_query_end(l, q, S(2));
            ipw_ledger_row(l, 0, 3, S(i * 0.1), uj);
        }
        for (size_t d = 0; d < 2; d++)
            assert_near(
                ipw_ledger_account(l, ask_device(d, ask_query(q, GPU, S(1), S(2)))).marginal_j,
                100 - (fits && !d ? 30
                       : fits     ? 60
                                  : 45),
                1e-6);
        assert_near(ipw_ledger_account(l, ask_query(q, GPU, S(1), S(2))).marginal_j, 110, 1e-6);
        assert_near(ipw_ledger_account(l, ask_query(q, CPU, S(1), S(2))).marginal_j, 30, 1e-6);
        assert_string_equal(ipw_ledger_figure(l, ask_query(q, IPW_DOMAIN_DRAM, S(1), S(2))).reason,
                            "permission");
        ipw_ledger_free(l);
    }
}

/* The model is elsewhere: local GPUs are not its own, and a domain that is read there leaves out
 * the channels of this machine. */
static void model_elsewhere(void **state)
{
    struct ipw_channel c[] = {test_counter("gpu0", GPU, 0, 900), test_counter("near", CPU, 0, 900),
                              test_counter("far", CPU, 0, 900)};
    struct ipw_ledger_rules r = IPW_LEDGER_RULES_NONE;
    struct ipw_ledger *l;

    (void)state;
    r.lm_remote = true;
    c[2].remote = true;
    l = ipw_ledger_rules_open(&r, c, 3);
    assert_true(!c[0].in_sum && !c[1].in_sum && c[2].in_sum);
    assert_string_equal(r.reasons[GPU], "remote");
    assert_true(ipw_ledger_devices(l, GPU) == 0 && ipw_ledger_devices(l, CPU) == 1);
    assert_string_equal(ipw_ledger_device_name(l, CPU, 0), "far");
    ipw_ledger_free(l);
    c[0].in_sum = c[1].in_sum = c[0].remote = true;
    l = ipw_ledger_rules_open(&r, c, 3);
    assert_true(c[0].in_sum && !c[1].in_sum && !r.reasons[GPU][0]);
    ipw_ledger_free(l);
}

static void scopes(void **state)
{
    struct ipw_channel c[] = {test_counter("gpu0", GPU, 0, 900), test_counter("gpu1", GPU, 0, 900)};
    bool first[] = {true, false}, both[] = {true, true};
    struct ipw_ledger_scope from[] = {{first, 1, S(9), "boot-a", 250},
                                      {both, 2, S(9), "boot-b", 0}};
    struct ipw_buf text = IPW_BUF(10000);
    struct ipw_ledger_rules r = IPW_LEDGER_RULES_NONE;
    struct ipw_json *doc;
    struct ipw_ledger *l = ipw_ledger_rules_open(&r, c, 2);

    (void)state;
    ipw_buf_adds(&text, "{\"scopes\":");
    ipw_ledger_scopes_write(&text, from, 2, c, 2);
    ipw_buf_adds(&text, "}");
    assert_string_equal(
        ipw_buf_str(&text),
        "{\"scopes\":[{\"channels\":[\"gpu0\"],\"clock\":\"boot-a\",\"clock_error_ns\":"
        "250,\"end_ns\":9000000000,\"start_ns\":1},{\"channels\":[\"gpu0\",\"gpu1\"],"
        "\"clock\":\"boot-b\",\"clock_error_ns\":0,\"end_ns\":9000000000,"
        "\"start_ns\":2}]}");
    doc = parse(&text);
    ipw_ledger_scopes_read(l, c, 2, doc);
    ipw_json_free(doc);
    assert_int_equal(ipw_ledger_query_begin_in(l, 0, S(1)), 0);
    assert_int_equal(ipw_ledger_query_begin_in(l, 1, S(1)), 1);
    assert_true(ipw_ledger_query_sees(l, 0, GPU, 0) && !ipw_ledger_query_sees(l, 0, GPU, 1));
    assert_true(ipw_ledger_query_sees(l, 1, GPU, 0) && ipw_ledger_query_sees(l, 1, GPU, 1));
    ipw_ledger_free(l);
}

UNIT(rules)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(written_and_read), cmocka_unit_test(names_of_rules),
        cmocka_unit_test(opened),           cmocka_unit_test(model_elsewhere),
        cmocka_unit_test(scopes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
