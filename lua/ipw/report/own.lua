--- ipw.report.own: the joules of each query above idle.
---
--- A query's joules hold its share of the idle board, and whoever is left at the end of a run holds the whole board.
--- So lists, axes and percentiles use what a query took above idle: `marginal_j` where the idle power was measured
--- (run --baseline); else the joules less the least power that was seen in the run, shared by the queries in flight.
local own = {}

local LEAST = 0.05 -- the share of bins that may lie below the least power: one bin is no measurement
local ENOUGH = 0.05 -- the share of all joules that must lie above idle, else the devices do not follow the load

--- Of the ledger's accounts; false: the idle power was not measured.
local function from_accounts(run)
  for _, q in ipairs(run.queries) do
    local sum = q.energy.joules and 0 or nil
    for _, domain in ipairs(run.domains) do
      local joules = sum and (q.accounts[domain] or {}).marginal_j
      if sum and type(joules) ~= "number" then return false end
      sum = sum and sum + joules
    end
    q.own = sum
  end
  return true
end

--- The watts of all devices that most bins of the run are not below.
local function least_watts(run)
  local sums = {}
  for i = 1, run.power and run.power.n or 0 do
    local sum = 0
    for _, domain in ipairs(run.domains) do
      local w = run.power.by_domain[domain] and run.power.by_domain[domain].mean[i]
      sum = sum and w and sum + w
    end
    if sum then sums[#sums + 1] = sum end
  end
  table.sort(sums)
  return sums[math.floor(#sums * LEAST) + 1]
end

--- Takes 1/n of `watts` off each query while n are in flight.
local function from_least(run, watts)
  local edges = {}
  for _, q in ipairs(run.queries) do
    if q.at and q.seconds then
      edges[#edges + 1] = { q.at, 1, q }
      edges[#edges + 1] = { q.at + q.seconds, -1, q }
    end
  end
  table.sort(edges, function(a, b)
    if a[1] ~= b[1] then return a[1] < b[1] end
    if a[2] ~= b[2] then return a[2] < b[2] end
    return a[3].index < b[3].index
  end)
  local n, each, before, began = 0, 0, 0, {}
  for _, edge in ipairs(edges) do
    local q = edge[3]
    if n > 0 then each = each + watts * (edge[1] - before) / n end
    n, before = n + edge[2], edge[1]
    if edge[2] > 0 then
      began[q] = each
    elseif q.energy.joules then
      q.own = q.energy.joules - (each - (began[q] or each))
    end
  end
end

--- Fills q.own; run.own is "baseline" or "least" (where the idle power is from), nil: there are no such joules.
function own.fill(run)
  local how = from_accounts(run) and "baseline"
  if not how then
    local watts = least_watts(run)
    if watts then
      from_least(run, watts)
      how = "least"
    end
  end
  local above, all = 0, 0
  for _, q in ipairs(run.queries) do
    above, all = above + math.max(0, q.own or 0), all + (q.own and q.energy.joules or 0)
  end
  if how and above > ENOUGH * all and all > 0 then
    run.own = how
  else
    for _, q in ipairs(run.queries) do q.own = nil end
  end
end

--- What a query is ranked by: its joules above idle, without them its joules, in a run without joules its seconds.
function own.rank(run, q)
  if run.known == 0 then return q.seconds end
  if run.own then return q.own end
  return q.energy.joules
end

--- The name of what is ranked by: "joules above idle", "joules" or "seconds".
function own.noun(run) return run.known == 0 and "seconds" or run.own and "joules above idle" or "joules" end

return own
