--- ipw.report.meter_rows: the rows of power meters' logs: their clocks on a run's, their sum, their extremes.
--
-- From the facts of io.call "meter_logs" (audit/meter_report.h). Points are { t = times, v = watts }, in order of time;
-- `means`: each value is known to be the mean since the point before.
--
-- A log's clock: its watts rise and fall with the activity of the run, and the offset is where the two fit best. A row
-- may be the power at the instant of its stamp, or the mean over the time since the row before; both are tried. The fit
-- is the correlation of the rows around the run with the run's activity (0 or 1, averaged like the rows).
local json = require "ipw.core.json"

local meter_rows = {}

local abs, max, min, huge = math.abs, math.max, math.min, math.huge

local DAY_S = 86400
local NEAR_S = 600         -- clocks that know the date are not further apart
local ZONES_S = 15 * 3600
local LONG_AGO_S = 1e8     -- an "epoch" before 1973 counts seconds since the meter started
local BIN_S = 0.1          -- closer rows are averaged first; the offset is needed to 0.1 s
local INSTANT_S = 1e-3     -- the activity at an instant is the mean of so short a time
local MOST_WORK = 1e8      -- rows that the first pass visits
local TOLERANCE_S = 0.1
local LEAST_ROWS, LEAST_R = 8, 0.5
local NOTHING = 1e-9       -- a misfit that is only rounding
local SURE = 9             -- three standard deviations, squared

-- The sum of columns.

--- The watts of a counter: the mean since the reading before. A step back is a reset and gives no power.
local function differences(joules)
  local out = { t = {}, v = {}, means = true }
  for i = 2, #joules.t do
    local step = joules.v[i] - joules.v[i - 1]
    if step >= 0 then
      out.t[#out.t + 1] = joules.t[i]
      out.v[#out.v + 1] = step / (joules.t[i] - joules.t[i - 1])
    end
  end
  return out
end

--- The watts of a part at instants inside it that come in order.
local function reader(part, shift)
  local t, v, at = part.t, part.v, 1
  return function(now)
    if #t == 1 then return v[1] end
    while at + 1 < #t and t[at + 1] - shift <= now do at = at + 1 end
    if part.means then return now <= t[at] - shift and v[at] or v[at + 1] end
    return v[at] + (v[at + 1] - v[at]) * (now - (t[at] - shift)) / (t[at + 1] - t[at])
  end
end

--- The watts of all columns in the sum over several logs, at every instant at which one of them was read, within the
--- time that all of them cover, and interpolated between readings.
---@param logs table[] of the facts
---@param shift_s number[] what is taken off the times of each
---@return table points
function meter_rows.sum(logs, shift_s)
  local parts, out, from, to = {}, { t = {}, v = {}, means = true }, -huge, huge
  for l, log in ipairs(logs) do
    for _, column in ipairs(log.columns) do
      if column.in_sum then
        local points = column.kind == "joules" and differences(column) or column
        parts[#parts + 1] = { points = points, shift = shift_s[l], at = reader(points, shift_s[l]) }
      end
    end
  end
  if #parts == 0 then return { t = {}, v = {}, means = false } end
  for _, part in ipairs(parts) do
    local t = part.points.t
    out.means = out.means and (part.points.means or false)
    from = max(from, #t > 0 and t[1] - part.shift or huge)
    to = min(to, #t > 0 and t[#t] - part.shift or -huge)
  end
  local times = {}
  for _, part in ipairs(parts) do
    for _, t in ipairs(part.points.t) do
      local now = t - part.shift
      if now >= from and now <= to then times[#times + 1] = now end
    end
  end
  table.sort(times)
  for i, now in ipairs(times) do
    if now ~= times[i - 1] then
      local watts = 0.0
      for _, part in ipairs(parts) do watts = watts + part.at(now) end
      out.t[#out.t + 1], out.v[#out.v + 1] = now, watts
    end
  end
  return out
end

-- The fit at one offset.

--- In order, and those that overlap as one.
local function merge(busy)
  local out = {}
  table.sort(busy, function(a, b) return a[1] < b[1] end)
  for _, span in ipairs(busy) do
    local last = out[#out]
    if last and span[1] <= last[2] then
      last[2] = max(last[2], span[2])
    elseif span[2] > span[1] then
      out[#out + 1] = { span[1], span[2] }
    end
  end
  return out
end

local function median_distance(t)
  local apart = {}
  for i = 2, #t do apart[i - 1] = t[i] - t[i - 1] end
  table.sort(apart)
  return apart[(#apart + 2) // 2]
end

--- Combines rows of a fast log: each bin is the mean up to the stamp of its last row.
local function bin(p, row_s)
  local each = row_s < BIN_S and math.ceil(BIN_S / row_s) or 1
  if each == 1 then return p end
  local out = { t = {}, v = {}, means = true }
  for i = each, #p.t, each do
    local sum = 0.0
    for k = i - each + 1, i do sum = sum + p.v[k] end
    out.t[#out.t + 1], out.v[#out.v + 1] = p.t[i], sum / each
  end
  return out
end

local function first_row(t, from)
  local lo, hi = 1, #t + 1
  while lo < hi do
    local mid = (lo + hi) // 2
    if t[mid] < from then lo = mid + 1 else hi = mid end
  end
  return lo
end

--- Seconds of activity before an instant; instants come in order.
local function activity(busy)
  local at, before, n = 1, 0.0, #busy
  return function(t)
    while at <= n and busy[at][2] <= t do
      before = before + busy[at][2] - busy[at][1]
      at = at + 1
    end
    return at <= n and t > busy[at][1] and before + t - busy[at][1] or before
  end
end

--- 1 - r^2 of the rows around the run against its activity, the number of rows, r; 1: the two do not rise together.
local function fit_at(s, offset, averages)
  local t, v, to = s.rows.t, s.rows.v, s.to_s + offset + s.margin_s
  local n, sx, sy, sxx, syy, sxy, row_s = 0, 0.0, 0.0, 0.0, 0.0, 0.0, s.row_s
  local i, until_t = first_row(t, s.from_s + offset - s.margin_s), activity(s.busy)
  local base = v[i] or 0
  while i <= #t and t[i] <= to do
    local now, y, since = t[i] - offset, v[i] - base, i > 1 and t[i] - t[i - 1] or row_s
    if since > 3 * row_s then since = row_s end
    if not averages then since = min(since, INSTANT_S) end
    local before = until_t(now - since)
    local x = (until_t(now) - before) / since
    n, sx, sy, sxx, syy, sxy, i = n + 1, sx + x, sy + y, sxx + x * x, syy + y * y, sxy + x * y, i + 1
  end
  if n < LEAST_ROWS then return 1, n, 0 end
  local cov, vx, vy = sxy - sx * sy / n, sxx - sx * sx / n, syy - sy * sy / n
  if cov <= 0 or vx <= 1e-9 * n or vy <= 1e-12 * (syy + n) then return 1, n, 0 end
  local r = min(1, cov / math.sqrt(vx * vy))
  return 1 - r * r, n, r
end

-- The search.

--- The misfit of each offset from + i * step, i < n; the best of them replaces `best`.
local function try_all(s, averages, from, step, n, best)
  local misfits = {}
  for i = 1, n do
    local offset = from + (i - 1) * step
    local misfit, rows, r = fit_at(s, offset, averages)
    misfits[i] = misfit
    if misfit < best.misfit then best.offset, best.misfit, best.rows, best.r = offset, misfit, rows, r end
  end
  return misfits
end

local function limit_of(best)
  return best.misfit * (1 + SURE / (best.rows > 3 and best.rows - 3 or 1)) + NOTHING
end

--- Tries the whole range in steps of a quarter of a row or longer, then closely around the best.
--- The best, with the offsets lo to hi around it that fit as well, and one away from it, `other`, that does.
local function find(s, averages, min_s, max_s, step)
  local best = { misfit = 2, rows = 0, r = 0 }
  local reach, fine = max(2 * s.row_s, 4 * step), min(max(s.row_s / 200, 0.001), 0.01)
  local misfits = try_all(s, averages, min_s, step, (max_s - min_s) // step + 1, best)
  local from = best.offset - reach
  local near = try_all(s, averages, from, fine, 2 * reach // fine + 1, best)
  local limit = limit_of(best)
  best.lo, best.hi = best.offset, best.offset
  for i, misfit in ipairs(near) do
    local offset = from + (i - 1) * fine
    if misfit <= limit then best.lo, best.hi = min(best.lo, offset), max(best.hi, offset) end
  end
  for i, misfit in ipairs(misfits) do
    local offset = min_s + (i - 1) * step
    if misfit <= limit and abs(offset - best.offset) > reach then
      best.other = offset
      break
    end
  end
  return best
end

--- The better kind of rows, means or instants, and the other one; nil: the rows are known to be means.
local function search(s, min_s, max_s)
  local work = (max_s - min_s) / (s.row_s / 4) * ((s.to_s - s.from_s + 2 * s.margin_s) / s.row_s + #s.busy)
  local step = s.row_s / 4 * max(1, work / MOST_WORK)
  local mean = find(s, true, min_s, max_s, step)
  mean.averages = true
  if s.rows.means then return mean, nil end
  local instant = find(s, false, min_s, max_s, step)
  if instant.misfit <= mean.misfit then return instant, mean end
  return mean, instant
end

local FEW = "only %d rows of the log are near the run; %d are needed"
local UNLIKE = "the log's watts do not follow the run's activity (best correlation %.2f)"
local REPEATS = "ambiguous: offsets of %.2f s and %.2f s fit equally well (the run repeats itself, or its edges are "
  .. "lost in the noise)"
local BLURRED = "ambiguous: every offset from %.2f s to %.2f s fits equally well (too few edges for rows %.3g s apart)"

--- Why a fit is not taken; nil: it is.
local function refusal(best, plus_minus_s, row_s)
  if best.rows < LEAST_ROWS then return FEW:format(best.rows, LEAST_ROWS) end
  if best.r < LEAST_R then return UNLIKE:format(best.r) end
  if best.other then return REPEATS:format((best.lo + best.hi) / 2, best.other) end
  if plus_minus_s > TOLERANCE_S then return BLURRED:format(best.lo, best.hi, row_s) end
end

--- How far the clock of a log is ahead of a run's.
---
--- nil and why, if the two do not correlate, if the log does not cover the run, or if offsets more than 0.2 s apart fit
--- equally well within the noise (three standard deviations): a run without clear edges, or one that repeats itself.
---@param watts table points
---@param busy number[][] times in which the run was active, in any order
---@param min_s number the least offset
---@param max_s number the most
---@return table? fit offset_s; plus_minus_s: within it offsets fit as well; correlation; row_s; averages; other_s
---@return string? why
function meter_rows.align(watts, busy, min_s, max_s)
  busy = merge(busy)
  if #busy == 0 then return nil, "the run has no activity to align with" end
  local t = watts.t
  if #t < LEAST_ROWS then return nil, ("the log has %d rows: %d are needed"):format(#t, LEAST_ROWS) end
  local row_s = median_distance(t)
  local s = { busy = busy, rows = bin(watts, row_s), row_s = row_s, from_s = busy[1][1], to_s = busy[#busy][2] }
  if row_s < BIN_S and #s.rows.t > 1 then s.row_s = median_distance(s.rows.t) end
  local run_s = s.to_s - s.from_s
  s.margin_s = min(60, max(10 * s.row_s, run_s / 4))
  min_s, max_s = max(min_s, t[1] - s.from_s), min(max_s, t[#t] - s.to_s) -- the run must be inside the log
  if min_s > max_s then
    return nil, ("the log (%.1f s) does not cover the run (%.1f s) at any allowed offset"):format(t[#t] - t[1], run_s)
  end
  local best, second = search(s, min_s, max_s)
  local fit = {
    averages = best.averages or false, correlation = best.r, offset_s = (best.lo + best.hi) / 2,
    plus_minus_s = (best.hi - best.lo) / 2, row_s = s.row_s,
  }
  if second and second.misfit <= limit_of(best) then fit.other_s = (second.lo + second.hi) / 2 end
  local why = refusal(best, fit.plus_minus_s, s.row_s)
  return not why and fit or nil, why
end

--- How far a log's clock may be off.
local function range_of(log, watts)
  if log.clock == "local" then return ZONES_S end
  if log.clock == "day" then return DAY_S + ZONES_S end
  return log.clock == "epoch" and watts.t[1] and abs(watts.t[1]) < LONG_AGO_S and huge or NEAR_S
end

--- The clock of each log: as told, or as found.
---@param facts table of io.call "meter_logs"
---@param offset_s number? as told
---@return table[]? clocks
---@return string? why
function meter_rows.clocks(facts, offset_s)
  local clocks = {}
  for i, log in ipairs(facts.logs) do
    if offset_s then
      clocks[i] = { averages = false, offset_s = offset_s, row_s = 0 }
    else
      local watts = meter_rows.sum({ log }, { 0 })
      local range_s = range_of(log, watts)
      local clock, why = meter_rows.align(watts, facts.busy, -range_s, range_s)
      if not clock then
        return nil, ("%s: cannot align the clocks. Use --offset SECONDS to say how far the log is ahead: %s"):format(
          log.file, why)
      end
      clocks[i] = clock
    end
  end
  return clocks
end

--- The readings of the columns in the sum, on the run's clock: what the ledger takes.
---
--- A value is milliwatts, or microjoules since the column's first; the least integer where it is none.  A mean stands
--- in the middle of its time.
---@param facts table
---@param clocks table[]
---@return table[] columns { file, kind, t, v }
function meter_rows.readings(facts, clocks)
  local columns = {}
  for i, log in ipairs(facts.logs) do
    local clock = clocks[i]
    for _, column in ipairs(log.columns) do
      if column.in_sum then
        local watts, t, v = column.kind == "watts", {}, {}
        for k, at in ipairs(column.t) do
          local value = watts and column.v[k] * 1e3 or (column.v[k] - column.v[1]) * 1e6
          v[k] = value >= 0 and value < 9e18 and math.floor(value + 0.5) or math.mininteger
          t[k] = at - clock.offset_s
          if watts and clock.averages then
            t[k] = t[k] - min(k > 1 and at - column.t[k - 1] or clock.row_s, 3 * clock.row_s) / 2
          end
        end
        columns[#columns + 1] = { file = log.file, kind = column.kind, t = t, v = v }
      end
    end
  end
  return columns
end

--- The same, as io.call "meter" takes them.
function meter_rows.told(columns)
  local out = json.list {}
  for i, column in ipairs(columns) do
    local rows = {}
    for k, t in ipairs(column.t) do rows[k] = ("%.17g %d\n"):format(t, column.v[k]) end
    out[i] = { file = column.file, kind = column.kind, rows = table.concat(rows) }
  end
  return json.encode(out)
end

-- The extremes.

--- The power of a run by its logs: how many rows are in it, the most and the least of the logs' line over it, its ends
--- between rows included.
---@param facts table
---@param clocks table[]
---@param joules number? of the run
---@return table { samples, peak_w, least_w }
function meter_rows.powers(facts, clocks, joules)
  local shift_s, t0, t1, out = {}, facts.t0_s, facts.t1_s, { samples = 0 }
  for i, clock in ipairs(clocks) do
    shift_s[i] = clock.offset_s + (clock.averages and clock.row_s / 2 or 0)
  end
  local function see(w)
    out.peak_w, out.least_w = max(out.peak_w or w, w), min(out.least_w or w, w)
  end
  local line = meter_rows.sum(facts.logs, shift_s)
  local t, v = line.t, line.v
  for i, now in ipairs(t) do
    if now >= t0 and now <= t1 then
      out.samples = out.samples + 1
      see(v[i])
    end
    -- The step before, the part inside the run: without it the mean power could lie beyond the least.
    local from, to = max(t[i - 1] or now, t0), min(now, t1)
    if to > from then
      local w_per_s = line.means and 0 or (v[i] - v[i - 1]) / (now - t[i - 1])
      see(v[i] - w_per_s * (now - from))
      see(v[i] - w_per_s * (now - to))
    end
  end
  -- A counter's line is bent within a step (ledger/ledger.h), so that the mean of a run in one step may lie beyond it:
  -- more so than by what dates are rounded to.
  if joules and out.samples > 0 and t1 > t0 then
    local mean = joules / (t1 - t0)
    if mean > out.peak_w * (1 + 1e-6) then out.peak_w = mean end
    if mean < out.least_w * (1 - 1e-6) then out.least_w = mean end
  end
  return out
end

meter_rows.median_distance = median_distance

return meter_rows
