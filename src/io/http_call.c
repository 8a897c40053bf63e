/* One request: its options, libcurl's callbacks, its deadlines and its end. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/text.h"
#include "io/http_guard.h"
#include "io/http_priv.h"
#include "io/url.h"

static const size_t BODY_MAX = 256 * IPW_MIB;

const char *ipw_http_field(const struct ipw_http_head *head, const char *name)
{
    for (size_t i = head ? head->n_fields : 0; i > 0; i--)
        if (strcasecmp(head->fields[i - 1].name, name) == 0) return head->fields[i - 1].value;
    return "";
}

/* --- what libcurl calls ---------------------------------------------------------------------- */

static curl_socket_t on_open(void *ud, curlsocktype purpose, struct curl_sockaddr *addr)
{
    struct ipw_http_call *call = ud;
    int fd;

    (void)purpose;
    if (!ipw_address_is_public((const struct sockaddr *)&addr->addr)) {
        call->met_private = true;
        if (call->guarded) return CURL_SOCKET_BAD;
    }
    fd = socket(addr->family, addr->socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, addr->protocol);
    if (fd < 0) call->no_room = errno == EMFILE || errno == ENFILE || errno == ENOBUFS;
    return fd < 0 ? CURL_SOCKET_BAD : fd;
}

/* Connected; the next step is to write the request.  A second call means that the request is sent
 * again, by libcurl or by send_again(), because a reused connection died before a line of the
 * answer.  That happens on a new connection, so there is no third time. */
static int on_send(void *ud, char *peer_ip, char *own_ip, int peer_port, int own_port)
{
    int64_t now = ipw_now_ns();
    struct ipw_http_call *call = ud;

    (void)peer_ip, (void)own_ip, (void)peer_port, (void)own_port;
    call->at.sent_ns = now;
    if (call->stamp_cpu) call->at.sent_cpu_ns = ipw_cpu_thread_ns();
    if (call->sends++ == 0) {
        long opened = 1;
        curl_easy_getinfo(call->easy, CURLINFO_NUM_CONNECTS, &opened);
        if (opened == 0) {
            call->fresh = true;
            curl_easy_setopt(call->easy, CURLOPT_FRESH_CONNECT, 1L);
        }
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
    /* Decode everything that libcurl can decode.  set_headers() removes the header that would ask
     * for compression, so servers that compress only on request do not. */
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
    curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, on_open);
    curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, call);
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
    call->parts = curl_url();
    if (!call->easy || !call->parts) IPW_BUG("out of memory");
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
    curl_url_cleanup(call->parts);
    free(call->url);
    free(call->method);
    free(call);
}

/* Puts the call back on the free list; libcurl no longer has it. */
static void put_call(struct ipw_http_call *call)
{
    struct ipw_http *http = call->http;

    curl_slist_free_all(call->headers);
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

static enum ipw_http_end end_of(CURLcode code, bool any_answer)
{
    switch (code) {
    case CURLE_OK: return IPW_HTTP_OK;
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY: return IPW_HTTP_DNS;
    case CURLE_COULDNT_CONNECT:
    case CURLE_INTERFACE_FAILED: return IPW_HTTP_REFUSED;
    case CURLE_OPERATION_TIMEDOUT: return IPW_HTTP_TIMEOUT;
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CIPHER:
    case CURLE_SSL_ENGINE_NOTFOUND:
    case CURLE_SSL_ENGINE_SETFAILED:
    case CURLE_SSL_ENGINE_INITFAILED:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_CRL_BADFILE:
    case CURLE_SSL_ISSUER_ERROR:
    case CURLE_SSL_INVALIDCERTSTATUS:
    case CURLE_SSL_PINNEDPUBKEYNOTMATCH:
    case CURLE_SSL_CLIENTCERT:
    case CURLE_USE_SSL_FAILED: return IPW_HTTP_TLS;
    case CURLE_HTTP2:
    case CURLE_HTTP2_STREAM:
    case CURLE_GOT_NOTHING:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR: return any_answer ? IPW_HTTP_CUT : IPW_HTTP_RESET;
    case CURLE_PARTIAL_FILE: return IPW_HTTP_CUT;
    default: return IPW_HTTP_PROTOCOL;
    }
}

static bool lacks_room(const struct ipw_http_call *call)
{
    long problem = 0;

    curl_easy_getinfo(call->easy, CURLINFO_OS_ERRNO, &problem);
    return call->no_room || problem == EADDRNOTAVAIL;
}

static const char *end_text(const struct ipw_http_call *call, enum ipw_http_end end,
                            enum ipw_http_deadline deadline)
{
    switch (end) {
    case IPW_HTTP_TIMEOUT:
        switch (deadline) {
        case IPW_HTTP_CONNECT_DEADLINE: return "no connection within the connect deadline";
        case IPW_HTTP_FIRST_BYTE_DEADLINE: return "no answer within the first-byte deadline";
        case IPW_HTTP_IDLE_DEADLINE: return "the answer stalled for longer than the idle deadline";
        default: return "not finished within the total deadline";
        }
    case IPW_HTTP_TOO_LARGE:
        return call->header_bytes > HTTP_HEADERS_MAX ? "the answer's headers are over 64 kB"
                                                     : "the answer's body is over its ceiling";
    case IPW_HTTP_ABORTED: return "stopped by its reader";
    case IPW_HTTP_RESET: return "the connection broke before any answer";
    case IPW_HTTP_CUT: return "the answer broke off";
    case IPW_HTTP_REFUSED:
        return call->guarded && call->met_private ? "its address is not a public one"
                                                  : "no connection";
    case IPW_HTTP_NO_ROOM: return "this machine has no descriptor or port left for a connection";
    case IPW_HTTP_DNS: return "the host name is not known";
    case IPW_HTTP_TLS: return "no secure connection";
    case IPW_HTTP_PROTOCOL:
        return ipw_url_host_is_ascii(call->url)
                   ? "not an HTTP answer"
                   : "its host has letters outside ASCII: write it as DNS does (xn--...)";
    case IPW_HTTP_OK: break;
    }
    return "";
}

static void describe_end(struct ipw_buf *out, const struct ipw_http_call *call,
                         enum ipw_http_end end, enum ipw_http_deadline deadline)
{
    bool curl_knows = call->curl_error[0] && !(call->guarded && call->met_private) &&
                      end != IPW_HTTP_TIMEOUT && end != IPW_HTTP_ABORTED &&
                      end != IPW_HTTP_TOO_LARGE;

    ipw_url_plain(out, call->url);
    ipw_buf_addf(out, ": %s", end_text(call, end, deadline));
    if (curl_knows) ipw_buf_addf(out, " (%s)", call->curl_error);
}

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
        .met_private = call->met_private,
        .resent = call->sends > 1,
        .location = "",
        .error = "",
    };

    if (call->at.launch_ns) {
        curl_off_t sent = 0;
        long opened = 0;
        const char *next = NULL;

        curl_easy_getinfo(call->easy, CURLINFO_REDIRECT_URL, &next);
        if (next) result.location = next;
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
        describe_end(&error, call, end, deadline);
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
        call->header_bytes > 0 || call->http->dying)
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
    enum ipw_http_end end = end_of(code, call->header_bytes > 0);

    if (call->state != CALL_RUNNING) return; /* doomed: discard it without a callback */
    if (call->too_large)
        end = IPW_HTTP_TOO_LARGE;
    else if (call->aborted)
        end = IPW_HTTP_ABORTED;
    else if (code == CURLE_OK && !call->head_complete)
        end = call->header_bytes ? IPW_HTTP_CUT : IPW_HTTP_RESET;
    else if (end == IPW_HTTP_REFUSED && lacks_room(call))
        end = IPW_HTTP_NO_ROOM;
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

/* --- the address and the headers ------------------------------------------------------------- */

static int bad_url(struct ipw_err *err, const char *url, const char *why)
{
    struct ipw_buf plain = IPW_BUF(2 * IPW_KIB);

    ipw_url_plain(&plain, url);
    ipw_fail(err, IPW_EINVAL, "the address '%s' %s", ipw_buf_str(&plain), why);
    ipw_buf_release(&plain);
    return IPW_EINVAL;
}

static int check_address(CURLU *parts, const char *url, bool raw, struct ipw_err *err)
{
    char *scheme = NULL, *host = NULL;
    CURLUcode code;
    int rc = 0;

    if (!strstr(url, "://")) return bad_url(err, url, "does not start with http:// or https://");
    code = curl_url_set(parts, CURLUPART_URL, url,
                        CURLU_NON_SUPPORT_SCHEME | (raw ? CURLU_PATH_AS_IS : 0));
    if (code) {
        rc = bad_url(err, url, "is not a valid URL");
        if (err) {
            size_t n = strlen(err->text);
            snprintf(err->text + n, sizeof err->text - n, " (%s)", curl_url_strerror(code));
        }
    } else if (curl_url_get(parts, CURLUPART_SCHEME, &scheme, 0) ||
               (strcasecmp(scheme, "http") != 0 && strcasecmp(scheme, "https") != 0)) {
        rc = bad_url(err, url, "does not start with http:// or https://");
    } else if (curl_url_get(parts, CURLUPART_HOST, &host, 0) || !*host) {
        rc = bad_url(err, url, "names no host");
    }
    curl_free(scheme);
    curl_free(host);
    return rc;
}

/* The address of the request is set in the call's handle; mostly it is there from the last one. */
static int set_address(struct ipw_http_call *call, const struct ipw_http_request *request,
                       struct ipw_err *err)
{
    const char *proxy = NULL;
    int rc;

    call->guarded = request->guarded;
    if (call->url && call->set_raw == request->raw && call->set_guarded == request->guarded &&
        strcmp(call->url, request->url) == 0)
        return 0;
    free(call->url);
    call->url = NULL;
    rc = check_address(call->parts, request->url, request->raw, err);
    if (rc) return rc;
    call->url = ipw_strdup(request->url);
    call->set_raw = request->raw;
    call->set_guarded = request->guarded;
    curl_easy_setopt(call->easy, CURLOPT_URL, call->url); /* what libcurl says it asks for */
    curl_easy_setopt(call->easy, CURLOPT_CURLU, call->parts);
    /* The proxy's password is no longer in the environment, where libcurl would look.  An empty
     * proxy saves libcurl that look at every request. */
    if (call->http->proxies && !call->guarded) proxy = ipw_url_proxy_setting(call->url);
    curl_easy_setopt(call->easy, CURLOPT_PROXY, proxy ? proxy : "");
    return 0;
}

static bool is_token(const char *s)
{
    if (!*s) return false;
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;
        if (c <= ' ' || c >= 0x7F || strchr("()<>@,;:\\\"/[]?={}", c)) return false;
    }
    return true;
}

static int check_headers(const struct ipw_http_request *request, struct ipw_err *err)
{
    for (size_t i = 0; i < request->n_headers; i++) {
        const struct ipw_http_header *h = &request->headers[i];
        struct ipw_buf name = IPW_BUF(512);
        const char *why = NULL;

        /* Do not show the value: it may be a key. */
        if (!h->name || !is_token(h->name))
            why = "has a name that is not allowed";
        else if (!h->value)
            why = "has no value";
        else if (strpbrk(h->value, "\r\n"))
            why = "has a line break in its value";
        if (!why) continue;
        if (h->name) ipw_text_printable(&name, h->name, strlen(h->name), 60);
        ipw_fail(err, IPW_EINVAL, "the HTTP header '%s' %s", ipw_buf_str(&name), why);
        ipw_buf_release(&name);
        return IPW_EINVAL;
    }
    return 0;
}

/* Does the header belong to one connection, so that a proxy must not hand it on? */
static bool is_of_connection(const char *name)
{
    static const char *const names[] = {"Connection", "Content-Length",    "Host",
                                        "Keep-Alive", "Proxy-Connection",  "TE",
                                        "Trailer",    "Transfer-Encoding", "Upgrade"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcasecmp(name, names[i]) == 0) return true;
    return false;
}

static void add_line(struct ipw_http_call *call, const char *line)
{
    struct curl_slist *lines = curl_slist_append(call->headers, line);

    if (!lines) IPW_BUG("out of memory");
    call->headers = lines;
}

/* libcurl's form: "Name: value", or "Name;" for an empty value.  A line without a value removes a
 * header that libcurl would add: "Expect: 100-continue", or a form's content type. */
static void set_headers(struct ipw_http_call *call, const struct ipw_http_request *request)
{
    static const char *const own[] = {"Content-Type", "User-Agent", "Accept-Encoding", "Accept"};
    size_t body_len = request->lend_body ? request->lend_body->len : request->body_len;
    bool has_body = request->body || request->lend_body || request->body_in_pieces;
    bool has[4] = {false};

    call->headers = NULL;
    for (size_t i = 0; i < request->n_headers; i++) {
        const struct ipw_http_header *h = &request->headers[i];
        struct ipw_buf line = IPW_BUF(IPW_MIB);

        if (request->raw && is_of_connection(h->name)) continue;
        ipw_buf_addf(&line, *h->value ? "%s: %s" : "%s;", h->name, h->value);
        add_line(call, ipw_buf_str(&line));
        ipw_buf_release(&line);
        for (size_t k = 0; k < 4; k++) has[k] |= strcasecmp(h->name, own[k]) == 0;
    }
    if (has_body && !has[0]) add_line(call, "Content-Type:");
    if (!has[1] && !request->raw) add_line(call, call->http->user_agent);
    if (!has[2]) add_line(call, "Accept-Encoding:");
    if (!has[3] && request->raw) add_line(call, "Accept:");
    if (request->body_in_pieces || body_len >= HTTP_LARGE_BODY) add_line(call, "Expect:");
    curl_easy_setopt(call->easy, CURLOPT_HTTPHEADER, call->headers);
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
    if (!method || (raw && is_token(method))) return 0;
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
    struct ipw_http_call *call;
    int rc;

    if (http->dying) return ipw_fail(err, IPW_EINVAL, "the connection pool is being closed");
    rc = check_method(request->method, request->raw, err);
    if (!rc) rc = check_headers(request, err);
    if (rc) return rc;
    call = get_call(http);
    rc = set_address(call, request, err);
    if (rc) {
        put_call(call);
        return rc;
    }
    call->at.start_ns = ipw_now_ns();
    call->at.launch_ns = call->at.sent_ns = call->at.headers_ns = 0;
    call->at.first_byte_ns = call->at.last_byte_ns = call->received = 0;
    call->header_bytes = 0;
    call->sends = call->status = 0;
    call->no_room = call->met_private = false;
    call->stamp_cpu = request->stamp_cpu;
    call->at.sent_cpu_ns = 0;
    call->head_complete = call->aborted = call->too_large = false;
    call->curl_error[0] = '\0';
    clear_head(call);
    call->on = *callbacks;
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
    set_headers(call, request);
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
