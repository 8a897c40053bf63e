--- ipw.mcp_stdio: the messages of an MCP server that is a child process: one JSON object a line.
--
-- A transport of ipw.mcp: exchange(message, seconds, extra) sends a request and returns its answer, or nil, a
-- reason and a word ("timeout", "gone", "flood"); tell(message) sends what has no answer; close() ends it.
-- Several requests can be under way: the core gives each line to the one whose number it has
-- (src/script/lib_child.c), and lines that are no answer to any of them.

local core = require "ipw.core.child"
local json = require "ipw.json"
local run  = require "ipw.core.run"

local MESSAGES_MAX = 10000       -- between two answers
local TIMEOUTS_MAX = 2           -- in a row, and nothing else is under way; then it counts as gone

local UNREADABLE = {}            -- in place of the version

local Stdio = {}
Stdio.__index = Stdio

function Stdio:close()
  if self.child then core.close(self.child) end
  self.child = nil
end

--- It gave no sign of life: it is ended, for all that wait for it.
function Stdio:lose(why, word)
  if self.gone then return nil, self.gone, "gone" end
  self.gone = why
  self:close()
  return nil, why, word or "gone"
end

function Stdio:tell(message)
  return core.send(self.child, json.encode(message) .. "\n")
end

--- What a server asks or tells of its own accord.
function Stdio:hear(message)
  if message.method == "notifications/progress" and type(message.params) == "table" then
    self.progress[message.params.progressToken or 0] = message.params
  elseif message.id ~= nil and message.method == "ping" then
    self:tell { jsonrpc = "2.0", id = message.id, result = json.object {} }
  elseif message.id ~= nil then
    self:tell { jsonrpc = "2.0", id = message.id, error = { code = -32601, message = "Method not found" } }
  end
end

--- No answer in time: the request is cancelled.
function Stdio:late(message, seconds)
  self.timeouts = self.timeouts + 1
  local why = ("no answer within %g s"):format(seconds)
  local seen = self.progress[message.id]
  if seen and type(seen.progress) == "number" then
    why = ("%s (progress %g%s)"):format(why, seen.progress,
      type(seen.total) == "number" and (" of %g"):format(seen.total) or "")
  end
  if message.method ~= "initialize" and message.method ~= "server/discover" then
    self:tell { jsonrpc = "2.0", method = "notifications/cancelled",
                params = { requestId = message.id, reason = "timeout" } }
  end
  if self.timeouts >= TIMEOUTS_MAX and self.under_way == 1 then self:lose(why .. ", twice in a row") end
  return nil, why, "timeout"
end

--- The number of a line that cannot be decoded, such as one that is nested too deep.
local function number_of(line)
  return math.tointeger(tonumber(line:sub(1, 200):match '"id"%s*:%s*(%d+)' or line:sub(-100):match '"id"%s*:%s*(%d+)'))
end

function Stdio:answer(message, seconds)
  local stop = run.now() + seconds
  while self.child do
    local mine = self.waiting[message.id]
    if mine ~= true then return mine.jsonrpc ~= UNREADABLE and mine or nil, mine.why end
    local line, why, word = core.receive(self.child, math.max(0, stop - run.now()), message.id)
    if word == "timeout" then return self:late(message, seconds) end
    if not line then return self:lose(why) end
    self.messages = self.messages + 1
    local said, unreadable = json.decode(line)
    if unreadable then
      said = { id = number_of(line), jsonrpc = UNREADABLE, why = "its answer cannot be read: " .. unreadable }
    end
    if type(said) == "table" and type(said.method) == "string" then
      self:hear(said)
    elseif type(said) == "table" and said.id ~= nil and self.waiting[said.id] then
      self.waiting[said.id] = said -- of another request, if that one did not wait at this moment
      self.timeouts, self.messages = 0, 0
    end
    if self.messages > MESSAGES_MAX then
      return self:lose(("more than %d messages and no answer"):format(MESSAGES_MAX), "flood")
    end
  end
  return nil, self.gone, "gone"
end

function Stdio:exchange(message, seconds)
  if not self.child then return nil, self.gone, "gone" end
  self.waiting[message.id], self.under_way = true, self.under_way + 1
  local _ <close> = setmetatable({}, { __close = function()
    self.waiting[message.id], self.progress[message.id] = nil, nil
    self.under_way = self.under_way - 1
  end })
  local ok, why = self:tell(message)
  if not ok then return self:lose(why) end
  return self:answer(message, seconds)
end

--- Starts the server of that number.
return function(number)
  local child, why = core.open(number)
  if not child then return nil, why end
  return setmetatable({ child = child, timeouts = 0, messages = 0, under_way = 0, waiting = {}, progress = {} }, Stdio)
end
