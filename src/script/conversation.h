/* script/conversation.h: the messages of a request as JSON, one after the other.
 *
 * Each request encodes its messages.  One that is sealed (json.seal, as replies and results of
 * tools are) is text already and is copied.  Each message has a hash, by which the next request of
 * the query finds the messages that it shares. */
#ifndef IPW_SCRIPT_CONVERSATION_H
#define IPW_SCRIPT_CONVERSATION_H

#include <lua.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

struct ipw_conversation { /* all zero: empty */
    struct ipw_buf text;  /* the messages, with a comma between two of them */
    struct ipw_conversation_message {
        size_t end;    /* of its JSON in the text */
        uint64_t hash; /* of the JSON */
    } * messages;
    size_t n;
};

/* Takes the list of messages at idx, a table with at least one element.  The error begins with the
 * message at fault ("messages[2].content: ...").  Release it in any case. [0, 0, m] */
int ipw_conversation_take(struct ipw_conversation *c, lua_State *L, int idx, struct ipw_err *err);
/* Where message i (from 0) begins in the text; i == n: where the text ends. */
size_t ipw_conversation_start(const struct ipw_conversation *c, size_t i);
void ipw_conversation_release(struct ipw_conversation *c);

#endif
