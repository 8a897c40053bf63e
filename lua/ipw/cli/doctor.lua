--- ipw.cli.doctor: `ipw-agent doctor`: checks this machine and a server, and suggests remedies.
--
-- A finding is { group, name, health = "ok" | "warn" | "fail", text, remedy }: what was tested, the result, and what
-- to do. What a model server supports is tested in ipw.doctor_probe.
local json   = require "ipw.json"
local proc   = require "ipw.proc"
local screen = require "ipw.screen"

local OLDEST_GOOD_LUA <const> = 50408
local MIB <const> = 1024 * 1024

-- this machine ------------------------------------------------------------------------------------

local function look_at_lua(add, release)
  local good = release >= OLDEST_GOOD_LUA
  add("program", "lua", good and "ok" or "warn",
    ("%d.%d.%d"):format(release // 10000, release // 100 % 100, release % 100),
    not good and "before 5.4.8 a hostile script can crash the program: run only scripts that you trust")
end

local function look_at_folder(add, machine)
  add("program", "runs folder", machine.writable and "ok" or "fail",
    ("%s can%s be written"):format(machine.runs and "./runs" or "the current folder", machine.writable and "" or "not"),
    not machine.writable and "change to a folder of yours, or name one with --output")
end

local function folders(n) return ("%d folder%s"):format(n, n == 1 and "" or "s") end

local function look_at_workspaces(add, machine)
  local root = machine.workspaces
  if machine.left > 0 then
    add("program", "workspaces", "warn", ("%s of killed runs in %s, %s%.1f MiB"):format(folders(machine.left), root,
      machine.left_more and "at least " or "", machine.left_bytes / MIB),
      "the next run removes them, and resume does")
  else
    add("program", "workspaces", "ok", "no folder of a killed run in " .. root)
  end
end

--- Sensors that this machine does not have share one line.
local function look_at_sensors(add, io)
  local rows, virtual = require("ipw.sensors").rows(io)
  local absent, any = {}, false
  for _, row in ipairs(rows) do
    any = any or row.found
    if row.absent then
      absent[#absent + 1] = row.name
    elseif not row.named then
      add("sensors", row.name, row.found and "ok" or "warn", row.text,
        row.denied and "give this user the right to read it, or run as root")
    end
  end
  for _, row in ipairs(rows) do
    for _, doubt in ipairs(row.doubts) do
      add("sensors", doubt.channel, "warn", doubt.text, doubt.frozen and "its power reading is integrated instead" or
        "its joules stay null; in a virtual machine the host must write the counter, or choose other sensors with " ..
        "--telemetry")
    end
  end
  if #absent == 0 then return end
  local remedy = virtual and
    "joules are estimated: to measure them read the host's sensors (on it: ipw-agent telemetry --listen; here: " ..
    "--telemetry stream=URL), or a power meter's log" or
    "joules are estimated: to measure them read a power meter (--telemetry log=FILE or exec=COMMAND, or afterwards: " ..
    "ipw-agent meter RUN --book)"
  add("sensors", "not here", any and "ok" or "warn", table.concat(absent, ", "), not any and remedy)
end

-- programs ----------------------------------------------------------------------------------------

--- Whether the program ended well, and the first line that it printed, or why it did not start.
local function tried(request)
  request.seconds = 10
  local result, why = proc.run(request)
  if not result then return false, why end
  local ok = result.code == 0
  local text = not ok and result.stderr ~= "" and result.stderr or result.stdout
  return ok, text:match "^[^\n]*"
end

--- Prints each thing that a program in the sandbox could do and must not. $1: a process outside, $2: a file outside.
local ESCAPES <const> = [==[
out=
tried() { out="$out${out:+, }$1"; }
kill -0 "$1" 2>/dev/null && tried 'reach processes'
[ -e "$2" ] && tried 'see your files'
(: >/usr/.ipw-agent) 2>/dev/null && tried 'write the system'
[ -r /etc/shadow ] && tried 'read /etc/shadow'
[ "$(grep -c : /proc/net/dev)" = 1 ] || tried 'use the network'
echo "$out"
]==]

local function look_at_sandbox(add, io, machine)
  if not machine.bubblewrap then
    add("tools", "sandbox", "warn", "none: tools that start programs are refused",
      "apt-get install bubblewrap, or --unsafe-tools: no sandbox")
    return
  end
  local file = ("%s/ipw-agent-doctor-%d"):format(machine.workspaces, machine.pid)
  io.call("write", file, "")
  local ok, line = tried { "sh", "-c", ESCAPES, "sh", tostring(machine.pid), file, sandbox = true }
  io.call("remove", file)
  if ok and line == "" then
    add("tools", "sandbox", "ok", "bubblewrap: no escape in five attempts")
  elseif ok then
    add("tools", "sandbox", "fail", "bubblewrap, but a program can " .. line,
      "do not run tools that you do not trust")
  else
    add("tools", "sandbox", "warn", line, "allow user namespaces, or --unsafe-tools: no sandbox")
  end
end

local function look_at_group(add, machine)
  if machine.cgroup ~= json.null then
    add("tools", "group", "ok", "limits the processes of a sandbox together, in " .. machine.cgroup)
  elseif machine.user ~= 0 then
    add("tools", "group", "ok", "none: each process has limits (systemd-run --user --scope makes one)")
  else
    add("tools", "group", "warn", "none: as root a program can start any number of processes",
      "run as another user, or with a writable /sys/fs/cgroup (version 2)")
  end
end

local function look_at_programs(add, io, machine)
  local ok, line = tried { "python3", "--version" }
  add("tools", "python3", ok and "ok" or "warn", line,
    not ok and "the tool 'python' needs it: apt-get install python3")
  look_at_sandbox(add, io, machine)
  if machine.bubblewrap then look_at_group(add, machine) end
end

-- the server --------------------------------------------------------------------------------------

local UNREACHABLE <const> = { network = true, timeout = true }

local function look_at_server(add, server, model)
  if not server.url then
    add("server", "address", "warn", "none found",
      "start one or use --base-url; until then the demo model answers")
    return
  end
  local names = server.models or {}
  if server.error and (UNREACHABLE[server.code] or server.status == 401 or server.status == 403) then
    add("server", "reachable", "fail", server.error, "is it running, is the address right, does it want a key?")
    return
  end
  add("server", "reachable", "ok", server.url .. (server.named and "" or " (found)"))
  if #names > 0 then
    add("server", "models", "ok", ("%d: %s%s"):format(#names, names[1], #names > 1 and ", ..." or ""))
  else
    add("server", "models", "warn", server.error or "it lists none", "name the model with --model")
  end
  if model or names[1] then require("ipw.doctor_probe")(add, model or names[1]) end
end

-- the command -------------------------------------------------------------------------------------

local COLOURS <const> = { ok = "32", warn = "33", fail = "31" }

local function show(io, findings)
  local group = ""
  for _, one in ipairs(findings) do
    if one.group ~= group then io.say((group == "" and "" or "\n") .. one.group) end
    group = one.group
    local health = ("%-4s"):format(one.health)
    if io.colour then health = ("\27[%sm%s\27[0m"):format(COLOURS[one.health], health) end
    io.say(screen.wrapped(("  %s %s "):format(health, screen.left(one.name, 16)), one.text, io.width, 24))
    if one.remedy ~= json.null then io.say(screen.wrapped((" "):rep(24) .. "-> ", one.remedy, io.width)) end
  end
end

local function run(io, o)
  local findings, ok = {}, true
  local function add(group, name, health, text, remedy)
    findings[#findings + 1] = { group = group, name = name, health = health, text = screen.fit(text, 240),
                                remedy = remedy or json.null }
    ok = ok and health ~= "fail"
  end
  local server, machine = io.call "server", io.call "machine"
  add("program", "ipw-agent", "ok", io.version)
  look_at_lua(add, machine.lua)
  look_at_folder(add, machine)
  look_at_workspaces(add, machine)
  look_at_sensors(add, io)
  look_at_programs(add, io, machine)
  look_at_server(add, server, o.model)
  if o.json then
    io.say(json.encode { findings = findings, ok = ok, version = io.version })
  else
    show(io, findings)
  end
  return ok and 0 or 1
end

return {
  usage = "doctor [--base-url URL] [--model NAME]",
  about = [[
Check the server and the features it supports (a dozen short requests), the
sensors, tools and permissions; suggest what to do.]],
  more = "Exit status: 0 everything that a run needs works, 1 something does not.",
  options = {
    "server",
    { "model", "string", "NAME", "model to ask (default: the first one listed)", letter = "m" },
    { "json", "flag", "print one JSON object" },
  },
  model    = "find",
  children = true, -- asks for the sandbox where it tests it
  run      = run,
}
