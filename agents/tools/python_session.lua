--- python_session: runs Python code in a session of the query: variables and imports stay from call to
--- call.
--
-- The session (ipw.python) is one child process in the query's workspace and in a sandbox, started by
-- the first call.

local python = require "ipw.python"

local session   -- of this query: each has a Lua state of its own

return {
  name   = "python_session",
  about  = "Runs Python 3 code; variables and imports stay for the next call. Returns what it prints, and the " ..
           "value of a last expression.",
  input  = {
    { "code", "string", "One or several lines of Python." },
    { "seconds", "number", "Time limit.", default = 20, min = 1, max = 120 },
  },
  effects = "runs a program, which may change the workspace",
  seconds = 150,
  retries = 0,
  needs  = { "proc" },
  serial = true,

  run = function(args)
    local why
    if not session then
      session, why = python.open()
      if not session then return nil, why end
    end
    local code = args.code:match("^%s*```[%w]*\r?\n(.-)\n?```%s*$") or args.code
    local text, ok, word = session:run(code, args.seconds)
    if not text then
      session = nil
      return nil, ok .. "; the session was ended, its variables are lost", false, word
    end
    if not ok then return nil, text end
    return text ~= "" and text or "(it ran, and printed nothing)"
  end,
}
