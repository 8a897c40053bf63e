/* script/message.h: messages as scripts have them: those that they make (llm.system and its like,
 * which lua/ipw/llm.lua describes), and the reply of a model as the table that llm.chat returns.
 *
 * The message of a reply goes into the next request, in the form that strict servers accept.  It is
 * a table that a script can change, or sealed: the JSON that json.seal() makes of this table. */
#ifndef IPW_SCRIPT_MESSAGE_H
#define IPW_SCRIPT_MESSAGE_H

#include <lua.h>
#include <stdbool.h>

#include "llm/chat.h"

/* The reply as a table. [0, 1, e] */
void ipw_message_push_reply(lua_State *L, const struct ipw_chat_reply *reply, bool seal);

/* Functions of ipw.llm. */
int ipw_message_system(lua_State *L);
int ipw_message_user(lua_State *L);
int ipw_message_assistant(lua_State *L);
int ipw_message_tool(lua_State *L);

#endif
