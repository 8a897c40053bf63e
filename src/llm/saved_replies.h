/* llm/saved_replies.h: the requests of a record, found again by what a client asks.
 *
 * Owns an index of a run's events.jsonl: of every message of every request a hash, of every attempt
 * where its reply stands in the file; replies are read when they are asked for, so that memory
 * follows the number of messages and not their length.  A record holds its messages in canonical
 * form (sorted keys), and requests are brought to it before they are compared; numbers are compared
 * by value (0 is 0.0).
 *
 * A request gets the reply of the recorded one that is equal in everything that shapes a reply;
 * else of one with equal messages; else of the one at the same place of a conversation: one that
 * begins with the same first request and has as many messages of the same roles.  Where several are
 * equal (epochs, repeats) they are given in the order of the record, and then the last again.
 * Nothing in the file is believed; nothing is opened but the file. */
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
    struct ipw_event event;      /* of the attempt's end; its strings are the document's */
    const struct ipw_json *data; /* the reply, or NULL */
};

struct ipw_nearest_request {
    bool any;
    int32_t query;
    const char *query_id; /* the index's */
    int turn;
    int64_t message;     /* where they part, from 0; -1: it is equal, and has no reply */
    struct ipw_buf text; /* in words, several lines */
};

/* `with_failures`: attempts that failed are replies too. */
int ipw_saved_replies_open(struct ipw_saved_replies **out, const char *run, bool with_failures,
                           struct ipw_err *err);
void ipw_saved_replies_close(struct ipw_saved_replies *replies); /* NULL is fine */
size_t
ipw_saved_replies_count(const struct ipw_saved_replies *replies); /* replies that can be given */
const char *ipw_saved_replies_model(const struct ipw_saved_replies *replies,
                                    size_t i); /* NULL: no more */

/* `request` is a decoded body.  IPW_ENOTFOUND: the record has no reply to it, and *nearest (always
 * to be released) says which request comes nearest and where they part. */
int ipw_saved_replies_find(struct ipw_saved_reply *out, struct ipw_nearest_request *nearest,
                           struct ipw_saved_replies *replies, const struct ipw_json *request,
                           struct ipw_err *err);
void ipw_saved_reply_release(struct ipw_saved_reply *reply);
void ipw_nearest_request_release(struct ipw_nearest_request *nearest);

#endif
