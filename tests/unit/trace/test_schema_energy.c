/* A figure that tells nothing but its reason is written in one piece.  The reader of a line must
 * not see the difference: here each of many figures is written both ways. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "trace/schema_priv.h"

/* An array of devices of which none is there keeps the writer on the long way. */
static void write(struct ipw_buf *out, const struct ipw_figure *energy, const double *mean_w,
                  bool long_way)
{
    const struct ipw_query_trace q = {0};
    struct ipw_jw w;

    ipw_jw_init(&w, out);
    ipw_jw_obj(&w);
    ipw_schema_put_energy(&w, "energy", &q, energy, long_way ? energy : NULL, mean_w, NULL);
    ipw_jw_obj_end(&w);
}

static void both_ways_give_the_same_bytes(void **state)
{
    static const struct ipw_figure figures[] = {
        {.reason = "no_sensor"},
        {.reason = "permission"},
        {0},
        {.reason = "a reason of \"more\" than a word"},
        {.reason = "a_reason_that_is_longer_than_what_is_kept_for_one_on_the_stack_of_the_writer"},
        {.reason = "lost", .coverage = 0.5},
        {.reason = "lost", .samples = 3},
        {.reason = "lost", .provenance = IPW_PROV_MEASURED},
        {.reason = "no_sensor", .estimated = true, .estimate_by = "tdp", .estimate_j = 4.25},
        {.known = true, .j = 12.5, .provenance = IPW_PROV_MEASURED, .coverage = 1, .samples = 3},
    };
    const double mean_w[IPW_DOMAIN_COUNT] = {NAN, 3.5};

    (void)state;
    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++) {
        for (int with_power = 0; with_power < 2; with_power++) {
            struct ipw_figure energy[IPW_DOMAIN_COUNT];
            struct ipw_buf one = IPW_BUF(10000), other = IPW_BUF(10000);

            for (int d = 0; d < IPW_DOMAIN_COUNT; d++) energy[d] = figures[i];
            write(&one, energy, with_power ? mean_w : NULL, false);
            write(&other, energy, with_power ? mean_w : NULL, true);
            assert_string_equal(ipw_buf_str(&one), ipw_buf_str(&other));
            ipw_buf_release(&one);
            ipw_buf_release(&other);
        }
    }
}

/* Which domains are the model's machine survives a line; a model on this machine has no such
 * key. */
static void the_domains_of_a_remote_model_come_back(void **state)
{
    static const struct {
        bool remote;
        unsigned domains;
        const char *text;
    } rows[] = {
        {false, 0, "{}"},
        {true, 0, "{\"remote_domains\":[]}"},
        {true, 1u << IPW_DOMAIN_MACHINE, "{\"remote_domains\":[\"machine\"]}"},
        {true, 1u << IPW_DOMAIN_GPU | 1u << IPW_DOMAIN_CPU,
         "{\"remote_domains\":[\"cpu\",\"gpu\"]}"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct ipw_query_trace q = {.lm_remote = rows[i].remote, .lm_domains = rows[i].domains};
        struct ipw_query_trace back = {0};
        struct ipw_buf text = IPW_BUF(1000);
        struct ipw_json *doc;
        struct ipw_jw w;

        ipw_jw_init(&w, &text);
        ipw_jw_obj(&w);
        ipw_schema_put_remote_domains(&w, &(struct ipw_spec){.key = "remote_domains"},
                                      (const void *const[]){&q});
        ipw_jw_obj_end(&w);
        assert_string_equal(ipw_buf_str(&text), rows[i].text);
        assert_int_equal(ipw_json_parse(&doc, text.data, text.len, NULL, NULL), 0);
        ipw_schema_read_remote_domains(&back, doc);
        assert_int_equal(back.lm_remote, rows[i].remote);
        assert_int_equal(back.lm_domains, rows[i].domains);
        ipw_json_free(doc);
        ipw_buf_release(&text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_ways_give_the_same_bytes),
        cmocka_unit_test(the_domains_of_a_remote_model_come_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
