--- ipw.proc: child processes, in the query's workspace, with limits.
---
--- A child runs in a sandbox that bubblewrap makes: no network, only its own processes, a read-only
--- system, an empty /tmp. It may write the workspace. It sees no other file of the user except those
--- below --read. It reads no keys of the user's session, no log and no counters of the kernel, and makes
--- no user namespace. Where bubblewrap is not installed, proc.run is not allowed.
---
--- Under --unsafe-tools there is no sandbox: a child can read and write the files of its user,
--- including keys in files, and use the network.
---
--- In both cases a child has four environment variables and no keys. It has no capabilities, even as
--- root. It cannot look into other processes, such as the program or its shell (Landlock, Linux 5.13
--- and later). `memory` limits each process, and all processes of a child together, with the files in
--- memory that they hold: if they need more, they are ended with signal 9.
local core = require "ipw.core.child"

local proc = {}

--- Runs a program and waits for its end:
---   proc.run { "python3", "-I", "-", input = code, seconds = 10, memory = "512M", output = "64K" }
--- Returns { code, signal, stdout, stderr, timed_out, dropped, seconds }; or nil and a reason if it
--- could not be started. At the time limit its whole process group is ended. A file of the child can be
--- as long as the workspace has room (ipw.fs). If the workspace is over its limit afterwards, fs.write
--- and proc.run return nil and the reason. `sandbox = true` keeps the sandbox under --unsafe-tools.
--- Raises if the run does not grant child processes.
---@param request table
---@return table? result, string? why
function proc.run(request)
  local number, why = core.open(request, true)
  if not number then return nil, why end
  local result, reason, of_program = core.wait(number)
  if of_program then reason = request[1] .. ": " .. reason end
  return result, reason
end

local Child = {}
Child.__index = Child

--- Starts a program that stays, to be talked to line by line:
---   local child <close> = assert(proc.open { "python3", "-u", "server.py", memory = "1G" })
---   child:send "hello\n"
---   local line, why, word = child:line(10)
--- Limits: cpu, memory, and a workspace that is not over its limit. Returns nil and a reason if it
--- could not be started. It ends with its scope, with child:close(), and at the latest with the query.
---@param request table
---@return ipw.Child? child, string? why
function proc.open(request)
  local number, why = core.open(request)
  if not number then return nil, why end
  return setmetatable({ number = number }, Child)
end

--- Sends bytes to its standard input. They wait until it reads them, 16 MiB at most.
---@param text string
---@return boolean? ok, string? why
function Child:send(text) return core.send(self.number, text) end

--- The next line that it printed, without its end; or nil, a reason and a word: "timeout" (no line in
--- time; it runs on), "too_long" (more than 16 MiB), "gone" (it has ended).
---@param seconds number
---@return string? line, string? why, string? word
function Child:line(seconds) return core.receive(self.number, seconds) end

--- Ends it and everything that it started.
function Child:close()
  core.close(self.number)
  self.number = 0 -- no child has it
end

Child.__close = Child.close

return proc
