--- ipw.proc: child processes, in the query's workspace, with limits.
---
--- A child runs in a sandbox that bubblewrap makes: no network, only its own processes, a read-only
--- system, an empty /tmp. It may write the workspace. It sees no other file of the user except those
--- below --read. Where bubblewrap is not installed, proc.run is not allowed.
---
--- Under --unsafe-tools there is no sandbox: a child can read and write the files of its user,
--- including keys in files, and use the network.
---
--- In both cases a child has four environment variables and no keys. It has no capabilities, even as
--- root. It cannot look into other processes, such as the program or its shell (Landlock, Linux 5.13
--- and later).
local core = require "ipw.core.proc"

local proc = {}

--- Runs a program and waits for its end:
---   proc.run { "python3", "-I", "-", input = code, seconds = 10, memory = "512M", output = "64K" }
--- Returns { code, signal, stdout, stderr, timed_out, dropped, seconds }; or nil and a reason if it
--- could not be started. At the time limit its whole process group is ended. A file of the child can be
--- as long as the workspace has room (ipw.fs). If the workspace is over its limit afterwards, fs.write
--- and proc.run return nil and the reason. Raises if the run does not grant child processes.
---@param request table
---@return table? result, string? why
proc.run = core.run

return proc
