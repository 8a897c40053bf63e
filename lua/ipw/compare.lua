--- ipw.compare: saved runs compared query by query and turn by turn.
---
--- Queries are paired by id (repeats of one id in the order in which they began), turns by their place. Each metric
--- is compared over the pairs whose values both sides know: the two means, and the mean of the differences with its
--- 95 % interval. All means are over tasks: repeats of an id and the turns of a query are averaged first, so that
--- the difference is that of the two means. A difference is significant if its interval does not contain 0 and, of
--- joules, if it is no smaller than the standard uncertainty of the two means; it cannot be told where a mean is not
--- known to half of it. The bounds of joules come from the sensors' readings; the interval shows what another sample of
--- tasks could give.
local json  = require "ipw.json"
local runs  = require "ipw.runs"
local stats = require "ipw.stats"

local compare = {}

local function energy(domain)
  local of = { domain }
  return function(part) return runs.joules_of(part, of) end
end

local function by_tokens(both)
  return function(row, basis)
    local j, n = runs.joules_of(row, basis), row.output
    if both then n = n and row.input and n + row.input end
    return j and n and n > 0 and j / n or nil
  end
end

--- name, label and unit (nil: a count), and its value of a query or a turn: x, lo, hi.
compare.metrics = {
  { "accuracy", "accuracy", "%", function(row) return row.resolved end },
  { "joules", "energy", "J", runs.joules_of },
  { "gpu_joules", "  gpu", "J", energy "gpu" },
  { "cpu_joules", "  cpu", "J", energy "cpu" },
  { "dram_joules", "  dram", "J", energy "dram" },
  { "machine_joules", "  machine", "J", energy "machine" },
  { "joules_per_output_token", "J/tok out", "J", by_tokens(false) },
  { "joules_per_token", "J/token", "J", by_tokens(true) },
  { "seconds", "time", "s", function(row) return row.seconds end },
  { "cost", "cost", "USD", function(row) return row.cost end },
  { "input_tokens", "tokens in", nil, function(row) return row.input end },
  { "output_tokens", "tokens out", nil, function(row) return row.output end },
  { "turns", "turns", nil, function(row) return #row.turns end },
  { "turn_joules", "energy", "J", runs.joules_of, turn = true },
  { "turn_seconds", "time", "s", function(turn) return turn.seconds end, turn = true },
  { "turn_output_tokens", "tokens out", nil, function(turn) return turn.output end, turn = true },
}

--- Sorts the rows by task and order of start, and numbers the repeats of a task.
local function number_repeats(rows)
  table.sort(rows, function(a, b)
    if a.id ~= b.id then return a.id < b.id end
    if a.epoch ~= b.epoch then return a.epoch < b.epoch end
    return a.index < b.index
  end)
  for i, row in ipairs(rows) do
    local before = rows[i - 1]
    row.nth = before and before.id == row.id and before.nth + 1 or 0
  end
end

--- Pairs of rows, in the order of their tasks.
local function pair(a, b)
  local pairs_of, by_name, turns = {}, {}, 0
  for _, row in ipairs(b) do by_name[row.id .. "\0" .. row.nth] = row end
  for _, row in ipairs(a) do
    local other = by_name[row.id .. "\0" .. row.nth]
    if other then
      pairs_of[#pairs_of + 1] = { row, other }
      turns = turns + math.min(#row.turns, #other.turns)
    end
  end
  return pairs_of, turns
end

local function add(sums, part, other, metric, basis)
  local get = metric[4]
  local a, a_lo, a_hi = get(part, basis)
  local b, b_lo, b_hi = get(other, basis)
  if not a or not b then return end
  sums.n, sums.a, sums.b = sums.n + 1, sums.a + a, sums.b + b
  sums.a_lo, sums.a_hi = sums.a_lo and a_lo and sums.a_lo + a_lo, sums.a_hi and a_hi and sums.a_hi + a_hi
  sums.b_lo, sums.b_hi = sums.b_lo and b_lo and sums.b_lo + b_lo, sums.b_hi and b_hi and sums.b_hi + b_hi
end

local function sums_of()
  return { n = 0, a = 0.0, b = 0.0, a_lo = 0.0, a_hi = 0.0, b_lo = 0.0, b_hi = 0.0 }
end

--- The means of each task: a list of { id, n, a, b, a_lo, ... }.
function compare.tasks(pairs_of, metric, basis)
  local list, i = {}, 1
  while pairs_of[i] do
    local id, sums = pairs_of[i][1].id, sums_of()
    while pairs_of[i] and pairs_of[i][1].id == id do
      local one, other = pairs_of[i][1], pairs_of[i][2]
      if metric.turn then
        for k = 1, math.min(#one.turns, #other.turns) do add(sums, one.turns[k], other.turns[k], metric, basis) end
      else
        add(sums, one, other, metric, basis)
      end
      i = i + 1
    end
    if sums.n > 0 then
      local task = { id = id, n = sums.n, raw_a = sums.a, raw_b = sums.b }
      for _, key in ipairs { "a", "b", "a_lo", "a_hi", "b_lo", "b_hi" } do
        task[key] = sums[key] and sums[key] / sums.n or nil
      end
      list[#list + 1] = task
    end
  end
  return list
end

local function mean_of(tasks, key)
  local sum = 0.0
  for _, task in ipairs(tasks) do
    if not task[key] then return nil end
    sum = sum + task[key]
  end
  return #tasks > 0 and sum / #tasks or nil
end

local function correlation(tasks)
  local ma, mb, ab, aa, bb = mean_of(tasks, "a"), mean_of(tasks, "b"), 0, 0, 0
  for _, task in ipairs(tasks) do
    ab, aa, bb = ab + (task.a - ma) * (task.b - mb), aa + (task.a - ma) ^ 2, bb + (task.b - mb) ^ 2
  end
  return aa > 0 and bb > 0 and ab / math.sqrt(aa * bb) or 0
end

--- The interval of the difference of two paired proportions: Newcombe's (1998, Statistics in Medicine 17:2635,
--- method 10) square-and-add of the two Wilson intervals. It is within -1 and 1.
function compare.share_difference(tasks)
  local sides = { {}, {} }
  for i, task in ipairs(tasks) do
    sides[1][i], sides[2][i] = { sum = task.raw_a, n = task.n }, { sum = task.raw_b, n = task.n }
  end
  local a, b = stats.interval(sides[1], "share"), stats.interval(sides[2], "share")
  local d = mean_of(tasks, "b") - mean_of(tasks, "a")
  if not a.lo or not b.lo then return { mean = d, method = "none" } end
  local phi = correlation(tasks)
  local function half(x, y) return math.sqrt(math.max(0, x * x - 2 * phi * x * y + y * y)) end
  local lo = d - half(b.mean - b.lo, a.hi - a.mean)
  local hi = d + half(b.hi - b.mean, a.mean - a.lo)
  return { mean = d, lo = math.max(-1, lo), hi = math.min(1, hi), method = "newcombe" }
end

local function verdict(row)
  if row.tasks == 0 then return "unknown" end
  if row.tasks < 3 then return "too_few" end
  if row.coarse then return "too_coarse" end
  local d = row.difference
  if row.least == 0 and row.most == 0 and (not d.lo or d.lo == d.hi) then return "same" end
  if not d.lo then return "unknown" end
  if d.lo <= 0 and d.hi >= 0 then return "not_shown" end
  if row.u and math.abs(d.mean) < row.u then return "below_u" end
  return d.mean > 0 and "higher" or "lower"
end

--- The bounds of the two means: those of the queries together, where each task counts as often as the others.
local function narrow(row, two, tasks, basis)
  local domain = row.metric[1]:match "^(%a+)_joules$"
  if row.metric.turn or not (domain or row.metric[1] == "joules") or row.pairs ~= #two.pairs then return end
  for _, task in ipairs(tasks) do
    if task.n ~= tasks[1].n then return end
  end
  for k, side in ipairs { "a", "b" } do
    local some = {}
    for i, both in ipairs(two.pairs) do some[i] = both[k] end
    local lo, hi = runs.together(two[side], some, domain and { domain } or basis)
    if lo and row[side] then
      row[side .. "_lo"] = math.min(row[side], math.max(row[side .. "_lo"] or lo / #some, lo / #some))
      row[side .. "_hi"] = math.max(row[side], math.min(row[side .. "_hi"] or hi / #some, hi / #some))
    end
  end
end

--- The standard uncertainty of a side's joules, and the joules; nil: not known. Kept, because several
--- metrics ask for it.
local function side_uncertainty(two, k, side, basis)
  local name = side .. table.concat(basis, "+")
  if two.uncertainties[name] == nil then
    local some, joules = {}, 0.0
    for i, both in ipairs(two.pairs) do
      some[i] = both[k]
      joules = joules + (runs.joules_of(both[k], basis) or 0)
    end
    local u = runs.uncertainty(two[side], some, basis)
    two.uncertainties[name] = u and joules > 0 and { u, joules } or {}
  end
  return table.unpack(two.uncertainties[name])
end

--- The standard uncertainty of the difference of two means of joules, whose errors are taken as independent. Joules of
--- turns and of tokens have that of the queries, for their size; nil: not known.
local function uncertainty(row, two)
  local domain, square = row.metric[1]:match "^(%a+)_joules$", 0.0
  local basis = domain and domain ~= "turn" and { domain } or two.basis
  if row.metric[3] ~= "J" then return nil end
  for k, side in ipairs { "a", "b" } do
    local u, joules = side_uncertainty(two, k, side, basis)
    if not u or not row[side] then return nil end
    square = square + (row[side] * u / joules) ^ 2
  end
  return math.sqrt(square)
end

--- Whether the sensors leave open what the row compares. Joules of turns and of tokens are known no worse than those
--- of the queries that they are part of.
local function is_coarse(row, two)
  if row.metric[3] ~= "J" then return false end
  local of = row
  if row.metric.turn or row.metric[1]:find "^joules_per_" then of = two.rows[2] end
  return runs.coarse(of.a, of.a_lo, of.a_hi) or runs.coarse(of.b, of.b_lo, of.b_hi) or false
end

--- One metric of two runs: tasks, pairs, a, b and their bounds, difference (mean, lo, hi, method), u and verdict.
local function compare_metric(two, metric)
  local pairs_of, basis = two.pairs, two.basis
  local tasks = compare.tasks(pairs_of, metric, basis)
  local row = { metric = metric, tasks = #tasks, pairs = 0 }
  local differences = {}
  for i, task in ipairs(tasks) do
    differences[i], row.pairs = task.b - task.a, row.pairs + task.n
    row.least = math.min(row.least or differences[i], differences[i])
    row.most = math.max(row.most or differences[i], differences[i])
  end
  for _, key in ipairs { "a", "b", "a_lo", "a_hi", "b_lo", "b_hi" } do row[key] = mean_of(tasks, key) end
  narrow(row, two, tasks, basis)
  row.coarse, row.u = is_coarse(row, two), uncertainty(row, two)
  row.readings_lo = row.b_lo and row.a_hi and row.b_lo - row.a_hi
  row.readings_hi = row.b_hi and row.a_lo and row.b_hi - row.a_lo
  row.difference = stats.interval(stats.clusters(differences))
  if metric[1] == "accuracy" and #tasks >= 3 then
    local newcombe = compare.share_difference(tasks)
    newcombe.n = #tasks
    row.difference = newcombe
  end
  row.verdict = verdict(row)
  return row
end

--- Two runs of ipw.runs: pairs, turns, only (queries without a partner of each), basis, rows (in the order of
--- compare.metrics; the second is that of the joules of a query).
function compare.two(a, b)
  number_repeats(a.rows)
  number_repeats(b.rows)
  local out = { a = a, b = b, rows = {}, uncertainties = {} }
  out.pairs, out.turns = pair(a.rows, b.rows)
  out.only = { #a.rows - #out.pairs, #b.rows - #out.pairs }
  local sides = { {}, {} }
  for i, both in ipairs(out.pairs) do sides[1][i], sides[2][i] = both[1], both[2] end
  out.basis = runs.basis({ a, b }, sides)
  for i, metric in ipairs(compare.metrics) do out.rows[i] = compare_metric(out, metric) end
  return out
end

--- The settings that head a comparison, with the hash of the content of a file.
compare.settings = { { "agent", "agent_sha256" }, { "concurrency" }, { "dataset", "dataset_sha256" }, { "model" } }

--- Members of a manifest's config with other names for people; false: it is no setting, or follows from others.
local setting_names = {
  agent_file = false, agent_sha256 = false, dataset_files = false, dataset_sha256 = false, dataset_source = false,
  max_queries = false, no_content = false, selection_sha256 = false, client_base_url = "server", price = "prices",
  estimate = false, gco2_per_kwh = false, kwh_price = false, prices = false,
  share = "sharing rule", telemetry = "sensors", telemetry_interval = "sampling interval",
}

--- A member of the config as text that is compared; what is off is as what is not there.
local function setting_text(config, key)
  local value = config[key]
  if value == nil or value == false or type(value) == "table" and next(value) == nil then return nil end
  -- Each run with the demo model has a server of its own.
  if key == "client_base_url" and config.model == "demo" then return nil end
  return type(value) == "string" and value or json.encode(value)
end

--- The settings in which two runs are known to differ, in the order of their names: a list of { name, a, b } or
--- { name, version }; a, b: the values as text; version: only the content of the file differs.
function compare.differ(a, b)
  local out, keys, of_file = {}, {}, {}
  local one, other = runs.object(runs.object(a.manifest).config), runs.object(runs.object(b.manifest).config)
  if not next(one) or not next(other) then return out end
  for _, setting in ipairs(compare.settings) do of_file[setting[1]] = setting[2] end
  for _, config in ipairs { one, other } do
    for key in pairs(config) do keys[key] = setting_names[key] == nil and key:gsub("_", " ") or setting_names[key] end
  end
  for key, name in pairs(keys) do
    local x, y = setting_text(one, key), setting_text(other, key)
    local hash = of_file[key]
    if name and x ~= y then
      out[#out + 1] = { name, key = key, a = x or "none", b = y or "none" }
    elseif name and hash and one[hash] and other[hash] and one[hash] ~= other[hash] then
      out[#out + 1] = { name, key = key, version = true }
    end
  end
  table.sort(out, function(x, y) return x[1] < y[1] end)
  return out
end

-- What a run is by itself: values of its queries, and what they sum up to for each correct answer.
local of_query = {
  accuracy = function(row) return row.resolved end,
  cost = function(row) return row.cost end,
  input_tokens = function(row) return row.input end,
  joules = function(row, basis) return (runs.joules_of(row, basis)) end,
  output_tokens = function(row) return row.output end,
  seconds = function(row) return row.seconds end,
  tokens = function(row) return row.input and row.output and row.input + row.output end,
  turns = function(row) return #row.turns end,
}
local of_correct = { j_solved = "joules", cost_solved = "cost", s_solved = "seconds", tokens_solved = "tokens" }

local function query_interval(run, basis, name)
  local values, ids = {}, {}
  for _, row in ipairs(run.rows) do
    local x = of_query[name](row, basis)
    if x then values[#values + 1], ids[#ids + 1] = x, row.id end
  end
  return stats.interval(stats.clusters(values, ids), name == "accuracy" and "share" or "mean")
end

--- The sum over all queries for each correct one (docs/method.md), as summary.json has it: wrong, failed and unscored
--- queries count. Not known if it is not known of one query.
local function correct_interval(run, basis, name)
  local tasks, by, whole, correct = {}, {}, true, 0
  for _, row in ipairs(run.rows) do
    local x, task, resolved = of_query[name](row, basis), by[row.id], row.resolved or 0
    if not task then
      task = { sum = 0.0, n = 0 }
      by[row.id], tasks[#tasks + 1] = task, task
    end
    whole = whole and x ~= nil
    task.sum, task.n, correct = task.sum + (x or 0), task.n + resolved, correct + resolved
  end
  if not whole or correct == 0 then return { n = #tasks, method = "none" }, correct end
  return stats.interval(tasks, "ratio"), correct
end

--- Tasks of both runs, if the value is known of all their queries: { a, a_n, b, b_n }; n: correct ones.
local function correct_tasks(two, get)
  local out, by = {}, {}
  for _, both in ipairs(two.pairs) do
    local one, other = both[1], both[2]
    local a, b, task = get(one, two.basis), get(other, two.basis), by[one.id]
    if not a or not b then return {} end
    if not task then
      task = { a = 0.0, b = 0.0, a_n = 0, b_n = 0 }
      by[one.id], out[#out + 1] = task, task
    end
    task.a, task.b = task.a + a, task.b + b
    task.a_n, task.b_n = task.a_n + (one.resolved or 0), task.b_n + (other.resolved or 0)
  end
  return out
end

local changes = {
  difference = function(a, b) return b - a end,
  relative = function(a, b) return a > 0 and b / a - 1 or nil end,
  ratio = function(a, b) return a > 0 and b / a or nil end,
}

local function finite(x) return x and x - x == 0 and x or nil end

--- How what a correct answer takes changes from the first run to the second, over the tasks of both: mean, lo, hi (nil:
--- no interval), all nil if it is not known. `how`: "difference", "relative" or "ratio".
---@param two table of compare.two
---@param what string "joules", "seconds", "cost" or "tokens"
---@param how string
---@return {mean: number?, lo: number?, hi: number?}
function compare.correct_change(two, what, how)
  local tasks, a_correct, b_correct = correct_tasks(two, of_query[what]), 0, 0
  for _, task in ipairs(tasks) do a_correct, b_correct = a_correct + task.a_n, b_correct + task.b_n end
  if a_correct == 0 or b_correct == 0 then return {} end
  local drawn = stats.bootstrap(tasks, function(some)
    local a, b, a_n, b_n = 0.0, 0.0, 0, 0
    for _, task in ipairs(some) do
      a, b, a_n, b_n = a + task.a, b + task.b, a_n + task.a_n, b_n + task.b_n
    end
    if a_n == 0 and b_n == 0 then return nil end
    -- Without a correct answer in one of the two the change has no limit: such draws count, too.
    return changes[how](a_n > 0 and a / a_n or math.huge, b_n > 0 and b / b_n or math.huge)
  end)
  local lo, hi = finite(drawn.lo), finite(drawn.hi)
  return { mean = drawn.value, lo = lo and hi and lo, hi = lo and hi }
end

local LINEAR <const> = "single" -- the agent that asks once

--- The Orchestration Overhead Index (arXiv 2605.22883): joules per correct answer of an agent over those of the agent
--- `single` on the same tasks, with the same model, scorer and devices. Nil if the runs are no such pair; else agent,
--- and mean, lo, hi, or why it is not defined.
function compare.orchestration(two)
  local one, other = runs.setting(two.a, "agent"), runs.setting(two.b, "agent")
  if not one or not other or (one == LINEAR) == (other == LINEAR) then return nil end
  for _, key in ipairs { "dataset", "dataset_sha256", "model" } do
    if runs.setting(two.a, key) ~= runs.setting(two.b, key) then return nil end
  end
  local index, agent = compare.correct_change(two, "joules", "ratio"), one == LINEAR and other or one
  if not index.mean or index.mean <= 0 then
    local none = #two.basis > 0 and "one of the two has no correct answer" or "joules were not measured in both"
    return { agent = agent, why = none }
  end
  if other == LINEAR then
    index = { mean = 1 / index.mean, lo = index.hi and 1 / index.hi, hi = index.lo and 1 / index.lo }
  end
  index.agent = agent
  return index
end

--- A run by itself, over a basis: accuracy (Wilson), joules, seconds, cost, tokens and turns of a query, and joules
--- (j_solved), cost, seconds and tokens of a correct answer, each with mean, lo, hi, n; of joules also sensor_lo and
--- sensor_hi, the bounds of the mean. none_correct: no answer is correct.
function compare.alone(run, basis)
  local out = {}
  for name in pairs(of_query) do out[name] = query_interval(run, basis, name) end
  local correct
  for name, of in pairs(of_correct) do out[name], correct = correct_interval(run, basis, of) end
  out.none_correct = correct == 0
  if out.joules.n > 0 and #basis > 0 then
    local lo, hi = runs.together(run, run.rows, basis)
    if lo and hi then out.joules.sensor_lo, out.joules.sensor_hi = lo / #run.rows, hi / #run.rows end
    if lo and hi and out.j_solved.mean then
      out.j_solved.sensor_lo, out.j_solved.sensor_hi = lo / correct, hi / correct
    end
  end
  return out
end

return compare
