--- ipw.report.meter: a saved run's energy from the log of a power meter.
--
-- `add_logs` joins the facts of audit/meter_report.h and ipw.report.meter_rows. `document` makes the table of
-- `meter --json` from them, `text` the screen from it;
-- `energy_report` has the keys of the guide for WattsUp meters (docs/power-meter.md).
local export = require "ipw.export"
local json = require "ipw.core.json"
local meter_rows = require "ipw.report.meter_rows"
local numbers = require "ipw.report.numbers"
local quantity = require "ipw.quantity"
local screen = require "ipw.screen"
local values = require "ipw.summary.values"

local meter = {}

local micro, num, or_null = values.micro, values.num, values.or_null
local J_PER_WH = 3600
local FEW_SAMPLES, MANY_SAMPLES = 10, 60

local function watts(joules, seconds) return joules and seconds > 0 and joules / seconds or nil end
local function wh(joules) return joules and joules / J_PER_WH end

--- The joules of queries; nil: those of one are not known.
local function sum_of(queries)
  local sum = 0.0
  for _, query in ipairs(queries) do sum = sum and query.joules and sum + query.joules end
  return sum
end

--- What the logs tell beside the joules: their rows, their clocks, the run's most and least power.
---@param facts table of io.call "meter", its nulls left out
---@param read table of io.call "meter_logs", likewise
---@param clocks table[] of meter_rows.clocks
function meter.add_logs(facts, read, clocks)
  facts.logs = {}
  for i, log in ipairs(read.logs) do
    local clock, columns = clocks[i], json.list {}
    for k, column in ipairs(log.columns) do
      columns[k] = { in_sum = column.in_sum, kind = column.kind, name = column.name }
    end
    facts.logs[i] = {
      bad_rows = log.bad_rows, columns = columns, correlation = clock.correlation, file = log.file,
      first_bad_row = log.first_bad_row, offset_if_other_kind_s = clock.other_s,
      offset_plus_minus_s = clock.plus_minus_s, offset_s = clock.offset_s,
      row_interval_s = clock.correlation and clock.row_s, rows = log.rows,
      rows_are = clock.correlation and (clock.averages and "means" or "instants") or nil,
    }
  end
  for key, x in pairs(meter_rows.powers(read, clocks, facts.joules)) do facts[key] = x end
end

local function log_of(log)
  local out = {}
  for _, key in ipairs { "bad_rows", "columns", "file", "first_bad_row", "rows", "rows_are" } do
    out[key] = or_null(log[key])
  end
  for _, key in ipairs { "correlation", "offset_if_other_kind_s", "offset_plus_minus_s", "offset_s",
    "row_interval_s" } do
    out[key] = num(log[key])
  end
  return out
end

local function logs_of(facts)
  local logs = {}
  for i, log in ipairs(facts.logs) do logs[i] = log_of(log) end
  return logs
end

--- The table of --json.
---@param facts table of io.call "meter", its nulls left out
---@param run string
---@return table
function meter.document(facts, run)
  local seconds, queries = facts.t1_s - facts.t0_s, json.list {}
  for i, query in ipairs(facts.queries) do
    local s = query.t1_s - query.t0_s
    queries[i] = {
      average_watts = num(watts(query.joules, s)), coverage = num(query.coverage), duration_s = num(s),
      energy_joules = micro(query.joules), energy_wh = num(wh(query.joules)),
      provenance = query.joules and query.provenance or json.null, query_id = query.query_id,
      reason = or_null(query.reason),
    }
  end
  return {
    average_watts = num(watts(facts.joules, seconds)), coverage = num(facts.coverage), duration_s = num(seconds),
    energy_joules = micro(facts.joules), energy_wh = num(wh(facts.joules)), idle_joules = micro(facts.idle_joules),
    logs = logs_of(facts), minimum_watts = num(facts.least_w), peak_watts = num(facts.peak_w),
    provenance = facts.provenance, queries = queries, queries_joules = micro(sum_of(facts.queries)), run = run,
    samples = facts.samples, schema_version = 1,
  }
end

--- Why to trust the figures less: the run is short for its meter.
---@param facts table
---@return string[]
function meter.doubts(facts)
  local out, unknown = {}, 0
  for _, query in ipairs(facts.queries) do
    if not query.joules then unknown = unknown + 1 end
  end
  if facts.samples < FEW_SAMPLES then
    out[1] = ("the run is too short for its meter: %s in it; with %d and more its joules are good, with fewer than %d "
      .. "they are rough"):format(numbers.count(facts.samples, "reading"), MANY_SAMPLES, FEW_SAMPLES)
  end
  if unknown > 0 then
    out[#out + 1] = ("%d of %d queries have no joules of their own from this meter"):format(unknown, #facts.queries)
  end
  return out
end

local function date(t_s) return export.date(math.floor(t_s * 1e9 + 0.5)) end

--- The queries of each epoch; its seconds are from the first one's start to the last one's end.
local function epochs_of(facts)
  local by, epochs = {}, {}
  for _, query in ipairs(facts.queries) do
    local epoch = by[query.epoch]
    if not epoch then
      epoch = { epoch = query.epoch, queries = {}, t0_s = math.huge, t1_s = -math.huge }
      by[query.epoch], epochs[#epochs + 1] = epoch, epoch
    end
    epoch.queries[#epoch.queries + 1] = query
    epoch.t0_s, epoch.t1_s = math.min(epoch.t0_s, query.t0_s), math.max(epoch.t1_s, query.t1_s)
  end
  table.sort(epochs, function(a, b) return a.epoch < b.epoch end)
  local out = json.list {}
  for i, epoch in ipairs(epochs) do
    out[i] = { duration_seconds = num(epoch.t1_s - epoch.t0_s), epoch = epoch.epoch, num_runs = #epoch.queries,
               queries_joules = micro(sum_of(epoch.queries)) }
  end
  return out, epochs[#epochs].epoch + 1
end

--- energy_report.json, for the run and for each epoch. per_run is of one query, as the guide calls it.
---@param facts table
---@return table
function meter.energy_report(facts)
  local seconds, n = facts.t1_s - facts.t0_s, #facts.queries
  local epochs, n_epochs = epochs_of(facts)
  local function amount(total)
    return { per_epoch = num(total and total / n_epochs), per_run = num(total and total / n), total = num(total) }
  end
  return {
    duration_seconds = num(seconds), end_timestamp = date(facts.t1_s), energy_joules = amount(facts.joules),
    energy_wh = amount(wh(facts.joules)), epochs = epochs, idle_joules = micro(facts.idle_joules),
    logs = logs_of(facts), num_epochs = n_epochs, num_power_samples = facts.samples, num_runs = n,
    power_watts = { average = num(watts(facts.joules, seconds)), min = num(facts.least_w), peak = num(facts.peak_w) },
    provenance = facts.provenance, queries_joules = micro(sum_of(facts.queries)), start_timestamp = date(facts.t0_s),
    warnings = json.list(meter.doubts(facts)),
  }
end

-- The screen.

local function value(x) return x ~= json.null and x or nil end

local function put_clock(out, log)
  local ahead = ("clock    the log is %.2f s %s the run"):format(math.abs(log.offset_s),
    log.offset_s < 0 and "behind" or "ahead of")
  if not value(log.rows_are) then
    out[#out + 1] = ahead .. " (as told)"
    return
  end
  local means = log.rows_are == "means"
  out[#out + 1] = ("%s (found by its load, to %.2f s; correlation %.3f)"):format(ahead, log.offset_plus_minus_s + 0.01,
    log.correlation)
  out[#out + 1] = ("         rows every %.3g s, each %s"):format(log.row_interval_s,
    means and "the mean since the one before" or "the power at its instant")
  if value(log.offset_if_other_kind_s) then
    out[#out + 1] = ("         (were they %s, the clock would be %.2f s ahead; the joules are the same)"):format(
      means and "instants" or "means", log.offset_if_other_kind_s)
  end
end

local function put_log(out, log)
  local columns = {}
  for _, column in ipairs(log.columns) do
    if column.in_sum then columns[#columns + 1] = screen.cell(column.name, 40) end
  end
  local file = screen.cell(log.file)
  out[#out + 1] = ("log      %s: %s, column %s"):format(file, numbers.count(log.rows, "row"),
    table.concat(columns, " + "))
  if log.bad_rows > 0 then
    out[#out + 1] = ("         %s left out; %s %s"):format(numbers.count(log.bad_rows, "damaged row"), file,
      screen.cell(value(log.first_bad_row) or ""))
  end
  put_clock(out, log)
end

local function si(x, unit) return quantity.si(value(x), unit) end

--- The screen.
---@param doc table of meter.document
---@return string
function meter.text(doc)
  local out = { ("run      %s: %s in %s"):format(screen.cell(doc.run), numbers.count(#doc.queries, "query", "queries"),
    quantity.seconds(doc.duration_s)) }
  for _, log in ipairs(doc.logs) do put_log(out, log) end
  out[#out + 1] = ("samples  %d in the run"):format(doc.samples)
  out[#out + 1] = ("power    average %s, peak %s, minimum %s"):format(si(doc.average_watts, "W"),
    si(doc.peak_watts, "W"), si(doc.minimum_watts, "W"))
  out[#out + 1] = ("energy   %s = %s, %s"):format(si(doc.energy_joules, "J"), si(doc.energy_wh, "Wh"), doc.provenance)
  out[#out + 1] = ("         queries %s, between them %s\n"):format(si(doc.queries_joules, "J"),
    si(doc.idle_joules, "J"))
  out[#out + 1] = ("%-24s %9s %9s %9s %9s  %s"):format("query", "time", "energy", "Wh", "power", "how")
  for _, query in ipairs(doc.queries) do
    out[#out + 1] = ("%s %s %s %s %s  %s"):format(screen.left(screen.cell(query.query_id, 24), 24),
      screen.right(quantity.seconds(query.duration_s), 9), screen.right(si(query.energy_joules, "J"), 9),
      screen.right(si(query.energy_wh, "Wh"), 9), screen.right(si(query.average_watts, "W"), 9),
      value(query.provenance) or value(query.reason) or "")
  end
  return table.concat(out, "\n")
end

return meter
