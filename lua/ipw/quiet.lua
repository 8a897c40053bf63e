--- ipw.quiet: do other programs use this machine?
---
--- The energy of other programs is counted as our queries', so a run warns beforehand if the machine is not quiet. Two
--- looks at /proc a moment apart (energy/quiet.h) give the CPU time of foreign processes. Ourselves, our children, and
--- the model's server with its children are not foreign. The server is the process that listens on the port that we
--- talk to.
local json = require "ipw.core.json"

local quiet = {}

local MAX_DEPTH = 64
local LISTENS = "0A" -- the state of a socket in net/tcp
local LOUD_PART, LOUD_CPUS = 0.1, 1 -- of the machine; processors

-- Programs that forward a port to a server in a container: the server is not among their children.
local STAND_INS = { ["docker-proxy"] = true, rootlessport = true, slirp4netns = true, pasta = true, conmon = true,
                    ssh = true, kubectl = true }

--- A process by its stat file; nil: it is damaged. The name may contain blanks and brackets, so fields are counted from
--- the last ')'.
local function process_of(text)
  local pid, name, rest = text:match "^(%d+) %((.*)%)(.*)"
  local words = {}
  for word in (rest or ""):gmatch "%S+" do words[#words + 1] = word end
  local parent, user, sys = tonumber(words[2]), tonumber(words[12]), tonumber(words[13])
  if not (parent and user and sys) then return nil end
  return { pid = tonumber(pid), name = name:sub(1, 15), parent = parent, ticks = user + sys }
end

--- A look: the busy ticks of all processors (nil: not known), their number, and the processes by number.
local function look_of(raw)
  local user, nice, sys, irq, soft = ("\n" .. raw.stat):match "\ncpu +(%d+) (%d+) (%d+) %d+ %d+ (%d+) (%d+)"
  local look = { cpus = select(2, ("\n" .. raw.stat):gsub("\ncpu%d", "")), processes = {} }
  look.busy = user and user + nice + sys + irq + soft
  for _, text in ipairs(raw.processes) do
    local process = process_of(text)
    if process then look.processes[process.pid] = process end
  end
  return look
end

--- The process that listens on a local TCP port; nil: it cannot be found.
local function listener(raw, port)
  for line in (raw.tcp .. "\n" .. raw.tcp6):gmatch "[^\n]+" do
    local at, state, inode = line:match "^ *%d+: %S*:(%x+) %S+ (%x+) %S+ %S+ %S+ +%d+ +%d+ (%d+)"
    if at and state == LISTENS and tonumber(at, 16) == port then
      for _, socket in ipairs(raw.sockets) do
        if socket[1] == tonumber(inode) then return socket[2] end
      end
    end
  end
end

--- The roots of the process trees that belong to the run; and a port whose server was not found.
local function find_ours(facts, look)
  local ours, unknown_port = { [facts.pid] = true }, nil
  for _, port in ipairs(facts.ports) do
    local pid = listener(facts.after, port)
    local process = pid and look.processes[pid]
    if not pid or (process and STAND_INS[process.name]) then unknown_port = port end
    if pid then ours[pid] = true end
  end
  return ours, unknown_port
end

local function is_ours(look, ours, pid)
  for _ = 1, MAX_DEPTH do
    if ours[pid] then return true end
    pid = look.processes[pid] and look.processes[pid].parent
    if not pid or pid <= 0 then return false end
  end
  return false
end

--- The other programs on the processors; nil: not enough to tell of.
local function on_processors(before, after, ours, facts)
  local busy, most, busiest = after.busy - before.busy, 0, nil
  for pid, process in pairs(after.processes) do
    local used = process.ticks - (before.processes[pid] and before.processes[pid].ticks or 0)
    if used > 0 and is_ours(after, ours, pid) then
      busy = busy - used
    elseif used > most then
      most, busiest = used, process.name
    end
  end
  local cpus = facts.seconds > 0 and busy / facts.ticks_per_s / facts.seconds or 0
  if cpus <= LOUD_PART * after.cpus and cpus <= LOUD_CPUS then return nil end
  return ("other programs use %.1f of %.0f processors%s"):format(cpus, after.cpus,
    busiest and (" (most of it: %s)"):format(busiest) or "")
end

--- The first other program on the GPUs. A process that /proc does not show belongs to another container and is not
--- judged.
local function on_gpus(after, ours, facts)
  for _, use in ipairs(facts.gpu) do
    local process = after.processes[use.pid]
    if process and not is_ours(after, ours, use.pid) then
      return ("process %d (%s) computes on %s"):format(use.pid, process.name, use.channel)
    end
  end
end

--- What two looks tell.
---@param facts table of run/quiet_check.c
---@return table { known: were the looks whole?; not_quiet: the other programs, or ""; info? }
function quiet.judge(facts)
  local before, after = look_of(facts.before), look_of(facts.after)
  if not before.busy or not after.busy then return { known = false, not_quiet = "" } end
  local ours, unknown_port = find_ours(facts, after)
  local said, info = { on_processors(before, after, ours, facts) }, nil
  -- While the server's own process is not known, any may be the server.
  if unknown_port and #facts.gpu > 0 then
    info = ("cannot see which process listens on port %d, so GPU processes of other users are not detected"):format(
      unknown_port)
  else
    said[#said + 1] = on_gpus(after, ours, facts)
  end
  return { info = info, known = true, not_quiet = table.concat(said, "; ") }
end

--- The same as JSON.
function quiet.text(facts) return json.encode(quiet.judge(facts)) end

return quiet
