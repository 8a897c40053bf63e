--- ipw.span: intervals of time that a script names; scripts use ipw.event.
local core = require "ipw.core.span"
local json = require "ipw.core.json"

local Span = {}
Span.__index = Span

--- The data as JSON text; events.jsonl needs an object there.
local function encoded(data)
  if data == nil then return nil end
  local text = type(data) == "table" and json.encode(data)
  if not text or text:byte() ~= 123 then -- {
    error("ipw.event: data: expected a table of names and values", 3) -- level 3: the script's line
  end
  return text
end

--- Ends the span, which else ends with its scope or the query.
---@param outcome? string default "ok"
---@param data? table stored in events.jsonl
function Span:finish(outcome, data)
  if self.ended then return end
  local text = encoded(data)
  self.ended = true
  core.finish(self.id, self.name, outcome or "ok", nil, text)
end

--- An error value as one line.
local function reason(err)
  local text = tostring(type(err) == "table" and err.message or err)
  return (text:sub(1, 500):gsub("%s+", " "))
end

function Span:__close(err)
  if self.ended then return end
  self.ended = true
  if err == nil then
    core.finish(self.id, self.name, "ok")
  else
    local cancelled = type(err) == "table" and err.code == "cancelled"
    core.finish(self.id, self.name, cancelled and "cancelled" or "error", reason(err))
  end
end

--- Opens a span; or runs a function inside a span and returns its results. ipw.event calls this
--- function as a tail call, so that error levels count from the script.
return function(name, data, fn)
  if type(data) == "function" then data, fn = nil, data end
  if type(name) ~= "string" or name == "" then error("ipw.event: expected a name", 2) end
  if fn ~= nil and type(fn) ~= "function" then
    error("ipw.event: the third argument must be a function", 2)
  end
  local span = setmetatable({ name = name }, Span)
  span.id = core.start(name, encoded(data))
  if not fn then return span end
  local _ <close> = span
  return fn(span)
end
