#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <uv.h>

#include "base/clock.h"
#include "exchange.h"
#include "io/http_priv.h"
#include "unit/descriptors.h"

struct server server;
struct ipw_loop *loop;
struct ipw_http *http;

int set_up(void **state)
{
    (void)state;
    server_start(&server);
    assert_int_equal(ipw_loop_new(&loop, NULL), 0);
    assert_int_equal(ipw_http_new(&http, loop, NULL, NULL), 0);
    return 0;
}

int tear_down(void **state)
{
    (void)state;
    assert_int_equal(http->in_flight, 0);
    ipw_http_free(http);
    assert_int_equal(ipw_loop_leftovers(loop), 0);
    ipw_loop_free(loop);
    server_stop(&server);
    assert_int_equal(server.open, 0);
    return 0;
}

static void on_headers(void *ud, int64_t t_ns, const struct ipw_http_head *head)
{
    struct exchange *x = ud;

    assert_true(t_ns > 0 && head->status >= 200);
    assert_int_equal(x->done, 0);
    assert_int_equal(x->chunks, 0);
    snprintf(x->type, sizeof x->type, "%s", ipw_http_field(head, "Content-Type"));
    for (size_t i = 0, n = 0; i < head->n_fields && n < sizeof x->fields; i++)
        n += (size_t)snprintf(x->fields + n, sizeof x->fields - n, "%s=%s;", head->fields[i].name,
                              head->fields[i].value);
    x->headers++;
    if (x->act == CANCEL_IN_HEADERS) ipw_http_cancel(x->call);
    if (x->act == START_IN_HEADERS) start(x->other, x->other_path, NULL);
}

static int on_data(void *ud, int64_t t_ns, const char *bytes, size_t n)
{
    struct exchange *x = ud;

    assert_true(t_ns > 0 && n > 0);
    assert_int_equal(x->headers, 1);
    assert_int_equal(x->done, 0);
    x->chunks++;
    for (size_t i = 0; i < n && x->n_body + i < sizeof x->body - 1; i++)
        x->body[x->n_body + i] = bytes[i];
    x->n_body += n;
    if (x->cancel_other_in_data && x->chunks == 1) ipw_http_cancel(x->other->call);
    if (x->act == CANCEL_IN_DATA) ipw_http_cancel(x->call);
    if (x->act == START_IN_DATA && x->chunks == 1) start(x->other, x->other_path, NULL);
    if (x->act == FREE_IN_DATA) ipw_http_free(http);
    return x->act == ABORT_IN_DATA;
}

static void on_done(void *ud, const struct ipw_http_result *result)
{
    struct exchange *x = ud;

    assert_int_equal(x->done, 0);
    x->done++;
    x->result = *result;
    snprintf(x->error, sizeof x->error, "%s", result->error);
    assert_true(result->start_ns > 0 && result->close_ns >= result->start_ns);
    assert_true(result->sent_ns >= result->start_ns && result->sent_ns <= result->close_ns);
    if (result->headers_ns) assert_true(result->headers_ns >= result->sent_ns);
    if (result->first_byte_ns) assert_true(result->first_byte_ns >= result->headers_ns);
    if (result->end == IPW_HTTP_OK)
        assert_string_equal(result->error, "");
    else
        assert_true(strlen(result->error) > 10 && !strchr(result->error, '\n'));
    if (x->act == START_IN_DONE) start(x->other, x->other_path, NULL);
    if (x->act == FREE_IN_DONE) ipw_http_free(http);
}

const struct ipw_http_callbacks exchange_callbacks = {on_headers, on_data, on_done, NULL};

void start_url(struct exchange *x, const char *url, const struct ipw_http_request *with)
{
    struct ipw_http_request request = with ? *with : (struct ipw_http_request){0};
    struct ipw_http_callbacks on = exchange_callbacks;
    struct ipw_err err = {0};

    on.ud = x;
    request.url = url;
    if (ipw_http_start(&x->call, http, &request, &on, &err)) fail_msg("%s", err.text);
    assert_int_equal(x->headers + x->done, 0);
}

void start(struct exchange *x, const char *path, const struct ipw_http_request *with)
{
    char url[256];

    snprintf(url, sizeof url, "http://127.0.0.1:%d%s", server.port, path);
    start_url(x, url, with);
}

void run_until(const int *done)
{
    while (!*done) uv_run(ipw_loop_uv(loop), UV_RUN_ONCE);
}

struct exchange get(const char *path, const struct ipw_http_request *with)
{
    struct exchange x = {0};

    start(&x, path, with);
    ipw_loop_run(loop);
    assert_int_equal(x.done, 1);
    return x;
}

int run_http_tests(int (*run)(void))
{
    int failed, before;

    /* libuv keeps a pipe for signals from the first loop on. */
    if (ipw_http_global_init(NULL) || ipw_loop_new(&loop, NULL)) return 1;
    ipw_loop_free(loop);
    before = open_descriptors();
    failed = run();
    if (open_descriptors() != before) {
        fprintf(stderr, "descriptors leaked: %d before, %d after\n", before, open_descriptors());
        failed++;
    }
    ipw_http_global_release();
    return failed;
}
