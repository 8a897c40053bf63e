/* What a client sends to `serve`: the request, behind a NUL the reply of a model's script, behind
 * another the Host.  A refusal is the client's fault; a reply that goes out says the same to our
 * own client, streamed and whole; and a Host that is not a name of loopback is never answered. */
#include <strings.h>

#include "check.h"
#include "io/sse.h"
#include "llm/chat.h"
#include "serve/completion.h"
#include "serve/visitor.h"

static int fold_event(void *ud, const struct ipw_sse_event *event, struct ipw_err *err)
{
    int rc = ipw_chat_fold_event(ud, event->name, event->data, event->data_len, err);

    return rc < 0 ? rc : 0;
}

static void read_stream(struct ipw_chat_reply *out, const struct ipw_serve_answer *answer)
{
    struct ipw_chat_fold *fold = ipw_chat_fold_new(64 * IPW_MIB);
    struct ipw_err err = {0};
    struct ipw_sse sse;

    ipw_sse_init(&sse, 64 * IPW_MIB, fold_event, fold);
    if (ipw_sse_feed(&sse, answer->bytes.data, answer->bytes.len, &err) ||
        ipw_sse_end(&sse, &err) || ipw_chat_fold_end(fold, out, &err))
        IPW_BUG("our own stream: %s", err.text);
    check(out->done_marker, "a stream without [DONE]");
    ipw_sse_release(&sse);
    ipw_chat_fold_free(fold);
}

static void read_whole(struct ipw_chat_reply *out, const struct ipw_serve_answer *answer)
{
    struct ipw_chat_fold *fold = ipw_chat_fold_new(64 * IPW_MIB);
    struct ipw_err err = {0};

    if (ipw_chat_fold_whole(fold, answer->bytes.data, answer->bytes.len, &err) < 0 ||
        ipw_chat_fold_end(fold, out, &err))
        IPW_BUG("our own answer: %s", err.text);
    ipw_chat_fold_free(fold);
}

static void check_same(const struct ipw_chat_reply *got, const struct ipw_chat_reply *reply)
{
    check(got->text.len == reply->text.len &&
              (!reply->text.len || !memcmp(got->text.data, reply->text.data, reply->text.len)),
          "another text");
    check(got->n_calls == reply->n_calls, "another number of calls");
    check(got->finish_word && !strcmp(got->finish_word, reply->finish_word),
          "another finish reason");
    for (size_t i = 0; i < reply->n_calls; i++) {
        const char *name = got->calls[i].name ? got->calls[i].name : "";
        const char *wrote = ipw_buf_str(&reply->calls[i].arguments);
        const char *arguments = *wrote ? wrote : "{}";

        check(!strcmp(name, reply->calls[i].name), "another call");
        check(!strcmp(ipw_buf_str(&got->calls[i].arguments), arguments), "other arguments");
    }
}

static void check_parts(const struct ipw_serve_answer *answer)
{
    size_t end = 0;

    for (size_t i = 0; i < answer->n_parts; i++) {
        check(answer->parts[i].end >= end, "parts that go back");
        end = answer->parts[i].end;
    }
    check(end == answer->bytes.len, "bytes that belong to no part");
}

static void check_reply(struct ipw_serve_ask *ask, const char *text, size_t n)
{
    struct ipw_serve_answer answer;
    struct ipw_chat_reply reply, got;
    struct ipw_err err = {0};
    int rc = ipw_serve_reply_read(&reply, text, n, ask, &err);

    if (rc) {
        check_error(&err, rc);
        return;
    }
    check(ask->max_tokens < 0 || reply.usage.completion <= ask->max_tokens,
          "more tokens than asked for");
    ask->include_usage = true;
    ipw_serve_answer_stream(&answer, ask, &reply, 1);
    check_parts(&answer);
    read_stream(&got, &answer);
    check_same(&got, &reply);
    check(got.usage.completion == reply.usage.completion, "other usage");
    ipw_chat_reply_release(&got);
    ipw_serve_answer_release(&answer);
    ipw_serve_answer_whole(&answer, ask, &reply, 1);
    check_parts(&answer);
    read_whole(&got, &answer);
    check_same(&got, &reply);
    ipw_chat_reply_release(&got);
    ipw_serve_answer_release(&answer);
    ipw_chat_reply_release(&reply);
}

static void check_host(const char *host)
{
    static const struct ipw_visitor_rules near = {0};
    static const struct ipw_visitor_rules exposed = {.exposed = true, .own_name = "box"};
    bool answered = ipw_visitor_host(&near, host);
    struct ipw_buf longer = IPW_BUF(IPW_MIB);
    char message[400];

    if (answered) {
        check(ipw_visitor_host(&exposed, host), "less is answered where more may ask");
        check(!strncasecmp(host, "localhost", 9) || !strncmp(host, "127.", 4) || *host == '[',
              "a name that anybody can have");
        ipw_buf_addf(&longer, "%.*s.evil.example", (int)strcspn(host, ":"), host);
        check(*host == '[' || !ipw_visitor_host(&near, ipw_buf_str(&longer)), "a longer name");
    }
    check(ipw_visitor_post(&near, NULL, host) && ipw_visitor_post(&near, host, "application/json"),
          "a client that is no browser is refused");
    ipw_visitor_say_host(message, sizeof message, host);
    check(ipw_utf8_valid(message, strlen(message)), "a message that is not UTF-8");
    ipw_buf_release(&longer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = exact_text(data, size), *reply, *host;
    char *end = text + size;
    struct ipw_json *body = NULL;
    struct ipw_serve_ask ask;
    struct ipw_err err = {0};
    int rc;

    reply = text + strlen(text) < end ? text + strlen(text) + 1 : end;
    host = reply + strlen(reply) < end ? reply + strlen(reply) + 1 : end;
    check_host(host);
    if (ipw_json_parse(&body, text, strlen(text), NULL, NULL) == 0) {
        rc = ipw_serve_ask_read(&ask, body, text, strlen(text), &err);
        if (rc) {
            check_error(&err, rc);
            check(rc == IPW_EINVAL, "a refusal that is not the client's fault");
        } else {
            check(ask.model && ask.prompt_tokens >= 0 &&
                      (ask.max_tokens == -1 || ask.max_tokens > 0),
                  "a request with what it cannot have");
            check_reply(&ask, reply, strlen(reply));
        }
        ipw_json_free(body);
    }
    free(text);
    return 0;
}
