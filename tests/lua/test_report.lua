--- ipw.report: rounding, what a query did at each instant, intervals against tables, and texts as text.
local booking = require "ipw.report.booking"
local comparison = require "ipw.report.comparison"
local detail = require "ipw.report.detail"
local energy = require "ipw.report.energy"
local failures = require "ipw.report.failures"
local figures = require "ipw.report.figures"
local headline = require "ipw.report.headline"
local html = require "ipw.report.html"
local markdown = require "ipw.report.markdown"
local numbers = require "ipw.report.numbers"
local own = require "ipw.report.own"
local palette = require "ipw.palette"
local page = require "ipw.report.page"
local partition = require "ipw.report.partition"
local queries = require "ipw.report.queries"
local screen = require "ipw.screen"
local spread = require "ipw.report.spread"
local terminal = require "ipw.report.terminal"
local tokens = require "ipw.report.tokens"
local by_turn = require "ipw.report.turns"
local watts = require "ipw.report.watts"
local test = require "ipw.test"
local whole_line = require "ipw.whole_line"

local s = "\u{202F}"

local function near(a, b, e) test.ok(math.abs(a - b) <= (e or 1e-9), ("%s is not %s"):format(a, b)) end

--- A query of traces.jsonl whose spans are {kind, start, end, name, outcome, attempt}.
local function query(seconds, ...)
  local turns = {}
  for i, spans in ipairs { ... } do
    local list = {}
    for k, span in ipairs(spans) do
      list[k] = { kind = span[1], start_s = span[2], end_s = span[3], name = span[4], outcome = span[5] or "ok",
        attempt = span[6] or 1 }
    end
    turns[i] = { turn_index = i - 1, spans = list }
  end
  return { start_ns = 1000000000, end_ns = 1000000000 + math.floor(seconds * 1e9), turns = turns }
end

--- The windows as "kind from-to", seconds from the start.
local function told(q, malformed)
  local out = {}
  for i, w in ipairs(partition.windows(q, malformed)) do
    local name = w.names and table.concat(w.names, "+") or w.kind
    out[i] = ("%s%s %g-%g"):format(w.wasted and "wasted " or "", name, (w.from - q.start_ns) / 1e9,
      (w.to - q.start_ns) / 1e9)
  end
  return table.concat(out, ", ")
end

--- A run of n queries: right(i) and joules(i) of each.
local function run(name, n, right, joules, config)
  local list, rows, sum, good = {}, {}, 0, 0
  for i = 1, n do
    local j = joules(i)
    rows[i] = { id = "q" .. i, epoch = 0, index = i, resolved = right(i) and 1 or 0, turns = {},
                energy = { gpu = { j = j } } }
    list[i] = { id = "q" .. i, mark = right(i) and "right" or "wrong", energy = { joules = j } }
    sum, good = sum + j, good + (right(i) and 1 or 0)
  end
  return { name = name, queries = list, rows = { rows = rows, not_lm = {} }, known = n, known_joules = sum,
    manifest = { config = config or {} },
           summary = { run = { model = name, dataset = "d" }, totals = { resolved = good, unresolved = n - good },
                       repeats = { metrics = { accuracy = { mean = good / n, lo = 0.1, hi = 0.9 } } },
                       efficiency = { joules_per_correct_answer = good > 0 and sum / good or nil } } }
end

return {
  { "a difference between runs is told only where its paired interval leaves out zero", function()
    local function noisy(i) return 100 + (i * 37 % 50) end
    local first = run("first", 40, function(i) return i % 2 == 0 end, noisy)
    -- always 30 % dearer on the same task, though the tasks themselves differ by more than that
    local dearer = run("dearer", 40, function(i) return i % 2 == 1 end, function(i) return 1.3 * noisy(i) end)
    local rows = comparison.rows { first, dearer }
    near(rows[2].percent.value, 0.3); test.ok(rows[2].percent.real)
    near(rows[2].points.value, 0); test.ok(not rows[2].points.real)
    test.equal(rows[2].dominated, true); test.equal(rows[1].dominated, nil)
    test.equal(comparison.heading { first, dearer },
      "Against first, dearer takes 30 % more joules; whether dearer solves more cannot be told")
    -- as good and as dear, in another order
    local other = run("other", 40, function(i) return i % 4 < 2 end, function(i) return noisy(i + 1) end)
    test.equal(comparison.heading { first, other }, "first and other cannot be told apart by joules or accuracy")
    local unmetered = run("unmetered", 40, function(i) return i % 4 < 2 end, noisy)
    for _, row in ipairs(unmetered.rows.rows) do row.energy = {} end
    test.equal(comparison.heading { first, unmetered },
      "first and unmetered cannot be told apart by accuracy; joules are not known of both")
    local worse = run("worse", 40, function(i) return i == 2 end, noisy)
    test.equal(comparison.heading { first, worse }, "Against first, worse solves 48 points fewer")
    local rude = run("\27[2Jrude\u{202E}", 40, function(i) return i % 2 == 0 end, function(i) return 2 * noisy(i) end)
    local lines = comparison.text({ first, rude }, screen.view(80))
    test.ok(lines:find("rude", 1, true) and not lines:find("\27", 1, true) and not lines:find("\u{202E}", 1, true))
  end },
  { "runs of other tasks are not compared, and few tasks tell nothing", function()
    local function yes() return true end
    local function ten() return 10 end
    local a, b = run("a", 5, yes, ten, { selection_sha256 = "x" }), run("b", 5, yes, ten, { selection_sha256 = "y" })
    test.equal(comparison.heading { a, b }, "The runs cannot be compared: they ran on different tasks of d")
    b.manifest.config.selection_sha256 = "x"
    test.equal(comparison.rows { a, b } [2].percent.real, false)
    test.equal(comparison.heading { a, b }, "a and b cannot be told apart by joules or accuracy")
  end },
  { "a value has three digits, however wide its interval; that is rounded by its half-width", function()
    local cases = { { 256.7, 244.9, 268.5, "257", "245\u{2013}269" }, { 712.4, 490, 1048, "712", "490\u{2013}1" .. s
      .. "050" },
                    { 0.0831, 0.0611, 0.1049, "0.0831", "0.061\u{2013}0.105" }, { 67.86, 49.3, 82.1, "67.9",
                      "49\u{2013}82" },
                    { 5, 4.04, 5.96, "5.00", "4.0\u{2013}6.0" } }
    for _, case in ipairs(cases) do
      local text, range = numbers.interval(case[1], case[2], case[3])
      test.equal(text, case[4])
      test.equal(range, case[5])
    end
    test.equal(numbers.place(100), 1); test.equal(numbers.place(354), 1); test.equal(numbers.place(355), 2)
    test.equal(numbers.place(949), 2); test.equal(numbers.place(960), 2)
  end },
  { "a metered figure says how it was obtained", function()
    local text, bounds = numbers.metered { joules = 502.3, lo = 498.2, hi = 506.1, provenance = "measured" }
    test.equal(text, "502"); test.equal(bounds, "(498\u{2013}506)")
    text, bounds = numbers.metered { joules = 15.7, lo = 0, hi = 60.2, provenance = "distributed" }
    test.equal(text, "~15.7"); test.equal(bounds, "(0\u{2013}60.2)") -- not "20"
    text, bounds = numbers.metered { joules = 500, lo = 460, hi = 700, provenance = "estimated" }
    test.equal(text, "\u{2248} 500"); test.equal(bounds, "(460\u{2013}700)")
    text, bounds = numbers.metered { joules = 302, lo = 0, hi = 95000, provenance = "estimated" }
    test.equal(text, "\u{2248} 302"); test.equal(bounds, "(0\u{2013}95" .. s .. "000)")
    test.equal((numbers.metered { joules = 12.345, provenance = "measured" }), "12.3")
  end },
  { "an estimate is shown where nothing was measured, and is in no sum", function()
    local energy_of = { cpu = { estimate = { joules = 2, by = "model" }, lo = 1, hi = 5, reason = "no_sensor" },
                        gpu = { reason = "no_sensor" } }
    local guess = figures.shown(energy_of, {})
    test.equal(guess, { joules = 2, lo = 1, hi = 5, provenance = "estimated" })
    test.equal(figures.shown(energy_of, { "cpu" }), { reason = "no_sensor" })
    test.equal(figures.shown({ cpu = { reason = "no_sensor" } }, {}), { reason = "no_sensor" })
  end },
  { "bars: a figure below the resolution has bounds only, and does not set the scale if others do", function()
    local well = { energy = { joules = 10, lo = 9, hi = 11 } }
    local vague = { energy = { joules = 1, lo = -30, hi = 40 } }
    test.ok(numbers.below_resolution(vague.energy) and not numbers.below_resolution(well.energy))
    near(queries.scale { queries = { well, vague } }, 11 * 1.01)
    near(queries.scale { queries = { vague } }, 40 * 1.01)
    near(queries.scale { queries = { { energy = {} } } }, 1.01)
    near(queries.scale { queries = { { energy = {}, estimate = { joules = 3, lo = 1, hi = 6 } } } }, 6 * 1.01)
  end },
  { "millijoules of the page: whole from 100 on, four digits below, null where not known", function()
    local mj = detail.millijoules
    test.equal({ mj(1.2346), mj(0.0123456), mj(0), mj() }, { "1235", "12.35", "0", "null" })
  end },
  { "power is thinned to 16,000 bins, each with its mean, least and most", function()
    local long = { domains = { "gpu" }, seconds = 32000, manifest = {},
                   sessions = { [0] = { from_ns = 0, to_ns = 32000 * 1000000000, at = 0 } } }
    local channel = { domain = "gpu", name = "board", kind = "gauge", in_sum = true }
    local function readings()
      local i = 0
      return function()
        i = i + 1
        if i > 64000 then return nil end
        local t = i * 500000000
        return t, channel, nil, i % 4 == 0 and 400 or 100, 0, t - 500000000
      end
    end
    watts.read(long, { readings = readings })
    local gpu = long.power.by_domain.gpu
    test.equal({ long.power.bin, long.power.n, #gpu.mean, gpu.steps }, { 2.0, 16000, 16000, 4 })
    near(gpu.mean[1], 175); near(gpu.least[8000], 100); near(gpu.most[16000], 400)
  end },
  { "with too many spans the dearest, all not right and some others keep theirs", function()
    local many = run("m", 3000, function(i) return i % 100 > 0 end, function(i) return i end)
    for _, q in ipairs(many.queries) do q.detail, q.windows, q.index = ("x"):rep(100), {}, 0 end
    test.equal(page.kept(many, 300000), nil)
    local keep, n = page.kept(many, 299999)
    test.ok(n >= 500 + 25 and n <= 500 + 30 + 500, n)
    for i = 2501, 3000 do test.ok(keep[many.queries[i]], "one of the dearest") end
    for i = 100, 3000, 100 do test.ok(keep[many.queries[i]], "one that was not right") end
  end },
  { "tools have one colour in all runs, by their joules in all", function()
    local function parts(python, search)
      return { parts = { { key = "tool python", tool = true, uj = python, class = "x" },
                         { key = "tool search", tool = true, uj = search, class = "x" }, { key = "idle", uj = 9 } } }
    end
    local a, b = parts(10, 3), parts(1, 20)
    booking.same_colours { a, b, { parts = {} } }
    for _, one in ipairs { a, b } do test.equal({ one.parts[1].class, one.parts[2].class }, { "tool2", "tool1" }) end
  end },
  { "without right or without wrong queries nothing is compared", function()
    local function yes() return true end
    local function joules(i) return i end
    test.equal(spread.heading(run("m", 21, yes, joules)), "All were right; half of the queries took less than 11.0 J")
    test.equal(spread.heading(run("m", 21, function() return false end, joules)),
      "None was right; half of the queries took less than 11.0 J")
  end },
  { "small and empty runs: none solved, nothing scored, one query, a few", function()
    local function no() return false end
    local function joules(i) return 10 + i end
    local none = run("m", 4, no, joules)
    test.equal(headline.title(none), "m solved none of 4 d questions")
    test.equal({ headline.per_solved(none) }, { nil, "not defined: none solved" })
    none.summary.totals = { resolved = 0, unresolved = 0, completed = 4 }
    none.summary.repeats.metrics = { joules = { mean = 12.5 } }
    test.equal({ headline.per_solved(none) }, { nil, "not defined: no reference answers" })
    test.equal(headline.title(none), "m answered 4 of 4 d queries, at 12.5 J each")
    local one = run("m", 1, no, joules)
    test.equal({ spread.html(one), tokens.html(one), queries.heading(one) }, { "", "", "The query took 11.0 J" })
    local few = run("m", 5, no, joules)
    for i, q in ipairs(few.queries) do q.seconds, q.tokens_in, q.tokens_out = i, 100 * i, i end
    local drawn = spread.html(few)
    test.ok(drawn:find("<circle", 1, true) and not drawn:find("stroke-dasharray", 1, true), "dots, no curve")
    test.equal(tokens.html(few), "", "too few for a line")
    test.ok(tokens.sentence(few, tokens.counts[1]):find("No line: that needs 8 queries", 1, true))
  end },
  { "joules above idle: of the accounts, else above the least power; none where the devices do not follow", function()
    local function of(list, power)
      local r = { queries = list, domains = { "gpu" }, known = #list,
                  power = power and { n = #power, by_domain = { gpu = { mean = power } } } }
      for i, q in ipairs(list) do q.index, q.accounts = i, q.accounts or {} end
      own.fill(r)
      return r
    end
    local r = of { { energy = { joules = 10 }, accounts = { gpu = { marginal_j = 4 } } },
                   { energy = { joules = 50 }, accounts = { gpu = { marginal_j = 1 } } } }
    test.equal({ r.own, own.rank(r, r.queries[1]), own.rank(r, r.queries[2]), own.noun(r) },
      { "baseline", 4, 1, "joules above idle" })
    -- two together for 2 s, then one alone for 8 s: 100 W idle, shared by who is in flight
    r = of({ { energy = { joules = 300 }, at = 0, seconds = 2 }, { energy = { joules = 1000 }, at = 0, seconds = 10 } },
      { 250, 250, 100, 100, 100, 100, 100, 100, 100, 100 })
    test.equal(r.own, "least")
    near(r.queries[1].own, 200); near(r.queries[2].own, 100)
    r = of({ { energy = { joules = 200 }, at = 0, seconds = 2 } }, { 100, 100 })
    test.equal({ r.own, own.rank(r, r.queries[1]), own.noun(r) }, { nil, 200, "joules" })
  end },
  { "colours of parts that stand beside each other can be told apart, also in grey and by the colour-blind",
    function()
    -- matrices of Machado, Oliveira and Fernandes (2009), severity 1, on linear light
    local kinds = { { 1, 0, 0, 0, 1, 0, 0, 0, 1 },
      { 0.152286, 1.052583, -0.204868, 0.114503, 0.786281, 0.099216, -0.003882, -0.048116, 1.051998 },
      { 0.367322, 0.860646, -0.227968, 0.280085, 0.672501, 0.047413, -0.011820, 0.042940, 0.968881 },
      { 1.255528, -0.076749, -0.178779, -0.078411, 0.930809, 0.147602, 0.004733, 0.691367, 0.303900 } }
    local function lab(name, m)
      local c = {}
      for pair in palette.paper(name):gmatch "%x%x" do
        local v = tonumber(pair, 16) / 255
        c[#c + 1] = v <= 0.04045 and v / 12.92 or ((v + 0.055) / 1.055) ^ 2.4
      end
      local r, g, b = m[1] * c[1] + m[2] * c[2] + m[3] * c[3], m[4] * c[1] + m[5] * c[2] + m[6] * c[3],
        m[7] * c[1] + m[8] * c[2] + m[9] * c[3]
      local function root(v) return v > 0.008856 and v ^ (1 / 3) or 7.787 * v + 16 / 116 end
      local x, y, z = root((0.4124 * r + 0.3576 * g + 0.1805 * b) / 0.9505), root(0.2126 * r + 0.7152 * g + 0.0722 * b),
        root((0.0193 * r + 0.1192 * g + 0.9505 * b) / 1.089)
      return 116 * y - 16, 500 * (x - y), 200 * (y - z)
    end
    local names = { "prefill", "decode", "tool1", "tool2" }
    for i, a in ipairs(names) do
      for k = i + 1, #names do
        for _, kind in ipairs(kinds) do
          local l1, a1, b1 = lab(a, kind)
          local l2, a2, b2 = lab(names[k], kind)
          test.ok(((l1 - l2) ^ 2 + (a1 - a2) ^ 2 + (b1 - b2) ^ 2) ^ 0.5 > 15, a .. " is like " .. names[k])
        end
        local grey, other = lab(a, kinds[1]), lab(names[k], kinds[1])
        test.ok(math.abs(grey - other) > 9, a .. " is as light as " .. names[k])
      end
    end
  end },
  { "failures by reason, turns by number, passes in the ids; sections that say nothing are left out", function()
    local some = run("m", 6, function(i) return i > 3 end, function(i) return i end)
    some.parts, some.by_turn = {}, {}
    test.equal({ failures.html(some), by_turn.html(some) }, { "", "" })
    for i, q in ipairs(some.queries) do q.outcome, q.epoch = "answered", i % 2 end
    for i = 1, 3 do some.queries[i].mark, some.queries[i].outcome = "failed", i < 3 and "max_turns" or "timeout" end
    test.equal(failures.heading(some),
      "3 of 6 queries were not answered, which took 6.0 J; the most frequent reason: turn limit")
    test.ok(failures.html(some):find('<a href="#q=q1">', 1, true))
    some.parts = { { tool = true, name = "<b>", calls = 9, failed = 3 } }
    test.ok(failures.html(some):find("&lt;b&gt;", 1, true) and failures.html(some):find("33 %", 1, true))
    for i = 1, 3 do
      local seconds = { 1, 1, 1, 1, i < 3 and 1 or nil }
      some.by_turn[i] = { joules = { i, i, i, i, i }, tokens = { 100 * i, 100 * i }, seconds = seconds }
    end
    test.equal(by_turn.heading(some),
      "The median of joules went from 1.00 J in turn 1 to 2.00 J in turn 2 while the " ..
      "prompt grew from 100 to 200 tokens")
    test.equal(queries.name(some, some.queries[1]), "q1")
    some.manifest.config.epochs = 2
    test.equal(queries.name(some, some.queries[1]), "q1, pass 2")
  end },
  { "the heading names the part that took the most, where tools did not matter", function()
    local function of(agent, decode)
      return { domains = { "cpu" }, sum_uj = 100, model_uj = decode, tools_uj = 0, queries = {}, parts = {
        { key = "decode", uj = decode }, { key = "agent", uj = agent }, { key = "idle", uj = 100 - agent - decode } } }
    end
    test.equal(energy.heading(of(10, 80)), "Decoding took 80 % of the joules")
    test.equal(energy.heading(of(56, 37)), "The agent\u{2019}s own code held 56 % of the joules")
    test.equal(energy.heading(of(2, 3)), "The idle machine took 95 % of the joules")
  end },
  { "thousands, small shares and minus signs", function()
    test.equal(numbers.plain(13540.2), "13" .. s .. "540")
    test.equal(numbers.plain(-1234567), "\u{2212}1" .. s .. "234" .. s .. "567")
    test.equal(numbers.plain(9.999), "10.0")
    test.equal(numbers.cell(4.26), "4.3"); test.equal(numbers.cell(0.834), "0.83"); test.equal(numbers.cell(9.97), "10")
    test.equal(numbers.share(1, 3000), "<0.1 %"); test.equal(numbers.share(0, 10),
      "0.0 %"); test.equal(numbers.share(1, 1), "100 %")
    test.equal(numbers.joules(99999), "99" .. s .. "999 J"); test.equal(numbers.joules(123456), "123 kJ")
    test.equal({ numbers.axis(13540, 5) }, { 5000, 15000 })
  end },
  { "every instant of a query is one thing: model, tools, waiting, agent", function()
    test.equal(told(query(10, { { "lm", 1, 4, "m" }, { "prefill", 1, 2 }, { "decode", 2, 3 }, { "tool", 5, 8,
      "read" } })),
      "agent 0-1, prefill 1-2, decode 2-3, lm 3-4, agent 4-5, read 5-8, agent 8-10")
    -- the model comes before a tool that runs meanwhile; parallel tools share their time
    test.equal(told(query(6, { { "lm", 0, 3, "m" }, { "prefill", 0, 1 }, { "decode", 1, 3 }, { "tool", 2, 5, "b" },
      { "tool", 4, 6, "a" } })),
      "prefill 0-1, decode 1-3, b 3-4, a+b 4-5, a 5-6")
    test.equal(told(query(2)), "agent 0-2")
    test.equal(partition.windows { start_ns = 5, end_ns = 5 }, {})
    local together = query(4, { { "lm", 1, 3 }, { "prefill", 1, 2 }, { "decode", 2, 2 } })
    together.turns[1].decode_s, together.turns[1].output_tokens = 0, 5
    test.equal(told(together), "agent 0-1, lm 1-3, agent 3-4")
    together.turns[1].output_tokens = 1
    test.equal(told(together), "agent 0-1, prefill 1-2, lm 2-3, agent 3-4")
  end },
  { "a failed attempt and an unusable reply are wasted; the pause between attempts is waiting", function()
    local q = query(9, { { "lm", 0, 2, "m", "http_error", 1 }, { "lm", 4, 7, "m", "ok", 2 }, { "prefill", 4, 5, "m",
      "ok", 2 }, { "decode", 5, 7, "m", "ok", 2 } })
    test.equal(told(q), "wasted lm 0-2, wait 2-4, prefill 4-5, decode 5-7, agent 7-9")
    test.equal(told(q, { [0] = true }), "wasted lm 0-2, wait 2-4, wasted prefill 4-5, wasted decode 5-7, " ..
      "agent 7-9")
  end },
  { "heading and caption round a slope alike; without a slope that is told there is no line", function()
    local some = run("m", 30, function(i) return i % 2 == 0 end, function(i) return 12 + 0.0831 * i * 100 + i % 7 end)
    for i, q in ipairs(some.queries) do q.tokens_in, q.tokens_out = i * 100, i * 37 % 30 end
    local heading = tokens.heading(some)
    local slope = tokens.sentence(some, { of = function(q) return q.tokens_in end }):match "goes with (%S+) J"
    test.ok(slope and heading:find("prompt token", 1, true) and heading:find(slope .. " J", 1, true), heading)
    test.ok(tokens.sentence(some, { of = function(q) return q.tokens_out end }):find "^No line: the interval")
    for _, q in ipairs(some.queries) do q.tokens_in, q.tokens_out = 5, 5 end
    test.equal(tokens.heading(some), "Whether joules follow the tokens cannot be told")
  end },
  { "of a metered machine the rest is told, unless its counters saw more than the meter", function()
    local function metered(machine, gpu, cpu)
      return { domains = { "machine" }, summary = { ledger = { machine = { total_j = machine }, gpu = { total_j = gpu },
                                                               cpu = { total_j = cpu } } } }
    end
    test.equal(energy.rest(metered(1000, 600, 150)),
      "Of the machine\u{2019}s 1" .. s .. "000 J its own counters saw GPU 600 J, CPU 150 J; " ..
      "the rest of the machine drew 250 J.")
    test.ok(energy.rest(metered(1000, 900, 150)):find "more than the meter")
    test.equal(energy.rest(metered(1000)), nil)
    local chips = metered(1000, 600, 150)
    chips.domains = { "gpu", "cpu" }
    test.equal(energy.rest(chips), nil)
  end },
  { "what a line leaves out of its energy values follows from those around them", function()
    local line = whole_line {
      energy = { cpu = { joules = 9, provenance = "distributed", devices = { a = { joules = 5, hi = 6 } } },
                 dram = { reason = "lost" } },
      energy_before = { cpu = { joules = 1, provenance = "measured" } },
      spans_before = { { energy = { cpu = { joules = 1 } } } },
      turns = { { energy = { cpu = { joules = 8, lo = 7, hi = 9 }, dram = { estimate = { joules = 2 }, hi = 3 } },
                  spans = { { energy = { cpu = { joules = 2, hi = 3 } } }, { energy = { gpu = { joules = 1 } } } } },
                false },
    }
    local turn = line.turns[1]
    test.equal(line.energy.cpu.devices.a, { joules = 5, hi = 6, provenance = "distributed" })
    test.equal(line.spans_before[1].energy.cpu.provenance, "measured")
    test.equal(turn.energy.cpu, { joules = 8, lo = 7, hi = 9, provenance = "distributed" })
    test.equal(turn.energy.dram, { estimate = { joules = 2 }, hi = 3 })
    test.equal(turn.spans[1].energy.cpu, { joules = 2, hi = 3, provenance = "distributed" })
    test.equal(turn.spans[2].energy.gpu, { joules = 1 })
    test.equal(whole_line { energy = 7, turns = "x" }, { energy = 7, turns = "x" })
  end },
  { "texts of others are text: in the page, in its data, in the terminal, in markdown", function()
    test.equal(html.text [[</script><b a='1'>&"]], "&lt;/script&gt;&lt;b a=&#39;1&#39;&gt;&amp;&quot;")
    local data = html.data("x", '"</script>\u{2028}<!--"')
    test.ok(not data:find("</script>\u{2028}", 1, true) and not data:find("<!--", 1, true))
    test.equal(select(2, data:gsub("</script>", "")), 1)
    local harmless = screen.cell "a\27[2J\u{202E}b\nc"
    test.ok(not harmless:find "[%c]" and not harmless:find("\u{202E}", 1, true), harmless)
    test.equal(markdown.plain "[x](http://y) <b> `c` | @d", "\\[x\\]\\(http://y\\) &lt;b&gt; \\`c\\` \\| \\@d")
    test.equal(terminal.ascii "█▒ 5 ± 1 „x“", "#= 5 +- 1 ?x?")
  end },
}
