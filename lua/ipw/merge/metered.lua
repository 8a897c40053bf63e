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

--- The hardware with the meter's columns as the machine's sensors.
local function with_meter(hardware, read)
  local channels, n = json.list {}, 0
  for i, channel in ipairs(get(hardware, "channels") or {}) do
    channels[i] = get(channel, "domain") == "machine" and patched(channel, { in_sum = false }) or channel
  end
  for _, log in ipairs(read.logs) do
    for _, column in ipairs(log.columns) do
      if column.in_sum then
        local name = column.name ~= "" and column.name or "column"
        n = n + 1
        channels[#channels + 1] = { device = file_of(log):sub(1, 60), domain = "machine", in_sum = true,
          kind = column.kind == "watts" and "gauge" or "counter", method = "log of a power meter",
          name = ("meter%d/%s"):format(n, name:sub(1, 40)), remote = false, scope = "machine",
          source = ("meter%d"):format(n), whole_gpu = false }
      end
    end
  end
  local basis = get(hardware, "basis") or { cpu = json.null, dram = json.null, gpu = json.null }
  return patched(hardware, { basis = patched(basis, { machine = n == 1 and "power meter" or "power meters" }),
                             channels = channels })
end

local function logs_of(read, clocks)
  local out = json.list {}
  for i, log in ipairs(read.logs) do
    local clock, row_s = clocks[i], nil
    for _, column in ipairs(log.columns) do
      if not row_s and column.in_sum and #column.t > 1 then row_s = median_distance(column.t) end
    end
    out[i] = { file = file_of(log), offset_plus_minus_s = clock.plus_minus_s or json.null, offset_s = clock.offset_s,
               row_interval_s = row_s or json.null, rows = log.rows,
               rows_are = clock.averages and "means" or "instants" }
  end
  return out
end

-- the plan ----------------------------------------------------------------------------------------

--- The plan of the run with these logs in its books; nil: they are there already.  `read`, `clocks`: what the logs say,
--- and how their clocks are the run's (ipw.report.meter_rows).
function metered.plan(io, run, read, clocks, replace)
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
  for i, segment in ipairs(segments) do
    local ending = get(segment, "end") or "interrupted"
    local session = { members = json.list {}, session = segment, manifest = manifest }
    if whole(segment, "start_ns") ~= 0 then -- else it was killed before it began
      session.members[1] = { run = 0, session = i - 1 }
      session.session = patched(segment, { hardware = with_meter(get(segment, "hardware") or {}, read) })
      session["end"] = ending == "killed" and "interrupted" or ending -- its end is known now
    end
    plan.sessions[i] = session
  end
  return plan
end

return metered
