--- ipw.power_model: estimates where there is no sensor, worked out by hand from the published rows and laws.
local json, model, test = require "ipw.core.json", require "ipw.power_model", require "ipw.test"
local equal, ok = test.equal, test.ok

local VM = "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 85\n"
  .. "model name\t: Intel(R) Xeon(R) Processor @ 2.90GHz\nstepping\t: 7\n"
  .. "flags\t\t: fpu vme hypervisor lahf_lm\n\nprocessor\t: 1\nmodel\t\t: 1\n"

local function near(got, want, by)
  for i, x in ipairs(want) do
    ok(math.abs(got[i] - x) <= (by or 1e-9), ("value %d: got %g, want %g"):format(i, got[i], x))
  end
end

--- Mid, lo and hi of a model at a utilisation.
local function at(u, ...)
  local _, watts = model.choose(...)
  return { watts(u) }
end

local seed
local function uniform(lo, hi)
  seed = seed * 6364136223846793005 + 1442695040888963407
  return lo + (hi - lo) * ((seed >> 33) / 2 ^ 31)
end

--- A laptop of 4 to 45 W whose power follows its load by a law of its own, with boosts and noise, whatever its limit
--- for long is: how many of 1,000 queries' truths lie within the bounds, from utilisation alone.
local function held_of_1000(limit_w, threads)
  local _, watts = model.choose({ threads = 8, virtual = false }, limit_w, 45)
  local held = 0
  seed = 20261122
  for _ = 1, 1000 do
    local truth, lo, hi, power = 0.0, 0.0, 0.0, uniform(0.6, 1.1)
    local boost, idle = uniform(1, 1.4), uniform(3, 6)
    for _ = 1, 40 do
      local u = uniform(0, 1) < 0.4 and uniform(0, 0.1) or uniform(0.1, 1)
      -- Half of the threads draw more than half: they boost higher.
      local load = u ^ power * threads ^ 0.6 * (u < 0.3 and boost or 1)
      local m, l, h = watts(u * threads)
      ok(l <= m and m <= h)
      truth, lo, hi = truth + math.min(idle + (45 - idle) * load, 45), lo + l, hi + h
    end
    if lo <= truth and truth <= hi then held = held + 1 end
  end
  return held
end

return {
  { "facts of /proc/cpuinfo", function()
    equal(model.facts(VM), { family = 6, model = 85, stepping = 7, threads = 2, virtual = true })
    equal(model.facts "", { threads = 1, virtual = false })
    -- A flag counts as a whole word of the flags' line alone, at either end of it too.
    for cpuinfo, virtual in pairs {
      ["processor : 0\nflags : hypervisor fpu\n"] = true, ["processor : 0\nflags : fpu hypervisor"] = true,
      ["processor : 0\nflags\t \t:\tfpu hypervisor sse\n"] = true,
      ["processor : 0\nflags : fpu nohypervisor hypervisors sse\n"] = false,
      ["processor : 0\nflags : fpu\nbugs : x hypervisor y\n"] = false, ["processor : 0\nflags hypervisor\n"] = false,
    } do
      equal(model.facts(cpuinfo).virtual, virtual, cpuinfo)
    end
  end },

  { "a virtual machine of two processors at half load, nothing known of them", function()
    near(at(0.5, { threads = 2, virtual = true }), { 4.24, 2.47, 11.29 }, 0.01)
    equal((model.choose { threads = 2, virtual = true }),
      "Cloud Carbon Footprint's watts for 2 vCPUs, unknown processor")
  end },

  { "a known processor, and power limits", function()
    local facts = model.facts(VM) -- the limit is the host's, not this machine's
    ok(model.choose(facts, 270, 270):find "Cascade Lake")
    near(at(1, facts, 270, 270), { 2 * 3.97, 2 * 3.97 * 0.7, 2 * 3.97 * 1.3 })
    facts.stepping = 4
    ok(model.choose(facts):find "Skylake")
    facts.virtual = false
    near(at(0.5, facts, 270), { 270 * 0.75, 270 * 0.2125 * 0.7, 270 * 0.75 * 1.3 }) -- Teads .75, linear .5, cubic .2125
    equal((model.choose(facts, 270)), "Teads' curve at a power limit of 270 W")
    equal((model.choose(facts, 100, 130)), "Teads' curve at power limits of 100 to 130 W")
    local _, watts = model.choose(facts, 270)
    for u = 0, 1, 0.01 do
      local mid, lo, hi = watts(u)
      ok(lo >= 0 and lo <= mid and mid <= hi)
    end
  end },

  { "laptops of 15, 28 and 45 W, all and half of their threads: 95 % within the bounds", function()
    for _, limit_w in ipairs { 15, 28, 45 } do
      for _, threads in ipairs { 1, 0.5 } do
        local held = held_of_1000(limit_w, threads)
        ok(held >= 950, ("limit %d W, %g: %d of 1000"):format(limit_w, threads, held))
      end
    end
  end },

  { "the table that the program reads", function()
    local t = json.decode(model.text { cpuinfo = VM, limit_w = json.null, peak_w = json.null })
    equal({ #t.mid, #t.lo, #t.hi }, { 101, 101, 101 })
    near({ t.mid[101], t.lo[101], t.hi[101] }, { 2 * 3.97, 2 * 3.97 * 0.7, 2 * 3.97 * 1.3 })
  end },
}
