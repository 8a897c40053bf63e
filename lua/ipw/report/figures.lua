--- ipw.report.figures: adds energy values ({joules, lo, hi, provenance} or {reason}) of several domains.
local figures = {}

local rank = { measured = 1, interpolated = 2, distributed = 3, estimated = 4 }

--- Why a figure is not known, in words.
figures.reasons = {
  no_sensor = "no sensor", permission = "the sensor may not be read", not_covered = "no readings there",
  no_samples = "no readings there", gpu_lost = "the GPU was lost", lost = "the sensor was lost",
  stuck = "the counter stood still", contradicted = "another sensor contradicts it",
  below_resolution = "shorter than the sensor can resolve",
  counter_reset = "the counter was reset", suspended = "the machine slept", remote = "not measured here",
  replayed = "a replay draws nothing",
}

---@param reason? string
---@return string
function figures.why(reason) return figures.reasons[reason] or (reason or "not known"):gsub("_", " ") end

--- The sum over the domains; {reason} if one of them is not known.
---@param energy? table domain to energy value
---@param domains string[]
---@return table
function figures.sum(energy, domains)
  local sum = { joules = 0, lo = 0, hi = 0, provenance = "measured" }
  if #domains == 0 then return { reason = "no_sensor" } end
  for _, domain in ipairs(domains) do
    local f = energy and energy[domain]
    if not f or not f.joules then return { reason = f and f.reason or "not_covered" } end
    sum.joules = sum.joules + f.joules
    sum.lo = sum.lo and f.lo and sum.lo + f.lo or nil
    sum.hi = sum.hi and f.hi and sum.hi + f.hi or nil
    if rank[f.provenance or "estimated"] > rank[sum.provenance] then sum.provenance = f.provenance or "estimated" end
  end
  return sum
end

--- What a model estimates, where no domain was measured; nil: nothing was estimated.
---@param energy? table
---@return table?
function figures.estimate(energy)
  local sum
  for _, domain in ipairs { "cpu", "dram", "gpu", "machine" } do
    local f = energy and energy[domain]
    if f and f.estimate and f.estimate.joules then
      sum = sum or { joules = 0, lo = 0, hi = 0, provenance = "estimated" }
      sum.joules = sum.joules + f.estimate.joules
      sum.lo = sum.lo and f.lo and sum.lo + f.lo or nil
      sum.hi = sum.hi and f.hi and sum.hi + f.hi or nil
    end
  end
  return sum
end

--- What a chart shows: the sum, or the estimate of a run without sensors. An estimate is in no total.
function figures.shown(energy, domains)
  return #domains == 0 and figures.estimate(energy) or figures.sum(energy, domains)
end

return figures
