--- ipw.cli.which_run: tells a command in C which saved run a word means (app/ask.c); "" is the newest.
local saved_runs = require "ipw.saved_runs"

return function(io, word)
  local path, why = saved_runs.find(word ~= "" and word or nil)
  io.call("answer", path or why)
  return path and 0 or 1
end
