/* The tables of keys in docs/trace-format.md name exactly the keys of the tables in src/trace/. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "json/jsonl.h"
#include "trace/event.h"
#include "trace/spec.h"

static char *page;

static int open_page(void **state)
{
    struct ipw_err err;
    struct ipw_buf text = IPW_BUF(IPW_MIB);

    (void)state;
    if (ipw_file_read(&text, IPW_SOURCE_DIR "/docs/trace-format.md", &err)) return -1;
    page = ipw_buf_take(&text, NULL);
    return 0;
}

static int close_page(void **state)
{
    (void)state;
    free(page);
    return 0;
}

static const struct ipw_spec *row_of(const struct ipw_spec *table, const char *key)
{
    while (table->key && strcmp(table->key, key)) table++;
    return table->key ? table : NULL;
}

/* Whether `word` stands in backticks between `at` and `end`. */
static bool has_word(const char *at, const char *end, const char *word)
{
    size_t n = strlen(word);

    for (const char *p = at; (p = memchr(p, '`', (size_t)(end - p))); p++) {
        if ((size_t)(end - p) > n + 1 && !strncmp(p + 1, word, n) && p[n + 1] == '`') return true;
    }
    return false;
}

/* The rows of the first table after `heading` whose head begins with `first`: from its first row to the
 * line after its last. */
static const char *rows_after(const char *heading, const char *first, const char **end)
{
    const char *at = strstr(page, heading), *line;

    if (!at) fail_msg("docs/trace-format.md: no \"%s\"", heading);
    line = strstr(at, first);
    if (!line) fail_msg("docs/trace-format.md: no table after \"%s\"", heading);
    line = strchr(line + 1, '\n') + 1; /* the line of dashes */
    line = strchr(line, '\n') + 1;
    for (*end = line; **end == '|'; *end = strchr(*end, '\n') + 1) continue;
    return line;
}

static bool is_of_every_event(const char *key)
{
    return row_of(ipw_spec_event("run_end"), key) != NULL;
}

/* Every key in a first cell is a key of the table, and the other way round. */
static void compare(const char *heading, const struct ipw_spec *table, bool event)
{
    const char *end, *rows = rows_after(heading, "\n| key |", &end);
    size_t in_page = 0, in_table = 0;

    for (const char *line = rows; line < end; line = strchr(line, '\n') + 1) {
        const char *cell_end = strchr(line + 1, '|');

        for (const char *p = strchr(line, '`'); p && p < cell_end; p = strchr(p + 1, '`')) {
            const char *close = strchr(p + 1, '`');
            char key[64] = "";

            assert_true((size_t)(close - p) < sizeof key);
            memcpy(key, p + 1, (size_t)(close - p - 1));
            if (!row_of(table, key)) fail_msg("%s: %s is in no table of src/trace", heading, key);
            in_page++;
            p = close;
        }
    }
    for (const struct ipw_spec *s = table; s->key; s++) {
        bool found = false;

        if (event && is_of_every_event(s->key)) continue;
        in_table++;
        for (const char *line = rows; line < end && !found; line = strchr(line, '\n') + 1)
            found = has_word(line, strchr(line + 1, '|'), s->key);
        if (!found) fail_msg("%s: %s is not in docs/trace-format.md", heading, s->key);
    }
    if (in_page != in_table) fail_msg("%s: a key stands there twice", heading);
}

static void keys_of_lines_and_files(void **state)
{
    const struct ipw_spec *turn = row_of(ipw_spec_trace, "turns")->of;
    const struct ipw_spec *energy = row_of(ipw_spec_trace, "energy")->of;

    (void)state;
    compare("\n## Figures", row_of(energy, "gpu")->of, false);
    compare("\n### The query", ipw_spec_trace, false);
    compare("\n### A turn", turn, false);
    compare("\n### A span", row_of(turn, "spans")->of, false);
    compare("\n`lm_inference_end` has", ipw_spec_event("lm_inference_end"), true);
    compare("\n`segments`:", row_of(ipw_spec_manifest, "segments")->of, false);
    compare("\n## summary.json", ipw_spec_summary, false);
}

/* The second cell of an event's row names its own keys, among other words. */
static void own_keys_of_events(void **state)
{
    const char *end, *rows = rows_after("\n## events.jsonl", "\n| `event` |", &end);

    (void)state;
    for (int k = 0; k < IPW_EV_KINDS; k++) {
        const char *name = ipw_event_name((enum ipw_event_kind)k), *line = rows;

        while (line < end && !has_word(line, strchr(line + 1, '|'), name))
            line = strchr(line, '\n') + 1;
        if (line >= end) fail_msg("events.jsonl: no row of %s", name);
        if (k == IPW_EV_LM_END) continue; /* it has a table */
        for (const struct ipw_spec *s = ipw_spec_event(name); s->key; s++) {
            const char *cell = strchr(line + 1, '|');

            if (is_of_every_event(s->key)) continue;
            if (!has_word(cell, strchr(cell + 1, '|'), s->key))
                fail_msg("events.jsonl: the row of %s does not name %s", name, s->key);
        }
    }
}

/* The writer relies on it: keys come out in the order of their bytes. */
static void tables_are_in_order(void **state)
{
    const struct ipw_spec *turn = row_of(ipw_spec_trace, "turns")->of;
    const struct ipw_spec *tables[3 + IPW_EV_KINDS] = {ipw_spec_trace, turn,
                                                       row_of(turn, "spans")->of};

    (void)state;
    for (int k = 0; k < IPW_EV_KINDS; k++)
        tables[3 + k] = ipw_spec_event(ipw_event_name((enum ipw_event_kind)k));
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        for (const struct ipw_spec *s = tables[i]; s[0].key && s[1].key; s++)
            if (strcmp(s[0].key, s[1].key) >= 0) fail_msg("%s before %s", s[0].key, s[1].key);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_of_lines_and_files),
        cmocka_unit_test(own_keys_of_events),
        cmocka_unit_test(tables_are_in_order),
    };

    return cmocka_run_group_tests(tests, open_page, close_page);
}
