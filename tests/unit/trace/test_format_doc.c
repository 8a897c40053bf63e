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
#include "unit/unit.h"

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

/* The first table between `at` and `end` whose head begins with `head`: from its first row to the
 * line after its last.  NULL: there is none. */
static const char *next_rows(const char *at, const char *end, const char *head,
                             const char **rows_end)
{
    const char *line = strstr(at, head);

    if (!line || line >= end) return NULL;
    line = strchr(line + 1, '\n') + 1; /* the line of dashes */
    line = strchr(line, '\n') + 1;
    for (*rows_end = line; **rows_end == '|'; *rows_end = strchr(*rows_end, '\n') + 1) continue;
    return line;
}

/* A section goes from its heading to the next heading of two or three signs. */
static const char *section(const char *heading, const char **end)
{
    const char *at = strstr(page, heading), *next;

    if (!at) fail_msg("docs/trace-format.md: no \"%s\"", heading);
    *end = page + strlen(page);
    if ((next = strstr(at + 1, "\n## ")) && next < *end) *end = next;
    if ((next = strstr(at + 1, "\n### ")) && next < *end) *end = next;
    return at;
}

static bool is_of_every_event(const char *key)
{
    return row_of(ipw_spec_event("run_end"), key) != NULL;
}

static size_t keys_of_row(const char *heading, const char *line, const struct ipw_spec *table)
{
    const char *cell_end = strchr(line + 1, '|');
    size_t n = 0;

    for (const char *p = strchr(line, '`'); p && p < cell_end; p = strchr(p + 1, '`')) {
        const char *close = strchr(p + 1, '`');
        char key[64] = "";

        assert_true((size_t)(close - p) < sizeof key);
        memcpy(key, p + 1, (size_t)(close - p - 1));
        if (!row_of(table, key)) fail_msg("%s: %s is in no table of src/trace", heading, key);
        n++;
        p = close;
    }
    return n;
}

/* Whether a row of the section's tables has `key` in its first cell. */
static bool in_section(const char *at, const char *end, const char *head, const char *key)
{
    const char *rows_end = at;

    for (const char *rows; (rows = next_rows(at, end, head, &rows_end)); at = rows_end - 1)
        for (const char *line = rows; line < rows_end; line = strchr(line, '\n') + 1)
            if (has_word(line, strchr(line + 1, '|'), key)) return true;
    return false;
}

/* Every key in a first cell of the section's tables with this head is a key of the table, and the
 * other way round. */
static void compare(const char *heading, const char *head, const struct ipw_spec *table, bool event)
{
    const char *end, *rows_end, *start = section(heading, &end), *at = start;
    size_t in_page = 0, in_table = 0;

    for (const char *rows; (rows = next_rows(at, end, head, &rows_end)); at = rows_end - 1)
        for (const char *line = rows; line < rows_end; line = strchr(line, '\n') + 1)
            in_page += keys_of_row(heading, line, table);
    for (const struct ipw_spec *s = table; s->key; s++) {
        if (event && is_of_every_event(s->key)) continue;
        in_table++;
        if (!in_section(start, end, head, s->key))
            fail_msg("%s: %s is not in docs/trace-format.md", heading, s->key);
    }
    if (in_page != in_table) fail_msg("%s: a key stands there twice", heading);
}

#define KEY "\n| key | type |"

static void keys_of_lines(void **state)
{
    const struct ipw_spec *turn = row_of(ipw_spec_trace, "turns")->of;
    const struct ipw_spec *energy = row_of(ipw_spec_trace, "energy")->of;

    (void)state;
    compare("\n## Energy values", KEY, row_of(energy, "gpu")->of, false);
    compare("\n### Query", KEY, ipw_spec_trace, false);
    compare("\n### Turn", KEY, turn, false);
    compare("\n### Span", KEY, row_of(turn, "spans")->of, false);
    compare("\n## events.jsonl", KEY, ipw_spec_event("run_end"), false);
    compare("\n### Keys of `lm_inference_end`", KEY, ipw_spec_event("lm_inference_end"), true);
}

static void keys_of_files(void **state)
{
    const struct ipw_spec *source = row_of(ipw_spec_power_header, "sources")->of;

    (void)state;
    compare("\n## power.jsonl", KEY, ipw_spec_power_header, false);
    compare("\n## power.jsonl", "\n| key in `sources` |", source, false);
    compare("\n## power.jsonl", "\n| key in `channels` |", row_of(source, "channels")->of, false);
    compare("\n## manifest.json", KEY, ipw_spec_manifest, false);
    compare("\n### Keys of `segments`", KEY, row_of(ipw_spec_manifest, "segments")->of, false);
    compare("\n## summary.json", KEY, ipw_spec_summary, false);
    compare("\n### Keys of `run`", KEY, row_of(ipw_spec_summary, "run")->of, false);
    compare("\n### Keys of `totals`", KEY, row_of(ipw_spec_summary, "totals")->of, false);
    compare("\n### Keys of `ledger`", KEY, row_of(ipw_spec_summary, "ledger")->of, false);
}

/* The second cell of an event's row names its own keys, among other words. */
static void own_keys_of_events(void **state)
{
    const char *end, *rows_end = NULL, *start = section("\n## events.jsonl", &end);
    const char *rows = next_rows(start, end, "\n| `event` | own keys |", &rows_end);

    (void)state;
    assert_non_null(rows);
    for (int k = 0; k < IPW_EV_KINDS; k++) {
        const char *name = ipw_event_name((enum ipw_event_kind)k), *line = rows;

        while (line < rows_end && !has_word(line, strchr(line + 1, '|'), name))
            line = strchr(line, '\n') + 1;
        if (line >= rows_end) fail_msg("events.jsonl: no row of %s", name);
        if (k == IPW_EV_LM_END) continue; /* it has a table */
        for (const struct ipw_spec *s = ipw_spec_event(name); s->key; s++) {
            const char *cell = strchr(line + 1, '|');

            if (is_of_every_event(s->key)) continue;
            if (!has_word(cell, strchr(cell + 1, '|'), s->key))
                fail_msg("events.jsonl: the row of %s does not name %s", name, s->key);
        }
    }
}

/* A cell is read at a glance; what needs more words stands below its table. */
static void cells_are_short(void **state)
{
    enum { MOST_WORDS = 15 };

    (void)state;
    for (const char *line = page; *line; line = strchr(line, '\n') + 1) {
        int words = 0;

        if (*line != '|') continue;
        for (const char *p = line; *p != '\n'; p++) {
            if (*p == '|') words = 0;
            words += *p == ' ' && p[1] != '|';
            if (words > MOST_WORDS)
                fail_msg("a cell of more than %d words: %.60s", MOST_WORDS, line);
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

UNIT(format_doc)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_of_lines),       cmocka_unit_test(keys_of_files),
        cmocka_unit_test(own_keys_of_events),  cmocka_unit_test(cells_are_short),
        cmocka_unit_test(tables_are_in_order),
    };

    return cmocka_run_group_tests(tests, open_page, close_page);
}
