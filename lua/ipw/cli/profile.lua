--- ipw.cli.profile: the table of `ipw-agent profile`: latencies, throughput and joules of each step of a sweep.
local core     = require "ipw.core.export"
local compare  = require "ipw.compare"
local json     = require "ipw.json"
local quantity = require "ipw.quantity"
local runs     = require "ipw.runs"
local stats    = require "ipw.stats"

--- Metrics over the model calls: key, label, unit, the key of a turn.
local latencies = {
  { "ttft_s", "TTFT", "s" }, { "ttfo_s", "TTFO", "s" }, { "itl_mean_s", "inter-token", "s" },
  { "chunk_gap_p50_s", "chunk gap", "s" }, { "latency_content_s", "end to end", "s" },
}

local function calls_of(query)
  local out = {}
  for _, turn in ipairs(runs.object(query.turns)) do
    turn = runs.object(turn)
    if turn.error == nil then
      local call = {}
      for _, metric in ipairs(latencies) do call[metric[1]] = runs.number(turn[metric[1]]) end
      call.input, call.output = runs.number(turn.input_tokens), runs.number(turn.output_tokens)
      out[#out + 1] = call
    end
  end
  return out
end

--- Whether all calls of a query meet the limits; a query that failed does not.
local function is_good(row, calls, slo)
  if row.outcome ~= "answered" or #calls == 0 then return false end
  for _, call in ipairs(calls) do
    for key, limit in pairs(slo) do
      if not call[key] or call[key] > limit then return false end
    end
  end
  return true
end

--- One step of the sweep.
local function step_of(io, i, slo)
  local values, good, first, last = {}, 0, math.huge, -math.huge
  for _, metric in ipairs(latencies) do values[metric[1]] = {} end
  local prefill, decode = {}, {}
  local run = runs.read(i, function(text) io.warn("ipw-agent: " .. text) end, function(row, query, of)
    local calls = calls_of(query)
    for _, call in ipairs(calls) do
      for _, metric in ipairs(latencies) do
        if call[metric[1]] then table.insert(values[metric[1]], call[metric[1]]) end
      end
      if call.input and call.ttft_s and call.ttft_s > 0 then prefill[#prefill + 1] = call.input / call.ttft_s end
      if call.itl_mean_s and call.itl_mean_s > 0 then decode[#decode + 1] = 1 / call.itl_mean_s end
    end
    good = good + (is_good(row, calls, slo) and 1 or 0)
    local from, to = runs.number(query.start_ns), runs.number(query.end_ns)
    if from and to then first, last = math.min(first, from), math.max(last, to) end
    of.rows[#of.rows + 1] = row
  end)
  core.close(run.reader)
  local basis = runs.basis { run }
  local seconds = last > first and (last - first) / 1e9 or nil
  local answered, input, output, j = 0, 0, 0, 0.0
  for _, row in ipairs(run.rows) do
    answered = answered + (row.outcome == "answered" and 1 or 0)
    input, output = input and row.input and input + row.input, output and row.output and output + row.output
    local one = runs.joules(row.energy, basis)
    j = j and one and j + one
  end
  j = #basis > 0 and j or nil
  local function rate(n) return n and seconds and n / seconds or nil end
  local function quotient(a, b) return a and b and b > 0 and a / b or nil end
  local out = { path = run.path, concurrency = math.tointeger(tonumber(runs.setting(run, "concurrency"))),
                requests = #run.rows, answered = answered, duration_s = seconds,
                requests_per_s = rate(answered), output_tokens_per_s = rate(output),
                goodput_requests_per_s = next(slo) and rate(good) or nil,
                goodput_fraction = next(slo) and quotient(good, #run.rows) or nil,
                basis = #basis > 0 and table.concat(basis, "+") or nil, watts = quotient(j, seconds),
                joules_per_request = quotient(j, #run.rows), joules_per_output_token = quotient(j, output),
                joules_per_prompt_token = quotient(j, input), output_tokens_per_joule = quotient(output, j),
                energy = compare.alone(run, basis).joules, latency = {} }
  for _, metric in ipairs(latencies) do out.latency[metric[1]] = stats.summary(values[metric[1]]) end
  local whole = {}
  for _, row in ipairs(run.rows) do whole[#whole + 1] = row.seconds end
  out.latency.request_s = stats.summary(whole)
  out.latency.prefill_tokens_per_s, out.latency.decode_tokens_per_s = stats.summary(prefill), stats.summary(decode)
  return out
end

--- The step at which throughput / duration of a request is greatest (Kleinrock's power): below it a server has
--- room, above it requests wait. Nil for fewer than three steps.
local function knee_of(steps)
  local best, most
  for _, step in ipairs(steps) do
    local latency = step.latency.request_s.mean
    local power = step.requests_per_s and latency and latency > 0 and step.requests_per_s / latency
    if power and (not most or power > most) then best, most = step, power end
  end
  return #steps >= 3 and best or nil
end

local function cell(text, columns)
  return (" "):rep(math.max(0, columns - utf8.len(text))) .. text
end

local function print_step(io, step)
  io.say(("\n%d in flight: %d of %d requests answered in %s"):format(step.concurrency or 0, step.answered,
    step.requests, quantity.seconds(step.duration_s)))
  local head = ("  %-12s"):format ""
  for _, key in ipairs { "mean", "p50", "p90", "p95", "p99" } do head = head .. cell(key, 10) end
  io.say(head)
  for _, metric in ipairs(latencies) do
    local s = step.latency[metric[1]]
    if s.n > 0 then
      local line = ("  %-12s"):format(metric[2])
      for _, key in ipairs { "mean", "p50", "p90", "p95", "p99" } do line = line .. cell(quantity.seconds(s[key]),
        10) end
      io.say(line)
    end
  end
  local function said(x, unit) return x and ("%.3g %s"):format(x, unit) or "not known" end
  local goodput = step.goodput_fraction and ("; goodput %s (%.0f %%)"):format(
    said(step.goodput_requests_per_s, "requests/s"), 100 * step.goodput_fraction) or ""
  io.say(("  throughput  %s, %s%s"):format(said(step.requests_per_s, "requests/s"),
    said(step.output_tokens_per_s, "output tokens/s"), goodput))
  if step.joules_per_request then
    io.say(("  energy      %s per request, %s per output token, mean %s (%s)"):format(
      quantity.si(step.joules_per_request, "J"), quantity.si(step.joules_per_output_token, "J"),
      quantity.si(step.watts, "W"), step.basis))
  else
    io.say "  energy      not measured: ipw-agent telemetry says why"
  end
end

local function print_curve(io, steps, knee)
  if #steps < 2 then return end
  io.say "\n  in flight  requests/s  output tok/s  TTFT p50  end to end p50  J/request"
  for _, step in ipairs(steps) do
    io.say(("  %9d%12s%14s%10s%16s%11s%s"):format(step.concurrency or 0, ("%.3g"):format(step.requests_per_s or 0),
      step.output_tokens_per_s and ("%.3g"):format(step.output_tokens_per_s) or "-",
      quantity.seconds(step.latency.ttft_s.p50), quantity.seconds(step.latency.latency_content_s.p50),
      quantity.si(step.joules_per_request, "J"):gsub("\u{2013}", "-"), step == knee and "  knee" or ""))
  end
  if knee then
    io.say(("\n  knee: %d in flight, where throughput / duration is greatest"):format(knee.concurrency or 0))
  end
end

return function(io, ...)
  local slo, as_json = {}, false
  local names = { ttft = "ttft_s", ttfo = "ttfo_s", itl = "itl_mean_s", latency = "latency_content_s" }
  for _, word in ipairs { ... } do
    if word == "json" then as_json = true end
    for key, value in (word:match "^slo=(.*)$" or ""):gmatch "(%w+):([%d.]+)" do slo[names[key]] = tonumber(value) end
  end
  local ok, failed = pcall(function()
    local steps = {}
    for i = 1, #core.runs() do steps[i] = step_of(io, i, slo) end
    table.sort(steps, function(a, b) return (a.concurrency or 0) < (b.concurrency or 0) end)
    local knee = knee_of(steps)
    if as_json then
      io.say(json.encode { steps = steps, knee = knee and knee.concurrency or json.null })
    else
      for _, step in ipairs(steps) do print_step(io, step) end
      print_curve(io, steps, knee)
    end
  end)
  if ok then return 0 end
  io.warn("ipw-agent: " .. tostring(type(failed) == "table" and failed.message or failed))
  return 3
end
