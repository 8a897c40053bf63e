/* Lists of models, and finding a server by its port. */
#include "llm_support.h"

#include "base/clock.h"
#include "io/http_priv.h"
#include "llm/client_priv.h"
#include "scripted_server.h"
#include "unit/unit.h"

#define JSON200 "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n"

struct got {
    struct ipw_loop *loop;
    int calls;
    char **names;
    char *error;
};

static void on_models(void *ud, char **names, const struct ipw_err *err)
{
    struct got *g = ud;

    g->calls++;
    g->names = names;
    assert_true((names == NULL) == (err != NULL));
    if (err) g->error = ipw_strdup(err->text);
}

struct world {
    struct ipw_loop *loop;
    struct ipw_http *http;
    struct got got;
};

static void world_open(struct world *w)
{
    struct ipw_err err = {0};

    *w = (struct world){0};
    if (ipw_loop_new(&w->loop, &err) ||
        ipw_http_new(&w->http, w->loop, &(struct ipw_http_options){0}, &err))
        fail_msg("%s", err.text);
}

static void world_close(struct world *w)
{
    assert_int_equal(w->http->in_flight, 0);
    ipw_http_free(w->http);
    ipw_loop_run(w->loop);
    assert_int_equal(ipw_loop_leftovers(w->loop), 0);
    ipw_loop_free(w->loop);
    ipw_llm_models_free(w->got.names);
    free(w->got.error);
}

/* OpenAI is told by its address, before it says anything: no reply of a forced length is asked of
 * it, and none of several servers one of which has no way. */
static void openai_cannot_force(void **state)
{
    static const struct {
        const char *url, *more;
        enum ipw_llm_server_kind server;
        bool cannot;
    } rows[] = {
        {"https://api.openai.com/v1", NULL, IPW_LLM_OPENAI, true},
        {"https://API.openai.com", NULL, IPW_LLM_OPENAI, true},
        {"https://api.openai.com:443/v1", NULL, IPW_LLM_OPENAI, true},
        {"http://127.0.0.1:8000/v1", "https://api.openai.com/v1", IPW_LLM_ANY_SERVER, true},
        {"https://api.openai.com.example.org/v1", NULL, IPW_LLM_ANY_SERVER, false},
        {"https://example.org/api.openai.com/v1", NULL, IPW_LLM_ANY_SERVER, false},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        const char *more[] = {rows[i].more, NULL};
        struct ipw_llm_options options = {.base_url = rows[i].url, .more_urls = more};
        struct ipw_chat_request forced = {.force_tokens = 8};
        struct ipw_err err = {0};
        struct ipw_llm_call *call;
        struct ipw_llm *llm;
        struct world w;

        world_open(&w);
        assert_int_equal(ipw_llm_new(&llm, w.loop, w.http, &options, &err), 0);
        assert_int_equal(llm->servers[0].kind, rows[i].server);
        assert_int_equal(ipw_llm_can_force(llm, &err) != 0, rows[i].cannot);
        if (rows[i].cannot) {
            assert_non_null(strstr(err.text, "OpenAI has no way to force the length of a reply"));
            /* Nothing is sent then. */
            assert_int_equal(
                ipw_llm_start(&call, llm, &forced, &(struct ipw_llm_callbacks){NULL}, &err),
                IPW_EINVAL);
            assert_int_equal(w.http->in_flight, 0);
        }
        ipw_llm_free(llm);
        world_close(&w);
    }
}

static void lists_of_models(void **state)
{
    struct ipw_buf captured;
    char *llama;

    (void)state;
    slurp(&captured, "02-models", ".json");
    llama = ipw_asprintf("%s%s", JSON200, captured.data);
    {
        const struct {
            const char *answer, *names, *error; /* names joined by '|'; error after "URL..." */
            enum ipw_llm_server_kind server;
            bool cannot_force;
        } rows[] = {
            {llama, "tiny-agent|", NULL, IPW_LLM_LLAMACPP},
            {JSON200 "{\"data\":[{\"id\":\"a\",\"owned_by\":\"vllm\"}]}", "a|", NULL, IPW_LLM_VLLM},
            {JSON200 "{\"data\":[{\"id\":\"a\",\"owned_by\":\"sglang\"}]}", "a|", NULL,
             IPW_LLM_SGLANG},
            {JSON200 "{\"data\":[{\"id\":\"a\",\"owned_by\":\"library\"}]}", "a|", NULL,
             IPW_LLM_OLLAMA, true},
            {JSON200 "{\"object\":\"list\",\"data\":[{\"id\":\"a\"},{\"x\":1},{\"id\":\"b\"}]}",
             "a|b|", NULL},
            {JSON200 "[{\"id\":\"a\"}]", "a|", NULL},
            {JSON200 "{\"models\":[{\"name\":\"n\"}]}", "n|", NULL},
            {JSON200 "{\"object\":\"list\",\"data\":null}", "", NULL}, /* Ollama without models */
            {JSON200 "{\"a\":1}", NULL, "@/v1/models: the list of models has no \"data\""},
            {"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhello", NULL, "@/v1/models: at byte 0"},
            {"HTTP/1.1 401 x\r\nConnection: close\r\n\r\n{\"error\":\"Unauthorized\"}", NULL,
             "the server wants an API key: --api-key-env NAME (HTTP 401: Unauthorized): @/v1"},
            {"HTTP/1.1 503 x\r\nConnection: close\r\n\r\n{\"error\":{\"message\":\"Loading "
             "model\"}}",
             NULL, "HTTP 503: Loading model: @/v1"},
        };

        for (size_t i = 0; i < COUNT(rows); i++) {
            struct script_line line = {rows[i].answer, THEN_CLOSE};
            struct server server = {0};
            struct world w;
            struct ipw_llm_probe *probe;
            struct ipw_llm *llm;
            struct ipw_err err = {0};
            char *url;

            world_open(&w);
            server_start(&server, &line, 1);
            url = ipw_asprintf("http://127.0.0.1:%d", server.port);
            assert_int_equal(
                ipw_llm_new(&llm, w.loop, w.http, &(struct ipw_llm_options){.base_url = url}, &err),
                0);
            assert_int_equal(
                ipw_llm_models(&probe, llm, 0, 60 * IPW_NS_PER_S, on_models, &w.got, &err), 0);
            assert_int_equal(w.got.calls, 0);
            ipw_loop_run(w.loop);
            assert_int_equal(w.got.calls, 1);
            assert_memory_equal(server.seen[0], "GET /v1/models HTTP/1.1\r\n", 25);
            assert_int_equal(llm->servers[0].kind, rows[i].server);
            assert_int_equal(ipw_llm_can_force(llm, &err) != 0, rows[i].cannot_force);
            if (rows[i].names) {
                struct ipw_buf all = IPW_BUF(1000);

                if (w.got.error) fail_msg("%s: %s", rows[i].answer, w.got.error);
                for (char **n = w.got.names; *n; n++) ipw_buf_addf(&all, "%s|", *n);
                assert_string_equal(ipw_buf_str(&all), rows[i].names);
                ipw_buf_release(&all);
            } else {
                const char *at = strchr(rows[i].error, '@');
                char *want =
                    ipw_asprintf("%.*s%s%s", (int)(at - rows[i].error), rows[i].error, url, at + 1);

                assert_memory_equal(w.got.error, want, strlen(want));
                free(want);
            }
            ipw_llm_free(llm);
            server_stop(&server);
            world_close(&w);
            free(url);
        }
    }
    free(llama);
    ipw_buf_release(&captured);
}

static void a_list_can_be_cancelled(void **state)
{
    static const struct script_line hold = {NULL, THEN_HOLD};
    struct server server = {0};
    struct ipw_llm_probe *probe;
    struct ipw_llm *llm;
    struct world w;
    char *url;

    (void)state;
    world_open(&w);
    server_start(&server, &hold, 1);
    url = ipw_asprintf("http://127.0.0.1:%d", server.port);
    assert_int_equal(
        ipw_llm_new(&llm, w.loop, w.http, &(struct ipw_llm_options){.base_url = url}, NULL), 0);
    assert_int_equal(ipw_llm_models(&probe, llm, 0, 60 * IPW_NS_PER_S, on_models, &w.got, NULL), 0);
    ipw_llm_probe_cancel(probe);
    ipw_loop_run(w.loop);
    assert_int_equal(w.got.calls, 0);
    ipw_llm_free(llm);
    server_stop(&server);
    world_close(&w);
    free(url);
}

/* Which of them have a model decides who wins. */
static void the_order_of_ports_decides(void **state)
{
    static const struct script_line model_a = {JSON200 "{\"data\":[{\"id\":\"a\"}]}", THEN_CLOSE},
                                    model_b = {JSON200 "{\"data\":[{\"id\":\"b\"}]}", THEN_CLOSE},
                                    none = {JSON200 "{\"data\":[]}", THEN_CLOSE},
                                    other = {JSON200 "{\"hello\":1}", THEN_CLOSE},
                                    hold = {NULL, THEN_HOLD};
    static const struct {
        const struct script_line *lines[3]; /* NULL: nobody listens */
        int winner;                         /* -1: none */
        const char *model;
        bool times_out;
    } rows[] = {
        {{&model_a, &model_b, NULL}, 0, "a", false}, {{NULL, &model_b, &model_a}, 1, "b", false},
        {{&other, &none, &model_a}, 2, "a", false},  {{&model_a, NULL, NULL}, 0, "a", false},
        {{&hold, &model_b, NULL}, 1, "b", true}, /* it is given up */
        {{NULL, NULL, NULL}, -1, "", false},         {{&other, &none, NULL}, -1, "", false},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct server servers[3] = {{0}};
        int ports[4] = {0};
        struct world w;
        struct ipw_err err = {0};
        char *want, *url, *model;

        world_open(&w);
        for (int k = 0; k < 3; k++) {
            if (rows[i].lines[k]) {
                server_start(&servers[k], rows[i].lines[k], 1);
                ports[k] = servers[k].port;
            } else {
                close(server_listen(&ports[k]));
            }
        }
        assert_int_equal(ipw_llm_search(&url, &model, w.loop, w.http, ports,
                                        (rows[i].times_out ? 1 : 60) * IPW_NS_PER_S, &err),
                         0);
        want = rows[i].winner < 0 ? ipw_strdup("")
                                  : ipw_asprintf("http://127.0.0.1:%d/v1", ports[rows[i].winner]);
        assert_string_equal(url ? url : "", want);
        assert_string_equal(model ? model : "", rows[i].model);
        free(url);
        free(model);
        free(want);
        for (int k = 0; k < 3; k++)
            if (rows[i].lines[k]) server_stop(&servers[k]);
        world_close(&w);
    }
}

static int global_init(void **state)
{
    (void)state;
    return ipw_http_global_init(NULL);
}

static int global_release(void **state)
{
    (void)state;
    ipw_http_global_release();
    return 0;
}

UNIT(discover)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_of_models),
        cmocka_unit_test(openai_cannot_force),
        cmocka_unit_test(a_list_can_be_cancelled),
        cmocka_unit_test(the_order_of_ports_decides),
    };
    return cmocka_run_group_tests(tests, global_init, global_release);
}
