--- ipw.serve.scripted: answers of a model that is written in Lua.
--
-- A token is up to four bytes of text that end between characters. completion_tokens counts these pieces of a reply
-- (text, and name and arguments of calls); prompt_tokens is a fourth of the bytes of the compact JSON of `messages` and
-- `tools`, rounded up. The first token is due `ttft_s` after the request, each further one `itl_s` later.

local answer = require "ipw.serve.answer"
local json   = require "ipw.core.json"

local scripted = {}

local TOKEN_BYTES = 4

local FINISHES = { stop = true, length = true, tool_calls = true, content_filter = true }

--- Bytes of the character at `at`; one of a byte that begins none.
local function width(text, at)
  local first = text:byte(at)
  local n = first < 0xC2 and 1 or first < 0xE0 and 2 or first < 0xF0 and 3 or first < 0xF5 and 4 or 1
  for i = 1, n - 1 do
    if (text:byte(at + i) or 0) & 0xC0 ~= 0x80 then return 1 end
  end
  return n
end

--- The tokens of a text: as many whole characters as fit into four bytes, at least one.
local function tokens_of(text)
  local tokens, at = {}, 1
  while at <= #text do
    local n = 0
    while n < TOKEN_BYTES and at + n <= #text do
      local more = width(text, at + n)
      if n > 0 and n + more > TOKEN_BYTES then break end
      n = n + more
    end
    tokens[#tokens + 1] = text:sub(at, at + n - 1)
    at = at + n
  end
  return tokens
end

local function cut_at_stops(text, stops)
  for _, stop in ipairs(stops) do
    local hit = type(stop) == "string" and stop ~= "" and text:find(stop, 1, true)
    if hit then text = text:sub(1, hit - 1) end
  end
  return text
end

local function calls_of(said, ask)
  local calls = {}
  for i, call in ipairs(type(said) == "table" and said or {}) do
    local name, arguments = type(call) == "table" and call.name, type(call) == "table" and call.arguments
    if type(name) ~= "string" then error(("the model's calls[%d].name is not a string"):format(i), 0) end
    -- A text is passed on as it is, so that a model in Lua can behave like one that makes mistakes.
    if arguments == nil or arguments == json.null then arguments = "{}"
    elseif type(arguments) ~= "string" then arguments = json.encode(arguments) end
    calls[i] = { id = ("call_%s_%d"):format(ask.id, i - 1), name = name, arguments = arguments,
      name_tokens = #tokens_of(name), tokens = tokens_of(arguments) }
  end
  return calls
end

--- Cuts the reply to the limit: whole calls from the end, then text.
local function limit(reply, most)
  local text, calls = #reply.tokens, 0
  for _, call in ipairs(reply.calls) do calls = calls + call.name_tokens + #call.tokens end
  if most and text + calls > most then
    while #reply.calls > 0 and text + calls > most do
      local last = table.remove(reply.calls)
      calls = calls - last.name_tokens - #last.tokens
    end
    for i = #reply.tokens, most + 1, -1 do reply.tokens[i] = nil end
    text, reply.text, reply.finish = #reply.tokens, table.concat(reply.tokens), "length"
  end
  reply.usage = { prompt = reply.prompt_tokens, completion = text + calls }
end

--- The model's table as a reply.
local function reply_of(said, ask)
  local text = said.text
  if text == nil or text == json.null then text = "" end
  if type(text) ~= "string" then error(("the model's text is a %s, not a string"):format(type(text)), 0) end
  text = cut_at_stops(text, ask.stop)
  local calls = calls_of(said.calls, ask)
  local reply = { id = "chatcmpl-" .. ask.id, model = ask.model, text = text, tokens = tokens_of(text), reasoning = "",
    calls = calls, prompt_tokens = ask.prompt_tokens,
    finish = FINISHES[said.finish] and said.finish or #calls > 0 and "tool_calls" or "stop" }
  limit(reply, ask.max_tokens)
  return reply
end

--- due(token): the seconds at which a token, from 0, is due.
local function streamed(reply, how, due)
  local out, token = answer.stream(reply, how), 0
  local function last() return due(math.max(token - 1, 0)) end
  out:text("content", "", 0.0)
  for _, piece in ipairs(reply.tokens) do
    out:text("content", piece, due(token))
    token = token + 1
  end
  for i, call in ipairs(reply.calls) do
    token = token + call.name_tokens -- the name is complete with its last token
    out:call(i, "", true, last())
    for _, piece in ipairs(call.tokens) do
      out:call(i, piece, false, due(token))
      token = token + 1
    end
  end
  out:finish(last(), last(), last())
  return { status = 200, stream = true, parts = out.parts, by = "model" }
end

local function refusal(model, ask)
  if ask.model ~= model.name then
    return answer.error(404, ("the model '%s' does not exist; this server has '%s'"):format(ask.model:sub(1, 80),
      model.name))
  elseif ask.format and not model.response_format then -- a client that requests JSON parses the reply
    return answer.error(400, ("response_format: the model '%s' does not honour '%s'; leave it out, or use " ..
      '{"type": "text"}'):format(model.name, ask.format:sub(1, 40)))
  elseif ask.pictures and not model.pictures then
    return answer.error(400, "image_url: the model does not read pictures; leave them out, or give the model's " ..
      "file the field pictures = true")
  elseif ask.logprobs then
    return answer.error(400, "logprobs: this server has none; leave it out")
  end
end

--- An answerer for a model's table { name, reply, response_format, pictures }:
--- { models, answer(ask, created, number) }.
function scripted.open(model, path, times)
  if type(model) ~= "table" then error(path .. ": a model file must return a table", 0) end
  if type(model.reply) ~= "function" then error(path .. ": the model has no function 'reply'", 0) end
  model.name = type(model.name) == "string" and model.name or path:match "([^/.]+)%.?[^/]*$"
  local function due(token) return times.ttft_s + token * times.itl_s end
  return {
    models = { model.name },
    answer = function(ask, created, number)
      local refused = refusal(model, ask)
      if refused then return refused end
      local said = model.reply(ask.body, { number = number })
      if type(said) ~= "table" then error(("%s: reply() gave a %s, not a table"):format(path, type(said)), 0) end
      local reply = reply_of(said, ask)
      local how = { created = created, fingerprint = times.fingerprint, include_usage = ask.include_usage,
        protocol = ask.protocol }
      if ask.stream then return streamed(reply, how, due) end
      return { status = 200, parts = { answer.whole(reply, how), due(math.max(reply.usage.completion - 1, 0)) },
        by = "model" }
    end,
  }
end

return scripted
