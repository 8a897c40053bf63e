#include "run/server_watch.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/log.h"
#include "json/write.h"

enum { MOST_ADAPTIVE = 256 };

static size_t most_queries(const struct ipw_server_watch *w)
{
    return !w->adaptive || w->concurrency > 1 ? (size_t)w->concurrency : MOST_ADAPTIVE;
}

static void set_most(const struct ipw_server_watch *w)
{
    ipw_llm_set_most(w->llm, (size_t)ipw_adaptive_limit(&w->controller));
}

static void note(const struct ipw_server_watch *w, int32_t query, struct ipw_buf *data)
{
    struct ipw_event event = {.kind = IPW_EV_NOTE, .query = query, .t_ns = ipw_now_ns()};

    event.payload = data->failed ? NULL : data->data;
    event.payload_len = data->len;
    ipw_rundir_event(w->dir, &event);
}

/* ---- a server that is away, or is loading its model ---- */

static void note_wait(const struct ipw_server_watch *w, const char *name, double seconds,
                      const char *why)
{
    struct ipw_buf data = IPW_BUF(4 * IPW_KIB);
    struct ipw_jw jw;

    ipw_jw_init(&jw, &data);
    ipw_jw_obj(&jw);
    ipw_jw_kstr(&jw, "name", name);
    ipw_jw_kstr(&jw, "reason", why);
    ipw_jw_knum(&jw, "seconds", seconds);
    ipw_jw_obj_end(&jw);
    note(w, -1, &data);
    ipw_buf_release(&data);
}

static void servers_away(void *ud, enum ipw_llm_away what, double away_s, const char *why)
{
    static const char *const names[] = {[IPW_LLM_AWAY] = "server_away",
                                        [IPW_LLM_BACK] = "server_back",
                                        [IPW_LLM_LOST] = "server_lost"};
    struct ipw_server_watch *w = ud;
    char text[700];

    note_wait(w, names[what], away_s, why);
    switch (what) {
    case IPW_LLM_AWAY:
        ipw_log(IPW_LOG_WARN,
                "no server answers: the run waits for %.3g s at most (--server-wait): %s",
                ipw_ns_to_s(w->server_wait_ns), why);
        break;
    case IPW_LLM_BACK:
        ipw_log(IPW_LOG_WARN, "the server answers again after %.1f s; the run continues", away_s);
        break;
    case IPW_LLM_LOST:
        snprintf(text, sizeof text, "no server came back within %.3g s: the run stops: %s",
                 ipw_ns_to_s(w->server_wait_ns), why);
        w->lost(w->ud, text);
        break;
    }
    w->changed(w->ud);
}

void ipw_server_watch_standstill(void *ud, char *out, size_t size)
{
    const struct ipw_server_watch *w = ud;
    double away_s = ipw_llm_away_s(w->llm);
    int64_t loading_ns = ipw_llm_loading_since_ns(w->llm);

    out[0] = '\0';
    if (away_s > 0)
        snprintf(out, size, "no server answers (%.0f s)", away_s);
    else if (loading_ns)
        snprintf(out, size, "the server is loading its model (%.0f s)",
                 ipw_ns_to_s(ipw_now_ns() - loading_ns));
}

/* ---- how many at once ---- */

void ipw_server_watch_start(struct ipw_server_watch *w)
{
    ipw_adaptive_init(&w->controller, 1, (int)most_queries(w));
    if (w->adaptive) set_most(w);
    ipw_llm_on_away(w->llm, servers_away, w);
}

/* With --adaptive a query begins when its first request can be sent, so that the server is not idle
 * while the tools of other queries run. */
bool ipw_server_watch_room(const struct ipw_server_watch *w)
{
    if (w->n_queries >= most_queries(w) || ipw_llm_away_s(w->llm) > 0) return false;
    return !w->adaptive ||
           ipw_llm_calls(w->llm) + w->n_silent < (size_t)ipw_adaptive_limit(&w->controller);
}

void ipw_server_query_begin(struct ipw_server_watch *w, struct ipw_server_query *q)
{
    q->asked = false;
    w->n_queries++;
    w->n_silent++;
}

void ipw_server_query_asks(struct ipw_server_watch *w, struct ipw_server_query *q)
{
    if (!q->asked) w->n_silent--;
    q->asked = true;
}

void ipw_server_query_end(struct ipw_server_watch *w, struct ipw_server_query *q)
{
    w->n_queries--;
    ipw_server_query_asks(w, q); /* it will send no more */
}

static void adapt(struct ipw_server_watch *w, const struct ipw_lm_facts *f, int64_t t_ns)
{
    struct ipw_adaptive_change change;
    struct ipw_adaptive_sample s = {
        .seen = f->outcome == IPW_LM_OK ? IPW_ADAPTIVE_GOOD
                : f->status == 429      ? IPW_ADAPTIVE_BUSY
                                        : IPW_ADAPTIVE_OTHER,
        .sent_ns = f->times.sent_ns,
        .t_ns = t_ns,
        .ttft_ns = f->times.first_token_ns ? f->times.first_token_ns - f->times.sent_ns : 0,
        .in_flight = (int)ipw_llm_in_flight(w->llm) + 1,
    };
    struct ipw_buf data = IPW_BUF(IPW_KIB);
    struct ipw_jw jw;

    w->changed(w->ud); /* there may be room for another query */
    if (!ipw_adaptive_sample(&w->controller, &s, &change)) return;
    set_most(w);
    ipw_log(IPW_LOG_INFO, "concurrency %d -> %d (%s)", change.from, change.to, change.reason);
    ipw_jw_init(&jw, &data);
    ipw_jw_obj(&jw);
    ipw_jw_kint(&jw, "from", change.from);
    ipw_jw_kstr(&jw, "name", "concurrency");
    ipw_jw_kstr(&jw, "reason", change.reason);
    ipw_jw_kint(&jw, "to", change.to);
    ipw_jw_obj_end(&jw);
    note(w, -1, &data);
    ipw_buf_release(&data);
}

/* ---- signs in a reply ---- */

static void say_wait(struct ipw_server_watch *w, const struct ipw_server_query *q,
                     const struct ipw_lm_facts *f)
{
    double s = ipw_ns_to_s(f->retry_wait_ns);
    int64_t loading_ns = ipw_llm_loading_since_ns(w->llm);

    if (loading_ns && loading_ns != w->said_loading_ns) {
        w->said_loading_ns = loading_ns;
        ipw_log(IPW_LOG_WARN, "the server is loading its model: the run waits for it");
        note_wait(w, "server_loading", ipw_ns_to_s(ipw_now_ns() - loading_ns), f->error);
    }
    /* Short waits are not reported. */
    ipw_log(s >= 2 ? IPW_LOG_WARN : IPW_LOG_INFO, "query %s: %s; next try in %.3g s", q->id,
            f->error ? f->error : "failed", s);
}

static void check_length(struct ipw_server_watch *w, const struct ipw_server_query *q,
                         const struct ipw_lm_facts *f)
{
    int64_t want = f->forced_tokens;

    if (want <= 0 || f->tokens_estimated || f->output_tokens < 0 || f->output_tokens == want)
        return;
    ipw_log(w->said_length ? IPW_LOG_INFO : IPW_LOG_WARN,
            "query %s: a reply of %lld tokens in place of the %lld that were forced", q->id,
            (long long)f->output_tokens, (long long)want);
    w->said_length = true;
}

/* Ollama silently drops the oldest messages.  The only sign is a prompt that counts fewer tokens
 * than the one before, although it has more messages. */
static void check_prompt(struct ipw_server_watch *w, struct ipw_server_query *q,
                         const struct ipw_lm_facts *f)
{
    int64_t last = q->last_prompt_tokens;
    struct ipw_buf data = IPW_BUF(IPW_KIB);
    struct ipw_jw jw;

    q->last_prompt_tokens = f->input_tokens;
    if (!*q->extended || last <= 0 || f->input_tokens < 0 || f->input_tokens >= last) return;
    ipw_log(
        w->said_truncated ? IPW_LOG_INFO : IPW_LOG_WARN,
        "query %s: the server counts %lld prompt tokens after %lld for a shorter prompt: has it "
        "dropped messages? (its context may be too small)",
        q->id, (long long)f->input_tokens, (long long)last);
    w->said_truncated = true;
    ipw_jw_init(&jw, &data);
    ipw_jw_obj(&jw);
    ipw_jw_kint(&jw, "before", last);
    ipw_jw_kstr(&jw, "name", "prompt_truncated");
    ipw_jw_kint(&jw, "prompt_tokens", f->input_tokens);
    ipw_jw_obj_end(&jw);
    note(w, q->query, &data);
    ipw_buf_release(&data);
}

void ipw_server_query_event(struct ipw_server_watch *w, struct ipw_server_query *q,
                            const struct ipw_event *event)
{
    const struct ipw_lm_facts *f = &event->lm;

    if (event->kind == IPW_EV_LM_START) ipw_server_query_asks(w, q);
    if (event->kind != IPW_EV_LM_END) return;
    if (f->will_retry) say_wait(w, q, f);
    if (f->outcome == IPW_LM_OK) {
        check_length(w, q, f);
        check_prompt(w, q, f);
    }
    if (w->adaptive && f->outcome != IPW_LM_CANCELLED) adapt(w, f, event->t_ns);
}
