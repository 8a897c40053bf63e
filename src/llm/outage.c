/* Outages: if no server can be reached, hold all attempts until one answers or time runs out. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "llm/client_priv.h"

enum { MOST_REVIVALS = 2 };
static const int64_t FIRST_PAUSE_NS = IPW_NS_PER_S / 4, MOST_PAUSE_NS = 5 * IPW_NS_PER_S;
static const int64_t ASK_NS = 5 * IPW_NS_PER_S;

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
        ipw_llm_probe_cancel(llm->servers[i].ask);
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
        llm->servers[i].ask = ipw_llm_probe_there(llm, i, ASK_NS, on_there, llm);
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
    call->ask = ipw_llm_probe_there(llm, a->server, ASK_NS, on_known, call);
    if (!call->ask) return false;
    call->ended = ipw_calloc(1, sizeof *call->ended);
    *call->ended = *result;
    call->ended->head = NULL;
    call->ended->error = "";
    return true;
}
