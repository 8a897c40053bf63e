--- ipw.merge.sessions: which sessions of the shards are one session of the merged run.
---
--- Sessions that overlap on one boot and have a device of their sums in common are joined.  So are sessions of
--- different boots that read a device of another machine (a scrape) at the same time, by their wall clocks.  Devices
--- of which nobody can tell whether they are the same would be counted twice, and are an error: one boot whose CPUs,
--- for example, two sessions read by different sensors at the same time.
local shards = require "ipw.merge.shards"

local get, whole = shards.get, shards.whole

-- A wall clock whose error the system does not tell: that of machines with a time service that is set up in the usual
-- way, and more.
local ASSUMED_CLOCK_ERROR_NS <const> = 100000000

--- The devices in the sums of a session.
local function devices_of(session)
  local out = {}
  for _, channel in ipairs(get(session, "hardware", "channels") or {}) do
    if get(channel, "in_sum") then
      out[#out + 1] = { domain = get(channel, "domain") or "", name = get(channel, "name") or "",
                        device = get(channel, "device") or "", remote = get(channel, "remote") or false }
    end
  end
  return out
end

--- A session: run and session are its places, from 0.
local function part_of(shard, run, number, session)
  local clock = { mono = whole(session, "clock", "mono_ns"), wall = whole(session, "clock", "wall_ns") }
  local start_ns, end_ns = whole(session, "start_ns"), whole(session, "end_ns")
  return { path = shard.path, index = shard.index, run = run, session = number, boot = get(session, "host", "boot_id"),
           start_ns = start_ns, end_ns = end_ns, clock = clock, devices = devices_of(session),
           start_wall_ns = clock.wall + start_ns - clock.mono, end_wall_ns = clock.wall + end_ns - clock.mono,
           error_ns = get(session, "host", "clock_error_ns") or -1 }
end

local function by_start(a, b)
  if a.start_wall_ns ~= b.start_wall_ns then return a.start_wall_ns < b.start_wall_ns end
  if a.index ~= b.index then return a.index < b.index end
  return a.session < b.session
end

local function one_boot(a, b) return a.boot ~= nil and a.boot == b.boot end

-- what two sessions have in common ----------------------------------------------------------------

--- A GPU has an id of its own, but its number may differ from process to process.
local function is_same(a, b)
  return a.domain == b.domain and a.device == b.device and
    (a.domain == "gpu" and a.device ~= "" or a.name == b.name)
end

local function find(part, device)
  for _, other in ipairs(part.devices) do
    if is_same(other, device) then return other end
  end
  return nil
end

local function has_domain(part, domain)
  for _, device in ipairs(part.devices) do
    if device.domain == domain then return true end
  end
  return false
end

--- Both read a domain of one machine, by different sensors: a GPU that only one of them has is another GPU; a CPU
--- package is not another machine.
local function is_apart(a, b)
  for _, device in ipairs(a.devices) do
    if device.domain ~= "gpu" and not find(b, device) and has_domain(b, device.domain) then return true end
  end
  return false
end

--- How many devices they share, and whether one is of another machine.
local function shared(a, b)
  local n, remote = 0, false
  for _, device in ipairs(a.devices) do
    local other = find(b, device)
    if other then n, remote = n + 1, remote or other.remote and device.remote end
  end
  return n, remote
end

-- are two sessions joined? ------------------------------------------------------------------------

local function refuse(io, a, b, why) io.fail(("%s and %s: %s"):format(a.path, b.path, why), 3) end

--- Two sessions on one boot.
local function on_one_boot(io, a, b)
  if not (a.start_ns < b.end_ns and b.start_ns < a.end_ns) then return false end
  if is_apart(a, b) or is_apart(b, a) then
    refuse(io, a, b, "ran at the same time on one host and read it by different sensors: give all shards the same " ..
      "--telemetry")
  end
  return shared(a, b) > 0
end

--- Two sessions of different boots, or of unknown ones: by their wall clocks; without one nobody knows.
local function on_two_boots(io, a, b)
  local dated = a.clock.wall ~= 0 and b.clock.wall ~= 0
  if dated and not (a.start_wall_ns < b.end_wall_ns and b.start_wall_ns < a.end_wall_ns) then return false end
  local _, remote = shared(a, b)
  if remote and not dated then
    refuse(io, a, b, "clients on two hosts read the same device of a server, and the wall clock of one is unknown: " ..
      "run the clients of one server on one host")
  end
  if #a.devices > 0 and #b.devices > 0 and not (a.boot and b.boot) then
    refuse(io, a, b, "the boot id of a host is unknown, so that nothing tells whether they shared its devices")
  end
  return remote
end

--- Gives every part its group, which is named by the first of its parts.
local function join_pairs(io, parts)
  for i, part in ipairs(parts) do part.group = i end
  for i, a in ipairs(parts) do
    for k = i + 1, #parts do
      local b = parts[k]
      if (one_boot(a, b) and on_one_boot or on_two_boots)(io, a, b) then
        local to, from = math.min(a.group, b.group), math.max(a.group, b.group)
        for _, part in ipairs(parts) do
          if part.group == from then part.group = to end
        end
      end
    end
  end
end

-- the groups --------------------------------------------------------------------------------------

local function clock_error(part) return part.error_ns < 0 and ASSUMED_CLOCK_ERROR_NS or part.error_ns end

--- A member of a joined session.  All sessions of one boot are moved alike, by the clock of its first one.
local function member(of, first, part)
  local own, out = part, { run = part.run, session = part.session, ahead_ns = 0, clock_error_ns = 0 }
  for _, other in ipairs(of) do
    if one_boot(other, part) then
      own = other
      break
    end
  end
  if own == first then return out end
  out.ahead_ns = own.clock.wall - own.clock.mono - (first.clock.wall - first.clock.mono)
  out.clock_error_ns = clock_error(first) + clock_error(own)
  out.assumed = part.error_ns < 0
  return out
end

--- They differ in their devices, or in their clocks.
local function is_divided(a, b)
  return not one_boot(a, b) or #a.devices ~= #b.devices or shared(a, b) ~= #a.devices
end

--- The sessions of the merged run, by their start: `members`, which begin by their start, and `divided`.
return function(io, all)
  local parts, groups, by_first = {}, {}, {}
  for run, shard in ipairs(all) do
    for number, session in ipairs(shard.sessions) do
      local part = part_of(shard, run - 1, number - 1, session)
      if part.start_ns ~= 0 then parts[#parts + 1] = part end -- else it was killed before it began
    end
  end
  table.sort(parts, by_start)
  join_pairs(io, parts)
  for _, part in ipairs(parts) do
    local first, group = parts[part.group], by_first[part.group]
    if not group then
      group = { parts = {}, members = {}, divided = false }
      by_first[part.group], groups[#groups + 1] = group, group
    end
    group.parts[#group.parts + 1] = part
    group.members[#group.members + 1] = member(group.parts, first, part)
    group.divided = group.divided or part ~= first and is_divided(first, part)
  end
  return groups
end
