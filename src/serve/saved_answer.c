#include "serve/saved_answer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "json/document.h"
#include "json/write.h"
#include "llm/saved_replies.h"
#include "serve/saved_answer_write.h"

struct ipw_serve_saved {
    struct ipw_saved_replies *replies;
    double speed;
    bool with_failures;
    struct ipw_serve_saved_counts counts;
};

/* ---- opening ---- */

static int check_manifest(const struct ipw_serve_saved_options *o, struct ipw_err *err)
{
    struct ipw_json *manifest;
    const char *redacted;
    bool no_content;
    int rc = ipw_json_read(&manifest, o->run, "manifest.json", err);

    redacted = ipw_json_str(ipw_json_get(manifest, "redacted"), NULL);
    no_content = ipw_json_bool(ipw_json_get(ipw_json_get(manifest, "config"), "no_content"), false);
    if (!rc && (redacted || no_content) && !o->filler)
        rc = ipw_fail(err, IPW_EINVAL,
                      "%s: was %s, so its texts are filler, which no real client asks for. Use "
                      "--filler to serve them anyway.",
                      o->run, redacted ? "exported with --redact" : "run with --no-content");
    ipw_json_free(manifest);
    return rc;
}

int ipw_serve_saved_open(struct ipw_serve_saved **out,
                         const struct ipw_serve_saved_options *options, struct ipw_err *err)
{
    struct ipw_serve_saved *s = ipw_calloc(1, sizeof *s);
    int rc = check_manifest(options, err);

    s->speed = options->speed;
    s->with_failures = options->with_failures;
    if (!rc) rc = ipw_saved_replies_open(&s->replies, options->run, options->with_failures, err);
    if (!rc && ipw_saved_replies_count(s->replies) == 0)
        rc = ipw_fail(err, IPW_EPARSE, "%s: the saved run has no reply of a model", options->run);
    if (rc) {
        ipw_serve_saved_close(s);
        return rc;
    }
    *out = s;
    return 0;
}

void ipw_serve_saved_close(struct ipw_serve_saved *s)
{
    if (!s) return;
    ipw_saved_replies_close(s->replies);
    free(s);
}

const char *ipw_serve_saved_model(const struct ipw_serve_saved *s, size_t i)
{
    return ipw_saved_replies_model(s->replies, i);
}

struct ipw_serve_saved_counts ipw_serve_saved_counts(const struct ipw_serve_saved *s)
{
    return s->counts;
}

/* ---- no answer ---- */

static void say_not_found(struct ipw_buf *out, const struct ipw_nearest_request *nearest)
{
    ipw_buf_adds(out, "the saved run has no reply to this request");
    if (!nearest->any) {
        ipw_buf_adds(out, ": it has no requests");
        return;
    }
    if (nearest->message < 0)
        ipw_buf_adds(out, "; in ");
    else
        ipw_buf_adds(out, "; nearest is ");
    ipw_buf_addf(out, "query %s (%d), turn %d: ", nearest->query_id, (int)nearest->query,
                 nearest->turn);
    ipw_buf_add(out, ipw_buf_str(&nearest->text), nearest->text.len);
    if (nearest->message < 0) ipw_buf_adds(out, "; --with-failures serves failed attempts");
}

static void answer_not_found(struct ipw_serve_answer *answer,
                             const struct ipw_nearest_request *nearest)
{
    struct ipw_buf message = IPW_BUF(IPW_MIB);
    char where[32];
    struct ipw_jw w;

    say_not_found(&message, nearest);
    ipw_serve_answer_open(answer);
    ipw_jw_init(&w, &answer->bytes);
    ipw_jw_obj(&w);
    ipw_jw_key(&w, "error");
    ipw_jw_obj(&w);
    ipw_jw_kstr(&w, "code", "not_recorded");
    ipw_jw_key(&w, "message");
    ipw_jw_strn(&w, ipw_buf_str(&message), message.len);
    ipw_jw_key(&w, "nearest");
    if (nearest->any) {
        ipw_jw_obj(&w);
        ipw_jw_key(&w, "message");
        if (nearest->message < 0)
            ipw_jw_null(&w);
        else
            ipw_jw_int(&w, nearest->message);
        ipw_jw_kstr(&w, "query_id", nearest->query_id);
        ipw_jw_kint(&w, "query_index", nearest->query);
        ipw_jw_kint(&w, "turn", nearest->turn);
        ipw_jw_obj_end(&w);
    } else {
        ipw_jw_null(&w);
    }
    snprintf(where, sizeof where, "messages[%lld]", (long long)nearest->message);
    ipw_jw_kstr(&w, "param", nearest->any && nearest->message >= 0 ? where : "messages");
    ipw_jw_kstr(&w, "type", "invalid_request_error");
    ipw_jw_obj_end(&w);
    ipw_jw_obj_end(&w);
    ipw_serve_part_end(answer, 0);
    ipw_buf_release(&message);
}

/* ---- answers ---- */

static void count(struct ipw_serve_saved *s, enum ipw_saved_replies_match match)
{
    switch (match) {
    case IPW_SAVED_REPLIES_REQUEST: s->counts.by_request++; break;
    case IPW_SAVED_REPLIES_MESSAGES: s->counts.by_messages++; break;
    case IPW_SAVED_REPLIES_PLACE: s->counts.by_place++; break;
    }
}

/* A failed attempt, as far as a server can repeat it: refused, reset and unreadable attempts are a
 * connection that breaks at the saved time. */
static void answer_failure(struct ipw_serve_answer *answer, struct ipw_serve_saved_outcome *outcome,
                           const struct ipw_serve_timed_reply *timed)
{
    const struct ipw_lm_facts *f = &timed->reply->event.lm;
    const char *said = ipw_json_str(ipw_json_get(timed->reply->data, "error"), f->error);

    switch (f->outcome) {
    case IPW_LM_HTTP_ERROR:
    case IPW_LM_CONTEXT_FULL:
        outcome->status = f->status >= 400 ? f->status : 500;
        ipw_serve_answer_error(answer, outcome->status, said ? said : "failed");
        answer->parts[0].after_ns = ipw_serve_timed_close(timed);
        break;
    case IPW_LM_SERVER_ERROR:
        ipw_serve_timed_error(answer, timed, said ? said : "failed");
        outcome->streams = timed->ask->stream;
        break;
    case IPW_LM_CUT:
        outcome->streams = timed->ask->stream;
        outcome->breaks = true;
        if (timed->ask->stream) {
            ipw_serve_timed_stream(answer, timed);
            break;
        }
        outcome->status = 0;
        break;
    default: outcome->status = 0;
    }
    if (outcome->status == 0) outcome->due_ns = ipw_serve_timed_close(timed);
}

/* A request that was saved with its reply gets this reply, whatever it asked for. */
static bool lacks_logprobs(const struct ipw_serve_ask *ask, const struct ipw_saved_reply *reply)
{
    return ask->logprobs && reply->match != IPW_SAVED_REPLIES_REQUEST &&
           reply->event.lm.outcome == IPW_LM_OK &&
           ipw_json_is_null(ipw_json_get(reply->data, "logprobs"));
}

void ipw_serve_saved_answer(struct ipw_serve_saved *s, struct ipw_serve_answer *answer,
                            struct ipw_serve_saved_outcome *outcome,
                            const struct ipw_serve_ask *ask, const struct ipw_json *request,
                            int64_t created)
{
    struct ipw_nearest_request nearest;
    struct ipw_saved_reply reply;
    struct ipw_err err = {0};
    int rc = ipw_saved_replies_find(&reply, &nearest, s->replies, request, &err);

    memset(answer, 0, sizeof *answer);
    *outcome = (struct ipw_serve_saved_outcome){.status = 200};
    if (rc == IPW_ENOTFOUND) {
        s->counts.not_found++;
        outcome->status = 404;
        answer_not_found(answer, &nearest);
    } else if (rc) {
        outcome->status = 500;
        ipw_serve_answer_error(answer, 500, err.text);
    } else {
        struct ipw_serve_timed_reply timed = {
            .reply = &reply, .ask = ask, .created = created, .speed = s->speed};

        count(s, reply.match);
        snprintf(outcome->note, sizeof outcome->note, "query %d, turn %d, attempt %d, by %s",
                 (int)reply.query, reply.turn, reply.attempt,
                 ipw_saved_replies_match_name(reply.match));
        if (lacks_logprobs(ask, &reply)) {
            outcome->status = 400;
            ipw_serve_answer_error(answer, 400, "logprobs: the saved reply has none; leave it out");
        } else if (reply.event.lm.outcome != IPW_LM_OK) {
            answer_failure(answer, outcome, &timed);
        } else if (ask->stream) {
            ipw_serve_timed_stream(answer, &timed);
            outcome->streams = true;
        } else {
            ipw_serve_timed_whole(answer, &timed);
        }
        ipw_saved_reply_release(&reply);
    }
    ipw_nearest_request_release(&nearest);
}
