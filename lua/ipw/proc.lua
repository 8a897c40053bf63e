--- ipw.proc: child processes, in the query's workspace, with limits.
---
--- A child runs in a sandbox that bubblewrap makes: no network, only its own processes, a read-only
--- system, an empty /tmp. It may write the workspace, and sees no other file of the user but those
--- below --read. Where bubblewrap is not installed, proc.run is not granted.
---
--- Under --unsafe-tools there is no sandbox: a child reads and writes the files of its user, keys in
--- files included, and uses the network.
---
--- In both cases a child has four variables of the environment and none of the keys. It has no
--- capabilities, even as root, and cannot look into processes other than its own (Landlock, Linux
--- 5.13 and later).
local core = require "ipw.core.proc"

local proc = {}

--- Runs a program and waits for its end:
---   proc.run { "python3", "-I", "-", input = code, seconds = 10, memory = "512M", output = "64K" }
--- Gives { code, signal, stdout, stderr, timed_out, dropped, seconds }, or nil and a reason when it
--- could not be started. At the time limit its whole process group is ended. A file that it writes
--- may be as long as the workspace has room (ipw.fs); when it has left more there, fs.write and
--- proc.run give nil and the reason. Raises when the run does not grant child processes.
---@param request table
---@return table? result, string? why
proc.run = core.run

return proc
