--- ipw.summary: summary.json from rows that are made here. Figures were worked out by hand; cases 28 to 31 are
--- upstream's.
local core, json = require "ipw.core.stats", require "ipw.core.json"
local statistics, stats = require "ipw.summary.statistics", require "ipw.stats"
local summary, test = require "ipw.summary", require "ipw.test"
local summary_values = require "ipw.summary.values"
local equal, ok = test.equal, test.ok

local NAN = 0 / 0

-- Rows as script/summary_text.c passes them.

local ZERO = { completed = 1, epoch = 0, judge_asked = 0, malformed = 0, not_lm = 0, resolved = -1, retries = 0,
               stopped = 0, timed_out = 0, tools = 0, trimmed = 0, turns = 1, unscorable = 0, wall_s = 1 }

local function rows_of(queries, calls)
  local order, samples, described, rows = {}, {}, {}, { queries = #queries, calls = #(calls or {}) }
  for i = 1, #queries do order[i] = i end
  local function value(of, name, i)
    if of == "queries" then return queries[order[i]][name] or ZERO[name] or NAN end
    return calls[i][name] or NAN
  end
  function rows.constant(of, name)
    local first = rows[of] > 0 and value(of, name, 1) or nil
    for i = 2, rows[of] do
      local x = value(of, name, i)
      if x ~= first and (x == x or first == first) then return nil end
    end
    return first
  end
  function rows.read(of, name, first, n, into)
    for i = 1, n do into[i] = value(of, name, first + i) end
  end
  function rows.id(row) return queries[order[row + 1]].id or "" end
  function rows.same_task(first, n, into)
    for i = 1, n do
      local before = order[first + i - 1]
      into[i] = before ~= nil and queries[before].id == queries[order[first + i]].id
    end
  end
  function rows.sort(by)
    local key = by == "task" and "id" or by
    table.sort(order, function(a, b)
      local x, y = queries[a][key] or ZERO[key], queries[b][key] or ZERO[key]
      if x ~= y then return x < y end
      return a < b
    end)
  end
  function rows.put(list, n)
    for i = 1, n do
      if list[i] == list[i] then described[#described + 1] = list[i] end
    end
  end
  function rows.take(of, name, first, n)
    local list = {}
    rows.read(of, name, first, n, list)
    rows.put(list, n)
  end
  function rows.describe()
    local r = stats.summary(described)
    r.median, r.std, described = r.p50, r.n == 1 and 0 or r.sd, {}
    return r
  end
  function rows.cluster(m, sum, n)
    samples[m] = samples[m] or { {}, {} }
    table.insert(samples[m][1], sum)
    table.insert(samples[m][2], n)
  end
  function rows.intervals(kinds, seed)
    local out = {}
    for m, kind in ipairs(kinds) do
      local sums, counts, i = samples[m] and samples[m][1] or {}, samples[m] and samples[m][2] or {}, {}
      i.mean, i.lo, i.hi, i.min, i.max, i.method = core.interval(kind, sums, counts, seed)
      i.n = #sums
      out[m] = i
    end
    return out
  end
  return rows
end

--- A query: joules of GPU and CPU (nil: unknown), with bounds that are 1 J away.
local function query(id, resolved, wall_s, gpu_j, cpu_j, more)
  local q = { id = id, resolved = resolved, wall_s = wall_s }
  for domain, j in pairs { gpu = gpu_j, cpu = cpu_j } do
    q[domain .. "_j"], q[domain .. "_lo_j"], q[domain .. "_hi_j"], q[domain .. "_u_j"] = j, j - 1, j + 1, 0.05 * j
    q[domain .. "_w"] = j / wall_s
  end
  for key, value in pairs(more or {}) do q[key] = value end
  return q
end

--- A value of each domain; {} where none is given.
local function by_domain(given)
  local out = {}
  for _, domain in ipairs { "gpu", "cpu", "dram", "machine" } do out[domain] = given[domain] or {} end
  return out
end

local function facts_of(more)
  local facts = { accounts = by_domain {}, attempts = 0, baseline = by_domain {}, baseline_s = 0, devices = {},
                  device_balances = {}, groups = {}, provenance = by_domain {}, schema_version = 2, wall_ns = 0 }
  for key, value in pairs(more or {}) do facts[key] = value end
  return facts
end

local function made(queries, facts, calls) return summary.make(rows_of(queries, calls), facts_of(facts)) end

local function near(got, want, what)
  ok(type(got) == "number" and math.abs(got - want) <= 1e-12 * math.max(1, math.abs(want)),
    ("%s: got %s, want %.17g"):format(what or "value", tostring(got), want))
end

--- The values at paths such as "totals/queries"; json.null where it is null.
local function values_are(doc, want)
  for path, value in pairs(want) do
    local node = doc
    for key in path:gmatch "[^/]+" do
      if node == json.null or type(node) ~= "table" then node = nil break end
      node = node[key]
    end
    if type(value) == "number" then
      near(node, value, path)
    else
      equal(node, value, path)
    end
  end
end

--- The parts of a balance of a domain.
local function balance(total_j, idle_j, more)
  local none = { hi = 0, lo = 0, u = 0 }
  local b = { total = { j = total_j, coverage = total_j and 1 or 0, partial_j = 0, reason = "no_sensor" },
              idle = { j = idle_j, coverage = 1, partial_j = 0 }, queries = { coverage = 0, partial_j = 0 },
              warmup = none, warmup_j = 0, wasted = none, wasted_j = 0 }
  for key, value in pairs(more or {}) do b[key] = value end
  return b
end

local function balances(of)
  for _, domain in ipairs { "gpu", "cpu", "dram", "machine" } do of[domain] = of[domain] or balance() end
  return of
end

local function group(kind, name, calls, more)
  local g = { kind = kind, of = "", name = name, calls = calls, queries = calls, seconds = 0, joules = {},
              waste_joules = {}, bounds = { gpu = {}, cpu = {}, dram = {}, machine = {} }, child_calls = 0,
              child_cpu_s = 0, child_peak_bytes = 0, argument_bytes = 0, result_bytes = 0, cut_bytes = 0 }
  for key, value in pairs(more or {}) do g[key] = value end
  return g
end

return {
  { "the dearest queries, the first one most; without joules those that took longest", function()
    local queries = {}
    for i = 1, 12 do
      queries[i] = query("q" .. i, 1, 1, i % 4 * 10, 5)
      queries[i].wall_s, queries[i].resolved = i, i % 2
    end
    queries[12].completed = 0
    local list = made(queries).dearest
    equal(#list, 8)
    equal({ list[1].query_id, list[2].query_id, list[3].query_id, list[4].query_id }, { "q3", "q7", "q11", "q2" })
    equal({ list[1].resolved, list[4].resolved, list[1].joules }, { true, false, 35.0 })
    for i = 1, 12 do queries[i] = { id = "q" .. i, wall_s = i } end
    queries[12].completed, queries[11].stopped = 0, 1
    list = made(queries).dearest
    equal({ list[1].query_id, list[1].completed, list[1].joules, list[1].resolved, list[1].seconds },
      { "q12", false, json.null, json.null, 12.0 })
    equal({ list[2].query_id, list[2].stopped }, { "q11", true })
    equal(made({ queries[1] }).dearest, nil)
  end },

  { "two queries, nothing measured: no zero anywhere (28)", function()
    values_are(made({ { id = "a", turns = 2, tools = 2, input_tokens = 150, output_tokens = 60, wall_s = 2.5 },
                      { id = "b", turns = 1, input_tokens = 50, output_tokens = 25, wall_s = 1.0 } }), {
      ["totals/queries"] = 2, ["totals/turns"] = 3, ["totals/tool_calls"] = 2, ["totals/input_tokens"] = 200,
      ["totals/output_tokens"] = 85, ["totals/total_tokens"] = 285, ["totals/wall_clock_s"] = 3.5,
      ["averages/turns_per_query"] = 1.5, ["averages/wall_clock_per_query_s"] = 1.75,
      ["averages/gpu_energy_per_query_joules"] = json.null, ["statistics/total_tokens/median"] = 142.5,
      ["statistics/turns/std"] = 0.70710678118654757, ["statistics/gpu_energy_joules/avg"] = json.null,
      ["statistics/gpu_energy_joules/n"] = 0, ["totals/gpu_energy_joules"] = json.null,
      ["totals/known/gpu_energy_joules"] = json.null, ["totals/unknown/gpu_energy_joules"] = 2,
      ["totals/accuracy"] = json.null, ["efficiency/intelligence_per_joule"] = json.null,
      ["efficiency/ipj"] = json.null, ["own_overhead/share"] = json.null, generated_at = json.null,
      ["efficiency/basis"] = json.null, ["efficiency/by_domain/gpu"] = json.null, normalized_statistics = json.null,
      ledger = json.null, judge = json.null, models = json.null, ["accounts/gpu"] = json.null,
      baseline = json.null, ["provenance/gpu"] = json.null,
    })
  end },

  { "no queries (29)", function()
    values_are(made({}, { status = "interrupted", planned = 16 }), {
      ["totals/queries"] = 0, ["totals/total_tokens"] = 0, ["totals/wall_clock_s"] = 0,
      ["averages/turns_per_query"] = 0, ["totals/gpu_energy_joules"] = json.null, ["totals/cost_usd"] = json.null,
      ["run/planned"] = 16, status = "interrupted", ["repeats/tasks"] = 0, ["repeats/epochs"] = 0,
    })
  end },

  { "tokens are whole numbers, joules whole microjoules", function()
    local doc = made { query("a", 1, 2, 0.12345678, 2, { input_tokens = 7, output_tokens = 3, cost_usd = 2 }) }
    equal(math.type(doc.totals.input_tokens), "integer")
    equal(math.type(doc.totals.cost_usd), "float")
    equal(doc.totals.gpu_energy_joules, 0.123457)
    equal(doc.totals.cpu_energy_joules, 2.0)
  end },

  { "efficiency: accuracy 0.5, 25 J, 225 W (30)", function()
    values_are(made({ query("a", 1, 0.0625, 12.5, nil, { gpu_w = 200 }),
                      query("b", 0, 0.0625, 12.5, nil, { gpu_w = 250 }) },
                    { provenance = by_domain { gpu = { { name = "measured", j = 25 } } } }), {
      ["efficiency/accuracy"] = 0.5, ["efficiency/total_gpu_energy_joules"] = 25,
      ["efficiency/avg_gpu_power_watts"] = 225, ["efficiency/ipj"] = 0.5 / 25, ["efficiency/ipw"] = 0.5 / 225,
      ["efficiency/mean_joules_per_query"] = 12.5, ["efficiency/intelligence_per_joule"] = 0.5 / 12.5,
      ["efficiency/mean_watts_per_query"] = 200, ["efficiency/intelligence_per_watt"] = 0.5 / 200,
      ["efficiency/joules_per_correct_answer"] = 25, ["efficiency/basis"] = "gpu",
      ["efficiency/by_domain/gpu/intelligence_per_joule"] = 0.5 / 12.5, ["provenance/gpu/measured"] = 1,
      ["efficiency/bounds/mean_joules_per_query/lo"] = 11.5, ["efficiency/bounds/mean_joules_per_query/hi"] = 13.5,
      ["efficiency/bounds/intelligence_per_joule/hi"] = 0.043478,
    })
  end },

  { "joules that are too uncertain have no efficiency", function()
    values_are(made { query("a", 1, 1, 1.5, nil, { output_tokens = 3 }) }, {
      ["efficiency/withheld"] = "too_coarse", ["efficiency/ipj"] = json.null,
      ["efficiency/intelligence_per_joule"] = json.null, ["efficiency/mean_joules_per_query"] = 1.5,
      ["efficiency/tokens_per_joule"] = json.null, ["efficiency/joules_per_output_token"] = 0.5,
    })
  end },

  { "a machine's own meter is the basis; else GPU and CPU, and the memory beside them", function()
    local function basis(gpu, cpu, dram, machine, not_lm)
      local doc = made { { id = "a", resolved = 1, gpu_j = gpu, cpu_j = cpu, dram_j = dram, machine_j = machine,
                           not_lm = not_lm } }
      local known = doc.efficiency.joules_per_correct_answer ~= json.null
      equal(known, doc.efficiency.basis ~= json.null)
      return doc.efficiency.basis
    end
    local GPU, CPU, DRAM, MACHINE = 1, 2, 4, 8
    equal(basis(nil, nil, 5, nil), json.null)
    equal(basis(nil, nil, 5, 0), json.null)
    equal(basis(nil, 7, 5, nil), "cpu+dram")
    equal(basis(0, 0, 0, 0), json.null)
    equal(basis(9, 0, nil, 0), "gpu")
    equal(basis(9, 7, 5, 0), "gpu+cpu+dram")
    equal(basis(9, 7, 5, 30), "machine")
    -- Of a model on another machine only that machine's domains count.
    equal(basis(nil, 7, nil, 30, GPU + CPU + DRAM), "machine")
    equal(basis(nil, 7, 5, nil, GPU + DRAM + MACHINE), "cpu")
    equal(basis(nil, 7, 5, nil, GPU + CPU + MACHINE), json.null)
    equal(basis(nil, 7, nil, 30, GPU + CPU + DRAM + MACHINE), json.null)
    equal(basis(9, 7, nil, 30, CPU + DRAM + MACHINE), "gpu")
  end },

  { "forty queries, two cut at each end (31)", function()
    local queries = {}
    for i = 0, 39 do queries[i + 1] = query("q", 1, 1 + 0.1 * ((i * 7) % 40), 10) end
    values_are(made(queries), {
      ["normalized_statistics/_outliers_removed/queries_before"] = 40,
      ["normalized_statistics/_outliers_removed/queries_after"] = 36,
      ["normalized_statistics/_outliers_removed/removed"] = 4, ["normalized_statistics/wall_clock_s/min"] = 1.2,
      ["normalized_statistics/wall_clock_s/max"] = 4.7, ["normalized_efficiency/total_gpu_energy_joules"] = 360,
      ["normalized_efficiency/accuracy"] = 1, ["normalized_efficiency/joules_per_correct_answer"] = 10,
      ["efficiency/total_gpu_energy_joules"] = 400,
    })
    -- From four queries up: one at each end.
    equal(made(table.move(queries, 1, 4, 1, {})).normalized_statistics._outliers_removed.queries_after, 2)
    equal(made(table.move(queries, 1, 3, 1, {})).normalized_efficiency, json.null)
  end },

  { "failures and the unknown", function()
    local queries = {
      query("a", 1, 2, 100, 10, { tools = 1, input_tokens = 10, output_tokens = 5 }),
      query("b", -1, 8, 400, 40, { turns = 3, tools = 4, output_tokens = 5, completed = 0, timed_out = 1,
                                   unscorable = 1 }),
      query("c", 0, 1, nil, 5, { input_tokens = 10, output_tokens = 5, completed = 0 }),
      query("d", -1, 1, 50, 5, { turns = 0, input_tokens = 0, output_tokens = 0, completed = 0, timed_out = 1,
                                 unscorable = 1 }),
    }
    local facts = {
      config = '{"a":1}', runner_cpu_s = 0.5, sampler_cpu_s = 0.1, wall_s = 12,
      balance = balances { cpu = balance(75, 12, { wasted_j = 3 }), gpu = balance(600, 10) },
      groups = { group("failed", "timeout", 2), group("failed", "error", 1) },
    }
    local doc = made(queries, facts)
    values_are(doc, {
      ["totals/completed"] = 1, ["totals/failed"] = 3, ["totals/timed_out"] = 2, ["failed/timeout"] = 2,
      ["failed/error"] = 1, ["totals/resolved"] = 1, ["totals/unresolved"] = 1, ["totals/unscorable"] = 2,
      ["totals/input_tokens"] = json.null, ["totals/known/input_tokens"] = 20, ["totals/unknown/input_tokens"] = 1,
      ["totals/gpu_energy_joules"] = json.null, ["totals/known/gpu_energy_joules"] = 550,
      ["totals/cpu_energy_joules"] = 60, ["totals/bounds/cpu_energy_joules/lo"] = 56,
      -- The GPU has one value less than the CPU: it stays out of the basis of the headline.
      ["efficiency/basis"] = "cpu", ["efficiency/mean_joules_per_query"] = 15,
      ["efficiency/joules_per_correct_answer"] = 60, -- the joules of failed queries are in it
      ["efficiency/by_domain/gpu/queries_with_energy"] = 3,
      ["efficiency/by_domain/gpu/joules_per_correct_answer"] = json.null,
      ["efficiency/ipj"] = json.null, -- no total, so no ratio to it
      ["ledger/cpu/total_j"] = 75, ["ledger/cpu/queries_j"] = 60, ["ledger/cpu/difference_j"] = 0,
      ["ledger/cpu/balanced"] = true, ["ledger/cpu/warmup_j"] = 0, ["ledger/cpu/bounds/queries_j/hi"] = 64,
      ["ledger/machine/warmup_j"] = json.null, -- never read, so not known to be nothing
      ["ledger/machine/wasted_j"] = json.null, ["ledger/gpu/queries_j"] = json.null,
      ["ledger/gpu/difference_j"] = json.null, ["ledger/gpu/balanced"] = json.null,
      ["ledger/dram/reason"] = "no_sensor", ["own_overhead/share"] = 0.6 / 12,
    })
    equal(json.decode(json.encode(doc)).config, { a = 1 })
    facts.balance.cpu.total.j = 75.001
    equal(made(queries, facts).ledger.cpu.balanced, false)
  end },

  { "bounds of all queries together are narrower than their own", function()
    local queries = { query("a", 1, 1, 20, 20), query("b", 1, 1, 20, 20) }
    local all = { j = 40, lo = 39.5, hi = 40.5, u = 1.2, coverage = 1, partial_j = 0 }
    local doc = made(queries, { balance = balances { cpu = balance(50, 10, { queries = all }) } })
    values_are(doc, { ["totals/bounds/cpu_energy_joules/lo"] = 39.5, ["totals/bounds/cpu_energy_joules/hi"] = 40.5,
                      ["totals/bounds/gpu_energy_joules/lo"] = 38 })
    all.j = 41 -- it is not the same energy
    doc = made(queries, { balance = balances { cpu = balance(50, 10, { queries = all }) } })
    values_are(doc, { ["totals/bounds/cpu_energy_joules/lo"] = 38 })
  end },

  { "the bounds of the queries that count are those of all less the part that does not", function()
    local b = { warmup_j = 6, wasted_j = 4, warmup = { lo = 5, hi = 8, u = 0.5 }, wasted = { lo = 3, hi = 6, u = 0.5 },
                queries = { j = 100, lo = 95, hi = 106, u = 3 } }
    local wide, tight = { lo = 10, hi = 400, u = 20 }, { lo = 88, hi = 92, u = 2.61 }
    local cases = {
      { wide, 90, 95 - 8 - 6, 106 - 5 - 3 },
      { tight, 90, 88, 92 }, -- their own, where these are narrower
      { wide, 80, 10, 400 }, -- 10 J of it are another query's
    }
    for _, case in ipairs(cases) do
      local out = summary_values.narrow(b, case[1], case[2])
      equal(out.lo, case[3])
      equal(out.hi, case[4])
    end
    b.warmup = {}
    equal(summary_values.narrow(b, wide, 90).lo, 10)
  end },

  { "a domain with several devices: a line for each; unless a session does not name it", function()
    local item = { domain = "cpu", balance = balance(30, 4) }
    local facts = {
      balance = balances { cpu = balance(60, 10) },
      devices = { { domain = "cpu", name = "package-0", j = 26, account = {} },
                  { domain = "gpu", name = "", account = {} } },
      device_balances = { { domain = "cpu", name = "package-0", balance = item.balance },
                          { domain = "gpu", name = "" } },
    }
    local doc = made({ query("a", 1, 1, nil, 50) }, facts)
    values_are(doc, { ["ledger/cpu/devices/package-0/queries_j"] = 26, ["ledger/cpu/devices/package-0/balanced"] = true,
                      ["accounts/cpu/devices/package-0/attributed_j"] = 26 })
    equal(doc.ledger.gpu.devices, nil)
    facts.devices[3] = { domain = "cpu", name = "", account = {} }
    facts.device_balances[3] = { domain = "cpu", name = "" }
    doc = made({ query("a", 1, 1, nil, 50) }, facts)
    equal(doc.ledger.cpu.devices, nil)
    equal(doc.accounts.cpu.devices, nil)
  end },

  { "estimates are in no total but their own", function()
    local doc = made { query("a", 1, 1, 10), { id = "b", gpu_estimate_j = 4 } }
    values_are(doc, { ["totals/gpu_energy_joules"] = json.null, ["totals/with_estimates/gpu"] = 14 })
    equal(doc.totals.with_estimates.cpu, nil)
    equal(made { query("a", 1, 1, 10) }.totals.with_estimates, nil)
  end },

  { "net joules above the baseline", function()
    local facts = facts_of { baseline = by_domain { gpu = { before_w = 75, after_w = 76 } }, baseline_s = 30 }
    facts.accounts.gpu.marginal_j = -50
    values_are(made({ query("a", 1, 2, 100) }, facts), {
      ["accounts/gpu/marginal_j"] = -50, ["baseline/domains/gpu/net_j"] = -50, ["baseline/seconds"] = 30,
      ["baseline/domains/gpu/drift_w"] = 1, ["baseline/domains/cpu/net_withheld"] = "no_baseline",
    })
  end },

  { "stopped with the run is not failed; unscored is not unscorable", function()
    values_are(made({ { id = "a", completed = 0, stopped = 1 }, { id = "b", completed = 0 }, { id = "c", resolved = 0 },
                      { id = "d", unscorable = 1, retries = 3 }, { id = "e", resolved = 1, retries = 2 } },
                    { groups = { group("interrupted", "server_lost", 1), group("failed", "error", 1) } }), {
      ["totals/completed"] = 3, ["totals/failed"] = 1, ["totals/interrupted"] = 1, ["totals/unscored"] = 2,
      ["totals/unscorable"] = 1, ["totals/retries"] = 5, ["totals/accuracy"] = 0.5, failed = { error = 1 },
      interrupted = { server_lost = 1 },
    })
    -- Nothing was answered, so nothing is known of the accuracy.
    equal(made { { id = "a", completed = 0, resolved = 0 } }.totals.accuracy, json.null)
  end },

  { "the 20 most frequent outcomes, and the number of the others", function()
    local groups = {}
    for i = 1, 25 do groups[i] = group("failed", ("reason %02d"):format(i), i) end
    groups[26] = group("failed", "a reason", 6) -- as frequent as reason 06: names decide
    local doc = made({ { id = "a" } }, { groups = groups })
    local n = 0
    for _ in pairs(doc.failed) do n = n + 1 end
    equal(n, 20)
    equal(doc.failed["reason 25"], 25)
    equal(doc.failed["a reason"], 6)
    equal(doc.failed["reason 06"], nil)
    equal(doc.failed_others, { outcomes = 6, queries = 1 + 2 + 3 + 4 + 5 + 6 })
    equal(doc.interrupted_others, nil)
  end },

  { "models are counted where there are several", function()
    local one = { group("model", "small", 3, { queries = 1 }) }
    equal(made({ { id = "a" } }, { groups = one }).models, json.null)
    one[2] = group("model", "big", 2)
    equal(made({ { id = "a" } }, { groups = one }).models,
      { small = { queries = 1, turns = 3 }, big = { queries = 2, turns = 2 } })
  end },

  { "parts in their order, tools by name", function()
    local doc = made({ { id = "a" } }, { groups = {
      group("part", "", 0, { of = "agent" }), group("part", "python", 2, { of = "tool", joules = { gpu = 3 } }),
      group("part", "fs", 1, { of = "tool" }),
      group("part", "", 4, { of = "prefill", seconds = 2, waste_joules = { gpu = 1 } }),
      group("tool", "python", 2, { child_calls = 2, child_cpu_s = 0.75, child_peak_bytes = 100, cut_bytes = 9,
                                   argument_bytes = 20, joules = { gpu = 4 },
                                   bounds = { gpu = { lo = 3, hi = 5, u = 0.5 }, cpu = {}, dram = {}, machine = {} } }),
      group("tool", "fs", 1, { argument_bytes = NAN, child_cpu_s = NAN }),
      group("tool_outcome", "ok", 1, { of = "python" }), group("tool_outcome", "timeout", 1, { of = "python" }),
      group("tool_outcome", "refused", 1, { of = "fs" }) } })
    local order = {}
    for i, part in ipairs(doc.parts) do order[i] = part.part .. (part.name ~= json.null and " " .. part.name or "") end
    equal(order, { "prefill", "tool fs", "tool python", "agent" })
    equal(doc.parts[1].waste_joules.gpu, 1.0)
    local fs, python = doc.tools[1], doc.tools[2]
    values_are(python, { calls = 2, child_calls = 2, child_cpu_s = 0.75, child_peak_bytes = 100, cut_bytes = 9,
                         argument_bytes = 20, ["joules/gpu"] = 4, ["joules/cpu"] = json.null,
                         ["idle_tax_joules/gpu"] = 3, outcomes = { ok = 1, timeout = 1 }, ["bounds/gpu/u"] = 0.5 })
    values_are(fs, { name = "fs", argument_bytes = json.null, child_cpu_s = json.null, child_peak_bytes = json.null,
                     outcomes = { refused = 1 } })
  end },

  { "a judge's verdicts, and what they took", function()
    local function judged(verdict, gpu_j, asked)
      return { id = "a", judge_verdict = verdict, judge_asked = asked or 1, judge_gpu_j = gpu_j,
               judge_input_tokens = 10, judge_output_tokens = 2, judge_wall_s = 0.5, gpu_j = 7 }
    end
    local queries = { judged(1, 3), judged(2, 4), judged(3, 5), judged(0, nil, 0), { id = "b", gpu_j = 1 } }
    local doc = made(queries, { groups = { group("judge", "m", 4) } })
    values_are(doc.judge, { accuracy = 1 / 3, asked = 3, correct = 1, incorrect = 1, not_attempted = 1, no_verdict = 1,
                            input_tokens = 30, output_tokens = 6, wall_clock_s = 1.5, gpu_energy_joules = 12,
                            cpu_energy_joules = json.null, cost_usd = json.null, model = "m" })
    values_are(doc, { ["totals/judge_gpu_energy_joules"] = 12, ["totals/total_task_gpu_energy_joules"] = 29 + 12,
                      ["statistics/total_task_gpu_energy_joules/max"] = 12,
                      ["statistics/judge_gpu_energy_joules/n"] = 3 })
    doc = made({ judged(1, 3), judged(1, nil) }, { groups = { group("judge", "m", 1), group("judge", "n", 1) } })
    values_are(doc.judge, { gpu_energy_joules = json.null, wall_clock_s = 1, model = json.null })
  end },

  { "latencies of the model calls", function()
    local doc = made({ { id = "a" } }, {}, { { ttft_s = 0.5, input_tokens = 100, itl_mean_s = 0.02 },
                                             { ttft_s = 0.25, input_tokens = 100, itl_mean_s = 0 }, {} })
    values_are(doc.latency, { ["ttft_s/n"] = 2, ["ttft_s/avg"] = 0.375, ["prefill_tokens_per_s/max"] = 400,
                              ["decode_tokens_per_s/n"] = 1, ["decode_tokens_per_s/avg"] = 50, ["ttfo_s/n"] = 0,
                              ["ttfo_s/avg"] = json.null })
    for name in pairs(doc.latency) do ok(doc.definitions.latency[name], name) end
  end },

  { "repeats of a task are averaged first", function()
    local queries = {}
    for epoch = 0, 2 do
      for i = 0, 3 do
        queries[#queries + 1] = query("q" .. i, i < 2 and 1 or 0, 2, nil, 10 * i + epoch, { epoch = epoch })
      end
    end
    values_are(made(queries).repeats, {
      tasks = 4, epochs = 3, by = "task", ["metrics/cpu_energy_joules/n"] = 4, ["metrics/cpu_energy_joules/mean"] = 16,
      ["metrics/cpu_energy_joules/min"] = 1, ["metrics/accuracy/mean"] = 0.5,
      ["metrics/intelligence_per_joule/mean"] = 0.5 / 16, ["metrics/gpu_energy_joules/n"] = 0,
      ["metrics/gpu_energy_joules/method"] = "none",
    })
  end },

  { "one task over and over is taken by epoch", function()
    local queries = {}
    for epoch = 0, 4 do
      queries[epoch + 1] = query("q", epoch ~= 2 and 1 or 0, 2, nil, 10 + epoch, { epoch = epoch })
    end
    values_are(made(queries).repeats, { tasks = 1, by = "epoch", ["metrics/joules/n"] = 5,
                                        ["metrics/joules/method"] = "t", ["metrics/joules/mean"] = 12,
                                        ["metrics/accuracy/mean"] = 0.8 })
  end },

  { "repeats are no new tasks, and an accuracy stays within 0 and 1", function()
    local function of(epochs)
      local queries = {}
      for i = 0, 8 * epochs - 1 do
        queries[i + 1] = query("q" .. i % 8, i % 8 < 6 and 1 or 0, 2, nil, 10 + i % 8, { epoch = i // 8 })
      end
      return made(queries).repeats.metrics
    end
    local once, thrice = of(1), of(3)
    local lo, hi = core.wilson(0.75, 8)
    near(once.accuracy.lo, lo) near(once.accuracy.hi, hi) near(thrice.accuracy.mean, 0.75)
    ok(thrice.accuracy.hi - thrice.accuracy.lo >= once.accuracy.hi - once.accuracy.lo, "not narrower")
    -- s of 10..17 is sqrt(6), n 8, t(7) 2.3646243; whole copies of the tasks leave it as it is.
    ok(math.abs(once.joules.lo - (13.5 - 2.3646243 * math.sqrt(6 / 8))) < 1e-6, "Student's interval")
    ok(math.abs(thrice.joules.lo - once.joules.lo) < 1e-9, "the same interval")
    equal(once.accuracy.method, "wilson")
  end },

  { "ratios are bootstrapped, or have no interval", function()
    local function of(n)
      local queries = {}
      for i = 0, n - 1 do queries[i + 1] = query("q" .. i, i % 4 ~= 0 and 1 or 0, 2, nil, 10 + i % 7) end
      return made(queries).repeats.metrics.intelligence_per_joule
    end
    equal(of(19).method, "none")
    equal(of(19).lo, json.null)
    local ratio = of(56)
    values_are(ratio, { method = "bootstrap", mean = 0.75 / 13, min = 0, max = 0.1 })
    -- 0.75 has a standard error of 0.058, 13 one of 0.27: 0.0046 of the ratio.
    ok(ratio.lo > 0.0457 and ratio.lo < 0.0527 and ratio.hi > 0.0627 and ratio.hi < 0.0697, "its width")
  end },

  { "pass@k", function()
    near(statistics.pass_at(5, 2, 1), 0.4)
    near(statistics.pass_at(5, 2, 2), 0.7) -- 1 - C(3,2) / C(5,2) = 1 - 3 / 10
    near(statistics.pass_at(5, 2, 4), 1) -- only 3 are wrong
    near(statistics.pass_at(5, 0, 3), 0)
    near(statistics.pass_at(5, 5, 1), 1)
    near(statistics.pass_at(200, 10, 100), 1 - 0.0007710260627178503)
    local queries = {}
    for i = 0, 4 do
      queries[#queries + 1] = { id = "a", epoch = i, resolved = i < 2 and 1 or 0 }
      queries[#queries + 1] = { id = "b", epoch = i, resolved = 0 }
      queries[#queries + 1] = { id = "unscored", epoch = i }
    end
    queries[#queries + 1] = { id = "b", epoch = 5, resolved = 0 }
    local list = made(queries).repeats.pass_at
    equal(#list, 3) -- 1, 2, 5: the fewest answers of a scored task are 5
    equal(list[3].k, 5)
    near(list[1].share, 0.2) near(list[2].share, 0.35) near(list[3].share, 0.5)
    equal(#made { { id = "a", resolved = 1 }, { id = "b", resolved = 0 } }.repeats.pass_at, 0)
    equal(#made {}.repeats.pass_at, 0)
  end },

  { "why a cost is not known: no price of the model, or tokens that were not told", function()
    local costs = require "ipw.costs"
    local saved = { totals = { queries = 3, resolved = 2 }, statistics = { cost_usd = { n = 2 } },
                    run = { model = "m" } }
    local priced = costs.of(saved, { model = "m", price = { input = 1 } })
    equal(priced.unpriced, 1)
    equal(costs.lines(priced)[1][2],
      "not known: of 1 of 3 queries neither the reply nor a table tells it (--prices)")
    equal(costs.of(saved, { model = "m" }).why, "no price for 'm' (--prices)")
    saved.totals.turns = 0
    equal(costs.of(saved, { model = "m" }).why, "no model was called")
    saved.totals.cost_usd, saved.statistics.cost_usd.n = 0.6, 3
    equal(costs.lines(costs.of(saved, {}))[1][2], "0.600 USD, 0.200 per query, 0.300 per correct answer")
  end },

  { "more rows than are read at a time", function()
    local queries, sum = {}, 0
    for i = 1, 2500 do
      queries[i] = query("q" .. i % 800, i % 2, i, i)
      sum = sum + i
    end
    values_are(made(queries), { ["totals/gpu_energy_joules"] = sum, ["totals/wall_clock_s"] = sum,
                                ["repeats/tasks"] = 800, ["totals/resolved"] = 1250,
                                ["statistics/wall_clock_s/median"] = 1250.5,
                                ["normalized_statistics/wall_clock_s/max"] = 2375,
                                ["normalized_efficiency/queries_with_energy"] = 2250 })
  end },
}
