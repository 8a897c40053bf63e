--- ipw.analyze: what an analysis gets, and what is common to several.
---
--- An analysis is one Lua file with name, about, and run(run), which returns a result (a table that becomes JSON) and a
--- list of lines for people. A run has path, name, manifest, summary, basis (the domains that are compared), and rows:
--- queries, each with id, seconds, input, output, resolved (1, 0 or nil), energy, parts, and turns (model calls).
local runs  = require "ipw.runs"
local stats = require "ipw.stats"

local analyze = {}

--- Joules of a query, turn or phase over the run's basis, with their bounds.
---@param run table
---@param part? table
---@return number? joules, number? lo, number? hi
function analyze.joules(run, part)
  if not part then return nil end
  return runs.joules_of(part, run.basis)
end

--- Every model call of a run.
---@param run table
---@param fn fun(turn: table, row: table)
function analyze.calls(run, fn)
  for _, row in ipairs(run.rows) do
    for _, turn in ipairs(row.turns) do fn(turn, row) end
  end
end

--- A quotient of two sums over the tasks, with its bootstrap interval: mean, lo, hi, n, method.
---@param dividends number[]
---@param divisors number[]
---@param tasks string[]
---@return table
function analyze.quotient(dividends, divisors, tasks)
  local clusters, by = {}, {}
  for i = 1, #dividends do
    local cluster = by[tasks[i]]
    if not cluster then
      cluster = { sum = 0.0, n = 0.0 }
      by[tasks[i]], clusters[#clusters + 1] = cluster, cluster
    end
    cluster.sum, cluster.n = cluster.sum + dividends[i], cluster.n + divisors[i]
  end
  return stats.interval(clusters, "ratio")
end

--- A value with its interval as text: "0.083 (0.061-0.105)", each with three digits.
---@param value? number
---@param lo? number
---@param hi? number
---@return string
function analyze.text(value, lo, hi)
  local function digits(x) return ("%.3g"):format(x) end
  if not value then return "\u{2013}" end
  if not lo then return digits(value) end
  return ("%s (%s to %s)"):format(digits(value), digits(lo), digits(hi))
end

return analyze
