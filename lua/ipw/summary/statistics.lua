--- ipw.summary.statistics: the statistics of each metric of a run's queries and model calls, their intervals over
--- tasks, and pass@k.
local json   = require "ipw.core.json"
local values = require "ipw.summary.values"

local statistics = {}

local NAN, num = values.NAN, values.num
local SEED = 20

local function with_judge(j, asked, judge_j) return asked > 0 and j + judge_j or j end

--- The columns of a metric, and what is made of them.
local METRICS = {
  cost_usd                     = { "cost_usd" },
  cpu_energy_joules            = { "cpu_j" },
  cpu_power_watts              = { "cpu_w" },
  energy_per_token_joules      = { "gpu_j", "output_tokens",
                                   make = function(j, n) return n > 0 and j > 0 and j / n or NAN end },
  gpu_energy_joules            = { "gpu_j" },
  gpu_power_watts              = { "gpu_w" },
  input_tokens                 = { "input_tokens" },
  judge_cpu_energy_joules      = { "judge_cpu_j" },
  judge_cpu_power_watts        = { "judge_cpu_w" },
  judge_gpu_energy_joules      = { "judge_gpu_j" },
  judge_gpu_power_watts        = { "judge_gpu_w" },
  judge_wall_clock_s           = { "judge_wall_s" },
  mbu_avg_pct                  = { "mbu_avg_pct" },
  output_tokens                = { "output_tokens" },
  throughput_tokens_per_sec    = { "output_tokens", "wall_s",
                                   make = function(n, s) return n > 0 and s > 0 and n / s or NAN end },
  tool_calls                   = { "tools" },
  total_task_cpu_energy_joules = { "cpu_j", "judge_asked", "judge_cpu_j", make = with_judge },
  total_task_gpu_energy_joules = { "gpu_j", "judge_asked", "judge_gpu_j", make = with_judge },
  total_tokens                 = { "input_tokens", "output_tokens", make = function(x, y) return x + y end },
  turns                        = { "turns" },
  wall_clock_s                 = { "wall_s" },
}

--- The latencies of a model call: what each is in words, its columns, and what is made of them.
local LATENCIES = {
  chunk_gap_p50_s      = { text = "the median gap between two content events of a reply", of = { "chunk_gap_p50_s" } },
  chunk_gap_p99_s      = { text = "99 % of the gaps between two content events of a reply are not above it",
                           of = { "chunk_gap_p99_s" } },
  decode_tokens_per_s  = { text = "1 / itl_mean_s: tokens per second as one user sees them", of = { "itl_mean_s" },
                           make = function(s) return s > 0 and 1 / s or NAN end },
  itl_mean_s           = { text = "inter-token latency: (last - first content event) / (output tokens - 1), reasoning "
                             .. "included", of = { "itl_mean_s" } },
  latency_close_s      = { text = "the request's start to the end of the reply", of = { "latency_close_s" } },
  latency_content_s    = { text = "end to end: the request's start to the last content event",
                           of = { "latency_content_s" } },
  prefill_tokens_per_s = { text = "input tokens / ttft_s; the time in the server's queue is included",
                           of = { "ttft_s", "input_tokens" },
                           make = function(s, n) return s > 0 and n / s or NAN end },
  ttfo_s               = { text = "the request's start to the first output that is not reasoning", of = { "ttfo_s" } },
  ttft_s               = { text = "time to first token: the request's start to the first text, reasoning or tool call; "
                             .. "an empty event does not count", of = { "ttft_s" } },
}

--- The statistics of `n` rows of a table from `first`.
local function describe(rows, of, first, n, columns, make)
  local constant = rows.constant(of, columns[1])
  if constant == nil or constant == constant then -- else no row has a value
    if not make then
      rows.take(of, columns[1], first, n)
    else
      values.each(rows, { of = of, first = first, n = n }, columns, function(read, count)
        local x, y, z = read[columns[1]], read[columns[2]], read[columns[3]]
        local made = {}
        for i = 1, count do made[i] = make(x[i], y and y[i], z and z[i]) end
        rows.put(made, count)
      end)
    end
  end
  local r = rows.describe()
  return { avg = num(r.mean), max = num(r.max), median = num(r.median), min = num(r.min), n = r.n,
           p50 = num(r.median), p90 = num(r.p90), p95 = num(r.p95), p99 = num(r.p99), std = num(r.std) }
end

--- The statistics of each metric over a view of the queries.
function statistics.queries(rows, view)
  local out = {}
  for name, metric in pairs(METRICS) do
    out[name] = describe(rows, "queries", view.first, view.n, metric, metric.make)
  end
  return out
end

--- The statistics of the model calls' latencies.
function statistics.latency(rows)
  local out = {}
  for name, latency in pairs(LATENCIES) do
    out[name] = describe(rows, "calls", 0, rows.calls, latency.of, latency.make)
  end
  return out
end

function statistics.latency_definitions()
  local out = {}
  for name, latency in pairs(LATENCIES) do out[name] = latency.text end
  return out
end

-- Intervals. All queries of one task are one cluster, so that repeats do not count as new tasks. With fewer than three
-- tasks and at least three epochs the clusters are epochs.

local LEAST, CONFIDENCE = 3, 0.95

--- The metrics: name, kind, value of a query. A ratio is the accuracy over the value. joules: over the basis; watts:
--- these by wall time; resolved: unknown where it is not scored.
local REPEATS = {
  { "accuracy", "share", "resolved" },
  { "cpu_energy_joules", "mean", "cpu_j" },
  { "gpu_energy_joules", "mean", "gpu_j" },
  { "intelligence_per_joule", "ratio", "joules" },
  { "intelligence_per_watt", "ratio", "watts" },
  { "joules", "mean", "joules" },
  { "output_tokens", "mean", "output_tokens" },
  { "turns", "mean", "turns" },
  { "wall_clock_s", "mean", "wall_s" },
}

local function epochs_of(rows)
  local constant = rows.constant("queries", "epoch")
  if constant then return 1 end
  local seen, n = {}, 0
  values.each(rows, { first = 0, n = rows.queries }, { "epoch" }, function(columns, count)
    for i = 1, count do
      local epoch = columns.epoch[i]
      if not seen[epoch] then seen[epoch], n = true, n + 1 end
    end
  end)
  return n
end

--- Calls begin(columns, n) for some rows at a time, row(columns, i) for each query and close() after the last of each
--- group; rows are sorted by the groups.
local function each_group(rows, by, names, begin, row, close)
  local same, before = {}, nil
  values.each(rows, { first = 0, n = rows.queries }, names, function(columns, n, at)
    if by == "task" then rows.same_task(at, n, same) end
    begin(columns, n)
    for i = 1, n do
      local is_same = same[i]
      if by == "epoch" then is_same, before = columns.epoch[i] == before, columns.epoch[i] end
      if at + i > 1 and not is_same then close() end
      row(columns, i)
    end
  end)
  if rows.queries > 0 then close() end
end

local function nothing() end

--- Those of which there can be values, as { number, column, is a ratio }.
local function known_metrics(rows, basis, answered)
  local out = {}
  for m, metric in ipairs(REPEATS) do
    local kind, of = metric[2], metric[3]
    local any = #basis > 0
    if of ~= "joules" and of ~= "watts" then any = not values.none(rows, of) end
    if any and (answered or kind == "mean") then out[#out + 1] = { m, of, kind == "ratio" } end
  end
  return out
end

--- Fills the samples of rows.intervals.
local function add_clusters(rows, by, basis, answered)
  local names = { "cpu_j", "epoch", "gpu_j", "output_tokens", "resolved", "turns", "wall_s" }
  for _, domain in ipairs(basis) do
    if domain ~= "cpu" and domain ~= "gpu" then names[#names + 1] = domain .. "_j" end
  end
  local metrics = known_metrics(rows, basis, answered)
  local sums, scored, known = {}, {}, {}
  local function clear() for k = 1, #metrics do sums[k], scored[k], known[k] = 0.0, 0.0, 0 end end
  clear()
  each_group(rows, by, names, function(columns, n)
    local resolved, joules, watts = columns.resolved, {}, {}
    for i = 1, n do
      if resolved[i] < 0 then resolved[i] = NAN end
    end
    columns.joules, columns.watts = joules, watts
    for i = 1, #basis > 0 and n or 0 do
      local j, wall = 0, columns.wall_s[i]
      for _, domain in ipairs(basis) do j = j + columns[domain .. "_j"][i] end
      joules[i], watts[i] = j, wall > 0 and j / wall or NAN
    end
  end, function(columns, i)
    for k = 1, #metrics do
      local metric = metrics[k]
      local v = columns[metric[2]][i]
      if metric[3] then
        local resolved = columns.resolved[i]
        if v == v and resolved == resolved then
          sums[k], scored[k], known[k] = sums[k] + v, scored[k] + resolved, known[k] + 1
        end
      elseif v == v then
        sums[k], known[k] = sums[k] + v, known[k] + 1
      end
    end
  end, function()
    for k, metric in ipairs(metrics) do
      if known[k] > 0 then
        if metric[3] then
          rows.cluster(metric[1], scored[k], sums[k])
        else
          rows.cluster(metric[1], sums[k], known[k])
        end
      end
    end
    clear()
  end)
end

-- pass@k: the chance that at least one of k answers passes, if k of a task's n scored answers are drawn without
-- replacement: 1 - C(n - c, k) / C(n, k) with c correct ones (the unbiased estimator of Chen et al. 2021, "Evaluating
-- Large Language Models Trained on Code"), averaged over the tasks. It is given for k = 1, 2, 5, 10, 20, 50, ... as
-- far as every scored task has k answers.

--- Of one task: n answers, c of them correct; n >= k >= 1.
function statistics.pass_at(n, c, k)
  if n - c < k then return 1 end
  local none = 1.0
  for i = n - c + 1, n do none = none * (1 - k / i) end
  return 1 - none
end

--- Calls f(n, c) for each task, n answers of which were scored and c are correct; the rows are sorted by task.
local function each_task(rows, f)
  local n, c = 0, 0
  each_group(rows, "task", { "resolved" }, nothing, function(columns, i)
    local resolved = columns.resolved[i]
    if resolved >= 0 then n = n + 1 end
    if resolved == 1 then c = c + 1 end
  end, function()
    f(n, c)
    n, c = 0, 0
  end)
end

--- `fewest`: the scored answers of the scored task that has the fewest; nil: no task is scored.
local function pass_at(rows, fewest)
  local shares, tasks, ten = {}, 0, 1
  while fewest and fewest > 1 and ten <= fewest do
    for _, step in ipairs { 1, 2, 5 } do
      if step * ten <= fewest and #shares < 16 then shares[#shares + 1] = { k = step * ten, share = 0.0 } end
    end
    ten = ten * 10
  end
  if #shares == 0 then return json.list {} end
  each_task(rows, function(n, c)
    if n == 0 then return end
    tasks = tasks + 1
    for _, of in ipairs(shares) do of.share = of.share + statistics.pass_at(n, c, of.k) end
  end)
  for _, of in ipairs(shares) do of.share = of.share / tasks end
  return json.list(shares)
end

--- "repeats": `basis` is the list of the domains of the headline; `answered`: a query was answered. Leaves the rows
--- sorted by task.
function statistics.repeats(rows, basis, answered)
  local epochs, tasks, fewest, kinds, metrics = epochs_of(rows), 0, nil, {}, {}
  if rows.queries == 0 then epochs = 0 end
  rows.sort "task"
  each_task(rows, function(n)
    tasks = tasks + 1
    if n > 0 then fewest = math.min(n, fewest or n) end
  end)
  local by = tasks < LEAST and epochs >= LEAST and "epoch" or "task"
  local passed = pass_at(rows, answered and fewest or nil)
  if by == "epoch" then rows.sort "epoch" end
  add_clusters(rows, by, basis, answered)
  for m, metric in ipairs(REPEATS) do kinds[m] = metric[2] end
  for m, i in ipairs(rows.intervals(kinds, SEED)) do
    metrics[REPEATS[m][1]] = { hi = num(i.hi), lo = num(i.lo), max = num(i.max), mean = num(i.mean),
                               method = i.method, min = num(i.min), n = i.n }
  end
  return { by = by, confidence = CONFIDENCE, epochs = epochs, metrics = metrics, pass_at = passed, seed = SEED,
           tasks = tasks }
end

return statistics
