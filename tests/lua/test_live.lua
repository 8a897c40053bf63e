--- ipw.live: what a run that goes on tells its page and its metrics, made from its events, queries and readings.
local energy = require "ipw.live.energy"
local figures = require "ipw.live.figures"
local flights = require "ipw.live.flights"
local json = require "ipw.json"
local metrics = require "ipw.live.metrics"
local test = require "ipw.test"
local equal = test.equal

local function ns(s) return math.floor(s * 1e9 + 0.5) end

--- Sends events, each { name, query, seconds, members }.
local function send(to, events)
  for _, e in ipairs(events) do
    local event = { event = e[1], query = e[2], t_ns = ns(e[3]) }
    for key, value in pairs(e[4] or {}) do event[key] = value end
    to:event(event)
  end
end

local function has(page, lines)
  for line, there in pairs(lines) do
    test.ok((page:find(line, 1, true) ~= nil) == there, (there and "no %s in %s" or "%s in %s"):format(line, page))
  end
end

--- A meter of a session with these channels, each { domain, kind, modulus_uj, max_w, remote }.
local function meter(channels, lm_remote)
  local list = {}
  for i, c in ipairs(channels) do
    list[i] = { name = "c" .. i, domain = c[1], kind = c[2], in_sum = true, modulus_uj = c[3] or 0, max_w = c[4] or 0,
                remote = c[5] or false }
  end
  local m = energy.new(1)
  m:start(ns(10), lm_remote)
  m:header { segment = 1, sources = { { channels = list } } }
  return m
end

local run = { agent = 'a"b', model = "m", dataset = ("ü"):rep(500), folder = "f", queries = 5, session = 1 }

return {
  { "metrics: how queries ended, with few words", function()
    local m = metrics.new(run)
    for query, e in ipairs { { "anything, and it was an answer", true }, { "max_turns" }, { "token_limit" },
      { "timeout" }, { "interrupted" }, { "run_timeout" }, { "my own reason" }, {} } do
      send(m, { { "query_start", query, 1 },
        { "query_end", query, 1.5, { outcome = e[1], completed = e[2] or false } } })
    end
    send(m, { { "query_start", 9, 1 } })
    has(m:page(energy.new(1)), { ['ended_total{outcome="answered"} 1\n'] = true,
      ['ended_total{outcome="max_turns"} 1\n'] = true, ['ended_total{outcome="limit"} 2\n'] = true,
      ['ended_total{outcome="interrupted"} 2\n'] = true, ['ended_total{outcome="other"} 2\n'] = true,
      ["my own reason"] = false, ["ipw_run_queries_in_flight 1\n"] = true, ["start_time"] = false,
      ["ipw_run_query_duration_seconds_sum 4.0\n"] = true })
  end },

  { "metrics: calls and tools; names are cut between two letters", function()
    local m = metrics.new(run)
    send(m, { { "run_start", -1, 0.5, { data = { clock = { mono_ns = 0, wall_ns = ns(1) } } } },
      { "query_start", 1, 0 },
      { "lm_inference_end", 1, 3, { outcome = "ok", input_tokens = 100, output_tokens = 7, sent_ns = ns(1),
        first_token_ns = ns(1.25) } },
      { "lm_inference_end", 1, 3, { outcome = "reset" } }, { "lm_inference_end", 1, 3, { outcome = "ok" } },
      { "tool_call_start", 1, 4, { span = 3 } }, { "tool_call_start", 1, 4, { span = 4 } },
      { "tool_call_end", 1, 4.5, { span = 3, ok = true } },
      -- A tool that never ended goes with its query: its number may come again.
      { "query_end", 1, 5, { completed = true } }, { "tool_call_end", 1, 9, { span = 4, ok = false } } })
    has(m:page(energy.new(1)), { ["ipw_run_input_tokens_total 100\n"] = true,
      ["ipw_run_output_tokens_total 7\n"] = true, ["ipw_run_calls_unknown_tokens_total 1\n"] = true,
      ["ipw_run_failed_attempts_total 1\n"] = true, ["ipw_run_call_duration_seconds_sum 2.0\n"] = true,
      ["ipw_run_first_token_seconds_sum 0.25\n"] = true, ["ipw_run_tool_call_duration_seconds_sum 0.5\n"] = true,
      ['ipw_run_first_token_seconds_bucket{le="0.1"} 0\n'] = true,
      ['ipw_run_first_token_seconds_bucket{le="0.25"} 1\n'] = true, -- a bound is in its own bucket
      ["ipw_run_failed_tool_calls_total 1\n"] = true, ["ipw_run_start_time_seconds 1.5\n"] = true,
      ['{agent="a\\"b",dataset="' .. ("ü"):rep(99) .. '",model="m"} 1\n'] = true })
  end },

  { "energy: a counter from the run's start on, over its end, and the power of the last second", function()
    local m = meter { { "gpu", "counter", 300000000 } }
    m:row(ns(9), 1, { 0 })
    equal(m:domain "gpu", nil)
    for i = 1, 20 do -- 100 W, then 200 W; the counter begins again at 300 J
      m:row(ns(9 + i / 5), 1, { (i <= 10 and i * 20 or 200 + (i - 10) * 40) * 1000000 % 300000000 })
      if i == 10 then equal({ m:domain "gpu" }, { 100.0, 100.0 }) end -- the first second was before the run
    end
    equal({ m:domain "gpu" }, { 500.0, 200.0 })
    equal({ m:model() }, { 500.0, 200.0 })
    equal(m:domain "cpu", nil)
    m:doubt "c1"
    equal(m:domain "gpu", nil)
    m:header { segment = 0, sources = {} } -- of another session
    m:row(ns(20), 1, { 0 })
  end },

  { "energy: a channel that was doubted while the idle power was measured, before its header is read", function()
    local m = energy.new(0)
    m:start(ns(10))
    m:doubt "c1"
    m:header { sources = { { channels = { { name = "c1", domain = "gpu", kind = "gauge", in_sum = true },
      { name = "c2", domain = "cpu", kind = "gauge", in_sum = true } } } } }
    for s = 10, 12 do m:row(ns(s), 1, { 1000, 2000 }) end
    equal(m:domain "gpu", nil)
    equal({ m:domain "cpu" }, { 4.0, 2.0 })
  end },

  { "energy: what is not known, and the model's machine", function()
    for name, case in pairs {
      ["a gauge"] = { { { "cpu", "gauge" } }, { { 10, { 1000 } }, { 12, { 3000 } } }, 4.0 },
      ["a silent gauge"] = { { { "cpu", "gauge" } }, { { 10, { 1000 } }, { 16, { 3000 } } } },
      ["a counter that falls"] = { { { "cpu", "counter" } }, { { 10, { 9 } }, { 11, { 3 } } } },
      ["a counter that jumps"] = { { { "cpu", "counter", 0, 5 } }, { { 10, { 0 } }, { 11, { 10000001 } } } },
      ["a missing channel"] = { { { "cpu", "counter" }, { "cpu", "counter" } }, { { 10, { 0 } }, { 11, { 3 } } } },
      ["the machine's meter"] = { { { "cpu", "gauge" }, { "machine", "gauge" } },
        { { 10, { 1000, 9000 } }, { 11, { 1000, 9000 } } }, 9.0 },
      ["devices together"] = { { { "cpu", "gauge" }, { "gpu", "gauge" } },
        { { 10, { 1000, 9000 } }, { 11, { 1000, 9000 } } }, 10.0 },
      ["of another machine"] = { { { "cpu", "gauge" }, { "gpu", "gauge", 0, 0, true } },
        { { 10, { 1000, 9000 } }, { 11, { 1000, 9000 } } }, 9.0, true },
    } do
      local m = meter(case[1], case[4])
      for _, row in ipairs(case[2]) do m:row(ns(row[1]), 1, row[2]) end
      equal((m:model()), case[3], name)
    end
  end },

  { "what is in flight, and what failed last", function()
    local f = flights.new()
    local function tells(s, want)
      local out = {}
      f:put(out, ns(s))
      equal(out, want)
    end
    tells(1, { failed = {}, flights = {}, flying = 0 })
    send(f, { { "lm_inference_start", 7, 1 }, -- of no query: nothing
      { "query_start", 1, 1, { id = "a" } }, { "query_start", 2, 2, { id = "b" } }, { "lm_inference_start", 1, 3 },
      { "tool_call_start", 2, 3.5, { name = "search" } }, { "tool_call_start", 2, 3.6, { name = "python" } },
      { "tool_call_end", 2, 3.7 } })
    tells(5, { failed = {}, flying = 2, flights = { { doing = "model", doing_s = 2.0, id = "a", seconds = 4.0 },
      { doing = "python", doing_s = 1.4, id = "b", seconds = 3.0 } } })
    send(f, { { "lm_inference_end", 1, 6, { outcome = "http_error", error = "HTTP 503: busy", will_retry = true } },
      { "tool_call_end", 2, 6 }, { "query_end", 2, 6.5, { completed = true } } })
    local busy = "http_error: HTTP 503: busy"
    tells(7, { failed = { { ago_s = 1.0, id = "a", reason = busy } }, flying = 1,
      flights = { { doing = "waiting to retry", doing_s = 1.0, id = "a", seconds = 6.0 } } })
    send(f, { { "query_end", 1, 8, { outcome = "max_turns", completed = false } } })
    tells(9, { failed = { { ago_s = 1.0, id = "a", reason = "max_turns" }, { ago_s = 3.0, id = "a", reason = busy } },
      flights = {}, flying = 0 })
  end },

  { "the page's figures: a resumed run, a server that is away, the hour of power", function()
    local m = meter { { "cpu", "gauge" } }
    local f = figures.new(run, m)
    local function progress(s) return json.decode(f:json(0, ns(s))).progress end
    equal(progress(1).joules, json.null)
    equal({ progress(1).queries, progress(1).done, progress(1).seconds }, { 5, 0, 0.0 })
    send(f, { { "run_start", -1, 10 } })
    for _, q in ipairs { { true, true }, { true, false, 1 }, { false, nil, 1, "timeout" },
      { false, nil, 1, "interrupted" } } do
      f:query { completed = q[1], is_resolved = q[2], segment = q[3], outcome = q[4] }
    end
    send(f, { { "lm_inference_end", 1, 14, { outcome = "ok" } }, { "tool_call_end", 1, 14 },
      { "lm_inference_end", 1, 15, { outcome = "http_error", will_retry = true, retry_wait_ns = ns(6) } },
      { "note", -1, 15, { name = "server_away", data = { seconds = 0.5 } } } })
    m:row(ns(10), 1, { 2000 })
    m:row(ns(16), 1, { 2000 })
    m:row(ns(17), 1, { 2000 })
    equal(progress(16), { correct = 1, done = 3, failed = 1, interrupted = 1, joules = json.null, left_s = 2.0,
      queries = 5, seconds = 6.0, standstill = "no server answers (2 s)", tool_calls = 1, turns = 1, wait_s = 5.0,
      watts = json.null, wrong = 1 })
    send(f, { { "note", -1, 17, { name = "server_back" } } })
    equal({ progress(20.5).standstill, progress(20.5).wait_s }, { json.null, json.null })
    send(f, { { "note", -1, 18, { name = "server_loading", data = { seconds = 1 } } },
      { "note", 1, 18, { name = "server_away" } } }) -- a script's own
    equal(progress(19).standstill, "the server is loading its model (2 s)")
    send(f, { { "lm_inference_end", 1, 19, { outcome = "ok" } } })
    equal(progress(20).standstill, json.null)
    for s = 20, 4000 do f:tick(ns(s)) end
    f:tick(ns(4000.5)) -- less than a second after the one before
    local all = json.decode(f:json(0, ns(4001)))
    equal({ all.points, #all.power, all.power[1], #json.decode(f:json(3980, ns(4001))).power },
      { 3981, 3600, { 391.0, json.null }, 1 })
    send(f, { { "run_end", -1, 4010 } })
    equal(progress(5000).seconds, 4000.0)
  end },
}
