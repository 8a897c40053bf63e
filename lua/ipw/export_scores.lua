--- ipw.export_scores: what leaderboards want of a run: accuracy and mean joules, gathered query by query.
local export = require "ipw.export"

local scores = {}

--- Begins a run.
---@param run table
---@return table tally
function scores.new(run)
  local config = run.manifest and run.manifest.config or {}
  return { run = run, config = config, queries = 0, resolved = 0, scored = 0, joules = {}, known = {},
           when = run.manifest and run:wall_ns(run.manifest.clock and run.manifest.clock.mono_ns or 0, 0) }
end

---@param tally table
---@param query table
function scores.add(tally, query)
  tally.queries = tally.queries + 1
  tally.model = tally.model or query.model
  if query.is_resolved ~= nil then tally.scored = tally.scored + 1 end
  if query.is_resolved then tally.resolved = tally.resolved + 1 end
  for _, domain in ipairs(export.domains) do
    local joules = export.joules(query, domain)
    if joules then
      tally.joules[domain] = export.add_joules(tally.joules[domain], joules)
      tally.known[domain] = (tally.known[domain] or 0) + 1
    end
  end
end

--- Bounds and standard uncertainty of the joules of all queries of the run; nil: not known, or not of the same queries.
---@param tally table
---@param domain string
---@return number? lo, number? hi, number? u
function scores.bounds(tally, domain)
  local totals = tally.run.summary and tally.run.summary.totals or {}
  if totals.queries ~= tally.queries or tally.known[domain] ~= tally.queries then return nil end
  return export.bounds(totals, domain .. "_energy_joules")
end

--- Share of the scored queries that are resolved; nil: none was scored.
---@param tally table
---@return number?
function scores.accuracy(tally) return tally.scored > 0 and tally.resolved / tally.scored or nil end

return scores
