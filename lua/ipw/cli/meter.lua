--- ipw.cli.meter: `ipw-agent meter RUN --log FILE`: the energy of a run from a power meter's log.

local BEFORE = "before_meter"
local STATUS = { permission = 3, unsupported = 1 }

--- --offset as a number; nil: it is found by the load.
local function offset_of(io, text)
  if not text or text == "auto" then return nil end
  local s = tonumber(text)
  if not s or s ~= s or math.abs(s) == math.huge then
    io.usage("--offset: '%s' is not a number", text:sub(1, 40))
  end
  return s + 0.0
end

local function run(io, o, args)
  local json, path, without_null = require "ipw.core.json", args[1], require("ipw.summary.values").without_null
  if #o.log == 0 then io.usage "--log FILE is needed" end
  local meter, rows = require "ipw.report.meter", require "ipw.report.meter_rows"
  local offset_s, column = offset_of(io, o.offset), o.column or ""
  local read = without_null(io.called(STATUS, "meter_logs", path, column, table.unpack(o.log)))
  local clocks, why = rows.clocks(read, offset_s)
  if not clocks then io.fail(why, STATUS.unsupported) end
  local columns = rows.readings(read, clocks)
  local facts = without_null(io.called(STATUS, "meter", path, rows.told(columns)))
  meter.add_logs(facts, read, clocks)
  if o.book then
    local report = json.encode(meter.energy_report(facts)) .. "\n"
    local plan = require("ipw.merge.metered").plan(io, path, read, clocks, columns, o.replace)
    if plan then io.called(STATUS, "book_meter", path, json.encode(plan), report) end
    for _, doubt in ipairs(meter.doubts(facts)) do io.warn("ipw-agent: warning: " .. doubt) end
    local now = "the meter is its machine domain now; the files as they were are in " .. path .. "/" .. BEFORE
    io.warn(("ipw-agent: %s: %s"):format(path, plan and now
      or "this log is in its books already; nothing changed"))
  end
  local doc = meter.document(facts, path)
  io.say(o.json and json.encode(doc) or meter.text(doc))
end

return {
  usage = "meter [RUN] --log FILE [--column NAME] [--offset S] [--book]",
  about = [[
Compute the energy of a saved run from a power meter's log
(docs/power-meter.md).]],
  more = [[
--book writes the run's files anew, with the meter as one more sensor, and
energy_report.json. The files as they were stay in RUN/before_meter.

Exit status: 0 done, 1 log and run do not match, 2 wrong usage, 3 unreadable
input.]],
  options = {
    { "log", "list", "FILE", "the meter's log; several are added up" },
    { "column", "string", "NAME", "use only this column (default: total, else all)" },
    { "offset", "string", "SECONDS|auto", "how far the log's clock is ahead (default: auto)" },
    { "book", "flag", "enter it in the run's books as its machine domain" },
    { "replace", "flag", "--book: in place of a log that was booked before" },
    { "json", "flag", "print the report as one JSON object" },
  },
  args   = { 0, 1 },
  runs   = "last",
  cpu_s  = 24 * 3600, -- reading a long log is work, not a hang
  memory = "4G",
  failed = 3,
  run    = run,
}
