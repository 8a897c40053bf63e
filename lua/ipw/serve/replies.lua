--- ipw.serve.replies: finds the reply of a saved run for a client's request.
--
-- The index has a digest of each message of each request and the place of each reply in events.jsonl; a reply is
-- read when it is asked for, so that memory grows with the number of messages and not with their length. Numbers are
-- equal by value (a client in JavaScript sends 0 for 0.0), and null is the same as nothing.
--
-- A request gets the reply of a saved request that is equal in everything that affects a reply; else of one with equal
-- messages. If several are equal (epochs, repeats), their replies are given in file order; then the last one is given
-- again.

local core = require "ipw.core.export"
local json = require "ipw.core.json"
local text = require "ipw.core.text"

local replies = {}
replies.__index = replies

local MOST_TEXTS = 64 -- different messages that are read to find the nearest request

--- Numbers by value, without nulls.
local function plain(value)
  if type(value) == "number" then return math.tointeger(value) or value end
  if type(value) ~= "table" then return value end
  local out = getmetatable(value) and json.list {} or {}
  for key, one in pairs(value) do
    if one ~= json.null then out[key] = plain(one) end
  end
  return out
end

local function digest(value) return text.digest(json.encode(plain(value))) end

--- All of a request that affects its reply, but for the messages.
local OF_TRANSPORT = { messages = true, stream = true, stream_options = true }
local function digest_of_rest(request)
  local rest = {}
  for key, value in pairs(request or {}) do
    if not OF_TRANSPORT[key] then rest[key] = value end
  end
  return digest(rest)
end

-- The chain of a request: its i-th entry stands for its first i messages. A request that continues another has entries
-- of its own only behind the `kept` messages that both share.

local function link(before, message) return text.digest(before .. digest(message)) end

local function chain_at(asked, i)
  if i == 0 then return "" end
  while i <= asked.kept do asked = asked.before end
  return asked.chain[i - asked.kept]
end

--- Equal messages of another protocol are another request.
local function in_protocol(key, protocol) return protocol and protocol ~= "chat" and protocol .. " " .. key or key end

-- building ----------------------------------------------------------------------------------------

local function begin_query(self, index, id)
  local query = { index = index, id = id or "?", turns = 0 }
  self.live[index] = query
  return query
end

local function add_model(self, name)
  if type(name) ~= "string" or name == "" or self.has_model[name] then return end
  self.has_model[name] = true
  self.models[#self.models + 1] = name
end

local function add_request(self, event, offset)
  local query = self.live[event.query] or begin_query(self, event.query)
  local before, data = query.last, event.data or {}
  local kept = math.min(math.max(data.messages_kept or 0, 0), before and before.n or 0)
  local asked = { query = query, attempt = event.attempt or 1, span = event.span, at = offset, before = before,
    kept = kept, chain = {}, rest = digest_of_rest(data.request) }
  local key = before and chain_at(before, kept) or ""
  for i, message in ipairs(data.messages or {}) do
    key = link(key, message)
    asked.chain[i] = key
  end
  asked.n = kept + #asked.chain
  key = in_protocol(key, data.protocol)
  if asked.attempt <= 1 then query.turns = query.turns + 1 end
  asked.turn, query.last = query.turns, asked
  add_model(self, data.request and data.request.model or event.model)
  self.asked[#self.asked + 1] = asked
  self.by_messages[key] = self.by_messages[key] or {}
  table.insert(self.by_messages[key], asked)
end

local function add_end(self, event, offset)
  local query = self.live[event.query]
  local asked = query and query.last
  while asked and (asked.span ~= event.span or asked.end_at) do asked = asked.before end
  if not asked then return end
  asked.end_at, asked.outcome = offset, event.outcome
  if replies.can_give(self, asked) then self.count = self.count + 1 end
end

local adds = {
  query_start = function(self, event) begin_query(self, event.query, event.id) end,
  query_end = function(self, event) self.live[event.query] = nil end,
  lm_inference_start = add_request,
  lm_inference_end = add_end,
}

--- with_failures: failed attempts count as replies.
function replies.open(reader, with_failures)
  local self = setmetatable({ reader = reader, with_failures = with_failures, asked = {}, by_messages = {}, live = {},
    models = {}, has_model = {}, count = 0 }, replies)
  for event, offset in core.each_event, reader do
    local add = adds[event.event]
    if add then add(self, event, offset) end
  end
  self.live = nil
  return self
end

function replies:can_give(asked)
  if not asked.end_at or asked.outcome == "cancelled" then return false end
  return asked.outcome == "ok" or self.with_failures == true
end

-- finding -----------------------------------------------------------------------------------------

--- The first request whose reply was not given yet, else the last one.
local function choose(best, asked) return (not best or best.given) and asked or best end

local function chain_of(messages)
  local chain, key = {}, ""
  for i, message in ipairs(messages) do
    key = link(key, message)
    chain[i] = key
  end
  return chain
end

--- The number of equal messages at the beginning.
local function alike(chain, asked)
  local i = 0
  while i < #chain and i < asked.n and chain[i + 1] == chain_at(asked, i + 1) do i = i + 1 end
  return i
end

--- The i-th message of a saved request; nil: it has none.
local function message_at(self, asked, i)
  if i > asked.n then return nil end
  while i <= asked.kept do asked = asked.before end
  local event = core.event_at(self.reader, asked.at)
  return event.data and event.data.messages and event.data.messages[i - asked.kept]
end

local function text_at(self, asked, i)
  local message = message_at(self, asked, i)
  return message and json.encode(plain(message)) or nil
end

local function common(a, b)
  local i, most = 0, math.min(#(a or ""), #(b or ""))
  while i < most and a:byte(i + 1) == b:byte(i + 1) do i = i + 1 end
  return i
end

--- The request with the most equal messages at the beginning. Of several: the one whose next message has the longest
--- equal beginning, then one with the same number of messages.
local function find_nearest(self, chain, messages)
  local most, same = 0, {}
  for i, asked in ipairs(self.asked) do
    same[i] = alike(chain, asked)
    most = math.max(most, same[i])
  end
  local own = messages[most + 1] and json.encode(plain(messages[most + 1]))
  local best, nearest, seen, read = 0, nil, {}, 0
  for i, asked in ipairs(self.asked) do
    local kind = (most < asked.n and chain_at(asked, most + 1) or "") .. tostring(asked.n == #chain)
    if same[i] == most and not seen[kind] and read < MOST_TEXTS then
      seen[kind], read = true, read + 1
      local score = 2 * common(own, text_at(self, asked, most + 1)) + (asked.n == #chain and 1 or 0) + 1
      if score > best then best, nearest = score, asked end
    end
  end
  return nearest, most
end

local function say_nearest(self, chain, messages)
  local asked, at = find_nearest(self, chain, messages)
  if not asked then return nil end
  return { query = asked.query, turn = asked.turn, message = at,
    text = core.say_message(at, text_at(self, asked, at + 1),
      messages[at + 1] and json.encode(plain(messages[at + 1])) or nil) }
end

local function say_failed(self, asked)
  local said = "its end is not in the saved run"
  if asked.end_at then
    local why = core.event_at(self.reader, asked.end_at).error
    said = ("it failed (%s%s)"):format(asked.outcome, type(why) == "string" and ": " .. why or "")
  end
  return { query = asked.query, turn = asked.turn, text = said }
end

--- The reply to a request: { query, turn, attempt, by = "request" or "messages", event, data }; or nil and the nearest
--- request: nil (there is none), or { query, turn, message, text }, where `message` is the number of the first message
--- that differs, from 0 (nil: all are equal, but there is no reply) and `text` says how.
function replies:find(request, protocol)
  local chain = chain_of(request.messages)
  local key = in_protocol(chain[#chain] or "", protocol)
  local rest, whole, messages, any = digest_of_rest(request), nil, nil, nil
  for _, asked in ipairs(self.by_messages[key] or {}) do
    any = asked
    if self:can_give(asked) then
      messages = choose(messages, asked)
      if asked.rest == rest then whole = choose(whole, asked) end
    end
  end
  local asked = whole or messages
  if asked then
    local event = core.event_at(self.reader, asked.end_at)
    asked.given = true
    return { query = asked.query, turn = asked.turn, attempt = asked.attempt, by = whole and "request" or "messages",
      event = event, data = event.data or {} }
  end
  if any then return nil, say_failed(self, any) end
  return nil, say_nearest(self, chain, request.messages)
end

return replies
