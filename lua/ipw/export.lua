--- ipw.export: saved runs for a format's script, and the output that it writes.
---
--- A format is one Lua file. It returns a table: name, about (what it is for), loses (what of a run it
--- cannot carry), writes ("file", "folder" or "database"), input (its settings, declared as a tool's
--- arguments), and functions that are called in this order: begin(out), then for each run run(out, run),
--- query(out, query, run) for each query, after(out, run); at the end finish(out). Only `query` is needed.
--- wait(out, run) is called when a run that goes on has no further query yet: it sleeps and returns true to
--- wait for the next; without it the export ends there.
---
--- A query is its line of traces.jsonl as a table (docs/trace-format.md); what is not known is nil.
--- query.line is the line's text. A run has path, name, number, manifest, summary (nil while it goes on), and with
--- --prices in `after` repriced (ipw.prices).
local core = require "ipw.core.export"
local json = require "ipw.json"
local prices = require "ipw.prices"
local whole_line = require "ipw.whole_line"

local export = {}

--- The four domains, in a fixed order.
export.domains = { "cpu", "dram", "gpu", "machine" }

--- Joules of a query, turn or span by domain; nil where they are not known.
---@param part table
---@param domain string
---@return number?
function export.joules(part, domain)
  local figure = part.energy and part.energy[domain]
  if figure then return figure.joules end
  return part[("query_%s_energy_joules"):format(domain)] or part[domain .. "_energy_joules"]
end

--- A figure of a query, turn, span or device as its columns: joules, lo, hi, u, provenance, estimate. Where no sensor
--- gave joules, lo and hi are those of a model's estimate, if there is one: then the provenance is "estimated" and
--- `estimate` is its joules. What is not known is nil.
---@param figure table?
---@return table
function export.figure(figure)
  figure = figure or {}
  local estimate = not figure.joules and type(figure.estimate) == "table" and figure.estimate.joules or nil
  return { joules = figure.joules, lo = figure.lo, hi = figure.hi, u = figure.u, estimate = estimate,
           provenance = figure.joules and figure.provenance or estimate and "estimated" or nil }
end

--- Bounds of a member of the summary's objects: lo, hi, u; nil where they are not known.
---@param object table? such as run.summary.totals
---@param key string
---@return number? lo, number? hi, number? u
function export.bounds(object, key)
  local of = object and object.bounds and object.bounds[key] or {}
  return of.lo, of.hi, of.u
end

--- Adds joules as whole microjoules, so that sums have no digits of doubles.
---@param a number? nil: 0
---@param b number
---@return number
function export.add_joules(a, b)
  return ((a or 0) * 1e6 + b * 1e6 + 0.5) // 1 / 1e6
end

--- One row of a CSV file, as RFC 4180 has it. A text that a table program takes for a formula gets a '
--- before it.
---@param values any[]
---@param n integer how many
---@return string
function export.csv_row(values, n)
  local out = {}
  for i = 1, n do
    local value = values[i]
    if value == nil then
      value = ""
    elseif type(value) == "string" then
      if value:find "^[=+@\t\r-]" and not tonumber(value) then value = "'" .. value end
      if value:find '[",\r\n]' then value = '"' .. value:gsub('"', '""') .. '"' end
    elseif math.type(value) == "float" then
      value = json.encode(value)
    end
    out[i] = tostring(value)
  end
  return table.concat(out, ",") .. "\r\n"
end

--- A message's content as text: parts that are no text are named, not carried.
---@param content any
---@return string
function export.text_of(content)
  if type(content) == "string" then return content end
  if type(content) ~= "table" then return "" end
  local out = {}
  for _, part in ipairs(content) do
    if type(part) ~= "table" then part = { text = tostring(part) } end
    out[#out + 1] = part.text or ("[%s]"):format(part.type or "part")
  end
  return table.concat(out, "\n")
end

--- ISO 8601 in UTC with milliseconds, of nanoseconds since 1970.
---@param wall_ns integer
---@return string
function export.date(wall_ns)
  local s, ns = wall_ns // 1000000000, wall_ns % 1000000000
  return os.date("!%Y-%m-%dT%H:%M:%S", s) .. (".%03dZ"):format(ns // 1000000)
end

--- 64 bits that follow from a text (FNV-1a): for ids that shall be the same in a second export.
---@param text string
---@return integer
function export.hash(text) return require("ipw.trace_id").hash(text) end

---@class ipw.ExportQuery
local query_methods = {}

--- The query's events, as in events.jsonl.
---@return table[]
function query_methods:events()
  return core.events(self.run.reader, self.query_index or -1)
end

--- Its model calls in order, as its turns are, each with `messages` (all that were sent), `request` (the body's other
--- members), `reply` (the data of its last attempt's end), `start_ns`, `end_ns` and `tools` (its tool
--- calls: name, call_id, arguments, content, ok, start_ns, end_ns).
---@return table[]
function query_methods:calls()
  local calls, sent, open = {}, {}, {}
  for _, event in ipairs(self:events()) do
    local data, call = event.data or {}, calls[#calls]
    if event.event == "lm_inference_start" then
      local messages = {}
      for i = 1, data.messages_kept or 0 do messages[i] = sent[i] end
      for _, message in ipairs(data.messages or {}) do messages[#messages + 1] = message end
      sent = messages
      if (event.attempt or 1) == 1 or not call then
        calls[#calls + 1] = { messages = messages, request = data.request or {}, tools = {},
                              start_ns = event.t_ns, model = event.model }
      end
    elseif event.event == "lm_inference_end" and call then
      call.reply, call.reply_event, call.end_ns = event.data, event, event.t_ns
    elseif event.event == "tool_call_start" then
      if not call then -- no model was asked before: a turn of its own
        call = { messages = {}, request = {}, tools = {}, start_ns = event.t_ns, end_ns = event.t_ns }
        calls[1] = call
      end
      local tool = { name = event.name, call_id = event.call_id, arguments = data.arguments, start_ns = event.t_ns }
      call.tools[#call.tools + 1] = tool
      open[event.span] = tool
    elseif event.event == "tool_call_end" and open[event.span] then
      local tool = open[event.span]
      tool.content, tool.ok, tool.end_ns, tool.error = data.content, event.ok, event.t_ns, event.error
    end
  end
  return calls
end

--- Nanoseconds since 1970 of an instant, seconds after the query's start. Without the run's clock (no
--- manifest): by the monotonic clock, whose zero is arbitrary.
---@param seconds number
---@return integer
function query_methods:wall_ns(seconds)
  local t_ns = (self.start_ns or 0) + math.floor(seconds * 1e9 + 0.5)
  return self.run:wall_ns(t_ns, self.segment) or t_ns
end

local function plain(t) return setmetatable(t, nil) end

--- The table without the methods, to be encoded.
---@return table
function query_methods:plain()
  local out = {}
  for k, v in pairs(self) do
    if k ~= "run" and k ~= "line" then out[k] = v end
  end
  return plain(out)
end

local query_mt = { __index = query_methods }

---@class ipw.ExportRun
local run_methods = {}
local run_mt = { __index = run_methods }

--- Nanoseconds since 1970 of a stamp t_ns of a session (from 0); nil: the run's clock is not known.
---@param t_ns integer
---@param segment? integer
---@return integer?
function run_methods:wall_ns(t_ns, segment)
  local manifest = self.manifest or {}
  local session = manifest.segments and manifest.segments[(segment or 0) + 1]
  local clock = session and session.clock or manifest.clock
  return clock and clock.wall_ns and clock.mono_ns and t_ns + (clock.wall_ns - clock.mono_ns) or nil
end

--- Watts between a channel's reading and the one before it; nil where they are not known.
local function watts(channel, before, t_ns, value)
  if channel.kind == "gauge" then return value / 1000 end
  if channel.kind ~= "counter" or not before.value or t_ns <= before.t_ns then return nil end
  local uj = value - before.value
  if uj < 0 and (channel.modulus_uj or 0) > 0 then uj = uj + channel.modulus_uj end
  local w = uj * 1000 / (t_ns - before.t_ns)
  if uj < 0 or (channel.max_w or 0) > 0 and w > channel.max_w then return nil end
  return w
end

--- The readings of power.jsonl, one value a step: t_ns, channel (its object of the header), value (raw),
--- watts, segment, and since when the watts hold (of a counter: the reading before it). Once a run.
---@return fun(): integer?, table?, integer?, number?, integer?, integer?
function run_methods:readings()
  local sources, segment, values, before = {}, 0, nil, {}
  local t_ns, source, channels, k = nil, nil, {}, 0
  return function()
    while true do
      while k < #channels do
        k = k + 1
        local value = values[k]
        if value then
          local key = channels[k]
          local was = before[key] or {}
          local w, since = watts(key, was, t_ns, value), was.t_ns or t_ns
          was.t_ns, was.value = t_ns, value
          before[key] = was
          return t_ns, key, value, w, segment, key.kind == "counter" and since or t_ns
        end
      end
      local first, index, row = core.power(self.reader)
      if first == nil then return nil end
      if type(first) == "table" then
        sources, segment, before = first.sources or {}, first.segment or 0, {}
      else
        t_ns, source, values = first, sources[index], row
        channels, k = source and source.channels or {}, 0
      end
    end
  end
end

--- The same for a run of ipw.runs.
export.readings = run_methods.readings

---@class ipw.ExportOutput
local output_methods = {}
local output_mt = { __index = output_methods }

--- Writes the texts.
function output_methods:write(...) core.write(self.handle, ...) end

--- Writes a value as a line of JSON, keys sorted.
---@param value any
function output_methods:json(value) core.write(self.handle, json.encode(value), "\n") end

--- Begins a file of the folder: NAME or FOLDER/NAME. What is written from now on goes there.
---@param name string
function output_methods:file(name) core.begin(self.handle, name) end

--- Runs SQL statements that give no rows.
---@param statements string
function output_methods:sql(statements) core.sql(self.handle, statements) end

--- Creates a table of the database: columns are "name type" texts.
---@param name string
---@param columns string[]
function output_methods:table(name, columns)
  local of = { insert = ('INSERT INTO "%s" VALUES(%s)'):format(name, ("?,"):rep(#columns):sub(1, -2)) }
  for i, column in ipairs(columns) do of[i] = column:match "^%S+" end
  self.columns[name] = of
  self:sql(("CREATE TABLE %s(%s)"):format(name, table.concat(columns, ", ")))
end

--- One row, its values by column.
---@param name string
---@param row table<string, string|number|boolean>
function output_methods:insert(name, row)
  local columns, values = self.columns[name], {}
  for i, column in ipairs(columns) do
    local value = row[column]
    if value == nil then value = json.null end
    values[i] = value
  end
  core.insert(self.handle, columns.insert, values)
end

--- Opens the output of a format; `settings` becomes out.settings.
---@param kind string "file", "folder" or "database"
---@param settings table
---@return ipw.ExportOutput
function export.output(kind, settings)
  return setmetatable({ handle = core.output(kind), columns = {}, settings = settings }, output_mt)
end

local function do_nothing() end

local function next_query(format, out, run, reader)
  while true do
    local goes_on = format.wait and core.goes_on(reader) -- asked first: what it wrote until then is read
    local query, line = core.query(reader, format.lines_only)
    if type(query) == "table" then whole_line(query) end
    if query or not goes_on or not format.wait(out, run) then return query, line end
  end
end

--- Runs a format over runs that are opened one after the other: what the `export` command does.
---@param format table
---@param out table
---@param warn fun(text: string)
function export.run(format, out, warn)
  local paths, redacted = core.runs()
  out.warn = warn
  local before, each, after = format.run or do_nothing, format.query or do_nothing, format.after or do_nothing
  if format.begin then format.begin(out) end
  for number, path in ipairs(paths) do
    local reader = core.open(number)
    local run = setmetatable({ path = path, name = path:match "([^/]+)/*$" or path, number = number,
                               reader = reader, redacted = redacted,
                               manifest = core.document(reader, "manifest.json"),
                               summary = core.document(reader, "summary.json") }, run_mt)
    before(out, run)
    local lines_only = format.lines_only
    while true do
      local query, line = next_query(format, out, run, reader)
      if not query then
        if line then warn(path .. ": a torn last line was left out") end
        break
      end
      if lines_only then
        out:write(line, "\n")
      else
        query.line, query.run = line, run
        prices.add(run, query)
        each(out, setmetatable(query, query_mt), run)
      end
    end
    after(out, run)
    core.close(reader)
  end
  if format.finish then format.finish(out) end
end

return export
