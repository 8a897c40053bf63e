/* The books of a run and of its devices: sessions added up, devices that come and go, and joules
 * that are not known. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "ledger/balance.h"
#include "unit/report/fixture.h"
#include "unit/unit.h"

static struct ipw_balance book(double total_j, double idle_j, double seconds)
{
    return (struct ipw_balance){.total = figure(total_j, IPW_PROV_MEASURED),
                                .idle = figure(idle_j, IPW_PROV_MEASURED),
                                .seconds = seconds};
}

static void sessions_add_up(void **state)
{
    struct ipw_balance sum = book(10, 4, 1), more = book(2.5, 1, 3);

    (void)state;
    more.total.coverage = 0.5;
    more.total.provenance = IPW_PROV_ESTIMATED; /* the less certain of two */
    more.wasted_j = 0.5;
    more.warmup_j = 0.25;
    ipw_balance_add(&sum, &more);
    assert_true(sum.total.known && sum.total.j == 12.5 && sum.idle.j == 5);
    assert_true(sum.wasted_j == 0.5 && sum.warmup_j == 0.25 && sum.seconds == 4);
    assert_true(sum.total.coverage == 0.625); /* (1 s * 1 + 3 s * 0.5) / 4 s */
    assert_int_equal(sum.total.samples, 18);
    assert_int_equal(sum.total.provenance, IPW_PROV_ESTIMATED);
    more = book(1, 1, 0); /* a session without length changes no share */
    ipw_balance_add(&sum, &more);
    assert_true(sum.total.j == 13.5 && sum.total.coverage == 0.625);
    assert_int_equal(sum.total.provenance, IPW_PROV_ESTIMATED);
    sum = book(1, 1, 0);
    ipw_balance_add(&sum, &more);
    assert_true(sum.total.coverage == 1);
}

/* A session of which nothing is known makes the sum unknown, in whatever order; the part that was
 * measured stays. */
static void an_unknown_session(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct ipw_balance known = book(10, 4, 1), unknown = book(NAN, NAN, 1),
                           sum = i ? known : unknown;

        unknown.total.partial_j = 3;
        unknown.total.coverage = 0.5;
        if (!i) sum = unknown;
        ipw_balance_add(&sum, i ? &unknown : &known);
        assert_false(sum.total.known);
        assert_string_equal(sum.total.reason, "no_sensor");
        assert_true(sum.total.partial_j == 13 && sum.total.coverage == 0.75);
        ipw_balance_add(&sum, &unknown); /* and stays unknown */
        assert_true(!sum.total.known && sum.total.partial_j == 16);
    }
}

/* ---- devices ---- */

static void add_query(struct ipw_device_list *sums, size_t n, const struct ipw_device *devices,
                      const double *joules, bool accounts)
{
    struct ipw_figure energy[4];
    struct ipw_query_account account[4];
    struct ipw_query_trace q = {.n_devices = n,
                                .devices = (struct ipw_device *)devices,
                                .device_energy = joules ? energy : NULL,
                                .device_account = accounts ? account : NULL};

    for (size_t i = 0; joules && i < n; i++) {
        energy[i] = figure(joules[i], IPW_PROV_MEASURED);
        account[i] = (struct ipw_query_account){1, 0.5, 0.25, 0.125};
    }
    ipw_device_list_count(sums, &q);
}

static const struct ipw_device gpus[] = {{.name = (char *)"gpu1", .domain = IPW_DOMAIN_GPU},
                                         {.name = (char *)"gpu0", .domain = IPW_DOMAIN_GPU}};

static void joules_of_each_device(void **state)
{
    struct ipw_device_list sums = {0};

    (void)state;
    add_query(&sums, 2, gpus, (const double[]){1, 2}, true);
    add_query(&sums, 2, gpus, (const double[]){10, 20}, true);
    assert_true(ipw_device_list_j(&sums, IPW_DOMAIN_GPU, "gpu1") == 11);
    assert_true(ipw_device_list_j(&sums, IPW_DOMAIN_GPU, "gpu0") == 22);
    assert_true(ipw_device_list_j(&sums, IPW_DOMAIN_GPU, "gpu9") == 0); /* no query had it */
    assert_true(ipw_device_list_j(&sums, IPW_DOMAIN_CPU, "gpu0") == 0); /* another domain's */
    for (size_t i = 1; i < sums.n; i++)                                 /* by domain and name */
        assert_true(sums.all[i - 1].domain < sums.all[i].domain ||
                    strcmp(sums.all[i - 1].name, sums.all[i].name) < 0);
    for (size_t i = 0; i < sums.n; i++)
        if (sums.all[i].name[0])
            assert_true(sums.all[i].account.marginal_j + sums.all[i].account.exclusive_j +
                            sums.all[i].account.waste_j + sums.all[i].account.idle_tax_j ==
                        2 * (1 + 0.5 + 0.25 + 0.125));

    /* a part of one query is not known: nor is the sum; without accounts these are not known
     * either */
    add_query(&sums, 2, gpus, (const double[]){NAN, 1}, false);
    assert_true(isnan(ipw_device_list_j(&sums, IPW_DOMAIN_GPU, "gpu1")));
    assert_true(ipw_device_list_j(&sums, IPW_DOMAIN_GPU, "gpu0") == 23);
    for (size_t i = 0; i < sums.n; i++)
        if (sums.all[i].name[0])
            assert_true(
                isnan(sums.all[i].account.exclusive_j) && isnan(sums.all[i].account.waste_j) &&
                isnan(sums.all[i].account.idle_tax_j) && isnan(sums.all[i].account.marginal_j));
    ipw_device_list_release(&sums);
}

static struct ipw_device_item device_book(const char *name, double total_j)
{
    struct ipw_device_item b = {.domain = IPW_DOMAIN_GPU, .balance = book(total_j, 0, 1)};

    snprintf(b.name, sizeof b.name, "%s", name);
    return b;
}

static void books_of_each_device(void **state)
{
    struct ipw_device_item first[] = {device_book("gpu1", 10), device_book("gpu2", 5)};
    struct ipw_device_item second[] = {device_book("gpu0", 7), device_book("gpu1", 3)};
    struct ipw_device_item nameless = device_book("", 1);
    struct ipw_device_list sum = {0}, none = {0};
    struct ipw_device_list warmup = {0}, wasted = {0};

    (void)state;
    ipw_device_list_add(&sum, &none);
    assert_int_equal(sum.n, 0);
    ipw_device_list_add(&sum, &(struct ipw_device_list){.all = first, .n = 2});
    ipw_device_list_add(&sum, &(struct ipw_device_list){.all = second, .n = 2});
    assert_int_equal(sum.n, 3);
    assert_string_equal(sum.all[0].name, "gpu0"); /* sorted, though it came later */
    assert_true(sum.all[1].balance.total.j == 13 && sum.all[1].balance.seconds == 2);
    assert_true(ipw_device_list_whole(&sum, IPW_DOMAIN_GPU));
    assert_false(ipw_device_list_whole(&sum, IPW_DOMAIN_CPU));
    assert_false(ipw_device_list_whole(NULL, IPW_DOMAIN_GPU));

    add_query(&warmup, 2, gpus, (const double[]){1, 2}, true);
    add_query(&wasted, 2, gpus, (const double[]){4, 8}, true);
    ipw_device_list_apart(&sum, NULL, NULL);
    assert_true(sum.all[0].balance.warmup_j == 0 && sum.all[0].balance.wasted_j == 0);
    ipw_device_list_apart(&sum, &warmup, &wasted);
    assert_true(sum.all[0].balance.warmup_j == 2 && sum.all[0].balance.wasted_j == 8);
    assert_true(sum.all[1].balance.warmup_j == 1 && sum.all[1].balance.wasted_j == 4);
    assert_true(sum.all[2].balance.warmup_j == 0 && sum.all[2].balance.wasted_j == 0);

    /* a session that did not list its devices */
    ipw_device_list_add(&sum, &(struct ipw_device_list){.all = &nameless, .n = 1});
    assert_false(ipw_device_list_whole(&sum, IPW_DOMAIN_GPU));
    ipw_device_list_release(&warmup);
    ipw_device_list_release(&wasted);
    ipw_device_list_release(&sum);
}

UNIT(balance)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sessions_add_up),
        cmocka_unit_test(an_unknown_session),
        cmocka_unit_test(joules_of_each_device),
        cmocka_unit_test(books_of_each_device),
    };

    return cmocka_run_group_tests_name("balance", tests, NULL, NULL);
}
