--- ipw.profile: the figures of `ipw-agent profile` (ipw.cli.profile): latencies, throughput and joules of each step of
--- a sweep, and its knee.
local core     = require "ipw.core.export"
local compare  = require "ipw.compare"
local export   = require "ipw.export"
local json     = require "ipw.json"
local quantity = require "ipw.quantity"
local runs     = require "ipw.runs"
local stats    = require "ipw.stats"
local watts    = require "ipw.report.watts"

local profile = {}

--- Latencies of the model calls: key of a turn, label, definition. `since`: it counts from the request's start; with
--- --rate from the moment at which the request was due, so that a request which waited is not counted as a fast one.
local latencies = {
  { "ttft_s", "TTFT", "START to the first text, reasoning or tool call", since = true },
  { "ttfo_s", "TTFO", "START to the first output that is not reasoning", since = true },
  { "itl_mean_s", "inter-token", "(last - first content event) / (output tokens - 1)" },
  { "chunk_gap_p50_s", "chunk gap", "median gap between two content events of a reply" },
  { "latency_content_s", "end to end", "START to the last content event", since = true },
}

--- Rates of the model calls, in tokens per second.
local rates = {
  { "prefill_tokens_per_s", "prefill", "input tokens / TTFT, in tokens/s; the queue is in it" },
  { "decode_tokens_per_s", "decode", "1 / inter-token, in tokens/s: as one user sees it" },
}

--- What the machine did meanwhile: key, label, unit, how to find it in a query, the channel that it needs.
local machine = {
  { "utilisation_pct", "GPU load", "%.0f %%", "*/util",
    function(q)
      local pct = runs.number(runs.object(runs.object(q.hardware_utilization).gpu).compute_utilization_pct)
      return pct, pct
    end },
  { "temperature_c", "GPU temperature", "%.0f °C", "*/temp", function(q) return q.temperature_metrics end },
  { "gpu_mb", "GPU memory", "%.0f MB", "*/mem_used", function(q) return runs.object(q.memory_metrics).gpu_mb end },
}

--- Seconds from the moment that latencies count from to the request's start: 0 without a schedule.
local function waited(query, turn)
  local due, start = runs.number(query.scheduled_ns), runs.number(query.start_ns)
  if not due or not start then return 0 end
  local sent = runs.number(turn.start_s)
  for _, span in ipairs(runs.object(turn.spans)) do -- of the attempt that succeeded: the last
    span = runs.object(span)
    if span.kind == "prefill" then sent = runs.number(span.start_s) or sent end
  end
  return (start - due) / 1e9 + (sent or 0)
end

local function calls_of(query)
  local out = {}
  for _, turn in ipairs(runs.object(query.turns)) do
    turn = runs.object(turn)
    if turn.error == nil then
      local call, late = {}, waited(query, turn)
      for _, metric in ipairs(latencies) do
        local seconds = runs.number(turn[metric[1]])
        call[metric[1]] = seconds and seconds + (metric.since and late or 0)
      end
      local input, ttft, itl = runs.number(turn.input_tokens), runs.number(turn.ttft_s), call.itl_mean_s
      call.prefill_tokens_per_s = input and ttft and ttft > 0 and input / ttft or nil
      call.decode_tokens_per_s = itl and itl > 0 and 1 / itl or nil
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

--- The machine over all queries: the mean, weighted by their seconds, and the maximum.
local function new_machine()
  local sums = {}
  return {
    add = function(query, seconds)
      for _, metric in ipairs(machine) do
        local mean, most = metric[5](query)
        if type(mean) == "table" then mean, most = runs.number(mean.avg), runs.number(mean.max) end
        if mean and seconds then
          local sum = sums[metric[1]] or { j = 0.0, seconds = 0.0, max = -math.huge }
          sum.j, sum.seconds, sum.max = sum.j + mean * seconds, sum.seconds + seconds, math.max(sum.max, most or mean)
          sums[metric[1]] = sum
        end
      end
    end,
    result = function()
      local out, unknown = {}, {}
      for _, metric in ipairs(machine) do
        local sum = sums[metric[1]]
        if sum and sum.seconds > 0 then
          out[metric[1]] = { mean = sum.j / sum.seconds, max = sum.max }
        else
          out[metric[1]], unknown[metric[1]] = json.null, "no sensor of the run read " .. metric[4]
        end
      end
      return out, unknown
    end,
  }
end

--- How the step began its requests: by a number in flight, or by a rate.
local function load_of(run)
  local rate = runs.object(runs.object(runs.object(run.manifest).config).rate)
  if runs.number(rate.per_s) then return { rate = rate.per_s, arrivals = rate.arrivals, level = rate.per_s } end
  local n = math.tointeger(tonumber(runs.setting(run, "concurrency")))
  return { concurrency = n, level = n }
end

local function quotient(a, b) return a and b and b > 0 and a / b or nil end

--- The window of throughput and watts: the longest time that begins and ends with the stated number of requests in
--- flight. Before it the load builds up, after it the last requests run out. Gives also that number: the most that
--- were in flight where the requests are fewer. `requests` have from and to, in nanoseconds.
local function window_of(requests, stated)
  local edges, now, most, first, last = {}, 0, 0, nil, nil
  for _, request in ipairs(requests) do
    edges[#edges + 1], edges[#edges + 2] = { request.from, 1 }, { request.to, -1 }
  end
  table.sort(edges, function(a, b)
    if a[1] ~= b[1] then return a[1] < b[1] end
    return a[2] < b[2]
  end)
  for _, edge in ipairs(edges) do
    if now == most and edge[2] < 0 then last = edge[1] end
    now = now + edge[2]
    if now > most and now <= stated then most, first, last = now, edge[1], nil end
  end
  return first, last, most
end

--- Answered requests, and their sum of one value, per second: by Little's law the number in flight in the window
--- divided by their mean duration. (To count those that end in the window would count none of eight that begin
--- together.) nil: a value is not known.
local function per_second(requests, from, to)
  local overlap, whole, n, output = 0, 0, 0, 0
  for _, request in ipairs(requests) do
    local inside = math.min(request.to, to) - math.max(request.from, from)
    if request.row.outcome == "answered" and inside > 0 then
      overlap, whole, n = overlap + inside, whole + request.to - request.from, n + 1
      output = output and request.row.output and output + request.row.output
    end
  end
  if n == 0 then return nil end
  local rate = overlap / (to - from) * n / (whole / 1e9)
  return rate, output and rate * output / n
end

--- The mean watts of the devices of a basis in a window: from the readings, each step cut at the window's edges. nil:
--- a device was not read for most of it.
local function mean_watts(run, basis, from_ns, to_ns)
  local wanted, channels, sum = {}, {}, nil
  for _, domain in ipairs(basis) do wanted[domain] = true end
  for t_ns, channel, value, w, segment, since_ns in export.readings(run) do
    if channel.in_sum and wanted[channel.domain] then
      local key = channel.domain .. "\0" .. (channel.name or "")
      local one = channels[key] or { state = {}, joules = 0.0, seconds = 0.0 }
      channels[key] = one
      local since
      since, w = watts.step(one.state, channel, t_ns, value, w, segment, since_ns)
      local seconds = since and w and (math.min(t_ns, to_ns) - math.max(since, from_ns)) / 1e9 or 0
      if seconds > 0 then one.joules, one.seconds = one.joules + w * seconds, one.seconds + seconds end
    end
  end
  for _, one in pairs(channels) do
    if one.seconds < 0.9 * (to_ns - from_ns) / 1e9 then return nil end
    sum = (sum or 0) + one.joules / one.seconds
  end
  return sum
end

--- What the answered requests of a step took in all: rows, input, output, j (nil: not known of each).
local function answered_of(run, basis)
  local all = { rows = {}, input = 0, output = 0, j = #basis > 0 and 0.0 or nil }
  for _, row in ipairs(run.rows) do
    if row.outcome == "answered" then
      all.rows[#all.rows + 1] = row
      all.input, all.output = all.input and row.input and all.input + row.input,
        all.output and row.output and all.output + row.output
      local one = runs.joules(row.energy, basis)
      all.j = all.j and one and all.j + one
    end
  end
  return all
end

--- Fills in what holds for the time in which the load was as stated.
local function add_rates(out, run, requests, basis, good)
  local first, last, most
  if out.concurrency then
    first, last, most = window_of(requests, out.concurrency)
    out.in_flight = most
  else
    for _, request in ipairs(requests) do
      first, last = math.min(first or math.huge, request.due), math.max(last or 0, request.to)
    end
  end
  if not last or last <= first then return end
  out.window_s = (last - first) / 1e9
  out.requests_per_s, out.output_tokens_per_s = per_second(requests, first, last)
  if good then out.goodput_requests_per_s = out.requests_per_s and out.requests_per_s * good / out.answered end
  out.watts = #basis > 0 and mean_watts(run, basis, first, last) or nil
end

--- One step of the sweep.
local function step_of(io, i, slo)
  local values, good, requests, lag, whole = {}, 0, {}, {}, {}
  local around = new_machine()
  for _, list in ipairs { latencies, rates } do
    for _, metric in ipairs(list) do values[metric[1]] = {} end
  end
  local run = runs.read(i, function(text) io.warn("ipw-agent: " .. text) end, function(row, query, of)
    local calls = calls_of(query)
    for _, call in ipairs(calls) do
      for key, list in pairs(values) do list[#list + 1] = call[key] end
    end
    good = good + (is_good(row, calls, slo) and 1 or 0)
    local from, to, due = runs.number(query.start_ns), runs.number(query.end_ns), runs.number(query.scheduled_ns)
    if from and to and to > from then
      requests[#requests + 1] = { row = row, from = from, to = to, due = due or from }
      whole[#whole + 1] = (to - (due or from)) / 1e9
      lag[#lag + 1] = due and (from - due) / 1e9 or nil
    end
    around.add(query, row.seconds)
    of.rows[#of.rows + 1] = row
  end)
  local basis = runs.basis { run }
  local out, all, first, last = load_of(run), answered_of(run, basis), math.huge, -math.huge
  for _, request in ipairs(requests) do
    first, last = math.min(first, request.due), math.max(last, request.to)
  end
  out.path, out.requests, out.answered, out.failed = run.path, #run.rows, #all.rows, #run.rows - #all.rows
  out.duration_s = last > first and (last - first) / 1e9 or nil
  add_rates(out, run, requests, basis, next(slo) and good)
  core.close(run.reader)
  if next(slo) then out.goodput_fraction = quotient(good, #run.rows) end
  out.basis = #basis > 0 and table.concat(basis, "+") or nil
  out.joules_per_request = quotient(all.j, #all.rows)
  out.joules_per_output_token, out.joules_per_prompt_token = quotient(all.j, all.output), quotient(all.j, all.input)
  out.output_tokens_per_joule = quotient(all.output, all.j)
  out.energy = compare.alone(all, basis).joules
  out.machine, out.unknown = around.result()
  out.latency_from = out.rate and "schedule" or "request"
  out.latency = { request_s = stats.summary(whole), start_lag_s = out.rate and stats.summary(lag) or nil }
  for key, list in pairs(values) do out.latency[key] = stats.summary(list) end
  return out
end

--- The step at which throughput / duration of a request is greatest (Kleinrock's power): below it a server has
--- room, above it requests wait. Nil for fewer than three steps, and where it is the last: then the sweep ended
--- before requests waited, and no knee was reached.
local function knee_of(steps)
  local best, most
  for _, step in ipairs(steps) do
    local latency = step.latency.request_s.mean
    local power = step.requests_per_s and latency and latency > 0 and step.requests_per_s / latency
    if power and (not most or power > most) then best, most = step, power end
  end
  return #steps >= 3 and best ~= steps[#steps] and best or nil
end

local function cell(text, columns)
  return (" "):rep(math.max(0, columns - utf8.len(text))) .. text
end

local function level_of(step)
  if step.rate then return ("%g requests/s due (%s)"):format(step.rate, step.arrivals) end
  return ("%d in flight"):format(step.concurrency or 0)
end

local shares = { "mean", "p50", "p90", "p95", "p99" }

local function print_metrics(io, step, list, show)
  for _, metric in ipairs(list) do
    local s = step.latency[metric[1]]
    if s and s.n > 0 then
      local line = ("  %-12s"):format(metric[2])
      for _, key in ipairs(shares) do line = line .. cell(show(s[key]), 10) end
      io.say(line)
    end
  end
end

local function print_energy(io, step)
  if not step.joules_per_request then
    io.say "  energy      not measured: ipw-agent telemetry says why"
    return
  end
  io.say(("  energy      %s per request, mean %s (%s)"):format(quantity.si(step.joules_per_request, "J"),
    quantity.si(step.watts, "W"), step.basis))
  io.say(("              %s per prompt token, %s per output token, %s tokens/J"):format(
    quantity.si(step.joules_per_prompt_token, "J"), quantity.si(step.joules_per_output_token, "J"),
    quantity.count(step.output_tokens_per_joule)))
end

local function print_machine(io, step)
  local known, missing = {}, {}
  for _, metric in ipairs(machine) do
    local got = step.machine[metric[1]]
    if got ~= json.null then
      known[#known + 1] = metric[2] .. " " .. metric[3]:format(got.mean)
    else
      missing[#missing + 1] = metric[2]
    end
  end
  if #known > 0 then io.say("  machine     " .. table.concat(known, ", ")) end
  if #missing > 0 then io.say("  not read    " .. table.concat(missing, ", ")) end
end

local function print_step(io, step)
  io.say(("\n%s: %d of %d requests answered in %s%s"):format(level_of(step), step.answered, step.requests,
    quantity.seconds(step.duration_s), step.failed > 0 and (", %d failed"):format(step.failed) or ""))
  if step.in_flight and step.in_flight < step.concurrency then
    io.say(("  never more than %d in flight: throughput and watts are of these"):format(step.in_flight))
  end
  local head = ("  %-12s"):format ""
  for _, key in ipairs(shares) do head = head .. cell(key, 10) end
  io.say(head)
  print_metrics(io, step, latencies, quantity.seconds)
  print_metrics(io, step, { { "start_lag_s", "start lag" } }, quantity.seconds)
  print_metrics(io, step, rates, quantity.count)
  local function said(x, unit) return x and quantity.count(x) .. " " .. unit or "not known" end
  io.say(("  throughput  %s, %s"):format(said(step.requests_per_s, "requests/s"),
    said(step.output_tokens_per_s, "output tokens/s")))
  if step.goodput_fraction then
    io.say(("  goodput     %s (%.0f %%)"):format(said(step.goodput_requests_per_s, "requests/s"),
      100 * step.goodput_fraction))
  end
  print_energy(io, step)
  print_machine(io, step)
end

local function print_curve(io, steps, knee)
  if #steps < 2 then return end
  io.say(("\n  %s  requests/s  output tok/s  TTFT p50  end to end p50  J/request"):format(
    steps[1].rate and "   due/s" or "in flight"))
  for _, step in ipairs(steps) do
    io.say(("  %9s%12s%14s%10s%16s%11s%s"):format(("%g"):format(step.level or 0),
      quantity.count(step.requests_per_s), (quantity.count(step.output_tokens_per_s):gsub("\u{2013}", "-")),
      quantity.seconds(step.latency.ttft_s.p50), quantity.seconds(step.latency.latency_content_s.p50),
      quantity.si(step.joules_per_request, "J"):gsub("\u{2013}", "-"), step == knee and "  knee" or ""))
  end
  if knee then
    io.say(("\n  knee: %s, where throughput / duration is greatest"):format(level_of(knee)))
  elseif #steps >= 3 then
    io.say(("\n  no knee was reached: throughput / duration is greatest at the last step, %s"):format(
      level_of(steps[#steps])))
  end
end

--- Label to definition, for this kind of load.
local function definitions(steps)
  local start = steps[1] and steps[1].rate and "the moment it was due" or "the request's start"
  local out = {}
  for _, list in ipairs { latencies, rates } do
    for _, metric in ipairs(list) do out[#out + 1] = { metric[1], metric[2], (metric[3]:gsub("START", start)) } end
  end
  if steps[1] and steps[1].rate then
    out[#out + 1] = { "start_lag_s", "start lag", "how late this program began a request that was due" }
  end
  return out
end

local function print_all(io, steps, knee, told)
  for _, step in ipairs(steps) do print_step(io, step) end
  print_curve(io, steps, knee)
  io.say ""
  for _, one in ipairs(told) do io.say(("  %-12s%s"):format(one[2], one[3])) end
end

local function print_json(io, steps, knee, told)
  local by_key = {}
  for _, one in ipairs(told) do by_key[one[1]] = one[3] end
  for _, step in ipairs(steps) do step.level = nil end
  io.say(json.encode { steps = steps, definitions = by_key,
    knee = knee and (knee.rate or knee.concurrency) or json.null })
end

--- Reads the saved runs of io.saved, a step each, and prints them, or one JSON object. `slo`: limits in seconds by the
--- key of a turn.
function profile.tell(io, n, slo, as_json)
  local steps = {}
  for i = 1, n do steps[i] = step_of(io, i, slo) end
  table.sort(steps, function(a, b) return (a.level or 0) < (b.level or 0) end)
  local print = as_json and print_json or print_all
  print(io, steps, knee_of(steps), definitions(steps))
end

return profile
