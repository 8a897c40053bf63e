/* The energy of a part of a query leaves out what follows from the whole: each of many values, in
 * each of many wholes, comes back as it was. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "trace/schema_priv.h"
#include "unit/unit.h"

static void same_figure(const struct ipw_figure *a, const struct ipw_figure *b)
{
    assert_int_equal(a->known, b->known);
    assert_int_equal(a->estimated, b->estimated);
    assert_int_equal(a->provenance, b->provenance);
    assert_int_equal(a->samples, b->samples);
    assert_true(a->j == b->j && a->lo_j == b->lo_j && a->hi_j == b->hi_j);
    assert_true(a->coverage == b->coverage && a->split_fraction == b->split_fraction);
}

/* Writes the figure as the one of each domain in a part of `whole`, and reads it again. */
static void write_and_read(const struct ipw_figure *figure, const struct ipw_figure *whole)
{
    struct ipw_query_loaded l = {0};
    struct ipw_figure energy[IPW_DOMAIN_COUNT], of[IPW_DOMAIN_COUNT], back[IPW_DOMAIN_COUNT];
    struct ipw_buf text = IPW_BUF(10000);
    struct ipw_json *doc;
    struct ipw_jw w;

    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) {
        energy[d] = *figure;
        of[d] = l.trace.energy[d] = *whole;
    }
    ipw_jw_init(&w, &text);
    ipw_jw_obj(&w);
    ipw_schema_put_energy(&w, "energy", &l.trace, energy, of, NULL, NULL, NULL);
    ipw_jw_obj_end(&w);
    assert_int_equal(ipw_json_parse(&doc, text.data, text.len, NULL, NULL), 0);
    ipw_schema_read_energy(back, NULL, NULL, &l, of, ipw_json_get(doc, "energy"));
    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) same_figure(&back[d], figure);
    if (figure->known && figure->provenance == whole->provenance)
        assert_null(strstr(ipw_buf_str(&text), "provenance"));
    assert_true((strstr(ipw_buf_str(&text), "\"lo\"") != NULL) ==
                (figure->lo_j != 0 || figure->hi_j != 0));
    ipw_json_free(doc);
    ipw_buf_release(&text);
}

static void what_is_left_out_comes_back(void **state)
{
    struct ipw_figure all[] = {
        {.reason = "no_sensor"},
        {.reason = "lost", .coverage = 0.5, .samples = 3},
        {.reason = "lost", .estimated = true, .estimate_by = "gauge", .estimate_j = 4, .hi_j = 9},
        {.known = true, .j = 12.5, .coverage = 1, .samples = 3},
        {.known = true, .j = 12.5, .coverage = 0.25, .lo_j = 2, .hi_j = 20, .split_fraction = 1},
        {.known = true, .j = 1, .coverage = 1, .hi_j = 2},
        {.known = true, .j = -1, .coverage = 1, .lo_j = -2},
    };
    size_t n = sizeof all / sizeof *all;

    (void)state;
    for (size_t i = 0; i < n * n; i++) {
        struct ipw_figure *figure = &all[i % n], whole = all[i / n];

        for (int p = IPW_PROV_MEASURED; p <= IPW_PROV_ESTIMATED; p++) {
            for (int q = IPW_PROV_MEASURED; q <= IPW_PROV_ESTIMATED; q++) {
                figure->provenance = figure->known ? (enum ipw_provenance)p : IPW_PROV_NONE;
                whole.provenance = whole.known ? (enum ipw_provenance)q : IPW_PROV_NONE;
                write_and_read(figure, &whole);
            }
        }
    }
}

/* A value that states no provenance has that of the whole. */
static void a_provenance_follows_from_the_whole(void **state)
{
    static const char text[] =
        "{\"cpu\":{\"hi\":3.0,\"joules\":2.0,\"lo\":0.0,\"provenance\":\"measured\"},"
        "\"dram\":{\"joules\":1.0}}";
    struct ipw_figure whole[IPW_DOMAIN_COUNT] = {{0}}, back[IPW_DOMAIN_COUNT];
    struct ipw_query_loaded l = {0};
    struct ipw_json *doc;

    (void)state;
    whole[IPW_DOMAIN_CPU] = whole[IPW_DOMAIN_DRAM] =
        (struct ipw_figure){.known = true, .j = 9, .provenance = IPW_PROV_DISTRIBUTED};
    assert_int_equal(ipw_json_parse(&doc, text, sizeof text - 1, NULL, NULL), 0);
    ipw_schema_read_energy(back, NULL, NULL, &l, whole, doc);
    assert_int_equal(back[IPW_DOMAIN_CPU].provenance, IPW_PROV_MEASURED);
    assert_true(back[IPW_DOMAIN_CPU].lo_j == 0 && back[IPW_DOMAIN_CPU].hi_j == 3);
    assert_int_equal(back[IPW_DOMAIN_DRAM].provenance, IPW_PROV_DISTRIBUTED);
    ipw_json_free(doc);
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

UNIT(schema_energy)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_left_out_comes_back),
        cmocka_unit_test(a_provenance_follows_from_the_whole),
        cmocka_unit_test(the_domains_of_a_remote_model_come_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
