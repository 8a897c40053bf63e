/* What the far side of a stream may send: each lie is told, and costs no honest reading. */
#include "unit/energy/far_world.h"
#include "unit/unit.h"

static void lies_at_the_start(void **state)
{
    static const struct {
        const char *hello, *says;
    } cases[] = {
        {"hello\n", "http://far:9440/stream: "},
        {"{}\n", "stream"},
        {"{\"stream\":2}\n", "format 2 of the stream; this program reads 1"},
        {"{\"stream\":1,\"boot_id\":\"\",\"instance\":\"x\"}\n", "boot_id: expected 1 to 39"},
        {"{\"stream\":1,\"boot_id\":\"b\",\"instance\":\"i\",\"power\":{\"interval_ns\":-1}}\n",
         "interval_ns: -1 is out of range"},
        {"{\"stream\":1,\"boot_id\":\"b\",\"instance\":\"i\",\"power\":{\"interval_ns\":1,"
         "\"sources\":[]}}\n",
         "that machine has no sensor"},
        {"{\"stream\":1,\"boot_id\":\"b\",\"instance\":\"i\",\"power\":{\"interval_ns\":1,"
         "\"sources\":[{\"name\":\"x\",\"period_ns\":1,\"channels\":[{\"domain\":\"moon\"}]}]}}\n",
         "sources[0].channels[0].domain: no such domain"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ipw_err err = {0};

        far_begins(0, MS, 0);
        w.hello = cases[i].hello;
        assert_true(begin(&err) < 0);
        if (!strstr(err.text, cases[i].says)) fail_msg("%s: %s", cases[i].hello, err.text);
        end();
    }
}

static void lies_later(void **state)
{
    static const struct {
        const char *line, *says;
    } cases[] = {
        {"NaN\n", "not usable"},
        {"{\"mono_ns\":1,\"seq\":1,\"source\":0,\"values\":[NaN,1]}\n", "stream"},
        {"{\"mono_ns\":99999999999,\"seq\":999,\"source\":9,\"values\":[]}\n",
         "source: there are 2"},
        {"{\"mono_ns\":99999999999,\"seq\":999,\"source\":0,\"values\":[1]}\n",
         "values: expected 2"},
        {"{\"mono_ns\":99999999999,\"seq\":999,\"source\":0,\"values\":[-1,1]}\n",
         "values[0]: not a whole number"},
        {"{\"mono_ns\":99999999999,\"seq\":999,\"source\":0,\"values\":[1e300,1]}\n", "values[0]"},
        {"{\"mono_ns\":99999999999,\"seq\":0,\"source\":0,\"values\":[1,1]}\n", "seq: 0 after"},
        {"{\"mono_ns\":77000000001,\"seq\":999,\"source\":0,\"values\":[1,1]}\n",
         "of the same sensor"},
        {"{\"seq\":999}\n", "mono_ns"},
        {"{\"dropped\":-5,\"seq\":3}\n", "dropped: -5"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char note[IPW_NOTE_BYTES];

        far_begins(0, MS, 0);
        assert_int_equal(begin(&me.err), 0);
        run_until(5);
        w.lie = cases[i].line;
        run_until(6.5);
        ipw_source_note(me.sources[0], note);
        if (!strstr(note, cases[i].says)) fail_msg("%s: %s", cases[i].line, note);
        /* It was asked again, and the readings are those of an honest link. */
        run_until(20);
        assert_true(w.opens >= 2);
        assert_true_within(IPW_DOMAIN_CPU, 2, 18);
        end();
    }
}

static void endless_line(void **state)
{
    char *line = malloc(300000), note[IPW_NOTE_BYTES];

    (void)state;
    memset(line, ' ', 299999);
    line[299999] = '\0';
    far_begins(0, MS, 0);
    assert_int_equal(begin(&me.err), 0);
    run_until(5);
    w.lie = line;
    run_until(9);
    ipw_source_note(me.sources[0], note);
    assert_non_null(strstr(note, "a line is over 256 KiB"));
    run_until(20);
    assert_true_within(IPW_DOMAIN_CPU, 2, 18);
    end();
    free(line);
}

/* A reading from the future is counted and not booked. */
static void reading_from_the_future(void **state)
{
    char note[IPW_NOTE_BYTES], line[160];

    (void)state;
    far_begins(0, MS, 0);
    assert_int_equal(begin(&me.err), 0);
    run_until(5);
    make_rows();
    snprintf(line, sizeof line,
             "{\"mono_ns\":999999999999,\"seq\":%zu,\"source\":1,\"values\":[300000]}\n", w.cursor);
    w.lie = line;
    run_until(8);
    w.connected = false;
    run_until(12);
    ipw_source_note(me.sources[0], note);
    assert_non_null(strstr(note, ", 1 not usable"));
    assert_true_within(IPW_DOMAIN_CPU, 2, 11);
    end();
}

UNIT(stream_lies)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lies_at_the_start),
        cmocka_unit_test(lies_later),
        cmocka_unit_test(endless_line),
        cmocka_unit_test(reading_from_the_future),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
