/* llm/saved_replies.h: finds the reply of a saved run for a client's request.
 *
 * Owns an index of the run's events.jsonl: a hash of each message of each request, and the place of
 * each reply in the file.  A reply is read when it is needed, so memory grows with the number of
 * messages and not with their length.  Saved messages have sorted keys; requests are brought into
 * this form before they are compared.  Numbers are compared by value (0 equals 0.0).
 *
 * A request gets the reply of the first of these saved requests that exists:
 * - one that is equal in everything that affects a reply;
 * - one with equal messages;
 * - one at the same place of a conversation: the conversation begins with the same request, and the
 *   request has the same number of messages with the same roles.
 * If several are equal (epochs, repeats), their replies are given in file order; then the last one
 * is given again.  The file is not trusted, and no other file is opened. */
#ifndef IPW_LLM_SAVED_REPLIES_H
#define IPW_LLM_SAVED_REPLIES_H

#include "trace/event.h"

struct ipw_saved_replies;

enum ipw_saved_replies_match {
    IPW_SAVED_REPLIES_REQUEST,  /* messages and options */
    IPW_SAVED_REPLIES_MESSAGES, /* the messages */
    IPW_SAVED_REPLIES_PLACE,
};
const char *ipw_saved_replies_match_name(enum ipw_saved_replies_match match);

struct ipw_saved_reply { /* ipw_saved_reply_release() */
    enum ipw_saved_replies_match match;
    int32_t query;
    int turn, attempt; /* from 1 */
    struct ipw_json *doc;
    struct ipw_event event;      /* the attempt's end; its strings belong to `doc` */
    const struct ipw_json *data; /* the reply, or NULL */
};

struct ipw_nearest_request {
    bool any;
    int32_t query;
    const char *query_id; /* borrowed from the index */
    int turn;
    int64_t message;     /* the first that differs, from 0; -1: all equal, but no reply */
    struct ipw_buf text; /* the difference in words, several lines */
};

/* `with_failures`: failed attempts count as replies. */
int ipw_saved_replies_open(struct ipw_saved_replies **out, const char *run, bool with_failures,
                           struct ipw_err *err);
void ipw_saved_replies_close(struct ipw_saved_replies *replies); /* NULL is fine */
size_t ipw_saved_replies_count(const struct ipw_saved_replies *replies);
const char *ipw_saved_replies_model(const struct ipw_saved_replies *replies,
                                    size_t i); /* NULL: no more */

/* `request`: a parsed body.  IPW_ENOTFOUND: the run has no reply to it, and *nearest describes the
 * most similar request and the first difference.  Always release *nearest. */
int ipw_saved_replies_find(struct ipw_saved_reply *out, struct ipw_nearest_request *nearest,
                           struct ipw_saved_replies *replies, const struct ipw_json *request,
                           struct ipw_err *err);
void ipw_saved_reply_release(struct ipw_saved_reply *reply);
void ipw_nearest_request_release(struct ipw_nearest_request *nearest);

#endif
