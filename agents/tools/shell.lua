--- shell: runs a command line in a child process and returns its output.
--
-- The child is `sh -c COMMAND` in the query's workspace and in a sandbox, as the tool python has it
-- (ipw.proc).

local proc = require "ipw.proc"
local clip = require "ipw.clip"

local SHOWN_BYTES = 32 * 1024

return {
  name   = "shell",
  about  = "Runs a shell command in the task's folder and returns what it prints. There is no network.",
  input  = {
    { "command", "string", "A command line for sh; pipes and several commands are allowed." },
    { "seconds", "number", "Time limit.", default = 20, min = 1, max = 120 },
  },
  effects = "runs programs, which may change the workspace",
  seconds = 150,
  retries = 0,
  needs  = { "proc" },
  serial = true,

  run = function(args)
    local out, why = proc.run { "sh", "-c", args.command, seconds = args.seconds, memory = "1G",
                                output = SHOWN_BYTES }
    if not out then return nil, why end
    local shown = clip((out.stdout .. (out.stderr ~= "" and "\n" .. out.stderr or "")):gsub("%s+$", ""), SHOWN_BYTES)
    if out.timed_out then
      return nil, ("still running after %g s\n%s"):format(args.seconds, shown), false, "timeout"
    end
    if out.signal then return nil, ("ended by signal %d\n%s"):format(out.signal, shown) end
    if out.code ~= 0 then return nil, ("exit status %d\n%s"):format(out.code, shown) end
    return shown:find("%S") and shown or "(it ran, and printed nothing)"
  end,
}
