/* script/conversation.h: the messages of a query's requests as JSON, each encoded once.
 *
 * The next request of an agent mostly has the messages of the one before, and some more.  A
 * conversation keeps the text of the last request's messages.  ipw_conversation_take() compares the
 * script's list with it and encodes only what is new or was changed.  (A short list is encoded
 * anew, which costs less than the comparison.)  Scripts may edit any message
 * at any time: each message has a fingerprint of all its keys and values, which is computed again
 * for every request.  Strings count by their address, and the Lua state keeps them alive, so that
 * no other string can get that address meanwhile.
 *
 * A state has several conversations: an agent's branches talk to the model side by side.  One that
 * was taken belongs to the request until ipw_conversation_give_back(). */
#ifndef IPW_SCRIPT_CONVERSATION_H
#define IPW_SCRIPT_CONVERSATION_H

#include <lua.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

struct ipw_conversation {
    struct ipw_buf text; /* the messages, with a comma between two of them */
    struct ipw_conversation_message {
        size_t end;           /* of its JSON in the text */
        size_t pins;          /* strings that are kept alive for the messages up to this one */
        uint64_t fingerprint; /* of the Lua value; 0: none, the message is encoded again */
        uint64_t hash;        /* of the JSON */
    } * messages;
    size_t n, cap;
    bool taken;
    struct ipw_conversation *next; /* of the same state */
};

/* The texts of the list of messages at idx, a table with at least one element; `all` is the list of
 * the state's conversations, empty at first.  The error begins with the message at fault
 * ("messages[2].content: ..."). [0, 0, m] */
int ipw_conversation_take(struct ipw_conversation **out, struct ipw_conversation **all,
                          lua_State *L, int idx, struct ipw_err *err);
/* The request does not need the text any more.  True if it is freed: the next request would encode
 * so few messages again. */
bool ipw_conversation_drop_text(struct ipw_conversation *c);
void ipw_conversation_give_back(struct ipw_conversation *c); /* NULL is fine */
/* Where message i (from 0) begins in the text; i == n: where the text ends. */
size_t ipw_conversation_start(const struct ipw_conversation *c, size_t i);
void ipw_conversation_free_all(struct ipw_conversation *first); /* with their state */

#endif
