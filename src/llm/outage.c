/* Outages: if no server can be reached, hold all attempts until one answers or time runs out. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "llm/client_call_priv.h"

enum { ANSWER_MAX_BYTES = 64 * 1024, MOST_REVIVALS = 2 };
static const int64_t FIRST_PAUSE_NS = IPW_NS_PER_S / 4, MOST_PAUSE_NS = 5 * IPW_NS_PER_S;
static const int64_t ASK_NS = 5 * IPW_NS_PER_S;

/* ---- asking one server ---- */

struct ipw_llm_ask {
    struct ipw_llm *llm;
    size_t server;
    struct ipw_http_call *http;
    struct ipw_buf body;
    void (*fn)(void *ud, size_t server, bool there);
    void *ud;
};

static void ask_free(struct ipw_llm_ask *ask)
{
    ipw_buf_release(&ask->body);
    free(ask);
}

void ipw_llm_ask_cancel(struct ipw_llm_ask *ask)
{
    if (!ask) return;
    ipw_http_cancel(ask->http);
    ask_free(ask);
}

static int on_answer_data(void *ud, int64_t t_ns, const char *bytes, size_t n)
{
    struct ipw_llm_ask *ask = ud;
    size_t room = ANSWER_MAX_BYTES - ask->body.len;

    (void)t_ns;
    ipw_buf_add(&ask->body, bytes, n < room ? n : room);
    return 0;
}

/* Any answer shows that the server is there, unless a gateway says that its upstream is not. */
static bool is_there(const struct ipw_llm_ask *ask, const struct ipw_http_result *r)
{
    struct ipw_llm_evidence e = {
        .status = r->status, .body = ipw_buf_str(&ask->body), .body_n = ask->body.len};

    if (r->end != IPW_HTTP_OK) return false;
    if (r->status == 503) return ipw_llm_is_loading(&e); /* calls wait for a loading server */
    return r->status != 502 && r->status != 504;
}

static void on_answer(void *ud, const struct ipw_http_result *r)
{
    struct ipw_llm_ask *ask = ud, copy = *ask;
    bool there = is_there(ask, r);

    ask_free(ask);
    copy.fn(copy.ud, copy.server, there);
}

static struct ipw_llm_ask *ask(struct ipw_llm *llm, size_t server,
                               void (*fn)(void *ud, size_t server, bool there), void *ud)
{
    struct ipw_llm_ask *a = ipw_calloc(1, sizeof *a);
    struct ipw_http_request request = {.method = "GET",
                                       .url = llm->servers[server].models_url,
                                       .headers = llm->headers[0],
                                       .n_headers = llm->n_headers[0],
                                       .connect_ns = llm->connect_ns,
                                       .total_ns = ASK_NS};
    struct ipw_http_callbacks on = {.on_data = on_answer_data, .on_done = on_answer, .ud = a};

    *a = (struct ipw_llm_ask){
        .llm = llm, .server = server, .body = IPW_BUF(ANSWER_MAX_BYTES), .fn = fn, .ud = ud};
    if (ipw_http_start(&a->http, llm->http, &request, &on, NULL) == 0) return a;
    ask_free(a);
    return NULL;
}

/* ---- closed and open ---- */

static int64_t away_ns(const struct ipw_llm_outage *o)
{
    return o->away_ns + (o->closed ? ipw_now_ns() - o->closed_ns : 0);
}

static void tell(struct ipw_llm *llm, enum ipw_llm_away what)
{
    struct ipw_llm_outage *o = &llm->outage;

    if (o->fn) o->fn(o->ud, what, ipw_ns_to_s(away_ns(o)), o->why);
}

static void stop_asking(struct ipw_llm *llm)
{
    ipw_timer_cancel(llm->outage.timer);
    llm->outage.timer = NULL;
    for (size_t i = 0; i < llm->n_servers; i++) {
        ipw_llm_ask_cancel(llm->servers[i].ask);
        llm->servers[i].ask = NULL;
    }
}

static void let_attempts_go(struct ipw_llm *llm)
{
    struct ipw_llm_outage *o = &llm->outage;

    stop_asking(llm);
    o->away_ns = away_ns(o);
    o->closed = false;
    tell(llm, IPW_LLM_BACK);
    ipw_llm_in_flight_resume(llm);
}

static void ask_all(void *ud);

static void ask_later(struct ipw_llm *llm)
{
    struct ipw_llm_outage *o = &llm->outage;
    int64_t left_ns = o->patience_ns - away_ns(o), wait_ns = o->pause_ns;

    if (left_ns <= 0) {
        o->lost = true;
        tell(llm, IPW_LLM_LOST);
        return;
    }
    if (wait_ns > left_ns) wait_ns = left_ns;
    o->pause_ns = o->pause_ns < MOST_PAUSE_NS / 2 ? 2 * o->pause_ns : MOST_PAUSE_NS;
    o->timer = ipw_timer_start(llm->loop, wait_ns, ask_all, llm);
}

static void on_there(void *ud, size_t server, bool there)
{
    struct ipw_llm *llm = ud;

    llm->servers[server].ask = NULL;
    if (there) {
        llm->servers[server].gone = false;
        ipw_llm_server_served(llm, server);
        let_attempts_go(llm);
        return;
    }
    for (size_t i = 0; i < llm->n_servers; i++)
        if (llm->servers[i].ask) return;
    ask_later(llm);
}

static void ask_all(void *ud)
{
    struct ipw_llm *llm = ud;
    size_t n = 0;

    llm->outage.timer = NULL;
    for (size_t i = 0; i < llm->n_servers; i++) {
        llm->servers[i].ask = ask(llm, i, on_there, llm);
        n += llm->servers[i].ask != NULL;
    }
    if (n == 0) ask_later(llm);
}

/* Begins an outage if every server is gone or left out.  Its time counts from the first failure. */
static void hold_attempts(struct ipw_llm *llm)
{
    struct ipw_llm_outage *o = &llm->outage;
    int64_t now_ns = ipw_now_ns();

    if (o->closed) return;
    for (size_t i = 0; i < llm->n_servers; i++)
        if (!llm->servers[i].gone && llm->servers[i].down_until_ns <= now_ns) return;
    o->closed = true;
    o->closed_ns = now_ns;
    if (o->away_ns == 0) o->away_ns = now_ns - o->first_ns;
    tell(llm, IPW_LLM_AWAY);
    ask_later(llm);
}

/* ---- signs from attempts ---- */

bool ipw_llm_outage_open(const struct ipw_llm *llm) { return !llm->outage.closed; }

void ipw_llm_outage_init(struct ipw_llm *llm, const struct ipw_llm_options *options)
{
    static const int64_t patience_ns = 40 * IPW_NS_PER_S;

    llm->outage = (struct ipw_llm_outage){
        .after = options->server_failures,
        .patience_ns = options->server_wait_ns > 0 ? options->server_wait_ns : patience_ns,
        .pause_ns = FIRST_PAUSE_NS};
}

void ipw_llm_outage_release(struct ipw_llm *llm) { stop_asking(llm); }

void ipw_llm_on_away(struct ipw_llm *llm, ipw_llm_away_fn fn, void *ud)
{
    llm->outage.fn = fn;
    llm->outage.ud = ud;
}

double ipw_llm_away_s(const struct ipw_llm *llm)
{
    return llm->outage.closed ? ipw_ns_to_s(away_ns(&llm->outage)) : 0;
}

/* Whether the attempt shows that its server is gone. */
static bool is_gone(const struct ipw_llm_call *call, const struct ipw_llm_evidence *e)
{
    switch (e->end) {
    case IPW_HTTP_REFUSED:
    case IPW_HTTP_DNS: return true;
    case IPW_HTTP_TIMEOUT: return e->deadline == IPW_HTTP_CONNECT_DEADLINE;
    case IPW_HTTP_RESET: return !e->status || call->server_dead;
    case IPW_HTTP_CUT: return call->server_dead;
    default: return false;
    }
}

void ipw_llm_outage_see(struct ipw_llm_call *call, const struct ipw_llm_evidence *e,
                        const struct ipw_llm_verdict *v, int64_t t_ns)
{
    struct ipw_llm *llm = call->llm;
    struct ipw_llm_outage *o = &llm->outage;
    bool failed = v->outcome != IPW_LM_OK, gateway = e->status >= 502 && e->status <= 504;

    if (!o->after || o->lost) return;
    if (failed && is_gone(call, e)) {
        llm->servers[call->now.server].gone = true;
        if (o->failures++ == 0) o->first_ns = t_ns;
        snprintf(o->why, sizeof o->why, "%s", v->err.text);
        if (o->failures >= o->after) hold_attempts(llm);
    } else if (!failed || (e->status && e->end == IPW_HTTP_OK && !gateway)) {
        llm->servers[call->now.server].gone = false;
        o->failures = 0;
        o->away_ns = 0;
        o->pause_ns = FIRST_PAUSE_NS;
        if (o->closed) let_attempts_go(llm);
    }
}

/* Instead of failing, a call waits for a server if its server is gone.  The number of such waits is
 * limited, because the request itself can crash the server each time. */
bool ipw_llm_outage_keeps(struct ipw_llm_call *call, const struct ipw_llm_evidence *e)
{
    const struct ipw_llm_outage *o = &call->llm->outage;

    if (!o->after || o->lost || !is_gone(call, e)) return false;
    if (e->end == IPW_HTTP_RESET || e->end == IPW_HTTP_CUT) {
        if (!call->server_dead || call->revivals >= MOST_REVIVALS) return false;
        call->revivals++;
    }
    hold_attempts(call->llm);
    return true;
}

/* ---- after a broken reply: is its server still there? ---- */

static void on_known(void *ud, size_t server, bool there)
{
    struct ipw_llm_call *call = ud;
    struct ipw_http_result ended = *call->ended;

    (void)server;
    call->ask = NULL;
    call->server_dead = !there;
    ended.close_ns = ipw_now_ns();
    call->attempt_over(call, &ended);
}

bool ipw_llm_outage_asks(struct ipw_llm_call *call, const struct ipw_http_result *result)
{
    struct ipw_llm *llm = call->llm;
    const struct ipw_llm_attempt *a = &call->now;
    bool token = a->times.first_token_ns != 0;

    if (call->ended || !llm->outage.after || !result || a->finished || a->fail_code) return false;
    if (result->end != IPW_HTTP_RESET && result->end != IPW_HTTP_CUT) return false;
    if (a->status && (a->status < 200 || a->status > 299)) return false;
    if (call->revivals >= MOST_REVIVALS) return false;
    if (call->repeats < llm->max_retries && (!token || llm->retry_cut)) return false;
    call->server_dead = llm->outage.closed;
    if (call->server_dead) return false;
    call->ask = ask(llm, a->server, on_known, call);
    if (!call->ask) return false;
    call->ended = ipw_calloc(1, sizeof *call->ended);
    *call->ended = *result;
    call->ended->head = NULL;
    call->ended->error = "";
    return true;
}
