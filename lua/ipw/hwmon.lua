--- ipw.hwmon: the power and energy files of /sys/class/hwmon, and what they measure.
---
--- Asked once, when sensors are opened (energy/sources/hwmon.h). A new driver is a row of ROWS. One tree, several
--- sources (groups), so that a slow bus does not delay a fast one. A device is found by its driver's name, never by its
--- number, which changes from boot to boot.
local json = require "ipw.core.json"

local hwmon = {}

local MS = 1000000
local UNKNOWN_W = 1000  -- if the driver names no limit
local MACHINE_W = 20000 -- a whole server: a meter's cap is an alarm, not a limit
local ALL = 32          -- inputs of one kind

local function is_intel(driver) return driver == "xe" or driver == "i915" end
local function is_intel_tile(driver) return driver:find "^i915_gt" ~= nil end
local function is_amd(driver) return driver:find "^amdgpu" ~= nil end

local ELSEWHERE = { xe = true, power_meter = true, ina3221 = true, amd_energy = true }
local function is_other(driver) return not (is_amd(driver) or driver:find "^i915" or ELSEWHERE[driver]) end

--- One source for each group of drivers. boards, maker, prefix: of a group of GPUs, the drivers of a board.
local GROUPS = {
  -- The AMD driver asks the firmware at most once per millisecond; Intel's counter changes once per millisecond.
  amdgpu = { ms = 10, boards = is_amd, maker = "AMD", prefix = "amdgpu",
             nothing = "the amdgpu driver shows neither energy1_input nor power1_average" },
  intel_gpu = { ms = 10, boards = is_intel, maker = "Intel", prefix = "intelgpu",
                nothing = "the Intel driver shows no energy counter" },
  power_meter = { ms = 50, nothing = "no ACPI power meter in %s (if the machine has one: modprobe acpi_power_meter; "
    .. "on Grace with force_cap_on=y)" },
  ina3221 = { ms = 20, nothing = "no INA3221 with labelled rails in %s" }, -- two transfers per rail on a slow bus
  hwmon = { ms = 100, nothing = "no other power or energy file in %s" },
}

-- What an input is made of: energyN_input; powerN_average or powerN_input; inN_input times currN_input.
local INPUTS = { "energy", "power", "in" }

-- A domain and a scope.
local GPU, TILE, PACKAGE = { "gpu", "device" }, { "gpu", "rail" }, { "cpu", "package" }
local CORES, UNCORE, MODULE = { "cpu", "core" }, { "cpu", "uncore" }, { "machine", "module" }
local MACHINE, SUPPLY = { "machine", "machine" }, { "machine", "rail" }
local UNKNOWN = { "machine", "device" } -- some device of the machine, or around it

-- The first row that fits an input is its channel: the driver, the kind and the most of its inputs, the label, the
-- name, the place; and in_sum; limit: the highest power is by the limits that the driver names; max_w, otherwise;
-- period_ns, or interval: as the driver says; by_label: a label of its own names the device for a person. A name holds
-- '@' for the board's number, '%' for the label, '#' for the number that ends the label, '&' for the driver.
local ROWS = {
  amdgpu = {
    { "^amdgpu$", "energy", 1, "", "amdgpu@", GPU, in_sum = true, limit = true },
    { "^amdgpu$", "power", 1, "", "amdgpu@", GPU, in_sum = true, limit = true },
    { "^amdgpu/apu$", "energy", 1, "", "amdgpu@", PACKAGE, limit = true },
    { "^amdgpu/apu$", "power", 1, "", "amdgpu@", PACKAGE, limit = true },
  },
  intel_gpu = {
    { is_intel, "energy", ALL, "^card$", "intelgpu@", GPU, in_sum = true, limit = true },
    { is_intel, "energy", ALL, "", "intelgpu@/%", TILE, limit = true },
    { is_intel_tile, "energy", 1, "", "intelgpu@/%", TILE, limit = true },
  },
  -- Grace includes its cores (CPU), the rest of the chip (SysIO) and its memory; Module also includes the GPU.
  power_meter = {
    { "^power_meter$", "power", 1, "^Module Power Socket %d+$", "module-#", MODULE, in_sum = true, max_w = MACHINE_W,
      interval = true, by_label = true },
    { "^power_meter$", "power", 1, "^Grace Power Socket %d+$", "grace-#", PACKAGE, in_sum = true, max_w = MACHINE_W,
      interval = true, by_label = true },
    { "^power_meter$", "power", 1, "^CPU Power Socket %d+$", "cpu-#", CORES, max_w = MACHINE_W, interval = true,
      by_label = true },
    { "^power_meter$", "power", 1, "^SysIO Power Socket %d+$", "sysio-#", UNCORE, max_w = MACHINE_W, interval = true,
      by_label = true },
    { "^power_meter$", "power", 1, "", "power_meter", MACHINE, in_sum = true, max_w = MACHINE_W, interval = true,
      by_label = true },
  },
  ina3221 = {
    { "^ina3221$", "in", 3, "^VDD_IN$", "%", MACHINE, in_sum = true },
    { "^ina3221$", "in", 3, "^POM_5V_IN$", "%", MACHINE, in_sum = true },
    { "^ina3221$", "in", 3, "^VIN_SYS_5V0$", "%", MACHINE, in_sum = true },
    { "^ina3221$", "in", 3, "CPU.*GPU", "%", SUPPLY, in_sum = true },
    { "^ina3221$", "in", 3, "GPU.*CPU", "%", SUPPLY, in_sum = true },
    { "^ina3221$", "in", 3, "GPU", "%", TILE, in_sum = true },
    { "^ina3221$", "in", 3, "CPU", "%", { "cpu", "rail" }, in_sum = true },
    { "^ina3221$", "in", 3, "", "%", SUPPLY, in_sum = true },
  },
  hwmon = {
    -- Out of the kernel since 5.13, but still used. The sockets include the EcoreNNN.
    { "^amd_energy$", "energy", 1024, "^Esocket%d+$", "package-#", PACKAGE, in_sum = true, period_ns = MS,
      by_label = true },
    { is_other, "energy", ALL, "", "&/%", UNKNOWN },
    { is_other, "power", ALL, "", "&/%", UNKNOWN },
  },
}

local function fits(rule, text)
  if type(rule) == "function" then return rule(text) end
  return text:find(rule) ~= nil
end

-- Devices and their files.

--- A device's file, in its own folder or (older drivers) in its parent device's; nil: it has none.
local function find_file(dev, file)
  for _, name in ipairs { file, "device/" .. file } do
    if dev.files[name] ~= nil then return dev.dir .. "/" .. name end
  end
end

local function text_of(dev, file)
  for _, name in ipairs { file, "device/" .. file } do
    local text = dev.files[name]
    if text and text ~= "" then return text end
  end
end

--- A whole number from 0; nil: the file is none.
local function number_of(dev, file)
  local text = text_of(dev, file) or ""
  return text:find "^%d+$" and math.tointeger(tonumber(text)) or nil
end

--- Their files by name. A processor with graphics reports the power of the whole package, which RAPL has.
local function with_files(devices)
  for _, dev in ipairs(devices) do
    local files = {}
    for _, file in ipairs(dev.files) do files[file[1]] = file[2] end
    dev.files = files
    if dev.driver == "amdgpu" and text_of(dev, "in1_label") == "vddnb" then dev.driver = "amdgpu/apu" end
  end
  return devices
end

-- Channels.

--- 1.3 times the highest limit that the driver names. Some name the supply's maximum, or all ones, which is no limit.
local function limit_of(dev)
  local most = 0
  for _, key in ipairs { "cap_max", "cap", "max", "rated_max", "crit" } do
    local uw = number_of(dev, "power1_" .. key)
    if uw and uw > most and uw < 4000000000 then most = uw end
  end
  return most > 0 and (most // 1000 * 13 // 10 + 999) // 1000 or UNKNOWN_W
end

--- The label of an input, and whether it is its own or the usual one.
local function label_of(dev, input, n)
  local own = text_of(dev, ("%s%d_oem_info"):format(input, n)) or text_of(dev, ("%s%d_label"):format(input, n))
  if own then return own, true end
  if is_intel(dev.driver) and n <= 2 then return n == 1 and "card" or "pkg", false end
  return dev.driver:match "^i915_(gt.*)" or input .. n, false
end

local function row_of(group, dev, input, n, label)
  for _, row in ipairs(ROWS[group]) do
    if row[2] == input and n <= row[3] and fits(row[1], dev.driver) and (not label or fits(row[4], label)) then
      return row
    end
  end
end

--- The files of an input and how they are read; nil: they do not exist.
local function probe_of(dev, input, n)
  if input == "in" then -- mV times mA is uW
    local volts, amperes = find_file(dev, ("in%d_input"):format(n)), find_file(dev, ("curr%d_input"):format(n))
    if not volts or not amperes then return nil end
    return { path = volts, path2 = amperes, divisor = 1000, method = ("hwmon in%d x curr%d"):format(n, n) }
  end
  local file = input .. n .. (input == "power" and "_average" or "_input")
  local path = find_file(dev, file)
  if not path and input == "power" then
    file = input .. n .. "_input"
    path = find_file(dev, file)
  end
  return path and { path = path, status = dev.status, divisor = input == "energy" and 1 or 1000,
                    method = "hwmon " .. file:sub(1, 24) }
end

local function add_input(list, group, dev, board, input, n)
  local label, own = label_of(dev, input, n)
  local row = row_of(group, dev, input, n, label)
  if not row or (input == "in" and not own) then return end -- a rail without a label is not connected
  local probe, counter = probe_of(dev, input, n), input == "energy"
  if not probe then return end
  local forms = { ["@"] = tostring(board), ["%"] = label, ["#"] = label:match "%d*$", ["&"] = dev.driver }
  local period_ns = row.period_ns or 0
  if row.interval then
    local ms = number_of(dev, "power1_average_interval") or 0
    period_ns = ms < 3600000 and ms * MS or 0
  end
  probe.home = dev.dir
  probe.channel = {
    name = row[5]:gsub("[@%%#&]", forms):sub(1, 63), domain = row[6][1], scope = row[6][2],
    kind = counter and "counter" or "gauge", unit = counter and "uJ" or "mW", in_sum = row.in_sum or false,
    max_w = row.limit and limit_of(dev) or row.max_w or UNKNOWN_W, period_ns = period_ns,
    device = row.by_label and own and label or (dev.parent ~= "" and dev.parent or dev.driver),
  }
  -- The gauge of a GPU that also has a counter.
  local before = list[#list]
  if input == "power" and before and before.channel.name == probe.channel.name and before.home == probe.home then
    probe.channel.name, probe.channel.in_sum = probe.channel.name .. "/power", false
  end
  list[#list + 1] = probe
end

local function add_device(list, group, dev, board)
  for _, input in ipairs(INPUTS) do
    local n = 1
    while row_of(group, dev, input, n) do
      add_input(list, group, dev, board, input, n)
      n = n + 1
    end
  end
end

--- A board with its tiles. If none of its inputs is the board's, use the first.
local function add_board(list, group, devices, dev, board)
  local first, whole = #list + 1, false
  add_device(list, group, dev, board)
  for i = first, #list do whole = whole or list[i].channel.scope ~= "rail" end
  if list[first] and not whole then list[first].channel.in_sum, list[first].channel.scope = true, "device" end
  for _, tile in ipairs(devices) do
    if is_intel_tile(tile.driver) and tile.parent == dev.parent then add_device(list, group, tile, board) end
  end
end

--- Sums that depend on which channels there are.
local function settle_sums(list, group)
  local scopes = {}
  for _, probe in ipairs(list) do scopes[probe.channel.scope] = true end
  for _, probe in ipairs(list) do
    local c = probe.channel
    if group == "ina3221" and scopes.machine then -- it includes the rails; those of one part count for that part
      if c.domain == "machine" and c.scope == "rail" then c.in_sum = false end
    elseif group == "ina3221" then -- every rail is a part of the machine
      c.domain = "machine"
    elseif not scopes.package and (c.scope == "core" or c.scope == "uncore") then
      c.scope, c.in_sum = "package", true -- the firmware shows no Grace meter: sum its parts
    end
  end
end

-- Selected GPUs.

--- A bus id in one spelling: "01:00.0", "0000:01:00.0", "00000000:01:00.0" are the same; nil: it is none.
local function bus_id(text)
  local domain, rest = text:match "^(%x+):(%x%x:%x%x%.[0-7])$"
  if text:find "^%x%x:%x%x%.[0-7]$" then domain, rest = "0000", text end
  if not domain or #domain < 4 or #domain > 8 then return nil end
  return ("%x:%s"):format(tonumber(domain, 16), rest:lower())
end

--- Does the word name this GPU, by its bus id or its channel?
local function means(word, group, dev, board)
  local id = bus_id(word)
  return word == GROUPS[group].prefix .. board or (id ~= nil and id == bus_id(dev.parent))
end

--- Does the selection name this GPU? Words of other kinds choose none.
local function wanted(gpus, group, dev, board)
  local any = false
  for word in (gpus or ""):gmatch "[^,]+" do
    word = word:match "^ *(.-) *$"
    any = any or word ~= ""
    if means(word, group, dev, board) then return true end
  end
  return not any
end

--- The group of the GPU that a word of such a list names; nil: none.
local function kind_of(facts)
  for _, group in ipairs { "amdgpu", "intel_gpu" } do
    local board = 0
    for _, dev in ipairs(facts.devices) do
      if GROUPS[group].boards(dev.driver) then
        if means(facts.word, group, dev, board) then return group end
        board = board + 1
      end
    end
  end
end

--- The channels of a group and their files.
---@param facts table { devices: { { dir, driver, files: { { name, text or false } }, parent, status? } }; group; gpus?;
--- root }, or { devices, word }
---@return table { period_ns, probes, nothing }, or { error, found: a board is there? }, or { kind }
function hwmon.look(facts)
  local devices = with_files(facts.devices)
  if facts.word then return { kind = kind_of(facts) or json.null } end
  local group, list, boards, chosen = GROUPS[facts.group], json.list {}, 0, 0
  for _, dev in ipairs(devices) do
    if not group.boards then
      add_device(list, facts.group, dev, 0)
    elseif group.boards(dev.driver) then
      if wanted(facts.gpus, facts.group, dev, boards) then
        add_board(list, facts.group, devices, dev, boards)
        chosen = chosen + 1
      end
      boards = boards + 1
    end
  end
  if group.boards and boards == 0 then
    return { error = ("no %s board in %s"):format(group.maker, facts.root), found = false }
  elseif group.boards and chosen == 0 then
    return { error = ("no %s GPU '%s' (expected a bus id, or a name such as %s0)"):format(group.maker,
      facts.gpus:sub(1, 100), group.prefix), found = true }
  end
  settle_sums(list, facts.group)
  return { period_ns = group.ms * MS, probes = list, nothing = group.nothing:format(facts.root:sub(1, 200)) }
end

--- The same as JSON.
function hwmon.text(facts)
  for key, value in pairs(facts) do if value == json.null then facts[key] = nil end end
  return json.encode(hwmon.look(facts))
end

return hwmon
