/* bench/floor.c: the bare floor, what the same work costs with libcurl and cJSON alone.
 *
 *   floor --url http://127.0.0.1:PORT/v1 --request FILE [--queries N] [--concurrency C]
 *
 * Drives N agent queries, C at once, against fake_llm --bench: libcurl's multi interface with
 * curl_multi_socket_action on epoll, every body printed and every stream event parsed with cJSON,
 * the calculator computed in C (native calls and text ReAct); no Lua, no record, no energy.  FILE
 * is the first request body that ipw-agent itself sent for such a query (bench/run_bench takes it
 * from the fake server's log), so both send the same messages, tool schemas and options.  Prints on
 * stdout: turns, CPU microseconds a turn (user and system, this process), turns a second, peak
 * resident KiB. */
#include <cjson/cJSON.h>
#include <curl/curl.h>
#include <errno.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

struct text {
    char *s;
    size_t n, cap;
};

struct slot { /* one query in flight */
    CURL *easy;
    cJSON *request, *messages;
    char *body;
    struct text in;            /* stream bytes not yet split */
    struct text content, args; /* of the reply in the making */
    char call_id[64], call_name[64];
    bool calling, done;
    int turns;
};

static CURLM *multi;
static struct curl_slist *headers;
static int ep, running;
static long timeout_ms = -1;
static struct timespec timeout_at;
static const char *template_text;
static char url[512];
static long queries = 100, started, finished, turns, concurrency = 1;

static void die(const char *what)
{
    fprintf(stderr, "floor: %s\n", what);
    exit(1);
}

static void add(struct text *t, const char *bytes, size_t n)
{
    if (t->n + n + 1 > t->cap) {
        t->cap = (t->n + n + 1) * 2;
        if (!(t->s = realloc(t->s, t->cap))) die("out of memory");
    }
    memcpy(t->s + t->n, bytes, n);
    t->n += n;
    t->s[t->n] = '\0';
}

/* --- calculator: + - * / and parentheses --- */

static double sum(const char **p);

static double factor(const char **p)
{
    while (**p == ' ') (*p)++;
    if (**p == '(') {
        (*p)++;
        double v = sum(p);
        if (**p == ')') (*p)++;
        return v;
    }
    if (**p == '-') {
        (*p)++;
        return -factor(p);
    }
    char *end;
    double v = strtod(*p, &end);
    *p = end;
    return v;
}

static double product(const char **p)
{
    double v = factor(p);
    for (;;) {
        while (**p == ' ') (*p)++;
        if (**p != '*' && **p != '/') return v;
        char op = *(*p)++;
        double w = factor(p);
        v = op == '*' ? v * w : v / w;
    }
}

static double sum(const char **p)
{
    double v = product(p);
    for (;;) {
        while (**p == ' ') (*p)++;
        if (**p != '+' && **p != '-') return v;
        char op = *(*p)++;
        double w = product(p);
        v = op == '+' ? v + w : v - w;
    }
}

/* --- one turn --- */

static const char *string_of(const cJSON *object, const char *name)
{
    const char *s = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, name));
    return s ? s : "";
}

static void fold_event(struct slot *s, const char *data, size_t n)
{
    if (n == 6 && !memcmp(data, "[DONE]", 6)) {
        s->done = true;
        return;
    }
    cJSON *chunk = cJSON_ParseWithLength(data, n);
    if (!chunk) die("an event is not JSON");
    const cJSON *choice = cJSON_GetArrayItem(cJSON_GetObjectItemCaseSensitive(chunk, "choices"), 0);
    const cJSON *delta = cJSON_GetObjectItemCaseSensitive(choice, "delta");
    const char *text = string_of(delta, "content");
    add(&s->content, text, strlen(text));
    const cJSON *call;
    cJSON_ArrayForEach(call, cJSON_GetObjectItemCaseSensitive(delta, "tool_calls"))
    {
        const cJSON *function = cJSON_GetObjectItemCaseSensitive(call, "function");
        const char *id = string_of(call, "id"), *name = string_of(function, "name");
        s->calling = true;
        if (*id) snprintf(s->call_id, sizeof s->call_id, "%s", id);
        if (*name) snprintf(s->call_name, sizeof s->call_name, "%s", name);
        const char *args = string_of(function, "arguments");
        add(&s->args, args, strlen(args));
    }
    cJSON_Delete(chunk);
}

static size_t on_write(char *bytes, size_t size, size_t count, void *ud)
{
    struct slot *s = ud;
    size_t n = size * count, at = 0;
    add(&s->in, bytes, n);
    for (;;) {
        const char *start = s->in.s + at;
        const char *end = memmem(start, s->in.n - at, "\n\n", 2);
        if (!end) break;
        if (end - start > 6 && !memcmp(start, "data: ", 6))
            fold_event(s, start + 6, (size_t)(end - start) - 6);
        at = (size_t)(end + 2 - s->in.s);
    }
    memmove(s->in.s, s->in.s + at, s->in.n - at);
    s->in.n -= at;
    return n;
}

static void send_turn(struct slot *s)
{
    s->in.n = s->content.n = s->args.n = 0;
    s->calling = s->done = false;
    free(s->body);
    if (!(s->body = cJSON_PrintUnformatted(s->request))) die("out of memory");
    curl_easy_setopt(s->easy, CURLOPT_POSTFIELDS, s->body);
    curl_easy_setopt(s->easy, CURLOPT_POSTFIELDSIZE, (long)strlen(s->body));
    curl_multi_add_handle(multi, s->easy);
}

static void start_query(struct slot *s)
{
    char question[96];
    started++;
    s->turns = 0;
    cJSON_Delete(s->request);
    if (!(s->request = cJSON_Parse(template_text))) die("--request is not JSON");
    s->messages = cJSON_GetObjectItemCaseSensitive(s->request, "messages");
    int last = cJSON_GetArraySize(s->messages) - 1;
    if (last < 0) die("--request has no messages");
    snprintf(question, sizeof question, "Question %ld: what is 2 + 3 * %ld?", started, started);
    cJSON_ReplaceItemInObjectCaseSensitive(cJSON_GetArrayItem(s->messages, last), "content",
                                           cJSON_CreateString(question));
    send_turn(s);
}

static double compute(const char *json)
{
    cJSON *args = cJSON_Parse(json);
    const char *expression = string_of(args, "expression");
    double value = sum(&expression);
    cJSON_Delete(args);
    return value;
}

/* Text ReAct: the reply and its observation into the history. */
static void answer_action(struct slot *s, const char *arguments)
{
    cJSON *reply = cJSON_CreateObject(), *result = cJSON_CreateObject();
    char text[64];
    snprintf(text, sizeof text, "Observation: %.15g", compute(arguments));
    cJSON_AddStringToObject(reply, "content", s->content.s);
    cJSON_AddStringToObject(reply, "role", "assistant");
    cJSON_AddItemToArray(s->messages, reply);
    cJSON_AddStringToObject(result, "content", text);
    cJSON_AddStringToObject(result, "role", "user");
    cJSON_AddItemToArray(s->messages, result);
}

/* The reply into the history, the tool's result behind it. */
static void answer_call(struct slot *s)
{
    cJSON *reply = cJSON_CreateObject(), *calls = cJSON_CreateArray(), *call = cJSON_CreateObject();
    cJSON *function = cJSON_CreateObject(), *result = cJSON_CreateObject();
    cJSON_AddStringToObject(reply, "content", s->content.n ? s->content.s : "");
    cJSON_AddStringToObject(reply, "role", "assistant");
    cJSON_AddStringToObject(function, "arguments", s->args.s);
    cJSON_AddStringToObject(function, "name", s->call_name);
    cJSON_AddItemToObject(call, "function", function);
    cJSON_AddStringToObject(call, "id", s->call_id);
    cJSON_AddStringToObject(call, "type", "function");
    cJSON_AddItemToArray(calls, call);
    cJSON_AddItemToObject(reply, "tool_calls", calls);
    cJSON_AddItemToArray(s->messages, reply);

    char value[32];
    snprintf(value, sizeof value, "%.15g", compute(s->args.s));
    cJSON_AddStringToObject(result, "content", value);
    cJSON_AddStringToObject(result, "role", "tool");
    cJSON_AddStringToObject(result, "tool_call_id", s->call_id);
    cJSON_AddItemToArray(s->messages, result);
}

static void on_done(CURL *easy, CURLcode code)
{
    struct slot *s;
    long status = 0;
    curl_easy_getinfo(easy, CURLINFO_PRIVATE, &s);
    curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
    if (code != CURLE_OK) die(curl_easy_strerror(code));
    if (status != 200 || !s->done) die("an answer was no whole stream");
    curl_multi_remove_handle(multi, easy);
    turns++;
    s->turns++;
    const char *action = s->content.n ? strstr(s->content.s, "Action Input: ") : NULL;
    if (s->calling || action) {
        if (s->calling)
            answer_call(s);
        else
            answer_action(s, action + strlen("Action Input: "));
        send_turn(s);
        return;
    }
    if (!s->content.n || !strstr(s->content.s, "42")) die("a final answer is not 42");
    finished++;
    if (started < queries) start_query(s);
}

/* --- libcurl on epoll --- */

static int on_socket(CURL *easy, curl_socket_t fd, int what, void *ud, void *known)
{
    (void)easy, (void)ud;
    struct epoll_event ev = {.data.fd = fd};
    if (what == CURL_POLL_REMOVE) {
        epoll_ctl(ep, EPOLL_CTL_DEL, fd, &ev);
        return 0;
    }
    ev.events = (what & CURL_POLL_IN ? EPOLLIN : 0U) | (what & CURL_POLL_OUT ? EPOLLOUT : 0U);
    epoll_ctl(ep, known ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, fd, &ev);
    if (!known) curl_multi_assign(multi, fd, (void *)&ep);
    return 0;
}

static int on_timer(CURLM *m, long ms, void *ud)
{
    (void)m, (void)ud;
    timeout_ms = ms;
    clock_gettime(CLOCK_MONOTONIC, &timeout_at);
    timeout_at.tv_sec += ms / 1000;
    timeout_at.tv_nsec += ms % 1000 * 1000000;
    return 0;
}

static int time_left(void)
{
    struct timespec now;
    if (timeout_ms < 0) return -1;
    clock_gettime(CLOCK_MONOTONIC, &now);
    long ms =
        (timeout_at.tv_sec - now.tv_sec) * 1000 + (timeout_at.tv_nsec - now.tv_nsec) / 1000000;
    return ms < 0 ? 0 : (int)ms;
}

static void take_finished(void)
{
    CURLMsg *m;
    int left;
    while ((m = curl_multi_info_read(multi, &left)))
        if (m->msg == CURLMSG_DONE) on_done(m->easy_handle, m->data.result);
}

static void drive(void)
{
    struct epoll_event events[256];
    while (finished < queries) {
        int n = epoll_wait(ep, events, 256, time_left());
        for (int i = 0; i < n; i++) {
            int flags = (events[i].events & EPOLLIN ? CURL_CSELECT_IN : 0) |
                        (events[i].events & EPOLLOUT ? CURL_CSELECT_OUT : 0) |
                        (events[i].events & (EPOLLERR | EPOLLHUP) ? CURL_CSELECT_ERR : 0);
            curl_multi_socket_action(multi, events[i].data.fd, flags, &running);
        }
        if (timeout_ms >= 0 && time_left() == 0) {
            timeout_ms = -1;
            curl_multi_socket_action(multi, CURL_SOCKET_TIMEOUT, 0, &running);
        }
        take_finished();
    }
}

static CURL *new_easy(struct slot *s)
{
    CURL *easy = curl_easy_init();
    if (!easy) die("no handle");
    curl_easy_setopt(easy, CURLOPT_URL, url);
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(easy, CURLOPT_PROXY, "");
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_write);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, s);
    curl_easy_setopt(easy, CURLOPT_PRIVATE, s);
    return easy;
}

static char *read_file(const char *path)
{
    FILE *f = fopen(path, "r");
    struct text t = {0};
    char piece[65536];
    size_t n;
    if (!f) die("cannot read --request");
    while ((n = fread(piece, 1, sizeof piece, f)) > 0) add(&t, piece, n);
    fclose(f);
    if (!t.n) die("--request is empty");
    return t.s;
}

static double cpu_us(struct rusage *u)
{
    getrusage(RUSAGE_SELF, u);
    return (double)(u->ru_utime.tv_sec + u->ru_stime.tv_sec) * 1e6 +
           (double)(u->ru_utime.tv_usec + u->ru_stime.tv_usec);
}

static void run(void)
{
    struct slot *slots = calloc((size_t)concurrency, sizeof *slots);
    if (!slots) die("out of memory");
    curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, on_socket);
    curl_multi_setopt(multi, CURLMOPT_TIMERFUNCTION, on_timer);
    curl_multi_setopt(multi, CURLMOPT_MAXCONNECTS, concurrency + 8);
    for (long i = 0; i < concurrency && started < queries; i++) {
        slots[i].easy = new_easy(&slots[i]);
        start_query(&slots[i]);
    }
    drive();
    for (long i = 0; i < concurrency; i++) {
        curl_easy_cleanup(slots[i].easy);
        cJSON_Delete(slots[i].request);
        free(slots[i].body);
        free(slots[i].in.s);
        free(slots[i].content.s);
        free(slots[i].args.s);
    }
    free(slots);
}

int main(int argc, char **argv)
{
    static const struct option options[] = {{"url", 1, 0, 'u'},
                                            {"request", 1, 0, 'r'},
                                            {"queries", 1, 0, 'q'},
                                            {"concurrency", 1, 0, 'c'},
                                            {0}};
    const char *base = NULL;
    char *request = NULL;
    int o;
    while ((o = getopt_long(argc, argv, "", options, NULL)) != -1) {
        switch (o) {
        case 'u': base = optarg; break;
        case 'r': request = read_file(optarg); break;
        case 'q': queries = atol(optarg); break;
        case 'c': concurrency = atol(optarg); break;
        default: return 2;
        }
    }
    if (!base || !request) die("--url and --request are needed");
    snprintf(url, sizeof url, "%s/chat/completions", base);
    template_text = request;
    curl_global_init(CURL_GLOBAL_DEFAULT);
    multi = curl_multi_init();
    ep = epoll_create1(EPOLL_CLOEXEC);
    headers = curl_slist_append(NULL, "Content-Type: application/json");
    headers = curl_slist_append(headers, "Expect:");

    struct rusage u;
    struct timespec a, b;
    double before = cpu_us(&u);
    clock_gettime(CLOCK_MONOTONIC, &a);
    run();
    clock_gettime(CLOCK_MONOTONIC, &b);
    double after = cpu_us(&u);
    double wall = (double)(b.tv_sec - a.tv_sec) + (double)(b.tv_nsec - a.tv_nsec) / 1e9;
    printf("turns %ld cpu_us_per_turn %.1f turns_per_s %.0f peak_rss_kb %ld\n", turns,
           (after - before) / (double)turns, (double)turns / wall, u.ru_maxrss);
    curl_slist_free_all(headers);
    curl_multi_cleanup(multi);
    curl_global_cleanup();
    close(ep);
    free(request);
    return 0;
}
