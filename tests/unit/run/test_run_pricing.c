/* The cost of an inference by the counts of its event: docs/costs.md, "Prices of models". */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "run/run_pricing.h"
#include "unit/unit.h"

#define PRICES                                                                                     \
    "{\"models\":{\"m\":{\"input\":1,\"output\":2,\"cache_read\":0.1,\"cache_write\":3,\"cache_"   \
    "write_1h\":"                                                                                  \
    "5},\"plain\":{\"input\":1,\"output\":2,\"cache_read\":0.1}}}"

static void tokens_put_into_the_cache_have_their_price(void **state)
{
    static const struct {
        const char *model;
        int64_t written, hour;
        double usd, most; /* of a prompt of 1 M tokens, of which 0.1 M were in the cache */
    } rows[] = {
        {"m", 0, 0, 0.91, 0.91},
        {"m", 400000, 0, 0.5 + 0.01 + 1.2, 0.5 + 0.01 + 1.2},
        {"m", 400000, 100000, 0.5 + 0.01 + 0.9 + 0.5, 0.5 + 0.01 + 0.9 + 0.5},
        {"plain", 0, 0, 0.91, 0.91},
        {"plain", 400000, 0, NAN, 0.91},
    };
    char path[] = "/tmp/ipw-prices-XXXXXX";
    FILE *f = fdopen(mkstemp(path), "w");
    struct ipw_pricing p;
    struct ipw_err err;

    (void)state;
    fputs(PRICES, f);
    fclose(f);
    assert_int_equal(ipw_pricing_open(&p, path, false, &err), 0);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct ipw_event e = {.kind = IPW_EV_LM_END,
                              .lm = {.asked = rows[i].model,
                                     .input_tokens = 1000000,
                                     .cached_tokens = 100000,
                                     .cache_write_tokens = rows[i].written,
                                     .cache_write_1h_tokens = rows[i].hour,
                                     .reasoning_tokens = -1}};

        assert_true(fabs(ipw_pricing_event(&p, &e) - rows[i].most) < 1e-9);
        assert_int_equal(e.lm.cost.known, !isnan(rows[i].usd));
        if (e.lm.cost.known) assert_true(fabs(e.lm.cost.usd - rows[i].usd) < 1e-9);
    }
    ipw_pricing_close(&p);
    unlink(path);
}

UNIT(run_pricing)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tokens_put_into_the_cache_have_their_price),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
