--- ipw.cli.which_run: tells a command in C which saved run a word means (app/ask.c); without one the newest.
local saved_runs = require "ipw.saved_runs"

local function run(io, _, args)
  local path, why = saved_runs.find(args[1])
  if path then return io.call("answer", path) end
  io.warn("ipw-agent: " .. why)
  return args[1] and 3 or 2
end

return {
  usage  = "which_run [RUN]",
  about  = "Answer with the path of the run that is meant.",
  args   = { 0, 1 },
  cpu_s  = 60,
  failed = 3,
  run    = run,
}
