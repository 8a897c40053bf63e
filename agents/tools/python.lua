--- python: runs a short program in a child process and returns its output.
--
-- The child is `python3 -I -` in the query's workspace and in a sandbox (ipw.proc): it has no network,
-- sees no other file of the user, and may write the workspace and /tmp.  Time, memory and output are
-- limited.  Under --unsafe-tools there is no sandbox: then it may do what the user may do.

local proc = require "ipw.proc"

--- The end of a traceback, which says what went wrong; its beginning is about the caller.
local function tail(text, limit)
  if #text <= limit then return text end
  local from = text:find("\n", #text - limit, true) or #text - limit
  return "[...]" .. text:sub(from)
end

return {
  name  = "python",
  about = "Runs a Python 3 program and returns what it prints.",
  input = {
    { "code", "string", "A whole program; print() what you want to see." },
    { "seconds", "number", "Time limit.", default = 10, min = 1, max = 60 },
  },
  effects = "runs a program, which may change the workspace",
  seconds = 75,
  retries = 0,
  needs = { "proc" },
  serial = true,

  run = function(args)
    local code = args.code:match("^%s*```[%w]*\r?\n(.-)\n?```%s*$") or args.code
    local out, why = proc.run { "python3", "-I", "-", input = code, seconds = args.seconds,
                                memory = "512M", output = "64K" }
    if not out then return nil, why end
    if out.timed_out then return nil, ("still running after %g s"):format(args.seconds), false, "timeout" end
    if out.signal then
      return nil, ("ended by signal %d\n%s"):format(out.signal, tail(out.stderr, 4000))
    end
    if out.code ~= 0 then
      return nil, ("exit status %d\n%s%s"):format(out.code, tail(out.stdout, 2000),
        tail(out.stderr, 4000))
    end
    local text = out.stdout
    if out.dropped > 0 then
      text = ("%s\n[%d bytes of output left out in the middle]"):format(text, out.dropped)
    end
    if not text:find("%S") then return "(it ran, and printed nothing: use print())" end
    return (text:gsub("%s+$", ""))
  end,
}
