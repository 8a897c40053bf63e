--- ipw.llm: messages, threads and calls of the model.

-- Every query needs these; they are C (src/script/lib_llm.c).  The lines below tell scripts/lua-docs what
-- the module has.  What few queries need is in ipw.llm_rest, so that every query loads less.

--- A system message.
---@param text string
---@return table message
-- function llm.system(text)

--- A user message: a text, or parts: llm.user { "What is in this picture?", llm.image("map.png") }
---@param content string|(string|table)[]
---@return table message
-- function llm.user(content)

--- A picture of the workspace (PNG, JPEG, GIF, WebP; 20 MiB at most) as a part of a message; raises if it is none.
---@param path string
---@param detail? "low"|"high"|"auto"
---@return table part
-- function llm.image(path, detail)

--- A file of the workspace as a part of a message, for servers that accept files (mostly PDF).
---@param path string
---@return table part
-- function llm.file(path)

--- An assistant message with your own text.
---@param text string
---@return table message
-- function llm.assistant(text)

--- The result of a tool call as a message.
---@param call_id string
---@param text string
---@return table message
-- function llm.tool(call_id, text)

--- A new thread.
---@param system? string
---@param user string|(string|table)[]
---@return table[] thread
-- function llm.thread(system, user)

--- The size of a thread: a quarter of its bytes as JSON.
---@param thread table[]
---@return integer tokens
-- function llm.size(thread)

--- Drops the oldest exchange of a thread (a reply and what answers it); with `tokens` as many until llm.size is
--- at most that. System messages, the first user message and the last exchange stay; false: not enough.
---@param thread table[]
---@param tokens? integer
---@return boolean
-- function llm.trim(thread, tokens)

--- Sends the conversation and waits for the reply. Raises an ipw.Error if there is none after all retries.
---@param request ipw.ChatRequest
---@return ipw.Reply reply
-- function llm.chat(request)

return require "ipw.core.llm", "ipw.llm_rest"
