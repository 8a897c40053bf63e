/* The verdict on a finished attempt: outcome, message, whether to retry. */
#include "llm/client_priv.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "io/url.h"

static bool status_repeats(int status)
{
    return status == 408 || status == 409 || status == 425 || status == 429 ||
           (status >= 500 && status <= 599);
}

static void say(struct ipw_llm_verdict *out, enum ipw_lm_outcome outcome, enum ipw_code code)
{
    out->outcome = outcome;
    out->err.code = code;
    out->err.detail = 0;
}

/* Writes the message: the reason, the address, and `remedy` if there is one.  The reason is first,
 * since a narrow column shows the beginning only. */
static IPW_PRINTF(5, 6) void tell(struct ipw_llm_verdict *out, const struct ipw_llm_evidence *e,
                                  enum ipw_code code, const char *remedy, const char *fmt, ...)
{
    char why[sizeof out->err.text];
    size_t n = strlen(e->url) + strlen(remedy ? remedy : "") + 4, room = sizeof why - 1;
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(why, sizeof why, fmt, ap);
    va_end(ap);
    room = n < room / 2 ? room - n : room / 2; /* a long reason leaves room for the address */
    ipw_fail(&out->err, code, "%.*s: %s%s%s", (int)room, why, e->url, remedy ? ": " : "",
             remedy ? remedy : "");
}

/* The HTTP layer's text without its address, since the message has the address. */
static const char *reason(const struct ipw_llm_evidence *e, const char *fallback)
{
    const char *why = e->http_error, *rest;
    size_t n = strlen(e->url);

    if (!why || !*why) return fallback;
    if (strncmp(why, e->url, n) != 0) return why;
    rest = strstr(why + n, ": ");
    return rest ? rest + 2 : why;
}

static void judge_no_answer(struct ipw_llm_verdict *out, const struct ipw_llm_evidence *e)
{
    const char *why = reason(e, "no connection");

    say(out, IPW_LM_REFUSED, IPW_ENET);
    out->retryable = e->end != IPW_HTTP_TLS;
    if (e->end == IPW_HTTP_DNS)
        tell(out, e, IPW_ENET, "is the address right?", "the host name cannot be resolved");
    else if (e->end == IPW_HTTP_TLS)
        tell(out, e, IPW_ENET, NULL, "no secure connection: %s", why);
    else if (e->end == IPW_HTTP_NO_ROOM)
        tell(out, e, IPW_ENET, "give a smaller --concurrency",
             "this machine has no descriptor or port left for a connection");
    else if (ipw_url_is_local(e->url) || strcasestr(why, "refused"))
        /* libcurl has one text for refused and unreachable.  For this machine it means refused. */
        tell(out, e, IPW_ENET, "is the server running?", "connection refused");
    else
        tell(out, e, IPW_ENET, "is the server running?", "%s", why);
}

static void judge_timeout(struct ipw_llm_verdict *out, const struct ipw_llm_evidence *e)
{
    const char *what = "the call took longer than";

    say(out, IPW_LM_TIMEOUT, IPW_ETIMEOUT);
    /* Do not retry a call that used all its time. */
    out->retryable = (!e->token_seen || e->retry_cut) && e->deadline != IPW_HTTP_TOTAL_DEADLINE;
    if (e->deadline == IPW_HTTP_CONNECT_DEADLINE) what = "no connection within";
    if (e->deadline == IPW_HTTP_FIRST_BYTE_DEADLINE) what = "no answer within";
    if (e->deadline == IPW_HTTP_IDLE_DEADLINE) what = "the answer stopped for";
    if (e->token_late) what = "no token within";
    if (e->no_event) what = "the answer held nothing but keep-alive comments for";
    tell(out, e, IPW_ETIMEOUT, NULL, "%s %.3g s", what, ipw_ns_to_s(e->deadline_ns));
}

static bool asks_for_other_options(const char *body, size_t n)
{
    return memmem(body, n, "stream_options", 14) || memmem(body, n, "include_usage", 13);
}

/* The statuses with which servers refuse a request as too long. */
static bool status_of_context(int status)
{
    return status == 400 || status == 413 || status == 422 || status == 500;
}

static void judge_context(struct ipw_llm_verdict *out)
{
    out->outcome = IPW_LM_CONTEXT_FULL;
    out->err.code = IPW_ECONTEXT;
    out->retryable = false; /* the same request would be refused again */
}

static void judge_status(struct ipw_llm_verdict *out, const struct ipw_llm_evidence *e)
{
    char text[400], type[64];
    const char *colon;

    say(out, IPW_LM_HTTP_ERROR, IPW_EHTTP);
    ipw_chat_error_text(text, sizeof text, type, sizeof type, e->body ? e->body : "", e->body_n);
    colon = *text ? ": " : "";
    out->retryable = status_repeats(e->status) && strcmp(type, "insufficient_quota") != 0;
    out->without_usage = (e->status == 400 || e->status == 422) && e->usage_asked && e->body_n &&
                         asks_for_other_options(e->body, e->body_n);
    if (e->status >= 300 && e->status < 400)
        tell(out, e, IPW_EHTTP, "give that address instead", "HTTP %d: the server redirects to %s",
             e->status, e->location && *e->location ? e->location : "another address");
    else if (e->status == 401 && !e->have_key)
        tell(out, e, IPW_EHTTP, NULL,
             "the server wants an API key: --api-key-env NAME (HTTP 401%s%s)", colon, text);
    else if (e->status == 401)
        tell(out, e, IPW_EHTTP, NULL, "the server does not accept the API key (HTTP 401%s%s)",
             colon, text);
    else if (e->status == 404 && strcasestr(text, "model"))
        tell(out, e, IPW_EHTTP, "`ipw-agent list models` shows what it serves", "HTTP 404: %s",
             text);
    else if (e->status == 404)
        tell(out, e, IPW_EHTTP, NULL, "HTTP 404%s%s: no chat completions at this address", colon,
             text);
    else
        tell(out, e, IPW_EHTTP, NULL, "HTTP %d%s%s", e->status, colon, text);
    out->err.detail = e->status;
    if (status_of_context(e->status) && ipw_chat_error_is_context(type, text)) judge_context(out);
}

bool ipw_llm_is_loading(const struct ipw_llm_evidence *e)
{
    char text[400], type[64];

    if (e->status != 503 || !e->body_n) return false;
    ipw_chat_error_text(text, sizeof text, type, sizeof type, e->body, e->body_n);
    return strcasestr(text, "loading model") || strcasestr(text, "model is loading");
}

static void judge_error_inside(struct ipw_llm_verdict *out, const struct ipw_llm_evidence *e)
{
    const struct ipw_chat_reply *r = e->reply;
    const char *type = r->error_type ? r->error_type : "";

    say(out, IPW_LM_SERVER_ERROR, IPW_EHTTP);
    if (r->error_code) out->status = r->error_code;
    out->retryable =
        !e->token_seen && status_repeats(r->error_code) && strcmp(type, "insufficient_quota") != 0;
    tell(out, e, IPW_EHTTP, NULL, "the server reports: %s",
         *r->error ? r->error : "an error without a message");
    out->err.detail = r->error_code;
    if (!e->token_seen && ipw_chat_error_is_context(type, r->error)) judge_context(out);
}

static void judge_not_the_api(struct ipw_llm_verdict *out, const struct ipw_llm_evidence *e)
{
    char text[256], type[8];
    size_t i = 0;

    say(out, IPW_LM_BAD_REPLY, IPW_EPARSE);
    while (i < e->body_n && strchr(" \t\r\n", e->body[i]) && e->body[i]) i++;
    if (!e->streamed && i == e->body_n) {
        tell(out, e, IPW_EPARSE, NULL, "HTTP %d with an empty body", e->status);
    } else if (!e->streamed && e->body[i] == '<') {
        ipw_chat_error_text(text, sizeof text, type, sizeof type, e->body, e->body_n);
        tell(out, e, IPW_EPARSE, "is the address right?",
             "answered with HTML, not with the API (%s)", text);
    } else {
        tell(out, e, IPW_EPARSE, NULL, "%s", e->fold_err->text);
    }
}

static void judge_cut(struct ipw_llm_verdict *out, const struct ipw_llm_evidence *e)
{
    say(out, e->token_seen ? IPW_LM_CUT : IPW_LM_RESET, IPW_ENET);
    out->retryable = !e->token_seen || e->retry_cut;
    if (e->end == IPW_HTTP_RESET) {
        tell(out, e, IPW_ENET, NULL, "the connection broke before the answer");
    } else if (e->end == IPW_HTTP_OK) {
        /* The server closed the stream properly, but before the end of the answer. */
        out->outcome = IPW_LM_CUT;
        tell(out, e, IPW_ENET, NULL, "%s", e->fold_err->text);
    } else {
        tell(out, e, IPW_ENET, NULL, "the connection broke inside the answer%s",
             e->token_seen ? "" : ", before its first token");
    }
}

static void judge_answer(struct ipw_llm_verdict *out, const struct ipw_llm_evidence *e)
{
    if (e->fold_code == IPW_ELIMIT) {
        say(out, IPW_LM_TOO_LARGE, IPW_ELIMIT);
        tell(out, e, IPW_ELIMIT, NULL, "%s", e->fold_err->text);
    } else if (e->reply->error) {
        judge_error_inside(out, e);
    } else if (e->fold_code == IPW_EPARSE) {
        judge_not_the_api(out, e);
    } else if (e->fold_code) {
        judge_cut(out, e);
    }
}

void ipw_llm_verdict_from(struct ipw_llm_verdict *out, const struct ipw_llm_evidence *e)
{
    bool success = e->status >= 200 && e->status <= 299;
    /* After a finish reason it does not matter how the connection ends. */
    bool enough = success && e->streamed && e->finished;

    *out = (struct ipw_llm_verdict){.outcome = IPW_LM_OK, .status = e->status};
    /* An error status is the answer, even if its body broke off. */
    if (e->status && !success && e->end != IPW_HTTP_RESET && e->end != IPW_HTTP_PROTOCOL) {
        judge_status(out, e);
        return;
    }
    if (enough || e->end == IPW_HTTP_OK || e->end == IPW_HTTP_ABORTED) {
        judge_answer(out, e);
        return;
    }
    switch (e->end) {
    case IPW_HTTP_REFUSED:
    case IPW_HTTP_NO_ROOM:
    case IPW_HTTP_DNS:
    case IPW_HTTP_TLS: judge_no_answer(out, e); break;
    case IPW_HTTP_TIMEOUT: judge_timeout(out, e); break;
    case IPW_HTTP_RESET:
    case IPW_HTTP_CUT: /* an error seen before the break explains more than the break */
        if (e->streamed && e->reply->error)
            judge_error_inside(out, e);
        else
            judge_cut(out, e);
        break;
    case IPW_HTTP_TOO_LARGE:
        say(out, IPW_LM_TOO_LARGE, IPW_ELIMIT);
        tell(out, e, IPW_ELIMIT, NULL, "the answer is too large");
        break;
    default:
        say(out, IPW_LM_BAD_REPLY, IPW_EPARSE);
        tell(out, e, IPW_EPARSE, NULL, "%s", reason(e, "not an HTTP answer"));
    }
}
