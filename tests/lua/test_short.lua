--- ipw.report.short: the screen at the end of a run, from its summary.
local screen = require "ipw.screen"
local short = require "ipw.report.short"
local test = require "ipw.test"

local function of(gpu, cpu) return { gpu = gpu, cpu = cpu } end

local function summary()
  return {
    status = "complete", run = { agent = "react", model = "sim-small", dataset = "frames", planned = 28 },
    totals = { queries = 28, resolved = 18, unresolved = 8, completed = 26, failed = 2, interrupted = 0,
      input_tokens = 250000, output_tokens = 19920, turns = 120, tool_calls = 49, retries = 4, cost_usd = 0.125,
      known = { gpu_energy_joules = 18000, cpu_energy_joules = 4333 } },
    averages = { wall_clock_per_query_s = 5.7 },
    latency = { ttft_s = { n = 120, p50 = 0.371, p95 = 0.854 } },
    efficiency = { basis = "gpu+cpu", mean_joules_per_query = 797.6, joules_per_correct_answer = 1240.7 },
    repeats = { metrics = { accuracy = { mean = 18 / 26, lo = 0.46, hi = 0.79, method = "wilson" },
      joules = { mean = 797.6, lo = 560, hi = 1040 } } },
    own_overhead = { wall_s = 42.8, share = 0.019 },
    provenance = { gpu = { distributed = 0.98, measured = 0.02 }, cpu = { distributed = 1 } },
    ledger = { gpu = { total_j = 18019, idle_j = 19, warmup_j = 0, wasted_j = 0, queries_j = 18000 },
      cpu = { total_j = 4333, idle_j = 0, warmup_j = 0, wasted_j = 0, queries_j = 4333 },
      dram = { reason = "permission" }, machine = { reason = "no_sensor" } },
    parts = {
      { part = "prefill", calls = 120, seconds = 46.5, joules = of(9000, 1450), waste_joules = of(0, 0) },
      { part = "decode", calls = 120, seconds = 60.4, joules = of(5000, 710), waste_joules = of(500, 0) },
      { part = "tool", name = "web_search", calls = 40, seconds = 28.1, joules = of(3000, 2000),
        waste_joules = of(0, 0) },
      { part = "agent", calls = 0, seconds = 1.25, joules = of(1000, 173), waste_joules = of(0, 0) },
    },
    tools = { { name = "web_search", calls = 40, outcomes = { ok = 38, error = 2 } } },
  }
end

local function run(change)
  local one = summary()
  if change then change(one) end
  return short.run("runs/x", { config = { concurrency = 3 } }, one)
end

local function query(id, index, fields)
  local q = { query_id = id, query_index = index, completed = true, is_resolved = true, outcome = "answered",
    total_wall_clock_s = 2 }
  for key, value in pairs(fields or {}) do q[key] = value end
  return q
end

--- `dearest` of the summary: id, joules (nil: unknown), right or wrong.
local function dearest(...)
  local out = {}
  for i, q in ipairs { ... } do
    out[i] = { query_id = q[1], joules = q[2], seconds = 2, completed = true, resolved = q[3] ~= false,
      stopped = false }
  end
  return out
end

local function told(one, width, colour, note)
  local text = short.text(short.view(width, colour), one, note)
  for line in text:gmatch "[^\n]+" do
    test.ok(screen.columns(line) <= math.max(80, width), "too wide: " .. line)
  end
  return (text:gsub("\u{A0}", "_"):gsub("\u{202F}", "_"))
end

local function contains(text, ...)
  for _, part in ipairs { ... } do test.ok(text:find(part, 1, true), ("no %q in %s"):format(part, text)) end
end

local screen_80 = [[

 sim-small solved 18 of 26 frames questions, at 1_241 J for each one solved
 (69_%;_95_%_interval:_46–79)
 agent react · 3 at a time · 42.8_s · joules: GPU 81 %, CPU 19 %

 where                    J     % ▒ wasted                     s  calls   failed
 prefill (prompt)    10_450  46.8 █████████████████████       47
 decode (reply)       5_710  25.5 ██████████▌▒                60
 web_search           5_000  22.4 ██████████                  28     40        2
 agent’s own code     1_173   5.2 ██▍                        1.2
 idle (no query)         19   0.1 ·
]]

return {
  { "the whole screen", function()
    local one = run()
    for i = 1, 3 do
      one.queries[i] = short.query(one, query(("frames-%03d"):format(i), i,
        { energy = { gpu = { joules = 100 * i }, cpu = { joules = i } } }))
    end
    one.queries[4] = short.query(one, query("frames-027", 4, { completed = false, outcome = "error",
      error = "HTTP 500: out of\nmemory\27[2J", is_resolved = nil, energy = {} }))
    one.queries[4].mark = "failed"
    one.summary.dearest = dearest({ "frames-003", 303 }, { "frames-002", 202 }, { "frames-001", 101 })
    local text = told(one, 80)
    test.equal(text:sub(1, #screen_80), screen_80)
    contains(text, "sum                 22_352   100 (the sensors’ total)", "not measured: DRAM (permission)",
      "per query   798 J (95 %: 560–1_040) · 5.70_s · 9_640 tokens", "first_token_371_ms (p95",
      "120 turns · 49 tool calls",
      "4 retries · ipw-agent itself", "dearest     ✓_003_303_J ✓_002_202_J ✓_001_101_J\n",
      "failed      ! 027 HTTP 500: out of memory\\u{1b}[2J", "98 % of the queries’ joules: the sensors",
      "saved in    runs/x", "ipw-agent show runs/x -o page.html     ipw-agent show runs/x frames-003")
    told(one, 140, true)
  end },
  { "below the report, its head and its parts are not said again", function()
    local text = short.text(short.view(80), run(), "", true)
    contains(text, "per query", "in all", "saved in")
    for _, said in ipairs { "solved 18", "prefill" } do test.equal(text:find(said, 1, true), nil) end
  end },
  { "a headline and a mean say what a coarse sensor leaves open", function()
    local function with(lo, hi)
      return told(run(function(s)
        s.efficiency.bounds = { mean_joules_per_query = { lo = lo, hi = hi },
          joules_per_correct_answer = { lo = 400, hi = 2100 } }
      end), 80)
    end
    contains(with(700, 900), "per query   798 J (95 %: 560–1_040, sensor 700–900) ·",
      "at 1_241 J (400–2_100) for each one\n solved")
    contains(with(750, 850), "per query   798 J (95 %: 560–1_040) ·")
  end },
  { "the model of a measured program that none was named for", function()
    local function named(models)
      return told(run(function(s) s.run.model, s.run.agent, s.models = "any", "python", models end), 80)
    end
    contains(named { small = { turns = 2 } }, " small solved 18 of")
    contains(named { small = { turns = 2 }, large = { turns = 1 } }, " several models solved 18 of")
    contains(named {}, " python solved 18 of")
  end },
  { "a row for each query, by its number", function()
    local one = run()
    one.n_queries = 2
    one.queries[1] = short.query(one, query("frames-002", 2, { energy = of({ joules = 20.04 }, { joules = 1 }),
      answer = "Paris,\nFrance", num_turns = 2, total_tool_calls = 1, total_input_tokens = 1234,
      metadata = { level = 2 } }))
    one.queries[2] = short.query(one, query("frames-001", 1, { completed = false, outcome = "timeout",
      error = "no\27answer", epoch = 1 }))
    one.queries[2].mark = "failed"
    local text = short.rows(short.view(80), one):gsub("\u{202F}", "_")
    test.equal(text, [[

   query  epoch  level  turns  tools     in  out     s     J  answer
 ! 001        1      —      —      —      —    —  2.00     —  timed out: no\u{1…
 ✓ 002        —      2      2      1  1_234    —  2.00  21.0  Paris, France]])
    one.n_queries = 70 -- of a long run only some are read
    for i = 3, 62 do one.queries[i] = short.query(one, query(("frames-%03d"):format(i), i)) end
    contains(short.rows(short.view(80), one), "… and 10 more in traces.jsonl")
    test.equal(short.rows(short.view(80), run()), "")
  end },
  { "a long run is told from its summary", function()
    contains(told(run(), 80), "failed      2 queries: see `failed` in summary.json for the reasons")
  end },
  { "what a reader must know before the numbers", function()
    local one = run(function(s)
      s.efficiency.withheld, s.run.earlier_attempts = "too_coarse", 1
    end)
    one.manifest.not_quiet = "process 7 (x) computes on gpu0"
    local text = told(one, 200)
    contains(text, "\n ! The sensor is too coarse: the joules may be off by more than half, so there is "
        .. "no efficiency.\n",
      "\n ! The machine was not quiet before the start: process 7 (x) computes on gpu0. The joules "
        .. "include other programs’ use.\n",
      "\n ! The sum of the joules includes 1 earlier attempt of queries that were run again.\n")
  end },
  { "more than fits: where the rest is", function()
    local one = run(function(s)
      for i = 2, 13 do
        s.parts[#s.parts + 1] = { part = "tool", name = "t" .. i, calls = 1, joules = of(1, 1) }
      end
    end)
    for i, reason in ipairs { "a", "b", "c", "d" } do
      one.queries[i] = short.query(one, query("q" .. i, i, { completed = false, error = reason }))
      one.queries[i].mark = "failed"
    end
    contains(told(one, 80), "\n 1 more tool: see `tools` in summary.json\n",
      "1 more reason: see `failed` in summary.json\n")
  end },
  { "sessions that were killed are on the clock, too", function()
    local sessions = { { start_ns = 5000000000, end_ns = 7000000000 }, { start_ns = 9000000000, end_ns = 10500000000 } }
    test.equal(short.run("x", { segments = sessions }, summary()).seconds, 3.5)
    sessions[2].end_ns = nil
    test.equal(short.run("x", { segments = sessions }, summary()).seconds, 42.8)
  end },
  { "an interrupted run", function()
    local text = told(run(function(s)
      s.status, s.totals.queries, s.totals.interrupted = "interrupted", 3, 2
      s.run.planned = 9
    end), 80, false, "ended by \27[2Jme")
    contains(text, "interrupted: 1 of 9 queries done", "note        ended by \\u{1b}[2Jme")
    test.ok(not text:find("ended early", 1, true)) -- that line says it
  end },
  { "without a sensor", function()
    local text = told(run(function(s)
      s.efficiency, s.energy_note, s.provenance = {}, "sensors are switched off (--telemetry none)", {}
      s.ledger = { gpu = { reason = "switched_off" } }
      for _, part in ipairs(s.parts) do part.joules, part.waste_joules = {}, {} end
    end), 80)
    contains(text, "not measured: sensors are switched off (--telemetry none)",
      "\n where                    s  calls   failed\n prefill (prompt)        47\n", "in all")
    test.ok(not text:find("sensors’ total", 1, true) and not text:find("shared", 1, true))
  end },
  { "joules of a part are not known", function()
    local text = told(run(function(s)
      s.parts[1].joules, s.ledger.gpu.reason = { gpu = 4 }, "gpu_lost"
      s.statistics = { gpu_energy_joules = { n = 25 } }
    end), 80)
    contains(text, "energy      GPU 18_000 J (3 of 28 queries without: gpu lost)")
    test.ok(not text:find("sensors’ total", 1, true))
  end },
  { "a judge, several models, pass@k", function()
    contains(told(run(function(s)
      s.judge = { model = "big", correct = 3, incorrect = 1, no_verdict = 2, input_tokens = 9, output_tokens = 5,
        cost_usd = 0.5, gpu_energy_joules = 12 }
      s.repeats.pass_at = { { k = 1, share = 0.5 }, { k = 2, share = 0.75 } }
      s.models = { b = { turns = 1 }, a = { turns = 2 } }
    end), 80), "judge       big: 3 correct, 1 incorrect, 2 without a verdict; 9 tokens in, 5", "GPU 12 J",
      "models      a 2 turns · b 1 turn",
      "pass@k      k=1 50.0 %, k=2 75.0 %")
  end },
  { "a run whose queries were not read has its dearest ones too", function()
    local one = run()
    one.summary.dearest = dearest({ "frames-2003", 303 }, { "frames-0002", 202, false })
    contains(told(one, 80), "dearest     ✓_2003_303_J ✗_0002_202_J\n", "show runs/x frames-2003")
  end },
  { "ids are short, names with blanks are quoted", function()
    local one = run(function(s) s.efficiency = {} end)
    one.path = "runs/it's mine"
    one.summary.dearest = dearest({ "a54dca18-2530-4b1d", nil, false }, { "b54dca18-2530-4b1e", nil, false })
    for i, id in ipairs { "a54dca18-2530-4b1d", "b54dca18-2530-4b1e" } do
      one.queries[i] = short.query(one, query(id, i, { is_resolved = false }))
    end
    contains(told(one, 80), "longest     ✗_a54dca1…4b1d_2.00_s ✗_b54dca1…4b1e_2.00_s",
      "ipw-agent show 'runs/it'\\''s mine' -o page.html")
  end },
}
