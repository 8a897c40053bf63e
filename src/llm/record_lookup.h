/* llm/record_lookup.h: the requests of a record, found again by what a client asks.
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
#ifndef IPW_LLM_RECORD_LOOKUP_H
#define IPW_LLM_RECORD_LOOKUP_H

#include "trace/event.h"

struct ipw_record_lookup;

enum ipw_record_lookup_match {
    IPW_RECORD_LOOKUP_REQUEST,  /* messages and options */
    IPW_RECORD_LOOKUP_MESSAGES, /* the messages */
    IPW_RECORD_LOOKUP_PLACE,
};
const char *ipw_record_lookup_match_name(enum ipw_record_lookup_match match);

struct ipw_record_lookup_reply { /* ipw_record_lookup_reply_release() */
    enum ipw_record_lookup_match match;
    int32_t query;
    int turn, attempt; /* from 1 */
    struct ipw_json *doc;
    struct ipw_event event;      /* of the attempt's end; its strings are the document's */
    const struct ipw_json *data; /* the reply, or NULL */
};

struct ipw_record_lookup_nearest {
    bool any;
    int32_t query;
    const char *query_id; /* the index's */
    int turn;
    int64_t message;     /* where they part, from 0; -1: it is equal, and has no reply */
    struct ipw_buf text; /* in words, several lines */
};

/* `with_failures`: attempts that failed are replies too. */
int ipw_record_lookup_open(struct ipw_record_lookup **out, const char *run, bool with_failures,
                           struct ipw_err *err);
void ipw_record_lookup_close(struct ipw_record_lookup *recorded); /* NULL is fine */
size_t
ipw_record_lookup_count(const struct ipw_record_lookup *recorded); /* replies that can be given */
const char *ipw_record_lookup_model(const struct ipw_record_lookup *recorded,
                                    size_t i); /* NULL: no more */

/* `request` is a decoded body.  IPW_ENOTFOUND: the record has no reply to it, and *nearest (always
 * to be released) says which request comes nearest and where they part. */
int ipw_record_lookup_find(struct ipw_record_lookup_reply *out,
                           struct ipw_record_lookup_nearest *nearest,
                           struct ipw_record_lookup *recorded, const struct ipw_json *request,
                           struct ipw_err *err);
void ipw_record_lookup_reply_release(struct ipw_record_lookup_reply *reply);
void ipw_record_lookup_nearest_release(struct ipw_record_lookup_nearest *nearest);

#endif
