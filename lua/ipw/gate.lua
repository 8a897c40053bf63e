--- ipw.gate: conditions on runs, for continuous integration: absolute ones on each run, such as 'j_correct<=500J',
--- 'accuracy>=80%' and 'cost_correct<=0.05', and relative ones on the change from the first run, such as
--- 'accuracy>=-1pt' and 'j_query<=+3%'.
---
--- A bound with a sign is a change; without one it is a value. The whole 95 % interval over tasks decides, together
--- with the sensor's bounds: a gate is held if all of it meets the bound, broken if none does. Else it cannot be told,
--- nor where a change in joules is nearer to the bound than their standard uncertainty.
local compare = require "ipw.compare"
local runs    = require "ipw.runs"
local stats   = require "ipw.stats"

local gate = {}

-- name; the metric of ipw.compare whose change it bounds (nil: `solved`, a sum over all queries / the correct ones);
-- the value of compare.alone that it bounds (nil: only a change); units of a bound besides %; unit of what is printed.
local JOULES <const> = { J = 1, kJ = 1000, mJ = 0.001 }
local SECONDS <const> = { s = 1, ms = 0.001, min = 60 }
local MONEY <const> = { [""] = 1, USD = 1 }
local COUNT <const> = { [""] = 1 }
local names = {
  { "accuracy", "accuracy", alone = "accuracy", units = { pt = 0.01 }, value_units = { ["%"] = 0.01 }, unit = "%" },
  { "j_query", "joules", alone = "joules", units = JOULES, unit = "J" },
  { "j_correct", solved = "joules", alone = "j_solved", units = JOULES, unit = "J" },
  { "j_solved", solved = "joules", alone = "j_solved", units = JOULES, unit = "J" },
  { "j_output_token", "joules_per_output_token", units = JOULES, unit = "J" },
  { "j_token", "joules_per_token", units = JOULES, unit = "J" },
  { "seconds", "seconds", alone = "seconds", units = SECONDS, unit = "s" },
  { "seconds_correct", solved = "seconds", alone = "s_solved", units = SECONDS, unit = "s" },
  { "cost_query", "cost", alone = "cost", units = MONEY, unit = "USD" },
  { "cost_correct", solved = "cost", alone = "cost_solved", units = MONEY, unit = "USD" },
  { "input_tokens", "input_tokens", alone = "input_tokens", units = COUNT },
  { "output_tokens", "output_tokens", alone = "output_tokens", units = COUNT },
  { "tokens_correct", solved = "tokens", alone = "tokens_solved", units = COUNT },
  { "turns", "turns", alone = "turns", units = COUNT },
}

local function list(of, key)
  local out = {}
  for _, one in ipairs(of) do out[#out + 1] = key and one[key] or one end
  return table.concat(out, ", ")
end

local function units_of(known, value)
  local out = (value or known.value_units) and {} or { "%" }
  for unit in pairs(value and known.value_units or known.units) do
    if unit ~= "" then out[#out + 1] = unit end
  end
  table.sort(out)
  return out
end

local function refuse(text, why, ...) return nil, ("--gate '%s': " .. why):format(text, ...) end

--- A gate on a value: a bound without a sign.
local function absolute(out, known, unit)
  local size = (known.value_units or known.units)[unit]
  if size and known.alone and not (out.bound == 0 and unit == "") then
    out.metric, out.bound = known.alone, out.bound * size
    return out
  end
  local name, op, number = out.name, out.op, ("%g"):format(out.bound)
  if known.alone and unit == "" and out.bound ~= 0 then
    return refuse(out.text, "a bound of %s needs a unit: '%s%s%s%s' bounds the value, '%s%s+%s%s' the change from " ..
      "the first run", name, name, op, number, known.unit, name, op, number, known.value_units and "pt" or "%")
  end
  local change = unit == "" and (known.units[""] and "" or units_of(known)[2] or "%") or unit
  local line = ("%s%s+%s%s"):format(name, op, number, change)
  if not known.alone or out.bound == 0 and unit == "" then
    return refuse(out.text, "bounds a change, so the bound needs its sign: '%s'", line)
  end
  local units = units_of(known, true)
  if unit == "%" or known.units[unit] then
    return refuse(out.text, "'%s' bounds the change from the first run; %s itself is bounded in %s, such as '%s%s%s%s'",
      line, name, #units > 0 and table.concat(units, ", ") or "plain numbers", name, op, number, units[1] or "")
  end
  return refuse(out.text, "a bound of %s has one of the units: %s", name, table.concat(units, ", "))
end

--- A gate on the change from the first run: a bound with a sign.
local function relative(out, known, sign, unit)
  out.change, out.metric, out.solved = true, known[2], known.solved
  if unit == "%" and known.value_units then
    local number = ("%g"):format(math.abs(out.bound))
    return refuse(out.text, "a change of %s is in points: '%s%s%s%spt'; without a sign, '%s%s%s%%' bounds the value",
      out.name, out.name, out.op, sign, number, out.name, out.op, number)
  end
  if unit == "%" then
    out.relative, out.bound = true, out.bound / 100
  elseif known.units[unit] then
    out.bound = out.bound * known.units[unit]
  elseif unit == "" and out.bound == 0 then
    out.bound = 0.0
  else
    return refuse(out.text, "a change of %s has one of the units: %s", out.name, table.concat(units_of(known), ", "))
  end
  return out
end

--- A gate from its text; or nil and a reason.
function gate.parse(text)
  local name, op, sign, digits, unit = text:match "^%s*([%w_]+)%s*([<>]=)%s*([+-]?)%s*([%d.]+)%s*(%a*%%?)%s*$"
  local bound = digits and tonumber(digits)
  if not bound then
    return refuse(text, "expected METRIC>=BOUND or METRIC<=BOUND: 'j_correct<=500J' bounds a value, " ..
      "'accuracy>=-1pt' the change from the first run")
  end
  local known
  for _, one in ipairs(names) do if one[1] == name then known = one end end
  if not known then return refuse(text, "unknown metric '%s'; use one of: %s", name, list(names, 1)) end
  if sign == "-" then bound = -bound end
  local out = { text = text, name = name, op = op, bound = bound, unit = known.unit }
  if sign == "" then return absolute(out, known, unit) end
  return relative(out, known, sign, unit)
end

local function relative_change(tasks)
  local a, b = 0.0, 0.0
  for _, task in ipairs(tasks) do a, b = a + task.a, b + task.b end
  return a > 0 and b / a - 1 or nil
end

--- The change from the first run to the second: mean, lo, hi; lo is nil where there is no interval.
local function change_of(g, two)
  if g.solved then return compare.correct_change(two, g.solved, g.relative and "relative" or "difference") end
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
  if g.unit ~= "J" then return false end
  for _, row in ipairs(two.rows) do
    if row.metric[1] == (g.metric or "joules") then return row.coarse end
  end
end

--- The standard uncertainty that the sensors leave of the change in joules that the gate bounds; nil: not known, or it
--- bounds no joules.
local function uncertainty(g, two)
  if g.unit ~= "J" then return nil end
  for _, row in ipairs(two.rows) do
    if row.metric[1] == (g.metric or "joules") and row.u and row.a > 0 then
      if g.relative then return row.u / row.a end
      local correct = g.solved and compare.alone(two.a, two.basis).j_solved.mean
      return correct and correct * row.u / row.a or row.u
    end
  end
end

local function decide(out, g, least, most)
  local lo, hi, bound = least, most, g.bound
  if g.op == "<=" then lo, hi, bound = -most, -least, -g.bound end
  out.state = lo >= bound and "held" or hi < bound and "broken" or "unknown"
  if out.state == "unknown" then out.why = "the interval contains the bound" end
  return out
end

local function unknown(out, why, ...)
  out.state, out.why = "unknown", why:format(...)
  return out
end

--- Judges a gate on the change from the first run: text, run (the path of the second), state ("held", "broken",
--- "unknown"), mean, lo, hi, why.
function gate.judge(g, two)
  local change = change_of(g, two)
  local out = { text = g.text, run = two.b.path, mean = change.mean, lo = change.lo, hi = change.hi, change = true,
                relative = g.relative, metric = g.name, unit = g.unit, bound = g.bound }
  if not change.mean then return unknown(out, "not known of both runs") end
  if is_coarse(g, two) then return unknown(out, "the sensor is too coarse") end
  if not change.lo then return unknown(out, "%d tasks are too few for an interval", #two.pairs) end
  local u = uncertainty(g, two)
  if u and math.abs(change.mean - g.bound) < u then
    return unknown(out, "the change is nearer to the bound than the sensors' standard uncertainty")
  end
  return decide(out, g, change.lo, change.hi)
end

--- Judges a gate on a run's own value: as gate.judge. `alone`: the run by itself (compare.alone).
function gate.judge_alone(g, run, alone)
  local value = alone[g.metric]
  local out = { text = g.text, run = run.path, mean = value.mean, lo = value.lo, hi = value.hi, metric = g.name,
                unit = g.unit, bound = g.bound }
  if not value.mean then
    local cost = g.unit == "USD" and ": a model has no price (--prices)"
    return unknown(out, "not known%s", alone.none_correct and g.name:find "_correct$" and ": no answer is correct"
      or cost or "")
  end
  if runs.coarse(value.mean, value.sensor_lo, value.sensor_hi) then return unknown(out, "the sensor is too coarse") end
  if not value.lo then return unknown(out, "%d tasks are too few for an interval", value.n) end
  local least, most = value.sensor_lo or value.lo, value.sensor_hi or value.hi
  return decide(out, g, math.min(value.lo, least), math.max(value.hi, most))
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
