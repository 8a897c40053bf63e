#include "unit/base/check.h"

#include "base/texts.h"
#include "unit/unit.h"

static void equal_texts_are_shared(void **state)
{
    struct ipw_texts texts = {0};
    char model[] = "model";
    const char *first = ipw_texts_keep(&texts, model);

    (void)state;
    model[0] = 'M';
    assert_string_equal(first, "model");
    assert_string_equal(ipw_texts_keep(&texts, "mod"), "mod");
    assert_string_equal(ipw_texts_keep(&texts, ""), "");
    assert_ptr_equal(ipw_texts_keep(&texts, "model"), first);
    assert_ptr_not_equal(ipw_texts_keep(&texts, "modem"), first);
    assert_null(ipw_texts_keep(&texts, NULL));
    ipw_texts_release(&texts);
    assert_null(texts.first);
    ipw_texts_release(&texts);
}

/* Texts of every length around the block's and the length byte's limits stay as they were. */
static void texts_of_any_length_stay(void **state)
{
    enum { N = 700 };
    static char text[N + 1];
    const char *kept[N];
    struct ipw_texts texts = {0};

    (void)state;
    memset(text, 'x', N);
    for (size_t n = N; n-- > 0;) {
        text[n] = '\0';
        kept[n] = ipw_texts_keep(&texts, text);
    }
    memset(text, 'x', N);
    for (size_t n = 0; n < N; n++) {
        assert_int_equal(strlen(kept[n]), n);
        assert_memory_equal(kept[n], text, n);
    }
    ipw_texts_release(&texts);

    text[255] = '\0';
    assert_ptr_equal(ipw_texts_keep(&texts, text), ipw_texts_keep(&texts, text));
    ipw_texts_release(&texts);
}

UNIT(texts)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_texts_are_shared),
        cmocka_unit_test(texts_of_any_length_stay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
