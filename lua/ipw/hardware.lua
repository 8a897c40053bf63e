--- ipw.hardware: the hardware of a machine and its labels: the object `hardware` of manifest.json.
---
--- Made from the facts of energy/hardware.h: texts of files below /proc and /sys, channels, sensors. There are two
--- labels. One follows the upstream project's rule with all its quirks, so that folders and tables of both programs
--- agree. The other is a sane one of ours ("4x H100 80GB", "EPYC 9654").
local json = require "ipw.core.json"

local hardware = {}

local null = json.null

-- The processor.

local function first_line(text)
  if text == null or not text then return nil end
  local line = text:match "^[^\n]*"
  return line ~= "" and line or nil
end

--- model, threads, cores, sockets, and whether a hypervisor is below (nil: not known).
local function processor(text)
  local out = { threads = 0, cores = 0, sockets = 0 }
  local package, cores, sockets = 0, {}, {}
  for line in (text ~= null and text or ""):gmatch "[^\n]+" do
    local key, value = line:match "^([%a ]-)[\t ]*:[\t ]*(.*)$"
    if key == "processor" then
      out.threads = out.threads + 1
    elseif key == "model name" then
      out.model = out.model or value ~= "" and value or nil
    elseif key == "physical id" then
      package = value
      if not sockets[value] then out.sockets, sockets[value] = out.sockets + 1, true end
    elseif key == "core id" then
      local core = package .. " " .. value
      if not cores[core] then out.cores, cores[core] = out.cores + 1, true end
    elseif key == "flags" then
      out.hypervisor = out.hypervisor or value:find(" hypervisor", 1, true) ~= nil
    end
  end
  return out
end

-- Makers of virtual machines; the last two have bare metal, too.
local MAKERS = { "QEMU", "VMware", "Xen", "innotek", "Microsoft", "KVM", "Parallels", "Amazon", "Google" }
local ALWAYS_VIRTUAL = 6 -- of them, where the processor does not tell

--- "no", or what says that the machine is virtual; nil: not known.
local function virtualised(hypervisor, vendor)
  if hypervisor == false then return "no" end
  local found = hypervisor and "hypervisor" or nil
  for i, maker in ipairs(vendor and MAKERS or {}) do
    if vendor:find(maker, 1, true) and (hypervisor or i <= ALWAYS_VIRTUAL) then found = vendor end
  end
  return found
end

--- The version of NVIDIA's kernel module: the first word of digits and dots that has a dot.
local function driver_of(text)
  for word in (first_line(text) or ""):gmatch "[^ ]+" do
    if word:find "^[%d.]+$" and word:find(".", 1, true) then return word end
  end
end

--- GPUs are counted by their identity, the part of the device's text before the first blank. A later source is of
--- another maker, or it shows the same GPUs again: then they are not in the sum.
local function gpus_of(facts)
  local first, other, seen, source, later = { n = 0 }, { n = 0 }, {}, nil, false
  for i, channel in ipairs(facts.channels) do
    if facts.source_numbers[i] ~= source then source, seen, later = facts.source_numbers[i], {}, first.n > 0 end
    local id, name = channel.device:match "^(%S*) ?(.*)$"
    local counts = channel.domain == "gpu" and not channel.remote and channel.kind ~= "metric"
    if counts and not seen[id] and (not later or channel.in_sum) then
      local gpus = later and other or first
      seen[id] = true
      gpus.n, gpus.model = gpus.n + 1, gpus.model or (name ~= "" and name or channel.device)
    end
  end
  return first, other
end

-- Labels.

--- May this word join with the next one, which has a digit?
local function joins(word)
  if word:find "%d" then return word:find "%a" ~= nil end
  return #word <= 4 and (not word:find "[^%u]" or not word:find "[^%l]")
end

--- Upstream's rule for one name; "" for a name without words.
local function upstream_name(name)
  local words, out = {}, nil
  for word in (name or ""):gmatch "%w+" do words[#words + 1] = word end
  for i = 1, #words - 1 do
    if words[i + 1]:find "%d" and joins(words[i]) then
      out = words[i] .. words[i + 1]
      break
    end
  end
  for i = 1, out and 0 or #words do
    if words[i]:find "%d" then
      out = words[i]
      break
    end
  end
  for i = out and 0 or #words, 1, -1 do
    if not words[i]:find "%A" then
      out = words[i]
      break
    end
  end
  out = out or words[#words] or ""
  return out:find "%u" and out or out:upper()
end

--- Upstream's label for a GPU's name (nil: no GPU) and a processor's.
---@param gpu string?
---@param cpu string?
---@return string
function hardware.label_upstream(gpu, cpu)
  local g, c = upstream_name(gpu), upstream_name(cpu)
  local label = not g:find "%d" and (c:find "%d" or g == "") and c or g
  return label ~= "" and label or "UNKNOWN_HW"
end

-- Words that name a maker, a trade mark or a kind, but not a product.
local NOISE = {}
for word in ("nvidia amd intel corporation r tm cpu gpu tesla geforce gen radeon core processor with graphics"):gmatch
  "%a+" do
  NOISE[word] = true
end

local function is_noise(word, gpu)
  if NOISE[word:lower()] then return true end
  return not gpu and (word:find "^%d+%-[Cc][Oo][Rr][Ee]$" or word:find "^%d.*th$") ~= nil -- the facts have the count
end

--- The name without makers, kinds and everything after '@'; its words keep their spelling, dashes and dots.
local function plain_name(name, gpu)
  local words = {}
  for word in (name or ""):match "^[^@]*":gmatch "[^ ()\t]+" do
    if not is_noise(word, gpu) then words[#words + 1] = word end
  end
  return table.concat(words, " ")
end

--- "2x H100"; nil without a GPU.
local function gpus_name(gpus)
  if not gpus.model or gpus.model == "" or gpus.n == 0 then return nil end
  local name = plain_name(gpus.model, true)
  if name == "" then name = "GPU" end
  return gpus.n > 1 and ("%dx %s"):format(gpus.n, name) or name
end

--- Our label.
---@param gpus {n: integer, model: string?} of the first maker
---@param other {n: integer, model: string?} of another one
---@param cpu string?
---@return string
function hardware.label(gpus, other, cpu)
  local first, second = gpus_name(gpus), gpus_name(other)
  if first then return second and first .. " + " .. second or first end
  local name = plain_name(cpu, false)
  return name ~= "" and name or "unknown"
end

--- The sensors that were looked for.
local function sensors_of(facts)
  local out = json.list {}
  for i, one in ipairs(facts.sensors) do
    local found = one.code == "ok"
    out[i] = { found = found, name = one.name, reason = found and null or one.code, text = one.text }
  end
  return out
end

--- The object `hardware`; what is not known is null.
---@param facts table of energy/hardware.h
---@return table
function hardware.document(facts)
  local cpu = processor(facts.cpuinfo)
  local gpus, other = gpus_of(facts)
  local function or_null(x) return x == nil and null or x end
  local function known(n) return n and n > 0 and n or null end
  return {
    basis = facts.basis, channels = json.list(facts.channels), cpu = or_null(cpu.model), cpu_cores = known(cpu.cores),
    cpu_count = facts.cpu_count, cpu_sockets = known(cpu.sockets), driver = or_null(driver_of(facts.driver)),
    governor = or_null(first_line(facts.governor)), gpu = or_null(gpus.model), gpu_count = gpus.n + other.n,
    gpu_memory_bytes = facts.gpu_memory_bytes, gpus_read = facts.gpus_read, host = facts.host, kernel = facts.kernel,
    labels = { hw = hardware.label(gpus, other, cpu.model), upstream = hardware.label_upstream(gpus.model, cpu.model) },
    machine = facts.machine, memory_bytes = facts.memory_bytes, os = facts.os, self_test = facts.self_test,
    sensors = sensors_of(facts), virtualised = or_null(virtualised(cpu.hypervisor, first_line(facts.vendor))),
  }
end

--- The same as JSON, for the program.
function hardware.text(facts) return json.encode(hardware.document(facts)) end

return hardware
