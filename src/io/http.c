/* The pool: libcurl's multi handles, their sockets as libuv polls, and their timers.  Requests made
 * inside libcurl's callbacks are carried out after them, in order. */
#include "io/http.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/keyring.h"
#include "base/mem.h"
#include "base/open.h"
#include "io/http_priv.h"

int ipw_http_global_init(struct ipw_err *err)
{
    CURLcode code;

    /* libcurl would write the session keys of every TLS connection to that file. */
    unsetenv("SSLKEYLOGFILE");
    code = curl_global_init(CURL_GLOBAL_DEFAULT);
    if (code) return ipw_fail(err, IPW_ENET, "cannot set up libcurl: %s", curl_easy_strerror(code));
    return 0;
}

void ipw_http_global_release(void) { curl_global_cleanup(); }

/* --- lists ----------------------------------------------------------------------------------- */

void ipw_http_list_add(struct ipw_http_call *head, struct ipw_http_call *call)
{
    call->next = head;
    call->prev = head->prev;
    call->prev->next = head->prev = call;
}

void ipw_http_list_remove(struct ipw_http_call *call)
{
    call->prev->next = call->next;
    call->next->prev = call->prev;
    call->prev = call->next = NULL;
}

static bool is_empty(const struct ipw_http_call *head) { return head->next == head; }

/* --- sockets --------------------------------------------------------------------------------- */

static void end_calls(const struct http_lane *lane)
{
    struct CURLMsg *msg;
    int left;

    while ((msg = curl_multi_info_read(lane->multi, &left))) {
        CURLcode code = msg->data.result;
        char *call = NULL;

        if (msg->msg != CURLMSG_DONE) continue;
        curl_easy_getinfo(msg->easy_handle, CURLINFO_PRIVATE, &call);
        ipw_http_call_curl_done((struct ipw_http_call *)(void *)call, code);
    }
}

static void enter_curl(const struct http_lane *lane, curl_socket_t fd, int events)
{
    struct ipw_http *http = lane->http;
    int running;

    ipw_http_enter(http);
    http->in_curl = true;
    curl_multi_socket_action(lane->multi, fd, events, &running);
    http->in_curl = false;
    end_calls(lane);
    ipw_http_leave(http);
}

static void on_poll(uv_poll_t *uv, int status, int events)
{
    const struct sock *sock = (struct sock *)uv;
    int action = 0;

    if (status < 0) {
        /* The socket has an error, and libuv has stopped the poll.  There may still be bytes to
         * read before the error, so tell libcurl to do what it waited for, again and again. */
        events = sock->wanted;
        uv_poll_start(uv, events, on_poll);
    }
    if (events & UV_READABLE) action |= CURL_CSELECT_IN;
    if (events & UV_WRITABLE) action |= CURL_CSELECT_OUT;
    enter_curl(sock->lane, sock->fd, action);
}

static void free_handle(uv_handle_t *handle) { free(handle); }

/* A descriptor is watched while libcurl waits for it: one that it no longer needs may be closed
 * without notice. */
static int on_socket(CURL *easy, curl_socket_t fd, int what, void *ud, void *sock_ud)
{
    struct http_lane *lane = ud;
    struct sock *sock = sock_ud;

    (void)easy;
    if (what == CURL_POLL_REMOVE) {
        curl_multi_assign(lane->multi, fd, NULL);
        if (sock) uv_close((uv_handle_t *)&sock->uv, free_handle);
        return 0;
    }
    if (!sock) {
        sock = ipw_calloc(1, sizeof *sock);
        sock->lane = lane;
        sock->fd = fd;
        if (uv_poll_init_socket(ipw_loop_uv(lane->http->loop), &sock->uv, fd)) {
            free(sock);
            return -1;
        }
        uv_unref((uv_handle_t *)&sock->uv);
        curl_multi_assign(lane->multi, fd, sock);
    }
    sock->wanted =
        (what & CURL_POLL_IN ? UV_READABLE : 0) | (what & CURL_POLL_OUT ? UV_WRITABLE : 0);
    return uv_poll_start(&sock->uv, sock->wanted, on_poll) ? -1 : 0;
}

/* --- libcurl's timer ------------------------------------------------------------------------- */

static void on_kick(void *ud) { enter_curl(ud, CURL_SOCKET_TIMEOUT, 0); }

static void on_clock(void *ud)
{
    struct http_lane *lane = ud;

    if (!lane->clock_due_ns) return;
    if (lane->clock_due_ns > ipw_now_ns()) {
        ipw_timer_arm(&lane->clock, lane->clock_due_ns);
        return;
    }
    lane->clock_due_ns = 0;
    enter_curl(lane, CURL_SOCKET_TIMEOUT, 0);
}

static int on_timer(CURLM *multi, long ms, void *ud)
{
    struct http_lane *lane = ud;

    (void)multi;
    if (ms == 0) {
        ipw_defer_arm(&lane->kick);
        return 0;
    }
    ipw_defer_disarm(&lane->kick);
    lane->clock_due_ns = ms < 0 ? 0 : ipw_now_ns() + ms * IPW_NS_PER_MS;
    /* If an armed timer fires too early, it looks and arms itself again. */
    if (ms > 0 && (!lane->clock.pos || lane->clock.due_ns > lane->clock_due_ns))
        ipw_timer_arm(&lane->clock, lane->clock_due_ns);
    return 0;
}

/* --- lanes ----------------------------------------------------------------------------------- */

/* A further lane; NULL: libcurl cannot make a multi handle. */
static struct http_lane *open_lane(struct ipw_http *http)
{
    CURLM *multi = curl_multi_init();
    struct http_lane *lane;

    if (!multi) return NULL;
    lane = ipw_calloc(1, sizeof *lane);
    lane->http = http;
    lane->multi = multi;
    lane->clock = (struct ipw_timer){.loop = http->loop, .fn = on_clock, .ud = lane};
    lane->kick = (struct ipw_defer){.loop = http->loop, .fn = on_kick, .ud = lane};
    curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, on_socket);
    curl_multi_setopt(multi, CURLMOPT_SOCKETDATA, lane);
    curl_multi_setopt(multi, CURLMOPT_TIMERFUNCTION, on_timer);
    curl_multi_setopt(multi, CURLMOPT_TIMERDATA, lane);
    curl_multi_setopt(multi, CURLMOPT_PIPELINING, (long)CURLPIPE_NOTHING);
    /* Connections kept for reuse: more than requests, which can go to several hosts. */
    curl_multi_setopt(multi, CURLMOPT_MAXCONNECTS, 4L * HTTP_LANE_MOST);
    IPW_GROW(http->lanes, http->cap_lanes, http->n_lanes + 1);
    http->lanes[http->n_lanes++] = lane;
    return lane;
}

static void close_lane(struct http_lane *lane)
{
    curl_multi_cleanup(lane->multi);
    ipw_timer_disarm(&lane->clock);
    ipw_defer_disarm(&lane->kick);
    free(lane);
}

void ipw_http_lane_add(struct ipw_http_call *call)
{
    struct ipw_http *http = call->http;
    struct http_lane *lane = NULL;
    CURLMcode code;

    for (size_t i = 0; i < http->n_lanes && !lane; i++)
        if (http->lanes[i]->n_running < http->lane_most) lane = http->lanes[i];
    if (!lane) lane = open_lane(http);
    call->lane = lane ? lane : http->lanes[0];
    call->lane->n_running++;
    code = curl_multi_add_handle(call->lane->multi, call->easy);
    if (code) IPW_BUG("curl_multi_add_handle: %s", curl_multi_strerror(code));
}

void ipw_http_lane_remove(struct ipw_http_call *call)
{
    curl_multi_remove_handle(call->lane->multi, call->easy);
    call->lane->n_running--;
    call->lane = NULL;
}

void ipw_http_lane_continue(struct ipw_http_call *call)
{
    const struct http_lane *lane = call->lane;
    struct ipw_http *http = call->http;

    ipw_http_enter(http);
    http->in_curl = true;
    curl_easy_pause(call->easy, CURLPAUSE_CONT);
    http->in_curl = false;
    end_calls(lane);
    ipw_http_leave(http);
}

/* --- the pool -------------------------------------------------------------------------------- */

void ipw_http_enter(struct ipw_http *http) { http->entered++; }

bool ipw_http_has_room(const struct ipw_http *http)
{
    return !http->max_connections || http->n_running < http->max_connections;
}

void ipw_http_launch_waiting(struct ipw_http *http)
{
    while (!is_empty(&http->queue) && !http->dying && ipw_http_has_room(http))
        ipw_http_call_launch(http->queue.next);
}

/* The number of descriptors for connections; leaves some for files, pipes and the resolver. */
static size_t most_by_descriptors(void)
{
    struct rlimit files;
    size_t spare;

    if (getrlimit(RLIMIT_NOFILE, &files) || files.rlim_cur == RLIM_INFINITY) return 0;
    spare = files.rlim_cur / 2 < 128 ? (size_t)files.rlim_cur / 2 : 128;
    return (size_t)files.rlim_cur > spare + 1 ? (size_t)files.rlim_cur - spare : 1;
}

void ipw_http_leave(struct ipw_http *http)
{
    while (!is_empty(&http->doomed)) ipw_http_call_discard(http->doomed.next);
    ipw_http_launch_waiting(http);
    if (--http->entered == 0 && http->dying) ipw_http_free(http);
}

static bool environment_names_proxy(void)
{
    static const char *const names[] = {"http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy",
                                        "ALL_PROXY"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *value = ipw_keyring_env(names[i]);
        if (value && *value) return true;
    }
    return false;
}

/* CURLOPT_NOPROXY hides the environment's no_proxy from libcurl, so append it to ours. */
static char *no_proxy_list(void)
{
    const char *own = getenv("no_proxy");

    if (!own || !*own) own = getenv("NO_PROXY");
    if (own && strcmp(own, "*") == 0) return ipw_strdup(own);
    return ipw_asprintf("localhost,127.0.0.0/8,::1%s%s", own && *own ? "," : "", own ? own : "");
}

int ipw_http_new(struct ipw_http **out, struct ipw_loop *loop,
                 const struct ipw_http_options *options, struct ipw_err *err)
{
    const char *agent = options ? options->user_agent : NULL;
    const char *cacert = options ? options->cacert : NULL;
    struct ipw_http *http;

    if (agent && strpbrk(agent, "\r\n"))
        return ipw_fail(err, IPW_EINVAL, "the user agent's name has a line break in it");
    if (cacert) { /* libcurl would only say that it cannot connect, or wait for a pipe */
        int fd = ipw_open_read(cacert, err);

        if (fd < 0 && err) err->code = IPW_EINVAL; /* any fault of this file is wrong usage */
        if (fd < 0) return IPW_EINVAL;
        close(fd);
    }
    http = ipw_calloc(1, sizeof *http);
    http->loop = loop;
    http->lane_most = HTTP_LANE_MOST;
    if (!open_lane(http)) {
        free(http);
        return ipw_fail(err, IPW_ENET, "cannot create a libcurl multi handle");
    }
    http->user_agent = agent ? ipw_asprintf("User-Agent: %s", agent)
                             : ipw_strdup("User-Agent: ipw-agent/" IPW_VERSION);
    http->no_proxy = no_proxy_list();
    http->cacert = cacert ? ipw_strdup(cacert) : NULL;
    http->proxies = environment_names_proxy();
    http->max_connections = most_by_descriptors();
    if (options && options->max_connections &&
        (!http->max_connections || options->max_connections < http->max_connections))
        http->max_connections = options->max_connections;
    http->queue.next = http->queue.prev = &http->queue;
    http->running.next = http->running.prev = &http->running;
    http->doomed.next = http->doomed.prev = &http->doomed;
    loop->leftovers++;
    *out = http;
    return 0;
}

void ipw_http_free(struct ipw_http *http)
{
    struct ipw_http_call *call;

    if (!http) return;
    if (!http->dying) {
        http->loop->leftovers--;
        http->dying = true;
        while (!is_empty(&http->queue)) ipw_http_cancel(http->queue.next);
        while (!is_empty(&http->running)) ipw_http_cancel(http->running.next);
    }
    if (http->entered) return; /* the outermost caller frees the pool when it leaves */
    while ((call = http->unused)) {
        http->unused = call->next;
        ipw_http_call_destroy(call);
    }
    for (size_t i = 0; i < http->n_lanes; i++) close_lane(http->lanes[i]);
    free(http->lanes);
    free(http->user_agent);
    free(http->no_proxy);
    free(http->cacert);
    free(http);
}
