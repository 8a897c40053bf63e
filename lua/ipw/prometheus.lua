--- ipw.prometheus: which samples of an exporter's page are energy, and of what.
---
--- Asked once, when the page is read first (energy/sources/prometheus.h). A new exporter is a row of RULES: NVIDIA's
--- DCGM exporter, Scaphandre, Kepler, node_exporter (powercap, hwmon), and another `ipw-agent telemetry --listen`.
local json = require "ipw.core.json"

local prometheus = {}

local MOST_SERIES = 256
local MAX_W = { gpu = 2000, cpu = 1500, dram = 1500, machine = 30000 }

-- A domain and a scope, as channels have them (energy/source.h).
local GPU, PACKAGE, CPU_RAIL, DRAM = { "gpu", "device" }, { "cpu", "package" }, { "cpu", "rail" }, { "dram", "dram" }
local MODULE, PLATFORM = { "machine", "module" }, { "machine", "platform" }
local MACHINE, MACHINE_RAIL = { "machine", "machine" }, { "machine", "rail" }
local C, G = "counter", "gauge"

-- metric = { kind, factor to microjoules or milliwatts, place, the labels that identify a device (the first is part of
-- the name), name, and: device: the label with a name for a person; rank: of two gauges of one device, the one with the
-- lower rank is left out; s: the exporter's usual period, otherwise it reads when asked }
local DCGM_GPU, DCGM_CPU = { "gpu", "UUID", "Hostname" }, { "cpu", "Hostname" }
local KEPLER_CPU, KEPLER_GPU = { "zone", "path" }, { "gpu", "gpu_uuid", "mode" }
local KEPLER_OLD, CHIP = { "package", "mode", "source" }, { "chip", "sensor" }
local SCAPH_ZONE = { "socket_id", "domain_name" }
local RULES = {
  DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION = { C, 1e3, GPU, DCGM_GPU, "gpu", device = "UUID", s = 1 },
  DCGM_FI_DEV_POWER_USAGE_INSTANT = { G, 1e3, GPU, DCGM_GPU, "gpu", device = "UUID", s = 1, rank = 1 },
  DCGM_FI_DEV_POWER_USAGE = { G, 1e3, GPU, DCGM_GPU, "gpu", device = "UUID", s = 1 },
  DCGM_FI_DEV_CPU_POWER_UTIL_CURRENT = { G, 1e3, PACKAGE, DCGM_CPU, "cpu", s = 1 },
  DCGM_FI_DEV_SYSIO_POWER_UTIL_CURRENT = { G, 1e3, CPU_RAIL, DCGM_CPU, "sysio", s = 1 },
  DCGM_FI_DEV_MODULE_POWER_UTIL_CURRENT = { G, 1e3, MODULE, DCGM_CPU, "module", s = 1 },

  scaph_host_energy_microjoules = { C, 1, PLATFORM, {}, "host", s = 1 },
  scaph_host_power_microwatts = { G, 1e-3, PLATFORM, {}, "host", s = 1 },
  scaph_socket_energy_microjoules = { C, 1, PACKAGE, { "socket_id" }, "socket", s = 1 },
  scaph_socket_power_microwatts = { G, 1e-3, PACKAGE, { "socket_id" }, "socket", s = 1 },
  scaph_domain_energy_microjoules = { C, 1, CPU_RAIL, SCAPH_ZONE, "", device = "domain_name", s = 1 },
  scaph_domain_power_microwatts = { G, 1e-3, CPU_RAIL, SCAPH_ZONE, "", device = "domain_name", s = 1 },

  kepler_node_cpu_joules_total = { C, 1e6, CPU_RAIL, KEPLER_CPU, "", device = "path", s = 3 },
  kepler_node_cpu_watts = { G, 1e3, CPU_RAIL, KEPLER_CPU, "", device = "path", s = 3 },
  kepler_node_gpu_joules_total = { C, 1e6, GPU, KEPLER_GPU, "gpu", device = "gpu_uuid", s = 3 },
  kepler_node_gpu_watts = { G, 1e3, GPU, KEPLER_GPU, "gpu", device = "gpu_uuid", s = 3 },
  kepler_platform_watts = { G, 1e3, MACHINE, { "source", "node_name", "chassis_id" }, "platform-", device = "source",
                            s = 3 },
  -- Before 0.10: one counter for each mode (dynamic, idle); together they are the device.
  kepler_node_package_joules_total = { C, 1e6, PACKAGE, KEPLER_OLD, "package", device = "mode", s = 3 },
  kepler_node_dram_joules_total = { C, 1e6, DRAM, KEPLER_OLD, "dram", device = "mode", s = 3 },
  kepler_node_platform_joules_total = { C, 1e6, PLATFORM, { "mode", "source" }, "platform-", device = "source", s = 3 },

  node_hwmon_energy_joule_total = { C, 1e6, MACHINE_RAIL, CHIP, "", device = "chip" },
  node_hwmon_power_average_watt = { G, 1e3, MACHINE_RAIL, CHIP, "", device = "chip", s = 1 },
  node_hwmon_power_watt = { G, 1e3, MACHINE_RAIL, CHIP, "", device = "chip", rank = 1 },

  ipw_energy_joules_total = { C, 1e6, MACHINE_RAIL, { "channel" }, "", device = "device" },
  ipw_power_watts = { G, 1e3, MACHINE_RAIL, { "channel" }, "", device = "device" },
}
--- node_exporter names the metric after the zone: node_rapl_<zone>_joules_total{index,path}.
local RAPL = { C, 1e6, CPU_RAIL, { "index", "path" }, "", device = "path" }

--- Places by the name of a RAPL zone, as Intel's driver has it, or of a chip.
local NAMED = { package = PACKAGE, dram = DRAM, core = { "cpu", "core" }, uncore = { "cpu", "uncore" }, psys = PLATFORM,
                amdgpu = GPU, i915 = GPU, xe = GPU, power_meter = MACHINE }

--- "package", "package-0", "package_0_die_1": the longest name before a dash or a line.
local function named(name)
  while name do
    if NAMED[name] then return NAMED[name] end
    name = name:match "^(.+)[-_]"
  end
end

local DOMAINS = { gpu = true, cpu = true, dram = true, machine = true }
local SCOPES = {}
for scope in ("device package core uncore dram platform module machine rail"):gmatch "%w+" do SCOPES[scope] = true end

--- The name of a series and its place, beyond what its rule says; nil: it only divides another, or is not known.
local function place(series, rule, metric, labels)
  local id, path = labels[rule[4][1]] or "", labels.path or ""
  local zone, of = metric:match "^node_rapl_(.+)_joules_total$", id
  if metric:find "^scaph_domain_" then
    zone = labels.domain_name or ""
    if zone == "" then zone = labels.domain or "" end
  elseif metric:find "^kepler_node_cpu_" then
    zone, of = id, path:match "([^/]+)$" or path
  end
  if zone then
    series.twin = path:find("-mmio", 1, true) ~= nil -- the page has the same register under another path
    return zone:sub(1, 32) .. "-" .. of:sub(1, 24), named(zone)
  elseif metric:find "^ipw_" then
    series.own = true
    if id == "" or not DOMAINS[labels.domain] then return id, nil end
    return id:sub(1, 48), { labels.domain, SCOPES[labels.scope] and labels.scope or MACHINE_RAIL[2] }
  elseif metric:find "^node_hwmon_" then
    series.chip = id
    return id:sub(1, 32) .. "-" .. (labels.sensor or ""):sub(1, 20), rule[3]
  end
  return rule[5] .. id:sub(1, 24), rule[3]
end

--- A series of energy or power; nil: it is none.
local function series_of(sample)
  local metric, labels = sample.name, {}
  local rule = RULES[metric] or (metric:find "^node_rapl_.+_joules_total$" and RAPL)
  if not rule then return nil end
  for i = #sample.labels, 1, -1 do labels[sample.labels[i][1]] = sample.labels[i][2] end
  local series = { metric = metric, factor = rule[2], labels = {}, rank = rule.rank or 0, blank = sample.blank }
  local name, where = place(series, rule, metric, labels)
  if not where then return nil end
  local ids = {}
  for i = 1, 3 do
    local label = rule[4][i]
    ids[i] = label and labels[label] or ""
    if label then series.labels[i] = { label, ids[i] } end
  end
  series.ids = table.concat(ids, "|")
  series.key = metric .. "{" .. series.ids .. "}"
  local device = rule.device and labels[rule.device] or ""
  device = (device ~= "" and device or name):sub(1, 60)
  local model = metric:find "^DCGM_" and labels.modelName or ""
  if model ~= "" then device = device:sub(1, 41) .. " " .. model:sub(1, 20) end
  -- Counters and gauges of one device of another ipw-agent have different channels.
  series.group = series.own and device or series.ids
  series.channel = { name = name, device = device, kind = rule[1], domain = where[1], scope = where[2],
                     period_ns = (rule.s or 0) * 1000000000, unit = rule[1] == C and "uJ" or "mW",
                     fresh = rule[1] == G and sample.stamped }
  return series
end

--- The series of a page. The first sample of a key counts, because MIG slices and pods repeat the whole device's. A
--- device without a value gets no channel, as with NVML; a gauge may then replace its counter. Without a chip name we
--- cannot tell what a series of hwmon measures.
local function gather(samples)
  local list, seen, chips, blank, beyond = {}, {}, {}, {}, 0
  for _, sample in ipairs(samples) do
    local series = series_of(sample)
    if series and not seen[series.key] then
      if series.blank then
        blank[#blank + 1] = series.key
      elseif #list == MOST_SERIES then
        beyond = beyond + 1
      else
        seen[series.key], list[#list + 1] = true, series
      end
    elseif sample.name == "node_hwmon_chip_names" then
      local chip, name
      for i = #sample.labels, 1, -1 do
        local label, value = sample.labels[i][1], sample.labels[i][2]
        if label == "chip" then chip = value elseif label == "chip_name" then name = value end
      end
      if chip then chips[chip] = named(name) end
    end
  end
  local kept = {}
  for _, series in ipairs(list) do
    local where = series.chip and chips[series.chip]
    if where then series.channel.domain, series.channel.scope = where[1], where[2] end
    if not series.chip or where then kept[#kept + 1] = series end
  end
  return kept, blank, beyond
end

local WHOLE = { gpu = "device", cpu = "package", dram = "dram", machine = "machine" }

--- Does the other one replace this gauge?
local function stands_back(series, other)
  local c, o = series.channel, other.channel
  return c.kind == G and c.domain == o.domain and c.scope == o.scope and series.group == other.group and series ~= other
    and (o.kind == C or other.rank > series.rank)
end

--- A counter is in its domain's sum, a gauge only if the page has no counter for the same device. A wider scope (psys,
--- the host as a whole) has its own domain.
local function choose(list)
  local metered = false
  for _, series in ipairs(list) do
    metered = metered or series.channel.domain == "machine" and series.channel.scope == "machine"
  end
  for _, series in ipairs(list) do
    local c = series.channel
    local makes_up = c.scope == WHOLE[c.domain] or (c.domain == "machine" and not metered and c.scope == "platform")
    c.in_sum, c.max_w = makes_up and not series.twin, MAX_W[c.domain]
    for _, other in ipairs(c.in_sum and list or {}) do
      if stands_back(series, other) then c.in_sum = false end
    end
    if c.kind == G and not c.name:find("power", 1, true) then c.name = c.name .. "/power" end
  end
end

--- Channel names begin with the host, so that gpu0 of two machines differ.
local function with_host(host, name)
  name = name:sub(1, 52)
  return host:sub(1, math.max(63 - #name - 1, 0)) .. "/" .. name
end

--- The series of a page.
---@param facts table { here: is it this machine's?; host; samples: { { blank, labels, name, stamped } } }
---@return table { note?, own: all from another ipw-agent?, series: { { channel, factor, labels, metric } } }
function prometheus.series(facts)
  local list, blank, beyond = gather(facts.samples)
  local out = { own = true, series = json.list {} }
  choose(list)
  for i, series in ipairs(list) do
    series.channel.name = with_host(facts.host, series.channel.name)
    series.channel.remote = not facts.here
    out.own = out.own and series.own or false
    out.series[i] = { channel = series.channel, factor = series.factor, labels = json.list(series.labels),
                      metric = series.metric }
  end
  if beyond > 0 then
    out.note = ("%d series over the limit of %d are left out"):format(beyond, MOST_SERIES)
  elseif #blank > 0 then
    out.note = ("without a value and not counted: %s%s"):format(blank[1]:sub(1, 60), #blank > 1 and " and others" or "")
  end
  return out
end

--- The same as JSON.
function prometheus.text(facts) return json.encode(prometheus.series(facts)) end

return prometheus
