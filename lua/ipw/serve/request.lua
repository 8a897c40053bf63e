--- ipw.serve.request: what the server needs of a chat completion's request.
--
-- request.read(text) checks a body and gives { body, model, stream, include_usage, format, logprobs, pictures,
-- max_tokens, stop, prompt_tokens, id }, or nil and what is wrong with it. `id` follows from the text, so that ids of
-- answers repeat.

local json = require "ipw.core.json"
local text = require "ipw.core.text"

local request = {}

local TOKEN_BYTES = 4

--- null and nothing are the same.
local function given(value)
  if value == json.null then return nil end
  return value
end

local function fail(...) error({ wrong = (...):format(select(2, ...)) }, 0) end

local function is_list(value) return type(value) == "table" and (#value > 0 or json.encode(value) == "[]") end
local function is_object(value) return type(value) == "table" and not is_list(value) end

local function check_messages(messages)
  if not is_list(messages) or #messages == 0 then fail "messages: expected a list with at least one message" end
  for i, message in ipairs(messages) do
    if not is_object(message) then fail("messages[%d]: expected an object", i - 1) end
    if type(message.role) ~= "string" then fail("messages[%d].role: expected a string", i - 1) end
  end
end

local function has_pictures(messages)
  for _, message in ipairs(messages) do
    if type(message.content) == "table" then
      for _, part in ipairs(message.content) do
        if type(part) == "table" and part.type == "image_url" then return true end
      end
    end
  end
  return false
end

--- The kind of reply that is asked for, unless it is text.
local function format_of(format)
  if format == nil then return nil end
  if type(format) ~= "table" or type(format.type) ~= "string" then
    fail 'response_format: expected an object with a "type"'
  end
  return format.type ~= "text" and format.type or nil
end

local function limit_of(body)
  local limit = given(body.max_completion_tokens)
  if limit == nil then limit = given(body.max_tokens) end
  local whole = math.tointeger(limit)
  if limit ~= nil and (not whole or whole < 1) then fail "max_tokens: expected a positive integer" end
  return whole
end

--- The texts at which a reply ends.
local function stops_of(stop)
  if stop == nil then return {} end
  if type(stop) == "string" then return { stop } end
  if not is_list(stop) then fail "stop: expected a string or a list of strings" end
  return stop
end

local function prompt_tokens(body)
  local bytes = #json.encode(body.messages) + (given(body.tools) and #json.encode(body.tools) or 0)
  return (bytes + TOKEN_BYTES - 1) // TOKEN_BYTES
end

local function read(body_text, protocol)
  local body, why = json.decode(body_text)
  if body == nil then fail("%s", why) end
  if not is_object(body) then fail "expected a JSON object" end
  local other, own = protocol ~= "chat" and require "ipw.serve.other_request", body
  if other then
    body, why = other.chat(own, protocol)
    if not body then fail("%s", why) end
  end
  if type(body.model) ~= "string" then fail "model: expected a string" end
  check_messages(body.messages)
  if given(body.tools) and not is_list(body.tools) then fail "tools: expected a list" end
  if given(body.n) and body.n ~= 1 then fail "n: this server gives one choice only" end
  local stream, options = given(body.stream), given(body.stream_options)
  if stream ~= nil and type(stream) ~= "boolean" then fail "stream: expected true or false" end
  if options ~= nil and not is_object(options) and json.encode(options) ~= "{}" then
    fail "stream_options: expected an object"
  end
  if options and not stream then fail "stream_options is only allowed together with stream" end
  return {
    body = body, saved = other and other.saved(own, protocol) or body, protocol = protocol,
    model = body.model, stream = stream or false,
    include_usage = options and options.include_usage == true or false,
    format = format_of(given(body.response_format)),
    logprobs = body.logprobs == true, pictures = has_pictures(body.messages),
    max_tokens = limit_of(body), stop = stops_of(given(body.stop)),
    prompt_tokens = prompt_tokens(body), id = text.digest(body_text):sub(1, 16),
  }
end

--- The request; or nil and what is wrong. protocol: "chat" (as without one), "completions", "responses", "messages".
function request.read(body_text, protocol)
  local ok, ask = pcall(read, body_text, protocol or "chat")
  if ok then return ask end
  if type(ask) ~= "table" or not ask.wrong then error(ask, 0) end
  return nil, ask.wrong
end

return request
