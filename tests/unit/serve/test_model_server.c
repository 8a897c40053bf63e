/* The server as clients meet it: raw sockets against a server process. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <dirent.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "io/loop.h"
#include "serve/model_server.h"
#include "unit/unit.h"

/* A process of its own, as in real use: Lua's CPU timer belongs to the thread that first ran Lua.
 */
struct server {
    pid_t pid;
    int stop, port;
};

static void stop_loop(void *loop) { ipw_loop_stop(loop); }

static void serve_child(const struct ipw_serve_options *options, int stop_fd, int url_fd)
{
    struct ipw_watch *stopped;
    struct ipw_serve *serve;
    struct ipw_loop *loop;
    struct ipw_err err = {0};

    if (ipw_loop_new(&loop, &err) || ipw_serve_open(&serve, options, loop, &err) ||
        ipw_readable_start(&stopped, loop, stop_fd, stop_loop, loop, &err)) {
        fprintf(stderr, "%s\n", err.text);
        exit(1);
    }
    dprintf(url_fd, "%s", ipw_serve_url(serve));
    close(url_fd);
    ipw_loop_run(loop);
    ipw_serve_close(serve);
    ipw_watch_cancel(stopped);
    ipw_loop_free(loop); /* with nothing left on it */
    exit(0);             /* not _exit: the leak checker reports here */
}

static void start(struct server *s, const struct ipw_serve_options *options)
{
    int stop[2], url[2];
    char line[256], scheme[8];
    ssize_t n;

    assert_int_equal(pipe(stop), 0);
    assert_int_equal(pipe(url), 0);
    s->pid = fork();
    assert_true(s->pid >= 0);
    if (s->pid == 0) {
        close(stop[1]);
        close(url[0]);
        serve_child(options, stop[0], url[1]);
    }
    close(stop[0]);
    close(url[1]);
    n = read(url[0], line, sizeof line - 1);
    close(url[0]);
    assert_true(n > 0);
    line[n] = '\0';
    assert_int_equal(sscanf(line, "%5[a-z]://127.0.0.1:%d/v1", scheme, &s->port), 2);
    s->stop = stop[1];
}

static void stop(struct server *s)
{
    int status;

    close(s->stop); /* the end of the pipe can be read as well */
    assert_int_equal(waitpid(s->pid, &status, 0), s->pid);
    assert_int_equal(status, 0);
}

static const char *extra = "Host: localhost\r\n"; /* headers of the next requests */

static int ask(int port, const char *method, const char *path, const char *body)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    struct ipw_buf text = IPW_BUF(64 * IPW_MIB);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    ipw_buf_addf(&text, "%s %s HTTP/1.1\r\n%sConnection: close\r\n", method, path, extra);
    if (body) ipw_buf_addf(&text, "Content-Length: %zu\r\n", strlen(body));
    ipw_buf_adds(&text, "\r\n");
    ipw_buf_adds(&text, body ? body : "");
    for (size_t at = 0; at < text.len;) {
        ssize_t n = send(fd, text.data + at, text.len - at, MSG_NOSIGNAL);
        assert_true(n > 0);
        at += (size_t)n;
    }
    ipw_buf_release(&text);
    return fd;
}

/* Everything up to the end of the connection, which is closed. */
static void answer_of(int fd, struct ipw_buf *out)
{
    char piece[4096];
    ssize_t n;

    ipw_buf_clear(out);
    while ((n = recv(fd, piece, sizeof piece, 0)) > 0)
        assert_int_equal(ipw_buf_add(out, piece, (size_t)n), 0);
    assert_int_equal(n, 0);
    close(fd);
}

static int status_of(const struct ipw_buf *answer)
{
    return answer->len > 12 ? atoi(answer->data + 9) : 0;
}

static size_t count(const char *text, const char *word)
{
    size_t n = 0;

    for (const char *at = strstr(text, word); at; at = strstr(at + 1, word)) n++;
    return n;
}

#define CHAT "/v1/chat/completions"
#define HI   "{\"model\":\"demo\",\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]"

static void routes(void **state)
{
    static const struct {
        const char *method, *path, *body;
        int status;
        const char *part;
    } cases[] = {
        {"GET", "/health", NULL, 200, "{\"status\":\"ok\"}"},
        {"HEAD", "/health", NULL, 200, "application/json"},
        {"GET", "/v1/models", NULL, 200, "\"id\":\"demo\""},
        {"GET", "/v1/models/demo", NULL, 200, "\"owned_by\":\"ipw-agent\""},
        {"GET", "/v1/models/other", NULL, 404, "this server has 'demo'"},
        {"GET", "/", NULL, 404, "unknown path"},
        {"GET", "/v1/models?x=1", NULL, 200, "\"id\":\"demo\""},
        {"POST", "/v1/models", "{}", 405, "Allow: GET"},
        {"GET", CHAT, NULL, 405, "Allow: POST"},
        {"POST", CHAT, "", 400, "\"error\""},
        {"POST", CHAT, "{\"model\":", 400, "invalid_request_error"},
        {"POST", CHAT, "{\"model\":\"demo\",\"messages\":[]}", 400, "messages"},
        {"POST", CHAT, "{\"model\":\"gpt\",\"messages\":[{\"role\":\"user\"}]}", 404, "'gpt'"},
        {"POST", CHAT, HI "}", 200, "I am the demo model"},
        {"POST", CHAT, HI ",\"stream\":true}", 200, "data: [DONE]"},
        {"POST", CHAT, HI ",\"stream\":true}", 200, "text/event-stream"},
        {"POST", CHAT, HI ",\"response_format\":{\"type\":\"text\"}}", 200, "I am the demo model"},
        {"POST", CHAT, HI ",\"response_format\":{\"type\":\"json_object\"}}", 400,
         "does not honour 'json_object'"},
        {"POST", CHAT, HI ",\"response_format\":{\"type\":\"json_schema\",\"json_schema\":{}}}",
         400, "does not honour 'json_schema'"},
        {"POST", CHAT, HI ",\"logprobs\":true}", 400, "logprobs: this server has none"},
    };
    struct server s;
    struct ipw_serve_options options = {0};
    struct ipw_buf answer = IPW_BUF(IPW_MIB);

    (void)state;
    start(&s, &options);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        answer_of(ask(s.port, cases[i].method, cases[i].path, cases[i].body), &answer);
        if (status_of(&answer) != cases[i].status || !strstr(answer.data, cases[i].part))
            fail_msg("%s %s: %s", cases[i].method, cases[i].path, answer.data);
    }
    stop(&s);
    ipw_buf_release(&answer);
}

/* Delays are lower bounds: whatever else the machine does, nothing may come early. */
static void delays(void **state)
{
    struct ipw_serve_options options = {
        .model = {.ttft_ns = 40 * IPW_NS_PER_MS, .itl_ns = 2 * IPW_NS_PER_MS}};
    struct server s;
    struct ipw_buf answer = IPW_BUF(IPW_MIB);
    int64_t before;

    (void)state;
    start(&s, &options);
    before = ipw_now_ns();
    answer_of(ask(s.port, "POST", CHAT, HI ",\"max_tokens\":11}"), &answer);
    assert_true(ipw_now_ns() - before >= 60 * IPW_NS_PER_MS);
    assert_non_null(strstr(answer.data, "\"completion_tokens\":11"));
    assert_non_null(strstr(answer.data, "\"finish_reason\":\"length\""));

    before = ipw_now_ns();
    answer_of(ask(s.port, "POST", CHAT, HI ",\"max_tokens\":11,\"stream\":true}"), &answer);
    assert_true(ipw_now_ns() - before >= 60 * IPW_NS_PER_MS);
    /* the role, eleven tokens, the finish, the end */
    assert_int_equal(count(answer.data, "data: "), 14);
    assert_null(strstr(answer.data, "usage"));
    stop(&s);
    ipw_buf_release(&answer);
}

static void many_at_once(void **state)
{
    enum { N = 256 };
    struct ipw_serve_options options = {
        .model = {.ttft_ns = 20 * IPW_NS_PER_MS, .itl_ns = IPW_NS_PER_MS}};
    struct server s;
    struct ipw_buf answer = IPW_BUF(IPW_MIB);
    int fds[N];

    (void)state;
    start(&s, &options);
    for (size_t i = 0; i < N; i++)
        fds[i] = ask(s.port, "POST", CHAT,
                     HI ",\"max_tokens\":9,\"stream\":true,"
                        "\"stream_options\":{\"include_usage\":true}}");
    for (size_t i = 0; i < N; i++) {
        answer_of(fds[i], &answer);
        assert_int_equal(status_of(&answer), 200);
        assert_int_equal(count(answer.data, "data: "), 13);
        assert_non_null(strstr(answer.data, "\"completion_tokens\":9"));
    }
    stop(&s);
    ipw_buf_release(&answer);
}

static void clients_that_leave(void **state)
{
    struct ipw_serve_options options = {.model.ttft_ns = 3600 * IPW_NS_PER_S};
    struct server s;
    struct ipw_buf answer = IPW_BUF(IPW_MIB);
    int fds[8];

    (void)state;
    start(&s, &options);
    for (size_t i = 0; i < 8; i++)
        fds[i] = ask(s.port, "POST", CHAT, i % 2 ? HI "}" : HI ",\"stream\":true}");
    for (size_t i = 0; i < 4; i++) close(fds[i]);
    answer_of(ask(s.port, "GET", "/health", NULL), &answer);
    assert_int_equal(status_of(&answer), 200);
    stop(&s); /* with eight answers that are due in an hour */
    for (size_t i = 4; i < 8; i++) close(fds[i]);
    ipw_buf_release(&answer);
}

static void visitors(void **state)
{
#define JSON "Content-Type: application/json\r\n"
    static const char *const names[] = {"gpu-box", NULL};
    static const struct {
        const char *headers, *method;
        int status;
    } cases[] = {
        {"Host: localhost\r\n", "GET", 200},
        {"Host: 127.0.0.1:8765\r\n", "GET", 200},
        {"Host: gpu-box:1\r\n", "GET", 200},
        {"Host: evil.example\r\n", "GET", 403},
        {"Host: evil.example:8765\r\n" JSON, "POST", 403},
        {"Host: 10.0.0.1\r\n", "GET", 403},
        {"Host: localhost\r\n" JSON, "POST", 200},
        {"Host: localhost\r\nOrigin: http://evil.example\r\n", "POST", 403},
        {"Host: localhost\r\nOrigin: null\r\nContent-Type: text/plain\r\n", "POST", 403},
        {"Host: localhost\r\nOrigin: http://evil.example\r\n" JSON, "POST", 200},
        {"Host: localhost\r\nOrigin: http://localhost:3000\r\nContent-Type: text/plain\r\n", "POST",
         200},
    };
    struct ipw_serve_options options = {.allow_hosts = names};
    struct ipw_buf answer = IPW_BUF(IPW_MIB);
    const char *usual = extra;
    struct server s;

    (void)state;
    start(&s, &options);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bool post = strcmp(cases[i].method, "POST") == 0;

        extra = cases[i].headers;
        answer_of(ask(s.port, cases[i].method, post ? CHAT : "/v1/models", post ? HI "}" : NULL),
                  &answer);
        if (status_of(&answer) != cases[i].status) fail_msg("%s: %s", extra, answer.data);
    }
    extra = usual;
    stop(&s);
    ipw_buf_release(&answer);
}

static const char script[] =
    "local seen = 0\n"
    "return { name = 'odd', response_format = true, reply = function(request, ctx)\n"
    "  local word = request.messages[1].content\n"
    "  seen = seen + 1\n"
    "  if word == 'raise' then error('on purpose') end\n"
    "  if word == 'spin' then while true do end end\n"
    "  if word == 'nothing' then return nil end\n"
    "  if word == 'hoard' then local t = {} while true do t[#t + 1] = {} end end\n"
    "  if #word > 1000 then return { text = tostring(#(word .. word .. word .. word)) } end\n"
    "  if word == 'function' then return { text = print or function() end } end\n"
    "  if word == 'call' then return { calls = { { name = 3 } } } end\n"
    "  return { text = seen .. ' of ' .. ctx.number }\n"
    "end }\n";

#define ODD(word) "{\"model\":\"odd\",\"messages\":[{\"role\":\"user\",\"content\":\"" word "\"}]}"

/* More than the script's memory holds: the client's doing, and not worth another try. */
static void too_large(void **state)
{
    static const struct {
        size_t bytes;
        const char *piece;
    } cases[] = {{1 << 20, "x"}, {20 << 20, "x"}, {4 << 20, "[],"}};
    static const int status[] = {200, 413, 413};
    char path[] = "/tmp/ipw-test-model-XXXXXX.lua";
    struct ipw_serve_options options = {.model.name = path};
    struct ipw_buf answer = IPW_BUF(IPW_MIB);
    int fd = mkstemps(path, 4);
    struct server s;

    (void)state;
    assert_int_equal(write(fd, script, sizeof script - 1), (ssize_t)(sizeof script - 1));
    close(fd);
    start(&s, &options);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bool text = *cases[i].piece == 'x';
        struct ipw_buf body = IPW_BUF(32 * IPW_MIB);

        ipw_buf_adds(&body, "{\"model\":\"odd\",\"messages\":[{\"role\":\"user\",\"content\":");
        ipw_buf_adds(&body, text ? "\"" : "[");
        while (body.len < cases[i].bytes) ipw_buf_adds(&body, cases[i].piece);
        ipw_buf_adds(&body, text ? "\"}]}" : "1]}]}");
        answer_of(ask(s.port, "POST", CHAT, ipw_buf_str(&body)), &answer);
        if (status_of(&answer) != status[i])
            fail_msg("%zu: %d, %.300s", i, status_of(&answer), answer.data);
        ipw_buf_release(&body);
    }
    /* The next one finds a fresh state; a script that hoards fails by itself. */
    answer_of(ask(s.port, "POST", CHAT, ODD("a")), &answer);
    assert_int_equal(status_of(&answer), 200);
    answer_of(ask(s.port, "POST", CHAT, ODD("hoard")), &answer);
    assert_int_equal(status_of(&answer), 500);
    answer_of(ask(s.port, "POST", CHAT,
                  "{\"model\":\"odd\",\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":"
                  "\"image_url\",\"image_url\":{\"url\":\"data:image/png;base64,AA==\"}}]}]}"),
              &answer);
    assert_int_equal(status_of(&answer), 400);
    assert_non_null(strstr(answer.data, "image_url: the model does not read pictures"));
    stop(&s);
    unlink(path);
    ipw_buf_release(&answer);
}

static void models_that_err(void **state)
{
    static const struct {
        const char *word;
        int status;
        const char *part;
    } cases[] = {
        {"a", 200, "\"content\":\"1 of 1\""}, {"b", 200, "\"content\":\"2 of 2\""},
        {"raise", 500, "on purpose"},         {"c", 200, "\"content\":\"1 of 4\""},
        {"nothing", 500, "not a table"},      {"function", 500, "server_error"},
        {"call", 500, "calls[1].name"},       {"spin", 500, "server_error"},
        {"d", 200, "\"content\":\"1 of 9\""},
    };
    char path[] = "/tmp/ipw-test-model-XXXXXX.lua", body[256];
    struct ipw_serve_options options = {.model.name = path};
    struct server s;
    struct ipw_buf answer = IPW_BUF(IPW_MIB);
    int fd = mkstemps(path, 4);

    (void)state;
    assert_int_equal(write(fd, script, sizeof script - 1), (ssize_t)(sizeof script - 1));
    close(fd);
    start(&s, &options);
    answer_of(ask(s.port, "GET", "/v1/models", NULL), &answer);
    assert_non_null(strstr(answer.data, "\"id\":\"odd\""));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        snprintf(body, sizeof body,
                 "{\"model\":\"odd\",\"messages\":[{\"role\":\"user\",\"content\":\"%s\"}]}",
                 cases[i].word);
        answer_of(ask(s.port, "POST", CHAT, body), &answer);
        if (status_of(&answer) != cases[i].status || !strstr(answer.data, cases[i].part))
            fail_msg("%s: %s", cases[i].word, answer.data);
    }
    stop(&s);
    unlink(path);
    ipw_buf_release(&answer);
}

static void refused(void **state)
{
    static const struct {
        struct ipw_serve_options options;
        const char *words;
        int code;
    } cases[] = {
        {{.host = "0.0.0.0"}, "only loopback", IPW_EINVAL},
        {{.host = "192.168.1.5"}, "only loopback", IPW_EINVAL},
        {{.host = "::"}, "only loopback", IPW_EINVAL},
        {{.host = "example.org"}, "only loopback", IPW_EINVAL},
        {{.model.name = "dmeo"}, "dmeo", IPW_ENOTFOUND},
        {{.model.name = "/nonexistent/x.lua"}, "/nonexistent/x.lua", IPW_ENOTFOUND},
        {{.model.name = IPW_SOURCE_DIR "/lua/ipw/calc.lua"}, "no function 'reply'", IPW_ELUA},
    };
    struct ipw_serve_options options = {0};
    struct ipw_serve *serve, *second;
    struct ipw_loop *loop;
    struct ipw_err err = {0};

    (void)state;
    assert_int_equal(ipw_loop_new(&loop, &err), 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(ipw_serve_open(&serve, &cases[i].options, loop, &err), cases[i].code);
        if (!strstr(err.text, cases[i].words)) fail_msg("case %zu: %s", i, err.text);
    }
    options.host = "localhost";
    assert_int_equal(ipw_serve_open(&serve, &options, loop, NULL), 0);
    assert_memory_equal(ipw_serve_url(serve), "http://127.0.0.1:", 17);
    options.port = atoi(strrchr(ipw_serve_url(serve), ':') + 1);
    assert_int_equal(ipw_serve_open(&second, &options, loop, &err), IPW_EIO);
    assert_non_null(strstr(err.text, "cannot listen on port"));
    ipw_serve_close(serve);
    ipw_serve_close(NULL);
    ipw_loop_free(loop);
}

static int count_fds(void)
{
    DIR *dir = opendir("/proc/self/fd");
    int n = 0;

    while (readdir(dir)) n++;
    closedir(dir);
    return n;
}

static int fds_before;

static int remember_fds(void **state)
{
    (void)state;
    fds_before = count_fds();
    return 0;
}

static int compare_fds(void **state)
{
    (void)state;
    return count_fds() == fds_before ? 0 : -1;
}

/* libuv keeps two descriptors from its first loop on. */
static int first_loop(void **state)
{
    struct ipw_loop *loop;

    (void)state;
    if (ipw_loop_new(&loop, NULL)) return -1;
    ipw_loop_free(loop);
    return 0;
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, remember_fds, compare_fds)

UNIT(model_server)
{
    const struct CMUnitTest tests[] = {
        TEST(routes),   TEST(delays),    TEST(many_at_once),    TEST(clients_that_leave),
        TEST(visitors), TEST(too_large), TEST(models_that_err), TEST(refused),
    };

    return cmocka_run_group_tests(tests, first_loop, NULL);
}
