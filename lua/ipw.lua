--- ipw: time, waiting, parallel work, energy and notes for agents, tools and datasets.
local run = require "ipw.core.run"
local json = require "ipw.core.json"

local ipw = {}

--- Waits.
---@param seconds number
ipw.sleep = run.sleep

--- Seconds since the query began, by a clock that is never set.
---@return number
ipw.now = run.now

--- Writes a line to stderr if the run is verbose.
---@param text any
ipw.log = run.log

--- Runs fn(item, index) for all items in parallel; results in the list's order. If one raises, the others are
--- cancelled.
---@param list any[]
---@param fn fun(item: any, index: integer): any
---@return any[]
ipw.map = run.map

--- The joules of this query so far; with several in flight its share. Sensors lag by up to a tenth of a second.
---@return ipw.Energy
function ipw.energy() return require("ipw.core.budget").energy() end

--- What is left of the limits of the query or the run, whichever is smaller.
---@return ipw.Budget
function ipw.budget() return require("ipw.core.budget").left() end

--- An interval of the query's time, with joules of its own. Open one that ends with its scope:
---   local span <close> = ipw.event("retrieve", { k = 5 })
--- or pass a function, whose results are returned:
---   local hits = ipw.event("retrieve", { k = 5 }, function() return search(query, 5) end)
---@param name string
---@param data? table by name; stored in events.jsonl
---@param fn? fun(span: ipw.Span): ...
---@return ipw.Span|any ...
function ipw.event(name, data, fn) return require "ipw.span"(name, data, fn) end

-- The program's own notes mean something when a saved run is read, so a script cannot use their names.
local taken = " booked clock_step concurrency first_token native_module prompt_truncated script" ..
  " sensor_back sensor_doubted sensor_gap sensor_lost sensor_stuck suspend "

--- Writes a note to events.jsonl, under another name than the program's own notes (docs/trace-format.md, "Notes").
---@param name string
---@param data? table by name
function ipw.note(name, data)
  local text = (data == nil or type(data) == "table") and json.encode(data or {})
  if not text or text:byte() ~= 123 then -- {
    error("ipw.note: data: expected a table of names and values", 2)
  end
  if type(name) == "string" and taken:find(" " .. name .. " ", 1, true) then
    error(("ipw.note: '%s' is the name of a note of the program; use another name"):format(name), 2)
  end
  run.note(name, text)
end

return ipw
