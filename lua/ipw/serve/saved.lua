--- ipw.serve.saved: answers from a saved run.
--
-- A reply has its saved text, reasoning, calls, ids, finish reason, usage and timings. A streamed reply is sent event
-- by event, each as long after the request as it was saved (`arrivals`). Without `arrivals` the first and the last
-- token have their saved times, and the others come evenly between. All times are divided by the speed. A whole reply
-- is sent at the end of its attempt.

local answer  = require "ipw.serve.answer"
local core    = require "ipw.core.export"
local null    = require("ipw.core.json").null
local replies = require "ipw.serve.replies"

local saved = {}

-- times -------------------------------------------------------------------------------------------

--- Seconds from the request to an instant of the saved attempt; `otherwise` if it is unknown.
local function since_sent(event, t_ns, otherwise)
  local sent = event.sent_ns
  if sent and sent > 0 and t_ns and t_ns >= sent then return (t_ns - sent) / 1e9 end
  return otherwise
end

local DIGITS = {}
for i, letter in ("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"):gmatch "()(.)" do
  DIGITS[letter:byte()] = i - 1
end

--- The next number of a text in base64 VLQ (as in source maps) and the place behind it; nil: there is none.
local function take_number(text, at)
  local z, shift = 0, 0
  while shift < 60 do
    local digit = DIGITS[text:byte(at)]
    if not digit then return nil end
    at, z = at + 1, z | (digit & 31) << shift
    if digit < 32 then return z & 1 == 1 and -(z >> 1) or z >> 1, at end
    shift = shift + 5
  end
  return nil
end

local KINDS = { [0] = "other", "text", "reasoning", "arguments", "call" }

--- The saved events of a stream: { kind, bytes, after_s (of the first event) }.
local function arrivals_of(text)
  local list, at, after_us = {}, 1, 0
  while true do
    local since, next_at = take_number(text, at)
    local what, behind = take_number(text, next_at or #text + 1)
    local kind = what and what >= 0 and KINDS[what & 7]
    if not since or since < 0 or not kind then return list end
    at, after_us = behind, after_us + since
    list[#list + 1] = { kind = kind, bytes = what >> 3, after_s = after_us / 1e6 }
  end
end

-- a reply in pieces -------------------------------------------------------------------------------

local sender = {}
sender.__index = sender

--- The end of the next n bytes of a text behind `at`, or of a few more: characters stay whole.
local function whole_characters(text, at, n)
  local to = n < #text - at and at + n or #text
  while to < #text and text:byte(to + 1) & 0xC0 == 0x80 do to = to + 1 end
  return to
end

--- Sends the next n bytes of "text" or "reasoning"; returns how many it sent.
function sender:send(what, n, due_s)
  local text, at = self.reply[what], self.at[what]
  local to = whole_characters(text, at, n)
  if to == at then return 0 end
  self.out:text(what == "text" and "content" or "reasoning_content", text:sub(at + 1, to), due_s)
  self.at[what], self.last_s = to, due_s
  return to - at
end

function sender:begin_calls(n, due_s)
  while n > 0 and self.begun < #self.reply.calls do
    self.begun, n, self.last_s = self.begun + 1, n - 1, due_s
    self.out:call(self.begun, "", true, due_s)
  end
end

--- Sends the next n bytes of the calls' arguments, one call after the other, as far as they have begun.
function sender:send_arguments(n, due_s)
  while n > 0 and self.call <= self.begun do
    local text = self.reply.calls[self.call].arguments
    local to = whole_characters(text, self.at.call, n)
    local sent = to - self.at.call
    if sent > 0 then
      self.out:call(self.call, text:sub(self.at.call + 1, to), false, due_s)
      self.at.call, self.last_s = to, due_s
    end
    n = n - sent
    if to >= #text then
      if self.call == #self.reply.calls then return end
      self.call, self.at.call = self.call + 1, 0
    end
  end
end

function sender:send_rest()
  local due_s = self.last_s
  self:send("reasoning", math.huge, due_s)
  self:send("text", math.huge, due_s)
  self:begin_calls(math.huge, due_s)
  self:send_arguments(math.huge, due_s)
end

function sender:finish()
  local tail = self.tail
  local finish_s = tail[1] or self.last_s
  self.out:finish(finish_s, tail[2] or finish_s, tail[#tail] or self.last_s)
end

--- By the saved time of every event. False: there are none.
function sender:send_arrivals(event, list)
  local first_s, any = since_sent(event, event.first_event_ns, 0.0), false
  for _, one in ipairs(list) do
    local due_s = first_s + one.after_s
    if one.kind == "other" then
      if not any and not self.out.has_role then
        self.out:text("content", "", due_s)
        self.last_s = due_s
      else
        self.tail[math.min(#self.tail + 1, 3)] = due_s -- of the finish, the usage and the end, which is the last
      end
    else
      if one.kind == "call" then self:begin_calls(one.bytes, due_s)
      elseif one.kind == "arguments" then self:send_arguments(one.bytes, due_s)
      else self:send(one.kind, one.bytes, due_s) end
      any, self.tail = true, {}
    end
  end
  return #list > 0
end

--- As many events as were counted; the first and the last at their saved times.
function sender:send_evenly(event)
  local reply = self.reply
  local close_s = since_sent(event, event.t_ns, 0.0)
  local last_s = since_sent(event, event.last_token_ns, close_s)
  local first_s = since_sent(event, event.first_token_ns, last_s)
  local total = #reply.reasoning + #reply.text
  for _, call in ipairs(reply.calls) do total = total + #call.arguments end
  local n, sent = math.min(math.max(event.chunks or 1, 1), math.max(total, 1)), 0
  for i = 1, total > 0 and n or 0 do
    local bytes = total * i // n - sent
    local due_s = n > 1 and first_s + (last_s - first_s) * (i - 1) / (n - 1) or last_s
    sent = sent + bytes
    bytes = bytes - self:send("reasoning", bytes, due_s)
    bytes = bytes - (bytes > 0 and self:send("text", bytes, due_s) or 0)
    if bytes > 0 and #reply.calls > 0 then
      self:begin_calls(math.huge, due_s)
      self:send_arguments(bytes, due_s)
    end
  end
  self.last_s = math.max(self.last_s, last_s)
  self.tail = { close_s }
end

-- answers -----------------------------------------------------------------------------------------

--- The saved reply, with an id and a model if the server sent none.
local function reply_of(found, ask)
  local data, calls = found.data, {}
  for i, call in ipairs(data.calls or {}) do
    calls[i] = { id = call.id or "", name = call.name or "", arguments = call.arguments or "" }
  end
  return { id = data.id or ("chatcmpl-recorded-%d-%d"):format(found.query.index, found.turn),
    model = data.model or ask.model, text = data.text or "", reasoning = data.reasoning or "", calls = calls,
    finish = data.finish, usage = data.usage, timings = data.timings,
    logprobs = data.logprobs and #data.logprobs > 0 and data.logprobs or nil }
end

local function streamed(found, ask, how)
  local reply = reply_of(found, ask)
  local self = setmetatable({ reply = reply, out = answer.stream(reply, how), begun = 0, call = 1, last_s = 0.0,
    at = { text = 0, reasoning = 0, call = 0 }, tail = {} }, sender)
  if not self:send_arrivals(found.event, arrivals_of(found.data.arrivals or "")) then self:send_evenly(found.event) end
  if found.event.outcome ~= "cut" then
    self:send_rest()
    self:finish()
  end
  return { status = 200, stream = true, parts = self.out.parts }
end

--- A failed attempt, as far as a server can repeat it: refused, reset and unreadable attempts are a connection that
--- breaks at the saved time.
local function failed(found, ask, how)
  local event = found.event
  local said = found.data.error or event.error or "failed"
  local close_s = since_sent(event, event.t_ns, 0.0)
  if event.outcome == "http_error" or event.outcome == "context_full" then
    return answer.error(event.status and event.status >= 400 and event.status or 500, said, close_s)
  elseif event.outcome == "server_error" then -- an error object inside a 200
    local text = answer.error(500, said).parts[1]
    return { status = 200, stream = ask.stream, parts = { ask.stream and "data: " .. text .. "\n\n" or text, close_s } }
  elseif event.outcome == "cut" and ask.stream then
    local cut = streamed(found, ask, how)
    cut.breaks = true
    return cut
  end
  return { status = 0, parts = { "", close_s } }
end

local function not_found(nearest)
  local said = "the saved run has no reply to this request"
  if not nearest then
    said = said .. ": it has no requests"
  else
    said = ("%s; %s query %s (%d), turn %d: %s%s"):format(said, nearest.message and "nearest is" or "in",
      nearest.query.id, nearest.query.index, nearest.turn, nearest.text,
      nearest.message and "" or "; --with-failures serves failed attempts")
  end
  local none = answer.json({ error = { code = "not_recorded", message = said, type = "invalid_request_error",
    param = nearest and nearest.message and ("messages[%d]"):format(nearest.message) or "messages",
    nearest = nearest and { message = nearest.message or null, query_id = nearest.query.id,
      query_index = nearest.query.index, turn = nearest.turn } or null } }, 404)
  none.by = "none"
  return none
end

--- A request that was saved with its reply gets this reply, whatever it asked for.
local function lacks_logprobs(found, ask)
  return ask.logprobs and found.by ~= "request" and found.event.outcome == "ok" and not found.data.logprobs
end

local function answer_found(found, ask, how)
  if lacks_logprobs(found, ask) then
    return answer.error(400, "logprobs: the saved reply has none; leave it out")
  elseif found.event.outcome ~= "ok" then
    return failed(found, ask, how)
  elseif ask.stream then
    return streamed(found, ask, how)
  end
  local close_s = since_sent(found.event, found.event.t_ns, 0.0)
  return { status = 200, parts = { answer.whole(reply_of(found, ask), how), close_s } }
end

--- All times of an answer, divided by the speed (0: at once).
local function scale(given, speed)
  for i = 2, #given.parts, 2 do
    given.parts[i] = speed > 0 and given.parts[i] > 0 and given.parts[i] / speed or 0.0
  end
  return given
end
saved.answer_found, saved.scale = answer_found, scale -- for tests

local function check_manifest(reader, path, filler)
  local manifest = core.document(reader, "manifest.json") or {}
  local no_content = manifest.config and manifest.config.no_content
  if (manifest.redacted or no_content) and not filler then
    error(("%s: was %s, so its texts are filler, which no real client asks for. Use --filler to serve them anyway.")
      :format(path, manifest.redacted and "exported with --redact" or "run with --no-content"), 0)
  end
end

--- An answerer for the run of ipw.core.export: { models, answer(ask, created) }. `options`: speed, with_failures,
--- filler.
function saved.open(options)
  local reader, path = core.open(1), core.runs()[1]
  check_manifest(reader, path, options.filler)
  local index = replies.open(reader, options.with_failures)
  if index.count == 0 then error(path .. ": the saved run has no reply of a model", 0) end
  return {
    models = index.models,
    answer = function(ask, created)
      local found, nearest = index:find(ask.saved, ask.protocol)
      if not found then return not_found(nearest) end
      local given = answer_found(found, ask, { created = created, include_usage = ask.include_usage,
        protocol = ask.protocol })
      given.by, given.note = found.by, ("query %d, turn %d, attempt %d, by %s"):format(found.query.index, found.turn,
        found.attempt, found.by)
      return scale(given, options.speed)
    end,
  }
end

return saved
