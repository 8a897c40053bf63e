--- ipw.proc: child processes, in the query's workspace, with limits.
local core = require "ipw.core.proc"

local proc = {}

--- Runs a program and waits for its end:
---   proc.run { "python3", "-I", "-", input = code, seconds = 10, memory = "512M", output = "64K" }
--- Gives { code, signal, stdout, stderr, timed_out, dropped, seconds }, or nil and a reason when it
--- could not be started. At the time limit its whole process group is ended. Raises when the run
--- does not grant child processes.
---@param request table
---@return table? result, string? why
proc.run = core.run

return proc
