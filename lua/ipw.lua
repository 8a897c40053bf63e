--- ipw: time, waiting, side-by-side work and notes for agents, tools and datasets.
local run = require "ipw.core.run"
local json = require "ipw.core.json"

local ipw = {}

--- Suspends this task for some seconds; other queries go on meanwhile.
---@param seconds number
ipw.sleep = run.sleep

--- Seconds since the query began, by a clock that never steps.
---@return number
ipw.now = run.now

--- Writes a line to stderr when the run is verbose.
---@param text any
ipw.log = run.log

--- Runs fn(item, index) for each item side by side and returns the results in the list's order.
--- The first branch that raises cancels the others, waits for them, and is raised again.
---@param list any[]
---@param fn fun(item: any, index: integer): any
---@return any[]
ipw.map = run.map

--- The energy that this query has used so far, in joules: gpu_j, cpu_j, dram_j, machine_j (what no
--- sensor tells is nil), the bounds of each (gpu_lo_j, gpu_hi_j, ...: the truth lies between them),
--- until_s (seconds of the query that they cover: sensors lag by up to a tenth of a second) and
--- provenance ("measured", "interpolated", ...: of the least certain one). With several queries in
--- flight it is this query's share; under `--share tokens` an equal one since the first of the calls
--- that are still going on, and "estimated", because what they take is known at their end.
---@return ipw.Energy
function ipw.energy() return require("ipw.core.budget").energy() end

--- What is left of the limits that the command line set for the query and the run (the smaller of
--- the two): tokens_left, turns_left, seconds_left, joules_left, usd_left. nil: no limit.
---@return {tokens_left: integer?, turns_left: integer?, seconds_left: number?, joules_left: number?, usd_left: number?}
function ipw.budget() return require("ipw.core.budget").left() end

--- Names a stretch of the query's time: it becomes a span of the trace with joules of its own, and
--- stands in `ipw-agent replay`. Open one with its scope,
---   local span <close> = ipw.event("retrieve", { k = 5 })
--- or hand over a function, whose results are returned:
---   local hits = ipw.event("retrieve", { k = 5 }, function() return search(query, 5) end)
--- A raise ends it with outcome "error". Model calls, tools and other events may lie inside it.
---@param name string
---@param data? table by name; goes into the record (events.jsonl)
---@param fn? fun(span: ipw.Span): ...
---@return ipw.Span|any ...
function ipw.event(name, data, fn) return require "ipw.span"(name, data, fn) end

-- What the program itself notes means something to those who read the record again.
local taken = " booked clock_step concurrency first_token native_module prompt_truncated script sensor_back" ..
  " sensor_gap sensor_lost sensor_stuck suspend "

--- Puts a note into the run's record (events.jsonl). The names of the program's own notes (`booked`,
--- `first_token`, `suspend`, ...) are taken.
---@param name string
---@param data? table by name
function ipw.note(name, data)
  local text = (data == nil or type(data) == "table") and json.encode(data or {})
  if not text or text:byte() ~= 123 then -- {
    error("ipw.note: data: expected a table of names and values", 2)
  end
  if type(name) == "string" and taken:find(" " .. name .. " ", 1, true) then
    error(("ipw.note: '%s' is a note of the program's own"):format(name), 2)
  end
  run.note(name, text)
end

return ipw
