--- ipw.gate: conditions on the difference of two runs, for continuous integration:
--- 'accuracy>=-1pt', 'j_solved<=+3%', 'seconds<=+0.5s'.
---
--- A gate is held if the whole 95 % interval of the difference meets it, broken if none of the interval does,
--- and else it cannot be told.
local compare = require "ipw.compare"
local runs    = require "ipw.runs"
local stats   = require "ipw.stats"

local gate = {}

--- name, the metric of ipw.compare that it is (nil: joules of all queries / solved ones), the units that a bound
--- can have besides %.
local names = {
  { "accuracy", "accuracy", { pt = 0.01 } },
  { "j_query", "joules", { J = 1, kJ = 1000, mJ = 0.001 } },
  { "j_solved", nil, { J = 1, kJ = 1000, mJ = 0.001 } },
  { "j_output_token", "joules_per_output_token", { J = 1, mJ = 0.001 } },
  { "j_token", "joules_per_token", { J = 1, mJ = 0.001 } },
  { "seconds", "seconds", { s = 1, ms = 0.001 } },
  { "input_tokens", "input_tokens", { [""] = 1 } },
  { "output_tokens", "output_tokens", { [""] = 1 } },
  { "turns", "turns", { [""] = 1 } },
}

local function list(of, key)
  local out = {}
  for _, one in ipairs(of) do out[#out + 1] = key and one[key] or one end
  return table.concat(out, ", ")
end

--- A gate from its text; or nil and a reason.
function gate.parse(text)
  local name, op, sign, digits, unit = text:match "^%s*([%w_]+)%s*([<>]=)%s*([+-]?)%s*([%d.]+)%s*(%a*%%?)%s*$"
  local bound = digits and tonumber(digits)
  if not bound then
    return nil, ("--gate '%s': expected METRIC>=BOUND or METRIC<=BOUND, such as 'accuracy>=-1pt' or 'j_solved<=+3%%'")
      :format(text)
  end
  local known
  for _, one in ipairs(names) do if one[1] == name then known = one end end
  if not known then
    return nil, ("--gate '%s': unknown metric '%s'; use one of: %s"):format(text, name, list(names, 1))
  end
  if sign == "-" then bound = -bound end
  local out = { text = text, name = name, metric = known[2], op = op, bound = bound, unit = unit }
  if unit == "%" then
    out.relative, out.bound = true, bound / 100
  elseif known[3][unit] then
    out.bound = bound * known[3][unit]
  elseif unit == "" and bound == 0 then
    out.bound = 0
  else
    local units = { "%" }
    for u in pairs(known[3]) do if u ~= "" then units[#units + 1] = u end end
    table.sort(units)
    return nil, ("--gate '%s': a bound of %s has one of the units: %s"):format(text, name, table.concat(units, ", "))
  end
  return out
end

--- Tasks of both runs whose joules are known: { a_j, a_solved, b_j, b_solved }.
local function solved_tasks(two)
  local out, by = {}, {}
  for _, both in ipairs(two.pairs) do
    local a, b = runs.joules(both[1].energy, two.basis), runs.joules(both[2].energy, two.basis)
    if not a or not b then return {} end
    local task = by[both[1].id]
    if not task then
      task = { a = 0.0, b = 0.0, a_n = 0, b_n = 0 }
      by[both[1].id], out[#out + 1] = task, task
    end
    task.a, task.b = task.a + a, task.b + b
    task.a_n, task.b_n = task.a_n + (both[1].resolved or 0), task.b_n + (both[2].resolved or 0)
  end
  return out
end

local function solved_change(relative)
  return function(tasks)
    local a, b, a_n, b_n = 0.0, 0.0, 0, 0
    for _, task in ipairs(tasks) do
      a, b, a_n, b_n = a + task.a, b + task.b, a_n + task.a_n, b_n + task.b_n
    end
    if a_n == 0 or b_n == 0 then return nil end
    a, b = a / a_n, b / b_n
    if not relative then return b - a end
    return a > 0 and b / a - 1 or nil
  end
end

local function relative_change(tasks)
  local a, b = 0.0, 0.0
  for _, task in ipairs(tasks) do a, b = a + task.a, b + task.b end
  return a > 0 and b / a - 1 or nil
end

--- The change from the first run to the second: mean, lo, hi; lo is nil where there is no interval.
local function change_of(g, two)
  if not g.metric then
    local drawn = stats.bootstrap(solved_tasks(two), solved_change(g.relative))
    return { mean = drawn.value, lo = drawn.lo, hi = drawn.hi }
  end
  for i, metric in ipairs(compare.metrics) do
    if metric[1] == g.metric then
      if not g.relative then return two.rows[i].difference end
      local drawn = stats.bootstrap(compare.tasks(two.pairs, metric, two.basis), relative_change)
      return { mean = drawn.value, lo = drawn.lo, hi = drawn.hi }
    end
  end
end

--- Whether the sensors leave open what the gate is about: joules that are not known to half of them.
local function is_coarse(g, two)
  for _, row in ipairs(two.rows) do
    if row.metric[1] == (g.metric or "joules") then return row.coarse end
  end
end

--- Judges a gate: text, run (the path of the second), state ("held", "broken", "unknown"), mean, lo, hi, why.
function gate.judge(g, two)
  local change = change_of(g, two)
  local out = { text = g.text, run = two.b.path, mean = change.mean, lo = change.lo, hi = change.hi, relative =
    g.relative,
                metric = g.name, bound = g.bound }
  if not change.mean then
    out.state, out.why = "unknown", "not known of both runs"
  elseif is_coarse(g, two) then
    out.state, out.why = "unknown", "the sensor is too coarse"
  elseif not change.lo then
    out.state, out.why = "unknown", ("%d tasks are too few for an interval"):format(#two.pairs)
  else
    local least, most = change.lo, change.hi
    if g.op == "<=" then least, most = -change.hi, -change.lo end
    local bound = g.op == "<=" and -g.bound or g.bound
    out.state = least >= bound and "held" or most < bound and "broken" or "unknown"
    if out.state == "unknown" then out.why = "the interval contains the bound" end
  end
  return out
end

--- The exit status of all: 5 if one is broken, else 6 if one cannot be told, else 0.
function gate.status(results)
  local status = 0
  for _, result in ipairs(results) do
    if result.state == "broken" then return 5 end
    if result.state == "unknown" then status = 6 end
  end
  return status
end

return gate
