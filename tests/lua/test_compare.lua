--- Runs beside each other: which queries and turns belong together, over which devices they are compared, when a
--- difference is significant, and the gates. Figures without another source follow from the numbers of the case.
local compare, gate, runs = require "ipw.compare", require "ipw.gate", require "ipw.runs"
local show, json, test = require "ipw.compare_text", require "ipw.json", require "ipw.test"
local equal = test.equal

local function near(got, want, by)
  test.ok(got and math.abs(got - want) <= (by or 1e-9), ("got %s, want %s"):format(got, want))
end

local function run(name) return { path = name, name = name, rows = {}, not_lm = {}, manifest = {} } end

local function figures(gpu, cpu, by)
  local out = {}
  for domain, j in pairs { gpu = gpu, cpu = cpu } do
    if j == j then out[domain] = { j = j, lo = by and j - by, hi = by and j + by } end
  end
  return out
end

local nan = 0 / 0

--- A query of two turns.
local function add(to, id, of)
  local row = { id = id, epoch = of.epoch or 0, index = of.index or #to.rows, resolved = of.resolved,
                seconds = of.seconds or 1, input = of.input or 100, output = of.output or 10, turns = {},
                cost = of.cost, energy = figures(of.gpu or nan, of.cpu or nan, of.by) }
  local n = of.turns or 2
  for i = 1, n do
    row.turns[i] = { seconds = row.seconds / n, input = 10, output = 20 + i - 1,
                     energy = figures((of.gpu or nan) / n, (of.cpu or nan) / n, of.by and of.by / n) }
  end
  to.rows[#to.rows + 1] = row
end

local function row_of(two, name)
  for _, row in ipairs(two.rows) do if row.metric[1] == name then return row end end
end

--- Two runs whose queries' GPU joules are given.
local function two_of(a, b, resolved_a, resolved_b)
  local one, other = run "a", run "b"
  for i = 1, #a do
    add(one, ("q%d"):format(i), { gpu = a[i], resolved = resolved_a and resolved_a[i] })
    add(other, ("q%d"):format(i), { gpu = b[i], resolved = resolved_b and resolved_b[i] })
  end
  return compare.two(one, other)
end

local function judged(text, two) return gate.judge(assert(gate.parse(text)), two).state end

return {
  { "pairs: by id, repeats in the order in which they began", function()
    local a, b = run "a", run "b"
    add(a, "z", { gpu = 1, index = 5 })
    add(a, "x", { gpu = 10, index = 0, turns = 3 }) -- only as many turns are paired as both have
    add(a, "x", { gpu = 20, index = 7, epoch = 1 })
    add(a, "only a", { gpu = 1, index = 1 })
    add(b, "x", { gpu = 21, index = 3, epoch = 1 })
    add(b, "x", { gpu = 11, index = 4 })
    add(b, "z", { gpu = 2, index = 0 })
    add(b, "only b", { gpu = 1, index = 9 })
    add(b, "z", { gpu = 3, index = 6, epoch = 1 }) -- no second one over there
    local two = compare.two(a, b)
    equal({ #two.pairs, two.turns, two.only[1], two.only[2] }, { 3, 6, 1, 2 })
    for _, both in ipairs(two.pairs) do
      equal(both[1].id, both[2].id)
      near(both[2].energy.gpu.j, both[1].energy.gpu.j + 1)
    end
    local joules = row_of(two, "gpu_joules")
    equal({ joules.pairs, joules.tasks, joules.verdict }, { 3, 2, "too_few" })
    near(joules.difference.mean, 1)
    equal(row_of(two, "turn_joules").pairs, 6)
  end },

  { "bounds of a mean are those of the sum; of some queries, what the others leave", function()
    local a, b = run "a", run "b"
    for i = 1, 10 do
      add(a, "q" .. i, { gpu = 16, by = 12 })
      add(b, "q" .. i, { gpu = 20 + i / 100, by = 15 })
    end
    local wide = row_of(compare.two(a, b), "joules")
    near(wide.a_lo, 4); near(wide.a_hi, 28) -- no summary
    equal(wide.verdict, "too_coarse")
    a.summary = { totals = { queries = 10, bounds = { gpu_energy_joules = { lo = 158, hi = 163, u = 5 } } } }
    b.summary = { totals = { queries = 10, bounds = { gpu_energy_joules = { lo = 199, hi = 203 } } } }
    local two = compare.two(a, b)
    local row = row_of(two, "joules")
    near(row.a_lo, 15.8); near(row.a_hi, 16.3); near(row.b_lo, 19.9); near(row.b_hi, 20.3)
    equal({ row.verdict, row_of(two, "turn_joules").verdict }, { "higher", "higher" })
    near(compare.alone(a, { "gpu" }).joules.sensor_lo, 15.8)
    local lo, hi = runs.together(a, { a.rows[1], a.rows[2] }, { "gpu" })
    near(lo, 8); near(hi, 56) -- their own: the other eight leave [158 - 8 * 28, 163 - 8 * 4]
    lo, hi = runs.together(a, table.move(a.rows, 1, 9, 1, {}), { "gpu" })
    near(lo, 130); near(hi, 159) -- all less the tenth
    a.summary.totals.queries = 11 -- a line is lost
    near(row_of(compare.two(a, b), "joules").a_lo, 4)
  end },
  { "what the sensor does not tell is not significant, and no gate holds by it", function()
    local a, b = run "a", run "b"
    for i = 1, 5 do
      add(a, "q" .. i, { gpu = 10, by = 5.1, resolved = 1 })
      add(b, "q" .. i, { gpu = 40 + i, by = 1, resolved = 1 })
    end
    local two = compare.two(a, b)
    equal(row_of(two, "joules").verdict, "too_coarse")
    equal(row_of(two, "joules_per_token").verdict, "too_coarse")
    equal(row_of(two, "seconds").verdict, "same")
    for _, text in ipairs { "j_query<=+900%", "j_solved<=+900%", "j_token<=+900%" } do
      equal(judged(text, two), "unknown")
      equal(gate.judge(assert(gate.parse(text)), two).why, "the sensor is too coarse")
    end
    equal(judged("seconds<=+1%", two), "held")
    local text = show.text({ a, b }, { two }, {}, {})
    test.ok(text:find("%] +cannot tell\n +the sensor is too coarse: A 4.90 to 15.1 J, B 42.0 to 44.0 J\n"), text)
    test.ok(show.markdown({ a, b }, { two }, {}):find("cannot tell: the sensor is too coarse", 1, true))
    for _, row in ipairs(a.rows) do row.energy.gpu.lo, row.energy.gpu.hi = 5, 15 end -- half of it, not more
    equal(row_of(compare.two(a, b), "joules").verdict, "higher")
  end },
  { "a difference of joules below the uncertainty of the two means is not significant", function()
    local a, b = run "a", run "b"
    for i = 1, 5 do
      add(a, "q" .. i, { gpu = 100, by = 1, resolved = 1 })
      add(b, "q" .. i, { gpu = 104 + i / 100, by = 1, resolved = 1 })
      a.rows[i].energy.gpu.u, b.rows[i].energy.gpu.u = 3, 4
    end
    local two = compare.two(a, b)
    local row = row_of(two, "joules")
    near(row.u, 5) -- 3 and 4: without a summary the queries' own
    equal({ row.verdict, row_of(two, "gpu_joules").verdict, row_of(two, "turn_joules").verdict,
            row_of(two, "joules_per_token").verdict }, { "below_u", "below_u", "below_u", "below_u" })
    near(row_of(two, "turn_joules").u, 2.5, 1e-9)
    local text = show.text({ a, b }, { two }, {}, {})
    test.ok(text:find("%] +below u\n +sensor bounds: A 99.0 to 101 J, B 103 to 105 J; u of the difference 5.00 J\n"),
      text)
    test.ok(show.markdown({ a, b }, { two }, {}):find("| energy | 100 J | 104 J | +4.03 J ", 1, true))
    local shown = json.decode(show.json({ a, b }, { two }, {})).metrics.joules
    near(shown.difference.u, 5)
    equal(shown.verdict, "below_u")
    -- The summary knows all queries together better than each of them.
    a.summary = { totals = { queries = 5, bounds = { gpu_energy_joules = { lo = 499, hi = 501, u = 10 } } } }
    b.summary = { totals = { queries = 5, bounds = { gpu_energy_joules = { lo = 519, hi = 521, u = 10 } } } }
    row = row_of(compare.two(a, b), "joules")
    near(row.u, math.sqrt(8))
    equal(row.verdict, "higher")
    a.rows[6] = table.remove(b.rows) -- of some of its queries it does not say
    a.rows[6].id = "q6"
    near(row_of(compare.two(a, b), "joules").u, 5)
    for _, one in ipairs(a.rows) do one.energy.gpu.u = nil end
    equal(row_of(compare.two(a, b), "joules").verdict, "higher") -- not known
  end },
  { "two bounds have one unit", function()
    local quantity = require "ipw.quantity"
    equal(quantity.range(0.628, 14.9, "J"), "0.63 to 14.9 J")
    equal(quantity.range(99.96, 1234, "J"), "0.10 to 1.23 kJ")
    equal(quantity.range(0, 0.0149, "J"), "0 to 14.9 mJ")
    equal(quantity.range(nil, 14.9, "J"), quantity.unknown)
  end },
  { "verdicts", function()
    equal(row_of(two_of({ 10, 10 }, { 12, 13 }), "joules").verdict, "too_few")
    equal(row_of(two_of({ 10, 10, 10 }, { 12, 13, 12.5 }), "joules").verdict, "higher")
    equal(row_of(two_of({ 10, 10, 10 }, { 8, 7, 7.5 }), "joules").verdict, "lower")
    equal(row_of(two_of({ 10, 10, 10 }, { 10, 10, 10 }), "joules").verdict, "same")
    local mixed = row_of(two_of({ 10, 10, 10, 10 }, { 12, 8, 10.5, 9 }), "joules")
    equal(mixed.verdict, "not_shown")
    equal(mixed.difference.method, "t")
    equal(row_of(two_of({ 10 }, { 12 }), "dram_joules").verdict, "unknown")
  end },

  { "as many right in both is no proof that the runs are equal; accuracies differ by points", function()
    local ones = { 1, 1, 1, 1 }
    local two = two_of({ 5, 5, 5, 5 }, { 5, 5, 5, 5 }, ones, ones)
    equal(row_of(two, "accuracy").verdict, "not_shown")
    equal(row_of(two, "joules").verdict, "same")
    two = two_of({ 5, 5, 5, 5 }, { 5, 5, 5, 5 }, { 0, 1, 1, 0 }, ones)
    for _, how in ipairs { "text", "markdown" } do
      test.ok(show[how]({ two.a, two.b }, { two }, {}, {}):find("+50.0 pt", 1, true), how)
    end
  end },

  { "every setting that differs is named", function()
    local a, b = run "a", run "b"
    a.manifest = { config = { agent = "react", agent_file = "x", agent_sha256 = "1", max_turns = 4, share = "phase",
                              client_base_url = "http://a", tools = { "calculator" }, model = "m",
                              limits = { query = { tokens = 5 } }, dataset = "d", dataset_sha256 = "1" } }
    b.manifest = { config = { agent = "react", agent_file = "y", agent_sha256 = "2", max_turns = 8, share = "equal",
                              client_base_url = "http://b", tools = { "python" }, model = "m", limits = { query = {} },
                              seed = 7, price = { input = 1 }, untrusted = false, dataset = "d",
                              dataset_sha256 = "1" } }
    local names = {}
    for i, setting in ipairs(compare.differ(a, b)) do names[i] = setting[1] end
    equal(names, { "agent", "limits", "max turns", "prices", "seed", "server", "sharing rule", "tools" })
    equal(compare.differ(a, run "without a manifest"), {})
    a.manifest.config.model, b.manifest.config.model = "demo", "demo" -- each has its own server
    equal(#compare.differ(a, b), 7)
    add(a, "q", { gpu = 1 })
    add(b, "q", { gpu = 1 })
    local text = show.text({ a, b }, { compare.two(a, b) }, {}, {})
    test.ok(text:find("agent (another version of it)", 1, true) and text:find("max turns (4, 8)", 1, true), text)
    for line in text:gmatch "[^\n]+" do test.ok(utf8.len(line) <= 80, line) end
  end },

  { "joules have the bounds of the readings", function()
    local a, b = run "a", run "b"
    for i = 0, 3 do
      add(a, "q" .. i, { cpu = 2 * (10 + i), by = 1 })
      add(b, "q" .. i, { cpu = 2 * (14 + 2 * i), by = 0.5 })
    end
    local turns = row_of(compare.two(a, b), "turn_joules")
    equal({ turns.pairs, turns.tasks, turns.verdict }, { 8, 4, "higher" })
    near(turns.a, 11.5) near(turns.b, 17) near(turns.a_lo, 11) near(turns.a_hi, 12) near(turns.b_lo, 16.75)
    near(turns.readings_lo, 16.75 - 12) near(turns.readings_hi, 17.25 - 11) near(turns.difference.mean, 5.5)
    local j, lo, hi = runs.joules(figures(10, 5, 1), { "gpu", "cpu" })
    equal({ j, lo, hi }, { 15.0, 13.0, 17.0 })
    equal({ runs.joules(figures(10, nan), { "gpu", "cpu" }) }, {})
    equal({ runs.joules(figures(10, 5), { "gpu" }) }, { 10.0 })
    equal({ runs.joules(figures(10, 5), {}) }, {})
  end },

  { "what one side does not know is in no mean of either", function()
    local a, b = run "a", run "b"
    add(a, "x", { gpu = 10, cpu = 4, resolved = 1 })
    add(a, "y", { gpu = 1000, cpu = 4 })
    add(b, "x", { gpu = 12, cpu = 4, resolved = 1 })
    add(b, "y", { cpu = 4, resolved = 1 })
    local two = compare.two(a, b)
    local gpu = row_of(two, "gpu_joules")
    equal({ gpu.pairs, gpu.a, gpu.b }, { 1, 10.0, 12.0 })
    equal(row_of(two, "accuracy").pairs, 1)
    equal(two.basis, { "gpu", "cpu" })
    b.not_lm = { gpu = true, cpu = true } -- a model elsewhere: the client's joules are no basis
    equal(compare.two(a, b).basis, {})
    equal(row_of(compare.two(a, b), "joules").a, nil)
    equal(#compare.two(run "a", run "b").pairs, 0)
  end },

  { "each task counts once", function()
    local a, b = run "a", run "b"
    add(a, "68f700f5-b02b-4dc6", { cpu = 40, turns = 4, by = 4 })
    add(a, "s", { cpu = 40, turns = 1, by = 1 })
    add(a, "t", { cpu = 40, turns = 1, by = 1 })
    add(b, "68f700f5-b02b-4dc6", { cpu = 64, turns = 4, by = 4 })
    add(b, "s", { cpu = 41, turns = 1, by = 1 })
    add(b, "t", { cpu = 41.5, turns = 1, by = 1 })
    local two = compare.two(a, b)
    local turns = row_of(two, "turn_joules")
    equal({ turns.pairs, turns.tasks }, { 6, 3 })
    near(turns.a, 30) near(turns.a_lo, 29) near(turns.b, 98.5 / 3)
    local text = show.text({ a, b }, { two }, {}, { turns = true })
    test.ok(text:find("\n  68f700f\u{2026} 4    10.0 J    16.0 J", 1, true), text)
    test.ok(text:find("no clear difference", 1, true))
    for line in text:gmatch "[^\n]+" do test.ok(utf8.len(line) <= 80, line) end
  end },

  { "sizes, and nothing that is made up", function()
    for _, case in ipairs { { 2e6, 5e6, "+3.00 MJ" }, { 2e3, 5e3, "+3.00 kJ" }, { 2e-3, 5e-3, "+3.00 mJ" },
                            { 2e-6, 5e-6, "+3.00 uJ" }, { 100, 202, "+102 J" } } do
      local two = two_of({ case[1], case[1], case[1] }, { case[2], case[2], case[2] })
      test.ok(show.text({ two.a, two.b }, { two }, {}, {}):find(case[3], 1, true), case[3])
    end
    local two = two_of({ nan }, { nan })
    local text = show.text({ two.a, two.b }, { two }, {}, {})
    test.ok(text:find("1 query and 2 turns in both; no device was measured in both", 1, true), text)
    two.a.path = "runs/\27[31mone"
    test.ok(not show.text({ two.a, two.b }, { two }, {}, {}):find "\27")
    local doc = json.decode(show.json({ two.a, two.b }, { two }, {}))
    test.ok(json.is_null(doc.metrics.joules.a) and json.is_null(doc.basis))
    equal(#doc.pairs, 1)
    test.ok(json.is_null(doc.pairs[1].turns[1].a.joules))
  end },

  { "proportions: Newcombe's paired interval", function()
    -- 36 tasks right in both runs, 2 only in the first, 12 in none; worked out in Python from the roots of Wilson's
    -- equation and statistics.correlation (0.9011), without Newcombe's correction for continuity.
    local tasks = {}
    for i = 1, 50 do
      local both, only = i <= 36, i > 36 and i <= 38
      tasks[i] = { n = 1, a = (both or only) and 1 or 0, b = both and 1 or 0 }
      tasks[i].raw_a, tasks[i].raw_b = tasks[i].a, tasks[i].b
    end
    local d = compare.share_difference(tasks)
    near(d.mean, -0.04)
    near(d.lo, -0.1047457436111921) near(d.hi, 0.020209302855751052)
    local all = {}
    for i = 1, 10 do all[i] = { n = 1, a = 1, b = 1, raw_a = 1, raw_b = 1 } end
    d = compare.share_difference(all)
    near(d.mean, 0)
    test.ok(d.lo < -0.2 and d.lo >= -1 and d.hi <= 1 and d.hi > 0.2, "ten of ten twice proves little")
    for i = 1, 10 do all[i].b, all[i].raw_b = 0, 0 end
    d = compare.share_difference(all)
    equal(d.mean, -1.0)
    test.ok(d.lo >= -1 and d.hi <= 0)
    local one = run "a"
    for i = 1, 3 do add(one, "q" .. i, { gpu = 6, resolved = i > 1 and 1 or 0 }) end
    local alone = compare.alone(one, { "gpu" })
    equal(alone.accuracy.method, "wilson")
    test.ok(alone.accuracy.lo >= 0 and alone.accuracy.hi <= 1)
    near(alone.j_solved.mean, 9)
  end },

  { "a query without a score took its joules, and is no correct answer: as in summary.json", function()
    local two = two_of({ 10, 20, 30 }, { 10, 20, 60 }, { 1, 1 }, { 1, 1 })
    equal(two.a.rows[3].resolved, nil)
    near(compare.alone(two.a, { "gpu" }).j_solved.mean, 30)
    near(compare.correct_change(two, "joules", "difference").mean, 15)
  end },

  { "gates", function()
    local a, b, right, wrong = {}, {}, {}, {}
    for i = 1, 40 do
      a[i], b[i] = 100 + i % 7, 102 + i % 7
      right[i], wrong[i] = 1, i % 2
    end
    local two = two_of(a, b, right, right)
    equal(judged("j_query<=+3%", two), "held")        -- 2 % more
    equal(judged("j_query<=+1%", two), "broken")
    equal(judged("j_query<=+2J", two), "held")        -- exactly 2 J
    equal(judged("j_query <= +1.5 J", two), "broken")
    equal(judged("j_solved<=+3%", two), "held")
    equal(judged("j_solved<=+1J", two), "broken")
    equal(judged("seconds<=+0", two), "held")
    equal(judged("accuracy>=-10pt", two), "held")
    equal(judged("accuracy>=-1pt", two), "unknown")   -- 40 of 40 twice do not show it
    equal(judged("accuracy>=-10pt", two_of(a, b, right, wrong)), "broken")
    equal(judged("turns>=+0", two), "held")
    equal(judged("j_query<=+3%", two_of({ 1, 2 }, { 1, 2 })), "unknown")
    equal(judged("j_solved<=+3%", two_of(a, b)), "unknown")
    equal(judged("j_query<=+3%", two_of({ nan, nan, nan }, { 1, 2, 3 })), "unknown")
    equal(gate.status {}, 0)
    equal(gate.status { { state = "held" } }, 0)
    equal(gate.status { { state = "unknown" }, { state = "held" } }, 6)
    equal(gate.status { { state = "unknown" }, { state = "broken" } }, 5)
  end },

  { "a gate is not told by less than the standard uncertainty of the joules", function()
    local a, b, right = {}, {}, {}
    for i = 1, 40 do a[i], b[i], right[i] = 100, 102, 1 end
    local two = two_of(a, b, right, right)
    local function with_u(u)
      for _, side in ipairs { two.a, two.b } do
        side.summary = { totals = { queries = 40, bounds = { gpu_energy_joules = { lo = 3900, hi = 4200, u = u } } } }
      end
      return compare.two(two.a, two.b)
    end
    -- 2 J more; u of the difference is sqrt(2) of a query's
    for _, of in ipairs { { 20, 0.71 }, { 40, 1.41 } } do
      local some = with_u(of[1])
      near(row_of(some, "joules").u, of[2], 0.01)
      equal(judged("j_query<=+1J", some), of[1] == 20 and "broken" or "unknown")
      equal(judged("j_query<=+3%", some), of[1] == 20 and "held" or "unknown")
      equal(judged("j_correct<=+1J", some), of[1] == 20 and "broken" or "unknown")
      equal(judged("j_query<=+9%", some), "held")
      equal(judged("seconds<=+0", some), "held")
    end
    test.ok(gate.judge(assert(gate.parse "j_query<=+3%"), with_u(40)).why:find("standard uncertainty", 1, true))
  end },

  { "few correct answers have no interval: a draw without any has no limit", function()
    for _, of in ipairs { { 2, "unknown" }, { 20, "held" } } do
      local a, b, right, some = {}, {}, {}, {}
      for i = 1, 40 do a[i], b[i], right[i], some[i] = 100, 1, 1, i <= of[1] and 1 or 0 end
      local two = two_of(a, b, right, some)
      equal(judged("j_correct<=+0", two), of[2])
      equal(judged("j_correct<=+0%", two), of[2])
      local value = compare.alone(two.b, { "gpu" })
      equal(gate.judge_alone(assert(gate.parse "j_correct<=1kJ"), two.b, value).state, of[2])
      equal(value.j_solved.mean, 40 / of[1])
    end
    local none = two_of({ 1, 1, 1 }, { 1, 1, 1 }, { 0, 0, 0 }, { 1, 1, 1 })
    equal(compare.correct_change(none, "joules", "relative").mean, nil)
  end },

  { "gates on a run's own values", function()
    local one = run "one"
    for i = 1, 40 do
      add(one, ("q%d"):format(i), { gpu = 100 + i % 7, by = 1, resolved = i % 4 == 0 and 0 or 1, cost = 0.03,
                                    seconds = 2, turns = 3 })
    end
    local alone = compare.alone(one, { "gpu" })
    local function judge(text, of) return gate.judge_alone(assert(gate.parse(text)), one, of or alone) end
    -- 30 of 40 are correct: 60 to 86 %; 103 J a query, 137 J and 0.04 USD a correct answer
    for text, state in pairs {
      ["accuracy>=50%"] = "held", ["accuracy>=80%"] = "unknown", ["accuracy>=90%"] = "broken",
      ["j_query<=110J"] = "held", ["j_query<=0.103kJ"] = "unknown", ["j_query<=1J"] = "broken",
      ["j_correct<=500J"] = "held", ["j_correct<=137J"] = "unknown", ["j_solved<=100J"] = "broken",
      ["cost_query<=0.03"] = "held", ["cost_correct<=0.06"] = "held", ["cost_correct<=0.04USD"] = "unknown",
      ["cost_correct<=0.01"] = "broken", ["seconds<=2s"] = "held", ["seconds<=1ms"] = "broken",
      ["seconds_correct<=5s"] = "held", ["turns<=3"] = "held", ["turns<=2"] = "broken",
      ["tokens_correct<=1000"] = "held", ["output_tokens>=11"] = "broken",
    } do
      equal(judge(text).state, state, text)
    end
    near(judge("cost_correct<=0.04").mean, 0.04)
    near(judge("tokens_correct<=1").mean, 110 * 4 / 3)
    equal(judge("accuracy>=50%").change, nil)
    -- the sensor's bounds count besides the tasks'
    one.summary = { totals = { queries = 40, bounds = { gpu_energy_joules = { lo = 4080, hi = 4800 } } } }
    for _, row in ipairs(one.rows) do row.energy.gpu.lo, row.energy.gpu.hi = 80, 120 end
    equal(judge("j_query<=110J", compare.alone(one, { "gpu" })).state, "unknown")
    for _, row in ipairs(one.rows) do row.energy.gpu.lo, row.energy.gpu.hi = 10, 190 end
    one.summary = nil
    equal(judge("j_query<=1J", compare.alone(one, { "gpu" })).why, "the sensor is too coarse")
    one.rows[7].cost = nil
    equal(judge("cost_correct<=0.06", compare.alone(one, { "gpu" })).why, "not known: a model has no price (--prices)")
    equal(judge("cost_query<=0.06", compare.alone(one, { "gpu" })).state, "held") -- of those with a price
    for _, row in ipairs(one.rows) do row.resolved = 0 end
    equal(judge("j_correct<=9kJ", compare.alone(one, { "gpu" })).why, "not known: no answer is correct")
  end },

  { "a bound that reads as the other kind is refused with the line that says it right", function()
    local function why(text) return select(2, gate.parse(text)) end
    for text, line in pairs {
      ["accuracy>=80"] = "'accuracy>=80%' bounds the value, 'accuracy>=+80pt' the change",
      ["accuracy>=+80%"] = "a change of accuracy is in points: 'accuracy>=+80pt'; without a sign, 'accuracy>=80%'",
      ["accuracy>=1pt"] = "'accuracy>=+1pt' bounds the change from the first run",
      ["j_query<=3"] = "'j_query<=3J' bounds the value, 'j_query<=+3%' the change",
      ["j_query<=3%"] = "'j_query<=+3%' bounds the change from the first run; j_query itself is bounded in J",
      ["seconds<=5"] = "'seconds<=5s' bounds the value",
      ["turns<=0"] = "'turns<=+0'",
      ["j_token<=5J"] = "'j_token<=+5J'",
    } do
      test.ok((why(text) or ""):find(line, 1, true), why(text) or text)
    end
  end },

  { "OOI: joules per correct answer over those of the agent `single`", function()
    local function pair_of(first, second, model)
      local joules, right = {}, {}
      for i = 1, 20 do joules[i], right[i] = { 100 + i % 3, 400 + i % 5 }, i % 2 end
      local two = two_of({}, {})
      for k, side in ipairs { two.a, two.b } do
        side.manifest = { config = { agent = k == 1 and first or second, model = k == 1 and "m" or model or "m",
                                     dataset = "d" } }
        for i = 1, 20 do
          -- the first answers every second task, the second all of them
          add(side, "q" .. i, { gpu = joules[i][k], resolved = k == 1 and right[i] or 1 })
        end
      end
      return compare.two(two.a, two.b)
    end
    -- 20 tasks, 10 correct: 2021 J / 10 = 202.1 J; 8040 J / 20 = 402 J
    local index = compare.orchestration(pair_of("single", "react"))
    near(index.mean, 402 / 202.1)
    test.ok(index.lo < index.mean and index.hi > index.mean)
    equal(index.agent, "react")
    local two = pair_of("single", "react")
    test.ok(show.text({ two.a, two.b }, { two }, {}, {}):find("OOI 1.99 (", 1, true))
    near(json.decode(show.json({ two.a, two.b }, { two }, {})).orchestration_overhead.mean, 402 / 202.1)
    near(compare.orchestration(pair_of("react", "single")).mean, 202.1 / 402)
    equal(compare.orchestration(pair_of("react", "tools")), nil)
    equal(compare.orchestration(pair_of("single", "react", "other")), nil)
  end },

  { "a leaderboard: ranks, ties, and nothing where nothing is known", function()
    local leaderboard = require "ipw.leaderboard"
    local best, close, worst = run "best", run "close", run "worst|=1"
    for i = 1, 60 do
      add(best, "q" .. i, { gpu = 10, resolved = i % 10 == 0 and 0 or 1, cost = 0.01 })
      add(close, "q" .. i, { gpu = 20, resolved = i % 8 == 0 and 0 or 1 })
      add(worst, "q" .. i, { gpu = 5, resolved = i % 10 == 0 and 1 or 0, cost = 0.001 })
    end
    for i, one in ipairs { best, close, worst } do
      one.manifest = { config = { agent = "a", dataset = "d", model = ({ "b", "c", "=w|" })[i] } }
    end
    local list = { worst, close, best }
    local text = leaderboard.text(list, "markdown")
    local first, second, third = text:match "%-%-%- |\n(.-)\n(.-)\n(.-)\n"
    test.matches(first, "^| 1 | b | a | d | 60 | 90 %% %(80 %%.- | 0.0111 .- | 11.1 .- | gpu |")
    test.matches(second, "^| 1 | c | a | d | 60 | 88 %% .- |  | 22.6 ")
    test.matches(third, "^| 3 | =w\\| | a | d | 60 | 10 %%")
    local csv = leaderboard.text(list, "csv")
    test.matches(csv, "^rank,model,agent,dataset,tasks,accuracy,accuracy_lo,accuracy_hi,USD_per_correct,")
    test.matches(csv, "\n3,'=w|,a,d,60,0.1,")
    local page = leaderboard.text(list, "html")
    test.matches(page, "<th scope=\"col\">J per correct %(EpG%)</th>")
    local _, rows = page:gsub("<tr>", "")
    equal(rows, 4)
    -- joules of two devices are known no better than the worse
    for i, row in ipairs(best.rows) do
      row.energy = { gpu = { j = 5, provenance = "measured" },
                     cpu = { j = 5, provenance = i > 20 and "distributed" or "measured" } }
    end
    test.matches(leaderboard.text({ best }, "csv"), "distributed 40, measured 20")
  end },

  { "gates that are none", function()
    local function why(text) return select(2, gate.parse(text)) end
    test.matches(why "accuracy", "expected METRIC>=BOUND")
    test.matches(why "accuracy>-1pt", "expected METRIC>=BOUND")
    test.matches(why "acuracy>=-1pt", "unknown metric 'acuracy'; use one of: accuracy, j_query")
    test.matches(why "accuracy>=-1J", "a change of accuracy has one of the units: pt")
    test.matches(why "seconds<=+1", "units: %%, min, ms, s")
    test.matches(why "accuracy>=1.2.3pt", "expected")
  end },

  { "JUnit and Markdown", function()
    local a, b = {}, {}
    for i = 1, 30 do a[i], b[i] = 100 + i % 3, 110 + i % 3 end
    local two = two_of(a, b)
    two.b.path = 'runs/<b>&"'
    local results = {}
    for i, text in ipairs { "j_query<=+3%", "seconds<=+0", "accuracy>=-1pt" } do
      results[i] = gate.judge(assert(gate.parse(text)), two)
    end
    local xml = show.junit(results)
    test.ok(xml:find('tests="3" failures="1" errors="1"', 1, true), xml)
    test.ok(xml:find('classname="runs/&lt;b&gt;&amp;&quot;" name="seconds&lt;=+0"/>', 1, true), xml)
    test.ok(xml:find('<failure message="BROKEN: +9.9', 1, true), xml)
    local text = show.markdown({ two.a, two.b }, { two }, results)
    test.ok(text:find("| energy | 101 J | 111 J | **+10.0 J** | [+10.0, +10.0] | significant |", 1, true), text)
    test.ok(text:find("| `seconds<=+0` |", 1, true), text)
  end },
}
