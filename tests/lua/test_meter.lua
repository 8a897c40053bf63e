--- ipw.report.meter_rows: sums of meters' columns, clocks found by the load, the extremes of a run.
local rows, test = require "ipw.report.meter_rows", require "ipw.test"
local equal, ok = test.equal, test.ok

local function near(got, want, by)
  ok(type(got) == "number" and math.abs(got - want) <= by, ("got %s, want %.9g"):format(tostring(got), want))
end

--- A log of one column.
local function log(kind, t, v) return { columns = { { kind = kind, in_sum = true, t = t, v = v } } } end

-- The generator and the scene of alignment: 60 W idle, 240 W busy, noise on top, on a clock that is ahead.

local seed
local function uniform(lo, hi)
  seed = (seed * 6364136223846793005 + 1442695040888963407)
  return lo + (hi - lo) * ((seed >> 33) / 2 ^ 31)
end

--- Twelve inferences of 0.4 to 2.2 s with pauses, from t = 10000 on.
local function make_busy()
  local busy, t = {}, 10000.0
  for i = 1, 12 do
    local t1 = t + uniform(0.4, 2.2)
    busy[i] = { t, t1 }
    t = t1 + uniform(0.2, 1.8)
  end
  return busy
end

local function busy_s(busy, from, to)
  local sum = 0.0
  for _, span in ipairs(busy) do sum = sum + math.max(0, math.min(span[2], to) - math.max(span[1], from)) end
  return sum
end

local function make_rows(busy, row_s, ahead, averages, noise)
  local p, t = { t = {}, v = {} }, 9970.123
  while t < 10070 do
    local share = averages and busy_s(busy, t - row_s, t) / row_s or (busy_s(busy, t, t + 1e-6) > 0 and 1 or 0)
    p.t[#p.t + 1], p.v[#p.v + 1] = t + ahead, 60 + 180 * share + uniform(-noise, noise)
    t = t + row_s
  end
  return p
end

local function refused(watts, busy, range_s, text)
  local fit, why = rows.align(watts, busy, -range_s, range_s)
  ok(fit == nil and why:find(text, 1, true), ("'%s', want '%s'"):format(tostring(why), text))
end

return {
  { "case_32_meters_out_of_phase", function()
    local a = log("watts", { 1000, 1001, 1002, 1003 }, { 0, 10, 20, 30 })
    local b = log("watts", { 1000.5, 1001.5, 1002.5 }, { 105, 115, 125 })
    local sum = rows.sum({ a, b }, { 0, 0 }) -- where both are known
    equal(sum, { t = { 1000.5, 1001, 1001.5, 1002, 1002.5 }, v = { 110, 120, 130, 140, 150 }, means = false })
    for i, t in ipairs(b.columns[1].t) do b.columns[1].t[i] = t + 60 end
    equal(rows.sum({ a, b }, { 0, 60 }), sum, "the second clock a minute ahead")
    -- Alternate rows of one file do not have each other's cell.
    local c = { columns = { { kind = "watts", in_sum = true, t = { 1000, 1001, 1002 }, v = { 0, 10, 20 } },
                            { kind = "watts", in_sum = true, t = { 1000.5, 1001.5 }, v = { 105, 115 } },
                            { kind = "watts", in_sum = false, t = {}, v = {} } } }
    equal(rows.sum({ c }, { 0 }), { t = { 1000.5, 1001, 1001.5 }, v = { 110, 120, 130 }, means = false })
  end },

  { "a counter gives mean watts, none over a reset, and nothing if it only goes back", function()
    local joules = log("joules", { 1000, 1001, 1003, 1004, 1005 }, { 500, 600, 900, 10, 60 })
    equal(rows.sum({ joules }, { 0 }), { t = { 1001, 1003, 1005 }, v = { 100, 150, 50 }, means = true })
    local back, watts = log("joules", { 1000, 1001 }, { 600, 500 }), log("watts", { 1000, 1001 }, { 5, 5 })
    equal(#rows.sum({ back }, { 0 }).t, 0)
    equal(#rows.sum({ back, watts }, { 0, 0 }).t, 0)
  end },

  { "the extremes of a run, its ends between rows included", function()
    local facts = { logs = { log("watts", { 0, 2, 4, 6 }, { 0, 100, 50, 90 }) }, t0_s = 1, t1_s = 5 }
    local clock = { { offset_s = 0, row_s = 0, averages = false } }
    equal(rows.powers(facts, clock, 250), { samples = 2, peak_w = 100, least_w = 50 })
    equal(rows.powers(facts, { { offset_s = 1, row_s = 2, averages = true } }, 250),
      { samples = 2, peak_w = 90, least_w = 50 }, "rows that are means stand in the middle of their time")
    equal(rows.powers({ logs = { log("joules", { 0, 10 }, { 0, 100 }) }, t0_s = 1, t1_s = 10 }, clock, 99),
      { samples = 1, peak_w = 11, least_w = 10 }, "a run in one step of a counter")
  end },

  { "case_31_offset_found_or_refused", function() -- rows of 1 Hz: to 100 ms, or not at all
    local found, runs = { [true] = 0, [false] = 0 }, { [true] = 0, [false] = 0 }
    seed = 31
    for i = 0, 29 do
      local ahead, averages, busy = i % 3 == 0 and 0.7 or uniform(-5, 5), i % 2 == 1, make_busy()
      local watts = make_rows(busy, 1, ahead, averages, 2)
      busy[1], busy[12] = busy[12], busy[1] -- in any order
      local fit, why = rows.align(watts, busy, -600, 600)
      runs[averages] = runs[averages] + 1
      if fit then
        found[averages] = found[averages] + 1
        equal(fit.averages, averages)
        near(fit.offset_s, ahead, 0.1)
        near(fit.row_s, 1, 1e-6)
        ok(fit.correlation > 0.9)
      else
        ok(why:find("ambiguous", 1, true), why)
      end
    end
    -- Means tell their edges to a fraction of a row; instants only by the luck of many edges.
    equal(found[true], runs[true])
    ok(found[false] > runs[false] / 4)
  end },

  { "case_31_fast_log", function()
    seed = 7
    local busy = make_busy()
    near(rows.align(make_rows(busy, 0.02, -1.234, false, 20), busy, -60, 60).offset_s, -1.234, 0.05)
  end },

  { "case_31_refusals", function()
    seed = 3
    local busy = make_busy()
    local watts = make_rows(busy, 1, 0.7, true, 2)
    local function first(n) return { t = table.move(watts.t, 1, n, 1, {}), v = table.move(watts.v, 1, n, 1, {}) } end
    refused(watts, { { 5, 5 } }, 60, "the run has no activity to align with")
    refused(first(5), busy, 60, "the log has 5 rows: 8 are needed")
    refused(first(40), busy, 1, "does not cover the run")
    local flat = make_rows(busy, 1, 0, true, 2)
    for i in ipairs(flat.v) do flat.v[i] = uniform(59, 61) end
    refused(flat, busy, 20, "") -- no correlation, or many offsets
    -- Every 2 s the same: any multiple of 2 s fits but for the ends.  One edge in instants of 1 Hz: a guess of 0.5 s.
    local even = {}
    for i = 1, 12 do even[i] = { 9998.0 + 2 * i, 9999.0 + 2 * i } end
    refused(make_rows(even, 1, 0.3, false, 0), even, 60, "ambiguous")
    local one = { { 10000.3, 10003.6 } }
    refused(make_rows(one, 1, 0.3, false, 0), one, 60, "ambiguous")
  end },

  { "a clock as told, and a log that cannot be aligned", function()
    local facts = { busy = {}, logs = { log("watts", { 1, 2 }, { 5, 5 }) }, t0_s = 0, t1_s = 1 }
    facts.logs[1].file, facts.logs[1].clock = "m.csv", "epoch"
    equal(rows.clocks(facts, 2.5), { { averages = false, offset_s = 2.5, row_s = 0 } })
    local clocks, why = rows.clocks(facts)
    equal(clocks, nil)
    equal(why, "m.csv: cannot align the clocks. Use --offset SECONDS to say how far the log is ahead: "
      .. "the run has no activity to align with")
  end },
}
