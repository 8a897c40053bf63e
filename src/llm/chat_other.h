/* llm/chat_other.h: replies of the other protocols that agents speak.
 *
 * Pure.  "/v1/responses", Anthropic messages and "/v1/completions", whole and as the events of a
 * stream, become a struct ipw_chat_reply: text, reasoning, calls, finish reason, usage.  A fold
 * that was told its protocol reads each event by that protocol's rules; it starts with chat
 * completions.  Only the recording proxy meets them: the program itself asks for chat
 * completions. */
#ifndef IPW_LLM_CHAT_OTHER_H
#define IPW_LLM_CHAT_OTHER_H

#include "llm/chat.h"

enum ipw_chat_protocol {
    IPW_CHAT_COMPLETIONS,
    IPW_CHAT_RESPONSES,
    IPW_CHAT_MESSAGES,
    IPW_CHAT_PROMPT, /* chat completions but for the prompt, and the text of its choices */
};
/* "chat", "responses", "messages", "completions", NULL */
extern const char *const ipw_chat_protocol_words[];

/* Before the first event. */
void ipw_chat_fold_set_protocol(struct ipw_chat_fold *fold, enum ipw_chat_protocol protocol);

#endif
