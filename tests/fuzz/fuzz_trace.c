/* Lines of traces.jsonl, attempts.jsonl and events.jsonl: no line crashes a reader; what the tables
 * of trace/spec.h accept the readers take, too; and what was read and written again reads the same.
 * The events of one input together go through the turn builder, as in `ledger`. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "json/json.h"
#include "json_mutate.h"
#include "trace/event.h"
#include "trace/schema.h"
#include "trace/spec.h"
#include "trace/turn.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void write_again(struct ipw_buf *out, const struct ipw_query_loaded *q)
{
    ipw_schema_write_query(out, &q->trace, &q->details, NULL);
    if (out->failed || !ipw_json_valid(out->data, out->len)) abort();
}

/* Written once, a query is in our words: the second writing has to be the first, byte for byte. */
static void read_query(const char *line, size_t n, const struct ipw_json *doc)
{
    struct ipw_query_loaded query, again;
    struct ipw_buf one = IPW_BUF(64 * IPW_MIB), two = IPW_BUF(64 * IPW_MIB);
    struct ipw_err err;

    if (ipw_schema_read_query(&query, line, n, &err) == 0) {
        write_again(&one, &query);
        if (ipw_schema_read_query(&again, one.data, one.len, &err)) abort();
        write_again(&two, &again);
        if (one.len != two.len || memcmp(one.data, two.data, one.len) != 0) abort();
        ipw_query_loaded_release(&again);
        ipw_query_loaded_release(&query);
    } else if (doc && ipw_spec_check(doc, ipw_spec_trace, &err) == 0 &&
               ipw_spec_check_query(doc, &err) == 0) {
        abort();
    }
    ipw_buf_release(&one);
    ipw_buf_release(&two);
}

static void read_event(struct ipw_turn_builder *turns, const struct ipw_json *doc)
{
    const char *name = ipw_json_str(ipw_json_get(doc, "event"), NULL);
    const struct ipw_spec *table = name ? ipw_spec_event(name) : NULL;
    struct ipw_buf one = IPW_BUF(IPW_MIB), two = IPW_BUF(IPW_MIB);
    struct ipw_json *back = NULL;
    struct ipw_event event, again;
    struct ipw_err err;

    if (ipw_event_read(&event, doc, &err)) {
        if (table && ipw_spec_check(doc, table, &err) == 0) abort();
        return;
    }
    ipw_turn_builder_add(turns, &event);
    ipw_event_write(&one, &event);
    if (ipw_json_parse(&back, one.data, one.len - 1, NULL, &err)) abort();
    if (ipw_event_read(&again, back, &err)) abort();
    ipw_event_write(&two, &again);
    if (one.len != two.len || memcmp(one.data, two.data, one.len) != 0) abort();
    ipw_json_free(back);
    ipw_buf_release(&one);
    ipw_buf_release(&two);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ipw_query_details details = {.workload_type = "agentic",
                                        .query_text = "",
                                        .response_text = "",
                                        .is_resolved = -1,
                                        .lua_peak_bytes = -1,
                                        .lua_cpu_ns = -1};
    struct ipw_turn_builder *turns = ipw_turn_builder_new();
    struct ipw_buf line = IPW_BUF(64 * IPW_MIB);
    struct ipw_query_trace built;
    const char *at = (const char *)data, *end = at + size;

    while (at < end) {
        const char *feed = memchr(at, '\n', (size_t)(end - at));
        size_t n = (size_t)((feed ? feed : end) - at);
        char *text = malloc(n + 1); /* of the exact size, so that reading beyond is seen */
        struct ipw_json *doc = NULL;
        struct ipw_err err;

        if (!text) abort();
        memcpy(text, at, n);
        text[n] = '\0';
        if (ipw_json_parse(&doc, text, n, NULL, &err)) doc = NULL;
        if (doc) read_event(turns, doc);
        read_query(text, n, doc);
        ipw_json_free(doc);
        free(text);
        at = feed ? feed + 1 : end;
    }
    ipw_turn_builder_finish(turns, &built);
    ipw_schema_write_query(&line, &built, &details, NULL);
    if (line.failed || !ipw_json_valid(line.data, line.len)) abort();
    ipw_query_trace_release(&built);
    ipw_buf_release(&line);
    return 0;
}
