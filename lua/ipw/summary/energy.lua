--- ipw.summary.energy: the sums over a run's queries, their efficiency, and the balance of the joules.
local json   = require "ipw.core.json"
local values = require "ipw.summary.values"

local energy = {}

local NAN, DOMAINS, num, micro = values.NAN, values.DOMAINS, values.num, values.micro
local known, or_null = values.known, values.or_null

-- Sums: total (NAN if one value is unknown, or if there are none), known (over the known values), unknown (how many).

function energy.new_sum() return { known = NAN, unknown = 0, lo = 0.0, hi = 0.0, u = 0.0 } end

local function add(sum, x)
  if x ~= x then
    sum.unknown = sum.unknown + 1
  elseif sum.known ~= sum.known then
    sum.known = x
  else
    sum.known = sum.known + x
  end
end

function energy.finish(sum)
  sum.total = sum.unknown > 0 and NAN or sum.known
  return sum
end

local function sum_of(list, n, sum)
  local total, unknown = sum.known, sum.unknown
  for i = 1, n do
    local x = list[i]
    if x ~= x then
      unknown = unknown + 1
    else
      total = total == total and total + x or x
    end
  end
  sum.known, sum.unknown = total, unknown
end

--- Adds joules with their bounds.
function energy.add_bounded(sum, j, lo, hi, u)
  if j == j then values.add_bounds(sum, known(sum.known) and sum.known or 0, lo, hi, u, j) end
  add(sum, j)
end

local function sum_joules(columns, domain, n, sum)
  local j, lo, hi, u = columns[domain .. "_j"], columns[domain .. "_lo_j"], columns[domain .. "_hi_j"],
    columns[domain .. "_u_j"]
  for i = 1, n do
    energy.add_bounded(sum, j[i], lo[i], hi[i], u[i])
  end
end

local function sum_estimated(columns, domain, n, sum)
  local j, estimate = columns[domain .. "_j"], columns[domain .. "_estimate_j"]
  for i = 1, n do add(sum, j[i] == j[i] and j[i] or estimate[i]) end
end

local function energy_columns(domain)
  return { domain .. "_j", domain .. "_lo_j", domain .. "_hi_j", domain .. "_u_j" }
end

--- The sum of a column without unknown values.
local function count(rows, view, name)
  local constant, sum = rows.constant("queries", name), 0
  if constant and math.tointeger(constant) then return constant * view.n end -- seconds are added up
  values.each(rows, view, { name }, function(columns, n)
    local list = columns[name]
    for i = 1, n do sum = sum + list[i] end
  end)
  return sum
end

--- The domains that are on the model's machine in all queries.
local function on_machine(rows, view)
  local elsewhere, out = 0, {}
  local constant = rows.constant("queries", "not_lm")
  if constant then
    elsewhere = math.tointeger(constant)
  else
    values.each(rows, view, { "not_lm" }, function(columns, n)
      for i = 1, n do elsewhere = elsewhere | math.tointeger(columns.not_lm[i]) end
    end)
  end
  for d, domain in ipairs(DOMAINS) do out[domain] = elsewhere >> (d - 1) & 1 == 0 end
  return out
end

local function energy_of(rows, view, domain)
  local sum, name = energy.new_sum(), domain .. "_j"
  if values.none(rows, name) then
    sum.unknown = view.n
  else
    values.each(rows, view, energy_columns(domain), function(columns, n) sum_joules(columns, domain, n, sum) end)
  end
  return energy.finish(sum)
end

--- With estimates for unknown values.
local function with_estimates(rows, view, domain, sum)
  local name, with = domain .. "_estimate_j", energy.new_sum()
  if sum.unknown == 0 or values.none(rows, name) then return sum end
  values.each(rows, view, { domain .. "_j", name }, function(columns, n) sum_estimated(columns, domain, n, with) end)
  return energy.finish(with)
end

--- What efficiency needs of a view of the queries: their scores, and their joules by domain, with bounds.
function energy.scored(rows, view)
  local t = { queries = view.n, energy = {}, resolved = 0, unresolved = 0, unscored = 0, accuracy = NAN,
              on_machine = on_machine(rows, view) }
  values.each(rows, view, { "completed", "resolved", "unscorable" }, function(columns, n)
    local completed, resolved, unscorable = columns.completed, columns.resolved, columns.unscorable
    for i = 1, n do
      local score = resolved[i]
      if score == 1 then
        t.resolved = t.resolved + 1
      elseif score == 0 then
        t.unresolved = t.unresolved + 1
      elseif unscorable[i] == 0 then
        t.unscored = t.unscored + 1
      end
      if completed[i] == 1 or score == 1 then t.answered = true end
    end
  end)
  for _, domain in ipairs(DOMAINS) do t.energy[domain] = energy_of(rows, view, domain) end
  if t.answered and t.resolved + t.unresolved > 0 then t.accuracy = t.resolved / (t.resolved + t.unresolved) end
  return t
end

local COUNTS = { "completed", "malformed", "retries", "stopped", "timed_out", "tools", "trimmed", "turns",
                 "unscorable", "wall_s" }
local SUMS = { "cost_usd", "input_tokens", "output_tokens" }

--- All sums over a view of the queries.
function energy.totals(rows, view)
  local t = energy.scored(rows, view)
  t.estimated, t.total_tokens = {}, energy.new_sum()
  for _, name in ipairs(COUNTS) do t[name] = count(rows, view, name) end
  for _, name in ipairs(SUMS) do t[name] = energy.new_sum() end
  values.each(rows, view, SUMS, function(columns, n)
    local input, output, both = columns.input_tokens, columns.output_tokens, {}
    for _, name in ipairs(SUMS) do sum_of(columns[name], n, t[name]) end
    for i = 1, n do both[i] = input[i] + output[i] end
    sum_of(both, n, t.total_tokens)
  end)
  t.failed = view.n - t.completed - t.stopped
  if view.n == 0 then -- no query, so no token: the sums are known
    t.input_tokens.known, t.output_tokens.known, t.total_tokens.known = 0, 0, 0
  end
  for _, name in ipairs(SUMS) do energy.finish(t[name]) end
  energy.finish(t.total_tokens)
  for _, domain in ipairs(DOMAINS) do t.estimated[domain] = with_estimates(rows, view, domain, t.energy[domain]) end
  return t
end

-- Efficiency.

--- How many queries have an energy value of the domain; 0 if it cannot be a basis: it is not on the model's machine, or
--- all its values are 0 J, which cannot be a divisor.
local function usable(t, domain)
  local sum = t.energy[domain]
  return t.on_machine[domain] and sum.known > 0 and t.queries - sum.unknown or 0
end

--- The domains of the headline: the machine's own meter if there is one, else the GPUs and CPUs with energy values, and
--- the memory beside them.
function energy.basis(t)
  local gpu, cpu = usable(t, "gpu"), usable(t, "cpu")
  local most = math.max(gpu, cpu)
  if usable(t, "machine") > 0 then return { "machine" } end
  if most == 0 then return {} end -- memory alone is too small a part
  local basis = {}
  -- A device with fewer energy values than the other would take these queries out of the mean.
  if gpu == most then basis[#basis + 1] = "gpu" end
  if cpu == most then basis[#basis + 1] = "cpu" end
  if usable(t, "dram") >= most then basis[#basis + 1] = "dram" end
  return basis
end

local function no_bounds() return { lo = NAN, hi = NAN, u = NAN } end

--- Sums over the queries whose joules are known: all of them, and those that gave tokens.
local function sums_over(rows, view, domains)
  local s = { queries = 0, j = 0.0, w = 0.0, n_w = 0, edp = 0.0, token_j = 0.0, tokens = 0.0, n_tokens = 0,
              bounds = { lo = 0.0, hi = 0.0, u = 0.0 }, token_bounds = { lo = 0.0, hi = 0.0, u = 0.0 } }
  local names = { "output_tokens", "wall_s" }
  for _, domain in ipairs(domains) do
    if values.none(rows, domain .. "_j") then return s end
    table.move(energy_columns(domain), 1, 4, #names + 1, names)
  end
  if #domains == 0 then return s end
  values.each(rows, view, names, function(columns, n)
    local output, wall = columns.output_tokens, columns.wall_s
    for i = 1, n do
      local j, lo, hi, u = 0.0, 0.0, 0.0, 0.0
      for k = 3, #names, 4 do
        j, lo = j + columns[names[k]][i], lo + columns[names[k + 1]][i]
        hi, u = hi + columns[names[k + 2]][i], u + columns[names[k + 3]][i]
      end
      if j == j then
        s.queries = s.queries + 1
        values.add_bounds(s.bounds, s.j, lo, hi, u, j)
        s.j = s.j + j
        s.edp = s.edp + j * wall[i]
        if output[i] > 0 then
          values.add_bounds(s.token_bounds, s.token_j, lo, hi, u, j)
          s.n_tokens = s.n_tokens + 1
          s.token_j, s.tokens = s.token_j + j, s.tokens + output[i]
        end
        if wall[i] > 0 then s.w, s.n_w = s.w + j / wall[i], s.n_w + 1 end
      end
    end
  end)
  return s
end

--- Efficiency over domains (docs/method.md, "Efficiency"). NAN: unknown.
function energy.efficiency(rows, view, t, domains)
  for _, domain in ipairs(domains) do
    if not t.on_machine[domain] then domains = {} end
  end
  local s = sums_over(rows, view, domains)
  local e = { domains = domains, queries = s.queries, mean_j = NAN, mean_w = NAN, mean = no_bounds(),
              correct = no_bounds(), token = no_bounds(), ipj = NAN, ipw = NAN, j_per_correct = NAN, j_per_token = NAN,
              tokens_per_j = NAN, edp_js = NAN }
  local total, of_tokens = s.bounds, s.token_bounds
  if s.queries == view.n then
    total = { lo = 0.0, hi = 0.0, u = 0.0 }
    for _, domain in ipairs(domains) do values.join_bounds(total, t.energy[domain]) end
  end
  if s.n_tokens == view.n then of_tokens = total end
  if s.queries > 0 then
    e.mean_j, e.edp_js = s.j / s.queries, s.edp / s.queries
    e.mean = values.times_bounds(total, 1 / s.queries)
    e.coarse = values.coarse(total, s.j)
  end
  if s.tokens > 0 and s.token_j > 0 then
    e.j_per_token, e.token = s.token_j / s.tokens, values.times_bounds(of_tokens, 1 / s.tokens)
  end
  if s.n_w > 0 then e.mean_w = s.w / s.n_w end
  if view.n > 0 and s.queries == view.n and t.resolved > 0 and s.j > 0 then
    e.j_per_correct, e.correct = s.j / t.resolved, values.times_bounds(total, 1 / t.resolved)
  end
  if e.coarse then return e end
  if s.token_j > 0 then e.tokens_per_j = s.tokens / s.token_j end
  if e.mean_j > 0 then e.ipj = t.accuracy / e.mean_j end
  if e.mean_w > 0 then e.ipw = t.accuracy / e.mean_w end
  return e
end

--- A power's mean over a view, weighted by time.
local function mean_power(rows, view, name)
  local joules, seconds = 0.0, 0.0
  if values.none(rows, name) then return NAN end
  values.each(rows, view, { name, "wall_s" }, function(columns, n)
    local watts, wall = columns[name], columns.wall_s
    for i = 1, n do
      if watts[i] == watts[i] and wall[i] > 0 then
        joules, seconds = joules + watts[i] * wall[i], seconds + wall[i]
      end
    end
  end)
  return seconds > 0 and joules / seconds or NAN
end

local function efficiency_bounds(e, accuracy, tokens)
  local ipj
  if known(e.ipj) and e.mean.lo > 0 then
    ipj = { lo = accuracy / e.mean.hi, hi = accuracy / e.mean.lo, u = e.ipj * e.mean.u / e.mean_j }
  end
  return { intelligence_per_joule = ipj and values.bounds(ipj),
           joules_per_correct_answer = values.bounds(e.correct),
           joules_per_output_token = tokens and values.bounds(e.token) or nil,
           mean_joules_per_query = values.bounds(e.mean) }
end

local function domain_efficiency(rows, view, t, domain)
  local e = energy.efficiency(rows, view, t, { domain })
  if e.queries == 0 then return json.null end
  return { bounds = efficiency_bounds(e, t.accuracy, false), intelligence_per_joule = num(e.ipj),
           intelligence_per_watt = num(e.ipw), joules_per_correct_answer = num(e.j_per_correct),
           mean_joules_per_query = num(e.mean_j), mean_watts_per_query = num(e.mean_w),
           queries_with_energy = e.queries }
end

--- "efficiency" of a view.
function energy.put_efficiency(rows, view, t)
  local e, gpu, gpu_w = energy.efficiency(rows, view, t, energy.basis(t)), t.energy.gpu, mean_power(rows, view, "gpu_w")
  local gives = t.accuracy > 0 and not values.coarse(gpu, gpu.total)
  return {
    accuracy = num(t.accuracy),
    avg_cpu_power_watts = micro(mean_power(rows, view, "cpu_w")),
    avg_gpu_power_watts = micro(gpu_w),
    basis = #e.domains > 0 and table.concat(e.domains, "+") or json.null,
    bounds = efficiency_bounds(e, t.accuracy, true),
    by_domain = values.by_domain(function(domain) return domain_efficiency(rows, view, t, domain) end),
    energy_delay_product = num(e.edp_js),
    intelligence_per_joule = num(e.ipj),
    intelligence_per_watt = num(e.ipw),
    ipj = num(gives and gpu.total > 0 and t.accuracy / gpu.total),
    ipw = num(gives and gpu_w > 0 and t.accuracy / gpu_w),
    joules_per_correct_answer = num(e.j_per_correct),
    joules_per_output_token = num(e.j_per_token),
    mean_joules_per_query = num(e.mean_j),
    mean_watts_per_query = num(e.mean_w),
    queries_with_energy = e.queries,
    tokens_per_joule = num(e.tokens_per_j),
    total_cpu_energy_joules = micro(t.energy.cpu.total),
    total_gpu_energy_joules = micro(gpu.total),
    withheld = e.coarse and "too_coarse" or json.null,
  }
end

-- The balance: total = idle + queries + wasted + warm-up + difference.

--- After energy.totals of all queries: narrows the bounds of their joules by what the balance says of all together.
function energy.narrow(t, balance)
  for _, domain in ipairs(DOMAINS) do
    local sum = t.energy[domain]
    local b = values.narrow(balance[domain], sum, sum.total)
    sum.lo, sum.hi, sum.u = b.lo, b.hi, b.u
  end
end

local function balance_line(b, queries, n)
  local coverage, partial_j = b.total.coverage or 0, b.total.partial_j or 0
  -- Nothing took 0 J of a domain that was read; of one that never was, not even that is known.
  local none = (b.total.j or coverage > 0) and 0 or NAN
  local line = { total_j = b.total.j or NAN, idle_j = b.idle.j or NAN, queries_j = n > 0 and queries.total or none,
                 wasted_j = (b.wasted_j or NAN) + none, warmup_j = (b.warmup_j or NAN) + none }
  local off = line.total_j - line.idle_j - line.queries_j - line.wasted_j - line.warmup_j
  local slack = 1e-9 * math.abs(line.total_j) + 1e-6 * (n + 2)
  local balanced = json.null
  if known(off) then balanced = math.abs(off) <= slack end
  -- If one of several devices has no readings, the energy of the others is still a part.
  local partial = not b.total.j and (coverage > 0 or partial_j > 0)
  return {
    balanced = balanced,
    bounds = {
      idle_j = known(line.idle_j) and values.bounds(b.idle) or nil,
      queries_j = known(line.queries_j) and values.bounds(queries) or nil,
      total_j = known(line.total_j) and values.bounds(b.total) or nil,
      warmup_j = known(line.warmup_j) and values.bounds(b.warmup) or nil,
      wasted_j = known(line.wasted_j) and values.bounds(b.wasted) or nil,
    },
    difference_j = micro(off),
    idle_j = micro(line.idle_j),
    partial_coverage = num(partial and coverage),
    partial_j = micro(partial and partial_j),
    queries_j = micro(line.queries_j),
    reason = or_null(not b.total.j and b.total.reason or nil),
    total_j = micro(line.total_j),
    warmup_j = micro(line.warmup_j),
    wasted_j = micro(line.wasted_j),
  }
end

--- The items of a domain, if each has a name: a session in which the domain has one device does not name it.
local function devices_of(list, domain)
  local out = {}
  for _, item in ipairs(list) do
    if item.domain == domain then
      if item.name == "" then return nil end
      out[#out + 1] = item
    end
  end
  return #out > 0 and out or nil
end

local function device_lines(facts, domain, n)
  local items, out, sums = devices_of(facts.device_balances, domain), {}, {}
  if not items then return nil end
  for _, sum in ipairs(facts.devices) do
    if sum.domain == domain then sums[sum.name] = sum.j or NAN end
  end
  for _, item in ipairs(items) do
    local queries_j = sums[item.name] or 0
    -- Of the queries on a device only the ledger knows bounds: of all together.
    local queries = values.narrow(item.balance, no_bounds(), queries_j)
    queries.total = queries_j
    out[item.name] = balance_line(item.balance, queries, n)
  end
  return out
end

--- "ledger"; null without a balance.
function energy.put_ledger(facts, t)
  if not facts.balance then return json.null end
  return values.by_domain(function(domain)
    local line = balance_line(facts.balance[domain], t.energy[domain], t.queries)
    line.devices = device_lines(facts, domain, t.queries)
    return line
  end)
end

-- Accounts, and the net energy above the idle baseline.

--- Why net joules are withheld; nil: they are not.
local function refusal(baseline, domain)
  local before, after = baseline[domain].before_w or NAN, baseline[domain].after_w or NAN
  local drift = math.abs(after - before)
  if drift ~= drift then return "no_baseline" end
  return drift > math.max(2, 0.1 * math.abs(before)) and "drift" or nil
end

local function account(a, withheld)
  return { exclusive_j = micro(a.exclusive_j), idle_tax_j = micro(a.idle_tax_j),
           marginal_j = micro(not withheld and a.marginal_j), waste_j = micro(a.waste_j) }
end

local function device_accounts(facts, domain, withheld)
  local items, out = devices_of(facts.devices, domain), {}
  for _, item in ipairs(items or {}) do
    out[item.name] = account(item.account, withheld)
    out[item.name].attributed_j = micro(item.j)
  end
  return items and out
end

--- "accounts" of each domain; null where no query's energy is known.
function energy.put_accounts(facts, t)
  return values.by_domain(function(domain)
    local sum, withheld = t.energy[domain], facts.baseline_s > 0 and refusal(facts.baseline, domain)
    if not known(sum.known) then return json.null end
    local out = account(t.queries > 0 and facts.accounts[domain] or {}, withheld)
    out.attributed_j = micro(sum.total)
    out.bounds = { attributed_j = known(sum.total) and values.bounds(sum) or nil }
    out.devices = device_accounts(facts, domain, withheld)
    return out
  end)
end

--- "baseline"; null without one.
function energy.put_baseline(facts, t)
  local baseline = facts.baseline
  if facts.baseline_s <= 0 then return json.null end
  return {
    domains = values.by_domain(function(domain)
      local before, after = baseline[domain].before_w or NAN, baseline[domain].after_w or NAN
      local why = refusal(baseline, domain)
      return { after_w = micro(after), before_w = micro(before), drift_w = micro(after - before),
               net_j = micro(not why and t.queries > 0 and facts.accounts[domain].marginal_j),
               net_withheld = or_null(why) }
    end),
    seconds = num(facts.baseline_s),
  }
end

--- "provenance": the shares of the turns' joules.
function energy.put_provenance(facts)
  return values.by_domain(function(domain)
    local total, shares = 0.0, {}
    for _, item in ipairs(facts.provenance[domain]) do total = total + (item.j or NAN) end
    if total <= 0 then return json.null end
    for _, item in ipairs(facts.provenance[domain]) do
      if (item.j or 0) > 0 then shares[item.name] = num(item.j / total) end
    end
    return shares
  end)
end

-- Totals.

local function put_sum(key, x)
  local whole = key:find "tokens" and x and known(x) and math.abs(x) < 9e15 and math.tointeger(x)
  if whole then return whole end
  return key:find "joules" and micro(x) or num(x)
end

local function sums_by_key(t)
  local out = { cost_usd = t.cost_usd, input_tokens = t.input_tokens, output_tokens = t.output_tokens,
                total_tokens = t.total_tokens }
  for _, domain in ipairs(DOMAINS) do out[domain .. "_energy_joules"] = t.energy[domain] end
  return out
end

--- "totals"; `judge`: of summary.counts.
function energy.put_totals(t, judge)
  local int, asked = values.int, judge.asked > 0
  local out = {
    accuracy = num(t.accuracy), bounds = {}, completed = int(t.completed),
    context_trimmed_turns = t.trimmed > 0 and int(t.trimmed) or nil, failed = int(t.failed),
    interrupted = int(t.stopped), judge_cpu_energy_joules = micro(asked and judge.cpu_j),
    judge_gpu_energy_joules = micro(asked and judge.gpu_j), known = {}, malformed_replies = int(t.malformed),
    queries = t.queries, resolved = t.resolved, retries = int(t.retries), timed_out = int(t.timed_out),
    tool_calls = int(t.tools), turns = int(t.turns), unknown = {}, unresolved = t.unresolved,
    unscorable = int(t.unscorable), unscored = t.unscored, wall_clock_s = num(t.wall_s),
    total_task_cpu_energy_joules = micro(t.energy.cpu.total + (asked and judge.cpu_j or 0)),
    total_task_gpu_energy_joules = micro(t.energy.gpu.total + (asked and judge.gpu_j or 0)),
  }
  for key, sum in pairs(sums_by_key(t)) do
    out[key], out.known[key], out.unknown[key] = put_sum(key, sum.total), put_sum(key, sum.known), sum.unknown
    if key:find "joules" and known(sum.total) then out.bounds[key] = values.bounds(sum) end
  end
  -- Only if an estimate replaces an energy value; it is in no other total.
  for _, domain in ipairs(DOMAINS) do
    local estimated = t.estimated[domain].total
    if known(estimated) and not known(t.energy[domain].total) then
      out.with_estimates = out.with_estimates or {}
      out.with_estimates[domain] = micro(estimated)
    end
  end
  return out
end

return energy
