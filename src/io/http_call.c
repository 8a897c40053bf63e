/* One request: its options, libcurl's callbacks, its deadlines and its end. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/mem.h"
#include "io/http_priv.h"
#include "io/url.h"

static const size_t BODY_MAX = 256 * IPW_MIB;

/* --- what libcurl calls ---------------------------------------------------------------------- */

/* Connected; the next step is to write the request.  A second call means that the request is sent
 * again, by libcurl or by send_again(), because a reused connection died before a line of the
 * answer.  That happens on a new connection, so there is no third time.  If part of that line had
 * come, the server has seen the request, and the caller decides whether to repeat it.  (With TLS
 * the first byte may be the closing message, so libcurl's view counts there.) */
static int on_send(void *ud, char *peer_ip, char *own_ip, int peer_port, int own_port)
{
    int64_t now = ipw_now_ns();
    struct ipw_http_call *call = ud;

    (void)own_ip;
    call->at.sent_ns = now;
    if (call->stamp_cpu) call->at.sent_cpu_ns = ipw_cpu_thread_ns();
    if (call->sends++ == 0) {
        long opened = 1;
        curl_easy_getinfo(call->easy, CURLINFO_NUM_CONNECTS, &opened);
        if (opened == 0) {
            call->fresh = true;
            curl_easy_setopt(call->easy, CURLOPT_FRESH_CONNECT, 1L);
            if (strncasecmp(call->address->text, "http:", 5) == 0)
                ipw_http_request_begins(call, own_port, peer_ip, peer_port);
        }
    } else if (call->begun) {
        return CURL_PREREQFUNC_ABORT;
    }
    return CURL_PREREQFUNC_OK;
}

/* Keeps a header line.  libcurl lets no NUL through. */
static void keep_field(struct ipw_http_call *call, const char *line, size_t n)
{
    const char *colon = memchr(line, ':', n), *end = line + n, *value = colon + 1;

    if (!colon || colon == line) return;
    while (value < end && (*value == ' ' || *value == '\t')) value++;
    while (end > value && strchr(" \t\r\n", end[-1])) end--;
    ipw_buf_add(&call->answer.text, line, (size_t)(colon - line));
    ipw_buf_addc(&call->answer.text, '\0');
    ipw_buf_add(&call->answer.text, value, (size_t)(end - value));
    ipw_buf_addc(&call->answer.text, '\0');
    call->answer.head.n_fields++;
}

static void complete_head(struct ipw_http_call *call)
{
    const char *at = ipw_buf_str(&call->answer.text);
    size_t n = call->answer.head.n_fields;

    IPW_GROW(call->answer.fields, call->answer.cap_fields, n + 1);
    for (size_t i = 0; i < n; i++) {
        const char *value = at + strlen(at) + 1;
        call->answer.fields[i] = (struct ipw_http_header){at, value};
        at = value + strlen(value) + 1;
    }
    call->answer.head.status = call->status;
    call->answer.head.fields = call->answer.fields;
    call->head_complete = true;
}

static void clear_head(struct ipw_http_call *call)
{
    ipw_buf_clear(&call->answer.text);
    call->answer.head = (struct ipw_http_head){0};
}

static void on_status_line(struct ipw_http_call *call, int64_t now, const char *line, size_t n)
{
    const char *space = memchr(line, ' ', n), *end = line + n;

    call->status = 0;
    if (space) {
        for (const char *p = space + 1; p < end && *p >= '0' && *p <= '9' && p < space + 4; p++)
            call->status = call->status * 10 + (*p - '0');
    }
    call->at.headers_ns = now;
    clear_head(call);
}

static size_t on_header(char *line, size_t size, size_t n, void *ud)
{
    int64_t now = ipw_now_ns();
    struct ipw_http_call *call = ud;

    n *= size;
    if (call->state != CALL_RUNNING) return 0;
    call->header_bytes += n;
    if (call->header_bytes > HTTP_HEADERS_MAX) {
        call->too_large = true;
        return 0;
    }
    if (call->head_complete) return n; /* a trailer after the chunks */
    if (n > 5 && memcmp(line, "HTTP/", 5) == 0) {
        on_status_line(call, now, line, n);
    } else if (line[0] == '\r' || line[0] == '\n') {
        /* 100, 103: interim status, the answer follows. */
        if (call->status < 200 && call->status != 101) return n;
        complete_head(call);
        if (call->on.on_headers) {
            call->on.on_headers(call->on.ud, call->at.headers_ns, &call->answer.head);
            if (call->state != CALL_RUNNING) return 0;
        }
    } else {
        keep_field(call, line, n);
    }
    return n;
}

static int64_t next_deadline(const struct ipw_http_call *call, enum ipw_http_deadline *which);
static void arm_deadline(struct ipw_http_call *call);

static size_t on_body(char *bytes, size_t size, size_t n, void *ud)
{
    int64_t now = ipw_now_ns();
    struct ipw_http_call *call = ud;

    n *= size;
    if (call->state != CALL_RUNNING) return 0;
    if (call->paused) return CURL_WRITEFUNC_PAUSE; /* libcurl keeps the piece */
    call->received += (int64_t)n;
    call->at.last_byte_ns = now;
    if (!call->at.first_byte_ns) {
        call->at.first_byte_ns = now;
        /* Afterwards the deadline only moves away, except this once. */
        if (call->limit.idle_ns &&
            (!call->deadline.pos || call->deadline.due_ns > now + call->limit.idle_ns))
            ipw_timer_arm(&call->deadline, next_deadline(call, NULL));
    }
    if ((size_t)call->received > call->body_max) {
        call->too_large = true;
        return 0;
    }
    if (call->on.on_data && call->on.on_data(call->on.ud, now, bytes, n)) {
        call->aborted = true;
        return 0;
    }
    return call->state == CALL_RUNNING ? n : 0;
}

static size_t on_request_body(char *to, size_t size, size_t n, void *ud)
{
    struct ipw_http_call *call = ud;
    size_t got;

    if (call->state != CALL_RUNNING) return CURL_READFUNC_ABORT;
    got = call->on.on_body(call->on.ud, to, n * size);
    if (call->state != CALL_RUNNING) return CURL_READFUNC_ABORT;
    if (got == IPW_HTTP_BODY_LATER) return CURL_READFUNC_PAUSE;
    if (got == IPW_HTTP_BODY_BROKEN) {
        call->aborted = true;
        return CURL_READFUNC_ABORT;
    }
    return got;
}

static void on_flow(void *ud)
{
    struct ipw_http_call *call = ud;

    if (call->state == CALL_RUNNING) ipw_http_lane_continue(call);
}

void ipw_http_pause(struct ipw_http_call *call) { call->paused = true; }

void ipw_http_resume(struct ipw_http_call *call)
{
    if (!call->paused) return;
    call->paused = false;
    call->at.last_byte_ns = ipw_now_ns();
    if (call->state == CALL_DOOMED) return;
    arm_deadline(call);
    ipw_defer_arm(&call->flow);
}

void ipw_http_body_ready(struct ipw_http_call *call)
{
    if (call->state != CALL_DOOMED) ipw_defer_arm(&call->flow);
}

/* --- making and unmaking --------------------------------------------------------------------- */

static void set_constant_options(struct ipw_http_call *call)
{
    struct ipw_http *http = call->http;
    CURL *easy = call->easy;

    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L); /* a cancel does not wait for the resolver */
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(easy, CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS);
    /* Decode everything that libcurl can decode.  http_util.c removes the header that would ask for
     * compression, so servers that compress only on request do not. */
    curl_easy_setopt(easy, CURLOPT_ACCEPT_ENCODING, "");
    curl_easy_setopt(
        easy, CURLOPT_BUFFERSIZE,
        (long)(http->in_flight < HTTP_MANY ? HTTP_RECEIVE_BYTES : HTTP_RECEIVE_FEW_BYTES));
    /* Try IPv4 beside IPv6 after this time. */
    curl_easy_setopt(easy, CURLOPT_HAPPY_EYEBALLS_TIMEOUT_MS, 300L);
    curl_easy_setopt(easy, CURLOPT_TCP_NODELAY, 1L);
    curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L); /* a prefill may be silent for minutes */
    curl_easy_setopt(easy, CURLOPT_MAXAGE_CONN, 3L);   /* whole seconds: 3.999 s is the oldest */
    curl_easy_setopt(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    /* Without a value libcurl looks into the environment for every request. */
    curl_easy_setopt(easy, CURLOPT_NOPROXY, http->proxies ? http->no_proxy : "");
    if (http->cacert) curl_easy_setopt(easy, CURLOPT_CAINFO, http->cacert);
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, call->curl_error);
    curl_easy_setopt(easy, CURLOPT_PRIVATE, call);
    curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, on_send);
    curl_easy_setopt(easy, CURLOPT_PREREQDATA, call);
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, call);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, call);
    curl_easy_setopt(easy, CURLOPT_READFUNCTION, on_request_body);
    curl_easy_setopt(easy, CURLOPT_READDATA, call);
    ipw_http_setup_sockets(call);
}

static void on_deadline(void *ud);

static struct ipw_http_call *get_call(struct ipw_http *http)
{
    struct ipw_http_call *call = http->unused;

    if (call) {
        http->unused = call->next;
        call->next = NULL;
        return call;
    }
    call = ipw_calloc(1, sizeof *call);
    call->http = http;
    call->easy = curl_easy_init();
    if (!call->easy) {
        free(call);
        return NULL;
    }
    call->deadline = (struct ipw_timer){.loop = http->loop, .fn = on_deadline, .ud = call};
    call->flow = (struct ipw_defer){.loop = http->loop, .fn = on_flow, .ud = call};
    ipw_buf_init(&call->answer.text, (size_t)2 * HTTP_HEADERS_MAX);
    set_constant_options(call);
    return call;
}

void ipw_http_call_destroy(struct ipw_http_call *call)
{
    curl_easy_cleanup(call->easy);
    ipw_buf_release(&call->answer.text);
    free(call->answer.fields);
    ipw_http_address_release(call->address);
    free(call->method);
    free(call);
}

/* Puts the call back on the free list; libcurl no longer has it. */
static void put_call(struct ipw_http_call *call)
{
    struct ipw_http *http = call->http;

    ipw_http_headers_release(call->headers);
    ipw_buf_release(&call->body);
    call->headers = NULL;
    call->lender = NULL;
    call->state = CALL_FREE;
    call->next = http->unused;
    http->unused = call;
}

/* libcurl reads the body no more, or is about to let the request go. */
static void give_back(struct ipw_http_call *call)
{
    if (!call->lender) return;
    *call->lender = call->body;
    call->body = (struct ipw_buf){0};
    call->lender = NULL;
}

/* Takes the call out of its list and away from libcurl, which closes an unfinished connection. */
static void detach(struct ipw_http_call *call)
{
    struct ipw_http *http = call->http;

    if (call->state == CALL_RUNNING || call->state == CALL_DOOMED) {
        ipw_http_lane_remove(call);
        http->n_running--;
    }
    ipw_http_request_ended(call);
    ipw_timer_disarm(&call->deadline);
    ipw_defer_disarm(&call->flow);
    ipw_http_list_remove(call);
    if (call->state != CALL_DOOMED) {
        http->in_flight--;
        ipw_loop_unhold(http->loop);
        http->loop->leftovers--;
    }
}

void ipw_http_call_discard(struct ipw_http_call *call)
{
    detach(call);
    put_call(call);
}

/* --- the end --------------------------------------------------------------------------------- */

static int64_t duration_ns(CURL *easy, CURLINFO info)
{
    curl_off_t us = 0;

    curl_easy_getinfo(easy, info, &us);
    return (int64_t)us * 1000;
}

static void finish(struct ipw_http_call *call, enum ipw_http_end end,
                   enum ipw_http_deadline deadline, int64_t now)
{
    struct ipw_buf error = IPW_BUF(2 * IPW_KIB);
    struct ipw_http_result result = {
        .end = end,
        .deadline = deadline,
        .status = call->head_complete ? call->status : 0,
        .head = call->head_complete ? &call->answer.head : NULL,
        .start_ns = call->at.start_ns,
        .sent_ns = call->at.sent_ns ? call->at.sent_ns : call->at.start_ns,
        .sent_cpu_ns = call->at.sent_cpu_ns,
        .headers_ns = call->head_complete ? call->at.headers_ns : 0,
        .first_byte_ns = call->at.first_byte_ns,
        .close_ns = now,
        .bytes_received = call->received,
        .guarded = call->refused,
        .resent = call->sends > 1 && !call->begun,
        .error = "",
    };

    if (call->at.launch_ns) {
        curl_off_t sent = 0;
        long opened = 0;
        curl_easy_getinfo(call->easy, CURLINFO_NUM_CONNECTS, &opened);
        curl_easy_getinfo(call->easy, CURLINFO_SIZE_UPLOAD_T, &sent);
        result.bytes_sent = (int64_t)sent;
        result.reused = opened == 0 && call->sends > 0;
        if (opened > 0) {
            int64_t dns = duration_ns(call->easy, CURLINFO_NAMELOOKUP_TIME_T);
            int64_t tcp = duration_ns(call->easy, CURLINFO_CONNECT_TIME_T);
            int64_t tls = duration_ns(call->easy, CURLINFO_APPCONNECT_TIME_T);
            result.dns_ns = dns;
            result.connect_ns = tcp > dns ? tcp - dns : 0;
            result.tls_ns = tls > tcp ? tls - tcp : 0;
        }
    }
    detach(call);
    give_back(call);
    call->state = CALL_ENDING;
    if (end != IPW_HTTP_OK) {
        ipw_http_describe_end(&error, call, end, deadline);
        result.error = ipw_buf_str(&error);
    }
    if (call->on.on_done) call->on.on_done(call->on.ud, &result);
    ipw_buf_release(&error);
    put_call(call);
}

/* libcurl repeats a request that met the end of a reused connection, but not every request that met
 * its reset (CURLE_SEND_ERROR, CURLE_RECV_ERROR).  Servers often close connections without notice:
 * llama-server does so after every second streamed reply.  The new connection gets its own connect
 * deadline; the other deadlines continue. */
static bool send_again(struct ipw_http_call *call, enum ipw_http_end end)
{
    if (end != IPW_HTTP_RESET || !call->fresh || call->pieces || call->sends != 1 ||
        call->header_bytes > 0 || call->broke || call->http->dying)
        return false;
    ipw_http_lane_remove(call);
    call->at.dial_ns = ipw_now_ns();
    call->at.sent_ns = 0;
    call->curl_error[0] = '\0';
    arm_deadline(call);
    ipw_http_lane_add(call);
    return true;
}

void ipw_http_call_curl_done(struct ipw_http_call *call, CURLcode code)
{
    int64_t now = ipw_now_ns();
    enum ipw_http_end end = ipw_http_end_of(code, call->header_bytes > 0);

    if (call->state != CALL_RUNNING) return; /* doomed: discard it without a callback */
    if (ipw_http_waits_for_room(call, code)) return;
    if (call->too_large)
        end = IPW_HTTP_TOO_LARGE;
    else if (call->aborted)
        end = IPW_HTTP_ABORTED;
    else if (code == CURLE_ABORTED_BY_CALLBACK && call->begun)
        end = IPW_HTTP_CUT;
    else if (code == CURLE_OK && !call->head_complete)
        end = call->header_bytes ? IPW_HTTP_CUT : IPW_HTTP_RESET;
    if (send_again(call, end)) return;
    finish(call, end, end == IPW_HTTP_TIMEOUT ? IPW_HTTP_CONNECT_DEADLINE : IPW_HTTP_NO_DEADLINE,
           now);
}

/* --- deadlines ------------------------------------------------------------------------------- */

static void consider(int64_t *due, enum ipw_http_deadline *which, int64_t from, int64_t limit,
                     enum ipw_http_deadline deadline)
{
    if (limit <= 0 || limit > INT64_MAX - from || from + limit >= *due) return;
    *due = from + limit;
    if (which) *which = deadline;
}

/* The next deadline; INT64_MAX: none. */
static int64_t next_deadline(const struct ipw_http_call *call, enum ipw_http_deadline *which)
{
    int64_t due = INT64_MAX;

    consider(&due, which, call->at.start_ns, call->limit.total_ns, IPW_HTTP_TOTAL_DEADLINE);
    if (call->state == CALL_RUNNING) {
        if (!call->at.sent_ns)
            consider(&due, which, call->at.dial_ns, call->limit.connect_ns,
                     IPW_HTTP_CONNECT_DEADLINE);
        if (call->paused) return due;
        if (call->at.first_byte_ns)
            consider(&due, which, call->at.last_byte_ns, call->limit.idle_ns,
                     IPW_HTTP_IDLE_DEADLINE);
        else
            consider(&due, which, call->at.launch_ns, call->limit.first_byte_ns,
                     IPW_HTTP_FIRST_BYTE_DEADLINE);
    }
    return due;
}

static void arm_deadline(struct ipw_http_call *call)
{
    int64_t due = next_deadline(call, NULL);

    if (due != INT64_MAX) ipw_timer_arm(&call->deadline, due);
}

static void on_deadline(void *ud)
{
    int64_t now = ipw_now_ns();
    struct ipw_http_call *call = ud;
    struct ipw_http *http = call->http;
    enum ipw_http_deadline which = IPW_HTTP_NO_DEADLINE;

    if (next_deadline(call, &which) > now) {
        arm_deadline(call);
        return;
    }
    ipw_http_enter(http);
    finish(call, IPW_HTTP_TIMEOUT, which, now);
    ipw_http_leave(http);
}

/* --- starting -------------------------------------------------------------------------------- */

static void set_method(struct ipw_http_call *call, const struct ipw_http_request *request)
{
    bool has_body = request->body || request->lend_body || request->body_in_pieces;
    const char *method = request->method ? request->method : has_body ? "POST" : "GET";
    const char *plain = request->body_in_pieces ? "PUT" : has_body ? "POST" : "GET";
    bool head = strcmp(method, "HEAD") == 0 && !has_body;

    if (call->no_body && !head) curl_easy_setopt(call->easy, CURLOPT_NOBODY, 0L);
    if (call->upload && !request->body_in_pieces) curl_easy_setopt(call->easy, CURLOPT_UPLOAD, 0L);
    call->upload = request->body_in_pieces;
    if (request->body_in_pieces) {
        curl_easy_setopt(call->easy, CURLOPT_UPLOAD, 1L);
        curl_easy_setopt(call->easy, CURLOPT_INFILESIZE_LARGE, (curl_off_t)request->pieces_len);
    } else if (has_body) {
        curl_easy_setopt(call->easy, CURLOPT_POST, 1L);
        curl_easy_setopt(call->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)call->body.len);
        curl_easy_setopt(call->easy, CURLOPT_POSTFIELDS, ipw_buf_str(&call->body));
    } else if (head) {
        curl_easy_setopt(call->easy, CURLOPT_NOBODY, 1L);
    } else {
        curl_easy_setopt(call->easy, CURLOPT_HTTPGET, 1L);
    }
    call->no_body = head;
    if (head || strcmp(method, plain) == 0) method = NULL;
    if (!method && !call->method) return;
    curl_easy_setopt(call->easy, CURLOPT_CUSTOMREQUEST, method);
    free(call->method);
    call->method = ipw_strdup(method);
}

void ipw_http_call_launch(struct ipw_http_call *call)
{
    struct ipw_http *http = call->http;

    ipw_http_list_remove(call);
    call->state = CALL_RUNNING;
    call->at.launch_ns = call->at.dial_ns = ipw_now_ns();
    ipw_http_list_add(&http->running, call);
    http->n_running++;
    arm_deadline(call);
    ipw_http_lane_add(call);
}

static int check_method(const char *method, bool raw, struct ipw_err *err)
{
    if (!method || (raw && ipw_http_is_token(method))) return 0;
    for (const char *p = method; *p; p++) {
        if (*p < 'A' || *p > 'Z')
            return ipw_fail(err, IPW_EINVAL, "an HTTP method has capital letters only");
    }
    return *method ? 0 : ipw_fail(err, IPW_EINVAL, "the HTTP method is empty");
}

int ipw_http_start(struct ipw_http_call **out, struct ipw_http *http,
                   const struct ipw_http_request *request,
                   const struct ipw_http_callbacks *callbacks, struct ipw_err *err)
{
    struct http_address *address = NULL;
    struct header_set *headers = NULL;
    struct ipw_http_call *call;
    int rc;

    if (http->dying) return ipw_fail(err, IPW_EINVAL, "the connection pool is being closed");
    rc = check_method(request->method, request->raw, err);
    if (!rc) rc = ipw_http_address_get(&address, http, request->url, request->raw, err);
    if (rc) return rc;
    rc = ipw_http_headers_get(&headers, http, request, err);
    if (rc) {
        ipw_http_address_release(address);
        return rc;
    }
    call = get_call(http);
    if (!call) {
        ipw_http_address_release(address);
        ipw_http_headers_release(headers);
        return ipw_fail(err, IPW_ENET, "libcurl cannot create another handle");
    }
    call->at.start_ns = ipw_now_ns();
    call->at.launch_ns = call->at.sent_ns = call->at.headers_ns = 0;
    call->at.first_byte_ns = call->at.last_byte_ns = call->received = 0;
    call->header_bytes = 0;
    call->sends = call->status = call->open_errno = 0;
    call->refused = false;
    call->stamp_cpu = request->stamp_cpu;
    call->at.sent_cpu_ns = 0;
    call->head_complete = call->aborted = call->too_large = false;
    call->broke = call->begun = false;
    call->curl_error[0] = '\0';
    clear_head(call);
    call->on = *callbacks;
    call->headers = headers;
    if (request->lend_body) {
        call->body = *request->lend_body;
        call->lender = request->lend_body;
        *call->lender = IPW_BUF(call->body.max);
    } else {
        call->body = IPW_BUF(request->body_len);
        if (request->body) ipw_buf_add(&call->body, request->body, request->body_len);
    }
    call->body_max = request->body_max_bytes ? request->body_max_bytes : BODY_MAX;
    call->limit.connect_ns = request->connect_ns;
    call->limit.first_byte_ns = request->first_byte_ns;
    call->limit.idle_ns = request->idle_ns;
    call->limit.total_ns = request->total_ns;
    if (call->fresh || request->body_in_pieces)
        curl_easy_setopt(call->easy, CURLOPT_FRESH_CONNECT, (long)request->body_in_pieces);
    call->fresh = call->pieces = request->body_in_pieces;
    if (call->raw != request->raw)
        curl_easy_setopt(call->easy, CURLOPT_HTTP_CONTENT_DECODING, (long)!request->raw);
    call->raw = request->raw;
    call->paused = false;
    ipw_http_address_use(call, address);
    curl_easy_setopt(call->easy, CURLOPT_HTTPHEADER, headers->lines);
    set_method(call, request);

    call->state = CALL_QUEUED;
    ipw_http_list_add(&http->queue, call);
    http->in_flight++;
    ipw_loop_hold(http->loop);
    http->loop->leftovers++;
    if (!http->in_curl && ipw_http_has_room(http))
        ipw_http_call_launch(call);
    else
        arm_deadline(call);
    *out = call;
    return 0;
}

void ipw_http_cancel(struct ipw_http_call *call)
{
    struct ipw_http *http = call->http;

    if (call->state == CALL_RUNNING && http->in_curl) {
        ipw_http_list_remove(call);
        ipw_timer_disarm(&call->deadline);
        ipw_defer_disarm(&call->flow);
        call->state = CALL_DOOMED;
        call->lender = NULL;
        ipw_http_list_add(&http->doomed, call);
        http->in_flight--;
        ipw_loop_unhold(http->loop);
        http->loop->leftovers--;
        return;
    }
    if (call->state != CALL_QUEUED && call->state != CALL_RUNNING)
        IPW_BUG("an HTTP request is cancelled twice or after its end");
    if (!http->dying) give_back(call);
    ipw_http_call_discard(call);
    if (!http->entered) ipw_http_launch_waiting(http);
}
