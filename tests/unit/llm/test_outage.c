/* Servers that are away: who waits, who is sent again, and when it is over. */
#include "client_world.h"
#include "llm/client_priv.h"
#include "unit/unit.h"

#define BROKEN HEAD("200 OK", "text/event-stream") "Content-Length: 1000\r\n\r\n" C("Hel")
#define MODELS JSON200 "{\"data\":[{\"id\":\"m\"}]}"

static struct {
    int away, back, lost;
    struct ipw_loop *loop; /* stopped when they are lost */
} told;

static void on_away(void *ud, enum ipw_llm_away what, double away_s, const char *why)
{
    (void)ud;
    assert_true(away_s >= 0);
    assert_true(why[0] != '\0');
    told.away += what == IPW_LLM_AWAY;
    told.back += what == IPW_LLM_BACK;
    told.lost += what == IPW_LLM_LOST;
    if (what == IPW_LLM_LOST) ipw_loop_stop(told.loop);
}

static void begin(struct world *w, const struct script_line *script, size_t n,
                  struct ipw_llm_options options)
{
    memset(&told, 0, sizeof told);
    world_open(w, script, n, options);
    told.loop = w->loop;
    ipw_llm_on_away(w->llm, on_away, NULL);
    world_start(w);
}

/* The server of a request that broke is asked, found dead, waited for, and the request sent again,
 * whatever --max-retries says. */
static void a_server_that_comes_back(void **state)
{
    static const struct {
        struct script_line first;
        enum ipw_lm_outcome outcome;
    } rows[] = {{{NULL, THEN_RESET}, IPW_LM_RESET}, {{BROKEN, THEN_CLOSE}, IPW_LM_CUT}};

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        const struct script_line script[] = {
            rows[i].first,
            {NULL, THEN_RESET},                                     /* asked after it broke */
            {ERROR("502 Bad Gateway", "nobody there"), THEN_CLOSE}, /* and again */
            {MODELS, THEN_CLOSE},
            {OK_STREAM, THEN_CLOSE}};
        struct world w;

        begin(&w, script, COUNT(script), (struct ipw_llm_options){.server_failures = 5});
        ipw_loop_run(w.loop);
        assert_int_equal(w.watch.code, 0);
        assert_string_equal(w.watch.text, "Hello");
        assert_int_equal(w.watch.started, 2);
        assert_int_equal(w.watch.facts[0].outcome, rows[i].outcome);
        assert_true(w.watch.facts[0].will_retry);
        assert_int_equal(told.away, 1);
        assert_int_equal(told.back, 1);
        assert_int_equal(told.lost, 0);
        assert_true(ipw_llm_away_s(w.llm) <= 0);
        assert_non_null(strstr(w.server.seen[1], "GET /v1/models HTTP/1.1"));
        world_close(&w);
    }
}

/* A server that lives has broken the request itself: it fails as it did. */
static void a_server_that_lives(void **state)
{
    static const struct script_line script[] = {{BROKEN, THEN_CLOSE}, {MODELS, THEN_CLOSE}};
    struct world w;

    (void)state;
    begin(&w, script, COUNT(script),
          (struct ipw_llm_options){.server_failures = 5, .max_retries = 3});
    ipw_loop_run(w.loop);
    expect_error(&w, IPW_ENET, "the connection broke inside the answer");
    assert_int_equal(w.watch.started, 1);
    assert_false(w.watch.facts[0].will_retry);
    assert_int_equal(told.away, 0);
    world_close(&w);
}

/* A gateway's answer says nothing of the server: it is no failure to be reached. */
static void a_gateway_that_answers(void **state)
{
    static const struct script_line script[] = {{ERROR("502 Bad Gateway", "busy"), THEN_CLOSE},
                                                {ERROR("502 Bad Gateway", "busy"), THEN_CLOSE},
                                                {OK_STREAM, THEN_CLOSE}};
    struct world w;

    (void)state;
    begin(&w, script, COUNT(script),
          (struct ipw_llm_options){.server_failures = 1, .max_retries = 3});
    ipw_loop_run(w.loop);
    assert_int_equal(w.watch.code, 0);
    assert_int_equal(w.watch.started, 3);
    assert_int_equal(told.away, 0);
    world_close(&w);
}

/* A request that brings the server down each time is not sent for ever. */
static void a_request_that_kills(void **state)
{
    static const struct script_line script[] = {
        {BROKEN, THEN_CLOSE}, {NULL, THEN_RESET},   {MODELS, THEN_CLOSE}, {BROKEN, THEN_CLOSE},
        {NULL, THEN_RESET},   {MODELS, THEN_CLOSE}, {BROKEN, THEN_CLOSE}};
    struct world w;

    (void)state;
    begin(&w, script, COUNT(script), (struct ipw_llm_options){.server_failures = 5});
    ipw_loop_run(w.loop);
    assert_int_equal(w.watch.code, IPW_ENET);
    assert_int_equal(w.watch.started, 3);
    assert_int_equal(told.back, 2);
    assert_false(w.watch.facts[2].will_retry);
    world_close(&w);
}

/* Nobody comes back: said once, and the call waits until it is cancelled. */
static void a_server_that_is_lost(void **state)
{
    static const struct script_line script[] = {{NULL, THEN_CLOSE}};
    struct world w;
    int port, fd = server_listen(&port);
    char *url = ipw_asprintf("http://127.0.0.1:%d", port);

    (void)state;
    close(fd); /* nobody listens there now */
    begin(&w, script, COUNT(script),
          (struct ipw_llm_options){.base_url = url,
                                   .server_failures = 3,
                                   .server_wait_ns = 30 * IPW_NS_PER_MS,
                                   .max_retries = 10});
    ipw_loop_run(w.loop);
    assert_int_equal(told.lost, 1);
    assert_int_equal(told.away, 1);
    assert_int_equal(w.watch.started, 3);
    assert_int_equal(w.watch.done, 0);
    assert_int_equal(ipw_llm_calls(w.llm), 1);
    ipw_llm_cancel(w.watch.call);
    assert_int_equal(ipw_llm_calls(w.llm), 0);
    world_close(&w);
    free(url);
}

/* One that is lost to a dead server with its last repeat waits as well, before the count is
 * full. */
static void a_last_repeat_waits(void **state)
{
    static const struct script_line script[] = {{NULL, THEN_CLOSE}};
    struct world w;
    int port, fd = server_listen(&port);
    char *url = ipw_asprintf("http://127.0.0.1:%d", port);

    (void)state;
    close(fd);
    begin(&w, script, COUNT(script),
          (struct ipw_llm_options){
              .base_url = url, .server_failures = 100, .server_wait_ns = 30 * IPW_NS_PER_MS});
    ipw_loop_run(w.loop);
    assert_int_equal(told.lost, 1);
    assert_int_equal(w.watch.started, 1);
    assert_int_equal(w.watch.done, 0);
    ipw_llm_cancel(w.watch.call);
    world_close(&w);

    /* Switched off, it fails. */
    begin(&w, script, COUNT(script), (struct ipw_llm_options){.base_url = url});
    ipw_loop_run(w.loop);
    assert_int_equal(w.watch.code, IPW_ENET);
    assert_int_equal(told.away, 0);
    world_close(&w);
    free(url);
}

/* Of two servers one is left: nothing is held back. */
static void one_of_two(void **state)
{
    static const struct script_line script[] = {{OK_STREAM, THEN_CLOSE}};
    struct world w;
    int port, fd = server_listen(&port);
    char *url = ipw_asprintf("http://127.0.0.1:%d", port), *other;
    const char *more[2] = {NULL, NULL};

    (void)state;
    close(fd);
    memset(&told, 0, sizeof told);
    world_open(&w, script, COUNT(script), (struct ipw_llm_options){.server_failures = 1});
    other = ipw_strdup(w.url);
    more[0] = other;
    ipw_llm_free(w.llm);
    assert_int_equal(ipw_llm_new(&w.llm, w.loop, w.http,
                                 &(struct ipw_llm_options){.base_url = url,
                                                           .more_urls = more,
                                                           .server_failures = 1,
                                                           .retry_base_ns = IPW_NS_PER_MS},
                                 NULL),
                     0);
    ipw_llm_on_away(w.llm, on_away, NULL);
    world_start(&w);
    ipw_loop_run(w.loop);
    assert_int_equal(w.watch.code, 0);
    assert_int_equal(w.watch.started, 2);
    assert_int_equal(told.away, 0);
    world_close(&w);
    free(url);
    free(other);
}

/* The other one has been left out since before: that it was not asked again is no sign of life. */
static void one_of_two_was_left_out(void **state)
{
    static const struct script_line script[] = {{NULL, THEN_CLOSE}};
    struct world w;
    int port, fd = server_listen(&port);
    char *url = ipw_asprintf("http://127.0.0.1:%d", port);
    const char *more[2] = {url, NULL};

    (void)state;
    close(fd);
    begin(&w, script, COUNT(script),
          (struct ipw_llm_options){.base_url = url,
                                   .more_urls = more,
                                   .server_failures = 3,
                                   .server_wait_ns = 30 * IPW_NS_PER_MS});
    ipw_llm_server_failed(w.llm, 1, ipw_now_ns() + 3600 * IPW_NS_PER_S, "not there");
    ipw_loop_run(w.loop);
    assert_int_equal(told.lost, 1);
    assert_int_equal(w.watch.started, 1);
    ipw_llm_cancel(w.watch.call);
    world_close(&w);
    free(url);
}

static void look(void *ud)
{
    struct world *w = ud;
    size_t requests;

    pthread_mutex_lock(&w->server.lock);
    requests = w->server.requests;
    pthread_mutex_unlock(&w->server.lock);
    if (requests < 2) {
        ipw_timer_start(w->loop, IPW_NS_PER_MS, look, w);
        return;
    }
    ipw_llm_cancel(w->watch.call);
    ipw_loop_stop(w->loop);
}

/* Cancelled while its server is being asked: the attempt is told of once, as cancelled. */
static void cancelled_while_it_is_asked(void **state)
{
    static const struct script_line script[] = {{BROKEN, THEN_CLOSE}, {NULL, THEN_HOLD}};
    struct world w;

    (void)state;
    begin(&w, script, COUNT(script), (struct ipw_llm_options){.server_failures = 5});
    ipw_timer_start(w.loop, IPW_NS_PER_MS, look, &w);
    ipw_loop_run(w.loop);
    assert_int_equal(w.watch.started, 1);
    assert_int_equal(w.watch.ended, 1);
    assert_int_equal(w.watch.facts[0].outcome, IPW_LM_CANCELLED);
    assert_int_equal(w.watch.done, 0);
    world_close(&w);
}

UNIT(outage)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_server_that_comes_back), cmocka_unit_test(a_server_that_lives),
        cmocka_unit_test(a_request_that_kills),     cmocka_unit_test(a_server_that_is_lost),
        cmocka_unit_test(a_last_repeat_waits),      cmocka_unit_test(one_of_two),
        cmocka_unit_test(one_of_two_was_left_out),  cmocka_unit_test(cancelled_while_it_is_asked),
        cmocka_unit_test(a_gateway_that_answers),
    };
    return cmocka_run_group_tests(tests, global_init, global_release);
}
