--- ipw.merge.metered: a power meter's log in the books of a saved run (`meter --book`): whether it may be booked, and
--- the plan of the run that the program writes (run/merge/planned_run.h).
---
--- Every booking starts from the files as they were, so the same logs change nothing; other logs are refused, or
--- replace the first ones.
local data = require "ipw.core.data"
local json = require "ipw.core.json"
local median_distance = require("ipw.report.meter_rows").median_distance
local shards = require "ipw.merge.shards"

local get, whole, patched = shards.get, shards.whole, shards.patched

local metered = {}

local function manifest_of(io, folder)
  local text, why = data.read_text(folder .. "/manifest.json")
  local doc
  if text then doc, why = json.decode(text) end
  if type(doc) ~= "table" then io.fail(("%s/manifest.json: %s"):format(folder, why or "is no object"), 3) end
  return doc
end

local function file_of(log) return log.file:match "[^/]*$" end

--- The logs and how they are read.
local function hash_of(read, clocks)
  local text = {}
  for i, log in ipairs(read.logs) do
    text[#text + 1] = ("%.9g\n"):format(clocks[i].offset_s)
    for _, column in ipairs(log.columns) do
      if column.in_sum then
        text[#text + 1] = ("%s %d\n"):format(column.name or "", #column.t)
        for k, t in ipairs(column.t) do text[#text + 1] = ("%.17g %.17g\n"):format(t, column.v[k]) end
      end
    end
  end
  return data.sha256(table.concat(text))
end

-- the manifest ------------------------------------------------------------------------------------

--- The columns in the sum, each with the place of its log.
local function in_sum(read)
  local out = {}
  for i, log in ipairs(read.logs) do
    for _, column in ipairs(log.columns) do
      if column.in_sum then out[#out + 1] = { column = column, log = log, place = i } end
    end
  end
  return out
end

--- The sensor of a column, the meter's number `n`, with the keys of `more`.
local function channel_of(n, from, more)
  local name = from.column.name ~= "" and from.column.name or "column"
  more.device, more.domain, more.in_sum = file_of(from.log):sub(1, 60), "machine", true
  more.kind = from.column.kind == "watts" and "gauge" or "counter"
  more.name, more.remote, more.scope = ("meter%d/%s"):format(n, name:sub(1, 40)), false, "machine"
  return more
end

local function basis_of(read) return #in_sum(read) == 1 and "power meter" or "power meters" end

--- The hardware with the meter's columns as the machine's sensors.
local function with_meter(hardware, read)
  local channels = json.list {}
  for i, channel in ipairs(get(hardware, "channels") or {}) do
    channels[i] = get(channel, "domain") == "machine" and patched(channel, { in_sum = false }) or channel
  end
  for n, from in ipairs(in_sum(read)) do
    local facts = { method = "log of a power meter", source = "meter" .. n, whole_gpu = false }
    channels[#channels + 1] = channel_of(n, from, facts)
  end
  local basis = get(hardware, "basis") or { cpu = json.null, dram = json.null, gpu = json.null }
  return patched(hardware, { basis = patched(basis, { machine = basis_of(read) }), channels = channels })
end

--- The usual distance of a log's rows; nil: it has only one row.
local function row_s_of(log)
  for _, column in ipairs(log.columns) do
    if column.in_sum and #column.t > 1 then return median_distance(column.t) end
  end
end

local function logs_of(read, clocks)
  local out = json.list {}
  for i, log in ipairs(read.logs) do
    local clock, row_s = clocks[i], row_s_of(log)
    out[i] = { file = file_of(log), offset_plus_minus_s = clock.plus_minus_s or json.null, offset_s = clock.offset_s,
               row_interval_s = row_s or json.null, rows = log.rows,
               rows_are = clock.averages and "means" or "instants" }
  end
  return out
end

-- the readings ------------------------------------------------------------------------------------

local MARGIN_NS = 60000000000 -- rows so far around a session are taken

local function ns(s)
  local x = s * 1e9 + (s < 0 and -0.5 or 0.5)
  return x < 0 and math.ceil(x) or math.floor(x)
end

--- Twice the highest power of a column: the most that the ledger believes of the machine.
local function most_w(column)
  local t, v, most = column.t, column.v, 0.0
  for i = 1, #t do
    if column.kind == "watts" then
      most = math.max(most, v[i])
    elseif i > 1 and t[i] > t[i - 1] then
      most = math.max(most, (v[i] - v[i - 1]) / (t[i] - t[i - 1]))
    end
  end
  return math.floor(math.min(math.ceil(2 * most) + 1, 1e9))
end

--- The meter's sources in the header of power.jsonl, one for each column, and how much later than its instant a row of
--- each is stamped.
---
--- A row of watts is a gauge.  Its period is the usual distance of rows and how far the two clocks may be apart, so
--- that the ledger's bounds (docs/method.md) have both in them.  The ledger takes a gauge's value for half a period and
--- half a window old, so the row is stamped so much later than what it tells.  Cumulative energy is a counter, stamped
--- as it was read.  The most that the machine can draw, which bounds need, is taken to be twice the highest power of
--- the log.
local function sources_of(read, clocks)
  local sources, late_ns = json.list {}, {}
  for n, from in ipairs(in_sum(read)) do
    local clock, row_s, watts = clocks[from.place], row_s_of(from.log), from.column.kind == "watts"
    local apart_s = clock.plus_minus_s or 0
    local period_ns = row_s and ns(row_s + apart_s) or 0
    local window_ns = watts and clock.averages and row_s and ns(row_s) or 0
    late_ns[n] = watts and (period_ns + window_ns) // 2 or 0
    sources[n] = {
      channels = json.list { channel_of(n, from, {
        max_w = most_w(from.column), modulus_uj = 0, own_zero = not watts or nil, period_ns = period_ns,
        unit = watts and "mW" or "uJ", window_ns = window_ns > 0 and window_ns or nil }) },
      name = "meter" .. n,
      note = ("booked after the run: the log's clock was %+.2f s, +-%.2f s"):format(clock.offset_s, apart_s),
      period_ns = period_ns }
  end
  return sources, late_ns
end

--- The rows around a session on its clock, as text in order of time.  Rows of one column have different times.
local function rows_of(segment, columns, late_ns)
  local ahead_ns = whole(segment, "clock", "mono_ns") - whole(segment, "clock", "wall_ns")
  local from_ns, to_ns = whole(segment, "start_ns") - MARGIN_NS, whole(segment, "end_ns") + MARGIN_NS
  local lists, at, out = {}, {}, {}
  for c, column in ipairs(columns) do
    local list, before_ns = {}, math.mininteger
    for k, t_s in ipairs(column.t) do
      local t_ns = ns(t_s) + ahead_ns + late_ns[c]
      if t_ns >= from_ns and t_ns <= to_ns and t_ns > before_ns then
        before_ns = t_ns
        list[#list + 1] = { t_ns, column.v[k] }
      end
    end
    lists[c], at[c] = list, 1
  end
  while true do
    local first
    for c, list in ipairs(lists) do
      if list[at[c]] and (not first or list[at[c]][1] < lists[first][at[first]][1]) then first = c end
    end
    if not first then return table.concat(out) end
    local t_ns, value = table.unpack(lists[first][at[first]])
    out[#out + 1] = ("%d %d %d\n"):format(t_ns, first - 1, value)
    at[first] = at[first] + 1
  end
end

-- the plan ----------------------------------------------------------------------------------------

--- The plan of the run with these logs in its books; nil: they are there already.  `read`, `clocks`: what the logs say,
--- how their clocks are the run's, and `columns` with the readings on it (ipw.report.meter_rows).
function metered.plan(io, run, read, clocks, columns, replace)
  local kept = run .. "/before_meter"
  local origin = data.exists(kept .. "/manifest.json") and kept or run
  local now, before = manifest_of(io, run), manifest_of(io, origin)
  local hash, booked = hash_of(read, clocks), get(now, "meter")
  local segments = get(before, "segments") or {}
  if booked and get(booked, "sha256") == hash then return nil end
  if booked and not replace then
    io.fail(run .. ": another log is in its books; --replace puts this one in its place", 1)
  end
  if #segments ~= #(get(now, "segments") or {}) then
    io.fail(run .. ": it was resumed after a meter was booked, and before_meter lacks what came later: its meter " ..
      "cannot be replaced", 1)
  end
  local manifest = patched(before, { hardware = with_meter(get(before, "hardware") or {}, read),
                                     meter = { logs = logs_of(read, clocks), sha256 = hash } })
  local plan = { runs = json.list { { path = origin, index = 0 } }, sessions = json.list {}, manifest = manifest }
  local sources, late_ns = sources_of(read, clocks)
  for i, segment in ipairs(segments) do
    local ending = get(segment, "end") or "interrupted"
    local session = { members = json.list {}, session = segment, manifest = manifest }
    if whole(segment, "start_ns") ~= 0 then -- else it was killed before it began
      session.members[1] = { run = 0, session = i - 1 }
      session.session = patched(segment, { hardware = with_meter(get(segment, "hardware") or {}, read) })
      session.readings = { basis = basis_of(read), rows = rows_of(segment, columns, late_ns), sources = sources }
      session["end"] = ending == "killed" and "interrupted" or ending -- its end is known now
    end
    plan.sessions[i] = session
  end
  return plan
end

return metered
