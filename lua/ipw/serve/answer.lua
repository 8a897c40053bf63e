--- ipw.serve.answer: the one writer of chat completions, and of completions of a prompt.
--
-- An answer is { status, parts, stream, breaks, note }. parts is a flat list of texts and the seconds after the request
-- at which each is due; the server holds it back until then. A reply is
-- { id, model, text, reasoning, calls = { { id, name, arguments } }, finish, usage, timings, logprobs }, with texts as
-- arguments. What is nil is left out.

local json = require "ipw.core.json"

local null = json.null
local answer = {}

--- An answer that is JSON, at once or after `due_s`.
function answer.json(value, status, due_s)
  return { status = status or 200, parts = { json.encode(value), due_s or 0.0 } }
end

--- {"error": {"code", "message", "param", "type"}}; the words follow from the status.
function answer.error(status, message, due_s)
  return answer.json({ error = { code = status == 404 and "not_found" or null, message = message, param = null,
    type = status >= 500 and "server_error" or "invalid_request_error" } }, status, due_s)
end

local function usage_of(usage)
  if not usage or not (usage.prompt or usage.completion or usage.total) then return nil end
  local total = usage.total or usage.prompt and usage.completion and usage.prompt + usage.completion
  return { completion_tokens = usage.completion or null, prompt_tokens = usage.prompt or null,
    total_tokens = total or null, cost = usage.cost,
    completion_tokens_details = usage.reasoning and { reasoning_tokens = usage.reasoning } or nil,
    prompt_tokens_details = usage.cached and { cached_tokens = usage.cached } or nil }
end

local function logprobs_of(reply) return reply.logprobs and { content = json.list(reply.logprobs) } or nil end

local function names_of(reply, how, object)
  return { created = how.created, id = reply.id, model = reply.model, object = object,
    system_fingerprint = how.fingerprint }
end

--- A completion of a prompt has a text in the place of a message.
local function text_choice(text, finish)
  return { finish_reason = finish or null, index = 0, logprobs = null, text = text }
end

local OTHERS <const> = { messages = true, responses = true }

--- The whole answer as JSON text. `how`: { created, fingerprint, include_usage, protocol }.
function answer.whole(reply, how)
  if OTHERS[how.protocol] then return require("ipw.serve.other_answer").whole(reply, how) end
  local document = names_of(reply, how, how.protocol == "completions" and "text_completion" or "chat.completion")
  document.timings, document.usage = reply.timings, usage_of(reply.usage)
  if how.protocol == "completions" then
    document.choices = { text_choice(reply.text, reply.finish) }
    return json.encode(document)
  end
  local message = { role = "assistant", content = (reply.text ~= "" or #reply.calls == 0) and reply.text or null,
    reasoning_content = reply.reasoning ~= "" and reply.reasoning or nil }
  for i, call in ipairs(reply.calls) do
    message.tool_calls = message.tool_calls or {}
    message.tool_calls[i] = { id = call.id, type = "function",
      ["function"] = { name = call.name, arguments = call.arguments } }
  end
  document.choices = { { finish_reason = reply.finish or null, index = 0, message = message,
    logprobs = logprobs_of(reply) } }
  return json.encode(document)
end

--- A stream of events: each method adds one, due after `due_s`, to `parts`.
local stream = {}
stream.__index = stream

--- The events of a completion of a prompt have texts.
local texts = setmetatable({}, { __index = stream })
texts.__index = texts

function answer.stream(reply, how)
  if OTHERS[how.protocol] then return require("ipw.serve.other_answer").stream(reply, how) end
  local of_prompt = how.protocol == "completions"
  local names = names_of(reply, how, of_prompt and "text_completion" or "chat.completion.chunk")
  names.usage = how.include_usage and null or nil
  return setmetatable({ reply = reply, how = how, parts = {}, names = names,
    tail = "," .. json.encode(names):sub(2) .. "\n\n" }, of_prompt and texts or stream)
end

function stream:add(text, due_s)
  local n = #self.parts
  self.parts[n + 1], self.parts[n + 2] = text, due_s
end

--- The role is sent once, with the first event that has a place for it.
function stream:role()
  if self.has_role then return nil end
  self.has_role = true
  return "assistant"
end

function stream:delta(delta, due_s)
  self:add(('data: {"choices":[{"delta":%s,"finish_reason":null,"index":0}]%s'):format(json.encode(delta), self.tail),
    due_s)
end

--- key: "content" or "reasoning_content".
function stream:text(key, text, due_s) self:delta({ [key] = text, role = self:role() }, due_s) end

--- A piece of the arguments of the reply's i-th call, from 1. The first piece (`begins`) has id and name.
function stream:call(i, arguments, begins, due_s)
  local call = self.reply.calls[i]
  self:delta({ role = self:role(), tool_calls = { { index = i - 1, id = begins and call.id or nil,
    type = begins and "function" or nil,
    ["function"] = { arguments = arguments, name = begins and call.name or nil } } } }, due_s)
end

function stream:event(document, due_s)
  for key, value in pairs(self.names) do
    if document[key] == nil then document[key] = value end
  end
  self:add("data: " .. json.encode(document) .. "\n\n", due_s)
end

function stream:last_choice()
  local role = self:role()
  return { delta = role and { role = role } or {}, finish_reason = self.reply.finish or null, index = 0,
    logprobs = logprobs_of(self.reply) }
end

--- Such a completion has no reasoning and no calls.
function texts:text(key, text, due_s)
  self.has_role = true
  if key == "content" then self:event({ choices = { text_choice(text) } }, due_s) end
end
function texts:call() end
function texts:last_choice() return text_choice("", self.reply.finish) end

--- The finish reason, the usage if it was asked for and is known, and the end mark, each with its time.
function stream:finish(finish_s, usage_s, done_s)
  self:event({ choices = { self:last_choice() }, timings = self.reply.timings }, finish_s)
  local usage = self.how.include_usage and usage_of(self.reply.usage)
  if usage then self:event({ choices = json.list {}, usage = usage }, usage_s) end
  self:add("data: [DONE]\n\n", done_s)
end

return answer
