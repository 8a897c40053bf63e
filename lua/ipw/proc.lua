--- ipw.proc: child processes, in the query's workspace, with limits.
---
--- A child runs in a sandbox (docs/security.md, "Programs"), with four environment variables and no keys.
--- `memory` limits each process, and all of a child together with their files in memory: beyond it they are
--- ended with signal 9.

local core = require "ipw.core.child"

local proc = {}

--- Runs a program and waits for its end:
---   proc.run { "python3", "-I", "-", input = code, seconds = 10, memory = "512M", output = "64K" }
--- The result is { code, signal, stdout, stderr, timed_out, dropped, seconds }. At the time limit its process
--- group is ended. While the workspace is over its limit (ipw.fs), fs.write and proc.run fail. `sandbox = true`
--- keeps the sandbox under --unsafe-tools. Raises if the run does not grant child processes.
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
--- It ends with its scope, and at the latest with the query. Limits: cpu, memory.
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

--- The next line that it printed. The word is "timeout" (no line in time), "too_long" (over 16 MiB) or "gone".
---@param seconds number
---@return string? line, string? why, string? word
function Child:line(seconds) return core.receive(self.number, seconds) end

--- Ends it with all that it started.
function Child:close()
  core.close(self.number)
  self.number = 0 -- no child has it
end

Child.__close = Child.close

return proc
