--- my_command: say here which question it answers.
--
-- `ipw-agent my_command RUN` runs it from the folder that has commands/my_command.lua. docs/commands.md lists the
-- kinds of options, and what io and ipw.runs offer. What a run does not know is nil: never take it for 0.
local runs = require "ipw.runs"

--- The queries with known joules, { joules, id }, most joules first.
local function by_joules(run)
  local basis, known = runs.basis { run }, {}
  for _, row in ipairs(run.rows) do
    local joules = runs.joules(row.energy, basis)
    if joules then known[#known + 1] = { joules = joules, id = row.id } end
  end
  table.sort(known, function(a, b) return a.joules > b.joules end)
  return known
end

return {
  usage = "my_command RUN [--top N]",
  about = "Print the queries of a saved run that took the most energy.",
  options = {
    -- name, kind, the value's name in the help, help
    { "top", "integer", "N", "how many (default: 3)", min = 1, max = 1000 },
  },
  args  = { 1, 1 }, -- at least, at most; -1: any number
  cpu_s = 60,       -- CPU time of Lua between two waits

  --- o has the options that were given, args the other words. Returns the exit status; nothing: 0.
  run = function(io, o, args)
    io.saved(args)
    local known = by_joules(runs.read(1, io.warn))
    if #known == 0 then io.fail("no query of this run has known joules", 3) end
    for i = 1, math.min(o.top or 3, #known) do
      io.say(("%8.1f J  %s"):format(known[i].joules, known[i].id))
    end
  end,
}
