--- ipw.power_model: the power of processors without an energy sensor, by published laws.
---
--- If no sensor can be read, a few public models tell the power of such a machine at a given utilisation. They
--- disagree by a factor of about three, and that is the width of the bounds. An energy value made with this is never
--- known: it is an estimate beside a null, in no total.
---
--- Laws, where u is the utilisation of all processors (0 to 1):
---   Teads     TDP * {0: .12, .1: .32, .5: .75, 1: 1.02}, straight in between (Impact Framework, generics.yml)
---   linear    TDP * u (CodeCarbon, a process)
---   cubic     TDP * (.1 + .9 u^3) (CodeCarbon, a machine; hardware.py)
---   per vCPU  least + (most - least) * u, by micro-architecture (Cloud Carbon Footprint, AWSConstants)
--- On bare metal powercap names the power limits, which every user can read (energy_uj is protected): one for long
--- (PL1), and a higher one for boosts (PL2). A laptop may follow either, so the estimate is Teads' curve with the
--- middle of both as TDP. Its lower bound is 0.7 times the lowest of the first three laws with the lower limit, its
--- upper bound 1.3 times the highest of them with the higher limit. Elsewhere the row of the processor's
--- micro-architecture gives the estimate. Its bounds are 0.7 and 1.3 times the lowest and highest of that row taken
--- linearly, cubically, and by Teads' curve. A processor without a row is estimated between the lowest and the highest
--- row.
local json = require "ipw.core.json"

local power_model = {}

local max, min = math.max, math.min

local LOOSE_LO, LOOSE_HI = 0.7, 1.3
local STEPS = 100 -- of utilisation, in the table that the program reads

-- Watts per vCPU at no load and at full load, from Cloud Carbon Footprint's AWSConstants.ts.
local ROWS = {
  ["AMD EPYC 3rd generation"] = { 0.45, 2.02 },
  ["AMD EPYC 2nd generation"] = { 0.47, 1.69 },
  ["AMD EPYC 1st generation"] = { 0.82, 2.55 },
  ["Cascade Lake"] = { 0.64, 3.97 },
  ["Skylake"] = { 0.65, 4.26 },
  ["Broadwell"] = { 0.71, 3.69 },
  ["Haswell"] = { 1.00, 4.74 },
  ["Coffee Lake"] = { 1.14, 5.42 },
  ["Sandy Bridge"] = { 2.17, 8.58 },
  ["Ivy Bridge"] = { 3.04, 8.25 },
}
local LOWEST, HIGHEST = ROWS["AMD EPYC 3rd generation"], ROWS["Ivy Bridge"]
local UNKNOWN = { 0.74, 3.5 }

-- By "family model". Intel's processors are family 6; AMD's are 23 and 25.
local PARTS = {
  ["25 1"] = "AMD EPYC 3rd generation", ["23 49"] = "AMD EPYC 2nd generation", ["23 1"] = "AMD EPYC 1st generation",
  ["6 85"] = "Skylake", ["6 78"] = "Skylake", ["6 94"] = "Skylake",
  ["6 61"] = "Broadwell", ["6 71"] = "Broadwell", ["6 79"] = "Broadwell", ["6 86"] = "Broadwell",
  ["6 60"] = "Haswell", ["6 63"] = "Haswell", ["6 69"] = "Haswell", ["6 70"] = "Haswell",
  ["6 142"] = "Coffee Lake", ["6 158"] = "Coffee Lake",
  ["6 42"] = "Sandy Bridge", ["6 45"] = "Sandy Bridge", ["6 58"] = "Ivy Bridge", ["6 62"] = "Ivy Bridge",
}
local CASCADE_LAKE_STEPPING = 5 -- of family 6, model 85

--- What /proc/cpuinfo says; the first processor's values stand for all.
---@param cpuinfo string
---@return table { threads, virtual, family, model, stepping }
function power_model.facts(cpuinfo)
  local facts = { threads = 0, virtual = false }
  for line in cpuinfo:gmatch "[^\n]+" do
    local key, value = line:match "^(.-)[\t ]*:[\t ]*(.*)$"
    if key == "processor" then
      facts.threads = facts.threads + 1
    elseif facts.threads > 1 then
      goto next
    elseif key == "cpu family" then
      facts.family = math.tointeger(tonumber(value))
    elseif key == "model" or key == "stepping" then
      facts[key] = math.tointeger(tonumber(value))
    elseif key == "flags" then
      facts.virtual = (" " .. value .. " "):find(" hypervisor ", 1, true) ~= nil
    end
    ::next::
  end
  facts.threads = max(facts.threads, 1)
  return facts
end

local X, Y = { 0, 0.1, 0.5, 1 }, { 0.12, 0.32, 0.75, 1.02 }

local function teads(u)
  local i = u < 0.1 and 1 or u < 0.5 and 2 or 3
  return Y[i] + (Y[i + 1] - Y[i]) * (u - X[i]) / (X[i + 1] - X[i])
end

local function between(row, part) return row[1] + (row[2] - row[1]) * part end

local function by_limit(limit_w, peak_w)
  return function(u)
    local mid, cubic = teads(u), 0.1 + 0.9 * u ^ 3
    return (limit_w + peak_w) / 2 * mid, limit_w * LOOSE_LO * min(mid, u, cubic), peak_w * LOOSE_HI * max(mid, u, cubic)
  end
end

local function by_vcpu(row, threads)
  return function(u)
    if not row then
      return threads * between(UNKNOWN, u), threads * between(LOWEST, u), threads * between(HIGHEST, u)
    end
    local curve = (teads(u) - teads(0)) / (teads(1) - teads(0))
    return threads * between(row, u), threads * LOOSE_LO * between(row, u ^ 3),
      threads * LOOSE_HI * between(row, curve)
  end
end

--- The model of a machine.
---@param facts table
---@param limit_w number? power limit of all packages together, for long
---@param peak_w number? likewise for boosts
---@return string about for a person
---@return fun(u: number): number, number, number watts the middle, the least and the most at a utilisation
function power_model.choose(facts, limit_w, peak_w)
  if limit_w and not facts.virtual then
    peak_w = max(peak_w or limit_w, limit_w)
    local about = peak_w > limit_w and ("Teads' curve at power limits of %.0f to %.0f W"):format(limit_w, peak_w)
      or ("Teads' curve at a power limit of %.0f W"):format(limit_w)
    return about, by_limit(limit_w, peak_w)
  end
  local part = ("%s %s"):format(facts.family, facts.model)
  local name = PARTS[part]
  if part == "6 85" and (facts.stepping or 0) >= CASCADE_LAKE_STEPPING then name = "Cascade Lake" end
  return ("Cloud Carbon Footprint's watts for %d vCPU%s, %s"):format(facts.threads, facts.threads == 1 and "" or "s",
    name or "unknown processor"), by_vcpu(name and ROWS[name], facts.threads)
end

--- The model as energy/sources/cpu_model.h reads it: {about, hi, lo, mid}, watts at even steps of utilisation.
---@param facts table { cpuinfo, limit_w, peak_w }
---@return string JSON
function power_model.text(facts)
  local function number(x) return x ~= json.null and x or nil end
  local about, watts = power_model.choose(power_model.facts(facts.cpuinfo), number(facts.limit_w), number(facts.peak_w))
  local out = { about = about, hi = {}, lo = {}, mid = {} }
  for i = 0, STEPS do out.mid[i + 1], out.lo[i + 1], out.hi[i + 1] = watts(i / STEPS) end
  return json.encode(out)
end

return power_model
