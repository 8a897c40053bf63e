--- ipw.cli.cat: `ipw-agent cat [FILE]`: a file that is built into the program.
local script = require "ipw.core.script"

local function run(io, _, args)
  if args[1] and io.call("built_in", args[1]) then return 0 end
  local names = io.call "built_in"
  if args[1] then
    local near = script.nearest(args[1], names)
    io.fail(("cat: no built-in file is called '%s'%s"):format(args[1]:sub(1, 100),
      near and (" (did you mean '%s'?)"):format(near) or ""), 2)
  end
  for _, name in ipairs(names) do io.say(name) end
end

return {
  usage = "cat [FILE]",
  about = [[
Print a built-in file; without FILE, list the built-in files.
To start from one: ipw-agent cat agents/react.lua > mine.lua]],
  args = { 0, 1 },
  run  = run,
}
