--- ipw.llm: talking to the model.
local core = require "ipw.core.llm"

local llm = {}

--- A system message.
---@param text string
---@return table message
function llm.system(text) return { role = "system", content = text } end

--- A user message: a text, or a list of parts for a model that sees:
--- llm.user { "What is in this picture?", llm.image("map.png") }
---@param content string|(string|table)[]
---@return table message
function llm.user(content)
  if type(content) == "table" then content = require("ipw.parts").list(content) end
  return { role = "user", content = content }
end

--- A picture of the query's workspace (PNG, JPEG, GIF, WebP; 20 MiB at most) as a part of a
--- message. Raises when it cannot be read or is no picture.
---@param path string
---@param detail? "low"|"high"|"auto"
---@return table part
function llm.image(path, detail) return require("ipw.parts").image(path, detail) end

--- Any file of the workspace as a part of a message, for servers that take files (PDF mostly).
---@param path string
---@return table part
function llm.file(path) return require("ipw.parts").file(path) end

--- An assistant message of your own making; a reply's own is reply.message.
---@param text string
---@return table message
function llm.assistant(text) return { role = "assistant", content = text } end

--- What a tool said to a call of the model's; kit:call makes these too.
---@param call_id string
---@param text string
---@return table message
function llm.tool(call_id, text) return { role = "tool", tool_call_id = call_id, content = text } end

--- A thread to begin with: a system message, when there is one, and the user's.
---@param system? string
---@param user string|(string|table)[]
---@return table[] thread
function llm.thread(system, user)
  local thread = {}
  if system and system ~= "" then thread[1] = llm.system(system) end
  thread[#thread + 1] = llm.user(user)
  return thread
end

--- About how many tokens a thread is: a quarter of its bytes as JSON. The server's own count of a reply
--- is reply.usage.
---@param thread table[]
---@return integer tokens
function llm.size(thread) return require "ipw.trim".size(thread) end

--- Makes a thread shorter from its oldest end: without `tokens` by one exchange (a reply of the model and
--- all that answered it), with it until llm.size is at most that. System messages, the first user message
--- and the last exchange stay. False when nothing could be dropped, or not enough.
---@param thread table[]
---@param tokens? integer
---@return boolean
function llm.trim(thread, tokens) return require "ipw.trim".trim(thread, tokens) end

--- Sends the conversation and waits for the reply. Looks blocking; other queries go on meanwhile.
--- Fields: messages (required), tools, tool_choice, model, temperature, top_p, seed, max_tokens,
--- on_text (a function that gets each piece as it comes: on_text(piece, kind), kind "text" or
--- "reasoning"; "again" when the request is repeated and what came before counts no more; it may not
--- wait), stop, response_format, force_output_tokens (a reply of exactly that many: llama.cpp, vLLM and
--- SGLang), extra (a table of further body fields). What is left out comes from the
--- command line or is the server's own default. Messages may be edited between two requests: each
--- request sends them as they are then; only new and edited ones are encoded again.
--- The reply: text, reasoning, calls ({id, name, arguments}), message (for the history), finish,
--- usage ({input, output, cached, reasoning}; what the server did not tell is nil), model.
--- Raises {code, message, status, retryable} when there is no reply after all retries.
---@param request ipw.ChatRequest
---@return ipw.Reply reply
llm.chat = core.chat

return llm
