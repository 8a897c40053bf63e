--- ipw.llm: messages, threads and calls of the model.

-- Every query needs these; they are C (src/script/lib_llm.c).  The lines below tell scripts/lua-docs what
-- the module has.  What few queries need is in ipw.llm_rest, so that every query loads less.

--- A system message.
---@param text string
---@return table message
-- function llm.system(text)

--- A user message: a text, or a list of parts for a model that reads pictures:
--- llm.user { "What is in this picture?", llm.image("map.png") }
---@param content string|(string|table)[]
---@return table message
-- function llm.user(content)

--- A picture of the query's workspace (PNG, JPEG, GIF, WebP; 20 MiB at most) as a part of a message.
--- Raises if the file cannot be read or is not a picture.
---@param path string
---@param detail? "low"|"high"|"auto"
---@return table part
-- function llm.image(path, detail)

--- A file of the workspace as a part of a message, for servers that accept files (mostly PDF).
---@param path string
---@return table part
-- function llm.file(path)

--- An assistant message with your own text. The message of a reply is reply.message.
---@param text string
---@return table message
-- function llm.assistant(text)

--- The result of a tool call as a message; kit:call makes these as well.
---@param call_id string
---@param text string
---@return table message
-- function llm.tool(call_id, text)

--- A new thread: a system message, if there is one, and the user's message.
---@param system? string
---@param user string|(string|table)[]
---@return table[] thread
-- function llm.thread(system, user)

--- The approximate size of a thread in tokens: a quarter of its bytes as JSON. reply.usage has the
--- server's own count.
---@param thread table[]
---@return integer tokens
-- function llm.size(thread)

--- Drops the oldest exchanges of a thread (a reply of the model and the messages that answer it).
--- Without `tokens` it drops one exchange; with it, as many as it takes until llm.size is at most that.
--- System messages, the first user message and the last exchange stay. Returns false if it could not
--- drop enough.
---@param thread table[]
---@param tokens? integer
---@return boolean
-- function llm.trim(thread, tokens)

--- Sends the conversation and waits for the reply. It looks blocking, but other queries run meanwhile.
--- Fields: messages (required), tools, tool_choice, model, sub_model (true: asks the model and server of
--- --sub-model and --sub-url, else the run's), temperature, top_p, seed, max_tokens, stop, response_format,
--- force_output_tokens (exact length of the reply: llama.cpp, vLLM and SGLang), send_at (when to send it, in
--- seconds of ipw.now(); the request is made ready before), extra (a table of further body fields), seal (true:
--- reply.message is sealed, as json.seal does), and on_text. A missing field comes from the command line, else from
--- the server's default. on_text(piece, kind) gets each piece as it arrives; kind is "text" or "reasoning".
--- "again": the request is repeated, and the earlier pieces no longer count. The function cannot wait. Messages can
--- be edited between two requests: each request sends them as they are then; only new and edited messages are
--- encoded again, and sealed ones (json.seal) are not even looked at. The reply: text, reasoning, calls ({id, name,
--- arguments}, and broken = true if the arguments are no JSON object; then the message has {} instead, because
--- servers refuse them), message (for the thread), finish, usage ({input, output, cached, reasoning}; nil if the
--- server did not report it), model, streamed (false: it came in one piece). Raises {code, message, status,
--- retryable} if there is no reply after all retries.
---@param request ipw.ChatRequest
---@return ipw.Reply reply
-- function llm.chat(request)

return require "ipw.core.llm", "ipw.llm_rest"
