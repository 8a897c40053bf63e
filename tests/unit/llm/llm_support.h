/* What the tests of src/llm share: files of tests/data/llm, events out of stream texts, and a reply
 * as one line that leaves out what is empty, so that a table can say what is expected. */
#ifndef IPW_TEST_LLM_SUPPORT_H
#define IPW_TEST_LLM_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "io/sse.h"
#include "json/jsonl.h"
#include "llm/chat.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

static const char *const STREAMS[] = {"11-stream-usage",          "12-stream-no-usage",
                                      "14-timings-per-token",     "21-tools-stream",
                                      "22-tools-stream-parallel", "60-reasoning-stream"};

static inline void slurp(struct ipw_buf *out, const char *name, const char *ending)
{
    char *path = ipw_asprintf("%s/llm/%s%s", IPW_TEST_DATA, name, ending);
    struct ipw_err err = {0};

    ipw_buf_init(out, 4 * IPW_MIB);
    if (ipw_file_read(out, path, &err)) fail_msg("%s", err.text);
    free(path);
}

/* The data lines of a stream text, one an event (what our files hold); without any parser of ours.
 */
struct events {
    char **data;
    size_t n, cap;
};

static inline void events_of(struct events *out, const char *stream)
{
    *out = (struct events){0};
    for (const char *line = stream; *line;) {
        const char *end = strchrnul(line, '\n');

        if (strncmp(line, "data: ", 6) == 0) {
            IPW_GROW(out->data, out->cap, out->n + 1);
            out->data[out->n++] = ipw_memdup(line + 6, (size_t)(end - line - 6));
        }
        line = *end ? end + 1 : end;
    }
}

static inline void events_free(struct events *events)
{
    for (size_t i = 0; i < events->n; i++) free(events->data[i]);
    free(events->data);
}

static inline void summary_count(struct ipw_buf *out, const char *name, int64_t n)
{
    if (n >= 0) ipw_buf_addf(out, " %s=%lld", name, (long long)n);
}

/* "ok text=[Hello] finish=stop/1 prompt=3 chunks=1 call=[id name arguments]" */
static inline char *summary(int code, const struct ipw_chat_reply *r)
{
    struct ipw_buf out = IPW_BUF(4 * IPW_MIB);

    ipw_buf_adds(&out, ipw_code_name((enum ipw_code)code));
    if (r->text.len) ipw_buf_addf(&out, " text=[%s]", r->text.data);
    if (r->reasoning.len) ipw_buf_addf(&out, " reasoning=[%s]", r->reasoning.data);
    if (r->finish_word) ipw_buf_addf(&out, " finish=%s/%d", r->finish_word, (int)r->finish);
    summary_count(&out, "prompt", r->usage.prompt);
    summary_count(&out, "completion", r->usage.completion);
    summary_count(&out, "total", r->usage.total);
    summary_count(&out, "cached", r->usage.cached);
    summary_count(&out, "thought", r->usage.reasoning);
    if (r->chunks) summary_count(&out, "chunks", r->chunks);
    if (r->repairs) summary_count(&out, "repairs", r->repairs);
    if (r->ignored_choices) summary_count(&out, "ignored", r->ignored_choices);
    if (r->model) ipw_buf_addf(&out, " model=%s", r->model);
    if (r->timings) ipw_buf_addf(&out, " timings=%s", r->timings);
    for (size_t i = 0; i < r->n_calls; i++)
        ipw_buf_addf(&out, " call=[%s %s %s]", r->calls[i].id, r->calls[i].name,
                     ipw_buf_str(&r->calls[i].arguments));
    if (r->done_marker) ipw_buf_adds(&out, " done");
    if (r->error) ipw_buf_addf(&out, " error=[%s]", r->error);
    if (r->error_type) ipw_buf_addf(&out, " type=%s", r->error_type);
    if (r->error_code) summary_count(&out, "status", r->error_code);
    return ipw_buf_take(&out, NULL);
}

/* Folds events (an item that begins with '!' is one named "error") and describes the outcome; an
 * event that is refused ends it. */
static inline char *fold_events(const char *const *events, size_t n, bool exact)
{
    struct ipw_chat_fold *fold = ipw_chat_fold_new(IPW_MIB);
    struct ipw_chat_reply reply;
    char *text;
    int rc = 0;

    ipw_chat_fold_set_exact(fold, exact);
    for (size_t i = 0; i < n && events[i] && rc >= 0; i++) {
        bool named = events[i][0] == '!';
        const char *data = events[i] + named;

        rc = ipw_chat_fold_event(fold, named ? "error" : "", data, strlen(data), NULL);
    }
    if (rc >= 0) {
        rc = ipw_chat_fold_end(fold, &reply, NULL);
    } else {
        ipw_chat_fold_end(fold, &reply, NULL);
    }
    text = summary(rc, &reply);
    ipw_chat_reply_release(&reply);
    ipw_chat_fold_free(fold);
    return text;
}

static inline int fold_from_sse(void *ud, const struct ipw_sse_event *event, struct ipw_err *err)
{
    int rc = ipw_chat_fold_event(ud, event->name, event->data, event->data_len, err);

    return rc < 0 ? rc : 0;
}

/* The bytes of a stream through the SSE parser, cut at `cut` (SIZE_MAX: a byte at a time). */
static inline char *fold_stream(const char *bytes, size_t n, size_t cut)
{
    struct ipw_chat_fold *fold = ipw_chat_fold_new(IPW_MIB);
    struct ipw_chat_reply reply;
    struct ipw_sse sse;
    int rc = 0, end;
    char *text;

    ipw_sse_init(&sse, IPW_MIB, fold_from_sse, fold);
    if (cut == SIZE_MAX) {
        for (size_t i = 0; i < n && rc == 0; i++) rc = ipw_sse_feed(&sse, bytes + i, 1, NULL);
    } else {
        rc = ipw_sse_feed(&sse, bytes, cut, NULL);
        if (rc == 0) rc = ipw_sse_feed(&sse, bytes + cut, n - cut, NULL);
    }
    if (rc == 0) rc = ipw_sse_end(&sse, NULL);
    end = ipw_chat_fold_end(fold, &reply, NULL);
    text = summary(rc < 0 ? rc : end, &reply);
    ipw_chat_reply_release(&reply);
    ipw_chat_fold_free(fold);
    ipw_sse_release(&sse);
    return text;
}

/* The events as a stream, with each kind of line end, cut at every byte: always `want`. */
static inline void expect_at_every_split(const char *what, const char *const *events, size_t n,
                                         const char *want)
{
    static const char *const ends[] = {"\n", "\r\n", "\r"};

    for (size_t k = 0; k < COUNT(ends); k++) {
        struct ipw_buf stream = IPW_BUF(IPW_MIB);

        for (size_t i = 0; i < n && events[i]; i++) {
            bool named = events[i][0] == '!';

            if (named) ipw_buf_addf(&stream, "event: error%s", ends[k]);
            ipw_buf_addf(&stream, "data: %s%s%s", events[i] + named, ends[k], ends[k]);
        }
        for (size_t cut = 0; cut <= stream.len; cut++) {
            char *got = fold_stream(ipw_buf_str(&stream), stream.len, cut ? cut - 1 : SIZE_MAX);

            if (strcmp(got, want) != 0)
                fail_msg("%s, line end %zu, cut %zu\n  got:  %s\n  want: %s", what, k, cut, got,
                         want);
            free(got);
        }
        ipw_buf_release(&stream);
    }
}

static inline char *fold_whole(const char *body)
{
    struct ipw_chat_fold *fold = ipw_chat_fold_new(IPW_MIB);
    struct ipw_chat_reply reply;
    int rc = ipw_chat_fold_whole(fold, body, strlen(body), NULL), end;
    char *text;

    end = ipw_chat_fold_end(fold, &reply, NULL);
    text = summary(rc < 0 ? rc : end, &reply);
    ipw_chat_reply_release(&reply);
    ipw_chat_fold_free(fold);
    return text;
}

static inline void expect_text(const char *what, char *got, const char *want)
{
    if (strcmp(got, want) != 0) fail_msg("%s\n  got:  %s\n  want: %s", what, got, want);
    free(got);
}

#endif
