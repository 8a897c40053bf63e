/* The limit of requests in flight.  Further attempts wait in a line, first come, first served. */
#include "base/clock.h"
#include "llm/client_priv.h"

static bool has_room(const struct ipw_llm *llm)
{
    return !llm->outage.closed &&
           (llm->most_in_flight == 0 || llm->n_in_flight < llm->most_in_flight);
}

static void let_in(void *ud)
{
    struct ipw_llm *llm = ud;

    llm->let_in = NULL;
    while (llm->first_held && has_room(llm)) {
        struct ipw_llm_call *call = llm->first_held;

        llm->first_held = call->next_held;
        if (!llm->first_held) llm->last_held = NULL;
        call->next_held = NULL;
        call->held = false;
        call->begin(call);
    }
}

static void let_in_soon(struct ipw_llm *llm)
{
    if (llm->first_held && !llm->let_in && has_room(llm))
        llm->let_in = ipw_defer_start(llm->loop, let_in, llm);
}

void ipw_llm_in_flight_resume(struct ipw_llm *llm) { let_in_soon(llm); }

bool ipw_llm_in_flight_enter(struct ipw_llm_call *call, int64_t now_ns)
{
    struct ipw_llm *llm = call->llm;

    if (has_room(llm) && (!llm->first_held || call->held_since_ns)) {
        llm->n_in_flight++;
        return true;
    }
    call->held = true;
    if (!call->held_since_ns) {
        call->held_since_ns = now_ns;
        if (call->on.on_held) call->on.on_held(call->on.ud, now_ns);
    }
    if (llm->last_held)
        llm->last_held->next_held = call;
    else
        llm->first_held = call;
    llm->last_held = call;
    let_in_soon(llm);
    return false;
}

void ipw_llm_in_flight_leave(struct ipw_llm *llm)
{
    llm->n_in_flight--;
    let_in_soon(llm);
}

void ipw_llm_in_flight_forget(struct ipw_llm_call *call)
{
    struct ipw_llm *llm = call->llm;
    struct ipw_llm_call **at = &llm->first_held, *last = NULL;

    if (!call->held) return;
    while (*at != call) {
        last = *at;
        at = &last->next_held;
    }
    *at = call->next_held;
    if (llm->last_held == call) llm->last_held = last;
    call->next_held = NULL;
    call->held = false;
}

void ipw_llm_set_most(struct ipw_llm *llm, size_t n)
{
    llm->most_in_flight = n;
    let_in_soon(llm);
}

size_t ipw_llm_calls(const struct ipw_llm *llm) { return llm->n_calls; }
size_t ipw_llm_in_flight(const struct ipw_llm *llm) { return llm->n_in_flight; }
int64_t ipw_llm_held_ns(const struct ipw_llm_call *call) { return call->now.held_ns; }
