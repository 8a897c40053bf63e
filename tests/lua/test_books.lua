--- The screens of `ledger`, `ledger --share all`, `meter` and `telemetry`, from facts as the program hands them over.
local json = require "ipw.core.json"
local ledger = require "ipw.report.ledger"
local meter = require "ipw.report.meter"
local sensors = require "ipw.report.sensors"
local shares = require "ipw.report.shares"
local test = require "ipw.test"

local equal = test.equal
local null = json.null

local function by_domain(gpu, other)
  return { gpu = gpu, cpu = other(), dram = other(), machine = other() }
end

local function figure(j)
  if not j then return { coverage = 0.0, hi = null, joules = null, lo = null, provenance = "none", samples = 0,
                         u = null } end
  return { coverage = 1.0, hi = j + 1, joules = j, lo = j - 1, provenance = "measured", samples = 9, u = 0.1 }
end

local function query(id, j, more)
  local q = { earlier = false, energy = by_domain(figure(j), figure), index = id:byte(), query_id = id, segment = 0,
              verdict = "same", warmup = false, was = by_domain(j, function() return null end), what = "" }
  for key, value in pairs(more or {}) do q[key] = value end
  return q
end

local function balance(total, idle)
  return { idle = { j = idle or null }, queries = { coverage = 1.0 }, total = { coverage = total and 1.0 or 0.0,
    j = total or null, partial_j = 0.0, reason = "no_sensor" }, warmup = {}, warmup_j = 0.0, wasted = {},
    wasted_j = 0.0 }
end

--- The facts of io.call "ledger".
local function facts(queries, total, idle)
  local account = { exclusive_j = 1.0, idle_tax_j = 2.0, marginal_j = null, waste_j = 0.0 }
  return {
    compared = true, own = "phase", queries = queries, rules = { "equal", "phase" }, segments = 1, segments_cut = 0,
    summary = { accounts = by_domain(account, function() return {} end), balance = by_domain(balance(total, idle),
      balance), device_balances = {}, devices = {} }, unbooked = 0, wall_s = 12.5,
  }
end

local function contains(text, ...)
  for _, part in ipairs { ... } do test.ok(text:find(part, 1, true), ("no %q in %s"):format(part, text)) end
end

local function book(given, share)
  local cut = given.segments_cut
  local doc, verdicts = ledger.document(given, share)
  return doc, ledger.text("run", doc, verdicts, cut)
end

return {
  { "books that are as they were written", function()
    local doc, text = book(facts({ query("a", 30.0), query("b", 10.5) }, 50.5, 10.0))
    equal({ doc.identical, doc.balance.gpu.difference_j, doc.balance.gpu.balanced, doc.balance.cpu.total_j },
      { true, 0.0, true, null })
    equal({ doc.balance.gpu.queries_j, doc.was_queries.gpu, doc.queries[2].energy.gpu.joules }, { 40.5, 40.5, 10.5 })
    contains(text, "run: 2 queries in 12.5 s, computed from its events and samples\n",
      "GPU               40.500000       10.000000       50.500000        0.000000\n",
      "2.000000  of the queries: while tools ran or a retry waited",
      "2 of 2 queries are identical to the run, byte for byte.")
    test.ok(not text:find("\nCPU ", 1, true), "a domain without a sensor has no line")
  end },
  { "what differs is told beside what was written", function()
    local was = by_domain(25.0, function() return null end)
    local given = facts({ query("a", 30.0, { verdict = "differs", was = was }),
                          query("b", 10.0, { verdict = "missing", was = null }) }, 50.0, 10.0)
    given.unbooked, given.segments_cut = 1, 1
    local doc, text = book(given)
    equal({ doc.identical, doc.cut, doc.queries[1].differs, doc.queries[2].was }, { false, true, true, null })
    contains(text, "  the run wrote        25.000000", "+20.0 %",
      "1 of 2 queries differ from what the run wrote; 1 are not in the run; 1 of the run have no events",
      "GPU: saved not measured, recomputed 40.000000 J",
      "The run was killed: its balance ends at its last sample.")
  end },
  { "another rule: how far it moves the queries", function()
    local was = by_domain(24.0, function() return null end)
    local doc, text = book(facts({ query("a", 30.0, { was = was }), query("b", 10.0) }, 50.0, 10.0), "equal")
    equal({ doc.share, doc.identical }, { "equal", null })
    contains(text, "Shared by equal: 1 of 2 queries have other values than the run, a the most (GPU +25.0 %).")
  end },
  { "warm-up and earlier attempts are in no sum of the queries", function()
    local doc = book(facts({ query("w", 5.0, { warmup = true }), query("e", 7.0, { earlier = true }),
                             query("a", 30.0) }, 50.0, 20.0))
    equal({ doc.balance.gpu.queries_j, doc.was_queries.gpu }, { 30.0, 30.0 })
  end },
  { "each rule side by side", function()
    local all = shares.new()
    shares.add(all, "equal", facts({ query("a", 30.0), query("b", 10.0) }, 50.0, 10.0))
    shares.add(all, "phase", facts({ query("a", 20.0), query("b", 20.0) }, 50.0, 10.0))
    local doc = shares.document(all)
    equal({ doc.own, doc.queries[1].apart.gpu, doc.queries[1].energy.phase.gpu, doc.queries[1].apart.cpu },
      { "phase", 0.4, 20.0, null })
    contains(shares.text("run", doc), "run: 2 queries by each sharing rule (the run used phase)",
      "a                      30.000000       20.000000  40.0 %", "all queries            40.000000       40.000000",
      "idle                   10.000000       10.000000",
      "  equal, phase: 53.3 % apart on average, 66.7 % at most (b)")
  end },
  { "a meter's log, and the report with the keys of its guide", function()
    local given = {
      coverage = 1.0, idle_joules = 20.0, joules = 120.0, least_w = 5.0, peak_w = 20.0, provenance = "interpolated",
      logs = { { bad_rows = 1, columns = { { in_sum = true, kind = "watts", name = "W" } }, file = "m.csv",
                 first_bad_row = "line 3", offset_s = -0.5, rows = 12 } },
      queries = { { coverage = 1.0, epoch = 0, joules = 100.0, provenance = "measured", query_id = "a", t0_s = 100.0,
                    t1_s = 108.0 }, { coverage = 0.0, epoch = 1, provenance = "none", query_id = "b",
                    reason = "too_short", t0_s = 109.0, t1_s = 110.0 } },
      samples = 8, t0_s = 100.0, t1_s = 110.0,
    }
    local doc, report = meter.document(given, "run"), meter.energy_report(given)
    equal({ doc.average_watts, doc.energy_joules, doc.queries[1].average_watts, doc.queries[2].energy_joules,
            doc.queries_joules }, { 12.0, 120.0, 12.5, null, null })
    contains(meter.text(doc), "run      run: 2 queries in 10.0 s\n",
      "clock    the log is 0.50 s behind the run (as told)",
      "         1 damaged row left out; m.csv line 3", "energy   120 J = 33.3 mWh, interpolated", "too_short")
    equal({ report.num_epochs, report.epochs[1].queries_joules, report.energy_joules.per_run, #report.warnings,
            report.start_timestamp }, { 2, 100.0, 60.0, 2, "1970-01-01T00:01:40.000Z" })
  end },
  { "sensors: watts of a domain are known if all of its channels are believed", function()
    local function channel(name, watts, believed)
      return { believed = believed, domain = "gpu", in_sum = true, kind = "counter", name = name, period_s = 0.02,
               scope = "gpu", self_test = believed and "ok" or "not believed", source = "nvml", watts = watts }
    end
    local function doc(...)
      return { channels = { ... }, notes = { { source = "nvml", text = "a remark" } }, hardware = {
        basis = { gpu = "2 GPUs (nvml)" }, cpu = "EPYC", labels = { hw = "2x H100", upstream = "H100" },
        sensors = { { found = false, name = "rapl", reason = "permission", text = "not readable" },
                    { found = false, name = "hwmon", reason = "unsupported", text = "no file" } } } }
    end
    local how = { width = 80, colour = false, brief = false }
    local text = sensors.text(doc(channel("gpu0", 300, true), channel("gpu1", 71.26, true)), how)
    contains(text, "2x H100  (EPYC; label H100)", "71.3 W", " gpu            371 W  2 GPUs (nvml)", "a remark",
      " rapl        permission: not readable", " hwmon       not here: no file")
    contains(sensors.text(doc(channel("gpu0", 300, true), channel("gpu1", 71.26, false)), how),
      " gpu          unknown  2 GPUs (nvml)")
    contains(sensors.text(doc(), how), "No energy sensor can be read on this machine.",
      "There is one, and it may not be read")
  end },
}
