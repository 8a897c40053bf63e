/* libFuzzer target for what the recording proxy reads.  The first byte chooses the protocol and the
 * step; a request's body follows up to the first NUL, and behind it a stream.  A body that is read
 * gives a request that asks for usage and is JSON still; a filtered stream does not depend on where
 * it was cut; a fold of any bytes ends in a reply that is JSON. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "io/sse.h"
#include "proxy/call.h"
#include "proxy/usage_filter.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_body(const char *path, const char *body, size_t n)
{
    struct ipw_proxy_call call;
    struct ipw_buf asked = IPW_BUF(n + IPW_ASK_USAGE_BYTES);
    const struct ipw_json *options;
    struct ipw_json *doc;

    ipw_proxy_call_of_path(&call, "POST", path);
    if (ipw_proxy_call_read(&call, body, n, NULL) == 0 && ipw_proxy_call_wants_usage(&call)) {
        ipw_proxy_call_ask_usage(&asked, body, n);
        if (ipw_json_parse(&doc, ipw_buf_str(&asked), asked.len, NULL, NULL)) abort();
        options = ipw_json_get(doc, "stream_options");
        /* A name that is written with an escape is not looked for. */
        if (!memmem(body, n, "\\u", 2) &&
            !ipw_json_bool(ipw_json_get(options, "include_usage"), false))
            abort();
        ipw_json_free(doc);
    }
    ipw_buf_release(&asked);
    ipw_proxy_call_release(&call);
}

static void filter(struct ipw_buf *out, const char *bytes, size_t n, size_t step)
{
    struct ipw_usage_filter f;

    *out = IPW_BUF(n + 1);
    ipw_usage_filter_init(&f);
    for (size_t at = 0; at < n; at += step)
        ipw_usage_filter_feed(&f, out, bytes + at, n - at < step ? n - at : step);
    ipw_usage_filter_end(&f, out);
    ipw_usage_filter_release(&f);
    if (out->failed) abort(); /* it never grows */
}

static int fold_event(void *fold, const struct ipw_sse_event *event, struct ipw_err *err)
{
    int rc = ipw_chat_fold_event(fold, event->name, event->data, event->data_len, err);

    return rc < 0 ? rc : 0;
}

static void fold(enum ipw_chat_protocol protocol, const char *bytes, size_t n)
{
    struct ipw_chat_fold *fold = ipw_chat_fold_new(IPW_MIB);
    struct ipw_buf text = IPW_BUF(64 * IPW_MIB);
    struct ipw_chat_reply reply;
    struct ipw_json *doc;
    struct ipw_sse sse;

    ipw_chat_fold_set_protocol(fold, protocol);
    ipw_sse_init(&sse, IPW_MIB, fold_event, fold);
    if (ipw_sse_feed(&sse, bytes, n, NULL) == 0) ipw_sse_end(&sse, NULL);
    ipw_chat_fold_whole(fold, bytes, n, NULL);
    ipw_chat_fold_end(fold, &reply, NULL);
    ipw_chat_reply_json(&text, &reply);
    if (ipw_json_parse(&doc, ipw_buf_str(&text), text.len, NULL, NULL)) abort();
    ipw_json_free(doc);
    ipw_chat_reply_release(&reply);
    ipw_sse_release(&sse);
    ipw_chat_fold_free(fold);
    ipw_buf_release(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const paths[] = {"/chat/completions", "/responses", "/messages",
                                        "/completions"};
    struct ipw_buf whole, cut;
    const char *body, *stream;
    size_t n;

    if (size < 2) return 0;
    body = (const char *)data + 1;
    stream = memchr(body, '\0', size - 1);
    stream = stream ? stream + 1 : body;
    n = (size_t)((const char *)data + size - stream);
    read_body(paths[data[0] % 4], body, size - 1 - (stream > body ? n + 1 : 0));
    filter(&whole, stream, n, n + 1);
    filter(&cut, stream, n, 1 + data[0] % 7);
    if (whole.len != cut.len || (whole.len && memcmp(whole.data, cut.data, whole.len))) abort();
    fold((enum ipw_chat_protocol)(data[0] % 4), stream, n);
    ipw_buf_release(&whole);
    ipw_buf_release(&cut);
    return 0;
}
