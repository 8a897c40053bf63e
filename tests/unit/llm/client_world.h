/* The world of a client test: a scripted server, a loop, a client, and a watch that keeps what its
 * callbacks were told and checks what must hold in each of them. */
#ifndef IPW_TEST_CLIENT_WORLD_H
#define IPW_TEST_CLIENT_WORLD_H

#include "llm_support.h"

#include <math.h>

#include "base/clock.h"
#include "io/http_priv.h"
#include "llm/client.h"
#include "scripted_server.h"

#define HEAD(status, type) "HTTP/1.1 " status "\r\nContent-Type: " type "\r\nConnection: close\r\n"
#define STREAM             HEAD("200 OK", "text/event-stream") "\r\n"
#define JSON200            HEAD("200 OK", "application/json") "\r\n"
#define C(text)            "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"" text "\"}}]}\n\n"
#define FINISH             "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n"
#define USAGE              "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":2}}\n\n"
#define DONE               "data: [DONE]\n\n"
#define OK_STREAM          STREAM C("Hel") C("lo") FINISH USAGE DONE
#define ERROR(status, message)                                                                     \
    HEAD(status, "application/json") "\r\n{\"error\":{\"message\":\"" message "\"}}"

enum { MOST_ENDS = 12 };

struct watch {
    struct ipw_loop *loop;
    struct ipw_llm_call *call;
    int started, ended, done;
    int code;
    bool retryable;
    char *text, *error, *model; /* of on_done */
    char *bodies[MOST_ENDS];
    struct ipw_lm_facts facts[MOST_ENDS]; /* strings not kept */
    int64_t next[MOST_ENDS];
    bool had_reply[MOST_ENDS];
    int cancel_at; /* in which callback: 1 on_attempt, 2 on_attempt_end, 3 on_done */
};

static inline void stop_if_cancelled(struct watch *w, int where)
{
    if (w->cancel_at != where) return;
    ipw_llm_cancel(w->call);
    ipw_loop_stop(w->loop);
}

static inline void on_attempt(void *ud, int attempt, int64_t t_ns, const char *body, size_t n)
{
    struct watch *w = ud;

    assert_int_equal(attempt, w->started + 1);
    assert_true(t_ns > 0);
    w->bodies[w->started++] = ipw_memdup(body, n);
    stop_if_cancelled(w, 1);
}

static inline void on_attempt_end(void *ud, int64_t t_ns, const struct ipw_lm_facts *facts,
                                  const struct ipw_chat_reply *reply, int64_t next_try_ns)
{
    struct watch *w = ud;

    assert_int_equal(facts->attempt, w->started);
    assert_int_equal(facts->will_retry, next_try_ns > 0);
    assert_true(t_ns >= facts->times.sent_ns);
    assert_true((facts->outcome == IPW_LM_OK) == (facts->error == NULL));
    w->had_reply[w->ended] = reply != NULL;
    w->next[w->ended] = next_try_ns;
    w->facts[w->ended++] = *facts;
    stop_if_cancelled(w, 2);
}

static inline void on_done(void *ud, int code, struct ipw_chat_reply *reply,
                           const struct ipw_err *err, bool retryable)
{
    struct watch *w = ud;

    w->done++;
    w->code = code;
    w->retryable = retryable;
    assert_true((code == 0) == (reply != NULL) && (code == 0) == (err == NULL));
    if (reply) w->text = ipw_strdup(ipw_buf_str(&reply->text));
    if (err) {
        assert_int_equal(err->code, code);
        w->error = ipw_strdup(err->text);
    }
    if (w->cancel_at == 3) ipw_llm_cancel(w->call);
    ipw_loop_stop(w->loop);
}

struct world {
    struct ipw_loop *loop;
    struct ipw_http *http;
    struct ipw_llm *llm;
    struct server server;
    struct watch watch;
    char *url;
};

static const struct ipw_chat_text MESSAGE = {"{\"content\":\"Hi\",\"role\":\"user\"}", 30};

static inline void world_open(struct world *w, const struct script_line *script, size_t n,
                              struct ipw_llm_options options)
{
    struct ipw_err err = {0};

    *w = (struct world){0};
    server_start(&w->server, script, n);
    if (ipw_loop_new(&w->loop, &err) ||
        ipw_http_new(&w->http, w->loop, &(struct ipw_http_options){0}, &err))
        fail_msg("%s", err.text);
    w->url = ipw_asprintf("http://127.0.0.1:%d", w->server.port);
    if (!options.base_url) options.base_url = w->url;
    if (!options.retry_base_ns) options.retry_base_ns = IPW_NS_PER_MS;
    if (ipw_llm_new(&w->llm, w->loop, w->http, &options, &err)) fail_msg("%s", err.text);
    w->watch.loop = w->loop;
}

static inline void world_start(struct world *w)
{
    struct ipw_chat_request request = {.model = "m",
                                       .messages = &MESSAGE,
                                       .n_messages = 1,
                                       .temperature = NAN,
                                       .top_p = NAN,
                                       .seed = INT64_MIN,
                                       .max_tokens = -1};
    struct ipw_llm_callbacks on = {on_attempt, on_attempt_end, on_done, &w->watch};
    struct ipw_err err = {0};

    if (ipw_llm_start(&w->watch.call, w->llm, &request, &on, &err)) fail_msg("%s", err.text);
    assert_int_equal(w->watch.started, 0); /* nothing is called inside start */
}

static inline void watch_release(struct watch *w)
{
    for (int i = 0; i < w->started; i++) free(w->bodies[i]);
    free(w->text);
    free(w->error);
    *w = (struct watch){.loop = w->loop};
}

static inline void world_close(struct world *w)
{
    assert_int_equal(w->watch.started, w->watch.ended);
    assert_int_equal(w->http->in_flight, 0);
    watch_release(&w->watch);
    ipw_llm_free(w->llm);
    ipw_http_free(w->http);
    ipw_loop_run(w->loop);
    assert_int_equal(ipw_loop_leftovers(w->loop), 0);
    ipw_loop_free(w->loop);
    server_stop(&w->server);
    free(w->url);
}

/* One call over a script, up to its end. */
#define RUN(w, script, ...)                                                                        \
    do {                                                                                           \
        world_open(w, script, COUNT(script), (struct ipw_llm_options){__VA_ARGS__});               \
        world_start(w);                                                                            \
        ipw_loop_run((w)->loop);                                                                   \
        assert_int_equal((w)->watch.done, 1);                                                      \
    } while (0)

/* The address stands behind the reason, or where `rest` has an @. */
static inline void expect_error(const struct world *w, enum ipw_code code, const char *rest)
{
    const char *at = strchr(rest, '@');
    char *want = at ? ipw_asprintf("%.*s%s/v1%s", (int)(at - rest), rest, w->url, at + 1)
                    : ipw_asprintf("%s: %s/v1", rest, w->url);

    assert_int_equal(w->watch.code, code);
    assert_string_equal(w->watch.error, want);
    free(want);
}

static inline int global_init(void **state)
{
    (void)state;
    return ipw_http_global_init(NULL);
}

static inline int global_release(void **state)
{
    (void)state;
    ipw_http_global_release();
    return 0;
}

#endif
