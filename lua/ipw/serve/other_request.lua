--- ipw.serve.other_request: requests of /v1/responses, Anthropic messages and /v1/completions, as chat completions.
--
-- other.chat(body, protocol) gives the chat completion that asks for the same, for a model in Lua; other.saved(body,
-- protocol) what a saved run is searched for: the request's own messages, as `measure` has stored them.

local json = require "ipw.core.json"

local other = {}

--- The texts of a string, or of a list of parts.
local function text_of(content)
  if type(content) ~= "table" then return type(content) == "string" and content or "" end
  local texts = {}
  for _, part in ipairs(content) do
    if type(part) == "table" and type(part.text) == "string" then texts[#texts + 1] = part.text end
  end
  return table.concat(texts, "\n")
end

local function call_of(id, name, arguments)
  return { id = id, type = "function", ["function"] = { name = name, arguments = arguments } }
end

local function tools_of(tools, schema)
  if type(tools) ~= "table" then return nil end
  local list = json.list {}
  for _, tool in ipairs(tools) do
    if type(tool) == "table" and type(tool.name) == "string" then
      list[#list + 1] = { type = "function",
        ["function"] = { name = tool.name, description = tool.description, parameters = tool[schema] } }
    end
  end
  return #list > 0 and list or nil
end

-- Anthropic messages ------------------------------------------------------------------------------

--- One message can hold the results of several tools beside its text.
local function add_message(thread, message)
  local calls, texts = json.list {}, {}
  for _, block in ipairs(type(message.content) == "table" and message.content or {}) do
    if block.type == "tool_use" then
      calls[#calls + 1] = call_of(block.id, block.name, json.encode(block.input or {}))
    elseif block.type == "tool_result" then
      thread[#thread + 1] = { role = "tool", tool_call_id = block.tool_use_id, content = text_of(block.content) }
    elseif type(block.text) == "string" then
      texts[#texts + 1] = block.text
    end
  end
  local text = type(message.content) == "string" and message.content or table.concat(texts, "\n")
  if text ~= "" or #calls > 0 then
    thread[#thread + 1] = { role = message.role, content = text, tool_calls = #calls > 0 and calls or nil }
  end
end

local function messages(body)
  local thread = json.list {}
  if text_of(body.system) ~= "" then thread[1] = { role = "system", content = text_of(body.system) } end
  for _, message in ipairs(body.messages) do add_message(thread, message) end
  return { messages = thread, tools = tools_of(body.tools, "input_schema") }
end

-- Responses ---------------------------------------------------------------------------------------

local function add_item(thread, item)
  if item.type == "function_call" then
    local last = thread[#thread]
    if not last or not last.tool_calls then
      last = { role = "assistant", content = "", tool_calls = json.list {} }
      thread[#thread + 1] = last
    end
    last.tool_calls[#last.tool_calls + 1] = call_of(item.call_id, item.name, item.arguments or "{}")
  elseif item.type == "function_call_output" then
    thread[#thread + 1] = { role = "tool", tool_call_id = item.call_id, content = text_of(item.output) }
  elseif item.role then
    thread[#thread + 1] = { role = item.role == "developer" and "system" or item.role, content = text_of(item.content) }
  end
end

--- The items of a request; a text stands for the user's message.
local function items_of(body)
  if type(body.input) == "string" then return json.list { { role = "user", content = body.input } } end
  return type(body.input) == "table" and body.input or nil
end

local function responses(body)
  local thread = json.list {}
  if type(body.instructions) == "string" then thread[1] = { role = "system", content = body.instructions } end
  for _, item in ipairs(items_of(body)) do add_item(thread, item) end
  return { messages = thread, tools = tools_of(body.tools, "parameters") }
end

-- completions of a prompt --------------------------------------------------------------------------

--- A prompt is a text, or a list of texts or tokens; each stands for the user's message.
local function prompts_of(body)
  local list = json.list {}
  for i, prompt in ipairs(type(body.prompt) == "table" and body.prompt or { body.prompt }) do
    list[i] = { role = "user", content = prompt }
  end
  return #list > 0 and list or nil
end

local function prompts(body)
  local thread = json.list {}
  for i, message in ipairs(prompts_of(body)) do thread[i] = { role = "user", content = text_of(message.content) } end
  return { messages = thread }
end

-- all ---------------------------------------------------------------------------------------------

local CHATS <const> = { messages = messages, completions = prompts, responses = responses }
--- The member of a request that has its messages, unless it is `messages`.
local MEMBERS <const> = { completions = { "prompt", prompts_of }, responses = { "input", items_of } }

--- nil and what is wrong if there are no messages.
function other.chat(body, protocol)
  local member = MEMBERS[protocol]
  local list = member and member[2](body) or body.messages
  if type(list) ~= "table" then
    return nil, (member and member[1] or "messages") .. ": expected a list of at least one message"
  end
  local chat = CHATS[protocol](body)
  chat.model, chat.stream, chat.stream_options = body.model, body.stream, body.stream_options
  chat.max_tokens = body.max_tokens or body.max_output_tokens
  return chat
end

--- The request with the messages that the run has; what goes with them is the rest.
function other.saved(body, protocol)
  local request, member = {}, MEMBERS[protocol]
  for key, value in pairs(body) do request[key] = value end
  if member then request.messages, request[member[1]] = member[2](body), nil end
  return request
end

return other
