/* libFuzzer target for the chat fold.  The first byte chooses the reply's ceiling; each line after
 * it is one event ('!' first: one named "error").  The scanner must do what parsing every event
 * does, flag for flag and byte for byte, and what goes back into the history of each call must be
 * an id, a name and the text of one clean JSON object. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "json/json.h"
#include "llm/chat.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_history(const struct ipw_chat_reply *reply)
{
    for (size_t i = 0; i < reply->n_calls; i++) {
        const struct ipw_chat_call *call = &reply->calls[i];
        struct ipw_buf out = IPW_BUF(3 * call->arguments.len + 2);
        struct ipw_json *arguments;
        size_t repairs = 0;

        ipw_chat_history_arguments(&out, call);
        if (out.failed || !ipw_utf8_valid(out.data, out.len)) abort();
        if (ipw_json_parse(&arguments, out.data, out.len, &repairs, NULL)) abort();
        if (repairs || ipw_json_kind(arguments) != IPW_JSON_OBJ) abort();
        if (!*call->id || !*ipw_chat_history_name(call)) abort();
        ipw_json_free(arguments);
        ipw_buf_release(&out);
    }
}

static void run(struct ipw_buf *trail, const uint8_t *data, size_t size, size_t ceiling, bool exact)
{
    struct ipw_chat_fold *fold = ipw_chat_fold_new(ceiling);
    struct ipw_chat_reply reply;
    int rc = 0;

    ipw_buf_init(trail, 64 * IPW_MIB);
    ipw_chat_fold_set_exact(fold, exact);
    for (size_t at = 0; at < size && rc >= 0;) {
        const uint8_t *end = memchr(data + at, '\n', size - at);
        size_t n = end ? (size_t)(end - data) - at : size - at;
        bool named = n > 0 && data[at] == '!';
        char *event = malloc(n - named + 1); /* ends with a NUL, as the SSE parser's events do */

        memcpy(event, data + at + named, n - named);
        event[n - named] = '\0';
        rc = ipw_chat_fold_event(fold, named ? "error" : "", event, n - named, NULL);
        ipw_buf_addf(trail, "%d ", rc);
        free(event);
        at += n + 1;
    }
    rc = ipw_chat_fold_end(fold, &reply, NULL);
    ipw_buf_addf(trail, "%d ", rc);
    ipw_chat_reply_json(trail, &reply);
    check_history(&reply);
    ipw_chat_reply_release(&reply);
    ipw_chat_fold_free(fold);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ipw_buf fast, exact;
    size_t ceiling;

    if (size == 0) return 0;
    ceiling = data[0] < 64 ? data[0] : IPW_MIB;
    run(&fast, data + 1, size - 1, ceiling, false);
    run(&exact, data + 1, size - 1, ceiling, true);
    if (fast.len != exact.len || memcmp(fast.data, exact.data, fast.len) != 0) abort();
    ipw_buf_release(&fast);
    ipw_buf_release(&exact);
    return 0;
}
