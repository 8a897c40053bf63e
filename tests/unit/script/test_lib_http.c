/* ipw.http over a server of the test's own: answers, redirects, failures in words, what may not be
 * asked, and what the record keeps of it. */
#include "unit/script/world.h"

#include <stdlib.h>

#include "base/buf.h"
#include "io/http.h"
#include "io/http_web.h"
#include "script/task.h"
#include "unit/io/server.h"
#include "unit/unit.h"

static struct server server;
static struct ipw_buf record =
    IPW_BUF(IPW_MIB); /* a line for each event: its name, its outcome, its payload */

static struct ipw_task *to_cancel; /* when its request has begun */

static void cancel(void *ud)
{
    struct ipw_task *task = to_cancel;

    (void)ud;
    to_cancel = NULL; /* the end of the span is an event too */
    ipw_task_cancel(task, "the user said so");
}

static void emit(void *ud, struct ipw_event *event)
{
    if (to_cancel) ipw_defer_start(((struct world *)ud)->loop, cancel, NULL);
    ipw_buf_addf(&record, "%s %s %s ", ipw_event_name(event->kind),
                 event->tool.name ? event->tool.name : "",
                 event->tool.outcome ? event->tool.outcome : "");
    if (event->payload) ipw_buf_add(&record, event->payload, event->payload_len);
    ipw_buf_addc(&record, '\n');
}

static void is_recorded(const char *text)
{
    if (!strstr(ipw_buf_str(&record), text)) fail_msg("no '%s' in %s", text, ipw_buf_str(&record));
}

static void open_web(struct world *w, const char *const *allow)
{
    ipw_buf_clear(&record);
    world_open(w, 0);
    w->host.grants.may_fetch = true;
    w->host.on.emit = emit;
    w->host.grants.web = ipw_web_new(w->loop, &(struct ipw_web_options){.allow = allow});
}

static void close_web(struct world *w)
{
    ipw_web_free(w->host.grants.web);
    w->host.grants.web = NULL;
    world_close(w);
}

/* With `at` the server's address, and helpers. */
static void run(struct world *w, const char *script)
{
    static char text[16384];

    snprintf(text, sizeof text,
             "local http, at = require 'ipw.http', 'http://127.0.0.1:%d'\n"
             "local function fails(word, want, request)\n"
             "  local response, why, got = http.request(request)\n"
             "  assert(response == nil and got == word, tostring(got) .. ': ' .. tostring(why))\n"
             "  assert(why:find(want, 1, true), why)\n"
             "end\n"
             "local function raises(want, request)\n"
             "  local ok, why = pcall(http.request, request)\n"
             "  assert(not ok and tostring(why):find(want, 1, true), tostring(why))\n"
             "end\n"
             "%s\nreturn 'end'",
             server.port, script);
    world_run(w, text);
    assert_string_equal(w->err.text, "");
    assert_string_equal(w->answer, "end");
}

static const char *const everywhere[] = {"*", NULL};

static void answers(void **state)
{
    struct world w;

    (void)state;
    open_web(&w, everywhere);
    run(&w,
        "local r = assert(http.get(at .. '/plain'))\n"
        "assert(r.status == 200 and r.body == 'hello' and r.type == 'application/json')\n"
        "assert(r.url == at .. '/plain' and r.headers['content-length'] == '5')\n"
        "r = assert(http.post(at .. '/count', { q = 'a b', n = 2 }))\n" /* n=2&q=a%20b */
        "assert(r.body == '11', r.body)\n"
        "r = assert(http.request { url = at .. '/empty', method = 'HEAD' }) assert(r.status == 204 "
        "and r.body == '')\n"
        "r = assert(http.get(at .. '/lines', { headers = { ['X-Own'] = 'v' } }))\n"
        "assert(r.headers['x-many'] == 'one, two' and r.body == '\\xff\\x01z')\n"
        "r = assert(http.get(at .. '/interim')) assert(r.type:find 'text/event%-stream')\n"
        "assert(http.get(at .. '/plain', { max_bytes = '64K', seconds = 30, redirects = 0 }))\n"
        "assert(http.get('http://user:geheim@' .. at:sub(8) .. '/plain').url == at .. '/plain')\n");
    run(&w, "assert(http.escape 'a b&c=\\xC3\\xA4\\0z~-._' == 'a%20b%26c%3D%C3%A4%00z~-._')\n");
    is_recorded("span_start GET 127.0.0.1:");
    is_recorded("\"body\":\"hello\",\"body_cut\":false,\"bytes\":5");
    is_recorded("\"body_hex\":\"ff017a\"");
    is_recorded("\"body\":\"n=2&q=a%20b\"");
    assert_null(strstr(ipw_buf_str(&record), "geheim")); /* nor in any event */
    close_web(&w);
}

static void a_stream_ends_with_the_answer(void **state)
{
    struct world w;

    (void)state;
    open_web(&w, everywhere);
    run(&w, "local r = assert(http.request { url = at .. '/events', ['until'] = 7 })\n"
            "assert(r.status == 200 and r.type == 'text/event-stream')\n"
            "assert(r.body:find('\"result\":1', 1, true), r.body)\n"
            "fails('timeout', 'within', { url = at .. '/events', ['until'] = 8, seconds = 0.05 })\n"
            "assert(http.request { url = at .. '/plain', ['until'] = 7 }.body == 'hello')\n");
    is_recorded("span_end GET 127.0.0.1");
    close_web(&w);
}

/* Only to a server that the user named; to any other address it changes nothing. */
static void a_quiet_request(void **state)
{
    char url[64];
    const struct ipw_host_server named = {.url = url};
    struct world w;

    (void)state;
    snprintf(url, sizeof url, "http://127.0.0.1:%d/plain", server.port);
    open_web(&w, everywhere);
    w.host.grants.servers = &named;
    w.host.grants.n_servers = 1;
    run(&w, "assert(http.request { server = 1, quiet = true }.body == 'hello')\n");
    assert_int_equal(record.len, 0);
    run(&w, "assert(http.request { url = at .. '/plain', quiet = true }.body == 'hello')\n");
    is_recorded("hello");
    close_web(&w);
}

static void redirects(void **state)
{
    struct world w;

    (void)state;
    server.redirect_port = server.port;
    open_web(&w, everywhere);
    run(&w,
        "for _, status in ipairs { 301, 302, 303, 307, 308 } do\n"
        "  local r = assert(http.get(at .. '/to-' .. status .. '-/plain'))\n"
        "  assert(r.status == 200 and r.url == at .. '/plain')\n"
        "  r = assert(http.post(at .. '/to-' .. status .. '-/count', '12345'))\n"
        /* RFC 9110: 307 and 308 send the body again, the others ask with GET */
        "  assert(r.body == (status >= 307 and '5' or '0'), status .. r.body)\n"
        "end\n"
        "assert(http.request { url = at .. '/to-303-/plain', method = 'HEAD' }.body == '')\n"
        "assert(http.get(at .. '/redirect').body == 'hello')\n"
        "local r = http.request { url = at .. '/loop', redirects = 0 } assert(r.status == 302)\n"
        "r = http.request { url = at .. '/to-304-/plain' } assert(r.status == 304)\n"
        "fails('http', 'too many redirects', { url = at .. '/loop' })\n"
        "fails('http', 'too many redirects', { url = at .. '/loop', redirects = 1 })\n"
        "fails('http', 'invalid URL', { url = at .. '/to-302-http://[x' })\n");
    /* headers are for the origin that the script named: another port is another origin */
    run(&w, "assert(http.get(at .. '/redirect', { headers = { ['X-Own'] = 'mine' } }))\n");
    assert_non_null(strstr(server.last_request, "X-Own: mine"));
    run(&w, "assert(http.get((at:gsub('127.0.0.1', 'localhost')) .. '/redirect',\n"
            "  { headers = { ['X-Own'] = 'mine' } }))\n");
    assert_null(strstr(server.last_request, "X-Own"));
    close_web(&w);
}

static void failures_in_words(void **state)
{
    struct world w;

    (void)state;
    open_web(&w, everywhere);
    run(&w,
        "fails('network', 'broke off', { url = at .. '/cut' })\n"
        "fails('network', 'broke', { url = at .. '/reset' })\n"
        "fails('network', 'not an HTTP answer', { url = at .. '/garbage' })\n"
        "fails('network', 'letters outside ASCII', { url = 'http://m\\u{fc}ller.example/' })\n"
        "fails('limit', 'over its ceiling', { url = at .. '/big', max_bytes = '64K' })\n"
        "fails('limit', 'headers', { url = at .. '/big-head' })\n"
        "fails('timeout', 'within', { url = at .. '/silent', seconds = 0.05 })\n"
        "local r, why, word, response = http.get(at .. '/busy')\n"
        "assert(r == nil and word == 'http' and why:find 'HTTP 503' and response.status == 503)\n"
        "assert(http.request { url = at .. '/busy' }.status == 503)\n"
        "assert(http.request { url = 'ftp://127.0.0.1/' } == nil)\n"
        "assert(http.request { url = '' } == nil)\n"
        "assert(http.request { url = at, headers = { ['a b'] = 'x' } } == nil)\n"
        "local value, bad = http.json(at .. '/plain') assert(value == nil and bad:find 'not JSON', "
        "bad)\n"
        "assert(http.json(at .. '/count', { a = 1 }) == 7)\n");
    is_recorded("timeout");
    is_recorded("too_large");
    is_recorded("http_error");
    close_web(&w);
}

/* A password with an '@' in it: what stands before the last one is not the host, and is kept
 * nowhere. */
static void passwords_are_not_kept(void **state)
{
    struct world w;

    (void)state;
    open_web(&w, everywhere);
    run(&w, "local _, why = http.get('http://me:geh@eim@' .. at:sub(8) .. '/plain?x=@y')\n"
            "assert(not tostring(why):find 'eim', why)\n");
    is_recorded("127.0.0.1");
    assert_null(strstr(ipw_buf_str(&record), "eim"));
    close_web(&w);
    open_web(&w, NULL);
    run(&w, "fails('permission', 'use --web-allow 127.0.0.1 to',\n"
            "  { url = 'http://u:p@' .. at:sub(8) .. '/@x' })\n");
    close_web(&w);
}

/* S-3: addresses inside are refused, also by a redirect and in odd numerals, and the message says
 * how to allow the host.  The address of the connection counts, so a name that is looked up anew
 * does not help. */
static void only_allowed_hosts(void **state)
{
    static const char *const other[] = {"127.0.0.1:1", "localhost:99999", NULL};
    char here[40];
    const char *const port[] = {"127.0.0.1:1", here, NULL};
    struct world w;

    (void)state;
    snprintf(here, sizeof here, "127.0.0.1:%d", server.port);
    for (int i = 0; i < 2; i++) {
        open_web(&w, i ? other : NULL);
        run(&w, "fails('permission', 'use --web-allow 127.0.0.1 to allow it', { url = at .. "
                "'/plain' })\n");
        is_recorded("refused");
        run(&w, "local port = at:match ':%d+$'\n"
                "for _, host in ipairs { '2130706433', '0x7f000001', '0x7f.1', '127.1', "
                "'0177.0.0.1', '0',\n"
                "    '[::1]', '[::ffff:127.0.0.1]', '169.254.169.254', 'localhost' } do\n"
                "  fails('permission', 'not a public one', { url = 'http://' .. host .. port .. "
                "'/plain' })\n"
                "end\n");
        close_web(&w);
    }
    open_web(&w, port);
    run(&w,
        "assert(http.get(at .. '/plain'))\n"
        "fails('permission', 'not a public one', { url = at .. '/to-302-http://127.0.0.2/' })\n");
    close_web(&w);
    /* a proxy would hide the address */
    setenv("http_proxy", "http://127.0.0.1:9", 1);
    open_web(&w, NULL);
    run(&w, "fails('permission', '--web-via-proxy', { url = 'http://example.invalid/' })\n");
    close_web(&w);
    unsetenv("http_proxy");
}

static void slips_raise(void **state)
{
    struct world w;

    (void)state;
    open_web(&w, everywhere);
    run(&w, "raises(\"unknown field 'mehtod' (did you mean 'method'?)\", { url = at, mehtod = "
            "'GET' })\n"
            "raises(\"unknown field '(not a string)'\", { url = at, 5 })\n"
            "raises('url: expected an address', {})\n"
            "raises('url: expected a string, got table', { url = {} })\n"
            "raises('url: no address', { url = at .. '/\\0' })\n"
            "raises('url: no address', { url = at .. ('x'):rep(17000) })\n"
            "raises('body: expected a string, got boolean', { url = at, body = true })\n"
            "for _, bad in ipairs { -1, 1e7, 0 / 0, 'soon', {} } do\n"
            "  raises('seconds: expected a number from 0', { url = at, seconds = bad })\n"
            "end\n"
            "raises('redirects: expected a number from 0', { url = at, redirects = 21 })\n"
            "for _, bad in ipairs { 0, -1, 1.5, true } do\n"
            "  raises('max_bytes: expected bytes', { url = at, max_bytes = bad })\n"
            "end\n"
            "raises('max_bytes', { url = at, max_bytes = 'much' })\n"
            "raises('max_bytes: 256 MiB at most', { url = at, max_bytes = '1G' })\n"
            "raises('headers: expected a table', { url = at, headers = 'X: y' })\n"
            "raises('headers: expected names and texts', { url = at, headers = { 'X: y' } })\n"
            "raises('headers: expected names and texts', { url = at, headers = { X = 1 } })\n"
            "raises(\"the header 'X' has a NUL in it\", { url = at, headers = { X = 'a\\0b' } })\n"
            "local many = {} for i = 1, 51 do many['X-' .. i] = 'y' end\n"
            "raises('more than 50 headers', { url = at, headers = many })\n");
    assert_int_equal(record.len, 0); /* nothing was begun */
    w.host.grants.may_fetch = false;
    run(&w, "raises('not granted here', { url = at })\n");
    w.host.grants.no_web = "give --web";
    run(&w, "raises('give --web', { url = at })\n");
    close_web(&w);
}

/* A query that is cancelled takes its requests with it, and the record says so. */
static void a_cancelled_request(void **state)
{
    char script[200];
    struct ipw_err err = {0};
    struct world w;

    (void)state;
    open_web(&w, everywhere);
    snprintf(script, sizeof script, "require('ipw.http').get 'http://127.0.0.1:%d/silent'",
             server.port);
    if (world_start(&w, &to_cancel, script, &err)) fail_msg("%s", err.text);
    ipw_loop_run(w.loop);
    assert_int_equal(w.end, IPW_TASK_CANCELLED);
    is_recorded("cancelled");
    close_web(&w);
}

static int open_server(void **state)
{
    static const char *const variables[] = {"http_proxy", "https_proxy", "all_proxy", "HTTPS_PROXY",
                                            "ALL_PROXY",  "no_proxy",    "NO_PROXY"};

    (void)state;
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) unsetenv(variables[i]);
    if (ipw_http_global_init(NULL)) return -1;
    server_start(&server);
    return 0;
}

static int close_server(void **state)
{
    (void)state;
    server_stop(&server);
    ipw_http_global_release();
    ipw_buf_release(&record);
    return 0;
}

UNIT(lib_http)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers),
        cmocka_unit_test(a_stream_ends_with_the_answer),
        cmocka_unit_test(a_quiet_request),
        cmocka_unit_test(redirects),
        cmocka_unit_test(failures_in_words),
        cmocka_unit_test(only_allowed_hosts),
        cmocka_unit_test(passwords_are_not_kept),
        cmocka_unit_test(slips_raise),
        cmocka_unit_test(a_cancelled_request),
    };

    return cmocka_run_group_tests_name("lib_http", tests, open_server, close_server);
}
